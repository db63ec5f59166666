"""Files of vectors: read back as written, block by block, and refused in words that name the place."""

import ast
import gzip
import io
import struct
import sys
import tracemalloc
import zipfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from k2means import memory, vectors
from k2means.vector_source import BLOCK_BYTES, PIECE_BYTES
from k2means.vectors import FileError, VectorFile, open_vectors, read_vectors, write_vectors

HOLDS = {  # the type a format has, if it has only one
    "fvecs": np.float32,
    "bvecs": np.uint8,
    "ivecs": np.int32,
    "fbin": np.float32,
    "u8bin": np.uint8,
    "i8bin": np.int8,
}
BINARY = ["npy", "npz", *HOLDS]
PACKED = ["npy.gz", "npy.zst", "fvecs.gz", "u8bin.zst", "csv.gz", "tsv.zst"]
FORMATS = [*BINARY, "parquet", "arrow", "feather", "hdf5", "h5", "csv", "tsv", *PACKED]
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "float16",
    "float32",
    "float64",
    ">f4",
]
ROWS = np.random.default_rng(0).integers(1, 100, size=(57, 6)).astype(np.float32)

every_format = pytest.mark.parametrize("suffix", FORMATS)
every_binary = pytest.mark.parametrize("suffix", BINARY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("vectors")


def needs(suffix):
    """Skip where an optional reader is missing."""
    if suffix in ("hdf5", "h5"):
        pytest.importorskip("h5py")
    if suffix in ("parquet", "arrow", "feather") or suffix.endswith("zst"):
        pytest.importorskip("pyarrow")


def written(folder, suffix, X=ROWS, **options):
    needs(suffix)
    path = folder / f"x.{suffix}"
    write_vectors(path, X, overwrite=True, **options)
    return path


def made(folder, suffix, content):
    path = folder / f"made.{suffix}"
    path.write_bytes(content)
    return path


def vecs(*rows, dtype="<f4"):
    return b"".join(struct.pack("<i", len(row)) + np.array(row, dtype).tobytes() for row in rows)


def npy(X):
    file = io.BytesIO()
    np.save(file, X, allow_pickle=True)
    return file.getvalue()


def delivered(dtype):
    dtype = np.dtype(dtype)
    is_short = dtype.itemsize <= (4 if dtype.kind == "f" else 2)
    return np.dtype(np.float32 if is_short else np.float64)


# ---- round trips -------------------------------------------------------------------------------------------------


@st.composite
def matrices(draw, suffix):
    """Of any type, with values that the format can hold."""
    shape = draw(st.tuples(st.integers(1, 20), st.integers(1, 9)))
    dtype, held = np.dtype(draw(st.sampled_from(DTYPES))), HOLDS.get(suffix.partition(".")[0])
    if dtype.kind == "f" and (held is None or np.dtype(held).kind == "f"):
        width = 8 * min(dtype.itemsize, 4 if held else 8)
        return draw(hnp.arrays(dtype, shape, elements=st.floats(allow_nan=False, allow_infinity=False, width=width)))
    ranges = [(-(2**24), 2**24), (0, 1) if dtype.kind == "b" else (-2048, 2048) if dtype.kind == "f" else (None, None)]
    ranges += [(np.iinfo(t).min, np.iinfo(t).max) for t in (dtype, held) if t and np.dtype(t).kind in "iu"]
    low = max(low for low, _ in ranges if low is not None)
    high = min(high for _, high in ranges if high is not None)
    return draw(hnp.arrays(np.int64, shape, elements=st.integers(int(low), int(high)))).astype(dtype)


@every_format
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_written_is_read_back(folder, suffix, data):
    X = data.draw(matrices(suffix))
    path = written(folder, suffix, X)
    file = open_vectors(path)
    read = file.read()
    assert file.shape == file.source_shape == read.shape == X.shape
    assert read.dtype == file.dtype == delivered(file.stored_dtype)
    assert np.array_equal(read.astype(X.dtype), X)
    assert read.flags.c_contiguous


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("suffix", ["npy", "npz", "parquet", "arrow", "hdf5"])
def test_a_format_for_all_types_keeps_the_type(folder, suffix, dtype):
    dtype = np.dtype(dtype)
    file = open_vectors(written(folder, suffix, np.ones((3, 2), dtype)))
    is_kept = dtype.kind != "b" or suffix in ("npy", "npz")
    assert file.stored_dtype == (dtype.newbyteorder("=") if is_kept else np.uint8)


@every_format
@pytest.mark.parametrize("target", ["npy", "fvecs", "u8bin.gz", "csv"])
def test_a_file_is_converted_without_its_values_changing(folder, tmp_path, suffix, target):
    source = open_vectors(written(folder, suffix), rows="5:40", columns=slice(1, 5))
    write_vectors(tmp_path / f"y.{target}", source)
    assert np.array_equal(read_vectors(tmp_path / f"y.{target}"), ROWS[5:40, 1:5])


def test_the_files_are_those_of_other_programs(folder):
    assert np.array_equal(np.load(written(folder, "npy")), ROWS)
    assert np.array_equal(np.load(written(folder, "npz", dataset="vectors"))["vectors"], ROWS)
    assert np.array_equal(np.loadtxt(written(folder, "csv"), delimiter=",", skiprows=1), ROWS)
    assert written(folder, "fvecs").read_bytes() == vecs(*ROWS)
    assert written(folder, "fbin").read_bytes() == struct.pack("<II", *ROWS.shape) + ROWS.tobytes()
    assert gzip.decompress(written(folder, "bvecs.gz").read_bytes()) == vecs(*ROWS, dtype=np.uint8)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_the_tables_are_those_of_pyarrow(folder, suffix):
    feather, parquet = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.parquet")
    path = written(folder, suffix, dataset="vectors")
    table = parquet.read_table(path) if suffix == "parquet" else feather.read_table(path)
    assert np.array_equal(table["vectors"].to_pylist(), ROWS)


def test_numbers_in_text_have_the_fewest_digits_that_give_them_back(folder):
    path = written(folder, "csv", np.array([[0.1, 1e-45, 3.4e38]], np.float32))
    assert path.read_text() == "x0,x1,x2\n0.1,1e-45,3.4e+38\n"


# ---- blocks and filters ------------------------------------------------------------------------------------------


@every_format
@pytest.mark.parametrize("size", [1, 10, 1000, None])
def test_blocks_are_the_whole_in_order(folder, suffix, size):
    blocks = list(open_vectors(written(folder, suffix)).blocks(size))
    assert all(block.flags.c_contiguous and len(block) <= (size or 1000) for block in blocks)
    assert np.array_equal(np.concatenate(blocks), ROWS)


@every_format
@settings(max_examples=15)
@given(
    start=st.none() | st.integers(-70, 70),
    stop=st.none() | st.integers(-70, 70),
    columns=st.lists(st.integers(-6, 5), min_size=1, max_size=6, unique_by=lambda column: column % 6),
    size=st.integers(1, 80),
)
def test_rows_and_columns_are_those_of_numpy(folder, suffix, start, stop, columns, size):
    needs(suffix)
    path = folder / f"filtered.{suffix}"
    if not path.exists():
        write_vectors(path, ROWS)
    rows = f"{'' if start is None else start}:{'' if stop is None else stop}"
    file, expected = open_vectors(path, rows=rows, columns=columns), ROWS[start:stop, columns]
    if not len(expected):
        with pytest.raises(ValueError, match="are none; it has 57"):
            file.read()
        return
    assert file.shape == expected.shape
    assert file.source_shape == ROWS.shape
    assert np.array_equal(file.read(), expected)
    assert np.array_equal(np.concatenate(list(file.blocks(size))), expected)


@every_format
def test_normalized_rows_are_those_of_numpy(folder, suffix):
    wide = ROWS.astype(np.float64)
    expected = (wide / np.sqrt((wide**2).sum(axis=1, keepdims=True))).astype(np.float32)
    read = read_vectors(written(folder, suffix), normalize=True)
    # sums of six squares of integers are exact; one rounding to double, one to float32
    assert np.array_equal(read.astype(np.float32), expected)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1.0, 1e200, 1e307])
def test_rows_are_normalized_whatever_their_size(folder, scale):
    read = read_vectors(written(folder, "npy", np.array([[3.0, 4.0]]) * scale), normalize=True)
    np.testing.assert_allclose(read, [[0.6, 0.8]], rtol=1e-12)  # 3e-310 itself has only 13 digits


def test_a_row_of_zeros_cannot_be_normalized(folder):
    X = ROWS.copy()
    X[41] = 0
    with pytest.raises(FileError, match="row 41 is all zeros"):
        read_vectors(written(folder, "fbin", X), normalize=True, rows="9:")


@pytest.mark.parametrize("rows", ["1", "1:2:3", "a:b", "", slice(0, 9, 2)])
def test_rows_that_are_no_range_are_refused(folder, rows):
    with pytest.raises(ValueError, match="rows must be like 'a:b' without a step"):
        open_vectors(written(folder, "npy"), rows=rows)


def test_columns_that_are_not_there_are_refused(folder):
    path = written(folder, "npy")
    for columns, message in [
        ([6], "position 6 is out of range, there are 6 columns"),
        ("0,a", "'a' is not a position"),
        ("4:4", "picks none of 6 columns"),
        ([0, -6], "picks a column twice"),
        ("0:4:2", "without a step"),
    ]:
        with pytest.raises(ValueError, match=message):
            open_vectors(path, columns=columns)
    with pytest.raises(TypeError, match=r"names or integers, got 1\.5"):
        open_vectors(path, columns=[1.5])


# ---- memory ------------------------------------------------------------------------------------------------------


def peak_of(action):
    """What `action` returns, and the most bytes that were allocated at once on the way."""
    tracemalloc.start()
    try:
        return action(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_plain_npy_file_is_mapped_and_not_copied(folder, dtype):
    X = np.ones((20_000, 16), dtype)
    path = written(folder, "npy", X)
    read, peak = peak_of(lambda: read_vectors(path))
    assert isinstance(read, np.memmap)
    assert not read.flags.writeable
    assert peak < X.nbytes / 4
    assert np.array_equal(read, X)


@pytest.mark.parametrize("suffix", ["fvecs", "fbin", "npz", "npy.gz", "fvecs.gz"])
def test_the_data_are_in_memory_once(folder, suffix):
    X = np.random.default_rng(0).random((600_000, 16), np.float32)
    if suffix.endswith("gz"):
        X[:] = 1  # packs well and fast
    path = written(folder, suffix, X)
    read, peak = peak_of(lambda: read_vectors(path))
    assert np.array_equal(read, X)
    assert peak < X.nbytes + 4 * BLOCK_BYTES


def test_an_array_in_columns_is_read_in_rows(folder):
    X = np.asfortranarray(ROWS)
    assert np.array_equal(read_vectors(made(folder, "npy", npy(X)), rows="3:50"), X[3:50])
    assert np.array_equal(read_vectors(made(folder, "npy.gz", gzip.compress(npy(X)))), X)
    np.savez_compressed(folder / "columns.npz", X)
    assert np.array_equal(read_vectors(folder / "columns.npz", columns="2:4"), X[:, 2:4])


@pytest.mark.parametrize("suffix", ["npy", "fbin", "csv", "npy.gz"])
def test_a_file_larger_than_memory_is_refused_unless_forced(folder, monkeypatch, suffix):
    path = written(folder, suffix, np.ones((1000, 10)))
    monkeypatch.setattr(memory, "machine_memory", lambda: 1000)
    with pytest.raises(
        MemoryError, match=r"1000 rows of 10 columns as float\d\d need .* GiB.*rows= or columns=.*force"
    ):
        read_vectors(path)
    assert read_vectors(path, force=True).shape == (1000, 10)
    assert read_vectors(path, rows=":5").shape == (5, 10)
    assert sum(map(len, open_vectors(path).blocks(10))) == 1000


# ---- bad files ---------------------------------------------------------------------------------------------------

NPY = npy(ROWS)
FBIN = struct.pack("<II", 57, 6) + ROWS.tobytes()
SWAPPED_FVECS = b"".join(struct.pack(">i", 6) + row.astype(">f4").tobytes() for row in ROWS)

PROBLEMS = {
    "empty": ("npy", b"", r"made\.npy: the file is empty"),
    "short header": ("fbin", b"abcde", r"cut off in the header at byte 5: expected 8 bytes from byte 0, found 5"),
    "other magic": ("npy", b"PK\x03\x04" + NPY, r"starts with b'PK.* at byte 0, an \.npy array"),
    "npy version": ("npy", b"\x93NUMPY\x07\x00" + NPY[8:], r"version 7\.0 at byte 6"),
    "long npy header": ("npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + NPY, r"claims 4294967295 bytes; at most 10000"),
    "cut npy": ("npy", NPY[:-5], r"57 rows of 6 columns are 1496 bytes, found 1491: cut off in row 56 at byte 1491"),
    "long npy": ("npy", NPY + b"abc", r"found 1499: 3 bytes too many at byte 1496"),
    "objects": ("npy", npy(np.array([[{}]])), r"values of type object"),
    "complex": ("npy", npy(np.ones((2, 2), complex)), r"values of type complex128"),
    "records": ("npy", npy(np.ones((2, 2), "i4,i4")), r"vectors are integers or floating-point numbers"),
    "one axis": ("npy", npy(np.ones(5)), r"an array of shape \(5,\); vectors are the rows of a matrix"),
    "three axes": ("npy", npy(np.ones((2, 3, 4))), r"shape \(2, 3, 4\)"),
    "no rows": ("npy", npy(np.ones((0, 3))), r"0 rows in the header \(shape \(0, 3\)\); at least one"),
    "no columns": ("npy", npy(np.ones((3, 0))), r"dimension 0 in the header"),
    "negative shape": ("npy", NPY.replace(b"(57, 6)", b"(-7, 6)"), r"shape \(-7, 6\)"),
    "many rows": ("npy", NPY.replace(b"(57, 6), }   ", b"(57000, 6), }"), r"57000 rows of 6 columns are 1368128 bytes"),
    "NaN": ("fbin", FBIN[:800] + struct.pack("<f", np.nan) + FBIN[804:], r"NaN at row 33, column 0; all .* finite"),
    "infinity": ("fvecs", vecs([1, 2], [3, np.inf]), r"infinity at row 1, column 1"),
    "fvecs d 0": ("fvecs", b"\0" * 40, r"dimension 0 at byte 0; it must be from 1 to 2\*\*24"),
    "fvecs d": ("fvecs", struct.pack("<i", 2**24 + 1) + bytes(99), r"dimension 16777217 at byte 0"),
    "fvecs d < 0": ("ivecs", struct.pack("<i", -3) + bytes(99), r"dimension -3 at byte 0"),
    "fvecs rows differ": ("fvecs", vecs([1, 2], [3, 4], [5]), r"row 2 at byte 24 has dimension 1, row 0 has 2"),
    "bvecs rows differ": ("bvecs", vecs([1, 2], [5], [3, 4, 5], dtype="u1"), r"row 1 at byte 6 has dimension 1"),
    "cut fvecs": ("fvecs", vecs([1, 2], [3, 4])[:-3], r"2 rows of 2 columns are 24 bytes, found 21: cut off in row 1"),
    "cut first row": ("fvecs", vecs([1, 2])[:-3], r"1 rows of 2 columns are 12 bytes, found 9: cut off in row 0"),
    "swapped fvecs": ("fvecs", SWAPPED_FVECS, r"reads 100663296, byte-swapped 6, which fits: a big-endian file\?"),
    "swapped fbin": ("fbin", struct.pack(">II", 57, 6) + FBIN[8:], r"byte-swapped 57 of 6, which fits: a big-endian"),
    "cut fbin": ("fbin", FBIN[:-7], r"57 rows of 6 columns are 1376 bytes, found 1369: cut off in row 56 at byte 1369"),
    "many fbin rows": ("fbin", b"\xff" * 4 + FBIN[4:], r"4294967295 rows of 6 columns .*cut off in row 57"),
    "fbin d": ("u8bin", struct.pack("<II", 1, 2**31) + bytes(99), r"dimension 2147483648 in the header at byte 0"),
    "no fbin rows": ("fbin", struct.pack("<II", 0, 6), r"0 rows in the header"),
    "not gzip": ("npy.gz", NPY, r"cut off or damaged after byte 0 of the unpacked data: Not a gzipped file"),
    "cut gzip": ("npy.gz", gzip.compress(NPY)[:-20], r"cut off or damaged after byte \d+ of the unpacked data"),
    "gzip checksum": ("fvecs.gz", gzip.compress(vecs([1, 2]))[:-6] + b"abcdef", r"damaged after byte \d+.*CRC"),
    "cut inside gzip": ("fbin.gz", gzip.compress(FBIN[:-7]), r"are 1376 bytes, found 1369: cut off in row 56"),
    "long inside gzip": ("fbin.gz", gzip.compress(FBIN + b"ab"), r"2 bytes too many at byte 1376"),
    "cut fvecs in gzip": ("fvecs.gz", gzip.compress(vecs([1, 2], [3, 4])[:-3]), r"cut off in row 1 at byte 21"),
    "other d in gzip": ("fvecs.gz", gzip.compress(vecs([1], [2, 3, 4])), r"row 1 at byte 8 has dimension 3"),
    "not zip": ("npz", NPY, r"zipfile cannot read it: File is not a zip file"),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_bad_file_is_refused_with_the_place(folder, problem):
    suffix, content, message = PROBLEMS[problem]
    path = made(folder, suffix, content)
    with pytest.raises(FileError, match=message) as caught:
        read_vectors(path)
    assert str(path) in str(caught.value)


def test_a_pickle_is_never_loaded(folder):
    loaded = []

    class Trap:
        def __reduce__(self):
            return loaded.append, (1,)

    with pytest.raises(FileError, match="values of type object"):
        read_vectors(made(folder, "npy", npy(np.array([[Trap()]]))))
    assert not loaded


@pytest.mark.parametrize("suffix", ["fbin", "npy", "npz"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_packed_file_that_claims_much_gets_no_memory(folder, suffix, order):
    n = 2**31  # rows of 1024 columns: 8 TiB
    content = struct.pack("<II", n, 1024) + bytes(5000)
    if suffix != "fbin":
        head = npy(np.asarray(ROWS, order=order))[:128]
        content = head.replace(b"(57, 6), }          ", f"({n}, 1024), }}".ljust(20).encode()) + bytes(5000)
    path = made(folder, f"{suffix}.gz", gzip.compress(content))
    if suffix == "npz":
        path = folder / "claims.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", content)

    def read():
        with pytest.raises(FileError, match=r"2147483648 rows of 1024 columns .*cut off"):
            read_vectors(path, force=True)

    assert peak_of(read)[1] < 10 * 2**20
    with pytest.raises(MemoryError, match=r"8192\.0 GiB"):
        read_vectors(path)


@every_format
def test_a_value_that_is_not_finite_is_located_and_its_block_withheld(tmp_path, suffix, monkeypatch):
    if HOLDS.get(suffix.partition(".")[0], np.float32) is not np.float32:
        pytest.skip("holds integers")
    X = ROWS.copy()
    X[31, 4], X[40, 0] = np.inf, np.nan
    with pytest.raises(ValueError, match="inf at row 31, column 4"):
        written(tmp_path, suffix, X)
    with monkeypatch.context() as careless:  # write it all the same
        careless.setattr("k2means.vector_writers.convert", lambda block, dtype, first: np.asarray(block, dtype))
        path = written(tmp_path, suffix, X)
    column = "'x4'" if "sv" in suffix else "4"
    with pytest.raises(FileError, match=f"infinity at row 31, column {column}"):
        assert all(np.isfinite(block).all() for block in open_vectors(path).blocks(size=10))
    with pytest.raises(FileError, match="NaN at row 40, column"):
        read_vectors(path, rows="32:")
    assert len(read_vectors(path, rows=":31")) == 31


@every_format
def test_every_cut_of_a_file_is_noticed(folder, suffix):
    content = written(folder, suffix).read_bytes()
    whole_lines = suffix in ("csv", "tsv", "fvecs", "bvecs", "ivecs")  # end anywhere between two rows
    for length in {0, 1, 4, 7, 8, 9, 40, len(content) // 2, len(content) - 9, len(content) - 1}:
        try:
            read = read_vectors(made(folder, suffix, content[:length]))
        except FileError:
            continue
        assert whole_lines
        assert np.array_equal(read[:-1], ROWS[: len(read) - 1])


# ---- fuzzing -----------------------------------------------------------------------------------------------------


def outcome(path):
    """The matrix, or None after a FileError; anything else is a failure."""
    try:
        file = open_vectors(path)
        read = file.read(force=True)
    except FileError:
        return None
    assert read.shape == file.shape == file.source_shape
    return read


def check_outcome(path):
    """No more values than the file can hold, and no more memory than those and a few pieces of the file need."""
    size = path.stat().st_size
    read, peak = peak_of(lambda: outcome(path))
    most = size * (1032 if path.suffix in (".gz", ".npz") else 1)  # deflate packs at most 1032 to 1
    assert read is None or read.size <= most
    values = 0 if read is None else read.nbytes
    assert peak < 4 * PIECE_BYTES + 20 * size + 2 * values


@pytest.mark.parametrize("suffix", [*BINARY, "npy.gz", "fvecs.gz"])
@settings(max_examples=60)
@given(content=st.binary(max_size=300), prefix=st.sampled_from([b"", b"\x93NUMPY\x01\x00\x76\x00", b"PK\x03\x04"]))
def test_random_bytes_never_crash_nor_allocate(folder, suffix, content, prefix):
    content = prefix + content
    check_outcome(made(folder, suffix, gzip.compress(content) if suffix.endswith("gz") else content))


edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from([b"\0", b"\xff", b"\x7f", b"9", b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\1\0"])
        | st.binary(min_size=1, max_size=4),
        st.sampled_from(["head", "anywhere", "tail"]),
        st.sampled_from(["replace", "insert", "remove", "cut"]),
    ),
    min_size=1,
    max_size=4,
)


@cache
def valid(folder, suffix):
    return written(folder, suffix, ROWS[:9]).read_bytes()


def mutated(content, changes):
    content = bytearray(content)
    for place, value, region, kind in changes:
        span = len(content) if region == "anywhere" else min(len(content), 160)
        at = int(place * span) + (len(content) - span if region == "tail" else 0)
        if kind == "cut":
            del content[at:]
        else:
            content[at : at + (0 if kind == "insert" else len(value))] = b"" if kind == "remove" else value
    return bytes(content)


@pytest.mark.parametrize("suffix", [*BINARY, "npy.gz", "fvecs.gz", "fbin.gz", "inside npy.gz", "inside fbin.gz"])
@settings(max_examples=70)
@given(changes=edits)
def test_mutated_files_never_crash_nor_allocate(folder, suffix, changes):
    inside, suffix = suffix.startswith("inside "), suffix.removeprefix("inside ")
    content = valid(folder, suffix)
    if inside:  # a good archive of a bad file
        content = gzip.decompress(content)
    content = mutated(content, changes)
    check_outcome(made(folder, suffix, gzip.compress(content) if inside else content))


@contextmanager
def limited_memory():
    """libhdf5 asks for what a damaged object header says, before we can look at it: not on this machine."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    statm = Path("/proc/self/statm")
    if statm.exists():  # elsewhere the limit is not kept
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**32 if hard < 0 else min(hard, used + 2**32), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "hdf5", "fbin.zst", "csv"])
@settings(max_examples=60)
@given(changes=edits)
def test_mutated_files_of_other_libraries_give_an_array_or_a_file_error(folder, suffix, changes):
    path = made(folder, suffix, mutated(valid(folder, suffix), changes))
    with limited_memory():
        outcome(path)


# ---- archives and HDF5 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_one_of_several_arrays_is_named(folder, save):
    save(folder / "several.npz", train=ROWS, test=ROWS[:3])
    assert np.array_equal(read_vectors(folder / "several.npz", dataset="test"), ROWS[:3])
    with pytest.raises(FileError, match="several arrays; name one by dataset=: 'train', 'test'"):
        read_vectors(folder / "several.npz")
    with pytest.raises(FileError, match="no array 'x'; there are 'train', 'test'"):
        read_vectors(folder / "several.npz", dataset="x")


def test_an_archive_without_arrays_or_oddly_packed_is_refused(folder):
    for name, method, message in [
        ("x.txt", zipfile.ZIP_STORED, "there is no array in it"),
        ("x.npy", zipfile.ZIP_LZMA, "packed in a way that numpy does not write"),
    ]:
        with zipfile.ZipFile(folder / "odd.npz", "w", method) as archive:
            archive.writestr(name, NPY)
        with pytest.raises(FileError, match=message):
            read_vectors(folder / "odd.npz")


def test_a_dataset_is_named_only_where_there_are_names(folder):
    with pytest.raises(ValueError, match="dataset='x': a npy file holds one array, without a name"):
        open_vectors(written(folder, "npy"), dataset="x")


def test_hdf5_datasets_are_found_and_checked(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["group/train"] = ROWS.astype(">f8")
        file["labels"] = np.arange(5)
    assert np.array_equal(read_vectors(path), ROWS)  # the only one of two axes
    with h5py.File(path, "a") as file:
        file.create_dataset("test", data=ROWS[:3], chunks=(2, 4), compression="gzip")
        file["words"] = np.array([[b"a"]])
        file.create_dataset("never written", (2**40, 128), np.float32)
        file.create_dataset("hardly written", (2**40, 128), np.float32, chunks=(1024, 128))[:5] = 1
    assert np.array_equal(read_vectors(path, dataset="test", rows="1:"), ROWS[1:3])
    for dataset, message in [
        (None, "several datasets; name one by dataset=: 'group/train', 'hardly written'"),
        ("x", "no dataset 'x'; of two axes there are 'group/train'"),
        ("group", "no dataset 'group'"),
        ("labels", r"dataset 'labels' has shape \(5,\); a matrix"),
        ("words", "values of type .S1 in dataset 'words'"),
        ("never written", "data are missing"),
        ("hardly written", "1073741824 chunks, 1 are stored: data are missing"),
    ]:
        with pytest.raises(FileError, match=message):
            read_vectors(path, dataset=dataset, force=True)


# ---- tables ------------------------------------------------------------------------------------------------------


def save_table(path, columns, *, batch=10, stream=False):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(columns)
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=batch)
        return path
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
        writer.write_table(table, batch)
    return path


every_table = pytest.mark.parametrize("suffix", ["parquet", "arrow"])


@every_table
@pytest.mark.parametrize("kind", ["list_", "large_list", "fixed"])
@pytest.mark.parametrize("value", ["float32", "float64", "float16", "int8", "int64"])
def test_a_column_of_lists_is_a_matrix(tmp_path, suffix, kind, value):
    pa = pytest.importorskip("pyarrow")
    inner = getattr(pa, value)()
    kind = pa.list_(inner, 6) if kind == "fixed" else getattr(pa, kind)(inner)
    X = ROWS.astype(value)
    path = save_table(tmp_path / f"x.{suffix}", {"id": ["a"] * 57, "v": pa.array(list(X), kind)})
    file = open_vectors(path, rows="8:-9", columns="1:5")
    assert file.stored_dtype == value
    assert np.array_equal(file.read(), X[8:-9, 1:5])
    assert np.array_equal(np.concatenate(list(file.blocks(7))), X[8:-9, 1:5])


def test_an_arrow_stream_is_read_too(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = save_table(tmp_path / "x.arrow", {"v": pa.array(list(ROWS), pa.list_(pa.float32()))}, stream=True)
    assert open_vectors(path).shape == ROWS.shape
    assert np.array_equal(read_vectors(path, rows="15:35"), ROWS[15:35])


@every_table
def test_columns_of_numbers_are_a_matrix(tmp_path, suffix):
    columns = {"a": np.arange(30, dtype=np.int16), "b.c": np.linspace(0, 1, 30, dtype=np.float32), "t": ["x"] * 30}
    path = save_table(tmp_path / f"x.{suffix}", columns)
    expected = np.stack([columns["b.c"], columns["a"]], axis=1)
    assert np.array_equal(read_vectors(path, columns="b.c,a"), expected)
    assert np.array_equal(read_vectors(path, columns=["b.c", "a"], rows="12:"), expected[12:])
    assert np.array_equal(read_vectors(path, columns=[1, 0]), expected)
    assert read_vectors(path, columns="0:2").dtype == np.float32
    with pytest.raises(FileError, match=r"columns that are not numbers: 't \(string\)'; pick others by columns="):
        read_vectors(path)
    with pytest.raises(ValueError, match=r"no column 'z'; there are 'a', 'b\.c', 't'"):
        read_vectors(path, columns="a,z")


@every_table
def test_of_several_columns_of_lists_one_is_named(tmp_path, suffix):
    lists = [[1.0, 2.0], [3.0, 4.0]]
    path = save_table(tmp_path / f"x.{suffix}", {"v": lists, "w": lists, "words": [["a"], ["b"]], "id": [7, 8]})
    assert read_vectors(path, dataset="w").tolist() == lists
    assert read_vectors(path, columns="id").tolist() == [[7], [8]]
    with pytest.raises(FileError, match="several columns of lists; name one by dataset=: 'v', 'w', 'words'"):
        read_vectors(path)
    with pytest.raises(FileError, match="no column of lists 'id'"):
        read_vectors(path, dataset="id")
    with pytest.raises(FileError, match="column 'words' holds lists of string, not of numbers"):
        read_vectors(path, dataset="words")
    with pytest.raises(ValueError, match="no column 'q'; there are 'v', 'w', 'words', 'id'"):
        read_vectors(path, columns="q")


@every_table
@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1.0, 2.0]] * 14 + [[1.0]], "column 'v' has 1 values at row 14, row 0 has 2; all must be the same"),
        ([[1.0, 2.0]] * 14 + [None], "column 'v' has no list at row 14"),
        ([[1.0, 2.0]] * 14 + [[1.0, None]], "column 'v' has no value at row 14, position 1"),
        ([[]], "dimension 0 of the lists in column 'v'"),
    ],
    ids=["ragged", "no list", "no value", "empty"],
)
def test_lists_that_are_no_matrix_are_refused_with_the_row(tmp_path, suffix, lists, message):
    pa = pytest.importorskip("pyarrow")
    path = save_table(tmp_path / f"x.{suffix}", {"v": pa.array(lists, pa.list_(pa.float32()))})
    with pytest.raises(FileError, match=message):
        read_vectors(path)


@every_table
def test_a_table_without_values_is_refused(tmp_path, suffix):
    pa = pytest.importorskip("pyarrow")
    path = save_table(tmp_path / f"x.{suffix}", {"a": [1.0] * 12 + [None], "b": [2] * 13})
    with pytest.raises(FileError, match="no value at row 12, column 'a'; every cell must hold a number"):
        read_vectors(path)
    for kind in (pa.float32(), pa.list_(pa.float32())):
        with pytest.raises(FileError, match="0 rows in the table; at least one"):
            read_vectors(save_table(tmp_path / f"x.{suffix}", {"a": pa.array([], kind)}))


# ---- text --------------------------------------------------------------------------------------------------------

parsers = pytest.mark.parametrize("with_pyarrow", [True, False])


def choose_parser(monkeypatch, with_pyarrow):
    if with_pyarrow:
        pytest.importorskip("pyarrow")
    else:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)


@parsers
@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4.5\n",
        "1,2\n3,4.5",
        "a,b\r\n1,2\r\n\r\n3,4.5\r\n",
        '\ufeff"x","y, z"\n"1",2\n 3 , 4.5 \n',
        "\n\na,b\n+1,2e0\n3,45e-1\n",
        ",b\n1,2\n3,4.5\n",
    ],
    ids=["plain", "no end of line", "windows", "quotes and a byte order mark", "signs", "no name"],
)
def test_text_is_read_with_or_without_header(tmp_path, monkeypatch, with_pyarrow, text):
    choose_parser(monkeypatch, with_pyarrow)
    (tmp_path / "x.csv").write_bytes(text.encode())
    assert read_vectors(tmp_path / "x.csv").tolist() == [[1, 2], [3, 4.5]]
    assert read_vectors(tmp_path / "x.csv", columns=[-1], rows="1:").tolist() == [[4.5]]


@parsers
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n\n3,x\n", "'x' at line 4, column 'b' is not a number"),
        ("1,2\n3,\n", "no value at line 2, column 1; every cell must hold a number"),
        ("1,\n3,4\n", "no value at line 1, column 1"),
        ("1,2\n3\n", "line 2 has 1 cells, line 1 has 2"),
        ("1,2\n3,4,5\n", "line 2 has 3 cells, line 1 has 2"),
        ("1,2\n3,1_0\n", "'1_0' at line 2, column 1 is not a number"),
        ('1,2\n3,"4\n5"\n', "line 3"),
        ("1;2\n3;4\n", "'3;4' at line 2, column '1;2' is not a number"),
        ("a,b\n1,nan\n", "NaN at row 0, column 'b'"),
        ("a,b\n", "0 rows below the header"),
        ("\n \n", "no line with anything in it"),
    ],
)
def test_text_that_is_no_matrix_is_refused_with_line_and_column(tmp_path, monkeypatch, with_pyarrow, text, message):
    choose_parser(monkeypatch, with_pyarrow)
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(FileError, match=message):
        read_vectors(tmp_path / "x.csv")


@parsers
def test_words_in_columns_that_are_not_picked_do_no_harm(tmp_path, monkeypatch, with_pyarrow):
    choose_parser(monkeypatch, with_pyarrow)
    (tmp_path / "x.tsv").write_text("name\ta\tb\nx y\t1\t2\nz, z\t3\t4\n")
    assert read_vectors(tmp_path / "x.tsv", columns="b,a").tolist() == [[2, 1], [4, 3]]
    with pytest.raises(ValueError, match="no column 'c'; there are 'name', 'a', 'b'"):
        read_vectors(tmp_path / "x.tsv", columns="c")


@parsers
def test_lines_across_the_pieces_of_a_file_are_whole(tmp_path, monkeypatch, with_pyarrow):
    choose_parser(monkeypatch, with_pyarrow)
    monkeypatch.setattr("k2means.vector_text.PIECE_BYTES", 64)
    X = np.random.default_rng(0).normal(size=(50, 3))
    write_vectors(tmp_path / "x.csv", X)
    assert np.array_equal(read_vectors(tmp_path / "x.csv"), X)
    (tmp_path / "x.csv").write_text((tmp_path / "x.csv").read_text().replace("\n", "\n\n") + "1,2,oops\n")
    with pytest.raises(FileError, match="'oops' at line 103, column 'x2'"):
        read_vectors(tmp_path / "x.csv")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("k2means.vector_text.LONGEST_LINE", 2**20)
    (tmp_path / "x.csv").write_bytes(bytes(3 * 2**20))
    with pytest.raises(FileError, match="line 1 is longer than 1048576 bytes"):
        read_vectors(tmp_path / "x.csv")


# ---- formats and extras ------------------------------------------------------------------------------------------


def test_a_format_is_known_by_its_suffix_in_any_case_or_by_name(folder, tmp_path):
    for name, format in [("X.NPY", None), ("x.dat", "npy"), ("x.Npy.GZ", None), ("x.gz", "npy"), ("x", "npy.gz")]:
        write_vectors(tmp_path / name, ROWS, format=format)
        file = open_vectors(tmp_path / name, format=format)
        assert file.format == "npy"
        assert np.array_equal(file.read(), ROWS)
        assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") == ("gz" in f"{name} {format}".lower())


@pytest.mark.parametrize("name", ["x.xyz", "npy", "x", "x.gz"])
def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path, name):
    with pytest.raises(ValueError, match=r"is not known; give one of \.npy, \.npz, \.fvecs.*\.csv"):
        open_vectors(tmp_path / name)


@pytest.mark.parametrize("name", ["x.parquet.gz", "x.h5.zst", "x.npz.gz"])
def test_what_has_its_own_compression_is_not_packed_again(tmp_path, name):
    with pytest.raises(ValueError, match="unpack it first"):
        open_vectors(tmp_path / name)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        open_vectors(tmp_path / "absent.npy")
    (tmp_path / "directory.npy").mkdir()
    with pytest.raises(IsADirectoryError, match=r"directory\.npy"):
        open_vectors(tmp_path / "directory.npy")


@pytest.mark.parametrize(
    ("suffix", "module"),
    [("parquet", "pyarrow"), ("feather", "pyarrow"), ("h5", "h5py"), ("fbin.zst", "pyarrow"), ("csv.zst", "pyarrow")],
)
def test_a_missing_library_is_named_with_its_extra(folder, tmp_path, monkeypatch, suffix, module):
    path = written(folder, suffix)
    for name in [module, f"{module}.parquet", f"{module}.ipc"]:
        monkeypatch.setitem(sys.modules, name, None)
    message = rf"needs {module}, which is not installed: pip install 'k2means\[io\]'"
    with pytest.raises(ImportError, match=message):
        read_vectors(path)
    with pytest.raises(ImportError, match=message):
        write_vectors(tmp_path / f"x.{suffix}", ROWS)
    assert not list(tmp_path.iterdir())


def test_optional_libraries_are_not_imported_before_they_are_needed():
    for path in Path(vectors.__file__).parent.glob("vector*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"pyarrow", "h5py"}


# ---- writing -----------------------------------------------------------------------------------------------------


@every_format
def test_a_file_is_replaced_only_on_demand(tmp_path, suffix):
    path = written(tmp_path, suffix)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="exists; it is replaced only with overwrite=True"):
        write_vectors(path, ROWS[:3])
    assert path.read_bytes() == before
    write_vectors(path, ROWS[:3], overwrite=True)
    assert len(read_vectors(path)) == 3
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@every_format
def test_a_file_that_appears_meanwhile_is_kept(folder, tmp_path, suffix):
    needs(suffix)
    path = tmp_path / f"x.{suffix}"

    class Slow(VectorFile):
        def stored_blocks(self, size=None):
            path.write_text("another's")
            yield from super().stored_blocks(size)

    source = open_vectors(written(folder, "fbin"))
    with pytest.raises(FileExistsError):
        write_vectors(path, Slow(source.source, source.rows, source.normalize))
    assert path.read_text() == "another's"


@every_format
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_nothing(tmp_path, folder, suffix, error):
    needs(suffix)

    class Broken(VectorFile):
        def stored_blocks(self, size=None):
            yield next(super().stored_blocks(5))
            raise error

    source = open_vectors(written(folder, "fbin"))
    broken = Broken(source.source, source.rows, source.normalize)
    with pytest.raises(error):
        write_vectors(tmp_path / f"x.{suffix}", broken)
    assert not list(tmp_path.iterdir())
    write_vectors(tmp_path / f"x.{suffix}", ROWS)
    with pytest.raises(error):
        write_vectors(tmp_path / f"x.{suffix}", broken, overwrite=True)
    assert np.array_equal(read_vectors(tmp_path / f"x.{suffix}"), ROWS)


@pytest.mark.parametrize("suffix", ["npy", "fbin", "csv"])
def test_a_file_may_be_rewritten_from_itself(tmp_path, suffix):
    path = written(tmp_path, suffix)
    write_vectors(path, open_vectors(path, rows="10:20", normalize=False), overwrite=True)
    assert np.array_equal(read_vectors(path), ROWS[10:20])


@pytest.mark.parametrize(
    ("suffix", "value", "dtype", "rule"),
    [
        ("u8bin", 256, np.float64, "uint8 holds whole numbers from 0 to 255"),
        ("u8bin", -1, np.int64, "uint8 holds whole numbers"),
        ("bvecs", 0.5, np.float32, "uint8 holds whole numbers"),
        ("i8bin", 128, np.uint8, "int8 holds whole numbers from -128 to 127"),
        ("ivecs", 2**31, np.float32, "int32 holds whole numbers"),
        ("ivecs", 2**63, np.uint64, "int32 holds whole numbers"),
        ("fbin", 1e39, np.float64, r"float32 holds at most 3\.4e\+38"),
        ("fvecs", 2**24 + 1, np.int64, "float32 does not hold every whole number"),
        ("npy", np.nan, np.float32, "all values must be finite"),
        ("parquet", np.inf, np.float64, "all values must be finite"),
    ],
)
def test_a_value_that_would_change_is_refused_with_its_row(tmp_path, suffix, value, dtype, rule):
    needs(suffix)
    X = np.ones((2000, 3), dtype)
    X[1234, 2] = value
    with pytest.raises(ValueError, match=rf"at row 1234, column 2; {rule}"):
        write_vectors(tmp_path / f"x.{suffix}", X)
    assert not list(tmp_path.iterdir())


def test_doubles_are_rounded_to_float32_where_the_format_has_no_other(folder):
    X = np.random.default_rng(0).normal(size=(10, 3))
    assert np.array_equal(read_vectors(written(folder, "fbin", X)), X.astype(np.float32))


@pytest.mark.parametrize(
    "X", [np.ones(3), np.ones((0, 3)), np.ones((3, 0)), np.array([["a"]]), np.ones((2, 2), complex)]
)
def test_what_is_no_matrix_of_numbers_is_not_written(tmp_path, X):
    with pytest.raises(ValueError, match="X must be a matrix of numbers"):
        write_vectors(tmp_path / "x.npy", X)


def test_a_directory_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"x\.npy: there is no directory .*absent"):
        write_vectors(tmp_path / "absent" / "x.npy", ROWS)

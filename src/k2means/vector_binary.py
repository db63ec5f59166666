"""Matrices of plain bytes: .npy, .npz, .fvecs and its kin, .fbin and its kin; mapped, or streamed if packed."""

from __future__ import annotations

import io
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .vector_source import (
    LARGEST_DIMENSION,
    PIECE_BYTES,
    FileError,
    Request,
    Source,
    Stream,
    check_numbers,
    check_shape,
    file_size,
    listed,
    open_stream,
    pick_columns,
    told_by,
)

VECS: dict[str, np.dtype[Any]] = {"fvecs": np.dtype("<f4"), "bvecs": np.dtype("u1"), "ivecs": np.dtype("<i4")}
BINS: dict[str, np.dtype[Any]] = {"fbin": np.dtype("<f4"), "u8bin": np.dtype("u1"), "i8bin": np.dtype("i1")}
NPY_MAGIC = b"\x93NUMPY"
LONGEST_NPY_HEADER = 10_000  # numpy's own limit


@dataclass(frozen=True)
class Layout:
    """Where the values lie: `start` bytes, then n rows of d values. n is None: as many as there are."""

    start: int
    n: int | None
    d: int
    dtype: np.dtype[Any]
    repeats_d: bool = False  # each row says its d again (.fvecs)
    fortran: bool = False

    @cached_property
    def record(self) -> np.dtype[Any]:
        """One row."""
        values = ("values", self.dtype, (self.d,))
        return np.dtype([("d", "<i4"), values] if self.repeats_d else [values])


def open_binary(request: Request) -> Source:
    """A plain file is mapped; a packed one streamed."""
    path, size = request.path, file_size(request.path)
    known = None if request.compression else size
    with open_stream(path, request.compression) as stream:
        layout = read_layout(stream, request.format, known)
    if known is None:
        return StreamedRows(request, layout, lambda: open_stream(path, request.compression))
    return MappedRows(request, whole_rows(path, layout, size))


def open_npz(request: Request) -> Source:
    """One array of the archive."""
    path, dataset = request.path, request.dataset
    file_size(path)
    with told_by(path, "zipfile"), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    if not names:
        raise FileError(f"{path}: there is no array in it (no member ends in .npy)")
    if dataset is None and len(names) > 1:
        raise FileError(f"{path}: there are several arrays; name one by dataset=: {listed(names)}")
    if dataset is not None and dataset not in names:
        raise FileError(f"{path}: there is no array {dataset!r}; there are {listed(names)}")
    member = f"{dataset or names[0]}.npy"

    def unpack() -> Stream:
        return open_member(path, member)

    with unpack() as stream:
        layout = read_layout(stream, "npy", None)
    return StreamedRows(request, layout, unpack)


def open_member(path: Path, member: str) -> Stream:
    with told_by(path, "zipfile"), zipfile.ZipFile(path) as archive:
        info = archive.getinfo(member)
        # numpy writes no others, and the dictionary of lzma is allocated as its header says
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise FileError(f"{path}: {member} is encrypted or packed in a way that numpy does not write")
        return Stream(path, archive.open(info))


# ---- headers -----------------------------------------------------------------------------------------------------


def read_layout(stream: Stream, format: str, size: int | None) -> Layout:
    """What the header says, checked against the file's size where that is known."""
    if format in VECS:
        return read_vecs_layout(stream, VECS[format], size)
    if format in BINS:
        return read_bin_layout(stream, BINS[format], size)
    return read_npy_layout(stream)


def read_vecs_layout(stream: Stream, dtype: np.dtype[Any], size: int | None) -> Layout:
    header = take_header(stream, 4)
    (d,), (swapped,) = struct.unpack("<i", header), struct.unpack(">i", header)

    def fits(d: int) -> bool:
        return 1 <= d <= LARGEST_DIMENSION and (size is None or size % (4 + d * dtype.itemsize) == 0)

    if not fits(d) and fits(swapped):
        raise FileError(
            f"{stream.path}: the dimension at byte 0 reads {d}, byte-swapped {swapped}, which fits: "
            f"a big-endian file? These formats are little-endian"
        )
    check_shape(stream.path, None, d, "at byte 0")
    return Layout(0, None, d, dtype, repeats_d=True)


def read_bin_layout(stream: Stream, dtype: np.dtype[Any], size: int | None) -> Layout:
    header = take_header(stream, 8)
    (n, d), swapped = struct.unpack("<II", header), struct.unpack(">II", header)

    def fits(n: int, d: int) -> bool:
        return n >= 1 and 1 <= d <= LARGEST_DIMENSION and (size is None or 8 + n * d * dtype.itemsize == size)

    if not fits(n, d) and fits(*swapped):
        raise FileError(
            f"{stream.path}: the header at byte 0 reads {n} rows of {d} columns, byte-swapped {swapped[0]} of "
            f"{swapped[1]}, which fits: a big-endian file? These formats are little-endian"
        )
    check_shape(stream.path, n, d, "in the header at byte 0")
    return Layout(8, n, d, dtype)


def read_npy_layout(stream: Stream) -> Layout:
    path = stream.path
    magic = take_header(stream, 10)
    if magic[:6] != NPY_MAGIC:
        raise FileError(f"{path}: starts with {bytes(magic[:6])!r} at byte 0, an .npy array with {NPY_MAGIC!r}")
    if magic[6] not in (1, 2) or magic[7] != 0:
        raise FileError(f"{path}: .npy version {magic[6]}.{magic[7]} at byte 6; versions 1.0 and 2.0 hold numbers")
    length = magic[8:] if magic[6] == 1 else magic[8:] + take_header(stream, 2)
    claimed = int.from_bytes(length, "little")
    if claimed > LONGEST_NPY_HEADER:
        raise FileError(f"{path}: the header at byte 8 claims {claimed} bytes; at most {LONGEST_NPY_HEADER} are read")
    header = io.BytesIO(length + take_header(stream, claimed))
    shape, fortran, dtype = parse_npy_header(path, header, magic[6])
    check_numbers(path, dtype, "in the header")
    if len(shape) != 2:
        raise FileError(f"{path}: an array of shape {shape}; vectors are the rows of a matrix (n, d)")
    check_shape(path, shape[0], shape[1], f"in the header (shape {shape})")
    return Layout(stream.position, shape[0], shape[1], dtype, fortran=fortran)


def parse_npy_header(path: Path, header: io.BytesIO, version: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """By numpy, which evaluates literals only."""
    parse: Any = np.lib.format.read_array_header_1_0 if version == 1 else np.lib.format.read_array_header_2_0
    with told_by(path, "numpy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers from Python 2
        shape, fortran, dtype = parse(header, max_header_size=LONGEST_NPY_HEADER)
    if any(isinstance(length, bool) or length < 0 for length in shape):
        raise FileError(f"{path}: an array of shape {shape} in the header; lengths are not negative")
    return shape, fortran, dtype


def take_header(stream: Stream, count: int) -> bytearray:
    start = stream.position
    taken = stream.take(count)
    if len(taken) < count:
        raise FileError(
            f"{stream.path}: cut off in the header at byte {stream.position}: expected {count} bytes from byte "
            f"{start}, found {len(taken)}"
        )
    return taken


# ---- sizes -------------------------------------------------------------------------------------------------------


def whole_rows(path: Path, layout: Layout, size: int) -> Layout:
    """The layout with its number of rows, if the file is as long as they are."""
    if layout.n is not None:
        require_length(path, layout, layout.n, size)
        return layout
    row_bytes = layout.record.itemsize
    n = size // row_bytes
    if size % row_bytes:
        require_one_dimension(path, layout, mapped_dimensions(path, row_bytes, size), 0)  # it moves what follows
        require_length(path, layout, n + 1, size)
    return Layout(layout.start, n, layout.d, layout.dtype, layout.repeats_d)


def require_length(path: Path, layout: Layout, n: int, size: int) -> None:
    expected = layout.start + n * layout.record.itemsize
    if size == expected:
        return
    what = f"{n} rows of {layout.d} columns are {expected} bytes, found {size}"
    if size > expected:
        raise FileError(f"{path}: {what}: {size - expected} bytes too many at byte {expected}")
    where = "" if layout.fortran else f" in row {(size - layout.start) // layout.record.itemsize}"
    raise FileError(f"{path}: {what}: cut off{where} at byte {size}")


def require_one_dimension(path: Path, layout: Layout, dimensions: NDArray[Any], first: int) -> None:
    """Each row of an .fvecs file says its dimension: all the same."""
    other = dimensions != layout.d
    if other.any():
        row = int(other.argmax())
        where = f"at byte {layout.start + (first + row) * layout.record.itemsize}"
        raise FileError(
            f"{path}: row {first + row} {where} has dimension {dimensions[row]}, row 0 has {layout.d}; "
            f"all must be the same"
        )


def mapped_dimensions(path: Path, row_bytes: int, size: int) -> NDArray[Any]:
    """What the rows say, also one that is cut off."""
    content = np.memmap(path, np.uint8, "r", 0, (size,))
    return np.ndarray(((size - 4) // row_bytes + 1,), "<i4", content, strides=(row_bytes,))


def map_records(path: Path, layout: Layout, n: int) -> NDArray[Any]:
    with told_by(path, "mmap"):  # it may have become shorter since it was opened
        return np.asarray(np.memmap(path, layout.record, "r", layout.start, (n,)))


# ---- rows --------------------------------------------------------------------------------------------------------


class BinaryRows(Source):
    """Rows at a fixed distance."""

    def __init__(self, request: Request, layout: Layout) -> None:
        super().__init__(request)
        self.layout, self.width, self.dtype = layout, layout.d, layout.dtype
        self.picked = pick_columns(request.columns, self.width, None)

    def values(self, records: NDArray[Any], first: int) -> NDArray[Any]:
        """The picked columns of rows that begin at row `first`."""
        if self.layout.repeats_d:
            require_one_dimension(self.path, self.layout, records["d"], first)
        values: NDArray[Any] = records["values"]
        return values if self.picked is None else values[:, self.picked]


class MappedRows(BinaryRows):
    """A plain file: the operating system reads what is looked at."""

    @cached_property
    def n_rows(self) -> int:
        assert self.layout.n is not None  # whole_rows has seen to it
        return self.layout.n

    def mapped(self) -> NDArray[Any] | None:
        is_ready = self.dtype in (np.float32, np.float64) and self.dtype.isnative and not self.layout.fortran
        return self.matrix(self.path) if self.format == "npy" and is_ready else None

    def matrix(self, file: Any) -> NDArray[Any]:
        order: Any = "F" if self.layout.fortran else "C"
        with told_by(self.path, "mmap"):
            return np.memmap(file, self.dtype, "r", self.layout.start, (self.n_rows, self.width), order)

    def blocks(self, start: int, stop: int, size: int) -> Iterator[NDArray[Any]]:
        if self.layout.fortran:
            yield from column_major_blocks(self.matrix(self.path), self.picked, start, stop, size)
            return
        records = map_records(self.path, self.layout, self.n_rows)
        for first in range(start, stop, size):
            yield self.values(records[first : min(first + size, stop)], first)


class StreamedRows(BinaryRows):
    """A packed file: unpacked from its beginning at each pass."""

    def __init__(self, request: Request, layout: Layout, unpack: Callable[[], Stream]) -> None:
        super().__init__(request, layout)
        self.unpack = unpack

    @cached_property
    def n_rows(self) -> int:
        if self.layout.n is not None:
            return self.layout.n
        with self.unpack() as stream:
            size = stream.skip()
        n, rest = divmod(size, self.layout.record.itemsize)
        if rest:
            require_length(self.path, self.layout, n + 1, size)
        return n

    def blocks(self, start: int, stop: int, size: int) -> Iterator[NDArray[Any]]:
        if self.layout.fortran:
            yield from self.unpacked_blocks(start, stop, size)
            return
        record = self.layout.record
        with self.unpack() as stream:
            stream.skip(self.layout.start + start * record.itemsize)
            for first in range(start, stop, size):
                count = min(size, stop - first)
                taken = stream.take(count * record.itemsize)
                if len(taken) < count * record.itemsize:
                    require_length(self.path, self.layout, self.n_rows, stream.position)
                yield self.values(np.frombuffer(taken, record), first)
            if stop == self.n_rows:
                stream.skip()  # to the checksum, and to what should not be there
                require_length(self.path, self.layout, stop, stream.position)

    def unpacked_blocks(self, start: int, stop: int, size: int) -> Iterator[NDArray[Any]]:
        """Column by column: every row is spread over the whole file, so it is unpacked to disk first."""
        with self.unpack() as stream, tempfile.TemporaryFile() as file:
            while piece := stream.piece(PIECE_BYTES):
                file.write(piece)
            file.flush()
            require_length(self.path, self.layout, self.n_rows, stream.position)
            shape = self.n_rows, self.width
            matrix = np.memmap(file, self.dtype, "r", self.layout.start, shape, "F")
            yield from column_major_blocks(matrix, self.picked, start, stop, size)


def column_major_blocks(
    matrix: NDArray[Any], picked: list[int] | None, start: int, stop: int, size: int
) -> Iterator[NDArray[Any]]:
    for first in range(start, stop, size):
        block = matrix[first : min(first + size, stop)]
        yield np.ascontiguousarray(block if picked is None else block[:, picked])

"""Writing matrices, block by block: under another name until the file is complete."""

from __future__ import annotations

import gzip
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .files import replacing
from .vector_binary import BINS, VECS, Layout
from .vector_source import BLOCK_BYTES, LARGEST_DIMENSION, need
from .vector_text import DELIMITERS

FLOAT32_WHOLE = 2**24  # float32 holds every whole number up to here


@dataclass(frozen=True)
class Matrix:
    """Rows to be written; `blocks(size)` gives them in order, at most `size` at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[int], Iterator[NDArray[Any]]]

    def converted(self, dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
        """Blocks of a type that can hold all values, contiguous."""
        row_bytes = self.shape[1] * max(dtype.itemsize, self.dtype.itemsize)
        row = 0
        for block in self.blocks(max(1, BLOCK_BYTES // row_bytes)):
            yield convert(block, dtype, row)
            row += len(block)


def write_matrix(path: Path, format: str, compression: str, matrix: Matrix, *, dataset: str, overwrite: bool) -> None:
    """By its format's writer, to a file beside `path` that takes its name at the end."""
    refuse_existing(path, overwrite)
    if matrix.shape[1] > LARGEST_DIMENSION:
        raise ValueError(f"{path}: dimension {matrix.shape[1]}; it must be from 1 to 2**24")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no directory {path.parent}")
    with replacing(path) as unfinished:
        if format in NAMED_WRITERS:
            NAMED_WRITERS[format](unfinished, matrix, dataset)
        else:
            with open_packed(unfinished, compression) as file:
                plain_writer(format)(file, matrix)
        refuse_existing(path, overwrite)  # it took a while


def refuse_existing(path: Path, overwrite: bool) -> None:
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(f"{path} exists; it is replaced only with overwrite=True")


@contextmanager
def open_packed(path: Path, compression: str) -> Iterator[Any]:
    if compression == "zst":
        with need("pyarrow", f"writing {path}").CompressedOutputStream(str(path), "zstd") as packed:
            yield packed
        return
    with path.open("xb") as plain:
        if compression == "gz":  # without name and time: they would be those of the unfinished file
            with gzip.GzipFile("", "wb", 6, plain, mtime=0) as packed:
                yield packed
        else:
            yield plain


# ---- types -------------------------------------------------------------------------------------------------------


def convert(block: NDArray[Any], dtype: np.dtype[Any], first: int) -> NDArray[Any]:
    """The block as `dtype`; a value that would become another one is refused with its row."""
    if block.dtype.kind == "f" and not np.isfinite(block).all():
        refuse(block, ~np.isfinite(block), first, "all values must be finite")
    with np.errstate(all="ignore"):
        converted = np.ascontiguousarray(block, dtype=dtype)
    if dtype.kind in "iu" and block.dtype.kind != "b" and not np.can_cast(block.dtype, dtype):
        bounds = np.iinfo(dtype)
        values = block.astype(np.float64) if block.dtype.kind == "f" else block
        lost = (values < bounds.min) | (values > bounds.max) | (values != np.rint(values))
        refuse(block, lost, first, f"{dtype} holds whole numbers from {bounds.min} to {bounds.max}")
    elif dtype.kind == "f" and block.dtype.kind == "f":
        refuse(block, np.isinf(converted), first, f"{dtype} holds at most {np.finfo(dtype).max:.3g}")
    elif dtype == np.float32 and block.dtype.itemsize > 2:
        lost = (block > FLOAT32_WHOLE) | (block < -FLOAT32_WHOLE)
        refuse(block, lost, first, "float32 does not hold every whole number beyond 2**24")
    return converted


def refuse(block: NDArray[Any], lost: NDArray[np.bool_], first: int, rule: str) -> None:
    if lost.any():
        row, column = divmod(int(lost.argmax()), block.shape[1])
        raise ValueError(f"X has {block[row, column]} at row {first + row}, column {column}; {rule}")


def common_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that other libraries have for it: native, no truth values, no long doubles."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    return np.dtype(np.float64) if dtype.kind == "f" and dtype.itemsize > 8 else dtype.newbyteorder("=")


# ---- plain bytes and text ----------------------------------------------------------------------------------------


def plain_writer(format: str) -> Callable[[Any, Matrix], None]:
    if format in VECS:
        return partial(write_vecs, dtype=VECS[format])
    if format in BINS:
        return partial(write_bin, dtype=BINS[format])
    return write_npy if format == "npy" else partial(write_text, delimiter=DELIMITERS[format])


def write_npy(file: Any, matrix: Matrix) -> None:
    dtype = matrix.dtype.newbyteorder("=")
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": matrix.shape}
    np.lib.format.write_array_header_1_0(file, header)
    for block in matrix.converted(dtype):
        file.write(block.tobytes())


def write_vecs(file: Any, matrix: Matrix, dtype: np.dtype[Any]) -> None:
    n, d = matrix.shape
    record = Layout(0, n, d, dtype, repeats_d=True).record
    for block in matrix.converted(dtype):
        records = np.empty(len(block), record)
        records["d"], records["values"] = d, block
        file.write(records.tobytes())


def write_bin(file: Any, matrix: Matrix, dtype: np.dtype[Any]) -> None:
    n, d = matrix.shape
    if n >= 2**32:
        raise ValueError(f"X has {n} rows; the header of this format holds fewer than 2**32")
    file.write(struct.pack("<II", n, d))
    for block in matrix.converted(dtype):
        file.write(block.tobytes())


def write_text(file: Any, matrix: Matrix, delimiter: str) -> None:
    """The shortest digits that give the same value back."""
    mark = delimiter.encode()
    file.write(mark.join(b"x%d" % column for column in range(matrix.shape[1])) + b"\n")
    for block in matrix.converted(common_type(matrix.dtype)):
        for row in block:
            file.write(mark.join(row.astype("S32").tolist()) + b"\n")


# ---- other libraries ---------------------------------------------------------------------------------------------


def write_npz(path: Path, matrix: Matrix, dataset: str) -> None:
    with zipfile.ZipFile(path, "x") as archive, archive.open(f"{dataset}.npy", "w", force_zip64=True) as file:
        write_npy(file, matrix)


def record_batches(pa: Any, matrix: Matrix, dataset: str) -> tuple[Any, Iterator[Any]]:
    """A schema of one column of lists, and its rows."""
    dtype, d = common_type(matrix.dtype), matrix.shape[1]
    schema = pa.schema([(dataset, pa.list_(pa.from_numpy_dtype(dtype), d))])

    def batches() -> Iterator[Any]:
        for block in matrix.converted(dtype):
            lists = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), d)
            yield pa.record_batch([lists.cast(schema.field(0).type)], schema=schema)

    return schema, batches()


def write_parquet(path: Path, matrix: Matrix, dataset: str) -> None:
    pa, parquet = need("pyarrow", f"writing {path}"), need("pyarrow.parquet", f"writing {path}")
    schema, batches = record_batches(pa, matrix, dataset)
    with parquet.ParquetWriter(path, schema) as file:
        for batch in batches:
            file.write_batch(batch)


def write_arrow(path: Path, matrix: Matrix, dataset: str) -> None:
    pa, ipc = need("pyarrow", f"writing {path}"), need("pyarrow.ipc", f"writing {path}")
    schema, batches = record_batches(pa, matrix, dataset)
    with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, schema) as file:
        for batch in batches:
            file.write_batch(batch)


def write_hdf5(path: Path, matrix: Matrix, dataset: str) -> None:
    dtype = common_type(matrix.dtype)
    with need("h5py", f"writing {path}").File(path, "x") as file:
        values = file.create_dataset(dataset, matrix.shape, dtype)
        row = 0
        for block in matrix.converted(dtype):
            values[row : row + len(block)] = block
            row += len(block)


NAMED_WRITERS = {"npz": write_npz, "parquet": write_parquet, "arrow": write_arrow, "hdf5": write_hdf5}

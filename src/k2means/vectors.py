"""Files of vectors: open, read block by block, and write them, whatever their format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import memory
from .checks import check_count
from .cluster import working_dtype
from .vector_binary import BINS, VECS, open_binary, open_npz
from .vector_source import (
    BLOCK_BYTES,
    Columns,
    FileError,
    Request,
    Source,
    check_step,
    file_size,
    parse_slice,
)
from .vector_tables import Hdf5Rows, open_table
from .vector_text import TextRows
from .vector_writers import Matrix, write_matrix

__all__ = ["FileError", "VectorFile", "open_vectors", "read_vectors", "write_vectors"]

READERS = {
    "npy": open_binary,
    "npz": open_npz,
    **dict.fromkeys([*VECS, *BINS], open_binary),
    "parquet": open_table,
    "arrow": open_table,
    "hdf5": Hdf5Rows,
    "csv": TextRows,
    "tsv": TextRows,
}
ALIASES = {"feather": "arrow", "ipc": "arrow", "pq": "parquet", "h5": "hdf5", "hdf": "hdf5"}
PACKED = ("gz", "zst")
PACKABLE = ("npy", *VECS, *BINS, "csv", "tsv")  # the others have their own compression
NAMED = ("npz", "parquet", "arrow", "hdf5")  # hold several arrays


def open_vectors(
    path: str | os.PathLike[str],
    *,
    dataset: str | None = None,
    columns: Columns | None = None,
    rows: str | slice | None = None,
    normalize: bool = False,
    format: str | None = None,
) -> VectorFile:
    """Look at the header of a file of vectors.

    Parameters
    ----------
    path : str or path
        .npy, .npz, .fvecs, .bvecs, .ivecs, .fbin, .u8bin, .i8bin, .parquet, .arrow or .feather, .hdf5 or .h5, .csv
        or .tsv; .npy, the binary ones and text also with .gz or .zst behind.
    dataset : str or None
        The array of an .npz or HDF5 file, or the column of lists of a table. Needed only if there are several.
    columns : str, slice, list of str or list of int
        Names of the columns of a table, "a,b,c"; of an array their positions, "0:64" or [0, 5].
    rows : str or slice
        "a:b" as in Python, without a step.
    normalize : bool
        Divide each row by its Euclidean norm, computed in double.
    format : str or None
        A suffix without its dot, if the file's own does not tell.

    Returns
    -------
    VectorFile

    Raises
    ------
    FileError
        If the file is not what its header or its suffix says.
    ImportError
        If the format needs pyarrow or h5py: ``pip install 'k2means[io]'``.
    """
    given = Path(path)
    name, compression = identify(given, format)
    if dataset is not None and name not in NAMED:
        raise ValueError(f"dataset={dataset!r}: a {name} file holds one array, without a name")
    picked = parse_slice("rows", rows) if isinstance(rows, str) else slice(None) if rows is None else rows
    if not isinstance(picked, slice):
        raise TypeError(f"rows must be like 'a:b' or a slice, got {rows!r}")
    source = READERS[name](Request(given, name, compression, dataset, columns))
    return VectorFile(source, check_step("rows", picked), bool(normalize))


def read_vectors(
    path: str | os.PathLike[str],
    *,
    dataset: str | None = None,
    columns: Columns | None = None,
    rows: str | slice | None = None,
    normalize: bool = False,
    format: str | None = None,
    force: bool = False,
) -> NDArray[Any]:
    """Read a file of vectors as a matrix.

    The same as ``open_vectors(path, ...).read(force=force)``; see there.

    Returns
    -------
    ndarray of shape (n, d)
        float32 or float64, rows contiguous. A plain .npy file of either type, all of it, is mapped: read-only, no copy.
    """
    file = open_vectors(path, dataset=dataset, columns=columns, rows=rows, normalize=normalize, format=format)
    return file.read(force=force)


def write_vectors(
    path: str | os.PathLike[str],
    X: NDArray[Any] | VectorFile,
    *,
    format: str | None = None,
    overwrite: bool = False,
    dataset: str = "X",
) -> None:
    """Write the rows of X, block by block. The file gets its name only when it is complete.

    Parameters
    ----------
    path : str or path
        Its suffix says the format; see `open_vectors`.
    X : ndarray of shape (n, d) or VectorFile
        Written in its own type where the format can hold it. To float32 numbers are rounded; whole numbers must stay
        what they are, and so must everything in a format of integers.
    format : str or None
        A suffix without its dot, if the path's does not tell.
    overwrite : bool
        Whether a file of that name may be replaced.
    dataset : str
        The name of the array in .npz and HDF5, of the column in Parquet and Arrow.

    Raises
    ------
    FileExistsError
        If there is a file of that name and overwrite is False.
    ValueError
        If a value is not finite, or cannot be held by the format: with its row.
    """
    target = Path(path)
    name, compression = identify(target, format)
    write_matrix(target, name, compression, as_matrix(X), dataset=dataset, overwrite=overwrite)


@dataclass(frozen=True, repr=False)
class VectorFile:
    """An opened file of vectors: known by its header, read block by block. No handle stays open.

    Of a text or a packed .fvecs file the number of rows is counted in one pass, when it is first asked for. That of
    other packed files, of Parquet and of HDF5 is what the header says; reading finds out.
    """

    source: Source
    rows: slice
    normalize: bool

    def __repr__(self) -> str:
        return f"VectorFile({str(self.path)!r}, format={self.format!r}, dtype={self.dtype})"

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def format(self) -> str:
        return self.source.format

    @property
    def source_shape(self) -> tuple[int, int]:
        """Rows and columns in the file."""
        return self.source.n_rows, self.source.width

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns as delivered."""
        start, stop = self.bounds()
        return stop - start, self.source.n_columns

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        """As delivered: float32 for float32, float16 and short integers, else float64."""
        return np.dtype(working_dtype(np.empty(0, self.stored_dtype)))

    def bounds(self) -> tuple[int, int]:
        n = self.source.n_rows
        start, stop, _ = self.rows.indices(n)
        if start >= stop:
            raise ValueError(f"rows {start}:{stop} of {self.path} are none; it has {n}")
        return start, stop

    def stored_blocks(self, size: int | None = None) -> Iterator[NDArray[Any]]:
        """Rows as the file holds them, picked but not normalized, at most `size` at a time; all finite."""
        start, stop = self.bounds()
        row_bytes = self.source.n_columns * self.stored_dtype.itemsize
        size = max(1, BLOCK_BYTES // row_bytes) if size is None else check_count("size", size)
        row = start
        for block in self.source.blocks(start, stop, size):
            require_finite(self.source, block, row)
            yield block
            row += len(block)
        if row != stop:
            raise FileError(f"{self.path}: ends after row {row - 1}; its header says that it has {self.source.n_rows}")

    def blocks(self, size: int | None = None) -> Iterator[NDArray[Any]]:
        """The matrix in order, in contiguous arrays of at most `size` rows; None: about 4 MiB of them."""
        row, _ = self.bounds()
        for block in self.stored_blocks(size):
            values = normalized(self.path, block, row) if self.normalize else block
            yield np.ascontiguousarray(values, dtype=self.dtype)
            row += len(block)

    def read(self, *, force: bool = False, told: Callable[[int], object] = lambda rows: None) -> NDArray[Any]:
        """The whole matrix.

        A plain .npy file of float32 or float64, without rows, columns or normalize, is mapped: read-only, no copy. Its
        values are not looked at; `cluster` refuses those that are not finite. All else is checked on the way into one
        array.

        Parameters
        ----------
        force : bool
            Read also what is larger than the machine's memory.
        told : callable(int)
            Called now and then with the number of rows read.
        """
        if not force:
            self.require_memory()
        is_whole = self.source.picked is None and self.rows in (slice(None), slice(0, None))
        mapped = self.source.mapped() if is_whole and not self.normalize else None
        return self.gather(told) if mapped is None else mapped

    def gather(self, told: Callable[[int], object]) -> NDArray[Any]:
        """One array. It grows as rows arrive, from what the file could hold unpacked: headers may claim anything."""
        n, d = self.shape
        plausible = file_size(self.path) // (d * self.stored_dtype.itemsize)
        rows, filled = np.empty((0, d), self.dtype), 0
        for block in self.blocks():
            after = filled + len(block)
            if after > len(rows):
                # realloc: nothing else looks at this memory, and large blocks are moved without a second copy
                rows.resize((min(n, max(after, plausible, 2 * len(rows))), d), refcheck=False)
            rows[filled:after] = block
            filled = after
            told(filled)
        return rows

    def require_memory(self) -> None:
        n, d = self.shape
        needed, has = n * d * self.dtype.itemsize, memory.machine_memory()
        if has is not None and needed > has:
            smaller = "" if self.dtype == np.float32 else ", store it as float32 (write_vectors to .fbin)"
            raise MemoryError(
                f"{self.path}: {n} rows of {d} columns as {self.dtype} need {needed / 2**30:.1f} GiB of memory, this "
                f"machine has {has / 2**30:.1f} GiB; take fewer by rows= or columns={smaller}, or insist by force=True"
            )


# ---- helpers -----------------------------------------------------------------------------------------------------


def identify(path: Path, format: str | None) -> tuple[str, str]:
    """Format and compression, from the suffixes or from what is given."""
    parts = (path.name if format is None else format).lower().split(".")
    ending = path.suffix.lower().removeprefix(".")
    compression = parts.pop() if parts[-1] in PACKED else ending if ending in PACKED else ""
    suffix = parts[-1] if format is not None or len(parts) > 1 else ""
    name = ALIASES.get(suffix, suffix)
    if name not in READERS:
        known = ", ".join(f".{known}" for known in [*READERS, *ALIASES])
        raise ValueError(f"{path}: the format {suffix!r} is not known; give one of {known} by suffix or by format=")
    if compression and name not in PACKABLE:
        raise ValueError(f"{path}: a {name} file is not read through .{compression}; unpack it first")
    return name, compression


def require_finite(source: Source, block: NDArray[Any], first: int) -> None:
    if block.dtype.kind != "f":
        return
    with np.errstate(over="ignore"):  # a long double may be more than a double
        finite = np.isfinite(block if block.dtype.itemsize <= 8 else block.astype(np.float64))
    if not finite.all():
        row, column = divmod(int(finite.argmin()), block.shape[1])
        what = "NaN" if np.isnan(block[row, column]) else "infinity"
        where = f"row {first + row}, column {source.column_name(column)}"
        raise FileError(f"{source.path}: {what} at {where}; all values must be finite")


def normalized(path: Path, block: NDArray[Any], first: int) -> NDArray[np.float64]:
    """Rows of norm 1. Powers of two are taken out first: squares neither overflow nor vanish."""
    rows: NDArray[np.float64] = block.astype(np.float64)
    _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True))
    np.ldexp(rows, -exponents, out=rows)
    norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    if not norms.all():
        row = first + int((norms == 0).argmax())
        raise FileError(f"{path}: row {row} is all zeros; it cannot be normalized")
    rows /= norms
    return rows


def as_matrix(X: Any) -> Matrix:
    """What is written: a file's values as they are stored, unless they are changed on the way."""
    if isinstance(X, VectorFile):
        dtype = X.dtype if X.normalize else X.stored_dtype
        return Matrix(X.shape, dtype, X.blocks if X.normalize else X.stored_blocks)
    x = np.asarray(X)
    if x.ndim != 2 or 0 in x.shape or x.dtype.kind not in "biuf":
        raise ValueError(f"X must be a matrix of numbers with rows and columns, got shape {x.shape}, dtype {x.dtype}")

    def blocks(size: int) -> Iterator[NDArray[Any]]:
        return (x[first : first + size] for first in range(0, len(x), size))

    return Matrix(x.shape, x.dtype, blocks)

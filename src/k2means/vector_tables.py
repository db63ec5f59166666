"""Matrices in the files of other libraries: Parquet and Arrow tables by pyarrow, HDF5 datasets by h5py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .vector_source import (
    FileError,
    Request,
    Source,
    check_numbers,
    check_shape,
    file_size,
    listed,
    need,
    pick_columns,
    told_by,
)

# ---- Parquet and Arrow -------------------------------------------------------------------------------------------


class Table:
    """Record batches with their first row: what Parquet and Arrow files have in common."""

    schema: Any

    def __init__(self, path: Path) -> None:
        self.path = path

    def n_rows(self) -> int:
        raise NotImplementedError

    def batches(self, fields: list[int], start: int, stop: int, size: int) -> Iterator[tuple[int, Any]]:
        """At least the batches that hold rows start:stop."""
        raise NotImplementedError


class ParquetTable(Table):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        size = file_size(path)
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(max(0, size - 4))
            tail = file.read(4)
        if head != b"PAR1":
            raise FileError(f"{path}: starts with {head!r} at byte 0, a Parquet file with b'PAR1'")
        if tail != b"PAR1" or size < 12:
            raise FileError(f"{path}: cut off at byte {size}: a Parquet file ends with its footer and b'PAR1'")
        self.parquet = need("pyarrow.parquet", f"reading {path}")
        with told_by(path, "pyarrow"), self.open() as file:
            self.schema, self.metadata = file.schema_arrow, file.metadata

    def open(self) -> Any:
        # mapped and not buffered: a row group may be the whole file, and a page may claim to be 2 GiB
        return self.parquet.ParquetFile(self.path, memory_map=True, pre_buffer=False)

    def n_rows(self) -> int:
        return int(self.metadata.num_rows)

    def batches(self, fields: list[int], start: int, stop: int, size: int) -> Iterator[tuple[int, Any]]:
        names = [self.schema.names[field] for field in fields]
        first = 0
        with self.open() as file:
            for group in range(self.metadata.num_row_groups):
                after = first + self.metadata.row_group(group).num_rows
                if after > start and first < stop:
                    row = first
                    for batch in file.iter_batches(size, row_groups=[group], columns=names, use_threads=False):
                        yield row, batch
                        row += batch.num_rows
                first = after


class ArrowTable(Table):
    """The file format (Feather version 2), or the stream format that goes by the same suffix."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        file_size(path)
        with path.open("rb") as file:
            head = file.read(8)
        if head.startswith(b"FEA1"):
            raise FileError(f"{path}: Feather version 1; write it anew as version 2 or as Parquet")
        self.has_footer = head.startswith(b"ARROW1")
        self.arrow, self.ipc = need("pyarrow", f"reading {path}"), need("pyarrow.ipc", f"reading {path}")
        with told_by(path, "pyarrow"), self.arrow.memory_map(str(path)) as file:
            self.schema = self.open(file, []).schema

    def open(self, file: Any, fields: list[int]) -> Any:
        options = self.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        return (self.ipc.open_file if self.has_footer else self.ipc.open_stream)(file, options=options)

    def n_rows(self) -> int:
        """No footer says it: the batches are looked at, of one column, in place unless they are packed."""
        with told_by(self.path, "pyarrow"):
            return sum(batch.num_rows for _, batch in self.batches([0], 0, 0, 1))

    def batches(self, fields: list[int], start: int, stop: int, size: int) -> Iterator[tuple[int, Any]]:
        first = 0
        with self.arrow.memory_map(str(self.path)) as file:
            reader = self.open(file, fields)
            batches = map(reader.get_batch, range(reader.num_record_batches)) if self.has_footer else iter(reader)
            for batch in batches:
                yield first, batch
                first += batch.num_rows


def open_table(request: Request) -> Source:
    """A column of lists, or else the columns of numbers."""
    table = ParquetTable(request.path) if request.format == "parquet" else ArrowTable(request.path)
    path, dataset = request.path, request.dataset
    with told_by(path, "pyarrow"):  # names that are not UTF-8
        names = list(table.schema.names)
    if len(set(names)) < len(names):
        raise FileError(f"{path}: several columns have the same name; there are {listed(names)}")
    lists = [name for name in names if is_list(table.schema.field(name).type)]
    if dataset is not None:
        if dataset not in lists:
            raise FileError(f"{path}: there is no column of lists {dataset!r}; there are {listed(lists) or 'none'}")
        return ListColumn(request, table, names.index(dataset))
    if not lists or names_columns(request.columns, names):
        return NumberColumns(request, table, names)
    if len(lists) > 1:
        raise FileError(f"{path}: there are several columns of lists; name one by dataset=: {listed(lists)}")
    return ListColumn(request, table, names.index(lists[0]))


def names_columns(columns: Any, names: list[str]) -> bool:
    """Whether columns of the table are asked for, and not positions in its lists."""
    if isinstance(columns, str):
        return columns in names or re.fullmatch(r"[-+:,\s\d]*", columns) is None
    return isinstance(columns, (list, tuple)) and any(isinstance(name, str) for name in columns)


def is_list(kind: Any) -> bool:
    types = need("pyarrow", "reading a table").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def numpy_type(kind: Any) -> np.dtype[Any] | None:
    """None: not a number."""
    types = need("pyarrow", "reading a table").types
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype()) if is_number else None


class TableRows(Source):
    """Rows from record batches."""

    fields: list[int]

    def __init__(self, request: Request, table: Table) -> None:
        super().__init__(request)
        self.table = table

    @cached_property
    def n_rows(self) -> int:
        n = self.table.n_rows()
        check_shape(self.path, n, self.width, "in the table")
        return n

    def blocks(self, start: int, stop: int, size: int) -> Iterator[NDArray[Any]]:
        with told_by(self.path, "pyarrow"):
            for first, batch in self.table.batches(self.fields, start, stop, min(size, self.n_rows)):
                low, high = max(start - first, 0), min(stop - first, batch.num_rows)
                if low < high:
                    batch.validate(full=True)  # what lies in it is used without further checks
                for at in range(low, high, size):
                    yield self.matrix(batch.slice(at, min(size, high - at)), first + at)

    def matrix(self, batch: Any, first: int) -> NDArray[Any]:
        raise NotImplementedError


class NumberColumns(TableRows):
    """A table whose columns are numbers."""

    def __init__(self, request: Request, table: Table, names: list[str]) -> None:
        super().__init__(request, table)
        self.names, self.width = names, len(names)
        self.picked = pick_columns(request.columns, self.width, names)
        self.fields = list(range(self.width)) if self.picked is None else self.picked
        kinds = {names[field]: table.schema.field(field).type for field in self.fields}
        if others := [f"{name} ({kind})" for name, kind in kinds.items() if numpy_type(kind) is None]:
            raise FileError(
                f"{self.path}: columns that are not numbers: {listed(others)}; pick others by columns=, "
                f"or a column of lists by dataset="
            )
        check_shape(self.path, None, len(self.fields), "of the table")
        self.dtype = np.result_type(*(numpy_type(kind) for kind in kinds.values()))

    def matrix(self, batch: Any, first: int) -> NDArray[Any]:
        rows = np.empty((batch.num_rows, len(self.fields)), self.dtype)
        for column, field in enumerate(self.fields):
            values = batch.column(self.table.schema.names[field])
            if values.null_count:
                where = f"row {first + first_null(values)}, column {self.column_name(column)}"
                raise FileError(f"{self.path}: no value at {where}; every cell must hold a number")
            rows[:, column] = values.to_numpy(zero_copy_only=False)
        return rows


class ListColumn(TableRows):
    """A column with one vector in each row."""

    def __init__(self, request: Request, table: Table, field: int) -> None:
        super().__init__(request, table)
        self.fields, self.column = [field], table.schema.names[field]
        kind = table.schema.field(field).type
        dtype = numpy_type(kind.value_type)
        if dtype is None:
            raise FileError(f"{self.path}: column {self.column!r} holds lists of {kind.value_type}, not of numbers")
        self.is_ragged = not need("pyarrow", "").types.is_fixed_size_list(kind)
        self.dtype, self.width = dtype, self.first_length() if self.is_ragged else kind.list_size
        check_shape(self.path, None, self.width, f"of the lists in column {self.column!r}")
        self.picked = pick_columns(request.columns, self.width, None)

    def first_length(self) -> int:
        with told_by(self.path, "pyarrow"):
            for _, batch in self.table.batches(self.fields, 0, 1, 1):
                if batch.num_rows:
                    batch.validate(full=True)
                    return len(batch.column(self.column)[0].as_py() or ())
        raise FileError(f"{self.path}: 0 rows in the table; at least one is needed")

    def matrix(self, batch: Any, first: int) -> NDArray[Any]:
        lists = batch.column(self.column)
        place = f"{self.path}: column {self.column!r}"
        if lists.null_count:
            raise FileError(f"{place} has no list at row {first + first_null(lists)}; every row must hold a vector")
        if self.is_ragged:
            lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
            if (lengths != self.width).any():
                row = int((lengths != self.width).argmax())
                raise FileError(
                    f"{place} has {lengths[row]} values at row {first + row}, row 0 has {self.width}; "
                    f"all must be the same"
                )
        values = lists.flatten()
        if values.null_count:
            row, column = divmod(first_null(values), self.width)
            raise FileError(f"{place} has no value at row {first + row}, position {column}; nulls are not numbers")
        rows: NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(len(lists), self.width)
        return rows if self.picked is None else rows[:, self.picked]


def first_null(values: Any) -> int:
    return int(values.is_null().to_numpy(zero_copy_only=False).argmax())


# ---- HDF5 --------------------------------------------------------------------------------------------------------

HDF5_CACHE = 2**26  # chunks that two blocks share are unpacked once


class Hdf5Rows(Source):
    """A dataset of two axes.

    libhdf5 reads object headers before we can: of a file damaged there it may ask for much memory.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        size = file_size(self.path)
        self.h5py = need("h5py", f"reading {self.path}")
        with told_by(self.path, "h5py"), self.open() as file:
            self.name = request.dataset or only_matrix(self.path, self.h5py, file)
            found = file.get(self.name)
            if not isinstance(found, self.h5py.Dataset):
                there = listed(matrices(self.h5py, file)) or "none"
                raise FileError(f"{self.path}: there is no dataset {self.name!r}; of two axes there are {there}")
            self.dtype, shape = found.dtype, found.shape
            check_numbers(self.path, self.dtype, f"in dataset {self.name!r}")
            if shape is None or len(shape) != 2:
                raise FileError(f"{self.path}: dataset {self.name!r} has shape {shape}; a matrix (n, d) is needed")
            check_shape(self.path, shape[0], shape[1], f"in dataset {self.name!r} (shape {shape})")
            require_stored(self.path, found, size)
        self.n_found, self.width = shape
        self.picked = pick_columns(request.columns, self.width, None)

    def open(self) -> Any:
        return self.h5py.File(self.path, "r", rdcc_nbytes=HDF5_CACHE)

    @cached_property
    def n_rows(self) -> int:
        return int(self.n_found)

    def blocks(self, start: int, stop: int, size: int) -> Iterator[NDArray[Any]]:
        with told_by(self.path, "h5py"), self.open() as file:
            values = file[self.name]
            for first in range(start, stop, size):
                block = values[first : min(first + size, stop)]
                yield block if self.picked is None else block[:, self.picked]


def matrices(h5py: Any, file: Any) -> list[str]:
    """Names of the datasets of two axes."""
    names: list[str] = []

    def look(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim == 2:
            names.append(name)

    file.visititems(look)
    return names


def only_matrix(path: Path, h5py: Any, file: Any) -> str:
    names = matrices(h5py, file)
    if not names:
        raise FileError(f"{path}: there is no dataset of two axes in it")
    if len(names) > 1:
        raise FileError(f"{path}: there are several datasets; name one by dataset=: {listed(names)}")
    return names[0]


def require_stored(path: Path, values: Any, size: int) -> None:
    """A dataset may claim any shape; what was never written reads as zeros."""
    if values.is_virtual or values.external:
        return
    n, d = values.shape
    if values.chunks is None:
        claimed = n * d * values.dtype.itemsize
        if values.id.get_storage_size() < claimed or claimed > size:
            raise FileError(f"{path}: shape {(n, d)} is {claimed} bytes, the file has {size}: data are missing")
        return
    tall, wide = values.chunks
    claimed, stored = -(-n // tall) * -(-d // wide), values.id.get_num_chunks()
    if stored < claimed:
        raise FileError(f"{path}: shape {(n, d)} is {claimed} chunks, {stored} are stored: data are missing")

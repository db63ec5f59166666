"""What every file of vectors offers, whatever its format: rows in order, block by block, or a `FileError`."""

from __future__ import annotations

import gzip
import re
import stat
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_DIMENSION = 2**24
BLOCK_BYTES = 2**22
PIECE_BYTES = 2**20

Columns = str | slice | Sequence[str] | Sequence[int]


class FileError(ValueError):
    """A file's content is not what it must be: the message names the file, the place and the rule."""


@dataclass(frozen=True)
class Request:
    """What the user asks of a file, beyond its rows."""

    path: Path
    format: str
    compression: str = ""
    dataset: str | None = None
    columns: Columns | None = None


class Source(ABC):
    """A matrix in a file. No handle stays open between calls."""

    width: int  # columns of the file
    dtype: np.dtype[Any]  # as stored, of the picked columns
    picked: list[int] | None = None  # positions of the columns that are delivered; None: all
    names: list[str] | None = None  # of the columns of a table

    def __init__(self, request: Request) -> None:
        self.path, self.format = request.path, request.format

    @cached_property
    @abstractmethod
    def n_rows(self) -> int:
        """As the file says, or counted in one pass if it does not say."""

    @abstractmethod
    def blocks(self, start: int, stop: int, size: int) -> Iterator[NDArray[Any]]:
        """The picked columns of rows start:stop, as stored, at most `size` rows at a time."""

    def mapped(self) -> NDArray[Any] | None:
        """The whole matrix without a copy, if it lies in the file as the fit wants it."""
        return None

    @property
    def n_columns(self) -> int:
        return self.width if self.picked is None else len(self.picked)

    def column_name(self, column: int) -> str:
        """Of a delivered column: its name in the file, or its position."""
        position = column if self.picked is None else self.picked[column]
        return str(position) if self.names is None else repr(self.names[position])


# ---- checks that formats share -----------------------------------------------------------------------------------


def need(module: str, purpose: str) -> Any:
    """An optional module, or how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {name}, which is not installed: pip install 'k2means[io]'") from error


def file_size(path: Path) -> int:
    """Bytes of a regular file that is not empty."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"{path} is a directory, a file of vectors was expected")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{path}: not a regular file; pipes and devices cannot be read twice")
    if status.st_size == 0:
        raise FileError(f"{path}: the file is empty (0 bytes)")
    return status.st_size


def check_shape(path: Path, n: int | None, d: int, where: str) -> None:
    """Refuse what no file of vectors has, before anything is allocated. n is None: not known yet."""
    if not 1 <= d <= LARGEST_DIMENSION:
        raise FileError(f"{path}: dimension {d} {where}; it must be from 1 to 2**24")
    if n is not None and n < 1:
        raise FileError(f"{path}: {n} rows {where}; at least one is needed")


def check_numbers(path: Path, dtype: np.dtype[Any], where: str) -> None:
    if dtype.kind not in "biuf" or dtype.subdtype is not None:
        raise FileError(f"{path}: values of type {dtype} {where}; vectors are integers or floating-point numbers")


@contextmanager
def told_by(path: Path, reader: str) -> Iterator[None]:
    """What a library says about a bad file, as a FileError. Its own lack of memory too: a header may have lied."""
    try:
        yield
    except (FileError, PermissionError):
        raise
    except Exception as error:
        raise FileError(f"{path}: {reader} cannot read it: {error}") from error


# ---- picking columns ---------------------------------------------------------------------------------------------


def pick_columns(columns: Columns | None, width: int, names: list[str] | None) -> list[int] | None:
    """Positions of the columns asked for; None: all. Names come before positions where a table has them."""
    if columns is None:
        return None
    asked: Any = columns.split(",") if isinstance(columns, str) and ":" not in columns else columns
    if isinstance(columns, str) and names is not None and columns in names:
        asked = [columns]  # a name may hold a comma or a colon
    if isinstance(asked, str):
        asked = parse_slice("columns", asked)
    if isinstance(asked, slice):
        positions = list(range(width)[check_step("columns", asked)])
    else:
        positions = [column_position(name, width, names) for name in asked]
    if not positions:
        raise ValueError(f"columns={columns!r} picks none of {width} columns")
    if len(set(positions)) < len(positions):
        raise ValueError(f"columns={columns!r} picks a column twice")
    return positions


def column_position(column: Any, width: int, names: list[str] | None) -> int:
    if isinstance(column, str):
        column = column.strip()
        if names is not None and column in names:
            return names.index(column)
        if names is not None:
            raise ValueError(f"columns: there is no column {column!r}; there are {listed(names)}")
        if not re.fullmatch(r"[+-]?\d+", column):
            raise ValueError(f"columns: {column!r} is not a position; these {width} columns have no names")
    elif isinstance(column, (bool, np.bool_)) or not isinstance(column, (int, np.integer)):
        raise TypeError(f"columns must be names or integers, got {column!r}")
    position = int(column)
    if not -width <= position < width:
        raise ValueError(f"columns: position {position} is out of range, there are {width} columns")
    return position % width


def parse_slice(name: str, text: str) -> slice:
    """ "a:b" as in Python; a and b may be missing or negative."""
    match = re.fullmatch(r"\s*([+-]?\d+)?\s*:\s*([+-]?\d+)?\s*", text)
    if match is None:
        raise ValueError(f"{name} must be like 'a:b' without a step, got {text!r}")
    start, stop = (None if part is None else int(part) for part in match.groups())
    return slice(start, stop)


def check_step(name: str, given: slice) -> slice:
    if given.step not in (None, 1):
        raise ValueError(f"{name} must be like 'a:b' without a step, got a step of {given.step!r}")
    return given


def listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"


# ---- bytes in order ----------------------------------------------------------------------------------------------

DAMAGE = (EOFError, OSError, ValueError, zlib.error, zipfile.BadZipFile)  # what readers of packed bytes raise


class Stream:
    """The bytes of a file in order, unpacked on the way. It never asks for more memory than there were bytes."""

    def __init__(self, path: Path, raw: Any) -> None:
        self.path, self.raw, self.position = path, raw, 0

    def take(self, count: int) -> bytearray:
        """The next `count` bytes, or fewer at the end of the file."""
        taken = bytearray()
        while len(taken) < count and (piece := self.piece(count - len(taken))):
            taken += piece
        return taken

    def skip(self, count: int | None = None) -> int:
        """Pass over `count` bytes, or all that remain; how many there were."""
        before = self.position
        while count is None or self.position - before < count:
            if not self.piece(PIECE_BYTES if count is None else count - (self.position - before)):
                break
        return self.position - before

    def piece(self, most: int) -> bytes:
        try:
            piece: bytes = self.raw.read(min(most, PIECE_BYTES))
        except DAMAGE as error:
            where = f"byte {self.position} of the unpacked data"
            raise FileError(f"{self.path}: cut off or damaged after {where}: {error}") from error
        self.position += len(piece)
        return piece

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()


def open_stream(path: Path, compression: str) -> Stream:
    if compression == "gz":
        return Stream(path, gzip.open(path, "rb"))
    if compression == "zst":
        pa = need("pyarrow", f"reading {path}")
        return Stream(path, pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    return Stream(path, path.open("rb"))

"""Matrices as text: CSV and TSV, parsed by pyarrow if it is there, else by numpy."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .vector_source import (
    PIECE_BYTES,
    FileError,
    Request,
    Source,
    Stream,
    check_shape,
    file_size,
    need,
    open_stream,
    pick_columns,
)

LONGEST_LINE = 2**26
DELIMITERS = {"csv": ",", "tsv": "\t"}


class TextRows(Source):
    """Lines of numbers. The first line is a header if one of its cells is neither a number nor empty.

    Blank lines are skipped. A line break inside quotes is not supported: a line is a row.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        file_size(self.path)
        self.compression, self.delimiter = request.compression, DELIMITERS[request.format]
        self.dtype = np.dtype(np.float64)
        cells = self.cells(self.first_line())
        self.has_header = not all(is_number(cell) or not cell.strip() for cell in cells)
        self.names = [cell.strip() for cell in cells] if self.has_header else None
        self.width = len(cells)
        check_shape(self.path, None, self.width, "in line 1")
        self.picked = pick_columns(request.columns, self.width, self.names)

    def first_line(self) -> bytes:
        with open_stream(self.path, self.compression) as stream:
            for _, lines in numbered_lines(stream):
                for line in lines:
                    return line
        raise FileError(f"{self.path}: there is no line with anything in it")

    def cells(self, line: bytes) -> list[str]:
        text = line.decode("utf-8", "replace")
        try:
            return next(csv.reader([text], delimiter=self.delimiter), [])
        except csv.Error as error:  # a cell of more than 128 KiB, a NUL
            raise FileError(f"{self.path}: {error} in a line that begins {text[:40]!r}") from error

    @cached_property
    def n_rows(self) -> int:
        """Counted in one pass: no header says it."""
        with open_stream(self.path, self.compression) as stream:
            n = sum(len(lines) for _, lines in numbered_lines(stream)) - self.has_header
        check_shape(self.path, n, self.width, "below the header")
        return n

    def blocks(self, start: int, stop: int, size: int) -> Iterator[NDArray[Any]]:
        row = -int(self.has_header)  # of the first line in hand
        with open_stream(self.path, self.compression) as stream:
            for numbers, lines in numbered_lines(stream):
                low, high = max(start - row, 0), min(stop - row, len(lines))
                row += len(lines)
                for at in range(low, high, size):
                    part = slice(at, min(at + size, high))
                    yield self.parse(lines[part], numbers[part])
                if row >= stop:
                    return

    def parse(self, lines: list[bytes], numbers: list[int]) -> NDArray[np.float64]:
        try:
            return self.parse_by_pyarrow(lines)
        except ValueError:
            self.require_numbers(lines, numbers)
        except ImportError:
            pass
        try:  # without pyarrow, or it was stricter: it does not know +1
            return self.parse_by_numpy(lines)
        except ValueError as error:
            self.require_numbers(lines, numbers)
            raise FileError(f"{self.path}: lines {numbers[0]} to {numbers[-1]} are not a table: {error}") from error

    def parse_by_pyarrow(self, lines: list[bytes]) -> NDArray[np.float64]:
        pa, arrow_csv = need("pyarrow", "pyarrow"), need("pyarrow.csv", "pyarrow")
        text = b"\n".join(lines)
        names = [str(column) for column in range(self.width)]
        wanted = names if self.picked is None else [names[column] for column in self.picked]
        table = arrow_csv.read_csv(
            pa.BufferReader(text),
            arrow_csv.ReadOptions(use_threads=False, column_names=names, block_size=len(text) + 1),
            arrow_csv.ParseOptions(delimiter=self.delimiter),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.float64()), include_columns=wanted, null_values=[]
            ),
        )
        if table.num_rows != len(lines):
            raise ValueError("a row is not a line")
        rows = np.empty((len(lines), len(wanted)))
        for column, values in enumerate(table.columns):
            rows[:, column] = values.to_numpy()
        return rows

    def parse_by_numpy(self, lines: list[bytes]) -> NDArray[np.float64]:
        text = (line.decode("utf-8", "replace") for line in lines)
        if self.picked is None:
            rows = np.loadtxt(text, delimiter=self.delimiter, comments=None, quotechar='"', ndmin=2)
        else:
            rows = np.loadtxt(
                text, delimiter=self.delimiter, comments=None, quotechar='"', ndmin=2, usecols=self.picked
            )
        if rows.shape != (len(lines), self.n_columns):
            raise ValueError("a row is not a line, or lines differ in length")
        return rows

    def require_numbers(self, lines: list[bytes], numbers: list[int]) -> None:
        """Say which cell is wrong, if one is."""
        for number, line in zip(numbers, lines, strict=True):
            cells = self.cells(line)
            if len(cells) != self.width:
                raise FileError(f"{self.path}: line {number} has {len(cells)} cells, line 1 has {self.width}")
            for column in range(self.n_columns):
                cell = cells[column if self.picked is None else self.picked[column]]
                where = f"line {number}, column {self.column_name(column)}"
                if not cell.strip():
                    raise FileError(f"{self.path}: no value at {where}; every cell must hold a number")
                if not is_number(cell):
                    raise FileError(f"{self.path}: {cell[:40]!r} at {where} is not a number")


def numbered_lines(stream: Stream) -> Iterator[tuple[list[int], list[bytes]]]:
    """The lines that are not blank, with their numbers from 1, as many at a time as a piece of the file holds."""
    rest, number = bytearray(), 1
    is_first = True
    while True:
        piece = stream.take(PIECE_BYTES)
        rest += piece
        end = rest.rfind(b"\n") + 1 if piece else len(rest)
        if not end and len(rest) > LONGEST_LINE:
            raise FileError(f"{stream.path}: line {number} is longer than {LONGEST_LINE} bytes; not a text file?")
        lines = bytes(rest[:end]).splitlines()
        del rest[:end]
        if is_first and lines:
            lines[0], is_first = lines[0].removeprefix(b"\xef\xbb\xbf"), False  # the mark of UTF-8
        full = [(at, line) for at, line in enumerate(lines, number) if line.strip(b" ")]
        number += len(lines)
        if full:
            yield [at for at, _ in full], [line for _, line in full]
        if not piece:
            return


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell

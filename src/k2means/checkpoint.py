"""The state of a run on disk: written whole or not at all, checked when read, enough to go on with the same bits.

Centers, labels and the records so far are all a run needs. The running sums follow from the labels without rounding
(core/move.hpp), and bounds only skip what cannot change the result; so after a resume labels, centers and energies
have the bits of the undisturbed run. Only the operations counted may differ, for the bounds are made anew.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .files import replace_file
from .initialize import Data, Start
from .loop import Engine, Ops, Record

MAGIC = b"K2CKPT\r\n"
FORMAT = 2
HEADER = struct.Struct("<8sIQ32s")  # magic, format, bytes that follow, their sha256
NAME = "checkpoint.k2"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message names the file and says why."""


@dataclass(frozen=True)
class Every:
    """How often to save: after so many iterations, or so many seconds."""

    iterations: int | None = None
    seconds: float | None = None

    def due(self, iteration: int, since: float) -> bool:
        by_count = self.iterations is not None and iteration % self.iterations == 0
        return by_count or (self.seconds is not None and since >= self.seconds)


@dataclass(frozen=True)
class Saved:
    """A run as it was: where it stands and what it has recorded."""

    start: Start
    trace: tuple[Record, ...]


class Keeper:
    """Saves a run in a directory; with `resume`, goes on from what is there."""

    def __init__(
        self, directory: Path, every: Every, *, resume: bool = False, ending: Callable[[], bool] = lambda: False
    ) -> None:
        self.path = directory / NAME
        self.every = every
        self.resume = resume
        self.ending = ending  # whether the run was asked to end: then it is saved, due or not
        self.saved: Saved | None = None
        self.seconds = 0.0  # spent on saving
        self._identity: dict[str, Any] = {}
        self._last = time.monotonic()
        self._written = -1  # iterations of the checkpoint that is there

    def open(self, data: Data, settings: Mapping[str, Any]) -> None:
        """Before the run: what it is, so that a checkpoint of another is not taken for its own."""
        self._identity = {**settings, "shape": list(data.rows.shape), "dtype": str(data.rows.dtype)}
        self._identity["data"] = fingerprint(data)
        if self.resume and self.path.exists():
            self.saved = read(self.path, self._identity)
            self._written = len(self.saved.trace)
        for left in self.path.parent.glob(f".{NAME}.*.part"):  # by a run that was killed while it wrote
            left.unlink(missing_ok=True)

    def save(self, engine: Engine, start: Start, trace: Sequence[Record], *, last: bool = False) -> None:
        """Called by the loop before the first iteration and after every one; `last`: due or not."""
        begin = time.monotonic()
        if trace and not (last or self.ending() or self.every.due(len(trace), begin - self._last)):
            return
        if len(trace) == self._written:
            return
        state = start
        if trace:
            state = Start(engine.centers(), engine.labels(), start.ops, engine.mode(), engine.known())
        try:
            write(self.path, self._identity, state, trace)
            self._written = len(trace)
        except (OSError, MemoryError) as error:  # the fit is worth more than its checkpoint
            warnings.warn(f"no checkpoint at iteration {len(trace)}: {error}", RuntimeWarning, stacklevel=2)
        self._last = time.monotonic()
        self.seconds += self._last - begin

    def remove(self) -> None:
        """When the result is safe elsewhere."""
        self.path.unlink(missing_ok=True)


def fingerprint(data: Data) -> str:
    """Of the statistics of all rows, and of a thousand rows as they are: another data set, or order, is another."""
    seen, rows = data.survey, data.rows
    digest = hashlib.sha256()
    for part in (seen.mean, seen.low, seen.high, np.float64(seen.total), np.float64(seen.weight)):
        digest.update(part.tobytes())
    digest.update(np.ascontiguousarray(rows[:: max(1, len(rows) // 1000)]).tobytes())
    if data.weights is not None:
        digest.update(data.weights.tobytes())
    return digest.hexdigest()


def write(path: Path, identity: Mapping[str, Any], state: Start, trace: Sequence[Record]) -> None:
    described = {
        "identity": identity,
        "trace": [asdict(r) for r in trace],
        "init_ops": asdict(state.ops),
        "mode": state.mode,
    }
    arrays: dict[str, Any] = {"described": np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)}
    arrays["centers"] = state.centers
    arrays |= {name: a for name, a in (("labels", state.labels), ("known", state.known)) if a is not None}
    payload = io.BytesIO()
    np.savez(payload, **arrays)
    body = payload.getbuffer()
    with replace_file(path) as file:
        file.write(HEADER.pack(MAGIC, FORMAT, len(body), hashlib.sha256(body).digest()))
        file.write(body)


def read(path: Path, identity: Mapping[str, Any]) -> Saved:
    """The run in `path`; it must be the one of this identity."""
    with path.open("rb") as file:
        head = file.read(HEADER.size)
        if head[: len(MAGIC)] != MAGIC[: len(head)]:
            raise CheckpointError(f"{path} is not a checkpoint of k2means: it does not begin as one")
        if len(head) < HEADER.size:
            raise CheckpointError(f"{path} is cut off: {len(head)} bytes, its header alone has {HEADER.size}")
        _, version, length, digest = HEADER.unpack(head)
        if version > FORMAT:
            raise CheckpointError(f"{path} has format {version}; this k2means reads formats up to {FORMAT}")
        if version != FORMAT:
            raise CheckpointError(f"{path} is damaged: there is no format {version}")
        held = os.fstat(file.fileno()).st_size - HEADER.size
        if held != length:
            raise CheckpointError(f"{path} is cut off or grown: {held} bytes after the header, {length} were written")
        body = file.read()
    if hashlib.sha256(body).digest() != digest:
        raise CheckpointError(f"{path} is damaged: its checksum does not match")
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        described = json.loads(arrays["described"].tobytes())
        labels, known = (arrays[name] if name in arrays.files else None for name in ("labels", "known"))
        start = Start(arrays["centers"], labels, Ops(**described["init_ops"]), described.get("mode", 0), known)
    check_identity(path, described["identity"], identity)
    return Saved(start, tuple(map(Record.restored, described["trace"])))


def check_identity(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        if found.get(name) != value:
            what = "the data are not the same" if name == "data" else f"{name} was {found.get(name)}, is {value}"
            raise CheckpointError(f"{path} is of another run: {what}")

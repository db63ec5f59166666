"""The only loop: it drives any engine, keeps the trace and decides when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ops:
    """Vector operations as the paper counts them, one unit per d-vector operation."""

    distances: int = 0
    products: int = 0
    additions: int = 0
    sorts: float = 0.0

    @property
    def total(self) -> float:
        return self.distances + self.products + self.additions + self.sorts

    def __add__(self, other: Ops) -> Ops:
        return Ops(
            self.distances + other.distances,
            self.products + other.products,
            self.additions + other.additions,
            self.sorts + other.sorts,
        )

    def on_part(self, share: float) -> Ops:
        """What they count if they were on vectors of only this share of the columns."""
        counts = self.distances, self.products, self.additions
        distances, products, additions = (round(count * share) for count in counts)
        return Ops(distances, products, additions, self.sorts * share)


@dataclass(frozen=True, slots=True)
class Record:
    """What one iteration did: its own operations and seconds, not running sums."""

    iteration: int
    energy: float
    ops: Ops
    moved: int
    shift: float
    seconds: float

    @classmethod
    def restored(cls, told: Mapping[str, Any]) -> Record:
        """From what `dataclasses.asdict` made of it."""
        return cls(**{**told, "ops": Ops(**told["ops"])})


def _number(value: Any) -> float:
    """NaN, which no comparison accepts, for what is no number."""
    return float(value) if isinstance(value, (int, float, np.number)) else float("nan")


@dataclass(frozen=True)
class Stop:
    """When to stop.

    Parameters
    ----------
    max_iter : int
        Iterations at most.
    tol : float
        Stop when the sum of the squared movements of the centers is at most this. 0: when no center moves.
    energy : float or None
        Stop as soon as the energy is at most this.
    seconds : float or None
        Start no iteration after this many seconds, initialisation included.
    """

    max_iter: int = 100
    tol: float = 0.0
    energy: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, (int, np.integer)) or self.max_iter < 1:
            raise ValueError(f"max_iter must be an integer of at least 1, got {self.max_iter!r}")
        if not _number(self.tol) >= 0:
            raise ValueError(f"tol must be a number of at least 0, got {self.tol!r}")
        if self.energy is not None and not _number(self.energy) >= 0:
            raise ValueError(f"energy must be None or a number of at least 0, got {self.energy!r}")
        if self.seconds is not None and not _number(self.seconds) > 0:
            raise ValueError(f"seconds must be None or a number above 0, got {self.seconds!r}")

    def reached(self, record: Record, elapsed: float) -> bool:
        return (
            record.shift <= self.tol
            or (self.energy is not None and record.energy <= self.energy)
            or (self.seconds is not None and elapsed >= self.seconds)
        )


class Engine(Protocol):
    """One method bound to one dataset (design.md); what `run` needs of it."""

    def step(self) -> tuple[int, float, tuple[int, int, int, float]]: ...
    def settle(self, afresh: bool = False) -> tuple[int, float, tuple[int, int, int, float]]: ...
    def energy(self) -> float: ...
    def certify(self) -> int: ...
    def mode(self) -> int: ...
    def known(self) -> NDArray[np.int32]: ...
    def labels(self) -> NDArray[np.int32]: ...
    def centers(self) -> NDArray[Any]: ...


OnStep = Callable[[Record], "bool | None"]


@dataclass(frozen=True)
class Result:
    """What `cluster` returns.

    Attributes
    ----------
    centers : ndarray of shape (k, d)
    labels : ndarray of shape (n,), int32
        The center each row was assigned to by the last assignment.
    energy : float
        Sum of squared distances of the rows to `centers[labels]`, measured in double precision.
    n_iter : int
    trace : sequence of Record
        One record per iteration.
    init_ops, ops : Ops
        Operations of the initialisation, and of everything.
    converged : bool
        The centers stopped moving (within `tol`).
    certified : float
        The share of rows whose label is proven to be the nearest of all centers; NaN if that was not looked into.
    """

    centers: NDArray[Any]
    labels: NDArray[np.int32]
    energy: float
    n_iter: int
    trace: Sequence[Record]
    init_ops: Ops
    ops: Ops
    converged: bool
    certified: float = float("nan")


def run(
    engine: Engine,
    stop: Stop,
    on_step: OnStep | None = None,
    *,
    unit: float = 1.0,
    started: float | None = None,
    before: Sequence[Record] = (),
    save: Callable[[Sequence[Record]], None] | None = None,
) -> list[Record]:
    """Step until `stop` says so or `on_step` returns True. Energies and shifts are multiplied by `unit`.

    A run that was cut off goes on after the records `before`. `save` is called with all records so far, before the
    first step and after every one.
    """
    started = time.perf_counter() if started is None else started
    trace = list(before)
    if save is not None:
        save(trace)
    if trace and stop.reached(trace[-1], 0.0):
        return trace
    for iteration in range(len(trace) + 1, stop.max_iter + 1):
        begin = time.perf_counter()
        moved, shift, ops = engine.step()
        now = time.perf_counter()
        record = Record(iteration, engine.energy() * unit, Ops(*ops), moved, shift * unit, now - begin)
        trace.append(record)
        wants_stop = on_step is not None and on_step(record)
        if save is not None:  # after on_step: who asked for the end by then will find it saved
            save(trace)
        if wants_stop or stop.reached(record, time.perf_counter() - started):
            break
    return trace

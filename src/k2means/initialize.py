"""Where to start. An initialisation gives centers and, if it knows them, labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from .checks import check_count
from .early import refine_early
from .loop import Ops
from .measure import LONG, ROOM, means, tells_enough
from .methods import SKETCH, Problem

NEARLY_ALL = 0.999  # of the energy


@dataclass(frozen=True)
class Data:
    """Checked rows in working coordinates, `rows = original * scale - offset`; `offset` None: the original itself."""

    rows: NDArray[Any]
    weights: NDArray[np.float64] | None
    survey: _core.Survey
    original: NDArray[Any]
    offset: NDArray[Any] | None
    scale: float
    variance: float
    n_threads: int
    deadline: float = float("inf")  # of time.perf_counter(): a start that can be shorter ends then

    @cached_property
    def sketches(self) -> _core.Sketch:
        """Sketches of the rows (core/sketch.hpp), made when first asked for."""
        return _core.sketch(self.rows, self.survey, 0, self.n_threads)

    def short_sketch(self) -> _core.Sketch | None:
        """The sketches, if they tell enough of the rows and are shorter than they; else they are given back."""
        d = self.rows.shape[1]
        if d > LONG and tells_enough(self.sketches, d):
            return self.sketches
        vars(self).pop("sketches", None)
        return None

    def coordinates(self) -> NDArray[Any]:
        """The sketches as rows, or only their first numbers if those tell nearly all."""
        rows = self.sketches.rows()
        told = np.square(rows[:: max(1, len(rows) // 1024)], dtype=np.float64).sum(axis=0).cumsum()
        count = 8 * (int(np.searchsorted(told, NEARLY_ALL * told[-1])) // 8 + 1)
        return rows if count >= SKETCH or told[-1] == 0 else np.ascontiguousarray(rows[:, :count])

    def as_given(self) -> NDArray[Any]:
        """The rows as the user knows them: a copy, while they are worked on in place."""
        if self.offset is None or self.rows is not self.original:
            return self.original
        rows: NDArray[Any] = (self.rows + self.offset) / self.rows.dtype.type(self.scale)
        return rows

    def to_working(self, points: NDArray[Any]) -> NDArray[Any]:
        if self.offset is not None:
            points = points * points.dtype.type(self.scale) - self.offset
        return np.ascontiguousarray(points)

    def to_original(self, points: NDArray[Any]) -> NDArray[Any]:
        if self.offset is None:
            return points
        wide = (points.astype(np.float64) + self.offset.astype(np.float64)) / self.scale
        return wide.astype(points.dtype)


@dataclass(frozen=True)
class Start:
    centers: NDArray[Any]
    labels: NDArray[np.int32] | None
    ops: Ops
    mode: int = 0  # of a run taken up again, where its method was
    known: NDArray[np.int32] | None = None  # and the neighbors or the lists it had


class Init(Protocol):
    def __call__(self, data: Data, k: int, rng: np.random.Generator) -> Start: ...


def random_key(rng: np.random.Generator) -> int:
    return int(rng.integers(0, 2**63))


@dataclass(frozen=True)
class Random:
    """k rows drawn without replacement, heavier rows more often."""

    def __call__(self, data: Data, k: int, rng: np.random.Generator) -> Start:
        n = len(data.rows)
        chance = None if data.weights is None else data.weights / data.weights.sum()
        chosen = rng.choice(n, size=k, replace=False, p=chance)
        return Start(data.rows[chosen], None, Ops())


@dataclass(frozen=True)
class PlusPlus:
    """k-means++ (Arthur and Vassilvitskii 2007): rows drawn by their squared distance to the centers so far.

    Parameters
    ----------
    trials : int or "auto"
        Candidates drawn for each center, the best of which is taken. 1 is the plain method; "auto" is
        2 + floor(ln k), as in scikit-learn. Each trial costs n distances.
    """

    trials: int | Literal["auto"] = 1

    def __post_init__(self) -> None:
        if self.trials != "auto" and (
            isinstance(self.trials, bool) or not isinstance(self.trials, (int, np.integer)) or self.trials < 1
        ):
            raise ValueError(f"trials must be 'auto' or an integer of at least 1, got {self.trials!r}")

    def __call__(self, data: Data, k: int, rng: np.random.Generator) -> Start:
        trials = 2 + int(np.log(k)) if self.trials == "auto" else int(self.trials)
        chosen, ops = _core.plus_plus(data.rows, data.weights, k, trials, random_key(rng), data.n_threads)
        return Start(data.rows[chosen], None, Ops(*ops))


@dataclass(frozen=True)
class GDI:
    """Greedy Divisive Initialisation (Algorithms 2 and 3 of the paper). Gives labels as well as centers.

    Parameters
    ----------
    iterations : int
        Iterations of Projective Split; the paper uses 2.
    exact : bool
        True: as in the paper. False: on sketches of the rows, if these are long; several times faster, and after
        refinement of the same energy (docs/sketched.md).
    early : int
        At most so many rough iterations follow on the sketches (on the rows, if these are short), and then swaps of
        clusters, where that pays (docs/sketched.md). Needs `exact=False`.
    """

    iterations: int = 2
    exact: bool = True
    early: int = 0

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations)
        if not isinstance(self.exact, (bool, np.bool_)):
            raise TypeError(f"exact must be True or False, got {self.exact!r}")
        check_count("early", self.early, least=0)
        if self.early and self.exact:
            raise ValueError(f"early={self.early} iterations are on sketches, and need exact=False")

    def __call__(self, data: Data, k: int, rng: np.random.Generator) -> Start:
        rows, weights, survey, threads = data.rows, data.weights, data.survey, data.n_threads
        d = rows.shape[1]
        short = not self.exact and d > LONG
        if short:
            rows = data.coordinates()
            survey = _core.survey(rows, weights, threads)
        centers, labels, counted = _core.gdi(
            rows, weights, survey, k, int(self.iterations), random_key(rng), threads, fast=not self.exact
        )
        ops = Ops(*counted)
        # An iteration on sketches costs less, but brings only what they tell.
        pays = not short or data.sketches.caught * d > 1.5 * SKETCH
        if self.early and pays:
            problem = Problem(rows, weights, survey, centers, labels, threads)
            tells_all = not short or data.sketches.caught > NEARLY_ALL
            labels, more = refine_early(problem, tells_all, int(self.early), rng, data.deadline)
            ops += more
        if short or self.early:  # else they are the means already
            centers = means(data.rows, weights, labels, k, threads)
            ops = ops.on_part(rows.shape[1] / d) + Ops(additions=len(rows))
        return Start(centers, labels, ops)


@dataclass(frozen=True, eq=False)
class Given:
    """Centers you have.

    Parameters
    ----------
    centers : array of shape (k, d), or callable(X, n_clusters, random_state) that returns one
    """

    centers: ArrayLike | Callable[..., ArrayLike]

    def check(self, given: ArrayLike, k: int, d: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        points = np.array(given, order="C")
        if points.dtype.kind not in "buif":
            raise ValueError(f"init must be an array of real numbers, got dtype {points.dtype}")
        if points.shape != (k, d):
            raise ValueError(f"init must have shape {(k, d)} (n_clusters, n_features), got {points.shape}")
        points = points.astype(dtype)
        if not np.isfinite(points).all():
            row, column = np.argwhere(~np.isfinite(points))[0]
            raise ValueError(f"init contains {points[row, column]} at row {row}, column {column}; it must be finite")
        return points

    def __call__(self, data: Data, k: int, rng: np.random.Generator) -> Start:
        given = self.centers
        if callable(given):
            given = given(data.as_given(), k, random_state=np.random.RandomState(random_key(rng) % 2**32))
        points = self.check(given, k, data.original.shape[1], data.original.dtype)
        with np.errstate(over="ignore"):
            working = data.to_working(points)
        far = np.abs(working) > ROOM[working.dtype][1]
        if far.any():
            row, column = np.argwhere(far)[0]
            raise ValueError(
                f"init contains {points[row, column]} at row {row}, column {column}, "
                f"so far from the rows of X that squared distances overflow {working.dtype}"
            )
        return Start(working, None, Ops())


FAST = GDI(exact=False, early=30)  # what `K2Means` starts with
NAMED: dict[str, Init] = {"gdi": GDI(), "k-means++": PlusPlus(), "random": Random()}

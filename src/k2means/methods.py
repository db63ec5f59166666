"""The methods: what to do in an iteration. A method is a frozen dataclass that binds itself to data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _core
from .checks import check_count
from .loop import Engine


@dataclass(frozen=True)
class Problem:
    """Checked data and a start, as the core takes them."""

    x: NDArray[Any]
    weights: NDArray[np.float64] | None
    survey: _core.Survey
    centers: NDArray[Any]
    labels: NDArray[np.int32] | None
    n_threads: int
    seed: int = 0  # for methods that draw at random
    tol: float = 0.0  # a shift up to this counts as none
    mode: int = 0  # of a run taken up again, where it was
    known: NDArray[np.int32] | None = None  # and the neighbors or the lists it had
    sketch: Callable[[], _core.Sketch | None] = lambda: None  # of the rows, if they have a short one
    unit: bool = False  # rows and centers are on the unit sphere; `Sketched` only


class Method(Protocol):
    def bind(self, problem: Problem) -> Engine: ...

    def memory(self, n: int, d: int, k: int) -> int:
        """Bytes this method keeps beside the data."""
        ...


def _common_memory(n: int, d: int, k: int) -> int:
    return 12 * n + 24 * k * d  # labels twice and the order; sums, centers, packed centers


@dataclass(frozen=True)
class Lloyd:
    """Every row looks at every center."""

    def bind(self, problem: Problem) -> Engine:
        p = problem
        return _core.lloyd(p.x, p.weights, p.survey, p.centers, p.labels, p.n_threads)

    def memory(self, n: int, d: int, k: int) -> int:
        return _common_memory(n, d, k)


@dataclass(frozen=True)
class Elkan:
    """Lloyd's result with fewer distances, for n·k lower bounds in memory (Elkan 2003)."""

    def bind(self, problem: Problem) -> Engine:
        p = problem
        return _core.elkan(p.x, p.weights, p.survey, p.centers, p.labels, p.n_threads)

    def memory(self, n: int, d: int, k: int) -> int:
        return _common_memory(n, d, k) + 4 * n * k


SKETCH = 32  # numbers in a sketch (core/sketch.hpp)
LISTED = 8  # centers on a list (core/own_lists.hpp)
FEW_ROWS = 64  # of a cluster, in the mean


def auto_neighbors(k: int) -> int:
    """k_n for n_neighbors="auto": 5 log2(k), as whole panels of 16 centers (docs/decisions/0005-neighbors.md)."""
    return min(k, 16 * max(2, round(5 * math.log2(k) / 16)))


@dataclass(frozen=True)
class K2:
    """k²-means: a row looks only at the centers nearest to its own center (Algorithm 1 of the paper).

    Parameters
    ----------
    n_neighbors : int or "auto"
        k_n, the centers a row considers, its own included. Clipped to k; at k the result is Lloyd's, step by step.
        "auto" is about 5 log2 k.
    bounds : {"elkan", "hamerly"}
        How candidates are skipped; the result is the same. "elkan" is the paper's: a lower bound for each row and
        neighbor, fewest distances. "hamerly" keeps one for each row.
    """

    n_neighbors: int | Literal["auto"] = 30
    bounds: Literal["elkan", "hamerly"] = "elkan"

    def __post_init__(self) -> None:
        if not (isinstance(self.n_neighbors, str) and self.n_neighbors == "auto"):
            check_count("n_neighbors", self.n_neighbors)
        if self.bounds not in ("elkan", "hamerly"):
            raise ValueError(f"bounds must be 'elkan' or 'hamerly', got {self.bounds!r}")

    def width(self, k: int) -> int:
        """k_n for this many clusters."""
        return min(auto_neighbors(k) if self.n_neighbors == "auto" else int(self.n_neighbors), k)

    def bind(self, problem: Problem) -> Engine:
        p = problem
        neighbors = self.width(len(p.centers))
        return _core.k2(p.x, p.weights, p.survey, p.centers, p.labels, neighbors, self.bounds, p.n_threads)

    def memory(self, n: int, d: int, k: int) -> int:
        width = self.width(k)
        per_row = 4 * width + 4 if self.bounds == "elkan" else 8
        per_center = 2 * 12 * width + 12 * (2 * width + 32)  # two graphs, and the shortlists they are chosen from
        return _common_memory(n, d, k) + per_row * n + per_center * k


@dataclass(frozen=True)
class Sketched:
    """Own lists or neighbourhoods, Hartigan's comparison, and sketches in place of bounds (docs/sketched.md).

    On all rows raced (docs/race.md) the energy is below Lloyd's from k-means++, and at the end every row has the
    nearest of all centers. What `K2Means` does by default.

    Parameters
    ----------
    n_neighbors : int or "auto"
        The centers near its own that a row considers until nothing moves any more; then it considers all. "auto"
        without lists is 128, or all: of up to 1024 clusters of vectors that have 256 values or more.
    turns : int or "auto"
        Parts an iteration is done in, with a move of the centers after each. "auto" is 4, or 2 of clusters of fewer
        than 64 rows in the mean: what is made ready for a cluster pays only if enough of its rows have their turn.
    hartigan : bool
        Whether to compare centers at first by what a move does to the energy, and not by distance alone.
    swaps : bool
        Whether to try swaps of clusters when few rows move: two are joined, and one is divided. With `hartigan` only.
    exact : bool
        Whether to end only when no row would change among all centers. False: among those it considers.
    lists : bool or "auto"
        Whether a row considers the 8 centers on a list of its own, renewed now and then by a look around, instead of
        the neighbors of its center. "auto": if `n_neighbors` is "auto" and there are more than 128 clusters.
    """

    n_neighbors: int | Literal["auto"] = "auto"
    turns: int | Literal["auto"] = "auto"
    hartigan: bool = True
    swaps: bool = True
    exact: bool = True
    lists: bool | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        for name in ("n_neighbors", "turns"):
            value = getattr(self, name)
            if not (isinstance(value, str) and value == "auto"):
                check_count(name, value)
        for name in ("hartigan", "swaps", "exact"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if not (isinstance(self.lists, (bool, np.bool_)) or (isinstance(self.lists, str) and self.lists == "auto")):
            raise TypeError(f"lists must be True, False or 'auto', got {self.lists!r}")
        if self.lists is True and self.n_neighbors != "auto":
            raise ValueError(f"lists=True is instead of neighbors, got n_neighbors={self.n_neighbors}")

    def width(self, k: int, d: int) -> int:
        """The neighbors of a center, for this many clusters of vectors of this length."""
        if self.n_neighbors != "auto":
            return min(int(self.n_neighbors), k)
        return k if k <= (1024 if d >= 256 else 128) else 128

    def bind(self, problem: Problem) -> Engine:
        p = problem
        hartigan = bool(self.hartigan) and not p.unit  # its formula is for means
        few = len(p.x) < FEW_ROWS * len(p.centers)
        turns = (2 if few else 4) if self.turns == "auto" else int(self.turns)
        swaps, exact, width, sketch = bool(self.swaps), bool(self.exact), self.width(*p.centers.shape), p.sketch()
        lists = (self.n_neighbors == "auto" and len(p.centers) > 128) if self.lists == "auto" else bool(self.lists)
        options = (width, turns, hartigan, swaps, exact, p.unit, lists, p.tol, p.mode)
        return _core.sketched(p.x, p.weights, p.survey, p.centers, p.labels, sketch, *options, p.known, p.n_threads)

    def memory(self, n: int, d: int, k: int) -> int:
        per_center = 2 * 12 * self.width(k, d) + 12 * (2 * self.width(k, d) + 32) + 2 * 4 * SKETCH
        if self.swaps:
            per_center += 16 * d  # means of the clusters while swaps are looked for
        per_row = 4 * SKETCH + 16 + (0 if self.lists is False else 4 * (LISTED + 2))
        return _common_memory(n, d, k) + per_row * n + per_center * k


@dataclass(frozen=True)
class AKM:
    """Approximate k-means (Philbin et al. 2007): a forest of random kd-trees over the centers proposes candidates.

    The trees are built anew in every iteration. A row takes the nearest candidate even if its previous center was
    nearer, as in the authors' code; so the energy may rise.

    Parameters
    ----------
    checks : int
        m, the distances measured for a row in an iteration, at most. At k or more the result is Lloyd's.
    trees : int
        Trees in the forest. With few checks not all of them are searched.
    keep_previous : bool
        Whether the row's previous center is its first candidate, and one of the checks.
    """

    checks: int = 100
    trees: int = 8
    keep_previous: bool = False

    def __post_init__(self) -> None:
        check_count("checks", self.checks)
        check_count("trees", self.trees)
        if not isinstance(self.keep_previous, (bool, np.bool_)):
            raise TypeError(f"keep_previous must be True or False, got {self.keep_previous!r}")

    def bind(self, problem: Problem) -> Engine:
        p = problem
        options = (int(self.checks), int(self.trees), bool(self.keep_previous), p.seed)
        return _core.akm(p.x, p.weights, p.survey, p.centers, p.labels, *options, p.n_threads)

    def memory(self, n: int, d: int, k: int) -> int:
        return _common_memory(n, d, k) + 12 * k * int(self.trees)


@dataclass(frozen=True)
class MiniBatch:
    """Web-scale k-means (Sculley 2010, Algorithm 1): centers follow small random batches of rows.

    A row is drawn with replacement, in proportion to its weight. An iteration of the loop is `spacing` batches; after
    each, an exact pass over all rows labels them and measures the energy. That pass is neither timed nor counted.

    Parameters
    ----------
    batch_size : int
        b, rows in a batch.
    spacing : int or None
        Batches in an iteration. None: as many as it takes to draw n rows, ceil(n / b). The t = n/2 batches of the
        paper's experiments are then `Stop(max_iter=50)` for b = 100.
    """

    batch_size: int = 100
    spacing: int | None = None

    def __post_init__(self) -> None:
        check_count("batch_size", self.batch_size)
        if self.spacing is not None:
            check_count("spacing", self.spacing)

    def bind(self, problem: Problem) -> Engine:
        p, size = problem, int(self.batch_size)
        batches = -(-len(p.x) // size) if self.spacing is None else int(self.spacing)
        return _core.minibatch(p.x, p.weights, p.centers, p.labels, size, batches, p.seed, p.n_threads)

    def memory(self, n: int, d: int, k: int) -> int:
        return _common_memory(n, d, k) + 8 * int(self.batch_size) * d + (8 * n)

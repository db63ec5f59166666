"""The methods: what to do in an iteration. A method is a frozen dataclass that binds itself to data."""

from __future__ import annotations

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


@dataclass(frozen=True)
class K2:
    """k²-means: a row looks only at the centers nearest to its own center (Algorithm 1 of the paper).

    Parameters
    ----------
    n_neighbors : int
        k_n, the centers a row considers, its own included. Clipped to k; at k the result is Lloyd's, step by step.
    bounds : {"elkan", "hamerly"}
        How candidates are skipped; the result is the same. "elkan" is the paper's: a lower bound for each row and
        neighbor, fewest distances. "hamerly" keeps one for each row.
    """

    n_neighbors: int = 30
    bounds: Literal["elkan", "hamerly"] = "elkan"

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        if self.bounds not in ("elkan", "hamerly"):
            raise ValueError(f"bounds must be 'elkan' or 'hamerly', got {self.bounds!r}")

    def bind(self, problem: Problem) -> Engine:
        p = problem
        neighbors = int(self.n_neighbors)
        return _core.k2(p.x, p.weights, p.survey, p.centers, p.labels, neighbors, self.bounds, p.n_threads)

    def memory(self, n: int, d: int, k: int) -> int:
        width = min(int(self.n_neighbors), k)
        per_row = 4 * width + 4 if self.bounds == "elkan" else 8
        per_center = 2 * 12 * width + 12 * (4 * width + 32)  # two graphs, and the shortlists they are chosen from
        return _common_memory(n, d, k) + per_row * n + per_center * k

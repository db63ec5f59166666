"""The kernels (core/module.cpp). Arrays are C-contiguous and of one dtype, float32 or float64; nothing is converted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_Ops = tuple[int, int, int, float]  # distances, products, additions, sorts
_Rows = NDArray[Any]

simd: str  # which variant of the kernels this CPU runs

class Survey:
    bad: tuple[int, int]  # row and column of the first value that is not finite, or (-1, -1)
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    total: float
    weight: float

class _Engine:
    def step(self) -> tuple[int, float, _Ops]: ...
    def settle(self, afresh: bool = False) -> tuple[int, float, _Ops]: ...
    def energy(self) -> float: ...
    def certify(self) -> int: ...
    def swap(self, seed: int) -> tuple[float, _Ops]: ...
    def mode(self) -> int: ...
    def known(self) -> NDArray[np.int32]: ...
    def labels(self) -> NDArray[np.int32]: ...
    def centers(self) -> _Rows: ...

class EngineFloat(_Engine): ...
class EngineDouble(_Engine): ...

def lloyd(
    x: _Rows,
    weights: NDArray[np.float64] | None,
    survey: Survey,
    centers: _Rows,
    labels: NDArray[np.int32] | None,
    threads: int,
) -> _Engine: ...
def elkan(
    x: _Rows,
    weights: NDArray[np.float64] | None,
    survey: Survey,
    centers: _Rows,
    labels: NDArray[np.int32] | None,
    threads: int,
) -> _Engine: ...
def k2(
    x: _Rows,
    weights: NDArray[np.float64] | None,
    survey: Survey,
    centers: _Rows,
    labels: NDArray[np.int32] | None,
    neighbors: int,
    bounds: str,
    threads: int,
) -> _Engine: ...

class Sketch:
    caught: float  # the part of the data's energy that lies along the directions
    def rows(self) -> _Rows: ...
    def of(self, x: _Rows, threads: int) -> Sketch: ...

def sketch(x: _Rows, survey: Survey, seed: int, threads: int, used_for: int = 0) -> Sketch: ...
def sketched(
    x: _Rows,
    weights: NDArray[np.float64] | None,
    survey: Survey,
    centers: _Rows,
    labels: NDArray[np.int32] | None,
    sketch: Sketch | None,
    neighbors: int,
    turns: int,
    hartigan: bool,
    swaps: bool,
    exact: bool,
    unit: bool,
    lists: bool,
    tol: float,
    mode: int,
    known: NDArray[np.int32] | None,
    threads: int,
) -> _Engine: ...
def rough(
    x: _Rows,
    weights: NDArray[np.float64] | None,
    survey: Survey,
    centers: _Rows,
    labels: NDArray[np.int32] | None,
    neighbors: int,
    turns: int,
    threads: int,
) -> _Engine: ...
def means(x: _Rows, weights: NDArray[np.float64] | None, labels: NDArray[np.int32], k: int, threads: int) -> _Rows: ...
def akm(
    x: _Rows,
    weights: NDArray[np.float64] | None,
    survey: Survey,
    centers: _Rows,
    labels: NDArray[np.int32] | None,
    checks: int,
    trees: int,
    keep_previous: bool,
    seed: int,
    threads: int,
) -> _Engine: ...
def minibatch(
    x: _Rows,
    weights: NDArray[np.float64] | None,
    centers: _Rows,
    labels: NDArray[np.int32] | None,
    size: int,
    batches: int,
    seed: int,
    threads: int,
) -> _Engine: ...
def survey(x: _Rows, weights: NDArray[np.float64] | None, threads: int) -> Survey: ...
def plus_plus(
    x: _Rows, weights: NDArray[np.float64] | None, k: int, trials: int, seed: int, threads: int
) -> tuple[NDArray[np.int64], _Ops]: ...
def gdi(
    x: _Rows,
    weights: NDArray[np.float64] | None,
    survey: Survey,
    k: int,
    iterations: int,
    seed: int,
    threads: int,
    fast: bool = False,
) -> tuple[_Rows, NDArray[np.int32], _Ops]: ...
def squares(x: _Rows, centers: _Rows, labels: NDArray[np.int32], threads: int) -> NDArray[np.float64]: ...
def several(
    x: _Rows, centers: _Rows, sketch: Sketch | None, count: int, threads: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def several_in_groups(
    x: _Rows,
    centers: _Rows,
    middles: _Rows,
    group_of: NDArray[np.int32],
    sketch: Sketch | None,
    count: int,
    probes: int,
    threads: int,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def assign_capped(
    x: _Rows,
    weights: NDArray[np.float64] | None,
    centers: _Rows,
    labels: NDArray[np.int32],
    cap: int,
    step: float,
    threads: int,
) -> tuple[NDArray[np.int32], _Ops]: ...
def nearest(
    x: _Rows, centers: _Rows, shift: _Rows | None, threads: int, sketch: Sketch | None = None
) -> NDArray[np.int32]: ...
def energy(
    x: _Rows, weights: NDArray[np.float64] | None, centers: _Rows, labels: NDArray[np.int32], threads: int
) -> float: ...
def distances(x: _Rows, centers: _Rows, threads: int) -> _Rows: ...

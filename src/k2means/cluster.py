"""`cluster`, the waist of the hourglass: check, seed, bind, run, and tell the truth about the result."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from . import _core
from .checkpoint import Keeper
from .checks import check_count
from .initialize import GDI, Data, Given, Init, random_key
from .loop import OnStep, Ops, Result, Stop, run
from .measure import FAR, ROOM, energy, nearest, scaled_to_unit, unit_for
from .memory import require_memory
from .methods import K2, Method, Problem, Sketched


def cluster(
    X: ArrayLike,
    k: int,
    *,
    method: Method | None = None,
    init: Init | None = None,
    stop: Stop | None = None,
    seed: int | np.random.Generator | None = 0,
    n_threads: int | None = None,
    sample_weight: ArrayLike | None = None,
    on_step: OnStep | None = None,
) -> Result:
    """Group the rows of X into k clusters.

    Parameters
    ----------
    X : array-like of shape (n, d)
        float32 and float64 are used as they are; float16 and 8- and 16-bit integers become float32, all other numbers
        float64. Read in place unless it is far from the origin (see docs/design.md).
    k : int
        Number of clusters.
    method : Sketched, K2, Lloyd, Elkan, AKM or MiniBatch
        Default `K2()`, the paper's. `Sketched()` is what `K2Means` does.
    init : Random, PlusPlus, GDI or Given
        Default `GDI()`.
    stop : Stop
        Default `Stop()`: 100 iterations, or when no center moves.
    seed : int, numpy Generator or None
        The same seed gives the same bits for any number of threads.
    n_threads : int or None
        None: `K2MEANS_NUM_THREADS` if set, else all cores the process may use.
    sample_weight : array-like of shape (n,) or None
        A row of weight 0 counts as absent; it is still given a label, that of its nearest center.
    on_step : callable(Record) or None
        Called after every iteration; returning True stops.

    Returns
    -------
    Result
        The labels are of the last assignment, the centers are after the last move.
    """
    x = check_rows(X)
    method = K2() if method is None else method
    stop = Stop() if stop is None else stop
    check_method(method)
    check_stop(stop)
    rng = np.random.default_rng(seed)
    k, init, weights, present = check_request(x, k, init, sample_weight)
    threads = resolve_threads(n_threads)
    require_memory(x, k, method, copies=0 if present is None else 1)
    started = time.perf_counter()
    rows = x if present is None else present_rows(x, present, threads)
    data = prepare(rows, weights, threads, copy=is_borrowed(rows, X))
    result = solve(data, k, method, init, stop, rng, on_step, started=started)
    return result if present is None else with_absent_rows(result, x, present, threads)


# ---- checks ------------------------------------------------------------------------------------------------------


def working_dtype(X: Any) -> type[np.floating[Any]]:
    """float32 for float32, float16 and short integers, else float64."""
    if not isinstance(X, np.ndarray) and hasattr(X, "dtypes"):  # a data frame: ask for the dtype of no rows of it
        dtype = np.asarray(X[:0]).dtype
    else:
        dtype = getattr(X, "dtype", None) or np.dtype(object)
    short = dtype.kind in "iub" and dtype.itemsize <= 2
    return np.float32 if short or (dtype.kind == "f" and dtype.itemsize <= 4) else np.float64


def check_rows(X: Any) -> NDArray[Any]:
    """X as a C-contiguous float matrix, without a copy if it is one. Whether it is finite, `prepare` tells."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.flags.c_contiguous and X.dtype in ROOM:
        return X  # check_array takes 0.2 ms to say so
    x: NDArray[Any] = check_array(X, dtype=working_dtype(X), order="C", ensure_all_finite=False, input_name="X")
    return x


def is_borrowed(x: NDArray[Any], X: Any) -> bool:
    """Whether x may be memory of the user's X, and not a copy made of it."""
    return not isinstance(X, np.ndarray) or np.may_share_memory(x, X)


def look_at(x: NDArray[Any], weights: NDArray[np.float64] | None, n_threads: int) -> _core.Survey:
    """One pass over x; refuses what is not finite."""
    seen = _core.survey(x, weights, n_threads)
    row, column = seen.bad
    if row >= 0:
        what = "NaN" if np.isnan(x[row, column]) else "infinity"
        raise ValueError(f"Input X contains {what} at row {row}, column {column}.")
    return seen


def present_rows(x: NDArray[Any], present: NDArray[np.bool_], n_threads: int) -> NDArray[Any]:
    """A copy of the rows that count. Those that do not must be finite too: they get labels."""
    look_at(x, None, n_threads)
    return x[present]


def check_method(method: Any) -> None:
    if isinstance(method, type) or not hasattr(method, "bind"):
        raise TypeError(
            f"method must be Lloyd(), Elkan(), K2(...), Sketched(), AKM(...) or MiniBatch(...), got {method!r}"
        )


def check_stop(stop: Any) -> None:
    if not isinstance(stop, Stop):
        raise TypeError(f"stop must be a Stop(...), got {stop!r}")


def check_request(
    x: NDArray[Any], k: int, init: Any, sample_weight: ArrayLike | None, name: str = "k"
) -> tuple[int, Init, NDArray[np.float64] | None, NDArray[np.bool_] | None]:
    """The number of clusters, the init, the weights of the rows that count, and which they are (None: all)."""
    k = check_count(name, k)
    n = len(x)
    if k > n:
        raise ValueError(f"n_samples={n} should be >= {name}={k}: there cannot be more clusters than rows")
    if n >= 2**32 or k >= 2**31:
        raise ValueError(f"at most 2**32 - 1 rows and 2**31 - 1 clusters are supported, got {n} and {k}")
    init = GDI() if init is None else init
    if isinstance(init, type) or not callable(init):
        raise TypeError(f"init must be Random(), PlusPlus(), GDI() or Given(centers), got {init!r}")
    if isinstance(init, Given) and not callable(init.centers):
        init = Given(init.check(init.centers, k, x.shape[1], x.dtype))
    weights = check_weights(sample_weight, n)
    if weights is None or weights.all():
        return k, init, weights, None
    present = weights > 0
    if k > present.sum():
        raise ValueError(f"{name}={k} is more than the {present.sum()} rows whose sample_weight is above 0")
    return k, init, weights[present], present


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    given = np.asarray(sample_weight)
    if given.dtype.kind not in "buifO":
        raise ValueError(f"sample_weight must be real numbers, got dtype {given.dtype}")
    weights = np.ascontiguousarray(given if given.ndim else np.full(n, given), dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}: one weight for each row of X")
    if not np.isfinite(weights).all():
        row = int(np.argmin(np.isfinite(weights)))
        raise ValueError(f"sample_weight[{row}] is {weights[row]}; weights must be finite (no NaN, no infinity)")
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(f"sample_weight[{row}] is {weights[row]}; weights must not be negative")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; at least one must be positive")
    return None if (weights == 1.0).all() else weights


def resolve_threads(n_threads: int | None) -> int:
    if n_threads is not None:
        return check_count("n_threads", n_threads)
    setting = os.environ.get("K2MEANS_NUM_THREADS", "").strip()
    if not setting:
        return int(joblib.cpu_count())
    if not setting.isdecimal() or int(setting) < 1:
        raise ValueError(f"K2MEANS_NUM_THREADS must be an integer of at least 1, got {setting!r}")
    return int(setting)


# ---- working coordinates -----------------------------------------------------------------------------------------


def prepare(
    x: NDArray[Any], weights: NDArray[np.float64] | None, n_threads: int, copy: bool = True, on_sphere: bool = False
) -> Data:
    """Look at all of x once: refuse what is not finite, move and scale it if the arithmetic needs that.

    `on_sphere`: x has rows of length 1, which stay where they are.
    """
    with np.errstate(all="ignore"):
        seen = look_at(x, weights, n_threads)
        mean, variance = seen.mean, seen.total / seen.weight
        reach = float(np.maximum(seen.high - mean, mean - seen.low).max())
        size = float(max(np.abs(seen.low).max(), np.abs(seen.high).max()))
        if not np.isfinite(reach * reach * x.shape[1] * seen.weight):
            if np.isfinite(reach * reach * x.shape[1] * len(x)):
                raise ValueError(f"sample_weight sums to {seen.weight:.3g}: energy overflows float64; scale it down")
            raise ValueError(f"X contains values up to {size:.3g}, whose squares overflow float64; rescale X")
        far = float(mean @ mean) > FAR * variance > 0 and not on_sphere
        smallest, largest = ROOM[x.dtype]
        odd = (reach if far else size) > largest or 0 < reach < smallest
        if not (far or odd):
            return Data(x, weights, seen, x, None, 1.0, variance, n_threads)
        scale = float(2.0 ** min(-np.floor(np.log2(reach)), np.finfo(x.dtype).maxexp - 3)) if odd and reach > 0 else 1.0
    # A round offset: taking it off loses no digits, and `restore` leaves no trace.
    grid = 2.0 ** np.floor(np.log2(variance / x.shape[1]) / 2 - 1) if far else np.inf
    offset = (np.rint(mean / grid) * grid * scale if far else np.zeros_like(mean)).astype(x.dtype)
    rows = np.multiply(x, x.dtype.type(scale), out=None if copy or not x.flags.writeable else x)
    rows -= offset
    data = Data(rows, weights, seen, x, offset, scale, variance, n_threads)
    try:
        return replace(data, survey=_core.survey(rows, weights, n_threads))
    except BaseException:
        restore(data)
        raise


def restore(data: Data) -> None:
    """Undo `prepare(copy=False)`."""
    if data.rows is data.original and data.offset is not None:
        rows = data.rows
        rows += data.offset
        rows /= rows.dtype.type(data.scale)


# ---- the work ----------------------------------------------------------------------------------------------------


def solve(
    data: Data,
    k: int,
    method: Method,
    init: Init,
    stop: Stop,
    rng: np.random.Generator,
    on_step: OnStep | None = None,
    *,
    finish: Literal["as moved", "settle", "exact", "certify"] = "as moved",
    unit_centers: bool = False,
    started: float | None = None,
    keeper: Keeper | None = None,
    phase: Callable[[str], None] = lambda name: None,
) -> Result:
    """Seed, bind, run. `finish`: whether one more assignment follows the last move, by the method or over all centers;
    "certify": none, but the labels are tested.

    A data set prepared in place is restored, also after an error. A keeper saves the state and knows a saved one;
    `phase` is told what begins: "seed", "iterate", "polish".
    """
    try:
        phase("seed")
        saved = keeper.saved if keeper is not None else None
        if stop.seconds is not None and started is not None and keeper is None:  # what is kept must go on as if not cut
            data = replace(data, deadline=started + stop.seconds)
        start = init(data, k, rng) if saved is None else saved.start
        if unit_centers and saved is None:
            start = replace(start, centers=scaled_to_unit(start.centers))
        problem = Problem(
            data.rows,
            data.weights,
            data.survey,
            start.centers,
            start.labels,
            data.n_threads,
            seed=random_key(rng),
            tol=stop.tol * data.scale * data.scale,
            mode=start.mode,
            known=start.known,
            sketch=data.short_sketch,
            unit=unit_centers,
        )
        engine = method.bind(problem)
        phase("iterate")
        trace = run(
            engine,
            stop,
            on_step,
            unit=data.scale**-2,
            started=started,
            before=() if saved is None else saved.trace,
            save=None if keeper is None else lambda trace: keeper.save(engine, start, trace),
        )
        if keeper is not None and trace[-1].shift > stop.tol:  # not converged: more iterations may be wanted later
            keeper.save(engine, start, trace, last=True)
        phase("polish")
        last, certified = (0, 0, 0, 0.0), float("nan")
        if finish == "settle":
            last = engine.settle()[2]
        elif finish == "exact" and isinstance(method, Sketched) and data.offset is None:
            last, finish, certified = engine.settle(afresh=True)[2], "settle", 1.0  # over all centers, and fast
        elif finish == "certify":
            certified = engine.certify() / len(data.rows)
        labels, moved_centers = engine.labels(), engine.centers()
    finally:
        restore(data)
    centers = data.to_original(moved_centers)
    if finish == "exact":
        labels = nearest(data.original, centers, data.n_threads, data.scale)
        last, certified = (labels.size * k, 0, 0, 0.0), 1.0
    found = len(np.unique(labels))
    if found < k:
        warnings.warn(
            f"Number of distinct clusters ({found}) found smaller than n_clusters ({k}). "
            "Possibly due to duplicate points in X.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Result(
        centers=centers,
        labels=labels,
        energy=energy(data.original, data.weights, centers, labels, data.n_threads),
        n_iter=len(trace),
        trace=tuple(trace),
        init_ops=start.ops,
        ops=sum((r.ops for r in trace), start.ops + Ops(*last)),
        converged=trace[-1].shift <= stop.tol,
        certified=certified,
    )


def with_absent_rows(result: Result, x: NDArray[Any], present: NDArray[np.bool_], n_threads: int) -> Result:
    """Labels for all rows of x, given a result for those present."""
    absent = x[~present]
    extent = float(max(np.abs(absent).max(), np.abs(result.centers).max()))
    labels = np.empty(len(x), dtype=np.int32)
    labels[present] = result.labels
    labels[~present] = nearest(absent, result.centers, n_threads, unit_for(extent, x.dtype))
    return Result(**{**vars(result), "labels": labels})

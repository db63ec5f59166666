"""`k2means demo`: two data sets, K2Means beside scikit-learn's KMeans in the same run, a table and a picture."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from .estimator import K2Means
from .measure import energy, nearest

MAX_ITER = 100
SEED = 0


@dataclass(frozen=True)
class Case:
    name: str
    x: NDArray[np.float32]
    k: int


@dataclass(frozen=True)
class Outcome:
    """One method on one data set. `curve`: seconds since the start and the energy there."""

    case: Case
    method: str
    seconds: float
    energy: float
    iterations: int
    operations: float
    centers: NDArray[Any]
    curve: Sequence[tuple[float, float]]


def cases(quick: bool) -> list[Case]:
    digits = load_digits().data.astype(np.float32)
    n, k = (12_000, 200) if quick else (60_000, 500)
    return [Case("digits", digits, 100), Case("mixture", mixture(n, 64), k)]


def mixture(n: int, d: int) -> NDArray[np.float32]:
    """Gaussians in Gaussians: 50 groups of 40 clusters each, for data has structure at more than one scale."""
    groups, _ = make_blobs(2000, d, centers=50, cluster_std=3.0, random_state=SEED)
    x, _ = make_blobs(n, d, centers=groups, cluster_std=1.5, random_state=SEED)
    return np.ascontiguousarray(x, dtype=np.float32)


def compare(chosen: Sequence[Case], n_threads: int) -> Iterator[Outcome]:
    """Both methods with the same k, iterations, tolerance and threads."""
    warm = chosen[0].x[:200]
    for fit in (fit_ours, fit_theirs):  # what is only done once must not be timed
        fit(Case("warm-up", warm, 2), n_threads)
    for case in chosen:
        yield fit_ours(case, n_threads)
        yield fit_theirs(case, n_threads)


def fit_ours(case: Case, n_threads: int) -> Outcome:
    model = K2Means(case.k, max_iter=MAX_ITER, random_state=SEED, n_threads=n_threads)
    begin = time.perf_counter()
    model.fit(case.x)
    seconds = time.perf_counter() - begin
    # Initialisation and last pass are not in the trace: the curve counts them before the iterations.
    ends = seconds - sum(r.seconds for r in model.trace_) + np.cumsum([r.seconds for r in model.trace_])
    curve = [*((float(end), r.energy) for end, r in zip(ends, model.trace_, strict=True)), (seconds, model.inertia_)]
    return Outcome(
        case, "K2Means", seconds, model.inertia_, model.n_iter_, model.ops_.total, model.cluster_centers_, curve
    )


def fit_theirs(case: Case, n_threads: int) -> Outcome:
    model = KMeans(case.k, init="k-means++", n_init=1, max_iter=MAX_ITER, random_state=SEED)
    with threadpool_limits(limits=n_threads):
        begin = time.perf_counter()
        model.fit(case.x)
        seconds = time.perf_counter() - begin
    # It does not count; its code does: k-means++ with 2 + ln(k) trials, then each pass over all centers and one move.
    n, trials = len(case.x), 2 + int(np.log(case.k))
    operations = n * (case.k * trials + model.n_iter_ * (case.k + 1) + case.k)
    found = float(model.inertia_)
    return Outcome(
        case, "KMeans", seconds, found, model.n_iter_, operations, model.cluster_centers_, [(seconds, found)]
    )


def fit_faiss(case: Case, n_threads: int) -> Outcome:
    """faiss on all rows, with its 25 iterations from random rows. Its energy is measured by us: it sums in float."""
    import faiss

    faiss.omp_set_num_threads(n_threads)
    model = faiss.Kmeans(case.x.shape[1], case.k, seed=SEED, max_points_per_centroid=len(case.x), gpu=False)
    begin = time.perf_counter()
    model.train(case.x)
    seconds = time.perf_counter() - begin
    centers = np.ascontiguousarray(model.centroids)
    labels = nearest(case.x, centers, n_threads, 1.0)
    found = energy(case.x, None, centers, labels, n_threads)
    iterations = len(model.obj)  # one objective for each
    operations = len(case.x) * iterations * (case.k + 1)
    return Outcome(case, "faiss", seconds, found, iterations, operations, centers, [(seconds, found)])


def compare_peers(case: Case, n_threads: int) -> Iterator[Outcome]:
    """Ours first, then scikit-learn's KMeans and what else is installed."""
    fits = [fit_ours, fit_theirs]
    if importlib.util.find_spec("faiss") is not None:
        fits.append(fit_faiss)
    for fit in fits:
        fit(Case("warm-up", case.x[:200], min(2, len(case.x))), n_threads)
        yield fit(case, n_threads)


# ---- what the user sees ------------------------------------------------------------------------------------------


HEADER = f"{'data':<26}{'method':<10}{'seconds':>9}{'energy':>14}{'iterations':>12}{'operations':>12}"


def line(o: Outcome) -> str:
    n, d = o.case.x.shape
    data = f"{o.case.name} {n}×{d} k={o.case.k}"
    return f"{data:<26}{o.method:<10}{o.seconds:>9.3f}{o.energy:>14.6g}{o.iterations:>12}{o.operations:>12.3g}"


def versus(ours: Outcome, theirs: Outcome) -> str:
    """What the numbers say, whoever wins."""
    ratio, gap = theirs.seconds / ours.seconds, 100 * (ours.energy / theirs.energy - 1)
    speed = f"{ratio:.1f} times faster" if ratio >= 1 else f"{1 / ratio:.1f} times slower"
    return f"{speed}, energy {abs(gap):.2g} % {'lower' if gap < 0 else 'higher'}"


def conclusion(outcomes: Sequence[Outcome]) -> str:
    pairs = zip(outcomes[::2], outcomes[1::2], strict=True)
    return f"K2Means beside KMeans: {'; '.join(f'{a.case.name}: {versus(a, b)}' for a, b in pairs)}."


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """The centers of the digits as images, and the energy over the seconds for each data set."""
    from matplotlib.figure import Figure  # optional: the extra `plot`

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    images, *charts = figure.subplots(1, 1 + len(outcomes) // 2)
    digits = outcomes[0]
    side = int(np.ceil(np.sqrt(digits.case.k)))
    tiles = np.zeros((side * side, 10, 10))  # 8×8 pixels and a margin
    tiles[: digits.case.k, 1:-1, 1:-1] = digits.centers.reshape(-1, 8, 8)
    images.imshow(tiles.reshape(side, side, 10, 10).swapaxes(1, 2).reshape(10 * side, 10 * side), cmap="gray_r")
    images.set_title(f"{digits.case.k} centers of the digits")
    images.set_axis_off()
    for chart, ours, theirs in zip(charts, outcomes[::2], outcomes[1::2], strict=True):
        chart.plot(*zip(*ours.curve, strict=True), ".-", label="K2Means, each iteration")
        chart.plot(theirs.seconds, theirs.energy, "o", color="tab:orange", label="KMeans, its end")
        chart.axhline(theirs.energy, color="tab:orange", linewidth=0.8, linestyle="--")
        chart.set_xlim(left=0)
        chart.set_title(line(ours).split("K2Means")[0].strip())
        chart.set_xlabel("seconds")
        chart.set_ylabel("energy")
        chart.legend()
    figure.savefig(path, format="png", dpi=110)


def unused(path: Path) -> Path:
    """The path itself, or with a number if there is such a file."""
    number, free = 2, path
    while free.exists():
        free = path.with_stem(f"{path.stem}-{number}")
        number += 1
    return free

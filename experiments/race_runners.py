"""The runners of the race: ours and every peer, each with its own way to tell how far it is and when.

All begin from float32 rows in memory and end with centers. What a runner says about its energy is only used to find the
iterations worth measuring: the energy that counts is measured by `race.energy_of`, the same for everybody.
"""

from __future__ import annotations

import importlib
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from k2means import GDI, K2, K2Means, Sketched, Stop, cluster

Centers = NDArray[np.float32]
Enough = Callable[[float, float], bool]  # (seconds, energy as reported): may it stop?

# What `K2Means` does with algorithm="auto", as parts of `cluster`, so that every iteration can be timed.
AUTO_METHOD: Any = Sketched()
AUTO_INIT: Any = GDI(exact=False, early=30)
TOL = 1e-4  # of K2Means, relative to the mean variance of the features

MAX_ITER = 100
ELKAN_BYTES = 4 << 30  # of bounds, n·k floats
SAMPLE_K = 16  # centers of the k-means++ by which the whole one is forecast
SEEDING = "its k-means++ alone"
SHORT = 2048  # values, of rows that are turned in no time


class Gap(Exception):
    """Why a runner has no numbers in a row."""


@dataclass(frozen=True)
class Problem:
    x: NDArray[np.float32]
    k: int
    seed: int
    threads: int
    budget: float  # seconds for one run
    tol: float = 0.0  # absolute, of ours

    @classmethod
    def of(cls, x: NDArray[np.float32], k: int, seed: int, threads: int, budget: float) -> Problem:
        return cls(x, k, seed, threads, budget, TOL * float(np.mean(x.var(axis=0, dtype=np.float64))))


@dataclass
class Run:
    """One timed call. `stamps[t - 1]` is when the centers of iteration t were there; `reported[t]` is what the runner
    says of their energy, 0 being the start; `centers` None: stopped on the way. `start`: the centers before the first
    iteration, and when they were there."""

    centers: Centers | None
    seconds: float
    iterations: int
    init: float | None = None
    stamps: list[float] | None = None
    reported: dict[int, float] = field(default_factory=dict)
    start: tuple[float, Centers] | None = None
    labels: float | None = None  # seconds of a pass over the labels that the call makes after its centers


class Runner:
    """What the race needs of a contestant."""

    ours = False
    stops = False  # it can be stopped on the way
    counts: tuple[int, ...] | None = None  # the only iteration counts it is run for; (1,): a single point
    package = module = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def config(self, p: Problem) -> str:
        """What makes two runs the same run."""
        raise NotImplementedError

    def require(self, p: Problem) -> None:
        """Raise Gap if it cannot take part in this row."""
        try:
            version(self.package)
        except PackageNotFoundError:
            raise Gap(f"{self.package} is not installed") from None

    def fit(self, p: Problem, iterations: int, enough: Enough | None = None) -> Run:
        raise NotImplementedError

    def more(self, p: Problem, centers: Centers, iterations: int) -> Run | None:
        """So many iterations more, from these centers, for measuring energies only. None: it has no warm start."""
        return None

    def label(self, p: Problem, centers: Centers) -> None:
        """Its own pass over all rows, for the labels."""
        raise Gap("no such pass")


def peer(module: str) -> Any:
    return importlib.import_module(module)


@contextmanager
def clock() -> Iterator[Callable[[], float]]:
    """Seconds since the start; frozen at the end."""
    start, end = time.perf_counter(), 0.0
    yield lambda: (end or time.perf_counter()) - start
    end = time.perf_counter()


def fit_seconds(model: Any, x: NDArray[np.float32]) -> float:
    """How long a fit takes; its warnings, such as that it did not converge, are not shown."""
    with warnings.catch_warnings(), clock() as elapsed:
        warnings.simplefilter("ignore")
        model.fit(x)
    return elapsed()


# ---- ours --------------------------------------------------------------------------------------------------------


@dataclass
class Watched:
    """An initialisation that keeps what it gave, and when."""

    init: Any
    elapsed: Callable[[], float]
    gave: tuple[float, Any, Any] | None = None

    def __call__(self, data: Any, k: int, rng: np.random.Generator) -> Any:
        start = self.init(data, k, rng)
        self.gave = self.elapsed(), data, start
        return start

    def start(self) -> tuple[float, Centers]:
        assert self.gave is not None
        seconds, data, start = self.gave
        return seconds, data.to_original(start.centers)


class Ours(Runner):
    """`cluster` with stated parts. The energy of its trace pairs labels with centers that moved since: a bound."""

    ours, stops, package, module = True, True, "k2means", "k2means"

    def __init__(self, name: str, method: Any, init: Any, seconds: float | None = None) -> None:
        super().__init__(name)
        self.method, self.init, self.seconds = method, init, seconds

    def config(self, p: Problem) -> str:
        limit = "" if self.seconds is None else f", seconds={self.seconds:g}"
        return f"cluster(X, {p.k}, method={self.method}, init={self.init}, tol={TOL} of the variance{limit})"

    def require(self, p: Problem) -> None:
        return

    def fit(self, p: Problem, iterations: int, enough: Enough | None = None) -> Run:
        run = Run(None, 0.0, 0, stamps=[])
        assert run.stamps is not None

        def on_step(record: Any) -> bool:
            now = elapsed()
            run.stamps.append(now)  # type: ignore[union-attr]
            run.reported[len(run.reported) + 1] = record.energy
            if run.init is None:
                run.init = now - record.seconds
            return enough is not None and enough(now, record.energy)

        stop = Stop(max_iter=iterations, tol=p.tol, seconds=self.seconds)
        with clock() as elapsed:
            watched = Watched(self.init, elapsed)
            result = cluster(
                p.x, p.k, method=self.method, init=watched, stop=stop, seed=p.seed, n_threads=p.threads,
                on_step=on_step,
            )  # fmt: skip
        run.centers, run.seconds, run.iterations = result.centers, elapsed(), result.n_iter
        run.start = watched.start()
        return run

    def label(self, p: Problem, centers: Centers) -> None:
        fitted(p, centers).predict(p.x)


class OurDefault(Runner):
    """`K2Means` as shipped, its last pass over the labels included."""

    ours, counts, package, module = True, (1,), "k2means", "k2means"

    def config(self, p: Problem) -> str:
        return f"K2Means(n_clusters={p.k})"

    def require(self, p: Problem) -> None:
        return

    def fit(self, p: Problem, iterations: int, enough: Enough | None = None) -> Run:
        with clock() as elapsed:
            model = K2Means(n_clusters=p.k, random_state=p.seed, n_threads=p.threads).fit(p.x)
        return Run(model.cluster_centers_, elapsed(), model.n_iter_)


def fitted(p: Problem, centers: Centers) -> K2Means:
    """An estimator with these centers: its `score` and `predict` are one exact pass."""
    model = K2Means(n_clusters=len(centers), n_threads=p.threads)
    model.cluster_centers_ = np.ascontiguousarray(centers, dtype=np.float32)
    model.n_features_in_ = p.x.shape[1]
    return model


# ---- faiss -------------------------------------------------------------------------------------------------------


class Faiss(Runner):
    """faiss.Kmeans or faiss.SuperKmeans, with the seconds that it tells: of Kmeans running sums, initialisation
    included; of SuperKmeans each iteration's own, so what is missing of the wall-clock came before. Its objective of
    iteration t, from 0, is that of the centers after t updates."""

    package, module = "faiss-cpu", "faiss"

    def __init__(self, name: str, kind: str = "Kmeans", init: str = "RANDOM", shipped: bool = False) -> None:
        super().__init__(name)
        self.kind, self.init, self.shipped = kind, init, shipped
        self.counts = (25,) if shipped else None  # its default niter

    def options(self, iterations: int, p: Problem) -> dict[str, Any]:
        out: dict[str, Any] = {"niter": iterations}
        if self.shipped:
            return out
        out |= {
            "seed": p.seed + 1,
            "min_points_per_centroid": 1,
            "max_points_per_centroid": 10**9,
        }
        if self.kind == "Kmeans":
            out["init_method"] = getattr(peer("faiss"), f"ClusteringInitMethod_{self.init}")
        return out

    def config(self, p: Problem) -> str:
        return f"faiss.{self.kind}(d, {p.k}, {'shipped defaults' if self.shipped else f'all rows, init {self.init}'})"

    def require(self, p: Problem) -> None:
        super().require(p)
        if self.init == "KMEANS_PLUS_PLUS" and p.k > SAMPLE_K:
            require_budget(p, SEEDING, lambda: self._train(p, SAMPLE_K, 0), p.k / SAMPLE_K)
        if self.kind == "SuperKmeans" and p.x.shape[1] > SHORT:
            few = replace(p, x=np.ascontiguousarray(p.x[:64, :SHORT]))
            require_budget(p, "to turn its rows", lambda: self._train(few, 2, 1), (p.x.shape[1] / SHORT) ** 3)
        if self.shipped:
            require_iterations(p, 25, lambda iterations: self._train(p, p.k, iterations))

    def _train(self, p: Problem, k: int, iterations: int, centers: Centers | None = None) -> Any:
        faiss = peer("faiss")
        faiss.omp_set_num_threads(p.threads)
        model = getattr(faiss, self.kind)(p.x.shape[1], k, **self.options(iterations, p))
        if centers is None:
            model.train(p.x)
        else:
            model.train(p.x, init_centroids=np.ascontiguousarray(centers, dtype=np.float32))
        return model

    def fit(self, p: Problem, iterations: int, enough: Enough | None = None) -> Run:
        run = self._run(p, iterations)
        if self.shipped:
            run.stamps, run.reported = None, {}
        return run

    def _run(self, p: Problem, iterations: int, centers: Centers | None = None) -> Run:
        with clock() as elapsed:
            model = self._train(p, p.k, iterations, centers)
        run = Run(model.centroids, elapsed(), len(model.obj))
        run.stamps = [float(s["time"]) for s in model.iteration_stats]
        if self.kind == "SuperKmeans":
            sums = np.cumsum(run.stamps)
            run.stamps = (sums + max(0.0, run.seconds - sums[-1])).tolist()
        run.reported = {t: float(e) for t, e in enumerate(model.obj)}
        if len(run.stamps) > 1:  # the first iteration is as long as the second, but for the initialisation
            run.init = max(0.0, 2 * run.stamps[0] - run.stamps[1])
        return run

    def more(self, p: Problem, centers: Centers, iterations: int) -> Run | None:
        return self._run(p, iterations, centers) if self.kind == "Kmeans" and not self.shipped else None

    def label(self, p: Problem, centers: Centers) -> None:
        peer("faiss").knn(p.x, np.ascontiguousarray(centers, dtype=np.float32), 1)


def require_budget(p: Problem, what: str, sample: Callable[[], object], times: float) -> None:
    """Of what cannot be stopped on the way: a part of it tells how long all of it would take."""
    with clock() as elapsed:
        sample()
    require_seconds(p, what, elapsed() * times)


def require_iterations(p: Problem, most: int, fit: Callable[[int], object]) -> None:
    """The same, for so many iterations: by a few of them."""
    fit(1)  # what happens only once in a process is not to be counted for each
    seconds = []
    for iterations in (1, 3):
        with clock() as elapsed:
            fit(iterations)
        seconds.append(elapsed())
    require_seconds(p, f"{most} iterations", seconds[0] + (most - 1) * max(0.0, seconds[1] - seconds[0]) / 2)


def require_seconds(p: Problem, what: str, seconds: float) -> None:
    if seconds > p.budget:
        raise Gap(f"{what} would take about {seconds:.0f} s, the budget is {p.budget:g} s")


# ---- superkmeans -------------------------------------------------------------------------------------------------


class Super(Runner):
    """The superkmeans package. No clock of its own and no warm start: every iteration count is a run."""

    package = module = "superkmeans"

    def __init__(self, name: str, hierarchical: bool = False, shipped: bool = False) -> None:
        super().__init__(name)
        self.hierarchical, self.shipped = hierarchical, shipped
        refinements = (*range(9), 12, 16, 24, 32, 48, 64, 100)
        self.counts = (10,) if shipped else refinements if hierarchical else None

    def config(self, p: Problem) -> str:
        if self.shipped:
            return f"SuperKMeans({p.k}, d, shipped defaults)"
        refined = f"hierarchical=True, up to {self.counts[-1]} refinements" if self.counts else "hierarchical=False"
        return f"SuperKMeans({p.k}, d, {refined}, all rows, no early termination)"

    def fit(self, p: Problem, iterations: int, enough: Enough | None = None) -> Run:
        options: dict[str, Any] = {"n_threads": p.threads}
        if not self.shipped:
            options |= {
                "hierarchical": self.hierarchical,
                "iters_refinement" if self.hierarchical else "iters": iterations,
                "sampling_fraction": 1.0,
                "max_points_per_cluster": 10**9,
                "early_termination": False,
                "seed": p.seed + 1,
            }
        make = peer("superkmeans").SuperKMeans
        with clock() as elapsed:
            model = make(p.k, p.x.shape[1], **options)
            centers = model.train(p.x)
        run = Run(np.array(centers), elapsed(), iterations)
        if self.counts is None:
            run.reported = {t: float(s.objective) for t, s in enumerate(model.iteration_stats)}
        return run

    def label(self, p: Problem, centers: Centers) -> None:
        model = peer("superkmeans").SuperKMeans(p.k, p.x.shape[1], n_threads=p.threads)
        model.assign(p.x, np.ascontiguousarray(centers, dtype=np.float32))


# ---- scikit-learn ------------------------------------------------------------------------------------------------


def require_seeding(p: Problem, rows: NDArray[np.float32]) -> None:
    """Its k-means++ of these rows must be within the budget."""
    seed, few = peer("sklearn.cluster").kmeans_plusplus, min(SAMPLE_K, p.k)
    trials = 2 + int(np.log(p.k))  # as many as for all of k
    require_budget(p, SEEDING, lambda: seed(rows, few, random_state=0, n_local_trials=trials), p.k / few)


class _Enough(Exception):
    pass


class _Listener:
    """Reads what a verbose KMeans prints. Iteration i is printed when the centers after i + 1 updates are there, with
    the energy of those before; measuring it is one distance a row, beside k of them."""

    def __init__(self, elapsed: Callable[[], float], enough: Enough | None) -> None:
        self.elapsed, self.enough = elapsed, enough
        self.run = Run(None, 0.0, 0, stamps=[])

    def write(self, text: str) -> int:
        run, now = self.run, self.elapsed()
        if text.startswith("Initialization complete"):
            run.init = now
        if found := re.match(r"Iteration (\d+), inertia ([\d.e+]+?)\.?$", text.strip()):
            t, energy = int(found[1]), float(found[2])
            if run.stamps is not None:
                run.stamps.append(now)
            run.reported[t] = energy
            run.iterations = t + 1
            if self.enough is not None and self.enough(now, energy):
                raise _Enough
        return len(text)

    def flush(self) -> None:
        return


class Sklearn(Runner):
    """scikit-learn's KMeans: one call, its prints are the stamps. After the last one it makes a pass for the labels."""

    package, module = "scikit-learn", "sklearn.cluster"

    def __init__(self, name: str, init: str = "k-means++", algorithm: str = "lloyd", shipped: bool = False) -> None:
        super().__init__(name)
        self.init, self.algorithm, self.shipped = init, algorithm, shipped
        self.counts = (300,) if shipped else None
        self.stops = not shipped

    def config(self, p: Problem) -> str:
        what = "shipped defaults" if self.shipped else f"init={self.init!r}, algorithm={self.algorithm!r}, tol=0"
        return f"KMeans({p.k}, {what})"

    def require(self, p: Problem) -> None:
        super().require(p)
        if self.algorithm == "elkan" and 4 * len(p.x) * p.k > ELKAN_BYTES:
            raise Gap(f"its n·k bounds need {4e-9 * len(p.x) * p.k:.0f} GB")
        if self.init == "k-means++":
            require_seeding(p, p.x)

    def model(self, p: Problem, iterations: int, init: Any, verbose: int = 0) -> Any:
        options: dict[str, Any] = {}
        if not self.shipped:
            options = {"init": init, "n_init": 1, "max_iter": iterations, "tol": 0.0, "algorithm": self.algorithm}
        return peer("sklearn.cluster").KMeans(p.k, random_state=p.seed, verbose=verbose, **options)

    def fit(self, p: Problem, iterations: int, enough: Enough | None = None) -> Run:
        model = self.model(p, iterations, self.init, verbose=1)
        if self.shipped:  # it may need 300 iterations
            enough = lambda seconds, energy: seconds > p.budget  # noqa: E731
        centers: Centers | None = None
        with clock() as elapsed:
            heard = _Listener(elapsed, enough)
            with warnings.catch_warnings(), redirect_stdout(heard):
                warnings.simplefilter("ignore")
                with suppress(_Enough):
                    centers = model.fit(p.x).cluster_centers_
        run = heard.run
        run.centers, run.seconds = centers, elapsed()
        if centers is not None and run.stamps:
            run.labels = run.seconds - run.stamps[-1]
        if self.shipped:
            if centers is None:
                raise Gap(f"over the budget of {p.budget:g} s")
            run.stamps, run.reported = None, {}
        return run

    def more(self, p: Problem, centers: Centers, iterations: int) -> Run | None:
        if self.shipped:
            return None
        model = self.model(p, iterations, centers)
        seconds = fit_seconds(model, p.x)
        return Run(model.cluster_centers_, seconds, int(model.n_iter_))


class Intelex(Sklearn):
    """scikit-learn-intelex. It prints nothing: runs of several iteration counts, each with its pass for the labels."""

    package, module = "scikit-learn-intelex", "sklearnex.cluster"

    def __init__(self, name: str, init: str = "k-means++", shipped: bool = False) -> None:
        super().__init__(name, init, shipped=shipped)
        self.stops = False

    def model(self, p: Problem, iterations: int, init: Any, verbose: int = 0) -> Any:
        options: dict[str, Any] = {}
        if not self.shipped:
            options = {"init": init, "n_init": 1, "max_iter": iterations, "tol": 0.0}
        return peer("sklearnex.cluster").KMeans(p.k, random_state=p.seed, n_jobs=p.threads, **options)

    def config(self, p: Problem) -> str:
        return "sklearnex " + super().config(p)

    def require(self, p: Problem) -> None:
        Runner.require(self, p)
        if self.init == "k-means++":
            few = min(p.k, SAMPLE_K)
            fit = peer("sklearnex.cluster").KMeans(few, max_iter=1, n_init=1, n_jobs=p.threads).fit
            require_budget(p, SEEDING, lambda: fit(p.x), p.k / few)
        if self.shipped:
            most = 300
            require_iterations(p, most, lambda t: fit_seconds(self.model(p, 0, None).set_params(max_iter=t), p.x))

    def fit(self, p: Problem, iterations: int, enough: Enough | None = None) -> Run:
        model = self.model(p, iterations, self.init)
        seconds = fit_seconds(model, p.x)
        return Run(model.cluster_centers_, seconds, int(model.n_iter_))


class MiniBatch(Runner):
    """scikit-learn's MiniBatchKMeans: a run for every number of passes over the data."""

    package, module = "scikit-learn", "sklearn.cluster"

    def __init__(self, name: str, shipped: bool = False) -> None:
        super().__init__(name)
        self.shipped = shipped
        self.counts = (100,) if shipped else (1, 2, 4, 8, 16, 32, 64)

    @staticmethod
    def batch(p: Problem) -> int:
        return min(max(4096, 2 * p.k), len(p.x) // 2)

    def config(self, p: Problem) -> str:
        large = f"batch_size={self.batch(p)}, no early stop, no pass for the labels"
        return f"MiniBatchKMeans({p.k}, {'shipped defaults' if self.shipped else large})"

    def require(self, p: Problem) -> None:
        super().require(p)
        batch = 1024 if self.shipped else self.batch(p)
        require_seeding(p, p.x[: 3 * max(batch, p.k)])  # as many as it begins with

    def fit(self, p: Problem, iterations: int, enough: Enough | None = None) -> Run:
        options: dict[str, Any] = {}
        if not self.shipped:
            options = {
                "batch_size": self.batch(p),
                "max_iter": iterations,
                "max_no_improvement": None,
                "compute_labels": False,
            }
        model = peer("sklearn.cluster").MiniBatchKMeans(p.k, random_state=p.seed, **options)
        seconds = fit_seconds(model, p.x)
        return Run(model.cluster_centers_, seconds, iterations)


class Bisecting(Runner):
    """scikit-learn's BisectingKMeans: one point."""

    package, module, counts = "scikit-learn", "sklearn.cluster", (1,)

    def __init__(self, name: str, shipped: bool = False) -> None:
        super().__init__(name)
        self.options: dict[str, Any] = {} if shipped else {"init": "k-means++"}

    def config(self, p: Problem) -> str:
        return f"BisectingKMeans({p.k}, {self.options or 'shipped defaults'})"

    def require(self, p: Problem) -> None:
        """Every level of its tree has all rows; there are log2(k), at least."""
        super().require(p)
        few = min(SAMPLE_K, p.k)
        require_budget(p, "its tree", lambda: self.model(p, few).fit(p.x), float(np.log2(p.k) / np.log2(few)))

    def model(self, p: Problem, k: int) -> Any:
        return peer("sklearn.cluster").BisectingKMeans(k, random_state=p.seed, **self.options)

    def fit(self, p: Problem, iterations: int, enough: Enough | None = None) -> Run:
        model = self.model(p, p.k)
        seconds = fit_seconds(model, p.x)
        return Run(model.cluster_centers_, seconds, 1)


OUR_RUNNER, GDI_ALONE = "k2means", "k2means no early"  # the second: its initialisation is GDI and nothing more
HURRIED = "k2means max_time"  # what there is when it is told to stop at once: GDI, one early and one real iteration
RUNNERS: dict[str, Runner] = {
    runner.name: runner
    for runner in (
        Ours(OUR_RUNNER, AUTO_METHOD, AUTO_INIT),
        Ours(GDI_ALONE, AUTO_METHOD, GDI(exact=False)),
        Ours(HURRIED, AUTO_METHOD, AUTO_INIT, seconds=1e-9),
        Ours("k2means paper", K2(30), GDI()),
        OurDefault("k2means default"),
        Faiss("faiss"),
        Faiss("faiss k-means++", init="KMEANS_PLUS_PLUS"),
        Faiss("faiss afk-mc2", init="AFK_MC2"),
        Faiss("faiss default", shipped=True),
        Faiss("faiss super", "SuperKmeans"),
        Faiss("faiss super default", "SuperKmeans", shipped=True),
        Super("superkmeans"),
        Super("superkmeans hierarchical", hierarchical=True),
        Super("superkmeans default", shipped=True),
        Sklearn("scikit-learn"),
        Sklearn("scikit-learn random", init="random"),
        Sklearn("scikit-learn elkan", init="random", algorithm="elkan"),
        Sklearn("scikit-learn default", shipped=True),
        MiniBatch("minibatch"),
        MiniBatch("minibatch default", shipped=True),
        Bisecting("bisecting"),
        Bisecting("bisecting default", shipped=True),
        Intelex("intelex"),
        Intelex("intelex random", init="random"),
        Intelex("intelex default", shipped=True),
    )
}

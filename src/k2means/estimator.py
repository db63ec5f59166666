"""`K2Means`, the scikit-learn surface over the pieces of `cluster`."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .approximate import NearestCenters, several_approximately
from .capped import capped_memory, check_cap, with_cap
from .checkpoint import Keeper
from .checks import check_count, check_share
from .cluster import (
    check_request,
    check_rows,
    check_weights,
    is_borrowed,
    look_at,
    prepare,
    present_rows,
    resolve_threads,
    solve,
    with_absent_rows,
)
from .initialize import FAST, GDI, NAMED, Given, Init, PlusPlus, Random
from .interrupt import Interruption
from .loop import OnStep, Ops, Record, Result, Stop
from .measure import distances, energy, nearest, several, squares, unit_for, unit_rows
from .memory import require_bytes, require_memory
from .methods import K2, Elkan, Lloyd, Method, Sketched
from .progress import both, reporter


class K2Means(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """k-means for many clusters: k²-means behind the interface of scikit-learn's `KMeans`.

    A row looks only at the centers near its own center, and most of those are passed by without a distance. The same
    `random_state` gives the same bits for any number of threads.

    Parameters
    ----------
    n_clusters : int, default=8
        At most the number of rows.
    n_neighbors : int or "auto", default="auto"
        The centers near its own that a row considers: more is slower and more accurate. With `algorithm` "k2" the
        result at `n_clusters` and above is Lloyd's; "lloyd" and "elkan" do not heed it. "auto" is about 5 log2 of
        `n_clusters` with "k2"; with "auto", from 129 clusters on, it is the 8 centers on a list of the row's own.
    init : {"gdi", "k-means++", "random"}, array of shape (n_clusters, n_features) or callable, default="gdi"
        "gdi" splits the data greedily in two until there are enough clusters; "k-means++" draws rows by their squared
        distance to those drawn before; "random" draws rows. A callable is called as
        `init(X, n_clusters, random_state=...)` and returns an array. `GDI(...)`, `PlusPlus(...)`, `Random()` of this
        package are taken too, and a fitted `K2Means`, whose centers are gone on with.
    n_init : int or "auto", default="auto"
        Runs from different starts, of which the one of least energy is kept. "auto" is 1.
    max_iter : int, default=100
    tol : float, default=1e-4
        Stop when the sum of the squared movements of the centers is at most `tol` times the mean variance of the
        features, as in scikit-learn. 0: when no center moves.
    algorithm : {"auto", "k2", "lloyd", "elkan"}, default="auto"
        "auto" is the fastest known here, `Sketched` (docs/sketched.md): it ends with every row at the nearest of all
        centers, so that `labels_` is what `predict(X)` gives. "k2" is the paper's algorithm, exactly: also its last
        assignment is over neighbourhoods, so `labels_` may differ from `predict(X)`. "lloyd" looks at all centers;
        "elkan" gives the same for fewer distances and n_samples × n_clusters bounds in memory.
    random_state : int, RandomState or None, default=None
    n_threads : int or None, default=None
        None: `K2MEANS_NUM_THREADS` if set, else all cores the process may use.
    verbose : int, default=0
        1: a line per iteration to stderr; on a terminal or in a notebook a bar, if tqdm is installed.
    copy_x : bool, default=True
        False allows to work in X itself where the arithmetic needs its values moved (it is far from the origin, or of
        extreme size). X is restored at the end, but for rounding.

    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine": spherical k-means. Rows are scaled to length 1 (a copy), centers are directions of length 1, and a row
        goes to the center of largest cosine. `inertia_` is then 2 Σ (1 - cos). With `algorithm="auto"` only.
    max_time : float or None, default=None
        Seconds after which no iteration is begun; the model is that of the iterations done. The start counts, but is
        not cut short, and one iteration follows it.
    polish : {"exact", "certify", None}, default="exact"
        How `algorithm="auto"` ends. "exact": when no row would change among all centers, and with one pass over all of
        them, so that `labels_` is what `predict(X)` gives. "certify": when no row would change among the centers it
        considers; then the labels are tested, not changed. None: they are not tested either.
    max_cluster_size : int or None, default=None
        The most rows a cluster may have; at least n_samples / n_clusters. Rows that find no room go to other centers
        at nearly the least cost in all, and the centers follow (docs/sketched.md). So `labels_` may differ from
        `predict(X)`, which gives the nearest center. If no cluster is larger, the result is as without. Rows of
        weight 0 do not count, and go to their nearest centers. With `algorithm="auto"` only.
    keep_partial : bool, default=False
        True: Ctrl-C (or SIGTERM) during `fit` lets the iteration at hand end, finishes the fit from there and raises
        KeyboardInterrupt only then, so nothing is lost; a second one stops at once.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,), int32
    inertia_ : float
        The energy: the weighted sum of squared distances of the rows to the centers they are labelled with.
    n_iter_ : int
        Iterations of the run that was kept: each assigns the rows, then moves the centers.
    trace_ : tuple of Record
        One for each iteration of that run: `.energy .ops .moved .shift .seconds`.
    ops_ : Ops
        Vector operations of that run, with its initialisation and its last assignment: `.total` and its parts.
    certified_ : float
        The share of rows whose label is proven to be the nearest of all centers: 1 if `polish` is "exact" and after
        "lloyd" and "elkan"; NaN if it was not looked into. If clusters had to become smaller (`max_cluster_size`),
        the share of those that could stay at their nearest.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Rows in each cluster (of any weight).
    cluster_energies_ : ndarray of shape (n_clusters,)
        The part of `inertia_` in each.
    medoid_indices_ : ndarray of shape (n_clusters,)
        The row nearest to each center among those it won; -1 if it won none.
    neighbor_graph_ : tuple of ndarrays of shape (n_clusters, m)
        The up to 32 other centers nearest to each center and their distances; computed when asked for.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X has names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from k2means import K2Means
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = K2Means(n_clusters=2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        init: str | ArrayLike | Callable[..., ArrayLike] = "gdi",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        algorithm: Literal["auto", "k2", "lloyd", "elkan"] = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
        copy_x: bool = True,
        keep_partial: bool = False,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        max_time: float | None = None,
        polish: Literal["exact", "certify"] | None = "exact",
        max_cluster_size: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.copy_x = copy_x
        self.keep_partial = keep_partial
        self.metric = metric
        self.max_time = max_time
        self.polish = polish
        self.max_cluster_size = max_cluster_size

    # ---- fit ---------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> K2Means:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            float32 and float64 are used as they are; float16 and 8- and 16-bit integers become float32, other numbers
            float64.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight 0 counts as absent; it is given the label of its nearest center.

        Returns
        -------
        self
        """
        with Interruption() if self.keep_partial else nullcontext() as interruption:
            asked = (lambda: False) if interruption is None else (lambda: interruption.asked)
            self._fit(X, sample_weight, on_step=interruption, ending=asked)
        if interruption is not None and interruption.asked:
            raise KeyboardInterrupt(f"stopped after iteration {self.n_iter_}; the model is fitted as far as it went")
        return self

    def _fit(
        self,
        X: Any,
        sample_weight: ArrayLike | None,
        *,
        on_step: OnStep | None = None,
        keeper: Keeper | None = None,
        phase: Callable[[str], None] = lambda name: None,
        ending: Callable[[], bool] = lambda: False,
        force: bool = False,
    ) -> None:
        """`fit`, watched, as the command line needs it. `ending`: whether it was asked to end soon; `force`: also if
        the memory seems too small."""
        started = time.perf_counter()
        self._check_choices()
        x = self._rows(X, reset=True)
        if self.metric == "cosine":
            x = unit_rows(x)
        k, init, weights, present = check_request(x, self.n_clusters, self._init(), sample_weight, name="n_clusters")
        cap = self.max_cluster_size
        if cap is not None:
            check_cap(cap, k, len(x) if present is None else int(present.sum()))
        method = self._method()
        stop = Stop(max_iter=self.max_iter, tol=self.tol, seconds=self.max_time)
        runs = self._runs(init)
        if keeper is not None and runs > 1:
            raise ValueError(f"a checkpoint is of one run, n_init={runs}")
        threads = resolve_threads(self.n_threads)
        deadline = float("inf") if self.max_time is None else started + self.max_time

        def late() -> bool:
            return ending() or time.perf_counter() >= deadline

        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=runs)
        if not force:
            copies = (present is not None) + (self.metric == "cosine")
            require_memory(x, k, method, copies, later=self._later_memory(*x.shape))

        rows = x if present is None else present_rows(x, present, threads)
        copy = self.copy_x and is_borrowed(rows, X)
        best: Result | None = None
        for run, seed in enumerate(seeds, start=1):
            data = prepare(
                rows, weights, threads, copy=copy, on_sphere=self.metric == "cosine"
            )  # in place, it is undone by `solve`
            if keeper is not None:
                keeper.open(data, self._identity(k, method, int(seed)))
            result = solve(
                data,
                k,
                method,
                init,
                replace(stop, tol=stop.tol * data.variance / x.shape[1]),
                np.random.default_rng(seed),
                both(reporter(run, runs, self.max_iter) if self.verbose else None, on_step),
                finish=self._finish(),
                unit_centers=self.metric == "cosine",
                started=started,
                keeper=keeper,
                phase=phase,
            )
            if cap is not None:
                phase("cap")
                result = with_cap(result, data, cap, unit_centers=self.metric == "cosine", ending=late)
            del data  # at most one copy of X at a time
            if best is None or result.energy < best.energy:
                best = result
            if ending():
                break
        assert best is not None
        self._keep(best if present is None else with_absent_rows(best, x, present, threads), x, sample_weight)

    def _check_choices(self) -> None:
        if self.metric not in ("euclidean", "cosine"):
            raise ValueError(f"metric must be 'euclidean' or 'cosine', got {self.metric!r}")
        if self.polish not in ("exact", "certify", None):
            raise ValueError(f"polish must be 'exact', 'certify' or None, got {self.polish!r}")
        if self.max_cluster_size is not None:
            check_count("max_cluster_size", self.max_cluster_size)
        chosen = self.metric != "euclidean" or self.polish != "exact" or self.max_cluster_size is not None
        if self.algorithm != "auto" and chosen:
            raise ValueError(
                f"metric, polish and max_cluster_size are choices of algorithm='auto', got algorithm={self.algorithm!r}"
            )
        if self.max_time is not None and not (isinstance(self.max_time, (int, float)) and self.max_time > 0):
            raise ValueError(f"max_time must be None or a number of seconds above 0, got {self.max_time!r}")

    def _later_memory(self, n: int, d: int) -> int:
        """Bytes kept after the iterations, when the method's are given back."""
        return 0 if self.max_cluster_size is None else capped_memory(n, d, self.n_clusters)

    def _finish(self) -> Literal["as moved", "settle", "exact", "certify"]:
        if self.algorithm == "k2":
            return "settle"
        return {"exact": "exact", "certify": "certify", None: "as moved"}[self.polish]  # type: ignore[return-value]

    def _init(self) -> Init:
        init = self.init
        if isinstance(init, str):
            if init not in NAMED:
                raise ValueError(f"init must be one of {sorted(NAMED)}, an array or a callable, got {init!r}")
            return FAST if init == "gdi" and self.algorithm == "auto" else NAMED[init]
        if isinstance(init, K2Means):
            check_is_fitted(init)
            return Given(init.cluster_centers_)
        return init if isinstance(init, (GDI, PlusPlus, Random, Given)) else Given(init)

    def _identity(self, k: int, method: Method, seed: int) -> dict[str, Any]:
        """What two runs must share for one to go on from the other."""
        from . import __version__

        shown = str(self.init)
        if callable(self.init) and not isinstance(self.init, (GDI, PlusPlus, Random)):
            shown = "a function"  # which one, cannot be told
        elif not isinstance(self.init, (str, GDI, PlusPlus, Random)):
            given = np.asarray(getattr(self.init, "cluster_centers_", self.init))
            shown = f"centers {hashlib.sha256(given.tobytes()).hexdigest()[:16]} {given.shape} {given.dtype}"
        width = method.width(k) if isinstance(method, K2) else None
        return {
            "k": k,
            "method": str(method),
            "k_n": width,
            "init": shown,
            "seed": seed,
            "metric": self.metric,
            "k2means": __version__,
        }

    def _method(self) -> Method:
        methods: dict[str, Method] = {
            "auto": Sketched(self.n_neighbors, exact=self.polish == "exact"),
            "k2": K2(self.n_neighbors),
            "lloyd": Lloyd(),
            "elkan": Elkan(),
        }
        if not isinstance(self.algorithm, str) or self.algorithm not in methods:
            raise ValueError(f"algorithm must be one of {list(methods)}, got {self.algorithm!r}")
        return methods[self.algorithm]

    def _runs(self, init: Init) -> int:
        runs = 1 if isinstance(self.n_init, str) and self.n_init == "auto" else check_count("n_init", self.n_init)
        if runs > 1 and isinstance(init, Given) and not callable(init.centers):
            warnings.warn(
                f"init is an array, so every run would be the same: one is done instead of n_init={runs}.",
                RuntimeWarning,
                stacklevel=3,
            )
            return 1
        return runs

    def _keep(self, result: Result, x: NDArray[Any], sample_weight: ArrayLike | None) -> None:
        self.cluster_centers_: NDArray[Any] = result.centers
        self.labels_: NDArray[np.int32] = result.labels
        self.inertia_: float = result.energy
        self.n_iter_: int = result.n_iter
        self.trace_: tuple[Record, ...] = tuple(result.trace)
        self._converged = result.converged
        self.ops_: Ops = result.ops
        self.certified_: float = result.certified
        self._tell_clusters(x, check_weights(sample_weight, len(x)))

    def _tell_clusters(self, x: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
        """Sizes, energies and medoids: one more distance for each row."""
        k, labels = len(self.cluster_centers_), self.labels_
        cost = squares(x, self.cluster_centers_, labels, resolve_threads(self.n_threads))
        self.cluster_sizes_: NDArray[np.int64] = np.bincount(labels, minlength=k)
        weighted = cost if weights is None else cost * weights
        self.cluster_energies_: NDArray[Any] = np.bincount(labels, weighted, minlength=k)
        self.medoid_indices_: NDArray[np.int64] = np.full(k, -1)
        least = np.full(k, np.inf)
        np.minimum.at(least, labels, cost)
        nearest_rows = np.flatnonzero(cost == least[labels])[::-1]  # of equals, the first is written last
        self.medoid_indices_[labels[nearest_rows]] = nearest_rows

    @property
    def neighbor_graph_(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        check_is_fitted(self)
        centers = np.ascontiguousarray(self.cluster_centers_)
        ids, apart = several(centers, centers, min(33, len(centers)), resolve_threads(self.n_threads))
        own = np.arange(len(centers))[:, None]
        keep = ids != own  # itself, or beside twins one of them
        keep[keep.all(axis=1), -1] = False
        shape = (len(centers), ids.shape[1] - 1)
        return ids[keep].reshape(shape), apart[keep].reshape(shape)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> NDArray[np.int32]:
        """`fit(X)`, then `labels_`. Parameters as in `fit`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> NDArray[Any]:
        """`fit(X)`, then `transform(X)`. Parameters as in `fit`."""
        return self.fit(X, sample_weight=sample_weight)._distances(X)

    # ---- what the centers tell -----------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest of all centers for each row of X, exactly.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
            Of several centers at the same distance, the first.
        """
        x, threads, unit = self._query(X)
        return nearest(x, self.cluster_centers_, threads, unit)

    def nearest_centers(self, X: Any, n_centers: int = 1, *, recall: float = 1.0) -> NearestCenters:
        """The nearest centers of each row of X: exactly, or most of them and faster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        n_centers : int, default=1
            How many; all of them if there are fewer.
        recall : float, default=1.0
            The share of them to be found, above 0. Below 1 a row looks only at some groups of centers, as many as a
            sample of X needs for this share; where that would not be faster, the answer is exact. For rows by the
            thousand: few rows are not worth the groups.

        Returns
        -------
        indices : ndarray of shape (n_samples, n_centers), int32
            By distance, of equals the first.
        distances : ndarray of shape (n_samples, n_centers), float64
            Of the centers found, exactly.

        The pair has an attribute `recall`: the share found of the nearest centers of rows in another sample of X.
        """
        n_centers = check_count("n_centers", n_centers)
        check_share("recall", recall)
        x, threads, unit = self._query(X)
        rng = np.random.default_rng(0)  # the same question has the same answer
        return several_approximately(x, self.cluster_centers_, n_centers, float(recall), rng, threads, unit)

    def transform(self, X: Any) -> NDArray[Any]:
        """The distance of each row of X to each center.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            float32 if both X and the centers are, else float64.
        """
        return self._distances(X)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the energy of X, each row with its nearest center.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        x, threads, unit = self._query(X)
        weights = check_weights(sample_weight, len(x))
        labels = nearest(x, self.cluster_centers_, threads, unit)
        return -energy(x, weights, self.cluster_centers_, labels, threads)

    def _distances(self, X: Any) -> NDArray[Any]:
        x, threads, unit = self._query(X)
        n, k = len(x), len(self.cluster_centers_)
        require_bytes(x.nbytes + n * k * x.itemsize, f"transform with n={n}, k={k}")
        return distances(x, self.cluster_centers_, threads, unit)

    def _query(self, X: Any) -> tuple[NDArray[Any], int, float]:
        """Checked rows, the threads to use, and the unit in which squares of rows and centers have room."""
        check_is_fitted(self)
        x = self._rows(X, reset=False)
        if self.metric == "cosine":
            x = unit_rows(x)
        threads = resolve_threads(self.n_threads)
        seen = look_at(x, None, threads)
        extent = float(max(-seen.low.min(), seen.high.max(), np.abs(self.cluster_centers_).max()))
        return x, threads, unit_for(extent, np.result_type(x, self.cluster_centers_))

    # ---- scikit-learn's protocol -----------------------------------------------------------------------------------

    def _rows(self, X: Any, *, reset: bool) -> NDArray[Any]:
        x = check_rows(X)
        validate_data(self, X, reset=reset, skip_check_array=True)  # only the names and the number of features
        return x

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

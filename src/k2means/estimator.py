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

from .checkpoint import Keeper
from .checks import check_count
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
from .initialize import GDI, NAMED, Given, Init, PlusPlus, Random
from .interrupt import Interruption
from .loop import OnStep, Ops, Record, Result, Stop
from .measure import distances, energy, nearest, unit_for
from .memory import require_bytes, require_memory
from .methods import K2, Elkan, Lloyd, Method, Sketched
from .progress import both, reporter


class K2Means(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """k-means for many clusters: k²-means behind the interface of scikit-learn's `KMeans`.

    A row looks only at the centers near its own center, and triangle-inequality bounds skip most of those. The same
    `random_state` gives the same bits for any number of threads.

    Parameters
    ----------
    n_clusters : int, default=8
        At most the number of rows.
    n_neighbors : int or "auto", default="auto"
        The centers a row considers, its own included: more is slower and more accurate. At `n_clusters` and above the
        result is Lloyd's. Of no effect with `algorithm` "lloyd" and "elkan".
    init : {"gdi", "k-means++", "random"}, array of shape (n_clusters, n_features) or callable, default="gdi"
        "gdi" splits the data greedily in two until there are enough clusters; "k-means++" draws rows by their squared
        distance to those drawn before; "random" draws rows. A callable is called as
        `init(X, n_clusters, random_state=...)` and returns an array. `GDI(...)`, `PlusPlus(...)`, `Random()` of this
        package are taken too.
    n_init : int or "auto", default="auto"
        Runs from different starts, of which the one of least energy is kept. "auto" is 1.
    max_iter : int, default=100
    tol : float, default=1e-4
        Stop when the sum of the squared movements of the centers is at most `tol` times the mean variance of the
        features, as in scikit-learn. 0: when no center moves.
    algorithm : {"auto", "k2", "lloyd", "elkan"}, default="auto"
        "auto" is the fastest known here: k²-means with cheap bounds, then one exact pass, so that `labels_` is what
        `predict(X)` gives. "k2" is the paper's algorithm, exactly: also its last assignment is over neighbourhoods, so
        `labels_` may differ from `predict(X)`. "lloyd" looks at all centers; "elkan" gives the same for fewer
        distances and n_samples × n_clusters bounds in memory.
    random_state : int, RandomState or None, default=None
    n_threads : int or None, default=None
        None: `K2MEANS_NUM_THREADS` if set, else all cores the process may use.
    verbose : int, default=0
        1: a line per iteration to stderr; on a terminal or in a notebook a bar, if tqdm is installed.
    copy_x : bool, default=True
        False allows to work in X itself where the arithmetic needs its values moved (it is far from the origin, or of
        extreme size). X is restored at the end, but for rounding.

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
            self._fit(X, sample_weight, on_step=interruption)
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
        seconds: float | None = None,
        force: bool = False,
    ) -> None:
        """`fit`, watched, as the command line needs it. `force`: also if the memory seems too small."""
        started = time.perf_counter()
        x = self._rows(X, reset=True)
        k, init, weights, present = check_request(x, self.n_clusters, self._init(), sample_weight, name="n_clusters")
        method = self._method()
        stop = Stop(max_iter=self.max_iter, tol=self.tol, seconds=seconds)
        runs = self._runs(init)
        if keeper is not None and runs > 1:
            raise ValueError(f"a checkpoint is of one run, n_init={runs}")
        threads = resolve_threads(self.n_threads)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=runs)
        if not force:
            require_memory(x, k, method, copies=0 if present is None else 1)

        rows = x if present is None else present_rows(x, present, threads)
        copy = self.copy_x and is_borrowed(rows, X)
        best: Result | None = None
        for run, seed in enumerate(seeds, start=1):
            data = prepare(rows, weights, threads, copy=copy)  # in place, it is undone by `solve`
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
                finish="settle" if self.algorithm == "k2" else "exact",
                started=started,
                keeper=keeper,
                phase=phase,
            )
            del data  # at most one copy of X at a time
            if best is None or result.energy < best.energy:
                best = result
            if isinstance(on_step, Interruption) and on_step.asked:
                break
        assert best is not None
        self._keep(best if present is None else with_absent_rows(best, x, present, threads))

    def _init(self) -> Init:
        init = self.init
        if isinstance(init, str):
            if init not in NAMED:
                raise ValueError(f"init must be one of {sorted(NAMED)}, an array or a callable, got {init!r}")
            return GDI(exact=False) if init == "gdi" and self.algorithm == "auto" else NAMED[init]
        return init if isinstance(init, (GDI, PlusPlus, Random, Given)) else Given(init)

    def _identity(self, k: int, method: Method, seed: int) -> dict[str, Any]:
        """What two runs must share for one to go on from the other."""
        from . import __version__

        shown = str(self.init)
        if callable(self.init) and not isinstance(self.init, (GDI, PlusPlus, Random)):
            shown = "a function"  # which one, cannot be told
        elif not isinstance(self.init, (str, GDI, PlusPlus, Random)):
            given = np.asarray(self.init)
            shown = f"centers {hashlib.sha256(given.tobytes()).hexdigest()[:16]} {given.shape} {given.dtype}"
        width = method.width(k) if isinstance(method, K2) else None
        return {"k": k, "method": str(method), "k_n": width, "init": shown, "seed": seed, "k2means": __version__}

    def _method(self) -> Method:
        methods: dict[str, Method] = {
            "auto": Sketched(self.n_neighbors),
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

    def _keep(self, result: Result) -> None:
        self.cluster_centers_: NDArray[Any] = result.centers
        self.labels_: NDArray[np.int32] = result.labels
        self.inertia_: float = result.energy
        self.n_iter_: int = result.n_iter
        self.trace_: tuple[Record, ...] = tuple(result.trace)
        self._converged = result.converged
        self.ops_: Ops = result.ops

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

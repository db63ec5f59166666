"""Lloyd, Elkan and k²-means over all centers take the same steps, and they are the oracle's."""

import numpy as np
import oracle
import pytest
from hypothesis import given
from problems import BOUNDS, Problem, bind, blobs, exact_methods, grid, problems
from sklearn.cluster import KMeans

from k2means import K2, Elkan, Given, Lloyd, Sketched, Stop, _core, cluster

DTYPES = (np.float32, np.float64)
EXACT_METHODS = (Lloyd(), Elkan(), K2(n_neighbors=10**6), *(K2(n_neighbors=60, bounds=b) for b in BOUNDS))


def check_steps(problem, steps, width=None, threads=1):
    """Step all engines; before each step the oracle starts from the bits they have."""
    x, centers, labels, weights = problem
    methods = exact_methods(len(centers)) if width is None else [K2(width, bounds=b) for b in BOUNDS]
    engines = {str(m): bind(m, problem, threads) for m in methods}
    if width is None:
        engines["without sketches"] = bind(Sketched(len(centers), 1, False), problem, threads, sketch=False)
    slack = oracle.mean_error(x, weights)
    for t in range(steps):
        want = oracle.step(x, centers, labels, weights, width)
        before, first = centers, None
        for name, engine in engines.items():
            moved, shift, _ = engine.step()
            np.testing.assert_array_equal(engine.labels(), want.labels, err_msg=f"{name}, step {t}")
            assert moved == want.moved, (name, t)
            centers = engine.centers()
            if first is None:
                first = (centers, shift)
            assert centers.tobytes() == first[0].tobytes(), (name, t)
            assert shift == first[1], (name, t)
        # the mean in double, then rounded once to the dtype of the rows: half a unit in the last place
        allowed = slack + 0.5 * np.spacing(np.abs(centers).astype(x.dtype)).astype(np.float64)
        assert (np.abs(centers.astype(np.float64) - want.centers) <= allowed).all(), t
        drift = ((centers.astype(np.float64) - before.astype(np.float64)) ** 2).sum()
        assert first[1] == pytest.approx(drift, rel=1e-12)  # k·d roundings of 1e-16
        labels = want.labels
    return labels, centers


def start_labels(kind, x, k):
    rng = np.random.default_rng(1)
    return {
        "no labels": None,
        "nearest labels": oracle.nearest(x, x[:k]),
        "random labels": rng.integers(k, size=len(x)).astype(np.int32),
    }[kind]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("labels", ["no labels", "nearest labels", "random labels"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("data", ["blobs", "grid", "many columns", "many centers"])
def test_all_exact_methods_take_the_oracles_steps(data, weighted, labels, dtype):
    n, d, k = {
        "blobs": (600, 7, 25),
        "grid": (400, 3, 20),
        "many columns": (150, 70, 9),
        "many centers": (700, 4, 300),
    }[data]
    x = grid(n, d, dtype) if data == "grid" else blobs(n, d, k, dtype)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, n) if weighted else None
    check_steps(Problem(x, x[:k].copy(), start_labels(labels, x, k), weights), steps=8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_warm_start_from_far_away_takes_the_oracles_steps(dtype):
    # large moves: bounds of the first iterations are worthless later, and must know it
    x = blobs(500, 5, 12, dtype)
    centers = x[:12] * dtype(40) + dtype(7)
    check_steps(Problem(x, centers, start_labels("random labels", x, 12), None), steps=12)


@given(problems())
def test_any_small_problem_takes_the_oracles_steps(problem):
    check_steps(problem, steps=4)


def test_a_tie_keeps_the_current_label_and_else_takes_the_lowest():
    middle, corners = np.array([[0.0, 0.0]]), np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    for method in exact_methods(4):
        engine = bind(method, Problem(middle, corners, None, None))
        engine.settle()
        assert engine.labels().tolist() == [0], method
        for current in range(4):
            engine = bind(method, Problem(middle, corners, np.array([current], dtype=np.int32), None))
            engine.settle()
            assert engine.labels().tolist() == [current], method


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", EXACT_METHODS, ids=str)
def test_cluster_gives_the_same_trace_by_every_exact_method(method, dtype):
    x = blobs(500, 6, 30, dtype)
    init, stop = Given(x[:30]), Stop(max_iter=15)
    want, got = (cluster(x, 30, method=m, init=init, stop=stop, n_threads=1) for m in (Lloyd(), method))
    assert got.labels.tobytes() == want.labels.tobytes()
    assert got.centers.tobytes() == want.centers.tobytes()
    assert got.energy == want.energy
    assert [(r.energy, r.moved, r.shift) for r in got.trace] == [(r.energy, r.moved, r.shift) for r in want.trace]


@pytest.mark.parametrize("max_iter", [1, 2, 5, 50])
def test_lloyd_is_scikit_learns_from_the_same_start(max_iter):
    x = blobs(800, 5, 10, np.float64)
    ours = cluster(x, 10, method=Lloyd(), init=Given(x[:10]), stop=Stop(max_iter=max_iter))
    theirs = KMeans(10, init=x[:10], n_init=1, max_iter=max_iter, tol=0.0, algorithm="lloyd").fit(x)
    # both are means of the same rows; scikit-learn sums in another order, about another origin
    np.testing.assert_allclose(ours.centers, theirs.cluster_centers_, rtol=0, atol=1e-12 * np.abs(x).max())
    if ours.converged:
        np.testing.assert_array_equal(ours.labels, theirs.labels_)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("far", [0.0, 300.0])
def test_nearest_is_the_oracles(dtype, far):
    rng = np.random.default_rng(3)
    for n, d, k in [(1, 1, 1), (97, 3, 5), (200, 17, 40), (300, 40, 270)]:
        x = (rng.normal(size=(n, d)) + far).astype(dtype)
        centers = (rng.normal(size=(k, d)) + far).astype(dtype)
        centers[k // 2] = centers[0]
        for shift in (None, np.full(d, far, dtype)):
            got = _core.nearest(x, centers, shift, 2)
            np.testing.assert_array_equal(got, oracle.nearest(x, centers), err_msg=str((n, d, k, shift is None)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_energy_and_distances_are_the_oracles(dtype):
    x = blobs(300, 21, 5, dtype)
    labels = np.random.default_rng(0).integers(5, size=300).astype(np.int32)
    weights = np.random.default_rng(1).uniform(0.1, 3, 300)
    # sums of 300 x 21 positive terms in double, in another order
    for w in (None, weights):
        assert _core.energy(x, w, x[:5], labels, 2) == pytest.approx(oracle.energy(x, x[:5], labels, w), rel=1e-13)
    want = np.sqrt(oracle.squared_distances(x, x[:5])).astype(dtype)
    np.testing.assert_array_equal(_core.distances(x, x[:5], 2), want)

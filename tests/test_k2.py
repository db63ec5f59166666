"""k²-means: a step is the oracle's over neighbourhoods, whatever the bounds; the energy is true and never rises."""

import warnings

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import BOUNDS, Problem, blobs, grid, problems
from sklearn.exceptions import ConvergenceWarning
from test_exactness import DTYPES, check_steps, start_labels

from k2means import GDI, K2, Elkan, Given, Lloyd, PlusPlus, Random, Stop, cluster

METHODS = (Lloyd(), Elkan(), K2(n_neighbors=4), K2(n_neighbors=4, bounds="hamerly"), K2(n_neighbors=1))
INITS = (GDI(), PlusPlus(), PlusPlus(trials="auto"), Random())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("labels", ["no labels", "nearest labels", "random labels"])
@pytest.mark.parametrize("data", ["blobs", "grid", "many columns"])
def test_both_bounds_take_the_oracles_steps_over_neighbourhoods(data, labels, width, dtype):
    n, d, k = {"blobs": (500, 4, 40), "grid": (400, 3, 25), "many columns": (150, 50, 15)}[data]
    x = grid(n, d, dtype) if data == "grid" else blobs(n, d, k, dtype)
    check_steps(Problem(x, x[:k].copy(), start_labels(labels, x, k), None), steps=10, width=width)


@pytest.mark.parametrize("width", [2, 4, 9])
def test_steps_are_the_oracles_while_lists_change_all_the_time(width):
    # labels that make no sense throw the centers together; they then fly apart, and every list changes every iteration
    x = blobs(600, 3, 50, np.float64, seed=5)
    weights = np.random.default_rng(0).uniform(0.1, 10, len(x))
    check_steps(Problem(x, x[:50] * 30, start_labels("random labels", x, 50), weights), steps=25, width=width)


@given(problems(), st.integers(1, 6))
def test_any_small_problem_takes_the_oracles_steps_over_neighbourhoods(problem, width):
    check_steps(problem, steps=4, width=width)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_more_neighbors_than_centers_is_all_centers(bounds):
    x = blobs(300, 4, 8, np.float64)
    want, got = (
        cluster(x, 8, method=K2(n_neighbors=m, bounds=bounds), init=Given(x[:8]), stop=Stop(max_iter=5))
        for m in (8, 10**9)
    )
    assert got.centers.tobytes() == want.centers.tobytes()
    assert [r.ops for r in got.trace] == [r.ops for r in want.trace]


# ---- energy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_trace_tells_the_energy_of_labels_with_the_centers_after_the_move(method, weighted, dtype):
    x = blobs(400, 5, 15, dtype)
    weights = np.random.default_rng(1).uniform(0.2, 5, len(x)) if weighted else None
    for t in (1, 2, 6):
        r = cluster(x, 15, method=method, init=Given(x[:15]), stop=Stop(max_iter=t), sample_weight=weights)
        want = oracle.energy(x, r.centers, r.labels, weights)
        assert abs(r.trace[-1].energy - want) <= oracle.energy_error(x, weights)
        assert r.energy == pytest.approx(want, rel=1e-13)  # n·d positive terms in double, in another order
        assert len(r.trace) == r.n_iter == t or r.converged


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("init", INITS, ids=str)
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_energy_never_rises(method, init, dtype):
    x = blobs(700, 6, 40, dtype, seed=3)
    r = cluster(x, 40, method=method, init=init, stop=Stop(max_iter=40), seed=4)
    energies = np.array([t.energy for t in r.trace])
    # a center rounded to float32 costs up to weight · d · (ulp/2)², far below the error of the sums themselves
    rounding = len(x) * 6 * float(np.spacing(np.abs(x).max())) ** 2 / 4
    assert (np.diff(energies) <= oracle.energy_error(x) + rounding).all()


@given(problems(), st.integers(1, 6))
def test_energy_never_rises_on_any_small_problem(problem, width):
    x, centers, _, weights = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        r = cluster(
            x, len(centers), method=K2(width), init=Given(centers), stop=Stop(max_iter=8), sample_weight=weights
        )
    reach = float(np.spacing(np.abs(x).max() + np.finfo(x.dtype).tiny))
    rounding = (weights.sum() if weights is not None else len(x)) * x.shape[1] * reach**2
    energies = np.array([t.energy for t in r.trace])
    assert (np.diff(energies) <= oracle.energy_error(x, weights) + rounding).all()


def test_stops_when_no_center_moves_and_not_before():
    x = blobs(300, 3, 10, np.float64)
    r = cluster(x, 10, method=K2(4), init=GDI(), stop=Stop(max_iter=1000))
    assert r.converged
    assert r.trace[-1].shift == 0.0
    assert all(t.shift > 0 for t in r.trace[:-1])


def test_on_step_sees_every_record_and_stops():
    x = blobs(300, 3, 10, np.float64)
    seen = []
    r = cluster(x, 10, method=Lloyd(), init=Given(x[:10]), on_step=lambda record: seen.append(record) or len(seen) == 3)
    assert tuple(seen) == tuple(r.trace)
    assert [s.iteration for s in seen] == [1, 2, 3]


def test_stop_energy_stops_at_the_first_energy_that_low():
    x = blobs(300, 3, 10, np.float64)
    full = cluster(x, 10, method=Lloyd(), init=Given(x[:10]), stop=Stop(max_iter=10))
    target = full.trace[3].energy
    r = cluster(x, 10, method=Lloyd(), init=Given(x[:10]), stop=Stop(max_iter=10, energy=target))
    assert r.n_iter == 4


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_k_clusters_asked_for_are_k_clusters_returned(method):
    # all centers start at one point: all but one cluster are empty until refilled
    x = blobs(200, 3, 5, np.float64)
    r = cluster(x, 12, method=method, init=Given(np.repeat(x[:1], 12, axis=0)), stop=Stop(max_iter=20))
    assert len(np.unique(r.labels)) == 12

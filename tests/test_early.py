"""Swaps of clusters, and the rough iterations that come before the real ones."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import blobs, divide, problems, unequal

from k2means import GDI, Given, K2Means, Sketched, _core, cluster
from k2means.cluster import prepare
from k2means.initialize import FAST


def energy(x, labels, k, weights=None):
    """Of the rows about the means of their labels, in plain double."""
    centers = oracle.means(x, labels, np.zeros((k, x.shape[1])), weights)
    return float(((x - centers[labels]) ** 2).sum(axis=1) @ (np.ones(len(x)) if weights is None else weights))


def swapped(x, weights, labels, k, seed, threads):
    """Labels after one round of swaps, the share of the energy that it says it saved, and its operations."""
    survey, centers = _core.survey(x, weights, threads), _core.means(x, weights, labels, k, threads)
    engine = _core.rough(x, weights, survey, centers, labels, k, 1, threads)
    saved, ops = engine.swap(seed)
    assert engine.energy() == pytest.approx(energy(x, engine.labels(), k, weights), rel=1e-5, abs=1e-6) or saved == 0
    return engine.labels(), saved, ops


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_swap_gives_the_joined_their_own_and_joins_the_divided(weighted, dtype):
    rng = np.random.default_rng(0)
    places = rng.normal(size=(10, 6)) * 100
    truth = np.repeat(np.arange(10), 50)
    x = (places[truth] + rng.normal(size=(500, 6))).astype(dtype)
    weights = rng.uniform(0.5, 2.0, 500) if weighted else None
    labels = np.where(truth == 9, 8, truth).astype(np.int32)  # the last two share a cluster,
    labels[:25] = 9  # and the first has two
    got, saved, ops = swapped(x, weights, labels, 10, 0, 2)
    before, after = (energy(x, each, 10, weights) for each in (labels, got))
    assert saved == pytest.approx(1 - after / before, rel=1e-5)
    assert len({tuple(np.unique(got[truth == t])) for t in range(10)}) == 10  # each has one label, its own
    assert after < 0.1 * before
    assert ops[0] > 0


@given(problems(), st.integers(0, 3))
def test_swaps_never_raise_the_energy_and_leave_no_cluster_empty(problem, seed):
    x, k = problem.x, len(problem.centers)
    labels = np.random.default_rng(seed).integers(k, size=len(x)).astype(np.int32)
    labels[:k] = np.arange(min(k, len(x)))
    got, saved, _ = swapped(x, problem.weights, labels, k, seed, 1)
    before, after = (energy(x.astype(np.float64), each, k, problem.weights) for each in (labels, got))
    assert after <= before * (1 + 1e-6) + 1e-6
    assert (saved == 0) == (got.tobytes() == labels.tobytes())
    assert set(got) == set(labels)
    for threads in (2, 3):
        assert swapped(x, problem.weights, labels, k, seed, threads)[0].tobytes() == got.tobytes()


def test_swaps_are_part_of_the_default_and_lower_its_energy():
    groups = np.random.default_rng(0).normal(size=(20, 12)) * 30
    x = blobs(6000, 12, 200, np.float32) + groups[np.random.default_rng(1).integers(20, size=6000)].astype(np.float32)
    data = prepare(x, None, 1)
    start = GDI(exact=False, early=10)(data, 120, np.random.default_rng(0))
    assert len(np.unique(start.labels)) == 120
    plain = GDI(exact=False)(data, 120, np.random.default_rng(0))
    assert energy(x, start.labels, 120) < 0.97 * energy(x, plain.labels, 120)
    again = GDI(exact=False, early=10)(prepare(x, None, 3), 120, np.random.default_rng(0))
    assert again.labels.tobytes() == start.labels.tobytes()


def test_after_the_deadline_only_what_has_begun_is_done():
    x, rng = unequal(d=12), np.random.default_rng
    data = prepare(x, None, 1)
    whole, hurried, divided = (
        init(given, 60, rng(0))
        for init, given in ((FAST, data), (FAST, replace(data, deadline=1e-9)), (GDI(exact=False), data))
    )
    assert divided.ops.distances < hurried.ops.distances < whole.ops.distances
    assert energy(x, whole.labels, 60) < energy(x, hurried.labels, 60) < energy(x, divided.labels, 60)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [3, 33])
def test_a_rough_iteration_gives_a_row_to_the_cluster_that_costs_least(d, weighted, dtype):
    k, x = 12, blobs(2000, d, 25, dtype)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(x)) if weighted else None
    centers, labels, _ = divide(x, k, weights=weights)
    engine = _core.rough(x, weights, _core.survey(x, weights, 1), centers, labels, k, 1, 1)
    moved = engine.step()[0]
    got, rows, w = engine.labels(), np.arange(len(x)), np.ones(len(x)) if weights is None else weights
    assert moved == (got != labels).sum() > 0
    squares = ((x[:, None].astype(np.float64) - centers) ** 2).sum(axis=2)
    size = np.bincount(labels, w)
    cost = squares * size / (size + w[:, None])
    cost[rows, labels] = squares[rows, labels] * size[labels] / (size[labels] - w)
    assert len(np.unique(got)) == k  # so nobody was moved to fill an empty cluster
    np.testing.assert_allclose(cost[rows, got], cost.min(axis=1), rtol=1e-4 if dtype == np.float32 else 1e-10)
    assert engine.energy() == pytest.approx(energy(x, got, k, weights), rel=1e-6)


@given(problems(), st.integers(1, 13), st.integers(1, 3))
def test_rough_iterations_are_the_same_for_any_threads(problem, neighbors, turns):
    x, weights, k = problem.x, problem.weights, len(problem.centers)
    labels = (np.arange(len(x)) % k).astype(np.int32)
    seen = []
    for threads in (1, 2, 3):
        survey = _core.survey(x, weights, threads)
        engine = _core.rough(x, weights, survey, problem.centers, labels, neighbors, turns, threads)
        steps = [engine.step() for _ in range(3)]
        seen.append((steps, engine.labels().tobytes(), engine.centers().tobytes()))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_few_clusters_need_no_swaps(k):
    x = blobs(200, 50, 4, np.float32)
    model = K2Means(k, random_state=0).fit(x)
    np.testing.assert_array_equal(model.labels_, model.predict(x))
    assert len(np.unique(model.labels_)) == k


def test_fewer_distinct_rows_than_clusters():
    x = np.repeat(np.eye(45, dtype=np.float32)[:5], 10, axis=0)
    with pytest.warns(Warning, match="smaller than n_clusters"):
        model = K2Means(8, random_state=0).fit(x)
    assert model.inertia_ < 1e-12
    assert {tuple(c) for c in model.cluster_centers_.round(6)} == {tuple(c) for c in x}  # none where no row is


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_swaps_between_iterations_lower_the_energy_which_never_rises(dtype):
    x, k = unequal(dtype=dtype), 60
    start = Given(x[np.random.default_rng(0).choice(len(x), k, replace=False)])
    with_swaps, without = (cluster(x, k, init=start, method=Sketched(swaps=swaps)) for swaps in (True, False))
    assert with_swaps.energy < 0.97 * without.energy
    for result in (with_swaps, without):
        energies = [record.energy for record in result.trace]
        assert all(after <= before * (1 + 1e-12) for before, after in pairwise(energies))
        squares = ((x[:, None].astype(np.float64) - result.centers) ** 2).sum(axis=2)
        assert result.converged
        assert (squares.min(axis=1) >= squares[np.arange(len(x)), result.labels] - 1e-3).all()
        assert len(np.unique(result.labels)) == k
    for threads in (1, 3):
        again = cluster(x, k, init=start, method=Sketched(), n_threads=threads)
        assert again.labels.tobytes() == with_swaps.labels.tobytes()
        assert again.centers.tobytes() == with_swaps.centers.tobytes()

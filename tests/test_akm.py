"""AKM: a budget that is kept and counted, the nearest of what the trees propose. That it is Lloyd with a budget of k
or more, test_exactness says."""

from itertools import pairwise

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import Problem, bind, blobs, grid, problems

from k2means import AKM, Given, Lloyd, Random, Stop, cluster


@pytest.mark.parametrize("trees", [1, 8])
@pytest.mark.parametrize("checks", [1, 2, 3, 5, 14, 39, 40, 200])
@pytest.mark.parametrize("data", ["blobs", "grid"])
def test_a_row_measures_exactly_its_budget(data, checks, trees):
    n, k = 500, 40
    x = blobs(n, 6, k, np.float32) if data == "blobs" else grid(n, 3, np.float64)
    engine = bind(AKM(checks, trees), Problem(x, x[:k].copy(), None, None))
    for _ in range(4):
        engine.step()
        assert engine.settle()[2][0] == n * min(checks, k)  # a step may also refill an empty cluster, for n more


@given(problems(), st.integers(1, 15), st.integers(1, 9))
def test_any_small_problem_keeps_its_budget_and_gives_true_energies(problem, checks, trees):
    x, centers, _, weights = problem
    engine = bind(AKM(checks, trees), problem)
    for _ in range(3):
        assert engine.settle()[2][0] == len(x) * min(checks, len(centers))
        engine.step()
        want = oracle.energy(x, engine.centers(), engine.labels(), weights)
        assert abs(engine.energy() - want) <= oracle.energy_error(x, weights)


@pytest.mark.parametrize("checks", [1, 2, 5, 30])
def test_the_previous_center_is_one_of_the_checks(checks):
    x, k = blobs(500, 6, 30, np.float64), 30
    labels = np.random.default_rng(0).integers(k, size=500).astype(np.int32)
    engine = bind(AKM(checks, keep_previous=True), Problem(x, x[:k].copy(), labels, None))
    moved, _, ops = engine.settle()  # assigns and moves nothing
    assert ops[0] == 500 * checks
    assert (moved == 0) == (checks == 1)  # as the only candidate it stays


def test_the_nearest_of_all_is_found_more_often_with_more_checks():
    x, k = blobs(2000, 8, 100, np.float32), 100
    nearest = oracle.nearest(x, x[:k])
    shares = []
    for checks in (3, 10, 30, 100):
        engine = bind(AKM(checks), Problem(x, x[:k].copy(), None, None))
        engine.settle()
        shares.append((engine.labels() == nearest).mean())
    assert shares == sorted(shares)
    assert shares[0] > 2 * 3 / 100  # better than a draw
    assert shares[-1] == 1.0


def test_energy_never_rises_if_the_previous_center_is_a_candidate():
    x = blobs(2000, 8, 60, np.float64)
    r = cluster(x, 60, method=AKM(5, keep_previous=True), init=Random(), stop=Stop(max_iter=40))
    energies = [t.energy for t in r.trace]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(energies))
    free = cluster(x, 60, method=AKM(5), init=Random(), stop=Stop(max_iter=40))
    assert min(t.energy for t in free.trace) > energies[-1]  # what the original gives away


def test_trees_are_drawn_anew_from_the_seed_in_every_iteration():
    x, k = blobs(1000, 8, 50, np.float32), 50
    start = Problem(x, x[:k].copy(), None, None)
    one, same, other = (bind(AKM(4), start, seed=s) for s in (1, 1, 2))
    for engine in (one, same, other):
        engine.settle()
    first = one.labels()
    assert (first == same.labels()).all()
    assert (first != other.labels()).any()
    one.settle()
    assert (first != one.labels()).any()


def test_cluster_hands_over_its_seed():
    x = blobs(1000, 8, 50, np.float32)
    options = {"method": AKM(4), "init": Given(x[:50]), "stop": Stop(max_iter=2)}
    one, same, other = (cluster(x, 50, seed=s, **options) for s in (1, 1, 2))
    assert (one.labels == same.labels).all()
    assert (one.labels != other.labels).any()


def test_many_equal_centers_do_not_break_the_trees():
    x = np.repeat(blobs(20, 3, 5, np.float64), 50, axis=0)
    engine = bind(AKM(7), Problem(x, x[:200].copy(), None, None))  # 4 different centers
    for _ in range(3):
        engine.step()
    assert len(np.unique(engine.labels())) >= 4


def test_it_comes_close_to_lloyd_for_a_fraction_of_the_distances():
    x = blobs(4000, 10, 80, np.float32)
    lloyd = cluster(x, 80, method=Lloyd(), init=Random(), stop=Stop(max_iter=30))
    akm = cluster(x, 80, method=AKM(30), init=Random(), stop=Stop(max_iter=30))
    assert min(t.energy for t in akm.trace) < 1.05 * lloyd.energy
    assert akm.trace[0].ops.distances < 0.5 * lloyd.trace[0].ops.distances

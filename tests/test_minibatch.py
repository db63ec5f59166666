"""MiniBatch is Sculley's Algorithm 1, batch by batch, and its energies are true."""

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import Problem, bind, blobs, problems

from k2means import Given, Lloyd, MiniBatch, Ops, Random, Stop, cluster

MASK = 2**64 - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draws(seed, batch, size, n, weights):
    """The rows of a batch, from the generator of core/random.hpp."""
    state = mix(seed ^ mix(batch))
    reach = None if weights is None else np.cumsum(weights)
    for _ in range(size):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        bits = mix(state)
        if reach is None:
            yield bits % n  # the redraw that keeps it unbiased comes once in 2^50
        else:
            yield min(n - 1, int(np.searchsorted(reach, (bits >> 11) * 2.0**-53 * reach[-1], side="right")))


def algorithm_1(x, centers, size, batches, seed, weights=None):
    """Sculley 2010, Algorithm 1, in double."""
    place, won = centers.astype(np.float64), np.zeros(len(centers))
    shown = centers.copy()
    for t in range(batches):
        chosen = list(draws(seed, t, size, len(x), weights))
        d = oracle.nearest(x[chosen], shown)  # no ties in these data
        for row, c in zip(chosen, d, strict=True):
            won[c] += 1
            place[c] += (1 / won[c]) * (x[row].astype(np.float64) - place[c])
        shown = place.astype(x.dtype)
    return shown, won


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_centers_are_those_of_algorithm_1(weighted, dtype):
    x, k = blobs(800, 7, 30, dtype), 30
    weights = np.random.default_rng(1).uniform(0.1, 5.0, len(x)) if weighted else None
    engine = bind(MiniBatch(25, spacing=4), Problem(x, x[:k].copy(), None, weights), seed=11)
    for step in (1, 2, 3):
        engine.step()
        want, won = algorithm_1(x, x[:k], 25, 4 * step, 11, weights)
        assert engine.centers().tobytes() == want.tobytes()
    assert (engine.centers()[won == 0] == x[:k][won == 0]).all()  # who wins nothing stays


@given(problems(), st.integers(1, 30), st.integers(1, 4))
def test_the_energy_of_any_small_problem_is_that_of_its_nearest_centers(problem, size, spacing):
    x, _, _, weights = problem
    engine = bind(MiniBatch(size, spacing), problem)
    for _ in range(3):
        engine.step()
        energy, centers = engine.energy(), engine.centers()
        squares = oracle.squared_distances(x, centers)
        assert (squares[np.arange(len(x)), engine.labels()] == squares.min(axis=1)).all()
        # n roundings of 2^-53 of a sum of positive terms
        assert energy == pytest.approx(oracle.energy(x, centers, engine.labels(), weights), rel=1e-12)


def test_only_the_batches_are_charged():
    x, k = blobs(950, 4, 20, np.float32), 20
    r = cluster(x, k, method=MiniBatch(batch_size=100, spacing=7), init=Random(), stop=Stop(max_iter=5))
    assert [t.ops for t in r.trace] == [Ops(distances=7 * 100 * k, additions=7 * 100)] * 5
    assert r.ops == Ops(distances=5 * 7 * 100 * k, additions=5 * 7 * 100)


def test_an_iteration_draws_as_many_rows_as_there_are():
    x, k = blobs(950, 4, 20, np.float32), 20
    r = cluster(x, k, method=MiniBatch(), init=Random(), stop=Stop(max_iter=2))
    assert r.trace[0].ops.additions == 1000  # ten batches of 100: the papers' n / 2 batches are 50 iterations


def test_the_result_pairs_labels_and_centers():
    x = blobs(2000, 6, 30, np.float64)
    r = cluster(x, 30, method=MiniBatch(), init=Random(), stop=Stop(max_iter=10))
    assert (r.labels == oracle.nearest(x, r.centers)).all()
    assert r.energy == pytest.approx(oracle.energy(x, r.centers, r.labels), rel=1e-12)
    assert r.trace[-1].energy == pytest.approx(r.energy, rel=1e-12)


def test_a_heavy_row_is_drawn_often_and_a_center_follows_it():
    x = blobs(300, 3, 5, np.float64)
    weights = np.ones(300)
    weights[17] = 1e9
    r = cluster(x, 4, method=MiniBatch(), init=Given(x[:4]), stop=Stop(max_iter=20), sample_weight=weights)
    assert np.abs(r.centers - x[17]).sum(axis=1).min() < 1e-2


def test_it_comes_near_lloyd_but_not_below():
    x = blobs(5000, 8, 40, np.float32)
    lloyd = cluster(x, 40, method=Lloyd(), init=Random(), stop=Stop(max_iter=100))
    mini = cluster(x, 40, method=MiniBatch(), init=Random(), stop=Stop(max_iter=50))
    assert lloyd.energy < mini.energy < 1.1 * lloyd.energy

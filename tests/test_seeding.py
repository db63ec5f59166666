"""Random, k-means++ and Given: rows of the data, drawn with the right chances, the same for the same seed."""

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from problems import blobs

from k2means import GDI, Given, Lloyd, PlusPlus, Random, Stop, _core, cluster

DTYPES = (np.float32, np.float64)


def seeds_of(x, k, init, seed=0, weights=None):
    """The rows an initialisation takes as centers, found by stepping from them without moving."""
    start = []

    class Spy:
        def __call__(self, data, k, rng):
            start.append(init(data, k, rng))
            return start[0]

    cluster(x, k, method=Lloyd(), init=Spy(), seed=seed, stop=Stop(max_iter=1), sample_weight=weights)
    return start[0].centers


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("init", [Random(), PlusPlus(), PlusPlus(trials=4)], ids=str)
def test_centers_are_distinct_rows_of_the_data(init, dtype):
    x = blobs(200, 3, 5, dtype)
    for k in (1, 7, 200):
        centers = seeds_of(x, k, init)
        rows = {r.tobytes() for r in x}
        assert len({c.tobytes() for c in centers}) == k
        assert all(c.tobytes() in rows for c in centers)


@given(
    hnp.arrays(np.int8, st.tuples(st.integers(1, 25), st.integers(1, 3)), elements=st.integers(-2, 2)),
    st.integers(1, 3),
    st.integers(0, 2**63 - 1),
)
def test_k_means_plus_plus_takes_every_distinct_row_before_it_takes_one_twice(x, trials, seed):
    x = x.astype(np.float64)
    distinct = len(np.unique(x, axis=0))
    chosen, _ = _core.plus_plus(x, None, len(x), trials, seed, 1)
    assert len(np.unique(x[chosen[:distinct]], axis=0)) == distinct
    assert ((chosen >= 0) & (chosen < len(x))).all()


def chi_square(counts, chances):
    expected = counts.sum() * chances
    return float(((counts - expected) ** 2 / expected).sum())


def second_chances(x, weights):
    """The chance of each row to be the second center of k-means++."""
    first = weights / weights.sum()
    cost = oracle.squared_distances(x, x) * weights[:, None]  # cost[i, c]: of row i if row c is the center
    return (cost / cost.sum(axis=0)) @ first


@pytest.mark.parametrize("weighted", [False, True])
def test_k_means_plus_plus_draws_by_weight_and_then_by_squared_distance(weighted):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 2))
    weights = rng.uniform(0.5, 3, 8) if weighted else np.ones(8)
    drawn = np.array([_core.plus_plus(x, weights if weighted else None, 2, 1, s, 1)[0] for s in range(4000)])
    # 7 degrees of freedom: chi² above 24.3 has a chance of 0.001; the seeds are fixed, so this is decided once
    assert chi_square(np.bincount(drawn[:, 0], minlength=8), weights / weights.sum()) < 24.3
    assert chi_square(np.bincount(drawn[:, 1], minlength=8), second_chances(x, weights)) < 24.3


def test_random_draws_heavier_rows_more_often():
    x = np.arange(6.0).reshape(-1, 1)
    weights = np.array([1.0, 2, 3, 1, 1, 4])
    counts = np.zeros(6)
    for seed in range(2000):
        counts[int(Random()(DataOf(x, weights), 1, np.random.default_rng(seed)).centers[0, 0])] += 1
    assert chi_square(counts, weights / weights.sum()) < 20.5  # 5 degrees of freedom, chance 0.001, fixed seeds


class DataOf:
    """As much of initialize.Data as Random needs."""

    def __init__(self, rows, weights):
        self.rows, self.weights = rows, weights


def test_greedy_trials_start_lower():
    # with the best of many candidates the start is better on average, not by luck of one seed
    x = blobs(400, 4, 20, np.float64)

    def start(trials):
        chosen = [_core.plus_plus(x, None, 20, trials, s, 1)[0] for s in range(20)]
        return np.mean([oracle.squared_distances(x, x[c]).min(axis=1).sum() for c in chosen])

    assert start(8) < start(1)


@pytest.mark.parametrize("init", [Random(), PlusPlus(), PlusPlus(trials=3), GDI()], ids=str)
def test_a_seed_decides_the_start(init):
    x = blobs(300, 5, 10, np.float64)
    first, again, other = (seeds_of(x, 10, init, seed=s).tobytes() for s in (5, 5, 6))
    assert first == again != other


def test_a_generator_is_a_seed():
    x = blobs(300, 5, 10, np.float64)
    a, b = (cluster(x, 10, init=PlusPlus(), seed=np.random.default_rng(3)).labels for _ in range(2))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_callable_gets_the_rows_as_given_and_its_centers_are_the_start(offset):
    x = blobs(200, 3, 5, np.float64) + offset
    asked = {}

    def choose(rows, n_clusters, random_state):
        asked.update(rows=rows.copy(), k=n_clusters, state=random_state)
        return rows[:n_clusters]

    got = cluster(x, 6, method=Lloyd(), init=Given(choose), stop=Stop(max_iter=4))
    want = cluster(x, 6, method=Lloyd(), init=Given(x[:6]), stop=Stop(max_iter=4))
    np.testing.assert_array_equal(asked["rows"], x)
    assert asked["k"] == 6
    assert isinstance(asked["state"], np.random.RandomState)
    assert got.centers.tobytes() == want.centers.tobytes()


def test_given_centers_are_not_changed():
    x = blobs(200, 3, 5, np.float64)
    centers = x[:6].copy()
    cluster(x, 6, init=Given(centers))
    np.testing.assert_array_equal(centers, x[:6])


@pytest.mark.parametrize("init", [GDI(), PlusPlus(), Random()], ids=str)
def test_the_data_are_not_changed(init):
    for offset in (0.0, 1e6):
        x = blobs(200, 3, 5, np.float64) + offset
        copy = x.copy()
        x.flags.writeable = False
        cluster(x, 6, init=init)
        np.testing.assert_array_equal(x, copy)

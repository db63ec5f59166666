"""`Sketched` and the fast GDI: the oracle's choices, energy that never rises, an end that is exact."""

from itertools import pairwise

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import Problem, bind, blobs, grid, problems

from k2means import GDI, K2Means, Lloyd, PlusPlus, Random, Sketched, Stop, _core, cluster
from k2means.cluster import prepare

DTYPES = (np.float32, np.float64)


def wide_blobs(n, d, k, dtype, seed=0):
    """Clumps in a few directions of many, and noise in all: what a sketch is for."""
    rng = np.random.default_rng(seed)
    return (blobs(n, 6, k, np.float64, seed) @ rng.normal(size=(6, d)) + rng.normal(size=(n, d))).astype(dtype)


def hartigan(x, centers, labels, weights, allowed=None):
    """The label that lowers the energy most for each row alone, all at once, in plain double; of those allowed."""
    w = np.ones(len(x)) if weights is None else weights
    size = np.bincount(labels, w, len(centers))
    square = ((x[:, None].astype(np.float64) - centers.astype(np.float64)) ** 2).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = square * (size / (size + w[:, None]))
        rows = np.arange(len(x))
        cost[rows, labels] = square[rows, labels] * size[labels] / (size[labels] - w)
    if allowed is not None:
        cost[~allowed] = np.inf
    best = np.where(size[labels] <= w, labels, np.nanargmin(cost, axis=1))
    clear = np.sort(np.nan_to_num(cost, nan=np.inf), axis=1)
    return best, clear[:, 1] > clear[:, 0] * (1 + 1e-6) if len(centers) > 1 else np.ones(len(x), bool)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sketch", [False, True])
@pytest.mark.parametrize("d", [3, 60, 300])
def test_a_turn_is_hartigans_choice_for_every_row(d, sketch, weighted, dtype):
    x = wide_blobs(500, d, 25, dtype)
    weights = np.random.default_rng(1).uniform(0.5, 3.0, len(x)) if weighted else None
    labels = oracle.nearest(x, x[:25]).astype(np.int32)
    labels[np.flatnonzero(labels == 3)[1:]] = 4  # one is alone, and stays
    centers = oracle.means(x, labels, x[:25].astype(np.float64), weights).astype(dtype)
    want, clear = hartigan(x, centers, labels, weights)
    assert len(np.unique(want)) == 25  # nothing to refill
    engine = bind(Sketched(25, turns=1), Problem(x, centers, labels, weights), sketch=sketch)
    engine.step()
    np.testing.assert_array_equal(engine.labels()[clear], want[clear])
    assert clear.mean() > 0.9


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("init", [GDI(exact=False, early=2), GDI(exact=False), GDI(), PlusPlus(), Random()], ids=str)
@pytest.mark.parametrize(("d", "neighbors"), [(4, 8), (80, 8), (80, "auto")])
def test_energy_never_rises_and_the_end_is_exact(d, neighbors, init, weighted, dtype):
    x = wide_blobs(900, d, 60, dtype)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, len(x)) if weighted else None
    r = cluster(x, 60, method=Sketched(neighbors), init=init, stop=Stop(max_iter=300), sample_weight=weights)
    energies = [t.energy for t in r.trace]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(energies))
    assert r.converged
    np.testing.assert_array_equal(r.labels, oracle.nearest(x, r.centers, r.labels))
    means = oracle.means(x, r.labels, r.centers.astype(np.float64), weights)
    np.testing.assert_allclose(r.centers, means, rtol=1e-5 if dtype == np.float32 else 1e-11, atol=1e-6)
    assert r.energy == pytest.approx(oracle.energy(x, r.centers, r.labels, weights), rel=1e-12)


@given(problems(), st.integers(1, 12), st.integers(1, 5), st.booleans())
def test_energy_never_rises_on_any_start(problem, neighbors, turns, sketch):
    x, centers, labels, weights = problem
    engine = bind(Sketched(min(neighbors, len(centers)), turns), problem, sketch=sketch)
    last = np.inf if labels is None else oracle.energy(x, centers, labels, weights)
    slack = 1e-9 * (1 + oracle.total(x, weights))
    for _ in range(6):
        engine.step()
        now = oracle.energy(x, engine.centers(), engine.labels(), weights)
        assert now <= last + slack
        last = now
    engine.settle(afresh=True)
    np.testing.assert_array_equal(engine.labels(), oracle.nearest(x, engine.centers()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_ends_below_lloyd_from_k_means_plus_plus(dtype):
    x = wide_blobs(3000, 60, 200, dtype)
    ours = cluster(x, 100, method=Sketched(), init=GDI(exact=False))
    lloyd = [cluster(x, 100, method=Lloyd(), init=PlusPlus(), seed=s).energy for s in range(3)]
    assert ours.energy < np.mean(lloyd)


@pytest.mark.parametrize("offset", [0.0, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("neighbors", [5, "auto"])
def test_the_bits_do_not_depend_on_threads(neighbors, weighted, offset):
    x = wide_blobs(2000, 70, 50, np.float32) + np.float32(offset)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, len(x)) if weighted else None
    runs = [
        cluster(x, 50, method=Sketched(neighbors), init=GDI(exact=False, early=3), n_threads=t, sample_weight=weights)
        for t in (1, 2, 5)
    ]
    for r in runs[1:]:
        assert r.labels.tobytes() == runs[0].labels.tobytes()
        assert r.centers.tobytes() == runs[0].centers.tobytes()
        assert [(t.energy, t.moved, t.shift, t.ops) for t in r.trace] == [
            (t.energy, t.moved, t.shift, t.ops) for t in runs[0].trace
        ]


def test_what_settles_is_what_predict_says_also_of_ties():
    x = grid(500, 3, np.float64)
    model = K2Means(40, random_state=0, max_iter=2).fit(x)
    np.testing.assert_array_equal(model.labels_, model.predict(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [3, 70])
@pytest.mark.parametrize("k", [300, 1200])
def test_with_many_centers_only_those_within_reach_are_looked_at_and_none_is_missed(k, d, dtype):
    x = wide_blobs(4000, d, 40, dtype)
    problem = Problem(x, x[:k].copy(), None, None)
    engines = [bind(method, problem, threads=2, sketch=d > 40) for method in (Sketched(k, 1, False), Lloyd())]
    for _ in range(3):
        for engine in engines:
            engine.step()
        assert engines[0].labels().tobytes() == engines[1].labels().tobytes()
    centers = engines[0].centers()
    right = engines[0].labels() == oracle.nearest(x, centers)
    assert 0 < engines[0].certify() <= right.sum() < len(x)
    ops = engines[0].settle(afresh=True)[2]
    np.testing.assert_array_equal(engines[0].labels(), oracle.nearest(x, centers))
    assert ops[1] < len(x) * k * 0.75 * min(1, 32 / d)  # products, counted as whole rows: not all


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_nearest_of_many_by_sketches_is_the_oracles(dtype):
    x = wide_blobs(3000, 60, 50, dtype)
    sketch = _core.sketch(x, _core.survey(x, None, 2), 0, 2)
    for k in (1023, 1100):
        centers = np.concatenate([x[: k - 20], x[:20]])  # twins: the first is taken
        np.testing.assert_array_equal(_core.nearest(x, centers, None, 2, sketch), oracle.nearest(x, centers))


# ---- the fast GDI ------------------------------------------------------------------------------------------------


def fast_start(x, k, early, weights=None, threads=1):
    return GDI(exact=False, early=early)(prepare(x, weights, threads), k, np.random.default_rng(0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("early", [0, 4])
def test_fast_gdi_gives_means_of_its_labels(early, weighted, dtype):
    x = wide_blobs(1500, 90, 40, dtype)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, len(x)) if weighted else None
    start = fast_start(x, 40, early, weights)
    assert len(np.unique(start.labels)) == 40
    want = oracle.means(x, start.labels, np.zeros((40, 90)), weights)
    np.testing.assert_allclose(start.centers, want, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-6)
    again = fast_start(x, 40, early, weights, threads=3)
    assert (again.labels.tobytes(), again.centers.tobytes()) == (start.labels.tobytes(), start.centers.tobytes())


def test_early_iterations_lower_the_energy_and_are_counted():
    x = wide_blobs(36_000, 120, 150, np.float32)
    starts = [fast_start(x, 100, early) for early in (0, 1, 10)]
    energies = [_core.energy(x, None, s.centers, s.labels, 1) for s in starts]
    assert energies[0] > energies[1] > energies[2]
    assert starts[0].ops.total < starts[1].ops.total < starts[2].ops.total


def test_early_iterations_are_left_out_where_sketches_tell_little():
    x = np.random.default_rng(0).normal(size=(70_000, 64)).astype(np.float32)
    none, some = fast_start(x, 50, 0), fast_start(x, 50, 5)
    assert none.labels.tobytes() == some.labels.tobytes()


def test_few_directions_are_taken_if_they_tell_nearly_all():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 5)) @ rng.normal(size=(5, 60))
    assert prepare(x, None, 1).coordinates().shape == (2000, 8)
    assert prepare(x + rng.normal(size=x.shape), None, 1).coordinates().shape == (2000, 32)


def test_fast_gdi_refines_to_the_energy_of_the_exact_one():
    """Within 1 % on 3000 rows; the race's rows are held to 0.2 % (docs/sketched.md)."""
    x = wide_blobs(3000, 120, 150, np.float32)
    fast, exact = (
        np.mean([cluster(x, 100, method=Sketched(), init=GDI(exact=e), seed=s).energy for s in range(3)])
        for e in (False, True)
    )
    assert fast <= exact * 1.01


def test_rows_that_differ_only_outside_the_directions_still_make_k_clusters():
    x = np.zeros((300, 64), dtype=np.float32)
    x[:, :40] = np.random.default_rng(0).normal(size=(1, 40)) * 100
    x[:, 0] += np.repeat(np.arange(3), 100) * 1000
    x[np.arange(300), 20 + np.arange(300) % 44] += 0.01 * (1 + np.arange(300) // 44)
    model = K2Means(120, random_state=0).fit(x)
    assert len(np.unique(model.labels_)) == 120


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sketched(0), "n_neighbors"),
        (lambda: Sketched("all"), "n_neighbors"),
        (lambda: Sketched(turns=0), "turns"),
        (lambda: Sketched(hartigan=1), "hartigan must be True or False, got 1"),
        (lambda: GDI(exact="no"), "exact must be True or False, got 'no'"),
        (lambda: GDI(exact=False, early=-1), "early must be at least 0, got -1"),
        (lambda: GDI(early=3), "early=3 iterations are on sketches, and need exact=False"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("turns", [1, 2, 4])
@pytest.mark.parametrize("d", [12, 60])
def test_later_looks_at_all_centers_are_short_and_miss_nothing(d, turns, weighted):
    """With few neighbours, rows find their nearest center only when they look at all, again and again."""
    x, k = blobs(6000, d, 200, np.float32), 300
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(x)) if weighted else None
    method = Sketched(4, turns=turns, swaps=False)
    r = cluster(x, k, method=method, init=GDI(), sample_weight=weights, stop=Stop(max_iter=300))
    assert r.converged
    squares = ((x[:, None].astype(np.float64) - r.centers) ** 2).sum(axis=2)
    own = squares[np.arange(len(x)), r.labels]
    assert (own <= squares.min(axis=1) * (1 + 1e-5)).all()
    if d == 12:  # else one such look is enough
        products = [record.ops.products for record in r.trace]
        assert products[-1] < 0.5 * max(products)

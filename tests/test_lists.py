"""Own lists of centers: the best of a list is taken, lists hold the nearest, and the end is exact all the same."""

from itertools import pairwise

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import Problem, bind, blobs, problems
from test_sketched import hartigan, wide_blobs

from k2means import GDI, K2Means, PlusPlus, Random, Sketched, Stop, cluster

DTYPES = (np.float32, np.float64)
LISTED = 8


def lists_of(engine, n):
    """What the engine would save: the lists come first."""
    return engine.known()[: n * LISTED].reshape(n, LISTED)


def start(n, d, k, dtype, seed=0):
    x = wide_blobs(n, d, k, dtype, seed)
    labels = oracle.nearest(x, x[:k]).astype(np.int32)
    return x, oracle.means(x, labels, x[:k].astype(np.float64)).astype(dtype), labels


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [3, 60, 1100])
@pytest.mark.parametrize("sketch", [False, True])
def test_a_row_takes_the_best_of_its_list_and_its_own_center(sketch, d, weighted, dtype):
    """Rows of 1100 values look at sketches first; that must not change a choice. With new lists, then with old ones."""
    x, centers, labels = start(900, d, 40, dtype)
    weights = np.random.default_rng(1).uniform(0.5, 3.0, len(x)) if weighted else None
    engine = bind(Sketched(turns=1, lists=True, swaps=False), Problem(x, centers, labels, weights), sketch=sketch)
    for _ in range(2):
        before, at = engine.labels(), engine.centers()
        engine.step()
        allowed = np.zeros((len(x), 40), dtype=bool)
        np.put_along_axis(allowed, lists_of(engine, len(x)).astype(np.int64), True, axis=1)
        allowed[np.arange(len(x)), before] = True
        want, clear = hartigan(x, at, before, weights, allowed)
        assert clear.mean() > 0.9
        assert len(np.unique(want)) == 40  # nothing to refill
        np.testing.assert_array_equal(engine.labels()[clear], want[clear])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [3, 60])
def test_a_new_list_has_the_nearest_centers_where_all_groups_are_asked(d, dtype):
    x, centers, labels = start(700, d, 200, dtype)
    engine = bind(Sketched(turns=1, lists=True), Problem(x, centers, labels, None), sketch=False)
    engine.step()
    squares = ((x[:, None].astype(np.float64) - centers.astype(np.float64)) ** 2).sum(axis=2)
    listed = np.take_along_axis(squares, lists_of(engine, len(x)).astype(np.int64), axis=1)
    assert (np.sort(lists_of(engine, len(x)), axis=1)[:, 1:] > np.sort(lists_of(engine, len(x)), axis=1)[:, :-1]).all()
    eighth = np.sort(squares, axis=1)[:, LISTED - 1]
    scale = np.square(x, dtype=np.float64).sum(axis=1)
    assert (listed.max(axis=1) <= eighth + 1e-5 * scale).all()  # ranked by products, which round


def test_of_many_centers_few_are_looked_at_and_most_rows_find_the_nearest():
    x = blobs(30_000, 24, 600, np.float32)
    k = 3000
    engine = bind(Sketched(turns=1, lists=True), Problem(x, x[:k].copy(), None, None), threads=2, sketch=False)
    engine.step()  # all centers, for lack of labels
    centers = engine.centers()
    ops = engine.step()[2]
    nearest = oracle.nearest(x[:2000], centers)
    found = (lists_of(engine, len(x))[:2000] == nearest[:, None]).any(axis=1).mean()
    assert found > 0.7
    assert ops[0] + ops[1] < len(x) * k / 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("init", [GDI(exact=False, early=2), GDI(), PlusPlus(), Random()], ids=str)
@pytest.mark.parametrize("d", [4, 80])
def test_energy_never_rises_and_the_end_is_exact(d, init, weighted, dtype):
    x = wide_blobs(1200, d, 60, dtype)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, len(x)) if weighted else None
    r = cluster(x, 140, method=Sketched(), init=init, stop=Stop(max_iter=300), sample_weight=weights)
    energies = [t.energy for t in r.trace]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(energies))
    assert r.converged
    np.testing.assert_array_equal(r.labels, oracle.nearest(x, r.centers, r.labels))
    assert r.energy == pytest.approx(oracle.energy(x, r.centers, r.labels, weights), rel=1e-12)


@given(problems(), st.integers(1, 5), st.booleans())
def test_energy_never_rises_on_any_start(problem, turns, sketch):
    x, centers, labels, weights = problem
    engine = bind(Sketched(turns=turns, lists=True), problem, sketch=sketch)
    last = np.inf if labels is None else oracle.energy(x, centers, labels, weights)
    for _ in range(6):
        engine.step()
        now = oracle.energy(x, engine.centers(), engine.labels(), weights)
        assert now <= last + 1e-9 * (1 + oracle.total(x, weights))
        last = now
    engine.settle(afresh=True)
    np.testing.assert_array_equal(engine.labels(), oracle.nearest(x, engine.centers()))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("d", [5, 70, 1100])
def test_the_bits_do_not_depend_on_threads(d, metric):
    x = wide_blobs(2500, d, 90, np.float32)
    models = [K2Means(200, random_state=0, n_threads=t, metric=metric).fit(x) for t in (1, 2, 5)]
    for m in models[1:]:
        assert m.labels_.tobytes() == models[0].labels_.tobytes()
        assert m.cluster_centers_.tobytes() == models[0].cluster_centers_.tobytes()
        assert [(t.energy, t.moved, t.shift, t.ops) for t in m.trace_] == [
            (t.energy, t.moved, t.shift, t.ops) for t in models[0].trace_
        ]


def test_lists_reach_what_neighbourhoods_do_not():
    """Isotropic noise: the neighbors of its center are a poor guide for a row."""
    x = np.random.default_rng(0).normal(size=(12_000, 48)).astype(np.float32)
    with_lists, without = (
        cluster(x, 300, method=Sketched(n, swaps=False, exact=False), init=GDI(exact=False), stop=Stop(max_iter=30))
        for n in ("auto", 32)
    )
    assert with_lists.energy < 0.998 * without.energy


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sketched(lists="no"), "lists must be True, False or 'auto', got 'no'"),
        (lambda: Sketched(lists=1), "lists must be True, False or 'auto', got 1"),
        (lambda: Sketched(5, lists=True), "lists=True is instead of neighbors, got n_neighbors=5"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_what_was_known_of_other_data_is_refused():
    x, centers, labels = start(300, 5, 150, np.float32)
    engine = bind(Sketched(lists=True), Problem(x, centers, labels, None))
    engine.step()
    known = engine.known()
    for wrong in (known[:-1], np.where(np.arange(len(known)) == 3, 150, known).astype(np.int32)):
        with pytest.raises(ValueError, match="what was known"):
            rebind(x, centers, labels, wrong)
    rebind(x, centers, labels, known)


def rebind(x, centers, labels, known):
    from k2means import _core, methods

    survey = _core.survey(x, None, 1)
    return Sketched(lists=True).bind(methods.Problem(x, None, survey, centers, labels, 1, known=known))

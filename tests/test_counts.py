"""Operations are counted exactly, as design.md spells it out, and do not depend on threads."""

import math

import numpy as np
import oracle
import pytest
from problems import BOUNDS, Problem, bind, blobs, divide, grid

from k2means import GDI, K2, Elkan, Given, Lloyd, Ops, PlusPlus, Random, Stop, cluster


def trace_of(method, x, k, init=None, steps=12, **options):
    return cluster(x, k, method=method, init=init or Given(x[:k]), stop=Stop(max_iter=steps), **options)


def test_lloyd_measures_every_row_against_every_center():
    x = blobs(500, 4, 10, np.float64)
    r = trace_of(Lloyd(), x, 10)
    assert [t.ops.distances for t in r.trace] == [500 * 10] * r.n_iter


@pytest.mark.parametrize("method", [Lloyd(), Elkan(), *(K2(5, bounds=b) for b in BOUNDS)], ids=str)
def test_without_labels_the_first_iteration_measures_everything(method):
    x = blobs(500, 4, 20, np.float64)
    assert trace_of(method, x, 20).trace[0].ops.distances == 500 * 20


def test_a_refill_costs_one_distance_a_row():
    x = blobs(300, 3, 5, np.float64)
    centers = np.concatenate([x[:5], np.full((1, 3), 1e3)])  # nobody is near the last
    r = cluster(x, 6, method=Lloyd(), init=Given(centers), stop=Stop(max_iter=1))
    assert r.trace[0].ops.distances == 300 * 6 + 300


def test_elkan_never_measures_more_than_lloyd_and_the_center_graph():
    x, k = blobs(600, 3, 25, np.float64), 25
    for labels in (None, oracle.nearest(x, x[:k])):
        engine = bind(Elkan(), Problem(x, x[:k].copy(), labels, None))
        for _ in range(10):
            assert engine.step()[2][0] <= 600 * k + k * (k - 1) // 2


@pytest.mark.parametrize("width", [1, 2, 7, 20])
@pytest.mark.parametrize("data", ["blobs", "grid"])
def test_k2_measures_the_center_graph_and_at_most_its_lists(data, width):
    n, k = 600, 40
    x = blobs(n, 3, k, np.float64) if data == "blobs" else grid(n, 4, np.float64)
    graph = k * (k - 1) // 2
    for bounds in BOUNDS:
        # "hamerly" measures a row's own center first, and again with the whole list if the row stays in doubt
        most = n * width if bounds == "elkan" else n * (width + 1)
        engine = bind(K2(width, bounds=bounds), Problem(x, x[:k].copy(), oracle.nearest(x, x[:k]), None))
        for t in range(15):
            listed = oracle.nearest_listed(x, engine.centers(), engine.labels(), width)
            refill = 0 if np.bincount(listed, minlength=k).all() else n
            measured = engine.step()[2][0] - graph - refill
            assert 0 <= measured <= most, (bounds, t)
            if t == 0:
                assert measured >= n, bounds  # no bounds yet: every row is looked at


def test_k2_measures_ever_fewer_distances_as_its_bounds_bite():
    x = blobs(2000, 5, 60, np.float64)
    for bounds in BOUNDS:
        r = trace_of(K2(15, bounds=bounds), x, 60, init=GDI(), steps=200)
        assert r.converged
        graph = 60 * 59 // 2
        # nothing moved in the last iteration: only rows whose bounds just fail are measured
        assert r.trace[-1].ops.distances - graph < (r.trace[0].ops.distances - graph) / 4


def test_a_row_added_or_taken_away_is_one_addition():
    x, k = blobs(700, 4, 30, np.float32), 30
    for method in (Lloyd(), Elkan(), K2(6), K2(6, bounds="hamerly")):
        engine = bind(method, Problem(x, x[:k].copy(), None, None))
        before = None
        for _ in range(8):
            ops = Ops(*engine.step()[2])
            labels = engine.labels()
            assert ops.additions == (len(x) if before is None else 2 * int((labels != before).sum())), method
            before = labels


def test_sums_in_double_add_the_rows_of_the_clusters_that_changed():
    # weights of 12 decades leave fixed point no room
    x, k = blobs(400, 3, 20, np.float64), 20
    weights = 10.0 ** np.random.default_rng(0).uniform(-6, 6, len(x))
    engine = bind(Lloyd(), Problem(x, x[:k].copy(), None, weights))
    before = None
    for _ in range(6):
        ops = Ops(*engine.step()[2])
        labels = engine.labels()
        assert np.bincount(labels, minlength=k).all()
        changed = np.ones(len(x), bool) if before is None else labels != before
        touched = np.unique(labels if before is None else np.concatenate([labels[changed], before[changed]]))
        assert ops.additions == int(np.isin(labels, touched).sum())
        before = labels


@pytest.mark.parametrize("trials", [1, 3, "auto"])
def test_k_means_plus_plus_measures_every_row_for_every_trial(trials):
    x, k = blobs(300, 4, 12, np.float64), 12
    each = 2 + int(math.log(k)) if trials == "auto" else trials
    ops = cluster(x, k, init=PlusPlus(trials=trials), stop=Stop(max_iter=1)).init_ops
    assert ops == Ops(distances=300 * (1 + (k - 1) * each))


def test_random_and_given_cost_nothing():
    x = blobs(300, 4, 12, np.float64)
    for init in (Random(), Given(x[:12]), Given(lambda x, k, random_state: x[:k])):
        assert cluster(x, 12, init=init, stop=Stop(max_iter=1)).init_ops == Ops()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_gdi_charges_the_rows_of_every_cluster_it_splits(iterations, dtype):
    # The tree does not depend on k, so labels for k and k + 1 clusters tell which cluster was split, and its size.
    x = blobs(500, 5, 8, dtype)
    labels = np.zeros(len(x), dtype=np.int32)
    rows, sorts = 0, 0.0
    for k in range(2, 40):
        finer, ops = divide(x, k, iterations, seed=7)[1:]
        split = labels[finer == k - 1]
        assert len(np.unique(split)) == 1
        assert ((finer == labels) | (finer == k - 1)).all()
        m = int((labels == split[0]).sum())
        rows += iterations * m
        sorts += iterations * m * math.log2(m) / x.shape[1]
        assert ops.products == ops.additions == ops.distances == rows
        assert ops.sorts == pytest.approx(sorts, rel=1e-12)  # a sum of up to 40 terms in double
        labels = finer


def test_the_total_is_the_initialisation_and_all_iterations():
    x = blobs(300, 4, 12, np.float64)
    r = cluster(x, 12, method=K2(4), init=GDI(), stop=Stop(max_iter=9))
    want = sum((t.ops for t in r.trace), r.init_ops)
    assert r.ops == want
    assert r.ops.total == pytest.approx(
        sum(t.ops.total for t in r.trace) + r.init_ops.total, rel=1e-12
    )  # sorts are fractions


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_counts_do_not_depend_on_threads(threads):
    x = blobs(2500, 6, 50, np.float32)
    for method in (Lloyd(), Elkan(), *(K2(8, bounds=b) for b in BOUNDS)):
        for init in (GDI(), PlusPlus(trials="auto")):
            alone, together = (trace_of(method, x, 50, init=init, steps=6, n_threads=t) for t in (1, threads))
            assert together.init_ops == alone.init_ops
            assert [t.ops for t in together.trace] == [t.ops for t in alone.trace]

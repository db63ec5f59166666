"""The same bits for any number of threads."""

import numpy as np
import pytest
from problems import BOUNDS, blobs

from k2means import AKM, GDI, K2, Elkan, Given, Lloyd, MiniBatch, PlusPlus, Random, Sketched, Stop, _core, cluster

METHODS = (Lloyd(), Elkan(), *(K2(6, bounds=b) for b in BOUNDS), AKM(5), MiniBatch(batch_size=150, spacing=3))
INITS = (GDI(), PlusPlus(), PlusPlus(trials="auto"), Random(), "given")


def everything(r):
    """All a result tells, but seconds."""
    trace = [(t.iteration, t.energy, t.ops, t.moved, t.shift) for t in r.trace]
    return r.labels.tobytes(), r.centers.tobytes(), r.energy, r.n_iter, r.init_ops, r.ops, r.converged, trace


def check_threads(x, k, weights=None, steps=5, **options):
    want = None
    for threads in (1, 2, 3, 7):
        r = cluster(x, k, stop=Stop(max_iter=steps), n_threads=threads, sample_weight=weights, **options)
        want = everything(r) if want is None else want
        assert everything(r) == want, threads


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("init", INITS, ids=str)
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_every_method_from_every_start(method, init, dtype):
    x = blobs(3001, 13, 40, dtype)
    check_threads(x, 40, method=method, init=Given(x[:40]) if init == "given" else init)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decades", [1, 9])
@pytest.mark.parametrize("init", [GDI(), PlusPlus(), Random()], ids=str)
def test_with_weights_in_fixed_point_and_in_double(init, decades, dtype):
    x = blobs(3001, 5, 40, dtype)
    weights = 10.0 ** np.random.default_rng(0).uniform(-decades / 2, decades / 2, len(x))
    for method in METHODS:
        check_threads(x, 30, weights, steps=3, method=method, init=init)


def test_with_more_rows_than_any_piece_of_work():
    # 2^21 values: the first splits use all threads; 2^14 rows: the search for changed labels is cut up
    x = blobs(40_000, 56, 10, np.float32)
    check_threads(x, 12, steps=3, method=K2(4), init=GDI())


def test_far_from_the_origin():
    x = blobs(3001, 7, 20, np.float32) + np.float32(1e5)
    check_threads(x, 20, method=K2(6), init=GDI())


def test_more_threads_than_rows():
    x = blobs(5, 2, 2, np.float64)
    for method in METHODS:
        check_threads(x, 3, method=method, init=GDI())


def test_questions_about_given_centers():
    x, centers = blobs(3001, 13, 40, np.float32), blobs(40, 13, 40, np.float32, seed=1)
    labels = _core.nearest(x, centers, None, 1)
    for threads in (2, 3, 7):
        assert _core.nearest(x, centers, None, threads).tobytes() == labels.tobytes()
        assert _core.energy(x, None, centers, labels, threads) == _core.energy(x, None, centers, labels, 1)
        assert _core.distances(x, centers, threads).tobytes() == _core.distances(x, centers, 1).tobytes()


def test_above_4096_clusters_neighbors_are_refreshed():
    x = blobs(9000, 3, 300, np.float32)
    check_threads(x, 4200, method=Sketched(16), init=GDI(exact=False, early=4))

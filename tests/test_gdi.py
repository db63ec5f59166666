"""Greedy Divisive Initialisation: labels and centers agree, splits are the best along their line, nothing loops."""

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from problems import blobs, divide
from sklearn.exceptions import ConvergenceWarning

from k2means import GDI, K2, Lloyd, Stop, cluster

DTYPES = (np.float32, np.float64)


def check_division(x, k, centers, labels, weights=None):
    assert labels.min() >= 0
    assert labels.max() < k
    assert np.isfinite(centers).all()
    present = np.unique(labels)
    want = oracle.means(x, labels, centers, weights)
    # means come from running sums about the parents' means: a rounding for each row, as large as the data reach, which
    # counts for more in a cluster that is light
    light = 1.0 if weights is None else weights.sum() / weights.min()
    slack = len(x) * light * 2.0**-50 * (np.abs(x.astype(np.float64)).max() + 1e-300) + np.spacing(np.abs(centers))
    assert (np.abs(centers.astype(np.float64) - want)[present] <= slack[present]).all()
    return len(present)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 50, 300])
def test_centers_are_the_means_of_the_labelled_rows(k, weighted, dtype):
    x = blobs(300, 19, 10, dtype)
    weights = np.random.default_rng(0).uniform(0.1, 10, len(x)) if weighted else None
    centers, labels, _ = divide(x, k, weights=weights)
    assert check_division(x, k, centers, labels, weights) == k


@given(
    hnp.arrays(np.int8, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.integers(-3, 3)),
    st.sampled_from(DTYPES),
    st.integers(1, 3),
    st.integers(0, 2**63 - 1),
    st.data(),
)
def test_k_distinct_rows_give_k_clusters_and_fewer_give_all_there_are(x, dtype, iterations, seed, data):
    x = x.astype(dtype)
    distinct = len(np.unique(x, axis=0))
    k = data.draw(st.integers(1, len(x)))
    weights = data.draw(st.none() | hnp.arrays(np.float64, len(x), elements=st.sampled_from([0.25, 1.0, 7.0])))
    centers, labels, _ = divide(x, k, iterations, seed, weights)
    assert check_division(x, k, centers, labels, weights) == min(k, distinct)


@pytest.mark.parametrize("rows", [np.zeros((50, 3)), np.full((50, 3), 1e6), np.repeat([[1.0, 2], [3, 4]], 25, axis=0)])
@pytest.mark.parametrize("method", [Lloyd(), K2(3), K2(3, bounds="hamerly")], ids=str)
def test_fewer_distinct_rows_than_clusters_is_a_warning_and_finite_centers(rows, method):
    distinct = len(np.unique(rows, axis=0))
    with pytest.warns(ConvergenceWarning, match=rf"\({distinct}\)"):
        r = cluster(rows, 7, method=method, init=GDI())
    assert np.isfinite(r.centers).all()
    assert r.energy == 0.0
    assert len(np.unique(r.labels)) == distinct


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", [Lloyd(), K2(30), K2(30, bounds="hamerly")], ids=str)
def test_hundreds_of_twins_of_a_center_do_no_harm(method):
    # GDI repeats a center when rows run out
    x = np.repeat(blobs(5, 2, 2, np.float64), 100, axis=0)
    r = cluster(x, 300, method=method, init=GDI(), stop=Stop(max_iter=3))
    assert len(np.unique(r.labels)) == 5
    # a center is the common mean plus a deviation: twice the rounding of numbers as large as the data
    assert r.energy <= x.size * (np.abs(x).max() * 2.0**-51) ** 2


def test_energy_is_split_where_it_is_highest():
    x = blobs(400, 4, 6, np.float64)
    labels = np.zeros(len(x), dtype=np.int32)
    for k in range(2, 60):
        finer = divide(x, k, seed=3)[1]
        energies = [oracle.total(x[labels == j]) for j in range(k - 1)]
        split = labels[finer == k - 1][0]
        assert energies[split] >= max(energies) * (1 - 1e-12)  # energies come from running sums
        labels = finer


# ---- one split against brute force -------------------------------------------------------------------------------


def best_cuts(x, direction, weights):
    """All cuts along a line that have the least energy, up to rounding."""
    masks = oracle.cuts(x, direction)
    energies = np.array([oracle.cut_energy(x, m, weights) for m in masks])
    slack = 1e-9 * oracle.total(x, weights)  # energies of a dozen rows in double; near ties may go either way
    return [m for m, e in zip(masks, energies, strict=True) if e <= energies.min() + slack]


def reachable_splits(x, weights, iterations):
    """What Projective Split may return: the best cut along a line through two rows, then along that of its means."""
    found = set()
    for a in range(len(x)):
        for b in range(a):  # the other direction has the same cuts
            if (x[a] == x[b]).all():
                continue
            frontier = [x[a].astype(np.float64) - x[b].astype(np.float64)]
            for _ in range(iterations):
                masks = [m for direction in frontier for m in best_cuts(x, direction, weights)]
                centers = [oracle.means(x, m.astype(int), np.zeros((2, x.shape[1])), weights) for m in masks]
                frontier = [c[1] - c[0] for c in centers]
            found.update(np.packbits(m).tobytes() for m in masks)
            found.update(np.packbits(~m).tobytes() for m in masks)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_a_split_is_the_best_cut_along_a_line_through_two_rows(d, weighted, iterations, dtype):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(8, d)).astype(dtype)
        x[3] = x[5]
        weights = rng.choice([0.5, 1.0, 4.0], len(x)) if weighted else None
        reachable = reachable_splits(x, weights, iterations)
        for key in range(4):
            labels = divide(x, 2, iterations, seed=key, weights=weights)[1]
            assert np.packbits(labels.astype(bool)).tobytes() in reachable


def test_seeds_try_different_lines():
    x = np.random.default_rng(0).normal(size=(40, 3))
    assert len({divide(x, 2, 1, seed=s)[1].tobytes() for s in range(20)}) > 3


# ---- arithmetic --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 2.0**20), (np.float64, 2.0**20), (np.float64, 2.0**40)])
def test_an_offset_of_all_rows_changes_no_split(dtype, offset):
    # Eighths have room beside the offset, so the rows are the same; a scan that is not centred would cut off single
    # rows by rounding (research/README.md §2).
    x = np.round(8 * np.random.default_rng(0).normal(size=(800, 6))) / 8
    want = divide(x.astype(dtype), 40, seed=1)[1]
    got = divide((x + offset).astype(dtype), 40, seed=1)[1]
    np.testing.assert_array_equal(got, want)


def test_clusters_of_even_data_are_not_single_rows():
    x = np.random.default_rng(0).normal(size=(2000, 20)).astype(np.float32) + np.float32(1e6)
    r = cluster(x, 50, init=GDI(), method=Lloyd(), stop=Stop(max_iter=1))
    start = divide(x - np.float32(1e6), 50)[1]
    assert (np.bincount(start) == 1).sum() == 0
    assert (np.bincount(r.labels) == 1).sum() == 0


@pytest.mark.parametrize("seed", range(5))
def test_weights_of_many_decades_leave_centers_among_their_rows(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(100, 3))
    weights = 10.0 ** rng.uniform(-12, 12, len(x))
    centers, labels, _ = divide(x, 5, seed=seed, weights=weights)
    assert sorted(np.unique(labels)) == [0, 1, 2, 3, 4]
    for j in range(5):  # a mean lies among its rows, up to the rounding of a sum of 100
        mine = x[labels == j]
        assert (centers[j] >= mine.min(axis=0) - 1e-13).all()
        assert (centers[j] <= mine.max(axis=0) + 1e-13).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_differ_in_the_last_digit_are_told_apart(dtype):
    one = dtype(1)
    x = np.stack([np.full(3, np.nextafter(one, dtype(2)), dtype), np.full(3, one, dtype), np.zeros(3, dtype)])
    labels = divide(x, 3)[1]
    assert sorted(labels) == [0, 1, 2]

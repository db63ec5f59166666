"""What the estimator has beyond scikit-learn's: certificates, the nearest centers, cosine, a limit of time."""

from itertools import pairwise

import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import blobs, grid

import k2means
from k2means import K2Means, _core

DTYPES = (np.float32, np.float64)


def flat_blobs(n, d, k, dtype, seed=0):
    """Clumps in a few of many directions: rows have short sketches."""
    rng = np.random.default_rng(seed)
    x = blobs(n, 6, k, np.float64, seed) @ rng.normal(size=(6, d)) + 0.3 * rng.normal(size=(n, d))
    return x.astype(dtype)


# ---- certificate -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [5, 80])
def test_a_certified_label_is_never_wrong(d, dtype):
    x = flat_blobs(2000, d, 150, dtype)
    options = {"n_neighbors": 4, "init": "random", "max_iter": 3}  # too few of both: some labels are wrong
    model = K2Means(150, **options, polish="certify", random_state=0).fit(x)
    right = model.labels_ == oracle.nearest(x, model.cluster_centers_, model.labels_)
    assert 0 < model.certified_ <= right.mean()
    assert not right.all()  # else nothing is shown
    assert model.certified_ > 0.5 * right.mean()


def test_the_exact_end_is_certified_and_the_unlooked_at_is_not():
    x = flat_blobs(1000, 60, 60, np.float32)
    exact = K2Means(60, random_state=0).fit(x)
    assert exact.certified_ == 1.0
    assert_array_equal(exact.labels_, oracle.nearest(x, exact.cluster_centers_))
    assert np.isnan(K2Means(60, polish=None, random_state=0).fit(x).certified_)
    assert K2Means(60, algorithm="lloyd", random_state=0).fit(x).certified_ == 1.0
    assert np.isnan(K2Means(60, algorithm="k2", random_state=0).fit(x).certified_)


# ---- the nearest centers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 5, 300, 1000])
@pytest.mark.parametrize("data", ["sketches", "no sketches", "ties"])
def test_nearest_centers_are_those_of_brute_force(data, m, dtype):
    x = {"sketches": flat_blobs(1500, 90, 300, dtype), "no sketches": blobs(1500, 7, 300, dtype)}.get(data)
    x = grid(1200, 3, dtype) if x is None else x
    model = K2Means(300 if data != "ties" else 60, init="random", max_iter=1, random_state=0).fit(x)
    if data == "ties":
        model.cluster_centers_ = x[:60].copy()
    ids, apart = model.nearest_centers(x[:200] if m > 5 else x, m)
    squares = oracle.squared_distances(x[: len(ids)], model.cluster_centers_)
    m = min(m, len(model.cluster_centers_))
    assert ids.shape == apart.shape == (len(ids), m)
    want = np.argsort(squares, axis=1, kind="stable")[:, :m]
    assert_allclose(apart**2, np.take_along_axis(squares, want, 1), rtol=1e-12, atol=1e-12 * squares.max())
    assert_allclose(np.take_along_axis(squares, ids.astype(int), 1), apart**2, rtol=1e-12, atol=1e-12 * squares.max())
    assert all(len(set(row)) == m for row in ids[:50])
    if data == "ties":
        assert_array_equal(ids, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 4, 200])
@pytest.mark.parametrize("data", ["sketches", "no sketches", "ties"])
def test_looking_at_all_groups_of_centers_is_brute_force(data, m, dtype):
    x = {"sketches": flat_blobs(1500, 90, 200, dtype), "no sketches": blobs(1500, 7, 200, dtype)}.get(data)
    x = grid(1500, 3, dtype) if x is None else x
    centers, middles = x[:200].copy(), x[200:220].copy()
    group_of = np.random.default_rng(0).integers(0, 19, size=200).astype(np.int32)  # the last group is empty
    sketch = _core.sketch(x, _core.survey(x, None, 2), 0, 2) if data == "sketches" else None
    want = _core.several(x, centers, sketch, m, 2)
    ids, apart = _core.several_in_groups(x, centers, middles, group_of, sketch, m, 20, 3)
    assert_array_equal(ids, want[0])
    assert_array_equal(apart, want[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("data", "unit", "m"),
    [("noise", 1.0, 1), ("noise", 1.0, 10), ("sketches", 1.0, 10), ("noise", 2.0**-70, 1), ("noise", 2.0**-70, 10)],
)
def test_approximate_nearest_centers_are_as_many_as_stated(data, unit, m, dtype):
    rng = np.random.default_rng(1)
    x = flat_blobs(9000, 90, 700, dtype) if data == "sketches" else rng.standard_normal((9000, 9)).astype(dtype)
    x = (x * dtype(unit)).astype(dtype)
    model = K2Means(1500, max_iter=1, init="random", polish=None, random_state=0).fit(x)
    exact, _ = model.nearest_centers(x, m)
    squares = oracle.squared_distances(x[::50].astype(np.float64) / unit, model.cluster_centers_ / unit)
    for recall in (0.5, 0.9, 0.99):
        answer = model.nearest_centers(x, m, recall=recall)
        ids, apart = answer
        found = (ids[:, :, None] == exact[:, None, :]).any(axis=1).mean()
        assert found >= recall - 0.01
        assert abs(answer.recall - found) < 0.06  # of 250 rows
        assert recall > 0.9 or found < 1  # else it was not approximate
        assert_allclose(np.take_along_axis(squares, ids[::50].astype(int), 1), (apart[::50] / unit) ** 2, rtol=1e-5)
        assert (np.diff(apart, axis=1) >= 0).all()
        assert all(len(set(row)) == m for row in ids[::50])
        again = model.set_params(n_threads=1).nearest_centers(x, m, recall=recall)
        assert_array_equal(ids, again.indices)
        assert again.recall == answer.recall
        model.set_params(n_threads=None)


@pytest.mark.parametrize("case", ["few rows", "few centers", "nearly all centers", "far from the origin", "sketches"])
def test_what_would_not_be_faster_is_exact(case):
    x = np.random.default_rng(2).standard_normal((4000, 5)) + (1e6 if case == "far from the origin" else 0)
    if case == "sketches":
        x = flat_blobs(9000, 90, 700, np.float32)
    k = 200 if case == "few centers" else 1100
    model = K2Means(k, max_iter=1, init="random", polish=None, random_state=0).fit(x)
    x = x[:500] if case == "few rows" else x
    m = {"nearly all centers": 400, "sketches": 1}.get(case, 2)
    answer = model.nearest_centers(x, m, recall=0.5)
    assert answer.recall == 1.0
    exact = model.nearest_centers(x, m)
    assert_array_equal(answer.indices, exact.indices)
    assert_allclose(answer.distances, exact.distances, rtol=1e-12)


def test_groups_of_equal_centers():
    x = np.random.default_rng(3).standard_normal((4000, 5))
    model = K2Means(1100, max_iter=1, init="random", polish=None, random_state=0).fit(x)
    model.cluster_centers_ = np.repeat(x[:11], 100, axis=0)
    ids, apart = model.nearest_centers(x, 3, recall=0.9)
    assert (apart == apart[:, :1]).all()
    assert all(len(set(row)) == 3 for row in ids)


@pytest.mark.parametrize(
    ("recall", "error"),
    [
        (0, ValueError),
        (1.01, ValueError),
        (np.nan, ValueError),
        ("0.9", TypeError),
        (True, TypeError),
        (None, TypeError),
    ],
)
def test_a_recall_that_is_no_share_is_refused(recall, error):
    model = K2Means(5, random_state=0).fit(blobs(100, 3, 5, np.float64))
    with pytest.raises(error, match="recall must be"):
        model.nearest_centers(np.zeros((2, 3)), recall=recall)


@pytest.mark.parametrize("dtype", DTYPES)
def test_predict_by_sketches_is_brute_force(dtype):
    x = flat_blobs(3000, 90, 200, dtype)
    model = K2Means(200, max_iter=2, random_state=0).fit(x)
    new = flat_blobs(2500, 90, 200, dtype, seed=5)
    assert_array_equal(model.predict(new), oracle.nearest(new, model.cluster_centers_))
    assert_array_equal(model.predict(new), [model.predict(new[i : i + 1])[0] for i in range(len(new))])


def test_the_neighbor_graph_has_the_nearest_other_centers():
    model = K2Means(50, random_state=0).fit(blobs(800, 6, 50, np.float64))
    ids, apart = model.neighbor_graph_
    squares = oracle.squared_distances(model.cluster_centers_, model.cluster_centers_)
    np.fill_diagonal(squares, np.inf)
    assert_array_equal(ids, np.argsort(squares, axis=1)[:, :32])
    assert_allclose(apart, np.sqrt(np.sort(squares, axis=1)[:, :32]), rtol=1e-12)


def test_a_graph_of_twins_leaves_each_itself_out():
    model = K2Means(3, init=np.zeros((3, 2)), max_iter=1, n_init=1)
    with pytest.warns(Warning, match="distinct clusters"):
        model.fit(np.zeros((5, 2)))
    ids, _ = model.neighbor_graph_
    assert ids.shape == (3, 2)


# ---- what a fit tells --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_sizes_energies_and_medoids_are_those_of_the_clusters(weighted, tmp_path):
    x = blobs(700, 5, 30, np.float64)
    weights = np.random.default_rng(0).integers(0, 3, len(x)).astype(float) if weighted else None
    model = K2Means(30, random_state=0).fit(x, sample_weight=weights)
    w = np.ones(len(x)) if weights is None else weights
    square = oracle.squared_distances(x, model.cluster_centers_)
    for j in range(30):
        mine = np.flatnonzero(model.labels_ == j)
        assert model.cluster_sizes_[j] == len(mine)
        assert model.cluster_energies_[j] == pytest.approx((square[mine, j] * w[mine]).sum(), rel=1e-12)
        assert square[model.medoid_indices_[j], j] == square[mine, j].min()
    assert model.cluster_energies_.sum() == pytest.approx(model.inertia_, rel=1e-12)
    k2means.save(model, tmp_path / "model.npz")
    again = k2means.load(tmp_path / "model.npz")
    assert_array_equal(again.medoid_indices_, model.medoid_indices_)
    assert again.certified_ == model.certified_ == 1.0


def test_a_fitted_model_can_be_gone_on_with(tmp_path):
    x = blobs(900, 5, 40, np.float64)
    short = K2Means(40, max_iter=1, random_state=0).fit(x)
    longer = K2Means(40, init=short, random_state=0).fit(x)
    same = K2Means(40, init=short.cluster_centers_, random_state=0).fit(x)
    assert longer.inertia_ < short.inertia_
    assert_array_equal(longer.cluster_centers_, same.cluster_centers_)
    k2means.save(longer, tmp_path / "model.npz")
    assert_array_equal(k2means.load(tmp_path / "model.npz").init, short.cluster_centers_)


def test_max_time_ends_the_iterations():
    x = blobs(3000, 5, 100, np.float64)
    assert K2Means(100, max_time=1e-9, random_state=0).fit(x).n_iter_ == 1
    assert K2Means(100, max_time=1e9, random_state=0).fit(x).n_iter_ > 1


# ---- cosine ------------------------------------------------------------------------------------------------------


def spherical_step(x, centers):
    labels = np.argmax(x @ (centers / np.linalg.norm(centers, axis=1, keepdims=True)).T, axis=1)
    means = np.array([x[labels == j].mean(axis=0) for j in range(len(centers))])
    return labels, means / np.linalg.norm(means, axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0, 40])
@pytest.mark.parametrize("d", [6, 90])
def test_cosine_ends_where_spherical_k_means_does_not_move(d, offset, dtype):
    x = (flat_blobs(1500, d, 20, dtype) + dtype(offset)) * np.random.default_rng(1).uniform(0.1, 10, (1500, 1)).astype(
        dtype
    )
    model = K2Means(20, metric="cosine", tol=0, max_iter=500, random_state=0).fit(x)
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    labels, centers = spherical_step(unit, model.cluster_centers_.astype(np.float64))
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    assert (labels == model.labels_).mean() > 1 - 1e-3  # rows halfway between two may go either way in numpy
    assert_allclose(model.cluster_centers_, centers, atol=tolerance * 10)
    assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1.0, rtol=1e-6)
    cosines = (unit * model.cluster_centers_[model.labels_]).sum(axis=1)
    assert model.inertia_ == pytest.approx(2 * (1 - cosines).sum(), rel=1e-4 if dtype == np.float32 else 1e-9)
    assert_array_equal(model.predict(x * dtype(3)), model.labels_)
    energies = [t.energy for t in model.trace_]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(energies))


def test_cosine_does_not_touch_its_input_and_refuses_zero_rows():
    x = blobs(300, 5, 10, np.float64)
    before = x.copy()
    K2Means(10, metric="cosine", copy_x=False).fit(x)
    assert_array_equal(x, before)
    x[7] = 0
    with pytest.raises(ValueError, match="row 7 of X is zero"):
        K2Means(10, metric="cosine").fit(x)
    x[7] = np.nan
    with pytest.raises(ValueError, match="NaN at row 7"):
        K2Means(10, metric="cosine").fit(x)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"metric": "l1"}, "metric must be 'euclidean' or 'cosine', got 'l1'"),
        ({"polish": "yes"}, "polish must be 'exact', 'certify' or None, got 'yes'"),
        ({"max_time": 0}, "max_time must be None or a number of seconds above 0, got 0"),
        ({"max_time": "1"}, "max_time must be None"),
        ({"algorithm": "lloyd", "metric": "cosine"}, "choices of algorithm='auto', got algorithm='lloyd'"),
    ],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        K2Means(3, **settings).fit(blobs(50, 2, 3, np.float64))

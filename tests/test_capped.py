"""A cap on the size of clusters: obeyed, near the least cost, and the same bits on any number of threads."""

import numpy as np
import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from problems import blobs, grid
from scipy.optimize import linear_sum_assignment

import k2means
from k2means import K2Means, _core
from k2means import capped as rounds

DTYPES = (np.float32, np.float64)


def unequal(n, d, k, dtype, seed=0):
    """Clumps of very unequal size: many clusters are too large."""
    return blobs(n, d, k, dtype, seed, shares=np.random.default_rng(seed).dirichlet(np.full(k, 0.4)))


def fitted(x, k, cap, weights=None, **settings):
    return K2Means(k, max_cluster_size=cap, random_state=0, **settings).fit(x, sample_weight=weights)


def cost_of(x, centers, weights=None):
    square = oracle.squared_distances(x, centers)
    return square if weights is None else square * weights[:, None]


def least_cost(cost, cap):
    """By the Hungarian method, with every center there `cap` times."""
    rows, places = linear_sum_assignment(np.repeat(cost, cap, axis=1))
    return cost[rows, places // cap].sum()


def check_capped(model, x, cap, weights=None):
    """What every capped model must be: within the cap, all clusters there, and truthful."""
    k, w = len(model.cluster_centers_), np.ones(len(x)) if weights is None else weights
    sizes = np.bincount(model.labels_[w > 0], minlength=k)
    assert 1 <= sizes.min() <= sizes.max() <= cap
    square = oracle.squared_distances(x, model.cluster_centers_)
    own = square[np.arange(len(x)), model.labels_]
    assert model.inertia_ == pytest.approx((own * w).sum(), rel=1e-12, abs=1e-300)


# ---- one assignment ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("k", "cap"), [(12, 20), (12, 25), (60, 4), (60, 6), (2, 120), (2, 200), (240, 1)])
def test_the_cost_is_the_least_but_for_a_step_a_row(k, cap, weighted, dtype):
    x = unequal(240, 5, 30, dtype)
    weights = np.random.default_rng(1).uniform(0.2, 3, len(x)) if weighted else None
    centers = np.ascontiguousarray(x[np.random.default_rng(2).permutation(len(x))[:k]])
    cost = cost_of(x, centers, weights)
    step = (5e-3 if k * cap > len(x) else 0.05) * cost.min(axis=1).mean() if k < len(x) else 0.001 * cost.mean()
    start = np.zeros(len(x), dtype=np.int32)
    labels, _ = _core.assign_capped(x, weights, centers, start, cap, step, 2)
    assert np.bincount(labels, minlength=k).max() <= cap
    reached, least = cost[np.arange(len(x)), labels].sum(), least_cost(cost, cap)
    assert least * (1 - 1e-12) <= reached <= least + 1.001 * len(x) * step


@pytest.mark.parametrize("cap", [10, 11, 37])
def test_rows_that_are_all_the_same_are_spread(cap):
    x = np.ones((400, 3))
    centers = np.random.default_rng(0).normal(size=(40, 3))
    start = np.zeros(400, dtype=np.int32)
    labels, _ = _core.assign_capped(x, None, centers, start, cap, 1e-6, 2)
    sizes = np.bincount(labels, minlength=40)
    assert 1 <= sizes.min() <= sizes.max() <= cap
    labels, _ = _core.assign_capped(x, None, np.ones((40, 3)), start, cap, 1.0, 2)
    assert 1 <= np.bincount(labels, minlength=40).min() <= np.bincount(labels, minlength=40).max() <= cap


@pytest.mark.parametrize("step", [1e-9, 1e-300])
def test_steps_grow_so_that_an_auction_ends(step):
    x = np.concatenate([np.zeros((300, 2)), np.full((100, 2), 1e3)])  # all but one place near is wanted by two
    centers = np.concatenate([np.random.default_rng(0).normal(scale=1e-3, size=(10, 2)), np.full((10, 2), 1e3)])
    start = np.zeros(400, dtype=np.int32)
    labels, _ = _core.assign_capped(x, None, np.ascontiguousarray(centers), start, 20, step, 2)
    assert (np.bincount(labels) == 20).all()
    moved = int((labels[:300] >= 10).sum())
    assert moved == 100
    assert (labels[300:] >= 10).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cap": 3}, "no room"),
        ({"cap": 0}, "no room"),
        ({"step": 0.0}, "step"),
        ({"labels": np.full(40, 10, np.int32)}, "not there"),
        ({"labels": np.zeros(39, np.int32)}, "differ"),
    ],
)
def test_the_core_refuses_what_it_cannot_do(change, words):
    x = blobs(40, 3, 4, np.float64)
    usual = {"labels": np.zeros(40, np.int32), "cap": 4, "step": 1.0, **change}
    with pytest.raises(ValueError, match=words):
        _core.assign_capped(x, None, x[:10].copy(), usual["labels"], usual["cap"], usual["step"], 1)


# ---- the estimator -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("slack", [1.0, 1.2, 1.5])
@pytest.mark.parametrize("offset", [0, 1000])
def test_no_cluster_is_larger_and_none_is_lost(offset, slack, dtype):
    x = unequal(1200, 6, 40, dtype) + dtype(offset)
    cap = int(np.ceil(slack * 1200 / 40))
    before = x.copy()
    model = fitted(x, 40, cap, copy_x=False)
    x = before if offset else x
    assert K2Means(40, random_state=0).fit(x).cluster_sizes_.max() > cap  # else nothing is shown
    check_capped(model, x, cap)
    assert (model.cluster_sizes_ <= cap).all()
    assert_array_equal(model.predict(x), oracle.nearest(x, model.cluster_centers_))


@pytest.mark.parametrize("polish", ["exact", "certify", None])
def test_certified_is_the_share_of_rows_at_their_nearest_center(polish):
    x = unequal(900, 4, 30, np.float64)
    model = fitted(x, 30, 33, polish=polish)
    square = oracle.squared_distances(x, model.cluster_centers_)
    share = (square[np.arange(900), model.labels_] <= square.min(axis=1)).mean()
    assert 0 < model.certified_ < 1
    assert model.certified_ == pytest.approx(share, abs=1e-12)


def test_the_end_is_near_the_least_cost_for_its_centers():
    x = unequal(600, 4, 20, np.float64)
    model = fitted(x, 20, 32)
    least = least_cost(cost_of(x, model.cluster_centers_), 32)
    # the last round saved less than its share of the energy, and an auction may miss the least by a step a row
    assert least <= model.inertia_ * (1 + 1e-12)
    assert model.inertia_ < (1 + rounds.LITTLE + 2 * rounds.STEP) * least


def test_rounds_bring_what_one_assignment_does_not(monkeypatch):
    x = unequal(2000, 6, 50, np.float64)
    many = fitted(x, 50, 44)
    monkeypatch.setattr(rounds, "ROUNDS", 1)
    assert many.inertia_ < 0.95 * fitted(x, 50, 44).inertia_
    monkeypatch.undo()
    assert many.inertia_ < fitted(x, 50, 44, max_time=1e-9).inertia_  # one round, whatever the time
    check_capped(fitted(x, 50, 44, max_time=1e-9), x, 44)


@pytest.mark.parametrize("settings", [{}, {"metric": "cosine"}, {"polish": None}])
def test_a_cap_that_is_not_reached_changes_no_bit(settings):
    x = blobs(900, 5, 30, np.float32)
    free = fitted(x, 30, None, **settings)
    capped = fitted(x, 30, int(free.cluster_sizes_.max()), **settings)
    assert_array_equal(capped.labels_, free.labels_)
    assert_array_equal(capped.cluster_centers_, free.cluster_centers_)
    assert capped.inertia_ == free.inertia_
    assert capped.ops_ == free.ops_
    assert_array_equal(capped.certified_, free.certified_)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [25, 1200])
def test_threads_change_no_bit(k, dtype):
    x = unequal(5000, 20, 25, dtype)
    one, three = (fitted(x, k, 5000 // k + 1, n_threads=t, max_iter=5) for t in (1, 3))
    assert_array_equal(one.labels_, three.labels_)
    assert_array_equal(one.cluster_centers_, three.cluster_centers_)
    assert one.inertia_ == three.inertia_
    assert one.certified_ == three.certified_
    assert one.ops_ == three.ops_


def test_rows_of_weight_zero_take_no_room():
    x = unequal(1000, 5, 20, np.float64)
    weights = np.random.default_rng(0).integers(0, 3, 1000).astype(float)
    count = int((weights > 0).sum())
    cap = -(-count // 20)
    model = fitted(x, 20, cap, weights)
    check_capped(model, x, cap, weights)
    absent = weights == 0
    assert_array_equal(model.labels_[absent], oracle.nearest(x[absent], model.cluster_centers_))
    with pytest.raises(ValueError, match=f"must be at least {cap}"):
        fitted(x, 20, cap - 1, weights)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cosine_has_capped_clusters_and_centers_of_length_one(dtype):
    x = unequal(1000, 8, 20, dtype)
    model = fitted(x, 20, 55, metric="cosine")
    assert model.cluster_sizes_.max() <= 55
    assert model.cluster_sizes_.min() >= 1
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1.0, rtol=1e-6)
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    cosines = (unit * model.cluster_centers_[model.labels_]).sum(axis=1)
    assert model.inertia_ == pytest.approx(2 * (1 - cosines).sum(), rel=1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("n_distinct", [1, 3, 9])
def test_duplicates_fill_all_clusters(n_distinct):
    x = np.repeat(grid(n_distinct, 4, np.float64), 90 // n_distinct, axis=0)
    model = fitted(x, 10, 9)  # 90 rows, and 90 places
    assert_array_equal(model.cluster_sizes_, np.full(10, 9))
    check_capped(model, x, 9)


@pytest.mark.parametrize("unit", [1e-140, 1e-30, 1e30, 1e140])
def test_the_unit_of_the_rows_does_not_matter(unit):
    x = unequal(500, 3, 10, np.float64)
    one, other = fitted(x, 10, 55, tol=0), fitted(x * 2.0 ** np.round(np.log2(unit)), 10, 55, tol=0)
    assert_array_equal(one.labels_, other.labels_)
    assert one.certified_ == other.certified_


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    n=st.integers(2, 60),
    d=st.integers(1, 4),
    side=st.integers(1, 6),
    seed=st.integers(0, 99),
    slack=st.integers(0, 3),
    data=st.data(),
)
def test_small_problems_of_any_kind_are_capped(n, d, side, seed, slack, data):
    k = data.draw(st.integers(1, n))
    rng = np.random.default_rng(seed)
    x = rng.integers(0, side, size=(n, d)).astype(data.draw(st.sampled_from(DTYPES)))
    weights = rng.integers(1, 4, n).astype(float) if data.draw(st.booleans()) else None
    cap = -(-n // k) + slack
    model = fitted(x, k, cap, weights, init=data.draw(st.sampled_from(["gdi", "random"])))
    assert model.cluster_sizes_.max() <= cap
    free = K2Means(k, random_state=0, init=model.init).fit(x, sample_weight=weights)
    if free.cluster_sizes_.max() > cap:
        check_capped(model, x, cap, weights)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"max_cluster_size": 4}, ValueError, "max_cluster_size=4 leaves no room for 50 rows .* at least 5"),
        ({"max_cluster_size": 0}, ValueError, "max_cluster_size must be at least 1, got 0"),
        ({"max_cluster_size": 7.0}, TypeError, "max_cluster_size must be an integer, got 7.0"),
        ({"max_cluster_size": True}, TypeError, "max_cluster_size must be an integer"),
        ({"max_cluster_size": 9, "algorithm": "lloyd"}, ValueError, "max_cluster_size are choices of algorithm='auto'"),
    ],
)
def test_a_cap_that_cannot_be_is_named(settings, error, words):
    with pytest.raises(error, match=words):
        K2Means(10, **settings).fit(blobs(50, 2, 10, np.float64))


def test_a_stored_model_keeps_its_cap(tmp_path):
    x = unequal(300, 3, 10, np.float64)
    model = fitted(x, 10, np.int64(31))
    k2means.save(model, tmp_path / "model.npz")
    again = k2means.load(tmp_path / "model.npz")
    assert again.max_cluster_size == 31
    assert again.certified_ == model.certified_ < 1
    assert_array_equal(again.labels_, model.labels_)
    assert_array_equal(again.fit(x).labels_, model.labels_)

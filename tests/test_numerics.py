"""Offsets, scales, tiny and huge numbers, and the corners of the shapes."""

import warnings

import numpy as np
import oracle
import pytest
from problems import BOUNDS, blobs, exact_methods, grid
from subprocesses import run_script

from k2means import GDI, K2, Elkan, Given, K2Means, Lloyd, PlusPlus, Random, Sketched, Stop, _core, cluster

DTYPES = (np.float32, np.float64)
METHODS = (Lloyd(), Elkan(), *(K2(5, bounds=b) for b in BOUNDS), Sketched(5, turns=1, hartigan=False))


def oracle_lloyd(x, centers, steps):
    """Lloyd in double."""
    x, centers, labels = x.astype(np.float64), centers.astype(np.float64), None
    for _ in range(steps):
        labels, centers, _ = oracle.step(x, centers, labels)
    return labels, centers


# ---- offset and scale --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", exact_methods(12), ids=str)
def test_an_offset_of_a_million_changes_no_label(method, dtype):
    far = (blobs(500, 6, 12, np.float64) + 1e6).astype(dtype)
    near = far.astype(np.float64) - 1e6  # the same rows, exactly
    r = cluster(far, 12, method=method, init=Given(far[:12]), stop=Stop(max_iter=5))
    labels, centers = oracle_lloyd(near, near[:12], 5)
    np.testing.assert_array_equal(r.labels, labels)
    # centers are rounded to the dtype at 1e6: half a unit in the last place, and the rounding of sums
    ulp = float(np.spacing(dtype(1e6)))
    np.testing.assert_allclose(r.centers.astype(np.float64) - 1e6, centers, rtol=0, atol=0.5 * ulp + 1e-9)
    # each row is off by at most d·(ulp/2)² more than its distance to the true mean; cross terms vanish at a mean
    want = oracle.energy(near, centers, labels)
    assert abs(r.energy - want) <= far.size * (0.5 * ulp) ** 2 + 1e-9 * want
    assert r.energy == pytest.approx(oracle.energy(far, r.centers, r.labels), rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", exact_methods(12), ids=str)
def test_columns_of_very_different_scale_take_the_oracles_labels(method, dtype):
    x = blobs(400, 6, 12, np.float64) * [1e-6, 1, 1e6, 1e-3, 1e3, 1]
    x = x.astype(dtype)
    r = cluster(x, 12, method=method, init=Given(x[:12]), stop=Stop(max_iter=1))
    np.testing.assert_array_equal(r.labels, oracle.nearest(x, x[:12]))
    lloyd = cluster(x, 12, method=Lloyd(), init=Given(x[:12]), stop=Stop(max_iter=10))
    many = cluster(x, 12, method=method, init=Given(x[:12]), stop=Stop(max_iter=10))
    assert many.labels.tobytes() == lloyd.labels.tobytes()
    assert many.centers.tobytes() == lloyd.centers.tobytes()
    # every column's mean is exact relative to that column's own scale
    want = oracle.means(x, many.labels, many.centers)
    allowed = oracle.mean_error(x) + np.spacing(np.abs(many.centers))
    assert (np.abs(many.centers - want) <= allowed).all()


@pytest.mark.parametrize("exponent", [-126, -140, -149, -60, 60, 100, 124])
def test_float32_of_any_size_has_the_labels_of_the_same_rows_at_size_one(exponent):
    check_scaled(np.float32, exponent)


@pytest.mark.parametrize("exponent", [-1022, -1060, -500, -300, -150, -99, 120, 400, 500])
def test_float64_of_any_size_has_the_labels_of_the_same_rows_at_size_one(exponent):
    check_scaled(np.float64, exponent)


def check_scaled(dtype, exponent):
    x = grid(300, 4, dtype) + dtype(1)
    scaled = np.ldexp(x, exponent).astype(dtype)  # small integers times a power of two: exact, down to denormals
    np.testing.assert_array_equal(np.ldexp(scaled.astype(np.float64), -exponent), x)
    for method in METHODS:
        want = cluster(x, 9, method=method, init=Given(x[:9]), stop=Stop(max_iter=1))
        got = cluster(scaled, 9, method=method, init=Given(scaled[:9]), stop=Stop(max_iter=1))
        np.testing.assert_array_equal(got.labels, want.labels)
        assert np.isfinite(got.centers).all()
        # a center is off by a unit in the last place of the smallest number there is, or of its own size
        ulp = max(float(np.finfo(dtype).smallest_subnormal), float(np.spacing(scaled.max())))
        means = oracle.means(np.ldexp(scaled.astype(np.longdouble), 0), got.labels, got.centers)
        assert (np.abs(got.centers - means) <= ulp).all()


@pytest.mark.parametrize("init", [GDI(), PlusPlus(), Random()], ids=str)
@pytest.mark.parametrize("size", [1e-44, 1e-38, 1e-30, 1e20, 1e37])
def test_float32_near_its_limits_is_clustered_as_at_size_one(init, size):
    x = (blobs(400, 5, 8, np.float64) * size / 10).astype(np.float32)
    r = cluster(x, 8, init=init)
    labels = oracle.nearest(np.float64(x) / size, np.float64(r.centers) / size, r.labels)
    assert r.converged
    assert np.isfinite(r.centers).all()
    # converged over the lists of 30 neighbors, so over all 8: each row is with its nearest center, but where centers
    # rounded to denormals lost the digits that decide
    assert (labels == r.labels).mean() > (0.99 if size > 1e-43 else 0.5)


@pytest.mark.parametrize("d", [3, 60])
@pytest.mark.parametrize("apart", [1e-30, 1e-38, 1e-50, 1e-140])
def test_rows_may_be_nearer_to_each_other_than_a_float_can_tell(apart, d):
    """Bounds are kept as float; the rows of each clump differ by `apart`, the clumps by one or more."""
    rng = np.random.default_rng(0)
    x = np.zeros((1200, d))
    x[:, 0] = rng.integers(3, size=1200)
    x[x[:, 0] == 0] += rng.integers(-50, 50, size=((x[:, 0] == 0).sum(), d)) * apart
    for algorithm in ("auto", "k2", "elkan"):
        model = K2Means(300, init="random", algorithm=algorithm, n_neighbors=300, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x)
        np.testing.assert_array_equal(model.labels_, oracle.nearest(x, model.cluster_centers_, model.labels_))


def test_squares_that_overflow_float64_are_refused():
    x = blobs(50, 3, 4, np.float64) * 1e200
    with pytest.raises(ValueError, match="overflow"):
        cluster(x, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e10, 1e25, 1e37, 1e150, 1e300])
def test_given_centers_far_from_the_data_are_used_or_refused(size, dtype):
    # in its own process: what overflows must not crash
    if dtype == "float32" and size > 1e38:
        pytest.skip("not a float32")
    script = """
        import sys
        import numpy as np
        from k2means import K2, Elkan, Given, Lloyd, Stop, cluster
        dtype, size = sys.argv[1], float(sys.argv[2])
        x = np.random.default_rng(0).normal(size=(100, 3)).astype(dtype)
        centers = (size * (1 + np.arange(4)[:, None] / 100 + np.zeros(3))).astype(dtype)
        labels = []
        for method in (Lloyd(), Elkan(), K2(4), K2(4, bounds="hamerly"), K2(2), K2(2, bounds="hamerly")):
            try:
                r = cluster(x, 4, method=method, init=Given(centers), stop=Stop(max_iter=4), n_threads=1)
            except ValueError as refusal:
                assert "init" in str(refusal), refusal
                labels.append(b"refused")
                continue
            assert np.isfinite(r.centers).all() and sorted(set(r.labels)) == [0, 1, 2, 3]
            labels.append(r.labels.tobytes())
        print(len(set(labels[:4])), len(set(labels[4:])))
    """
    assert run_script(script, dtype, size) == "1 1"


@pytest.mark.parametrize("method", exact_methods(3), ids=str)
def test_distances_that_underflow_are_told_apart(method):
    # one row at 1 keeps the data from being scaled; the others differ by 1e-23, whose square is no float32
    x = np.array([[1.0], *([v * 1e-23] for v in range(9))], dtype=np.float32)
    for start in ([0, 2, 8], [0, 2, 9], [0, 5, 9]):
        labels, init = None, Given(x[start])
        for t in range(1, 5):
            r = cluster(x, 3, method=method, init=init, stop=Stop(max_iter=t))
            want = cluster(x, 3, method=Lloyd(), init=init, stop=Stop(max_iter=t))
            if labels is None:
                np.testing.assert_array_equal(r.labels, oracle.nearest(x, x[start]))
            np.testing.assert_array_equal(r.labels, want.labels)
            labels = r.labels


def test_many_underflowing_differences_count_together():
    # against the first center one square is left of 1e-44, against the second a hundred of 1e-46 add up to 1e-44
    centers = np.zeros((2, 100), dtype=np.float32)
    centers[0, 0] = 1.2e-22
    centers[1] = 1e-23
    row = np.zeros((1, 100), dtype=np.float32)
    assert _core.nearest(row, centers, None, 1).tolist() == oracle.nearest(row, centers).tolist() == [1]
    centers[0, 0] = 0.9e-22
    assert _core.nearest(row, centers, None, 1).tolist() == oracle.nearest(row, centers).tolist() == [0]


# ---- corners of the shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (1, 5, 1), (50, 1, 7), (40, 4097, 5), (60, 3, 1), (60, 3, 60)])
@pytest.mark.parametrize("init", [GDI(), PlusPlus(), Random()], ids=str)
def test_every_shape_ends_where_no_row_has_a_nearer_center_in_its_list(init, n, d, k, method, dtype):
    x = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
    r = cluster(x, k, method=method, init=init)
    assert r.centers.shape == (k, d)
    assert r.centers.dtype == dtype
    assert r.labels.dtype == np.int32
    assert sorted(np.unique(r.labels)) == list(range(k))
    assert r.converged
    width = method.n_neighbors if isinstance(method, K2) else k
    np.testing.assert_array_equal(r.labels, oracle.nearest_listed(x, r.centers, r.labels, min(width, k)))
    if k == n:  # each row is its own center, up to the rounding of a sum of one
        allowed = oracle.mean_error(x) + np.spacing(np.abs(x))
        assert (np.abs(r.centers[r.labels].astype(np.float64) - x) <= allowed).all()


# ---- the environment ---------------------------------------------------------------------------------------------


def test_a_fit_leaves_the_floating_point_environment_alone():
    script = """
        import threading
        import numpy as np
        def state():
            tiny, one = np.full(64, 1e-40, dtype=np.float32), np.full(64, 1.0, dtype=np.float32)
            third = np.float64(1) / np.float64(3)
            return (tiny * one).tobytes(), (np.float64(5e-324) * 1.0 != 0), third.tobytes(), (-third).tobytes()
        before = state()
        import k2means
        assert state() == before, "import"
        for threads in (1, 3):
            x = np.random.default_rng(0).normal(size=(3000, 20)).astype(np.float32)
            k2means.cluster(x, 30, n_threads=threads)
            assert state() == before, "fit"
            thread = threading.Thread(target=lambda: seen.append(state()))
            seen = []
            thread.start()
            thread.join()
            assert seen == [before], "new thread"
        assert before[1] and any(before[0])
        print("unchanged")
    """
    assert run_script(script) == "unchanged"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 3), (8, 4), (1029, 5), (70, 33)])
def test_a_survey_is_what_numpy_says(n, d, weighted, dtype):
    rng = np.random.default_rng(n)
    x = (rng.normal(size=(n, d)) * 10 + 100).astype(dtype)
    weights = rng.uniform(0.5, 2.0, n) if weighted else None
    seen = _core.survey(x, weights, 2)
    wide = x.astype(np.float64)
    mean = np.average(wide, axis=0, weights=weights)
    assert seen.bad == (-1, -1)
    assert (seen.low.tolist(), seen.high.tolist()) == (wide.min(axis=0).tolist(), wide.max(axis=0).tolist())
    np.testing.assert_allclose(seen.mean, mean, rtol=1e-14)
    squares = np.average((wide - mean) ** 2, axis=0, weights=weights) * seen.weight
    np.testing.assert_allclose(seen.total, squares.sum(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [(0, 0), (5, 8), (1100, 2), (2999, 10)])
def test_a_survey_names_the_first_value_that_is_not_finite(where, value):
    x = np.random.default_rng(0).normal(size=(3000, 11)).astype(np.float32)
    x[where] = value
    x[where[0] :, -1] = np.nan  # later ones, and to the right
    assert _core.survey(x, None, 2).bad == where

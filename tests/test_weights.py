"""Sample weights: an integer weight is a repeated row, zero is absent, and only their ratios matter."""

import warnings

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from problems import BOUNDS, Problem, bind, blobs, grid, problems
from sklearn.exceptions import ConvergenceWarning

from k2means import GDI, K2, Elkan, Given, Lloyd, PlusPlus, Random, Stop, cluster

METHODS = (Lloyd(), Elkan(), *(K2(5, bounds=b) for b in BOUNDS))
INITS = (GDI(), PlusPlus(), PlusPlus(trials=3), Random())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_integer_weights_are_repeated_rows(method, dtype):
    x, k = blobs(300, 4, 12, dtype), 12
    weights = np.random.default_rng(0).integers(1, 5, len(x))
    repeated = np.repeat(x, weights, axis=0)
    one = bind(method, Problem(x, x[:k].copy(), None, weights.astype(np.float64)))
    many = bind(method, Problem(repeated, x[:k].copy(), None, None))
    slack = oracle.mean_error(x, weights) + oracle.mean_error(repeated)
    for _ in range(10):
        one.step(), many.step()
        np.testing.assert_array_equal(np.repeat(one.labels(), weights), many.labels())
        # both are the mean to within the rounding of sums, then rounded to the dtype
        allowed = slack + np.spacing(np.abs(one.centers()))
        assert (np.abs(one.centers().astype(np.float64) - many.centers()) <= allowed).all()
        assert abs(one.energy() - many.energy()) <= 2 * oracle.energy_error(repeated) + np.sum(allowed**2) * len(
            repeated
        )


def test_integer_weights_are_repeated_rows_to_the_last_bit_where_sums_are_exact():
    # symmetric integers: the mean is 0, so that nothing is rounded before a center is divided
    half = grid(150, 3, np.float64)
    x = np.concatenate([half, -half])
    weights = np.tile(np.random.default_rng(0).integers(1, 5, len(half)), 2)
    for method in METHODS:
        init = Given(x[:10] + np.arange(10)[:, None] / 16)
        one = cluster(x, 10, method=method, init=init, sample_weight=weights, stop=Stop(max_iter=5))
        many = cluster(np.repeat(x, weights, axis=0), 10, method=method, init=init, stop=Stop(max_iter=5))
        assert np.repeat(one.labels, weights).tobytes() == many.labels.tobytes()
        assert one.centers.tobytes() == many.centers.tobytes()


@pytest.mark.parametrize("init", [*INITS, "given"], ids=str)
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_weight_zero_is_absent(method, init):
    x = blobs(400, 4, 12, np.float64)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(x))
    present = weights > 0
    init = Given(x[:12]) if init == "given" else init
    options = {"method": method, "init": init, "stop": Stop(max_iter=6)}
    got = cluster(x, 12, sample_weight=weights, **options)
    want = cluster(x[present], 12, sample_weight=weights[present], **options)
    assert got.centers.tobytes() == want.centers.tobytes()
    assert got.labels[present].tobytes() == want.labels.tobytes()
    assert got.energy == want.energy
    assert got.ops == want.ops
    np.testing.assert_array_equal(got.labels[~present], oracle.nearest(x[~present], got.centers))


@pytest.mark.parametrize("init", INITS, ids=str)
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_weights_of_one_are_no_weights(method, init):
    x = blobs(300, 4, 12, np.float32)
    got, want = (
        cluster(x, 12, method=method, init=init, sample_weight=w, stop=Stop(max_iter=6)) for w in (np.ones(300), None)
    )
    assert got.centers.tobytes() == want.centers.tobytes()
    assert got.labels.tobytes() == want.labels.tobytes()


@pytest.mark.parametrize("factor", [2.0**-40, 0.5, 2.0**50])
@pytest.mark.parametrize("init", INITS, ids=str)
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_common_factor_of_two_changes_only_the_energy(method, init, factor):
    x = blobs(300, 4, 12, np.float64)
    weights = np.random.default_rng(2).uniform(0.5, 4, len(x))
    options = {"method": method, "init": init, "stop": Stop(max_iter=6)}
    want = cluster(x, 12, sample_weight=weights, **options)
    got = cluster(x, 12, sample_weight=weights * factor, **options)
    assert got.labels.tobytes() == want.labels.tobytes()
    assert got.centers.tobytes() == want.centers.tobytes()
    assert got.energy == want.energy * factor
    assert [t.energy for t in got.trace] == [t.energy * factor for t in want.trace]
    assert got.ops == want.ops


@pytest.mark.parametrize("decades", [3, 8, 12])
@pytest.mark.parametrize("method", [Lloyd(), K2(100), K2(100, bounds="hamerly")], ids=str)
def test_weights_of_many_decades_take_the_oracles_steps(method, decades):
    rng = np.random.default_rng(decades)
    x, k = blobs(300, 4, 10, np.float64), 10
    weights = 10.0 ** rng.uniform(-decades, decades, len(x))
    centers, labels = x[:k].copy(), None
    engine = bind(method, Problem(x, centers, labels, weights))
    for _ in range(6):
        engine.step()
        want = oracle.step(x, centers, labels, weights)
        np.testing.assert_array_equal(engine.labels(), want.labels)
        centers, labels = engine.centers(), want.labels
        # a cluster of light rows alone must have its mean too: 300 roundings in double of values up to the reach
        assert (np.abs(centers - want.centers) <= 300 * 2.0**-52 * 2 * np.abs(x).max()).all()
        truth = oracle.energy(x, centers, labels, weights)
        assert abs(engine.energy() - truth) <= oracle.energy_error(x, weights)


@pytest.mark.parametrize("decades", [12, 100, 140])
@pytest.mark.parametrize("init", INITS, ids=str)
def test_weights_of_many_decades_end_in_finite_centers_or_a_clear_error(init, decades):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 3))
    weights = 10.0 ** rng.uniform(-decades, decades, len(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            r = cluster(x, 5, init=init, sample_weight=weights)
        except ValueError as refusal:
            assert "weight" in str(refusal)  # noqa: PT017 - an answer is as good as a refusal that names the cause
            return
    assert np.isfinite(r.centers).all()
    assert r.energy == pytest.approx(oracle.energy(x, r.centers, r.labels, weights), rel=1e-12)


@given(problems(), st.data())
def test_integer_weights_are_repeated_rows_on_any_small_problem(problem, data):
    x, centers, _, _ = problem
    weights = data.draw(hnp.arrays(np.int64, len(x), elements=st.integers(1, 3)))
    one = bind(Lloyd(), Problem(x, centers, None, weights.astype(np.float64)))
    many = bind(Lloyd(), Problem(np.repeat(x, weights, axis=0), centers, None, None))
    first = oracle.nearest(x, centers)
    if len(np.unique(first)) < len(centers):
        return  # an empty cluster takes one row, not all its copies
    one.step(), many.step()
    np.testing.assert_array_equal(np.repeat(one.labels(), weights), many.labels())
    # means of at most 120 rows in double, then rounded to the dtype
    allowed = 2.0**-44 * (1 + np.abs(x).max()) + np.spacing(np.abs(one.centers()))
    assert (np.abs(one.centers().astype(np.float64) - many.centers()) <= allowed).all()

"""K2Means: a scikit-learn estimator like any other, and the k-means it claims to be."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import paired_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from k2means import GDI, K2, Elkan, Given, K2Means, Lloyd, PlusPlus, Sketched, Stop, cluster, measure

EXACT = ("auto", "lloyd", "elkan")  # labels_ is what predict(X) gives
ALGORITHMS = (*EXACT, "k2")


def blobs(n=600, d=6, k=12, dtype=np.float64, seed=0):
    return make_blobs(n, d, centers=k, cluster_std=2.0, random_state=seed)[0].astype(dtype)


def distances_in_double(X, centers):
    X, centers = np.asarray(X, dtype=np.float64), np.asarray(centers, dtype=np.float64)
    return np.sqrt(((X[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2))


def assert_same_fit(a, b):
    assert_array_equal(a.cluster_centers_, b.cluster_centers_)
    assert_array_equal(a.labels_, b.labels_)
    assert (a.inertia_, a.n_iter_, a.ops_) == (b.inertia_, b.n_iter_, b.ops_)


# ---- a scikit-learn estimator ------------------------------------------------------------------------------------


def expected_failures(estimator):
    # scikit-learn's KMeans has the same one. With three clusters the check's data has one good answer.
    if estimator.n_clusters == 3 and estimator.algorithm != "auto":
        return {}
    why = "the start is drawn from the rows: repeated, others are drawn"
    if estimator.n_clusters == 3:
        why = "a row moves with all its weight, repeated rows one by one (Hartigan's comparison)"
    return {"check_sample_weight_equivalence_on_dense_data": why}


@parametrize_with_checks(
    [K2Means(), *(K2Means(n_clusters=3, algorithm=a) for a in ALGORITHMS)], expected_failed_checks=expected_failures
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def test_importing_costs_only_what_scikit_learn_costs():
    code = (
        "import sys, sklearn.base, sklearn.utils.validation; before = set(sys.modules); import k2means;"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    new = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert "k2means" in new
    assert not new & {"matplotlib", "pandas", "polars", "argparse", "sklearn", "scipy"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_pickled_model_predicts_the_same(algorithm):
    X = blobs()
    model = K2Means(12, algorithm=algorithm, random_state=0).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    assert_same_fit(copy, model)
    assert copy.trace_ == model.trace_
    assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.parametrize("init", [blobs()[:5], "random", PlusPlus(trials=2), lambda X, n_clusters, random_state: X[:5]])
def test_a_clone_has_the_parameters_and_not_the_fit(init):
    model = K2Means(5, init=init, n_neighbors=3, max_iter=7, random_state=1).fit(blobs())
    copy = clone(model)
    with pytest.raises(NotFittedError):
        copy.predict(blobs())
    assert_same_fit(copy.fit(blobs()), model)


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_data_frame_is_clustered_as_its_array(frame, dtype):
    X, names = blobs(dtype=dtype), [f"column {i}" for i in range(6)]
    model = K2Means(12, random_state=0).fit(frame(X, columns=names))
    assert_same_fit(model, K2Means(12, random_state=0).fit(X))
    assert model.cluster_centers_.dtype == dtype
    assert_array_equal(model.predict(frame(X, columns=names)), model.labels_)
    # Old versions of scikit-learn do not see the names in a frame of polars 2.
    if hasattr(StandardScaler().fit(frame(X, columns=names)), "feature_names_in_"):
        assert_array_equal(model.feature_names_in_, names)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame(X, columns=names[::-1]))


def test_a_frame_of_nullable_columns_is_clustered_as_its_array():
    X = blobs()
    frame = pd.DataFrame(X, columns=list("abcdef")).convert_dtypes()
    assert_same_fit(K2Means(12, random_state=0).fit(frame), K2Means(12, random_state=0).fit(X))


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_gives_a_frame_with_a_named_column_for_each_center(container):
    X = blobs()
    model = K2Means(4, random_state=0).set_output(transform=container).fit(X)
    for out in (model.transform(X), clone(model).set_output(transform=container).fit_transform(X)):
        assert list(out.columns) == ["k2means0", "k2means1", "k2means2", "k2means3"]
        assert_array_equal(out.to_numpy(), K2Means(4, random_state=0).fit(X).transform(X))
    assert_array_equal(model.get_feature_names_out(), out.columns)


def test_a_pipeline_passes_scaled_rows_and_weights():
    X, weights = blobs(), np.random.default_rng(0).uniform(0.5, 2, size=600)
    pipeline = make_pipeline(StandardScaler(), K2Means(12, random_state=0)).fit(X, k2means__sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    alone = K2Means(12, random_state=0).fit(scaled, sample_weight=weights)
    assert_same_fit(pipeline[-1], alone)
    assert_array_equal(pipeline.predict(X), alone.predict(scaled))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_fits_side_by_side_give_what_each_gives_alone(backend):
    X, seeds = blobs(2000), range(4)
    fits = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(K2Means(40, random_state=s, n_threads=2).fit)(X) for s in seeds
    )
    for seed, fit in zip(seeds, fits, strict=True):
        assert_same_fit(fit, K2Means(40, random_state=seed, n_threads=2).fit(X))


# ---- what is fitted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan", "k2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_iter", [1, 2, 100])
@pytest.mark.parametrize("seed", range(3))
def test_from_the_same_centers_it_is_the_k_means_of_scikit_learn(algorithm, dtype, max_iter, seed):
    """With tol=0 both count an iteration as "assign, then move", the last one, that changes nothing, included."""
    X = blobs(dtype=dtype, seed=seed)
    start = X[np.random.default_rng(seed).choice(len(X), size=12, replace=False)]
    common = {"n_clusters": 12, "init": start, "n_init": 1, "tol": 0, "max_iter": max_iter}
    theirs = KMeans(algorithm="lloyd", **common).fit(X)
    assert len(np.unique(theirs.labels_)) == 12, "the comparison is meant for data without empty clusters"
    ours = K2Means(algorithm=algorithm, n_neighbors=12, **common).fit(X)
    rounding = 64 * np.finfo(dtype).eps  # scikit-learn sums the 50 or so rows of a cluster in dtype
    assert_array_equal(ours.labels_, theirs.labels_)
    assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=rounding, atol=rounding * np.abs(X).max())
    assert_allclose(ours.inertia_, theirs.inertia_, rtol=rounding)
    assert ours.n_iter_ == theirs.n_iter_


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("max_iter", [1, 100])
def test_labels_inertia_and_centers_agree(algorithm, max_iter):
    X = blobs(3000, k=100)
    model = K2Means(60, algorithm=algorithm, n_neighbors=5, max_iter=max_iter, random_state=0).fit(X)
    own = paired_distances(X, model.cluster_centers_[model.labels_]) ** 2
    assert_allclose(model.inertia_, own.sum(), rtol=1e-12)  # a sum of 3000 doubles
    assert -model.score(X) <= model.inertia_
    if algorithm in EXACT:
        assert_array_equal(model.labels_, model.predict(X))
        assert model.inertia_ == -model.score(X)


def test_k2_settles_over_neighborhoods_where_auto_ends_exactly():
    """With k_n = 2 most rows never meet their nearest center: k2 keeps them, auto ends with all centers."""
    X = blobs(3000, k=100)
    k2, auto = (K2Means(60, algorithm=a, n_neighbors=2, random_state=0).fit(X) for a in ("k2", "auto"))
    assert (k2.labels_ != k2.predict(X)).any()
    assert (auto.labels_ == auto.predict(X)).all()


@pytest.mark.parametrize(
    ("algorithm", "method"), [("k2", K2(7)), ("lloyd", Lloyd()), ("elkan", Elkan()), ("auto", Sketched(7))]
)
def test_an_algorithm_is_the_method_of_its_name(algorithm, method):
    """`cluster` with the same start stops one assignment earlier."""
    X = blobs()
    model = K2Means(30, algorithm=algorithm, n_neighbors=7, init=lambda X, k, random_state: X[:k], tol=0).fit(X)
    result = cluster(X, 30, method=method, init=Given(X[:30]), stop=Stop(tol=0))
    assert_array_equal(model.cluster_centers_, result.centers)
    assert [(r.energy, r.ops, r.moved, r.shift) for r in model.trace_] == [
        (r.energy, r.ops, r.moved, r.shift) for r in result.trace
    ]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("init", ["gdi", "k-means++", "random"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_do_not_depend_on_the_number_of_threads(algorithm, init, dtype):
    X, weights = blobs(1500, dtype=dtype), np.random.default_rng(0).uniform(0, 2, size=1500)
    fits = [
        K2Means(40, algorithm=algorithm, init=init, random_state=0, n_threads=n).fit(X, sample_weight=weights)
        for n in (1, 2, 3, 7)
    ]
    for fit in fits[1:]:
        assert_same_fit(fit, fits[0])
        assert_array_equal(fit.predict(X), fits[0].predict(X))
        assert_array_equal(fit.transform(X), fits[0].transform(X))
        assert fit.score(X) == fits[0].score(X)


def test_of_several_runs_the_one_of_least_energy_is_kept():
    X, state = blobs(), np.random.RandomState(3)
    options = {"init": "random", "algorithm": "lloyd"}
    alone = [K2Means(12, **options, random_state=state).fit(X) for _ in range(5)]
    best = min(alone, key=lambda fit: fit.inertia_)
    assert best.inertia_ < max(fit.inertia_ for fit in alone)
    assert_same_fit(K2Means(12, **options, n_init=5, random_state=np.random.RandomState(3)).fit(X), best)


def test_from_an_array_one_run_is_done_and_said():
    X = blobs()
    with pytest.warns(RuntimeWarning, match="n_init=3"):
        model = K2Means(12, init=X[:12], n_init=3).fit(X)
    assert_same_fit(model, K2Means(12, init=X[:12]).fit(X))


@pytest.mark.parametrize("tol", [1e-1, 1e-4, 0.0])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_it_stops_at_the_first_shift_within_tol_of_the_mean_variance(tol, offset):
    X = blobs() + offset
    model = K2Means(30, tol=tol, random_state=0).fit(X)
    shifts = np.array([r.shift for r in model.trace_])
    within = shifts <= tol * X.var(axis=0).mean()
    assert len(shifts) == model.n_iter_ < 100
    assert within[-1]
    assert not within[:-1].any()


def test_no_more_than_max_iter_iterations_are_done():
    assert K2Means(30, max_iter=2, tol=0, random_state=0).fit(blobs()).n_iter_ == 2


def test_operations_are_those_of_start_iterations_and_last_pass():
    X = blobs()
    given = K2Means(30, init=X[:30], algorithm="lloyd").fit(X)
    passes = given.n_iter_ + 1
    assert given.ops_.distances == passes * 600 * 30
    assert given.ops_.additions == sum(r.ops.additions for r in given.trace_)


def test_an_init_object_is_the_init_of_its_name():
    X = blobs()
    named = (("gdi", GDI(exact=False, early=30), "auto"), ("gdi", GDI(), "k2"), ("k-means++", PlusPlus(), "auto"))
    for name, init, algorithm in named:
        fits = (K2Means(12, init=i, algorithm=algorithm, random_state=0).fit(X) for i in (init, name))
        assert_same_fit(*fits)


@pytest.mark.parametrize("copy_x", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_callable_init_sees_the_rows_as_they_are_and_a_random_state(copy_x, offset):
    X = blobs() + offset
    seen = []

    def first_rows(rows, n_clusters, random_state):
        seen.append((rows.copy(), random_state.randint(100)))
        return rows[:n_clusters]

    model = K2Means(12, init=first_rows, random_state=0, copy_x=copy_x).fit(X.copy())
    assert_same_fit(model, K2Means(12, init=X[:12]).fit(X))
    assert_array_equal(seen[0][0], X)
    K2Means(12, init=first_rows, random_state=0).fit(X)
    assert seen[0][1] == seen[1][1]


# ---- weights -----------------------------------------------------------------------------------------------------


# Not "auto": a row moves with all its weight, repeated rows one by one. tests/test_sketched.py has its weights.
@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a != "auto"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_integer_weights_are_repeated_rows(algorithm, offset):
    X, counts = blobs() + offset, np.random.default_rng(0).integers(0, 4, size=600)
    start = X[counts > 0][:12]
    weighted = K2Means(12, init=start, algorithm=algorithm).fit(X, sample_weight=counts)
    repeated = K2Means(12, init=start, algorithm=algorithm).fit(np.repeat(X, counts, axis=0))
    assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    # Both are sums of the same numbers in another order.
    assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-12)
    assert_allclose(weighted.inertia_, repeated.inertia_, rtol=1e-9 if offset else 1e-12)
    assert_allclose(weighted.score(X, sample_weight=counts), -weighted.inertia_, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rows_without_weight_have_no_say_but_a_label(algorithm):
    X, present = blobs(), np.random.default_rng(0).random(600) < 0.5
    X[~present] *= 1e3
    model = K2Means(12, algorithm=algorithm, random_state=0).fit(X, sample_weight=present)
    alone = K2Means(12, algorithm=algorithm, random_state=0).fit(X[present])
    assert_array_equal(model.cluster_centers_, alone.cluster_centers_)
    assert_array_equal(model.labels_[present], alone.labels_)
    assert_array_equal(model.labels_[~present], alone.predict(X[~present]))
    assert model.inertia_ == alone.inertia_


def test_equal_weights_change_nothing_but_the_energy():
    X = blobs()
    plain, heavy = (K2Means(12, init=X[:12]).fit(X, sample_weight=w) for w in (None, np.full(600, 4.0)))
    assert_array_equal(heavy.labels_, plain.labels_)
    assert_array_equal(heavy.cluster_centers_, plain.cluster_centers_)
    assert heavy.inertia_ == 4 * plain.inertia_


# ---- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "used"),
    [
        *((t, np.float32) for t in (np.float16, np.float32, np.int8, np.uint8, np.int16, np.uint16, np.bool_)),
        *((t, np.float64) for t in (np.float64, np.int32, np.uint32, np.int64, np.uint64, np.longdouble, object)),
    ],
)
def test_a_dtype_becomes_the_narrowest_float_that_holds_it(given, used):
    X = np.random.default_rng(0).integers(0, 2, size=(200, 10)).astype(given)
    model = K2Means(5, random_state=0).fit(X)
    assert model.cluster_centers_.dtype == model.transform(X).dtype == used
    assert_same_fit(model, K2Means(5, random_state=0).fit(X.astype(used)))


@pytest.mark.parametrize("fitted", [np.float32, np.float64])
@pytest.mark.parametrize("asked", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 1000, 1 << 20])
@pytest.mark.parametrize("unit", [1.0, 2.0**60])
def test_rows_of_any_dtype_are_answered_in_double(monkeypatch, fitted, asked, block, unit):
    monkeypatch.setattr(measure, "BLOCK", block)
    X, new = (blobs(500, dtype=np.float32, seed=s) * np.float32(unit) for s in (0, 1))
    model = K2Means(20, random_state=0).fit(X.astype(fitted))
    truth = distances_in_double(new, model.cluster_centers_)
    asked_for = new.astype(asked)
    assert_array_equal(model.predict(asked_for), truth.argmin(axis=1))
    wide = np.result_type(fitted, asked)
    assert model.transform(asked_for).dtype == wide
    assert_allclose(model.transform(asked_for), truth, rtol=4 * np.finfo(wide).eps)
    assert_allclose(model.score(asked_for), -(truth.min(axis=1) ** 2).sum(), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [-120, 0, 120])
def test_the_nearest_center_of_rows_of_any_size_is_what_double_precision_says(dtype, power):
    """Next to 2^600 all centers are the same in double: a tie, so the first."""
    power *= 1 if dtype == np.float32 else 5
    model = K2Means(20, random_state=0).fit(blobs(500, dtype=dtype))
    new = blobs(40, seed=1, dtype=dtype) * dtype(2.0**power)
    unit = 2.0 ** -max(power, 0)
    truth = distances_in_double(new.astype(np.float64) * unit, model.cluster_centers_.astype(np.float64) * unit)
    assert_array_equal(model.predict(new), truth.argmin(axis=1))
    assert_allclose(model.transform(new) * unit, truth, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", ["least", "small", "large", "greatest"])
def test_a_change_of_unit_changes_nothing(algorithm, dtype, power):
    """Powers of two round nothing, so the clusters must be the same ones up to the limits of the dtype."""
    powers = {"least": -110, "small": -60, "large": 60, "greatest": 120}
    if dtype == np.float64:
        powers = {"least": -500, "small": -420, "large": 420, "greatest": 500}
    X, unit = blobs(dtype=np.float32).astype(dtype), dtype(2.0 ** powers[power])
    plain, changed = (K2Means(12, init=Z[:12], algorithm=algorithm).fit(Z) for Z in (X, X * unit))
    assert_array_equal(changed.labels_, plain.labels_)
    # Data of extreme size is centred too, so its means are rounded elsewhere.
    assert_allclose(
        changed.cluster_centers_ / unit, plain.cluster_centers_, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-5
    )
    if algorithm in EXACT:
        assert_array_equal(changed.predict(X * unit), changed.labels_)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_offset_common_to_all_rows_changes_nothing(algorithm, dtype):
    """Values on a grid of 1/16 keep all their digits in float32 after 1e6 is added."""
    X = np.round(blobs() * 16).astype(dtype) / 16
    offset = dtype(1e6)
    assert_array_equal((X + offset) - offset, X)
    near, far = (K2Means(12, init=Z[:12], algorithm=algorithm).fit(Z) for Z in (X, X + offset))
    assert_array_equal(far.labels_, near.labels_)
    # A center is stored in dtype: half a unit in the last place of 1e6, for each column.
    step = float(np.spacing(offset))
    assert_allclose(far.cluster_centers_.astype(np.float64) - 1e6, near.cluster_centers_, rtol=0, atol=step)
    assert abs(far.inertia_ - near.inertia_) <= 600 * 6 * step**2 + 1e-9 * near.inertia_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 3e4, 1e6])
@pytest.mark.parametrize("unit", [1.0, 2.0**60, 2.0**-100])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_rows_are_never_changed_unless_allowed_and_then_restored(dtype, offset, unit, order):
    X = np.asarray((blobs() + offset) * unit, dtype=dtype, order=order)
    kept = X.copy()
    copied = K2Means(12, n_init=2, random_state=0).fit(X)
    assert_array_equal(X, kept)
    in_place = K2Means(12, n_init=2, random_state=0, copy_x=False).fit(X)
    assert_array_equal(X, kept)  # the offset taken off is a round number
    assert_same_fit(in_place, copied)


def test_rows_worked_on_in_place_are_restored_after_an_error():
    X = blobs() + 1e6
    kept = X.copy()

    def fails(X, n_clusters, random_state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        K2Means(12, init=fails, copy_x=False).fit(X)
    assert_array_equal(X, kept)


@pytest.mark.parametrize("copy_x", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_read_only_rows_will_do(tmp_path, copy_x, offset):
    X = blobs() + offset
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = K2Means(12, random_state=0, copy_x=copy_x).fit(mapped, sample_weight=mapped[:, 0] * 0 + 1)
    assert_same_fit(model, K2Means(12, random_state=0).fit(X))
    assert_array_equal(model.predict(mapped), model.labels_)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("init", ["gdi", "k-means++", "random"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fewer_distinct_rows_than_clusters_is_a_warning_and_finite(algorithm, init, dtype):
    X = np.repeat(blobs(5, dtype=dtype), 20, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"\(5\) found smaller than n_clusters \(8\)"):
        model = K2Means(8, algorithm=algorithm, init=init, random_state=0).fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    rounding = 4 * np.finfo(dtype).eps
    assert model.inertia_ <= rounding**2 * (X**2).sum()  # each row is its own center


# ---- what the user sees ------------------------------------------------------------------------------------------


def test_verbose_prints_a_line_per_iteration_to_stderr(capfd):
    model = K2Means(12, random_state=0, verbose=1).fit(blobs())
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == model.n_iter_
    assert all(f"iteration {i}: energy" in line for i, line in enumerate(err.splitlines(), start=1))
    K2Means(12, random_state=0).fit(blobs())
    assert capfd.readouterr() == ("", "")


def test_verbose_names_the_run_of_several(capfd):
    K2Means(12, random_state=0, verbose=1, n_init=2, max_iter=1).fit(blobs())
    assert [line.split(" iteration")[0] for line in capfd.readouterr().err.splitlines()] == [
        "k2means run 1/2",
        "k2means run 2/2",
    ]


def test_the_environment_sets_the_threads_unless_a_number_is_given(monkeypatch):
    monkeypatch.setenv("K2MEANS_NUM_THREADS", "none")
    K2Means(12, n_threads=1).fit(blobs())
    with pytest.raises(ValueError, match="K2MEANS_NUM_THREADS"):
        K2Means(12).fit(blobs())


@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_a_model_that_is_not_fitted_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(K2Means(), method)(blobs())

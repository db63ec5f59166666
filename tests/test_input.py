"""Bad input is refused before any work, in words that name the parameter, the value and the rule."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from k2means import AKM, GDI, K2, Elkan, Given, K2Means, Lloyd, MiniBatch, PlusPlus, Stop, cluster, memory

ROWS = np.random.default_rng(0).normal(size=(30, 4))


def by_cluster(X, k=3, *, init=None, sample_weight=None):
    return cluster(X, k, init=None if init is None else Given(init), sample_weight=sample_weight)


def by_fit(X, k=3, *, init="gdi", sample_weight=None):
    return K2Means(k, init=init).fit(X, sample_weight=sample_weight)


both = pytest.mark.parametrize("ask", [by_cluster, by_fit])


def changed(row, column, value, dtype=np.float64):
    X = ROWS.astype(dtype)
    X[row, column] = value
    return X


# ---- rows --------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, object])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_a_value_that_is_not_finite_is_located(ask, dtype, value, word):
    with pytest.raises(ValueError, match=f"Input X contains {word} at row 17, column 2"):
        ask(changed(17, 2, value, dtype))


@both
def test_of_several_values_that_are_not_finite_the_first_is_named(ask):
    X = changed(17, 2, np.nan)
    X[17, 3] = X[20, 0] = np.inf
    with pytest.raises(ValueError, match="NaN at row 17, column 2"):
        ask(X)


@both
@pytest.mark.parametrize("bad", [1, 17])
def test_a_row_without_weight_must_be_finite_too(ask, bad):
    weights = np.ones(30)
    weights[[0, 17]] = 0
    with pytest.raises(ValueError, match=f"NaN at row {bad}, column 2"):
        ask(changed(bad, 2, np.nan), sample_weight=weights)


@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_a_value_that_is_not_finite_is_located_by_a_fitted_model_too(method):
    model = by_fit(ROWS)
    with pytest.raises(ValueError, match="Input X contains infinity at row 17, column 2"):
        getattr(model, method)(changed(17, 2, np.inf))


@both
@pytest.mark.parametrize("kind", ["csr_matrix", "coo_matrix", "csr_array", "csc_array"])
def test_a_sparse_matrix_is_refused_with_advice(ask, kind):
    with pytest.raises(TypeError, match=r"dense data is required.*toarray"):
        ask(getattr(scipy.sparse, kind)(ROWS))


@both
@pytest.mark.parametrize(
    ("X", "words"),
    [
        (ROWS[0], "Expected 2D array, got 1D"),
        (ROWS.reshape(30, 2, 2), "dim 3"),
        (ROWS[:0], r"0 sample\(s\)"),
        (ROWS[:, :0], r"0 feature\(s\)"),
        (ROWS.astype(str)[:, :1] + "x", "could not convert string to float"),
        (np.full((30, 4), "a", dtype=object), "could not convert string to float"),
        (pd.DataFrame({"a": ["x"] * 30}), "could not convert string to float"),
        (ROWS + 1j, "Complex data not supported"),
        ([[1.0, 2.0], [3.0]], "inhomogeneous"),
    ],
)
def test_what_is_no_matrix_of_real_numbers_is_refused(ask, X, words):
    with pytest.raises(ValueError, match=words):
        ask(X)


@both
def test_objects_that_are_no_numbers_are_refused(ask):
    X = ROWS.astype(object)
    X[3, 2] = {"no": "number"}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        ask(X)


@both
def test_weights_that_overflow_double_are_refused(ask):
    with pytest.raises(ValueError, match=r"sample_weight sums to .*overflows float64; scale it down"):
        ask(ROWS, sample_weight=np.full(len(ROWS), 1e306))


@both
def test_squares_that_overflow_double_are_refused(ask):
    with pytest.raises(ValueError, match=r"values up to .*e\+20.*overflow float64; rescale X"):
        ask(ROWS * 1e200)


def test_a_model_refuses_another_number_of_features():
    with pytest.raises(ValueError, match="X has 3 features, but K2Means is expecting 4 features"):
        by_fit(ROWS).predict(ROWS[:, :3])


# ---- the number of clusters, weights, init -----------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("k", "error", "words"),
    [
        (0, ValueError, "must be at least 1, got 0"),
        (-1, ValueError, "must be at least 1, got -1"),
        (31, ValueError, "n_samples=30 should be >= .*=31"),
        (3.0, TypeError, "must be an integer, got 3.0"),
        ("3", TypeError, "must be an integer, got '3'"),
        (True, TypeError, "must be an integer, got True"),
        (None, TypeError, "must be an integer, got None"),
    ],
)
def test_a_number_of_clusters_is_between_one_and_the_rows(ask, k, error, words):
    with pytest.raises(error, match=words) as refused:
        ask(ROWS, k)
    assert ("n_clusters" if ask is by_fit else "k") in str(refused.value)


@both
def test_as_many_clusters_as_rows_are_allowed(ask):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        ask(ROWS, 30)


@both
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(29), r"sample_weight.shape == \(29,\), expected \(30,\)"),
        (np.ones((30, 1)), r"sample_weight.shape == \(30, 1\), expected \(30,\)"),
        (np.where(np.arange(30) == 4, -1.0, 1.0), r"sample_weight\[4\] is -1.0; weights must not be negative"),
        (np.where(np.arange(30) == 4, np.nan, 1.0), r"sample_weight\[4\] is nan; weights must be finite"),
        (np.where(np.arange(30) == 4, np.inf, 1.0), r"sample_weight\[4\] is inf; weights must be finite"),
        (np.zeros(30), "sample_weight is zero for every row"),
        (np.ones(30) * 1j, "sample_weight must be real numbers"),
        (["heavy"] * 30, "sample_weight must be real numbers"),
        ((np.arange(30) < 2) * 1.0, "=3 is more than the 2 rows whose sample_weight is above 0"),
    ],
)
def test_weights_are_one_finite_number_for_each_row_not_all_zero(ask, weights, words):
    with pytest.raises(ValueError, match=words):
        ask(ROWS, sample_weight=weights)


def test_score_checks_weights_too():
    with pytest.raises(ValueError, match="must not be negative"):
        by_fit(ROWS).score(ROWS, sample_weight=np.full(30, -1.0))


@both
@pytest.mark.parametrize("call", [False, True])
@pytest.mark.parametrize(
    ("centers", "words"),
    [
        (ROWS[:2], r"init must have shape \(3, 4\).*got \(2, 4\)"),
        (ROWS[:3, :3], r"init must have shape \(3, 4\).*got \(3, 3\)"),
        (ROWS[0], r"init must have shape \(3, 4\).*got \(4,\)"),
        (np.where(ROWS[:3] > 9, 0, np.nan), "init contains nan at row 0, column 0"),
        (changed(2, 1, np.inf)[:3], "init contains inf at row 2, column 1"),
        (ROWS[:3] + 1j, "init must be an array of real numbers"),
        (np.full((3, 4), "a"), "init must be an array of real numbers"),
    ],
)
def test_given_centers_are_k_finite_rows(ask, centers, words, call):
    with pytest.raises(ValueError, match=words):
        ask(ROWS, init=(lambda X, n_clusters, random_state: centers) if call else centers)


def test_a_center_too_large_for_the_rows_dtype_is_refused():
    with pytest.raises(ValueError, match="init contains inf at row 1, column 0"), np.errstate(over="ignore"):
        by_fit(ROWS.astype(np.float32), init=changed(1, 0, 1e300)[:3])


@both
@pytest.mark.parametrize(("dtype", "value"), [(np.float32, 1e25), (np.float64, 1e300)])
@pytest.mark.parametrize("call", [False, True])
def test_a_center_whose_distance_overflows_is_refused(ask, dtype, value, call):
    centers = changed(1, 2, value)[:3]
    with pytest.raises(ValueError, match=r"init contains \S+ at row 1, column 2, so far .* overflow float"):
        ask(ROWS.astype(dtype), init=(lambda X, n_clusters, random_state: centers) if call else centers)


# ---- parameters of the estimator ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"n_neighbors": 3.0}, TypeError, "n_neighbors must be an integer, got 3.0"),
        ({"n_neighbors": "many"}, TypeError, "n_neighbors must be an integer, got 'many'"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1, got 0"),
        ({"n_init": 1.5}, TypeError, "n_init must be an integer, got 1.5"),
        ({"max_iter": 0}, ValueError, "max_iter must be .* at least 1, got 0"),
        ({"tol": -1.0}, ValueError, "tol must be a number of at least 0, got -1.0"),
        ({"tol": float("nan")}, ValueError, "tol must be a number of at least 0, got nan"),
        ({"tol": "small"}, ValueError, "tol must be a number of at least 0, got 'small'"),
        ({"algorithm": "full"}, ValueError, r"algorithm must be one of \['auto', 'k2', 'lloyd', 'elkan'\], got 'full'"),
        ({"algorithm": None}, ValueError, "algorithm must be one of .* got None"),
        ({"init": "kmeans++"}, ValueError, "init must be one of .* got 'kmeans\\+\\+'"),
        ({"init": None}, ValueError, "init must be an array of real numbers"),
        ({"random_state": "seed"}, ValueError, "cannot be used to seed"),
        ({"n_threads": 0}, ValueError, "n_threads must be at least 1, got 0"),
        ({"n_threads": 1.0}, TypeError, "n_threads must be an integer, got 1.0"),
    ],
)
@pytest.mark.parametrize("algorithm", ["auto", "lloyd"])
def test_a_parameter_out_of_range_is_named(parameters, error, words, algorithm):
    with pytest.raises(error, match=words):
        K2Means(**{"n_clusters": 3, "algorithm": algorithm, **parameters}).fit(ROWS)


# ---- parameters of cluster ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: K2(0), ValueError, "n_neighbors must be at least 1, got 0"),
        (lambda: K2(3.0), TypeError, "n_neighbors must be an integer, got 3.0"),
        (lambda: K2(3, bounds="none"), ValueError, "bounds must be 'elkan' or 'hamerly', got 'none'"),
        (lambda: K2("many"), TypeError, "n_neighbors must be an integer, got 'many'"),
        (lambda: AKM(0), ValueError, "checks must be at least 1, got 0"),
        (lambda: AKM(3, trees=0), ValueError, "trees must be at least 1, got 0"),
        (lambda: AKM(3, keep_previous="no"), TypeError, "keep_previous must be True or False, got 'no'"),
        (lambda: MiniBatch(0), ValueError, "batch_size must be at least 1, got 0"),
        (lambda: MiniBatch(spacing=1.5), TypeError, "spacing must be an integer, got 1.5"),
        (lambda: GDI(0), ValueError, "iterations must be at least 1, got 0"),
        (lambda: PlusPlus(0), ValueError, "trials must be .* at least 1, got 0"),
        (lambda: Stop(max_iter=0), ValueError, "max_iter must be .* at least 1, got 0"),
        (lambda: Stop(tol=-1), ValueError, "tol must be a number of at least 0, got -1"),
        (lambda: Stop(tol=None), ValueError, "tol must be a number of at least 0, got None"),
        (lambda: Stop(energy=-1), ValueError, "energy must be None or a number of at least 0, got -1"),
        (lambda: Stop(energy="low"), ValueError, "energy must be None or a number of at least 0, got 'low'"),
        (lambda: Stop(seconds=0), ValueError, "seconds must be None or a number above 0, got 0"),
        (lambda: Stop(seconds="1"), ValueError, "seconds must be None or a number above 0, got '1'"),
        (lambda: cluster(ROWS, 3, method="lloyd"), TypeError, r"method must be Lloyd\(\), .* got 'lloyd'"),
        (lambda: cluster(ROWS, 3, method=Lloyd), TypeError, r"method must be Lloyd\(\)"),
        (lambda: cluster(ROWS, 3, init="gdi"), TypeError, r"init must be Random\(\), .* got 'gdi'"),
        (lambda: cluster(ROWS, 3, init=GDI), TypeError, r"init must be Random\(\)"),
        (lambda: cluster(ROWS, 3, stop=10), TypeError, r"stop must be a Stop\(...\), got 10"),
        (lambda: cluster(ROWS, 3, n_threads=0), ValueError, "n_threads must be at least 1, got 0"),
        (lambda: cluster(ROWS, 3, n_threads="2"), TypeError, "n_threads must be an integer, got '2'"),
    ],
)
def test_an_argument_out_of_range_is_named(ask, error, words):
    with pytest.raises(error, match=words):
        ask()


# ---- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda: cluster(ROWS, 3, method=Elkan()), "Elkan with n=30, d=4, k=3"),
        (lambda: K2Means(3).fit(ROWS), "Sketched with n=30, d=4, k=3"),
        (lambda: K2Means(3, algorithm="lloyd").fit(ROWS), "Lloyd with n=30, d=4, k=3"),
    ],
)
def test_what_does_not_fit_in_memory_is_refused_with_its_size(monkeypatch, ask, what):
    ask()
    monkeypatch.setattr(memory, "machine_memory", lambda: ROWS.nbytes)
    with pytest.raises(MemoryError, match=rf"{what} needs \d+\.\d GiB of memory, this machine has 0.0 GiB"):
        ask()


def test_distances_that_do_not_fit_in_memory_are_refused_and_labels_are_not(monkeypatch):
    model = by_fit(ROWS)
    monkeypatch.setattr(memory, "machine_memory", lambda: ROWS.nbytes)
    with pytest.raises(MemoryError, match="transform with n=30, k=3 needs"):
        model.transform(ROWS)
    model.predict(ROWS)


def test_elkan_counts_its_bounds_and_k2_only_its_neighborhoods():
    n, d, k = 10**6, 64, 10**4
    assert Elkan().memory(n, d, k) >= 4 * n * k
    assert K2(32).memory(n, d, k) < 4 * n * 100

"""Data for the tests: plain, full of ties, and what hypothesis makes of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from k2means import AKM, K2, Elkan, Lloyd, Ops, Sketched, _core, methods

BOUNDS = ("elkan", "hamerly")


class Problem(NamedTuple):
    x: np.ndarray
    centers: np.ndarray
    labels: np.ndarray | None
    weights: np.ndarray | None


def blobs(n, d, k, dtype, seed=0, shares=None):
    """Overlapping clumps: rows keep changing clusters for many iterations."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(scale=2.0, size=(k, d))
    which = rng.integers(k, size=n) if shares is None else rng.choice(k, size=n, p=shares)
    return (middles[which] + rng.normal(size=(n, d))).astype(dtype)


def unequal(d=45, dtype=np.float32):
    """60 clumps of very unequal size, in directions that sketches cannot tell."""
    shares = 1.0 / np.arange(1, 61)
    return blobs(4000, d, 60, dtype, shares=shares / shares.sum())


def grid(n, d, dtype, seed=0):
    """Small integers: duplicates and exact ties everywhere."""
    return np.random.default_rng(seed).integers(0, 4, size=(n, d)).astype(dtype)


def bind(method, problem, threads=1, seed=0, sketch=True):
    """An engine on the data as they are, without the shift and scale of `cluster`; with sketches, however little
    they tell, or without."""
    x, centers, labels, weights = problem
    survey = _core.survey(x, weights, threads)
    sketches = (lambda: _core.sketch(x, survey, seed, threads)) if sketch else lambda: None
    return method.bind(methods.Problem(x, weights, survey, centers, labels, threads, seed, sketch=sketches))


def divide(x, k, iterations=2, seed=0, weights=None, threads=1):
    """GDI on the data as they are: (centers, labels, Ops)."""
    survey = _core.survey(x, weights, threads)
    centers, labels, ops = _core.gdi(x, weights, survey, k, iterations, seed, threads)
    return centers, labels, Ops(*ops)


def exact_methods(k):
    """All that must take Lloyd's steps."""
    k2 = K2(n_neighbors=k), K2(n_neighbors=k + 3, bounds="hamerly")
    return (
        Lloyd(),
        Elkan(),
        *k2,
        Sketched(k, turns=1, hartigan=False),
        AKM(checks=k),
        AKM(checks=k + 3, trees=2, keep_previous=True),
    )


@st.composite
def problems(draw):
    """Few rows on a coarse grid, any start: far centers, twins, empty clusters, labels that make no sense."""
    n, d = draw(st.integers(1, 40)), draw(st.sampled_from([1, 2, 3, 5, 15, 16, 17, 33]))
    k = draw(st.integers(1, min(n, 12)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    unit = dtype(draw(st.sampled_from([1.0, 0.25, 1 / 3])))
    values = st.integers(-4, 4)
    x = draw(hnp.arrays(np.int8, (n, d), elements=values)).astype(dtype) * unit
    if draw(st.booleans()):
        centers = x[draw(hnp.arrays(np.int64, k, elements=st.integers(0, n - 1)))]
    else:
        centers = draw(hnp.arrays(np.int8, (k, d), elements=values)).astype(dtype) * unit
    labels = draw(st.none() | hnp.arrays(np.int32, n, elements=st.integers(0, k - 1)))
    weights = draw(st.none() | hnp.arrays(np.float64, n, elements=st.sampled_from([0.5, 1.0, 3.0])))
    return Problem(x, np.ascontiguousarray(centers), labels, weights)

"""The nearest centers by looking only at the groups of centers near a row, and how often that finds them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .cluster import cluster
from .initialize import GDI
from .loop import Stop
from .measure import Groups, far_middle, nearest, several, sketch_of_some, squares
from .methods import Sketched

MANY = 1024  # centers, from which on groups of them pay
GROUPS = 4  # times the square root of the number of centers
AUDITED = (250, 1000)  # rows in each of two samples, at least and at most: one in fifty between


class _Pair(NamedTuple):
    indices: NDArray[np.int32]
    distances: NDArray[np.float64]


class NearestCenters(_Pair):
    """`indices` and `distances`, a pair; `recall`: the share of the true nearest centers that was found in a sample."""

    recall: float

    def __new__(cls, indices: NDArray[np.int32], distances: NDArray[np.float64], recall: float) -> NearestCenters:
        pair = super().__new__(cls, indices, distances)
        pair.recall = recall
        return pair


def several_approximately(
    x: NDArray[Any],
    centers: NDArray[Any],
    count: int,
    recall: float,
    rng: np.random.Generator,
    n_threads: int,
    unit: float = 1.0,
) -> NearestCenters:
    """As `measure.several`, but each of the nearest is found only with the probability `recall`, or a little more.

    One sample of the rows tells how many groups to look at, another one what share is found then.
    """
    count = min(count, len(centers))
    audited = int(np.clip(len(x) // 50, *AUDITED))
    pays = len(centers) >= MANY and len(x) >= 8 * audited and 4 * count <= len(centers)
    if recall == 1 or not pays or far_middle(centers) is not None:
        return NearestCenters(*several(x, centers, count, n_threads, unit), 1.0)
    alike = unit == 1 and x.dtype == centers.dtype
    if count == 1 and alike and sketch_of_some(x, len(centers), n_threads) is not None:  # as fast, and exact
        labels = nearest(x, centers, n_threads)
        apart = np.sqrt(squares(x, centers, labels, n_threads))
        return NearestCenters(labels[:, None], apart[:, None], 1.0)
    chosen = rng.permutation(len(x))[: 2 * audited]
    true, _ = several(x[chosen], centers, count, n_threads, unit)
    groups = _groups(x[chosen[:audited]], centers, true[:audited], recall, n_threads, unit)
    ids, apart = several(x, centers, count, n_threads, unit, groups)
    found = (ids[chosen[audited:]][:, :, None] == true[audited:][:, None, :]).any(axis=1).mean()
    return NearestCenters(ids, apart, float(found))


def _groups(
    rows: NDArray[Any], centers: NDArray[Any], true: NDArray[np.int32], recall: float, n_threads: int, unit: float
) -> Groups:
    """Groups of the centers, and as many probes as these rows need to find their true nearest centers."""
    k = int(GROUPS * np.sqrt(len(centers)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of centers some may be equal
        r = cluster(centers, k, method=Sketched(64), init=GDI(exact=False), stop=Stop(max_iter=4), n_threads=n_threads)
    middles = np.multiply(r.centers, unit, dtype=np.float64)
    scores = np.square(middles).sum(axis=1) - 2 * (np.multiply(rows, unit, dtype=np.float64) @ middles.T)
    ranks = np.empty(scores.shape, dtype=np.int64)
    np.put_along_axis(ranks, np.argsort(scores, axis=1), np.arange(k)[None, :], axis=1)
    held = np.take_along_axis(ranks, r.labels[true].astype(np.int64), axis=1)
    share = min(1.0, recall + np.sqrt(recall * (1 - recall) / len(rows)))  # a standard error more
    return Groups(r.centers, r.labels, 1 + int(np.quantile(held, share, method="inverted_cdf")))

"""The nearest centers by looking only at the groups of centers near a row, and how often that finds them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _core
from .cluster import cluster
from .initialize import GDI
from .loop import Stop
from .measure import is_far, makes_alike, several, sketch_of
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
    if recall == 1 or len(centers) < MANY or len(x) < 8 * audited or 4 * count > len(centers) or is_far(centers):
        return NearestCenters(*several(x, centers, count, n_threads, unit), 1.0)
    alike, blocks = makes_alike(x, centers, unit)
    middles, group_of = _groups(alike, n_threads)
    chosen = rng.permutation(len(x))[: 2 * audited]
    sample = (x[chosen] if unit == 1.0 else x[chosen] * np.float64(unit)).astype(alike.dtype)
    true, _ = several(sample, alike, count, n_threads)
    probes = _enough(sample[:audited], middles, group_of[true[:audited]], recall)

    def search(rows: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        sketch = sketch_of(rows, len(alike), n_threads)
        return _core.several_in_groups(rows, alike, middles, group_of, sketch, count, probes, n_threads)

    ids, apart = np.empty((len(x), count), dtype=np.int32), np.empty((len(x), count))
    for rows, block in blocks:
        ids[rows], apart[rows] = search(block)
    apart /= unit
    held_out = slice(audited, None)
    found = (ids[chosen[held_out]][:, :, None] == true[held_out][:, None, :]).any(axis=1).mean()
    return NearestCenters(ids, apart, float(found))


def _groups(centers: NDArray[Any], n_threads: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    k = int(GROUPS * np.sqrt(len(centers)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of centers some may be equal
        r = cluster(centers, k, method=Sketched(64), init=GDI(exact=False), stop=Stop(max_iter=4), n_threads=n_threads)
    return np.ascontiguousarray(r.centers), r.labels


def _enough(rows: NDArray[Any], middles: NDArray[Any], wanted: NDArray[np.int32], recall: float) -> int:
    """How many of the nearest groups of each row hold the share `recall` of those wanted, and a standard error more."""
    with np.errstate(all="ignore"):
        scores = np.square(middles).sum(axis=1) - 2 * (rows @ middles.T)
    ranks = np.empty(scores.shape, dtype=np.int64)
    np.put_along_axis(ranks, np.argsort(scores, axis=1), np.arange(len(middles))[None, :], axis=1)
    held = np.take_along_axis(ranks, wanted.astype(np.int64), axis=1)
    share = min(1.0, recall + np.sqrt(recall * (1 - recall) / len(rows)))
    return 1 + int(np.quantile(held, share, method="inverted_cdf"))

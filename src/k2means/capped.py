"""Clusters of at most so many rows: an auction assigns the rows, the centers follow, until that brings little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .initialize import Data
from .loop import Ops, Result
from .measure import energy, means, nearest, scaled_to_unit, squares

ROUNDS = 20  # at most
LITTLE = 2e-4  # of the energy; rounds end with one that saves less
STEP = 1e-3  # of what a row costs in the mean: by so much at least a row outbids another
NOTHING = 1e-6  # of the variance of the rows; an energy below is no measure of a step


def check_cap(cap: int, k: int, n: int) -> None:
    """n rows must find room in k clusters."""
    if k * cap < n:
        raise ValueError(
            f"max_cluster_size={cap} leaves no room for {n} rows in n_clusters={k}: it must be at least {-(-n // k)}"
        )


def capped_memory(n: int, d: int, k: int) -> int:
    """Bytes this keeps beside the data: what 16 centers cost each row, bids, sketches of the fit before; centers."""
    return (16 * 12 + 8 + 32 + 12 + 24 + 128) * n + (40 * d + 12 * 64) * k


def with_cap(
    result: Result,
    data: Data,
    cap: int,
    *,
    unit_centers: bool = False,
    ending: Callable[[], bool] = lambda: False,
) -> Result:
    """The result, if its clusters have at most `cap` rows; else one near it in which they have.

    One round is done in any case; none begins when `ending` says so. Of all rounds the best is kept.
    """
    k, threads, weights = len(result.centers), data.n_threads, data.weights
    if np.bincount(result.labels, minlength=k).max() <= cap:
        return result
    x = data.rows if data.rows is not data.original else data.to_working(data.original)
    centers, labels, ops = data.to_working(result.centers), result.labels, result.ops
    spent = max(energy(x, weights, centers, labels, threads), NOTHING * data.survey.total)
    step = STEP * spent / len(x) or 1.0  # of rows that are all the same, any
    best, least = (centers, labels), float("inf")
    for _ in range(ROUNDS):
        labels, counted = _core.assign_capped(x, weights, centers, labels, cap, step, threads)
        centers = _moved(x, weights, labels, centers, threads, unit_centers)
        ops += Ops(*counted) + Ops(additions=len(x))
        before, spent = least, energy(x, weights, centers, labels, threads)
        if spent < least:
            best, least = (centers, labels), spent
        if spent > (1 - LITTLE) * before or ending():
            break
    centers, labels = data.to_original(best[0]), best[1]
    return replace(
        result,
        centers=centers,
        labels=labels,
        energy=energy(data.original, weights, centers, labels, threads),
        ops=ops + Ops(distances=len(x) * k),
        certified=_share_at_nearest(data, centers, labels),
    )


def _moved(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    labels: NDArray[np.int32],
    centers: NDArray[Any],
    n_threads: int,
    unit: bool,
) -> NDArray[Any]:
    """The means of the clusters; with `unit` their directions, where they have one."""
    moved = means(x, weights, labels, len(centers), n_threads)
    if not unit:
        return moved
    moved = scaled_to_unit(moved)
    return np.where(moved.any(axis=1, keepdims=True), moved, centers)


def _share_at_nearest(data: Data, centers: NDArray[Any], labels: NDArray[np.int32]) -> float:
    """Of the rows, those whose center is the nearest of all, or as near as it."""
    x, threads, unit = data.original, data.n_threads, data.scale
    least = squares(x, centers, nearest(x, centers, threads, unit), threads, unit)
    return float((squares(x, centers, labels, threads, unit) <= least).mean())

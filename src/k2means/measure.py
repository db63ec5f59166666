"""What can be asked of given centers: the nearest, the energy, the distances. Exact for all finite numbers.

The core wants rows and centers of one dtype, with room for squares. Where they differ, rows are converted a block at a
time: never a copy of x, never an n×k array that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _core

# Products of vectors lose digits when the vectors are far from the origin compared with their distances. Below this
# ratio of squared offset to variance, what is lost only makes a few more ties be decided exactly.
FAR = 16.0
LONG = 40  # numbers in a row, above which a sketch of 32 is shorter by enough

# Squares of numbers between these have room in the exponent, with a million of them added; bounds are kept as float.
ROOM = {np.dtype(np.float32): (2.0**-45, 2.0**50), np.dtype(np.float64): (2.0**-100, 2.0**100)}

BLOCK = 1 << 20  # numbers converted at a time


def unit_for(extent: float, dtype: np.dtype[Any]) -> float:
    """The power of two that gives numbers up to `extent` room for their squares; 1 if they have it."""
    smallest, largest = ROOM[dtype]
    if extent == 0 or smallest <= extent <= largest:
        return 1.0
    return float(2.0 ** min(-np.floor(np.log2(extent)), 1000.0))


def far_middle(centers: NDArray[Any]) -> NDArray[Any] | None:
    """The middle of centers so far from the origin that products lose too many digits; of others, None."""
    with np.errstate(all="ignore"):
        middle = centers.mean(axis=0, dtype=np.float64)
        spread = float(((centers - middle) ** 2).sum(axis=1).mean())
        return middle.astype(centers.dtype) if float(middle @ middle) > FAR * spread else None


def nearest(x: NDArray[Any], centers: NDArray[Any], n_threads: int, unit: float = 1.0) -> NDArray[np.int32]:
    """The nearest of all centers for each row of x; the lowest index of several."""
    centers, blocks = _alike(x, centers, unit)
    shift = far_middle(centers)
    labels = np.empty(len(x), dtype=np.int32)
    for rows, block in blocks:
        sketch = None if shift is not None else sketch_of(block, len(centers), n_threads)
        labels[rows] = _core.nearest(block, centers, shift, n_threads, sketch)
    return labels


class Groups(NamedTuple):
    """Groups of centers: where they are, which each center is in, and how many of them a row looks at."""

    middles: NDArray[Any]
    of: NDArray[np.int32]
    probes: int


def several(
    x: NDArray[Any],
    centers: NDArray[Any],
    count: int,
    n_threads: int,
    unit: float = 1.0,
    groups: Groups | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The `count` nearest centers of each row, by distance and then by index, and their distances.

    `groups`: only of those in the groups nearest to it.
    """
    count = min(count, len(centers))
    ids, apart = np.empty((len(x), count), dtype=np.int32), np.empty((len(x), count))
    centers, blocks = _alike(x, centers, unit)
    if groups is not None:
        groups = groups._replace(middles=groups.middles.astype(centers.dtype) * unit)
    for rows, block in blocks:
        sketch = sketch_of(block, len(centers), n_threads)
        if groups is None:
            ids[rows], apart[rows] = _core.several(block, centers, sketch, count, n_threads)
        else:
            ids[rows], apart[rows] = _core.several_in_groups(
                block, centers, groups.middles, groups.of, sketch, count, groups.probes, n_threads
            )
    apart /= unit
    return ids, apart


def squares(
    x: NDArray[Any], centers: NDArray[Any], labels: NDArray[np.int32], n_threads: int, unit: float = 1.0
) -> NDArray[np.float64]:
    """The squared distance of each row to the center it is labelled with, both times `unit`."""
    out = np.empty(len(x))
    centers, blocks = _alike(x, centers, unit)
    for rows, block in blocks:
        out[rows] = _core.squares(block, centers, labels[rows], n_threads)
    return out


def means(
    x: NDArray[Any], weights: NDArray[np.float64] | None, labels: NDArray[np.int32], k: int, n_threads: int
) -> NDArray[Any]:
    """The mean of the rows of each label; that of the first row's label also for labels without rows."""
    out = _core.means(x, weights, labels, k, n_threads)
    out[np.bincount(labels, minlength=k) == 0] = out[labels[0]]
    return out


def sketch_of(x: NDArray[Any], k: int, n_threads: int) -> _core.Sketch | None:
    """Sketches of rows that are to be compared with k centers, if that is shorter."""
    sketch = sketch_of_some(x, k, n_threads)
    return None if sketch is None else sketch.of(x, n_threads)


def sketch_of_some(x: NDArray[Any], k: int, n_threads: int) -> _core.Sketch | None:
    """Of a few of the rows, which tell the directions for all, and whether that is worth while."""
    if x.shape[1] <= LONG or k < 128 or len(x) < 1000:
        return None
    some = np.ascontiguousarray(x[:: max(1, len(x) // 2048)])
    sketch = _core.sketch(some, _core.survey(some, None, n_threads), 0, n_threads, len(x))
    return sketch if tells_enough(sketch, x.shape[1]) else None


def tells_enough(sketch: _core.Sketch, d: int) -> bool:
    """Of rows of d numbers. If not, more candidates pass sketches than is gained, the sooner the shorter the rows."""
    return sketch.caught > min(0.9, 0.5 + 32 / d)


def unit_rows(x: NDArray[Any]) -> NDArray[Any]:
    """A copy with every row scaled to length 1."""
    unit = scaled_to_unit(x)
    zero = ~unit.any(axis=1)
    if zero.any():
        raise ValueError(f"metric='cosine' needs rows other than zero; row {int(np.argmax(zero))} of X is zero")
    return unit


def scaled_to_unit(points: NDArray[Any]) -> NDArray[Any]:
    """As `unit_rows`, but zero stays zero. What is not finite stays too: it is named later."""
    with np.errstate(all="ignore"):
        largest = np.abs(points).max(axis=1, initial=0.0, keepdims=True)
        scaled = np.divide(points, largest, out=np.zeros_like(points), where=largest > 0)
        lengths = np.sqrt(np.square(scaled, dtype=np.float64).sum(axis=1, keepdims=True))
        scaled /= np.where(lengths > 0, lengths, 1.0).astype(points.dtype)
    return np.where(np.isfinite(largest), scaled, points)


def energy(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centers: NDArray[Any],
    labels: NDArray[np.int32],
    n_threads: int,
) -> float:
    """The sum of the squared distances of the rows to the centers they are labelled with, in double."""
    centers, blocks = _alike(x, centers, 1.0)
    return sum(
        _core.energy(block, None if weights is None else weights[rows], centers, labels[rows], n_threads)
        for rows, block in blocks
    )


def distances(x: NDArray[Any], centers: NDArray[Any], n_threads: int, unit: float = 1.0) -> NDArray[Any]:
    """The distance of each row to each center, in the wider of the two dtypes."""
    dtype = np.result_type(x, centers)
    if x.dtype == dtype and unit == 1.0:
        return _core.distances(x, np.ascontiguousarray(centers, dtype=dtype), n_threads)
    out = np.empty((len(x), len(centers)), dtype=dtype)
    centers, blocks = _alike(x, centers, unit, width=max(x.shape[1], len(centers)))
    with np.errstate(over="ignore"):
        for rows, block in blocks:
            out[rows] = _core.distances(block, centers, n_threads) / unit
    return out


def _alike(
    x: NDArray[Any], centers: NDArray[Any], unit: float, width: int | None = None
) -> tuple[NDArray[Any], Iterator[tuple[slice, NDArray[Any]]]]:
    """Centers and blocks of rows of one dtype, times `unit`: in double, where that loses nothing.

    `width`: numbers in hand for each row of a block, if more than its own.
    """
    dtype = np.result_type(x, centers) if unit == 1.0 else np.dtype(np.float64)
    alike = centers.astype(dtype, order="C", copy=False)
    return alike * unit if unit != 1.0 else alike, _blocks(x, dtype, unit, width or x.shape[1])


def _blocks(x: NDArray[Any], dtype: np.dtype[Any], unit: float, width: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    if x.dtype == dtype and unit == 1.0:
        yield slice(0, len(x)), x
        return
    size = max(1, BLOCK // width)
    for begin in range(0, len(x), size):
        rows = slice(begin, min(len(x), begin + size))
        block = x[rows].astype(dtype)
        block *= unit
        yield rows, block

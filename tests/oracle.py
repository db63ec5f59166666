"""The truth in numpy: what every step must give, written to be read, not to be fast."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def squared_distances(x, centers):
    """n x k, in double: the one function that decides ties. Sixteen running sums, joined in pairs, then the tail.

    The order of the sum is part of the contract (the same bits on every CPU), so that near ties have one answer.
    """
    d = x.shape[1]
    squares = (x.astype(np.float64)[:, None, :] - centers.astype(np.float64)[None, :, :]) ** 2
    lanes, tail = np.zeros((len(x), len(centers), 16)), np.zeros((len(x), len(centers)))
    for i in range(0, d - d % 16, 16):
        lanes += squares[:, :, i : i + 16]
    for i in range(d - d % 16, d):
        tail += squares[:, :, i]
    four = (lanes[..., 0:4] + lanes[..., 4:8]) + (lanes[..., 8:12] + lanes[..., 12:16])
    return ((four[..., 0] + four[..., 1]) + (four[..., 2] + four[..., 3])) + tail


def lowest(squares, current=None):
    """Column of the least value of each row; ties: the current one if it is among them, else the lowest."""
    best = squares.argmin(axis=1)
    if current is not None:
        rows = np.arange(len(squares))
        best = np.where(squares[rows, current] == squares[rows, best], current, best)
    return best.astype(np.int32)


def nearest(x, centers, current=None):
    return lowest(squared_distances(x, centers), current)


def neighbors(centers, width):
    """k x width: the nearest centers of each, self first, then by distance, then by index."""
    squares = squared_distances(centers, centers)
    np.fill_diagonal(squares, -1.0)
    return np.argsort(squares, axis=1, kind="stable")[:, :width]


def nearest_listed(x, centers, current, width):
    """The nearest center of each row in the list of its own center (Algorithm 1, lines 6-12)."""
    squares = squared_distances(x, centers)
    listed = np.zeros(squares.shape, dtype=bool)
    np.put_along_axis(listed, neighbors(centers, width)[current], True, axis=1)
    return lowest(np.where(listed, squares, np.inf), current)


def refill(x, centers, labels):
    """Each empty cluster gets the row that costs most, if others but its twins are left behind. (labels, how many)"""
    labels, sizes = labels.copy(), np.bincount(labels, minlength=len(centers))
    cost = squared_distances(x, centers)[np.arange(len(x)), labels]
    queue, home, left, given = list(np.argsort(-cost, kind="stable")), labels.copy(), sizes.copy(), []
    for j in np.flatnonzero(sizes == 0):
        while queue:
            row = queue.pop(0)
            twins = (x == x[row]).all(axis=1)
            leaving = int((twins & (home == home[row])).sum())
            if leaving < left[home[row]] and not twins[given].any():
                left[home[row]] -= leaving
                labels[row] = j
                given.append(row)
                break
    return labels, len(given)


def means(x, labels, before, weights=None):
    """The weighted mean of each cluster in double; an empty one stays."""
    out = before.astype(np.float64)
    w = np.ones(len(x)) if weights is None else weights
    for j in np.unique(labels):
        mine = labels == j
        rows = x[mine].astype(np.float64)
        out[j] = rows[0] + np.average(rows - rows[0], axis=0, weights=w[mine])  # equal rows have themselves as mean
    return out


def mean_error(x, weights=None):
    """How far a center may be from the true mean, per column, in double.

    Fixed point has 49 bits or more for the reach of a column (the heaviest row's, if there are weights), or 2^61 / n
    for large n; a mean is then off by half a quantum. What needs more is summed in double: n roundings.
    """
    w = np.ones(len(x)) if weights is None else weights
    z = x.astype(np.float64)
    mean = np.average(z, axis=0, weights=w)
    quantum = 2.0**-49 * max(1.0, len(x) / 2.0**11) * w.max() / w.min()
    return (
        np.abs(z - mean).max(axis=0) * (min(quantum, 2.0**-24) + len(x) * 2.0**-52) + np.abs(z).max(axis=0) * 2.0**-51
    )


class Step(NamedTuple):
    labels: np.ndarray
    centers: np.ndarray  # double
    moved: int


def step(x, centers, labels, weights=None, width=None):
    """One iteration: assign over all centers (width None, or no labels yet) or over lists, refill, move."""
    if width is None or labels is None:
        assigned = nearest(x, centers, labels)
    else:
        assigned = nearest_listed(x, centers, labels, min(width, len(centers)))
    moved = len(x) if labels is None else int((assigned != labels).sum())
    final, given = refill(x, centers, assigned)
    return Step(final, means(x, final, centers, weights), moved + given)


def energy(x, centers, labels, weights=None):
    squares = ((x.astype(np.float64) - centers.astype(np.float64)[labels]) ** 2).sum(axis=1)
    return float(squares.sum() if weights is None else (weights * squares).sum())


def total(x, weights=None):
    """The energy of one cluster of all rows."""
    mean = np.average(x.astype(np.float64), axis=0, weights=weights)
    return energy(x, mean[None], np.zeros(len(x), dtype=int), weights)


def energy_error(x, weights=None):
    """How far an energy from running sums may be off: a rounding of 2^-53 a row, of terms as large as the total."""
    return 2.0**-49 * (len(x) + 16) * total(x, weights) + np.finfo(np.float64).tiny


def cuts(x, direction):
    """All cuts by a hyperplane across `direction`, as masks of one side. Equal projections stay together."""
    along = (x.astype(np.float64) - x.astype(np.float64).mean(axis=0)) @ direction
    return [along <= at for at in np.unique(along)[:-1]]


def cut_energy(x, mask, weights=None):
    parts = [(x[m], None if weights is None else weights[m]) for m in (mask, ~mask)]
    return sum(total(rows, w) for rows, w in parts)

"""Figure 1: two iterations of Projective Split and of 2-means on the plane, from the same two centers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SEED = 3
Points = NDArray[np.float64]


def toy(rng: np.random.Generator) -> Points:
    """Two clumps side by side."""
    left = rng.normal(size=(30, 2)) * (0.55, 0.75)
    right = rng.normal(size=(30, 2)) * (0.55, 0.75) + (3.2, 0.6)
    return np.concatenate([left, right])


def energy(x: Points) -> float:
    return float(((x - x.mean(axis=0)) ** 2).sum())


def projective_split(x: Points, a: Points, b: Points) -> tuple[NDArray[np.bool_], float]:
    """One iteration of Algorithm 3: the cut of lowest energy across c_b - c_a. Which rows lie right of it; where."""
    along = x @ (b - a)
    order = np.argsort(along, kind="stable")
    costs = [energy(x[order[:m]]) + energy(x[order[m:]]) for m in range(1, len(x))]
    m = int(np.argmin(costs)) + 1
    return along > along[order[m - 1]], float(along[order[m - 1 : m + 1]].mean())


def two_means(x: Points, a: Points, b: Points) -> tuple[NDArray[np.bool_], float]:
    """One iteration of Lloyd with k = 2: the cut goes through the midpoint of the centers."""
    along, cut = x @ (b - a), float((a + b) / 2 @ (b - a))
    return along > cut, cut


def compute(rng: np.random.Generator) -> dict[str, Any]:
    """The points, and for both methods and each iteration the centers before it, the cut and the sides."""
    x = toy(rng)
    near = [np.argmin(((x - point) ** 2).sum(axis=1)) for point in ((-0.8, -0.4), (0.3, 0.1))]
    start = x[near]  # both in the left clump, as in the paper
    methods: dict[str, list[dict[str, Any]]] = {}
    for name, split in (("k-means", two_means), ("Projective Split", projective_split)):
        a, b = start
        steps = []
        for _ in range(2):
            right, cut = split(x, a, b)
            total = energy(x[right]) + energy(x[~right])
            steps.append({"centers": [a.tolist(), b.tolist()], "cut": cut, "right": right.tolist(), "energy": total})
            a, b = x[~right].mean(axis=0), x[right].mean(axis=0)
        methods[name] = steps
    return {"points": np.round(x, 4).tolist(), "methods": methods}

"""`max_cluster_size`: seconds and energy beside the fit without, and one auction beside a greedy assignment.

python benchmarks/capped.py [ROW ...] > benchmarks/results/capped.md
"""

import sys
import time

import numpy as np
from data import rows
from numpy.typing import NDArray

from k2means import K2Means, capped

ROWS = {
    "mnist k=200": ("mnist", 200),
    "covtype k=200": ("covtype", 200),
    "glove100 k=1000": ("glove100_i8", 1000),
    "mixture k=2000": ("mixture", 2000),
}
SLACK, NEAR = 1.2, 64


def mixture() -> NDArray[np.float32]:
    """200000 rows of 32 in 2000 clumps of unequal size."""
    rng = np.random.default_rng(0)
    middles = 3 * rng.normal(size=(2000, 32))
    which = rng.choice(2000, 200_000, p=rng.dirichlet(np.full(2000, 0.7)))
    return (middles[which] + rng.normal(size=(200_000, 32))).astype(np.float32)


def greedy(x: NDArray[np.float32], model: K2Means, cap: int) -> float:
    """The energy if rows take the nearest center with room, those first that lose most by the second."""
    ids, apart = model.nearest_centers(x, NEAR)
    centers, room, energy = model.cluster_centers_, np.full(model.n_clusters, cap), 0.0
    for i in np.argsort(np.square(apart[:, 0]) - np.square(apart[:, 1]), kind="stable"):
        free = np.flatnonzero(room[ids[i]] > 0)
        if len(free):
            best, square = ids[i][free[0]], apart[i][free[0]] ** 2
        else:
            squares = np.where(room > 0, np.square(centers - x[i], dtype=np.float64).sum(axis=1), np.inf)
            best = int(np.argmin(squares))
            square = squares[best]
        room[best] -= 1
        energy += square
    return energy


def timed(x: NDArray[np.float32], k: int, cap: int | None) -> tuple[K2Means, float]:
    begin = time.perf_counter()
    return K2Means(k, max_cluster_size=cap, random_state=0, n_threads=2).fit(x), time.perf_counter() - begin


def measured(name: str) -> str:
    dataset, k = ROWS[name]
    x = mixture() if dataset == "mixture" else rows(dataset)
    cap = int(np.ceil(SLACK * len(x) / k))
    free, seconds = timed(x, k, None)
    limited, longer = timed(x, k, cap)
    step = capped.STEP * free.inertia_ / len(x)
    labels, _ = capped._core.assign_capped(x, None, free.cluster_centers_, free.labels_, cap, step, 2)
    auction = capped.energy(x, None, free.cluster_centers_, labels, 2)
    cells = [
        *(f"{seconds:.2f}", f"{longer:.2f}", f"{free.cluster_sizes_.max()}", f"{limited.cluster_sizes_.max()}"),
        *(f"{e / free.inertia_:.4f}" for e in (greedy(x, free, cap), auction, limited.inertia_)),
        f"{limited.certified_:.3f}",
    ]
    return f"| {name} | {len(x)} | {' | '.join(cells)} |"


def main() -> None:
    print(
        f"A cap of {SLACK} n / k. Seconds of one fit each, 2 threads. Energies over that without a cap: rows assigned"
    )
    print("once to the centers of the fit without, greedily and by auction; and at the end.\n")
    print("| row | rows | fit (s) | capped (s) | largest | capped | greedy | auction | at the end | certified |")
    print("|" + 10 * "---|")
    for name in sys.argv[1:] or ROWS:
        print(measured(name), flush=True)


if __name__ == "__main__":
    main()

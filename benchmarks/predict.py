"""`predict` and `nearest_centers`, exact and approximate, beside brute force in blocks: seconds, best of 3, in turn.

python benchmarks/predict.py [ROW ...] > benchmarks/results/predict.md
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from data import rows
from numpy.typing import NDArray

from k2means import K2Means

ROWS = {
    "mnist k=1000": ("mnist", None, 1000),
    "covtype k=10000": ("covtype", None, 10_000),
    "glove100 k=4096": ("glove100_i8", None, 4096),
    "glove100 k=16384": ("glove100_i8", None, 16_384),
    "glove100 k=16384, all rows": ("glove100_i8", None, 16_384),
}
QUERIES, FEW = 50_000, 5000


def brute_force(x: NDArray[np.float32], centers: NDArray[np.float32]) -> NDArray[np.int64]:
    """What one writes with numpy: a matrix product for every block of rows."""
    base = np.square(centers).sum(axis=1)
    size = max(1, (1 << 24) // len(centers))
    return np.concatenate([np.argmin(base - 2 * (x[a : a + size] @ centers.T), axis=1) for a in range(0, len(x), size)])


def seconds(f: Callable[[], object]) -> float:
    began = time.perf_counter()
    f()
    return time.perf_counter() - began


def measured(name: str) -> str:
    dataset, most, k = ROWS[name]
    x = rows(dataset, most)
    model = K2Means(k, max_iter=3, polish=None, random_state=0, n_threads=2).fit(x)
    some = x if name.endswith("all rows") else np.ascontiguousarray(x[:: max(1, len(x) // QUERIES)])
    few, centers = some[:FEW], model.cluster_centers_
    asked: list[Callable[[], object]] = [
        lambda: brute_force(some, centers),
        lambda: model.predict(some),
        lambda: brute_force(few, centers),
        lambda: model.nearest_centers(few, 1),
        lambda: model.nearest_centers(few, 10),
        lambda: model.nearest_centers(some, 1, recall=0.99),
    ]
    best = np.min([[seconds(f) for f in asked] for _ in range(3)], axis=0)
    true, found = brute_force(some, centers), model.nearest_centers(some, 1, recall=0.99)
    differ, share = int((true != model.predict(some)).sum()), (found.indices[:, 0] == true).mean()
    cells = [
        *(f"{best[0]:.3f}", f"{best[1]:.3f}", f"{best[0] / best[1]:.1f}", f"{differ}"),
        *(f"{best[5]:.3f}", f"{best[0] / best[5]:.1f}", f"{found.recall:.4f}", f"{share:.4f}"),
        *(f"{b:.3f}" for b in best[2:5]),
    ]
    return f"| {name} | {len(some)} | {' | '.join(cells)} |"


def main() -> None:
    print(f"Seconds, 2 threads. `nearest_centers` is asked about {FEW} rows.\n")
    print("`recall=0.99`: the share it states, and the share of all rows it finds.\n")
    print("| row | rows asked | brute force | predict | ratio | differ | recall=0.99 | ratio | stated | found ", end="")
    print("| brute force, few | nearest 1 | nearest 10 |")
    print("|" + 13 * "---|")
    for name in sys.argv[1:] or ROWS:
        print(measured(name), flush=True)


if __name__ == "__main__":
    main()

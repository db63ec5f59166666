"""`predict` and `nearest_centers`, exact and approximate, beside brute force in blocks: seconds, best of 3, in turn.

python benchmarks/predict.py [ROW ...] > benchmarks/results/predict.md
"""

import sys

import numpy as np
from data import rows
from numpy.typing import NDArray
from timing import best_of

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


def measured(name: str) -> str:
    dataset, most, k = ROWS[name]
    x = rows(dataset, most)
    model = K2Means(k, max_iter=3, polish=None, random_state=0, n_threads=2).fit(x)
    some = x if name.endswith("all rows") else np.ascontiguousarray(x[:: max(1, len(x) // QUERIES)])
    few, centers = some[:FEW], model.cluster_centers_
    t = best_of(
        3,
        brute=lambda: brute_force(some, centers),
        predict=lambda: model.predict(some),
        most=lambda: model.nearest_centers(some, 1, recall=0.99),
        brute_few=lambda: brute_force(few, centers),
        one=lambda: model.nearest_centers(few, 1),
        ten=lambda: model.nearest_centers(few, 10),
    )
    true, found = brute_force(some, centers), model.nearest_centers(some, 1, recall=0.99)
    differ, share = int((true != model.predict(some)).sum()), (found.indices[:, 0] == true).mean()
    cells = [
        *(f"{t['brute']:.3f}", f"{t['predict']:.3f}", f"{t['brute'] / t['predict']:.1f}", f"{differ}"),
        *(f"{t['most']:.3f}", f"{t['brute'] / t['most']:.1f}", f"{found.recall:.4f}", f"{share:.4f}"),
        *(f"{t[name]:.3f}" for name in ("brute_few", "one", "ten")),
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

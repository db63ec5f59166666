"""GDI's fast path beside one exhaustive pass, our k-means++ and faiss's: seconds, best of 3, in turn.

python benchmarks/seeding.py [ROW ...] > benchmarks/results/seeding.md      (needs faiss-cpu)

k-means++ takes as long for each center as for the one before: it is timed for a tenth of the centers, times ten.
"""

import sys

import faiss
import numpy as np
from data import rows
from timing import best_of

from k2means import GDI, PlusPlus, _core
from k2means.cluster import prepare

ROWS = {
    "usps k=200": ("usps", None, 200),
    "mnist k=1000": ("mnist", None, 1000),
    "covtype k=1000": ("covtype", 150_000, 1000),
    "glove100 k=4096": ("glove100_i8", None, 4096),
    "covtype581k k=10000": ("covtype", None, 10_000),
}
THREADS, PART = 2, 10


def measured(name: str) -> str:
    dataset, most, k = ROWS[name]
    x = rows(dataset, most)
    faiss.omp_set_num_threads(THREADS)
    method = faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS
    options = {"niter": 0, "min_points_per_centroid": 1, "max_points_per_centroid": 10**9, "init_method": method}

    def ours(init: GDI | PlusPlus, count: int) -> object:
        return init(prepare(x, None, THREADS), count, np.random.default_rng(0))

    t = best_of(
        3,
        fast=lambda: ours(GDI(exact=False), k),
        exact=lambda: ours(GDI(), k),
        one_pass=lambda: _core.nearest(x, x[:k], None, THREADS),
        plus_plus=lambda: ours(PlusPlus(), k // PART),
        faiss=lambda: faiss.Kmeans(x.shape[1], k // PART, **options).train(x),
    )
    t["plus_plus"], t["faiss"] = PART * t["plus_plus"], PART * t["faiss"]
    cells = [*(f"{s:.3f}" for s in t.values()), f"{t['fast'] / t['one_pass']:.2f}", f"1/{t['faiss'] / t['fast']:.0f}"]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    print(f"Seconds, {THREADS} threads. The survey of the data and the sketches are included in GDI's.\n")
    print("| row | GDI(exact=False) | GDI() | exhaustive pass | k-means++ | faiss's k-means++ ", end="")
    print("| fast GDI, in passes | fast GDI, of faiss's k-means++ |")
    print("|" + 8 * "---|")
    for name in sys.argv[1:] or ROWS:
        print(measured(name), flush=True)


if __name__ == "__main__":
    main()

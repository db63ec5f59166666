"""GDI's fast path beside faiss's k-means++, on every row of the race: seconds, best of 3, in turn.

python benchmarks/seeding.py [ROW ...] > benchmarks/results/seeding.md      (needs faiss-cpu)

k-means++ takes as long for each center as for the one before: it is timed for 100 centers, times k / 100.
"""

import sys
from pathlib import Path

import faiss
import numpy as np
from timing import best_of

from k2means import GDI
from k2means.cluster import prepare

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.race import cpu
from experiments.race_data import ROWS

THREADS, PART = 2, 100


def measured(name: str) -> str:
    row = ROWS[name]
    x = row.load()
    options = {
        "niter": 0,
        "min_points_per_centroid": 1,
        "max_points_per_centroid": 10**9,
        "init_method": faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS,
    }
    t = best_of(
        3,
        gdi=lambda: GDI(exact=False)(prepare(x, None, THREADS), row.k, np.random.default_rng(0)),
        faiss=lambda: faiss.Kmeans(x.shape[1], PART, **options).train(x),
    )
    theirs = t["faiss"] * row.k / PART
    shown = name.replace("*", "\\*")
    return f"| {shown} | {t['gdi']:.4f} | {theirs:.3f} | {t['gdi'] / theirs:.3f} |"


def main() -> None:
    faiss.omp_set_num_threads(THREADS)
    print(f"{cpu()}; {THREADS} threads. The survey of the data and the sketches are in GDI's seconds.\n")
    print("| row | GDI(exact=False) | faiss's k-means++ | share |")
    print("|" + 4 * "---|")
    for name in sys.argv[1:] or ROWS:
        print(measured(name), flush=True)


if __name__ == "__main__":
    main()

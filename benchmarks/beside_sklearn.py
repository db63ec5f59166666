"""The README's table: K2Means and scikit-learn's KMeans, both with their defaults but n_init=1, in the same run."""

from __future__ import annotations

import time

from data import rows
from sklearn.cluster import KMeans

from k2means import K2Means

SETS = (("usps", None, 200), ("mnist", None, 1000), ("covtype", 150000, 1000), ("glove100_i8", 150000, 1000))


def main() -> None:
    print("| data | k | K2Means: seconds | energy | KMeans: seconds | energy | faster | energy over KMeans's |")
    print("|---|---|---|---|---|---|---|---|")
    for name, most, k in SETS:
        x = rows(name, most)
        K2Means(k, max_iter=2, random_state=1, n_threads=2).fit(x)  # touches the memory it needs
        found = []
        for model in (K2Means(k, random_state=0, n_threads=2), KMeans(k, n_init=1, max_iter=100, random_state=0)):
            start = time.perf_counter()
            model.fit(x)
            found += [time.perf_counter() - start, model.inertia_]
        ours, energy, theirs, other = found
        shape = f"{name} {x.shape[0]}×{x.shape[1]}"
        numbers = f"{ours:.2f} | {energy:.4g} | {theirs:.1f} | {other:.4g}"
        print(f"| {shape} | {k} | {numbers} | {theirs / ours:.0f}× | {energy / other:.4f} |", flush=True)


if __name__ == "__main__":
    main()

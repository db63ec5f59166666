"""Which bounds are faster? Seconds of whole runs of k² with either, in turn, best of two: what AUTO_BOUNDS rests on."""

from __future__ import annotations

import numpy as np
from data import rows

from k2means import GDI, K2, Stop, cluster
from k2means.methods import auto_neighbors

SETS = (
    ("usps", None, (200,)),
    ("mnist", None, (200, 1000)),
    ("covtype", 150000, (200, 1000)),
    ("cnncaltech", None, (200,)),
    ("glove100_i8", None, (1000, 4096)),
)


def main() -> None:
    print("| data | k | k_n | iterations | elkan: seconds | hamerly: seconds |\n|---|---|---|---|---|---|")
    for name, most, ks in SETS:
        x = rows(name, most)
        stop = Stop(100, 1e-4 * float(np.var(x, axis=0, dtype=np.float64).mean()))
        for k in ks:
            width, best, n_iter = auto_neighbors(k), {"elkan": np.inf, "hamerly": np.inf}, 0
            for _ in range(2):
                for bounds in best:
                    r = cluster(x, k, method=K2(width, bounds=bounds), init=GDI(), stop=stop, n_threads=2)
                    best[bounds], n_iter = min(best[bounds], sum(t.seconds for t in r.trace)), r.n_iter
            print(f"| {name} | {k} | {width} | {n_iter} | {best['elkan']:.2f} | {best['hamerly']:.2f} |", flush=True)


if __name__ == "__main__":
    main()

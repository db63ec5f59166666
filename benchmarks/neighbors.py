"""How many neighbors? Energy and seconds of k² over k_n, on real data: what the rule for "auto" rests on."""

from __future__ import annotations

import sys

import numpy as np
from data import rows

from k2means import GDI, K2, Stop, _core, cluster

WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128)
SETS = (
    ("usps", None, (100, 500)),
    ("mnist", None, (200, 1000)),
    ("covtype", 150000, (200, 1000)),
    ("cnncaltech", None, (200,)),
    ("yale", None, (200,)),
    ("glove100_i8", 120000, (200, 1000, 4000)),
)


HEADER = """| data | k | k_n | energy over widest | with exact labels | seconds | iterations |
|---|---|---|---|---|---|---|"""


def main() -> None:
    threads = 2
    print(HEADER)
    for name, most, ks in SETS:
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        x = rows(name, most)
        stop = Stop(100, 1e-4 * float(np.var(x, axis=0, dtype=np.float64).mean()))
        for k in ks:
            found = []
            for width in (w for w in WIDTHS if w <= k):
                r = cluster(x, k, method=K2(width, bounds="hamerly"), init=GDI(), stop=stop, n_threads=threads)
                exact = _core.energy(x, None, r.centers, _core.nearest(x, r.centers, None, threads), threads)
                found.append((width, r.energy, exact, sum(t.seconds for t in r.trace), r.n_iter))
            _, widest, widest_exact, _, _ = found[-1]
            for width, e, exact, seconds, n_iter in found:
                ratios = f"{e / widest:.4f} | {exact / widest_exact:.4f}"
                print(f"| {name} | {k} | {width} | {ratios} | {seconds:.2f} | {n_iter} |", flush=True)


if __name__ == "__main__":
    main()

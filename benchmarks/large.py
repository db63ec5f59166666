"""More than 2^31 numbers, and more than 2^31 row-center pairs: does it work? Needs about 12 GB of memory.

Rows are drawn around 1000 known centers, far enough apart that every row must come back to its own.
"""

from __future__ import annotations

import time

import numpy as np

from k2means import K2, Given, Lloyd, Stop, cluster

N, D, K = 2_300_000, 1000, 1000


def main() -> None:
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((K, D), dtype=np.float32) * 4
    owner = rng.integers(K, size=N)
    x = np.empty((N, D), np.float32)
    for a in range(0, N, 50_000):
        mine = owner[a : a + 50_000]
        x[a : a + 50_000] = centers[mine] + rng.standard_normal((len(mine), D), dtype=np.float32)
    print(f"n·d = {x.size / 2**31:.2f} · 2^31, n·k = {N * K / 2**31:.2f} · 2^31")
    for method, most in ((Lloyd(), 1), (K2(32, bounds="hamerly"), 3)):
        start = time.perf_counter()
        r = cluster(x, K, method=method, init=Given(centers), stop=Stop(max_iter=most))
        seconds = time.perf_counter() - start
        right = bool((r.labels == owner).all())
        print(f"{method}: {seconds:.1f} s, all {N} labels right: {right}, energy / (n·d) = {r.energy / x.size:.4f}")


if __name__ == "__main__":
    main()

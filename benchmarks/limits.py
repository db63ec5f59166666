"""How far the kernels are from what the machine can do: numpy's matrix product, a plain read of memory.

All in one run, interleaved, best of several; two threads. `python benchmarks/limits.py`
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_of

from k2means import _core

THREADS, REPEAT = 2, 7
N, D, K = 60_000, 784, 1_000


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, D), dtype=np.float32)
    centers = x[rng.choice(N, K, replace=False)]
    labels = rng.integers(K, size=N).astype(np.int32)
    out = np.empty((N, K), dtype=np.float32)
    seen = _core.survey(x, None, THREADS)
    with threadpool_limits(THREADS):
        t = best_of(
            REPEAT,
            product=lambda: np.matmul(x, centers.T, out=out),
            tiles=lambda: _core.nearest(x, centers, None, THREADS),
            read=lambda: x.view(np.int64).max(),
            survey=lambda: _core.survey(x, None, THREADS),
            energy=lambda: _core.energy(x, None, centers, labels, THREADS),
            means=lambda: _core.means(x, None, labels, K, THREADS),
            sketch=lambda: _core.sketch(x, seen, 0, THREADS),
        )
    flops, size = 2 * N * D * K, x.nbytes
    print(f"{N}×{D} float32, k={K}, {THREADS} threads, simd {_core.simd}, best of {REPEAT}")
    print(f"numpy matrix product       {flops / t['product'] / 1e9:7.1f} GFLOP/s")
    print(f"tile kernel, nearest fused {flops / t['tiles'] / 1e9:7.1f} GFLOP/s  {t['product'] / t['tiles']:5.2f} of it")
    print(f"plain read, one thread     {size / t['read'] / 1e9:7.1f} GB/s")
    for name in ("survey", "energy", "means", "sketch"):
        print(f"{name:26} {size / t[name] / 1e9:7.1f} GB/s     {t['read'] / t[name]:5.2f} of it")


if __name__ == "__main__":
    main()

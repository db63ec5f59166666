"""The figures the library promises, measured here and now: `make bench`, or one by name: `figures.py gemm gdi`.

Times are ratios inside one run, interleaved, best of several: seconds of this machine mean little elsewhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from data import rows
from timing import best_of

import k2means
from k2means import GDI, K2, Lloyd, PlusPlus, Stop, cluster

THREADS = 2
K = 1000


def say(figure: str, value: str, goal: str, reached: bool) -> None:
    print(f"{figure:<58} {value:>22}   goal {goal:<12} {'reached' if reached else 'MISSED'}", flush=True)


def gemm() -> None:
    """Lloyd's exhaustive assignment against numpy's float32 matrix product of the same shape."""
    from k2means import _core

    x = rows("mnist")
    centers = x[np.random.default_rng(0).choice(len(x), K, replace=False)]
    packed, out = np.ascontiguousarray(centers.T), np.empty((len(x), K), np.float32)
    t = best_of(
        7,
        numpy=lambda: np.matmul(x, packed, out=out),
        nearest=lambda: _core.nearest(x, centers, None, THREADS),
    )
    flops = 2 * x.size * K
    share = t["numpy"] / t["nearest"]
    rates = f"{flops / t['nearest'] / 1e9:.0f} of {flops / t['numpy'] / 1e9:.0f} GFLOP/s"
    say(f"exhaustive assignment, mnist k={K}, {rates}", f"{share:.2f} of numpy", ">= 0.80", share >= 0.8)


def iterations() -> None:
    """Seconds of an iteration of k² against one of Lloyd, from the same GDI start."""
    x = rows("mnist")
    lloyd: list[float] = []
    seconds: dict[str, list[list[float]]] = {"elkan": [], "hamerly": []}
    for _ in range(3):
        run = cluster(x, K, method=Lloyd(), init=GDI(), stop=Stop(max_iter=3), n_threads=THREADS)
        lloyd += [r.seconds for r in run.trace[1:]]  # the first also sums all rows
        for bounds, turns in seconds.items():
            run = cluster(x, K, method=K2(32, bounds=bounds), init=GDI(), stop=Stop(max_iter=30), n_threads=THREADS)
            turns.append([r.seconds for r in run.trace])
    one = min(lloyd)
    for bounds, turns in seconds.items():
        least = [min(t) for t in zip(*turns, strict=True)]
        for name, part, goal in (
            ("iteration 1", least[:1], 12),
            ("iterations 2-5", least[1:5], 12),
            ("20-30", least[19:], 20),
        ):
            ratio = one / float(np.mean(part))
            ms = f"Lloyd {one * 1e3:.0f} ms, ours {np.mean(part) * 1e3:.1f} ms"
            say(f"k² bounds={bounds}, {name}: {ms}", f"{ratio:.1f} times", f">= {goal}", ratio >= goal)


def gdi() -> None:
    """GDI against one exhaustive pass, and how it grows with k and n."""
    from k2means import _core

    x = rows("mnist")
    centers = x[np.random.default_rng(0).choice(len(x), K, replace=False)]
    seen = _core.survey(x, None, THREADS)
    t = best_of(
        5,
        gdi=lambda: _core.gdi(x, None, seen, K, 2, 0, THREADS),
        nearest=lambda: _core.nearest(x, centers, None, THREADS),
    )
    ratio = t["gdi"] / t["nearest"]
    say(f"GDI, mnist k={K}: {t['gdi']:.2f} s, one pass {t['nearest']:.2f} s", f"{ratio:.2f} passes", "<= 1", ratio <= 1)
    for k in (100, 1000, 10000):
        t = best_of(2, gdi=lambda k=k: _core.gdi(x, None, seen, k, 2, 0, THREADS))
        ops = sum(_core.gdi(x, None, seen, k, 2, 0, THREADS)[2])
        each = ops / len(x)
        print(f"  k={k:<6} {t['gdi']:.2f} s, {each:.1f} operations a row, {each / np.log2(k):.2f} per log2(k)")
    for n in (15000, 30000, 60000):
        part = np.ascontiguousarray(x[:n])
        seen_part = _core.survey(part, None, THREADS)
        t = best_of(2, gdi=lambda p=part, s=seen_part: _core.gdi(p, None, s, K, 2, 0, THREADS))
        print(f"  n={n:<6} {t['gdi']:.2f} s, {t['gdi'] / n * 1e6:.1f} microseconds a row")


def energy() -> None:
    """GDI + k² (k_n = 50) against k-means++ + Lloyd, 100 iterations each, k = 200."""
    for name, most in (("mnist", None), ("covtype", 150000), ("usps", None), ("yale", None)):
        x = rows(name, most)
        ours = [cluster(x, 200, method=K2(50), init=GDI(), seed=s, n_threads=THREADS).energy for s in range(3)]
        theirs = [cluster(x, 200, method=Lloyd(), init=PlusPlus(), seed=s, n_threads=THREADS).energy for s in range(3)]
        ratio = float(np.mean(ours) / np.mean(theirs))
        say(f"energy of GDI + k²(50) over k-means++ + Lloyd, {name}", f"{ratio:.4f}", "<= 1.01", ratio <= 1.01)


MEMORY = """
import sys, numpy as np
from k2means import K2Means
x = np.load(sys.argv[1])
def status(key):
    return int(next(l for l in open("/proc/self/status") if l.startswith(key)).split()[1]) * 1024
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
K2Means(1000, copy_x=sys.argv[2] == "True", random_state=0, max_iter=5).fit(x)
print((status("VmHWM") - before) / x.nbytes)
"""


def memory() -> None:
    """Peak memory of a fit beyond what was there before, over the bytes of X."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        np.save(path, rows("mnist"))
        for copy, goal in ((True, 1.3), (False, 0.4)):
            out = subprocess.run(
                [sys.executable, "-c", MEMORY, path, str(copy)], capture_output=True, text=True, check=True
            )
            share = float(out.stdout)
            say(
                f"peak memory of K2Means({K}, copy_x={copy}).fit, mnist",
                f"{share:.2f} of X",
                f"<= {goal}",
                share <= goal,
            )


IMPORT = """
import sklearn, time
start = time.perf_counter()
import k2means
print(time.perf_counter() - start)
"""


def startup() -> None:
    """Seconds of `import k2means` after `import sklearn`."""
    times = [
        float(subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout)
        for _ in range(7)
    ]
    say("import k2means after import sklearn", f"{min(times):.3f} s", "<= 0.15", min(times) <= 0.15)


FIGURES = {f.__name__: f for f in (gemm, iterations, gdi, energy, memory, startup)}


def main() -> None:
    wanted = sys.argv[1:] or list(FIGURES)
    unknown = [w for w in wanted if w not in FIGURES]
    if unknown:
        sys.exit(f"unknown figure {unknown[0]!r}; there are {', '.join(FIGURES)}")
    from k2means import _core

    about = {"k2means": k2means.__version__, "numpy": np.__version__, "simd": _core.simd, "threads": THREADS}
    print(json.dumps(about))
    for name in wanted:
        FIGURES[name]()


if __name__ == "__main__":
    main()

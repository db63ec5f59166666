"""What the command line adds to a fit, and what checkpoints cost: the figures of docs/command-line.md."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import data
import numpy as np

from k2means import K2Means
from k2means.checkpoint import Every, Keeper

ROWS, K, ITERATIONS, TRIES = 340_000, 1000, 30, 3
SCRIPT = """
import resource, sys
import numpy as np
from k2means import K2Means
K2Means({k}, random_state=0, max_iter={iterations}).fit(np.load(sys.argv[1], mmap_mode="r"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
COMMAND = """
import resource, sys
from k2means import cli
cli.main(["fit", sys.argv[1], "-k", "{k}", "--max-iter", "{iterations}", "-o", sys.argv[2], "--quiet", "--overwrite"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def timed(script: str, *arguments: Path) -> tuple[float, float]:
    """Seconds of a process, and the GB it had at most."""
    begin = time.perf_counter()
    text = script.format(k=K, iterations=ITERATIONS)
    out = subprocess.run([sys.executable, "-c", text, *map(str, arguments)], check=True, capture_output=True, text=True)
    return time.perf_counter() - begin, int(out.stdout.split()[-1]) * 1024 / 1e9


def overhead(folder: Path) -> None:
    """A script that fits a mapped file and the command that does the same, in turn."""
    rng, mnist = np.random.default_rng(0), data.rows("mnist")
    copies = [mnist + rng.normal(scale=3, size=mnist.shape).astype(np.float32) for _ in range(-(-ROWS // len(mnist)))]
    np.save(folder / "x.npy", np.concatenate(copies)[:ROWS])
    del copies
    print(f"{(folder / 'x.npy').stat().st_size / 1e9:.2f} GB .npy, k={K}, {ITERATIONS} iterations; seconds, peak GB")
    for _ in range(TRIES):
        for name, script in (("script", SCRIPT), ("command", COMMAND)):
            seconds, peak = timed(script, folder / "x.npy", folder / "model.npz")
            print(f"{name:8} {seconds:6.2f} s {peak:5.2f} GB", flush=True)


def checkpoints(folder: Path) -> None:
    x = data.rows("mnist")
    K2Means(K, random_state=0, max_iter=2).fit(x)
    print(f"mnist, k={K}: seconds of the fit, of saving, iterations, bytes of a checkpoint")
    for _ in range(TRIES):
        for name, every in (
            ("none", None),
            ("every iteration", Every(iterations=1)),
            ("every 30 s", Every(seconds=30)),
        ):
            keeper = None if every is None else Keeper(folder, every)
            model, begin = K2Means(K, random_state=0), time.perf_counter()
            model._fit(x, None, keeper=keeper)
            told = {"seconds": round(time.perf_counter() - begin, 3), "iterations": model.n_iter_}
            if keeper is not None:
                told |= {"saving": round(keeper.seconds, 3), "bytes": keeper.path.stat().st_size}
            print(f"{name:16}", json.dumps(told), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        overhead(Path(name))
        checkpoints(Path(name))

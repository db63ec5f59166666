"""What each part of `Sketched` brings: energy after a few iterations and at the end, distances, seconds.

`python benchmarks/ablation.py [ROW ...]` prints the table of docs/sketched.md; energies are over those of all parts.
"""

from __future__ import annotations

import sys
import time

from data import rows

from k2means import GDI, K2, PlusPlus, Sketched, Stop, cluster, early
from k2means.initialize import FAST

ROWS = {
    "usps k=200": ("usps", None, 200),
    "yale k=200": ("yale", None, 200),
    "mnist k=200": ("mnist", None, 200),
    "mnist k=1000": ("mnist", None, 1000),
    "covtype k=1000": ("covtype", 150_000, 1000),
    "glove100 k=1000": ("glove100_i8", None, 1000),
    "glove100 k=4096": ("glove100_i8", None, 4096),
}
ROUNDS = early.ROUNDS


def variants(k: int) -> dict[str, tuple[object, object]]:
    return {
        "all parts": (Sketched(), FAST),
        "no Hartigan": (Sketched(hartigan=False), FAST),
        "one turn": (Sketched(turns=1), FAST),
        "sixteen turns": (Sketched(turns=16), FAST),
        "neither (Lloyd over lists)": (Sketched(turns=1, hartigan=False), FAST),
        "32 neighbors instead of lists": (Sketched(min(32, k)), FAST),
        "128 neighbors instead of lists": (Sketched(min(128, k)), FAST),
        "256 neighbors instead of lists": (Sketched(min(256, k)), FAST),
        "no swaps": (Sketched(swaps=False), FAST),
        "no swaps between iterations": (Sketched(swaps=False), FAST),
        "neither early iterations nor swaps": (Sketched(swaps=False), GDI(exact=False)),
        "exact GDI": (Sketched(), GDI()),
        "k-means++": (Sketched(), PlusPlus()),
        "the paper's k²-means": (K2("auto", bounds="hamerly"), GDI()),
    }


def main() -> None:
    print("| row | variant | energy after 5 | after 10 | after 40 | distances a row | seconds of 40 |")
    print("|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or ROWS:
        dataset, most, k = ROWS[name]
        x = rows(dataset, most)
        base: list[float] = []
        for variant, (method, init) in variants(k).items():
            if variant == "k-means++" and k > 1000:
                continue
            early.ROUNDS = 0 if variant == "no swaps" else ROUNDS
            began = time.perf_counter()
            r = cluster(x, k, method=method, init=init, stop=Stop(max_iter=40), n_threads=2)
            seconds = time.perf_counter() - began
            energies = [r.trace[min(t, r.n_iter) - 1].energy for t in (5, 10, 40)]
            base = base or energies
            shown = " | ".join(f"{e / base[2]:.4f}" for e in energies)
            print(f"| {name} | {variant} | {shown} | {r.ops.distances / len(x):.0f} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()

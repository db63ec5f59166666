"""Seconds, as all the benchmarks take them."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_of(repeats: int, **candidates: Callable[[], object]) -> dict[str, float]:
    """The least seconds of each candidate, all of them in turn, after a warm-up.

    Before each a pause: threads of the one before may wait awake for work, on our cores.
    """
    best = dict.fromkeys(candidates, float("inf"))
    for turn in range(repeats + 1):
        for name, run in candidates.items():
            time.sleep(0.1)
            start = time.perf_counter()
            run()
            if turn:
                best[name] = min(best[name], time.perf_counter() - start)
    return best

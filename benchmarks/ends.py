"""The energy that `K2Means` ends with, over R, Lloyd's from k-means++ as the race has it.

Three seeds, 300 iterations at most.
python benchmarks/ends.py ROW ... > benchmarks/results/ends.md      (rows of the race)
"""

import sys
from pathlib import Path

import numpy as np

from k2means import K2Means

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from experiments.race import recipe  # noqa: E402
from experiments.race_data import ROWS  # noqa: E402
from experiments.runner import read_results  # noqa: E402


def main() -> None:
    done = read_results(ROOT / "experiments" / "results")
    print("| row | energy over R, seeds 0, 1, 2 | mean | iterations |")
    print("|" + 4 * "---|")
    for name in sys.argv[1:] or ROWS:
        row = ROWS[name]
        R = np.mean([done[f"reference/{name}/seed={seed}"]["energy"] for seed in range(recipe(row.k)[0])])
        x = row.load()
        models = [K2Means(row.k, max_iter=300, random_state=seed, n_threads=2).fit(x) for seed in range(3)]
        ends = [m.inertia_ / R for m in models]
        cells = [", ".join(f"{e:.4f}" for e in ends), f"{np.mean(ends):.4f}", ", ".join(str(m.n_iter_) for m in models)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

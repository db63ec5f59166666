"""One line per iteration, to stderr."""

from __future__ import annotations

import sys

from .loop import OnStep, Record


def reporter(run: int = 1, runs: int = 1) -> OnStep:
    """What `on_step` calls to tell the user how run `run` of `runs` goes."""
    prefix = "k2means" if runs == 1 else f"k2means run {run}/{runs}"

    def report(record: Record) -> None:
        print(
            f"{prefix} iteration {record.iteration}: energy {record.energy:.9g}, moved {record.moved}, "
            f"shift {record.shift:.3g}, operations {record.ops.total:.4g}, {record.seconds:.3g} s",
            file=sys.stderr,
            flush=True,
        )

    return report

"""python -m experiments run PLAN | report: the paper's experiments from the command line."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .plans import PLANS, cells, specs
from .runner import RESULTS, estimate, matches, read_results, run_plan


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a plan; what has been run already is not run again")
    run.add_argument("plan", choices=PLANS)
    run.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1)), help="processes (default: cores)")
    run.add_argument("--threads", type=int, default=1, help="threads of each process (default: 1)")
    run.add_argument("--only", action="append", help="only cells whose plan/dataset/k=K/ contains this text")
    run.add_argument("--dry-run", action="store_true", help="list the cells with an estimate, run nothing")
    report = commands.add_parser("report", help="write the tables and figures from the results")
    report.add_argument("--docs", type=Path, default=Path(__file__).parent.parent / "docs", help="where to write")
    for command in (run, report):
        command.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(arguments)
    if options.command == "report":
        from .report import write

        write(options.results, options.docs)
        return 0
    if options.jobs < 1 or options.threads < 1:
        parser.error("--jobs and --threads must be at least 1")
    wanted = [c for c in cells(options.plan) if matches(c, options.only)]
    if options.dry_run:
        show(wanted, options.results, options.jobs * options.threads)
        return 0
    try:
        run_plan(wanted, options.results, options.jobs, options.threads)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def show(wanted: list, results: Path, cores: int) -> None:  # type: ignore[type-arg]
    done, total = read_results(results), 0.0
    for cell in wanted:
        cost, keys = estimate(cell, done), [s.key for s in specs(cell)]
        total += cost
        have = sum(key in done for key in keys)
        print(f"{cell.plan:10} {cell.dataset:13} k={cell.k:<5} {have:4}/{len(keys):<4} runs done, {cost:7.0f} s to go")
    print(f"{len(wanted)} cells, at most {total / 3600:.1f} h of one core, {total / 3600 / cores:.1f} h on {cores}")


if __name__ == "__main__":
    sys.exit(main())

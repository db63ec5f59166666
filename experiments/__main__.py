"""python -m experiments run PLAN | report | race [ROW ...] | race-report: the paper's experiments, and the race."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from .plans import PLANS, cells, specs
from .runner import RESULTS, estimate, matches, read_results, run_plan

ROOT = Path(__file__).parent.parent


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
    report.add_argument("--docs", type=Path, default=ROOT / "docs", help="where to write")
    race = commands.add_parser("race", help="time ours and its peers; the same --session goes on where it was")
    race.add_argument("rows", nargs="*", metavar="ROW", help="mnist, 'mnist k=200', scaling, all (default: the tables)")
    race.add_argument("--runners", help="only these, with commas between (default: all)")
    race.add_argument("--repeat", type=int, default=3, help="repetitions, of which the best counts (default: 3)")
    race.add_argument("--threads", type=int, default=2, help="of every runner (default: 2)")
    race.add_argument("--budget", type=float, default=600.0, help="seconds of one run at most (default: 600)")
    race.add_argument("--patience", type=int, default=3, help="times a disturbed repetition is made again (default: 3)")
    race.add_argument("--seed", type=int, default=0)
    race.add_argument("--session", help="name of this run; ratios are formed within it (default: date and time)")
    race.add_argument("--data", type=Path, help="your own vectors, of any kind that k2means.read_vectors takes")
    race.add_argument("--k", type=int, help="clusters for --data")
    race.add_argument("--memory", action="store_true", help="also measure the peak memory, in a process per runner")
    race.add_argument("--dry-run", action="store_true", help="list the rows, run nothing")
    race_report = commands.add_parser("race-report", help="write docs/race.md, .html and the README's table")
    race_report.add_argument("--docs", type=Path, default=ROOT / "docs", help="where to write")
    race_report.add_argument("--readme", type=Path, default=ROOT / "README.md", help="with <!-- race --> in it")
    for command in (run, report, race, race_report):
        command.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(arguments)
    if options.command == "race":
        return run_race(parser, options)
    if options.command == "race-report":
        from . import race_report as report_of_race

        print(report_of_race.write(options.results, options.docs, options.readme))
        return 0
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


def run_race(parser: argparse.ArgumentParser, options: Any) -> int:
    from .race import Settings, plan, race
    from .race_data import chosen, own_row
    from .race_runners import RUNNERS

    runners = tuple(name.strip() for name in options.runners.split(",")) if options.runners else tuple(RUNNERS)
    if unknown := [name for name in runners if name not in RUNNERS]:
        parser.error(f"there is no runner {unknown[0]!r}; there are {', '.join(RUNNERS)}")
    if (options.data is None) != (options.k is None):
        parser.error("--data and --k belong together")
    if options.repeat < 1 or options.threads < 1 or options.patience < 0 or options.budget <= 0:
        parser.error("--repeat and --threads must be at least 1, --patience 0, --budget above 0")
    try:
        rows = chosen(options.rows) if options.data is None else [own_row(options.data, options.k)]
    except ValueError as error:
        parser.error(str(error))
    session = options.session or datetime.now().strftime("%Y-%m-%dT%H%M%S")
    settings = Settings(
        options.results, session, runners, options.repeat, options.threads, options.budget, options.seed,
        options.memory, options.patience,
    )  # fmt: skip
    print(f"session {session}", *plan(rows, settings), sep="\n", flush=True)
    if options.dry_run:
        return 0
    try:
        failed = race(rows, settings)
    except KeyboardInterrupt:
        print(f"stopped; --session {session} goes on from here", file=sys.stderr)
        return 130
    if failed:
        print(f"{failed} rows were not finished; --session {session} goes on from here", file=sys.stderr)
    return 1 if failed else 0


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

"""The command line: `k2means demo`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from . import __version__
from .cluster import resolve_threads


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    parser = argparse.ArgumentParser(prog="k2means", description="k-means with many clusters.")
    parser.add_argument("--version", action="version", version=f"k2means {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser("demo", help="cluster two data sets beside scikit-learn; a table and a picture")
    demo.add_argument(
        "--out",
        type=Path,
        default=Path("k2means-demo.png"),
        metavar="PICTURE",
        help="where the picture (PNG) goes, %(default)s by default; a number is added to the name of an existing file",
    )
    demo.add_argument("--quick", action="store_true", help="a smaller data set")
    arguments = parser.parse_args(argv)
    if not arguments.out.parent.is_dir():
        demo.error(f"--out: there is no directory {str(arguments.out.parent)!r}")
    try:
        return run_demo(arguments.out, quick=arguments.quick)
    except KeyboardInterrupt:
        return 130


def run_demo(picture: Path, *, quick: bool) -> int:
    from . import demo  # brings KMeans and the data sets

    threads = resolve_threads(None)
    print(f"K2Means and scikit-learn's KMeans, {threads} thread{'s' if threads > 1 else ''}, float32\n")
    print(demo.HEADER, flush=True)
    outcomes = []
    for outcome in demo.compare(demo.cases(quick), threads):
        outcomes.append(outcome)
        print(demo.line(outcome), flush=True)
    print(f"\n{demo.conclusion(outcomes)}")
    picture = demo.unused(picture)
    try:
        demo.draw(outcomes, picture)
    except ImportError:
        print("No picture: it needs matplotlib (pip install 'k2means[demo]').", file=sys.stderr)
    else:
        print(f"Picture: {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

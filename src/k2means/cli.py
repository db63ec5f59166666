"""The command `k2means`: only the door, so that a missing extra is told in words."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        import click  # noqa: F401
    except ImportError:
        print("The command line needs the extra `cli`: pip install 'k2means[cli]'", file=sys.stderr)
        return 2
    from .commands import run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())

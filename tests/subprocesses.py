"""Scripts in their own interpreter: for signals, forks, crashes and environment variables."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def start_python(*arguments, **options):
    """An interpreter that is left to run, with the modules that this one finds."""
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)], env={**os.environ, "PYTHONPATH": path}, text=True, **options
    )


def run_script(script, *arguments, **environment):
    """The last line a script prints. Its exit must be clean; a hang becomes a TimeoutExpired."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,  # far above what any script needs, on a slow machine too
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout[-500:]} {done.stderr[-3000:]}"
    return done.stdout.splitlines()[-1]

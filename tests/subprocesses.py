"""Scripts in their own interpreter: for signals, forks, crashes and environment variables."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


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

"""How a run goes, told to the user: a line per iteration, or a bar per phase on a terminal. All on stderr."""

from __future__ import annotations

import sys
import time
from typing import Any

from .loop import OnStep, Record


def both(*parts: OnStep | None) -> OnStep | None:
    """All of them at every step; one that wants to stop is enough."""
    given = [part for part in parts if part is not None]
    if len(given) < 2:
        return given[0] if given else None

    def step(record: Record) -> bool:
        answers = [part(record) for part in given]  # all are told, also if the first wants to stop
        return any(answers)

    return step


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


def bar(total: int, description: str) -> Any:
    """A tqdm bar, also in notebooks; None if tqdm (the extra `cli`) is not there."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc=description, leave=True, dynamic_ncols=True)


class Display:
    """The phases of a fit on the command line. On a terminal bars, else plain lines; `seconds` of each are kept."""

    def __init__(self, *, quiet: bool = False, interval: float = 5.0) -> None:
        self.quiet = quiet
        self.interval = interval  # seconds between two plain lines
        self.seconds: dict[str, float] = {}
        self._live = sys.stderr.isatty() and not quiet
        self._name, self._begin, self._told = "", time.perf_counter(), 0.0
        self._bar: Any = None

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *error: object) -> None:
        self.phase("")

    def say(self, text: str) -> None:
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)

    def phase(self, name: str) -> None:
        """`name` begins, so what was before has ended."""
        now = time.perf_counter()
        if self._name:
            self.seconds[self._name] = round(self.seconds.get(self._name, 0.0) + now - self._begin, 3)
            self._close_bar()
        self._name, self._begin = name, now
        if name and name != "iterate" and self._live:
            print(f"{name} …", end="\r", file=sys.stderr, flush=True)

    def watch(self, max_iter: int) -> OnStep:
        """What `on_step` calls. A bar counts to `max_iter`: the estimate of the time left is an upper one."""

        def show(record: Record) -> None:
            if self.quiet:
                return
            if self._live and self._bar is None:
                self._bar = bar(max_iter, "iterate")
            text = f"energy {record.energy:.6g}, moved {record.moved}, {record.seconds:.3g} s"
            now = time.perf_counter()
            if self._bar is not None:
                self._bar.n = record.iteration
                self._bar.set_postfix_str(text)
            elif now - self._told >= self.interval or record.iteration == 1:
                left = (max_iter - record.iteration) * record.seconds
                self.say(f"iteration {record.iteration} of at most {max_iter}: {text}; at most {left:.3g} s left")
                self._told = now

        return show

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

"""How a run goes, told to the user: a line per iteration, or a bar per phase on a terminal. All on stderr."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


def reporter(run: int, runs: int, max_iter: int) -> OnStep:
    """What `verbose=1` shows of one of several runs: a bar in a notebook or on a terminal, else lines."""
    name = "k2means" if runs == 1 else f"k2means run {run}/{runs}"
    counter = open_bar(max_iter, name) if sys.stderr.isatty() or "ipykernel" in sys.modules else None

    def report(record: Record) -> None:
        if counter is not None:
            advance(counter, record)
            return
        print(
            f"{name} iteration {record.iteration}: energy {record.energy:.9g}, moved {record.moved}, "
            f"shift {record.shift:.3g}, operations {record.ops.total:.4g}, {record.seconds:.3g} s",
            file=sys.stderr,
            flush=True,
        )

    return report


def open_bar(total: int, description: str) -> Any:
    """A tqdm bar, of the kind for where we are; None if tqdm (the extra `cli`) is not there."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    columns, rows = shutil.get_terminal_size()  # 80 by 24 for a terminal that does not know, where tqdm shows nothing
    return tqdm(total=total, desc=description, ncols=columns, nrows=rows)


def told(record: Record) -> str:
    return f"energy {record.energy:.6g}, moved {record.moved}, {record.seconds:.3g} s"


def advance(counter: Any, record: Record) -> None:
    """One iteration. The bar counts to the most there may be, so its estimate of the time left is an upper one."""
    counter.set_postfix_str(told(record), refresh=False)
    counter.update(record.iteration - counter.n)


class Display:
    """The phases of a fit on the command line: a bar for each on a terminal, else plain lines. Keeps their seconds."""

    def __init__(self, *, quiet: bool = False, interval: float = 5.0) -> None:
        self.quiet = quiet
        self.interval = interval  # seconds between two plain lines
        self.seconds: dict[str, float] = {}
        self._live = sys.stderr.isatty() and not quiet
        self._name, self._total, self._begin, self._told = "", 1, time.perf_counter(), 0.0
        self._bar: Any = None

    def __enter__(self) -> Display:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._end(complete=kind is None)

    def say(self, text: str, *, always: bool = False) -> None:
        """A line. `always`: a warning, which also `quiet` does not keep back."""
        if self.quiet and not always:
            return
        with self._unheard():
            if self._bar is not None:
                self._bar.write(text, file=sys.stderr)
            else:
                print(text, file=sys.stderr, flush=True)

    @contextmanager
    def _unheard(self) -> Iterator[None]:
        """Nobody may be listening any more (a pipe that is closed): the fit goes on without words."""
        try:
            yield
        except (OSError, ValueError):
            self.quiet, self._live, self._bar = True, False, None

    def phase(self, name: str, total: int) -> None:
        """`name` begins, of so many steps; so what was before has ended."""
        self._end(complete=self._name != "iterate")
        self._name, self._total, self._begin = name, total, time.perf_counter()
        with self._unheard():
            self._bar = open_bar(total, f"{name:8}") if self._live else None
        if self._bar is None and name in ("seed", "polish"):
            self.say(f"{name} …")

    def count(self, done: int) -> None:
        with self._unheard():
            if self._bar is not None:
                self._bar.update(done - self._bar.n)

    def on_record(self, record: Record) -> None:
        """What the loop calls after every iteration."""
        if self._bar is not None:
            with self._unheard():
                advance(self._bar, record)
        elif time.perf_counter() - self._told >= self.interval or record.iteration == 1:
            left = (self._total - record.iteration) * record.seconds
            self.say(
                f"iteration {record.iteration} of at most {self._total}: {told(record)}; at most {left:.3g} s left"
            )
            self._told = time.perf_counter()

    def _end(self, *, complete: bool) -> None:
        if self._name:
            spent = time.perf_counter() - self._begin
            self.seconds[self._name] = round(self.seconds.get(self._name, 0.0) + spent, 3)
        if self._bar is not None:
            if complete:
                self.count(self._total)
            with self._unheard():
                if self._bar is not None:
                    self._bar.close()
        self._name, self._bar = "", None

"""Ctrl-C without loss: the iteration at hand ends, the result is kept; a second one stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from .loop import Record


class Interruption:
    """While it is entered, SIGINT and SIGTERM only ask to stop; as `on_step` it passes the wish on.

    Outside of the main thread signals cannot be caught: nothing changes there.
    """

    def __init__(self, notify: Callable[[], None] = lambda: None) -> None:
        self.asked = False
        self.notify = notify
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:  # whoever ignores it, such as nohup, has reasons
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        with suppress(Exception):  # words that cannot be told must not cost the result
            self.notify()

    def __call__(self, record: Record) -> bool:
        return self.asked

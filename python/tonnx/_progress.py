"""A progress bar on a terminal for work that takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

_WAIT = 1.0  # seconds before anything is shown
_WIDTH = 30


class Bar:
    """The last line of a terminal."""

    def __init__(self, stream: TextIO, wait: float = _WAIT) -> None:
        self._stream = stream
        self._start = time.monotonic() + wait
        self._is_drawn = False

    def show(self, what: str, done: int, total: int) -> None:
        if time.monotonic() < self._start:
            return
        filled = _WIDTH * done // max(total, 1)
        self._stream.write(f"\r\033[K[{'#' * filled:<{_WIDTH}}] {done}/{total} {what}")
        self._stream.flush()
        self._is_drawn = True

    def end(self) -> None:
        if self._is_drawn:
            self._stream.write("\r\033[K")
            self._stream.flush()


_bar: ContextVar[Bar | None] = ContextVar("bar", default=None)


def tell(what: str, done: int, total: int) -> None:
    """Reports progress to the bar, if there is one."""
    bar = _bar.get()
    if bar is not None:
        bar.show(what, done, total)


@contextmanager
def bar_on_terminal(is_quiet: bool = False, stream: TextIO | None = None, wait: float = _WAIT) -> Iterator[None]:
    """Inside, progress is shown on the terminal, if stderr is one."""
    stream = stream or sys.stderr
    if is_quiet or not stream.isatty():
        yield
        return
    bar = Bar(stream, wait)
    token = _bar.set(bar)
    try:
        yield
    finally:
        _bar.reset(token)
        bar.end()

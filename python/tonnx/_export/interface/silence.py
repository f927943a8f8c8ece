"""What a failed export leaves out unless it is asked for: PyTorch's logs of what it tried, and the frames inside."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import ParamSpec, TypeVar

from tonnx._error import Error
from tonnx._replaced import replaced

P = ParamSpec("P")
R = TypeVar("R")


def is_debugging() -> bool:
    return os.environ.get("TONNX_DEBUG", "") not in ("", "0")


@contextmanager
def torch_logs_silent() -> Iterator[None]:
    """PyTorch writes nothing of what it tries; logs that the user asked it for (TORCH_LOGS) stay."""
    if is_debugging() or os.environ.get("TORCH_LOGS"):
        yield
        return
    loggers = [
        logger
        for name, logger in logging.root.manager.loggerDict.items()
        if name.split(".")[0] == "torch" and isinstance(logger, logging.Logger)
    ]
    handlers = {handler for logger in loggers for handler in logger.handlers}
    nothing = _Nothing()
    for handler in handlers:
        handler.addFilter(nothing)
    try:
        with replaced(logging.getLogger("torch"), "propagate", False), _graphs_not_printed():
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(nothing)


@contextmanager
def _graphs_not_printed() -> Iterator[None]:
    """torch.export prints the graph that it had when it failed, once for each attempt."""
    trace = sys.modules.get("torch.export._trace")
    with replaced(trace, "print", lambda *texts, **options: None) if trace else nullcontext():
        yield


class _Nothing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return False


def errors_alone(function: Callable[P, R]) -> Callable[P, R]:
    """An error comes without the frames inside tonnx and PyTorch: the sentence says where in the model it was.

    `verbose=True` and TONNX_DEBUG=1 keep them, with what they were caused by.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Error as error:
            if kwargs.get("verbose") or is_debugging():
                raise
            failure = error
        raise failure.with_traceback(None) from None

    return called

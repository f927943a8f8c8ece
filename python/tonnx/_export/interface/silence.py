"""Short errors: hides PyTorch's logs and the frames inside tonnx, unless the user asks for them."""

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
    """Inside, PyTorch logs nothing, unless the user set TORCH_LOGS."""
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
    """torch.export prints the graph after each failed attempt."""
    trace = sys.modules.get("torch.export._trace")
    with replaced(trace, "print", lambda *texts, **options: None) if trace else nullcontext():
        yield


class _Nothing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return False


def errors_alone(function: Callable[P, R]) -> Callable[P, R]:
    """Raises errors without the frames inside tonnx and PyTorch; their text has the line of the model.

    `verbose=True` and TONNX_DEBUG=1 keep the frames and the causes.
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

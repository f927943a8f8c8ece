"""tonnx.Error, which every part of the package raises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tonnx._core import CoreError, did_you_mean_text, nearest_list
from tonnx._literal import visible


class Error(Exception):
    """An error in a model, with the place where it was found.

    `kind` is "bad_file", "invalid_model", "unsupported", "verification" (the written model computes other values than
    the original), or "internal" (an internal error in tonnx: please report it).
    """

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(visible(text))
        self.kind = kind


def nearest(name: str, known: Iterable[str]) -> str:
    """The known names as a list for an error about an unknown one, the most similar first."""
    return nearest_list(name, list(known))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: `; did you mean 'opset_version'?`, or a list of the known names."""
    return did_you_mean_text(name, list(known))


@contextmanager
def translated() -> Iterator[None]:
    """Turns errors of the core into Error."""
    try:
        yield
    except CoreError as e:
        text, kind = e.args
        raise Error(text, kind) from None

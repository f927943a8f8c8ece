"""The error that every part of the package raises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tonnx._core import CoreError, did_you_mean_text, nearest_list
from tonnx._literal import visible


class Error(Exception):
    """What is wrong with a model, with the place where it was found.

    `kind` says who must act: "bad_file", "invalid_model", "unsupported", "verification" (the written model computes
    other values than the one it was made of), or "internal" (a mistake of tonnx itself).
    """

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(visible(text))
        self.kind = kind


def nearest(name: str, known: Iterable[str]) -> str:
    """The names that there are, as a list for an error about one that is not: the most similar come first."""
    return nearest_list(name, list(known))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about a name that is not there: `; did you mean 'opset_version'?`, or what there is."""
    return did_you_mean_text(name, list(known))


@contextmanager
def translated() -> Iterator[None]:
    """Turns the errors of the core into Error."""
    try:
        yield
    except CoreError as e:
        text, kind = e.args
        raise Error(text, kind) from None

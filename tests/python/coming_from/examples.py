"""The examples that people come with: each test says which one it is, and docs/coming_from.md has a row for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])
titles: dict[str, str] = {}  # of the rows, and the test that tries each


def example(title: str) -> Callable[[Test], Test]:
    """Marks the test of one row."""

    def marked(test: Test) -> Test:
        assert title not in titles, f"'{title}' is tried twice"
        titles[title] = test.__name__
        return test

    return marked

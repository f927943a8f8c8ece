"""Limits of one conversion: memory, steps, nodes and text, in proportion to its input (docs/limits.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from tonnx import _core

# "memory", "steps", "nodes" or "text" to a number, or to a text such as "1G"
Limits = Annotated[Mapping[str, int | str], 'a dict such as {"memory": "1G"}']


def numbers_of(limits: Limits | None) -> dict[str, int]:
    return {name: bytes_of(value) for name, value in (limits or {}).items()}


def bytes_of(size: int | str) -> int:
    """A number, or a text such as "1MB", as a number of bytes."""
    return _core.parse_bytes(size.replace(" ", "")) if isinstance(size, str) else int(size)


def budget(limits: Limits | None) -> _core.Budget:
    """A context whose conversions share one budget."""
    return _core.Budget(numbers_of(limits))

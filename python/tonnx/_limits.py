"""What one conversion may use: memory, steps, nodes and text, in proportion to its input (docs/limits.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from tonnx import _core

# "memory", "steps", "nodes" or "text" to a number, or to a text such as "1G"
Limits = Annotated[Mapping[str, int | str], 'a dict such as {"memory": "1G"}']


def numbers_of(limits: Limits | None) -> dict[str, int]:
    return {name: _core.parse_bytes(v) if isinstance(v, str) else int(v) for name, v in (limits or {}).items()}


def budget(limits: Limits | None) -> _core.Budget:
    """A context: all that is done in it draws from one budget."""
    return _core.Budget(numbers_of(limits))

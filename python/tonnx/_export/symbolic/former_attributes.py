"""Nodes in the form of older opsets: attributes that have become inputs."""

from __future__ import annotations

from typing import Any

import torch

_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")

# by operator: attributes that are inputs today, in the order of these inputs after the first one
_FORMER: dict[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "Dropout": ("ratio",),
    "Pad": ("pads", "value"),
    "Reshape": ("shape",),
    "Slice": ("starts", "ends", "axes"),
    "Split": ("split",),
    "Squeeze": ("axes",),
    "TopK": ("k",),
    "Unsqueeze": ("axes",),
    **{f"Reduce{name}": ("axes",) for name in _REDUCTIONS},
}


def former_attributes(op: str, attributes: dict[str, Any], count: int, dtype: torch.dtype) -> list[torch.Tensor | None]:
    """Removes the attributes that are inputs today, and returns their values in order; None is a missing input.

    A node with more than one input has the new form.
    """
    names = _FORMER.get(op, ())
    if count != 1 or not any(name in attributes for name in names):
        return []
    values = [_value(attributes.pop(name), dtype) if name in attributes else None for name in names]
    while values and values[-1] is None:
        values.pop()
    return values


def _value(attribute: Any, dtype: torch.dtype) -> torch.Tensor:
    value = attribute["value"]
    if attribute["kind"] == "f":
        return torch.tensor(float(value), dtype=dtype)
    return torch.tensor(value if isinstance(value, list) else [value], dtype=torch.int64)

"""Counts what PyTorch computes: multiplications, elements and operators."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# Seconds on a usual processor: one core of a computer of today.
# No clock is asked: a slow or a busy machine comes to the same verdict.
MULTIPLICATION = 4e-11
OPERATOR = 1e-4  # one call, whatever it computes
ELEMENT = 1e-8  # made, and written


class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The work of what runs inside, backward passes too."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seconds = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        elements = sum(leaf.numel() for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor))
        self.seconds += OPERATOR + ELEMENT * elements
        if (multiplications := flop_registry.get(func._overloadpacket)) is not None:
            # an addition goes with each
            self.seconds += MULTIPLICATION * multiplications(*args, **(kwargs or {}), out_val=result) / 2
        return result

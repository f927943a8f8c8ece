"""Estimates the time of a computation by counting multiplications, elements and operators."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# Seconds on one core of a common processor.
# Not measured, so that a slow or busy machine gives the same report.
MULTIPLICATION = 4e-11
OPERATOR = 1e-4  # for each call
ELEMENT = 1e-8  # for each element of a result


class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what runs inside, including backward passes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seconds = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        elements = sum(leaf.numel() for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor))
        self.seconds += OPERATOR + ELEMENT * elements
        if (multiplications := flop_registry.get(func._overloadpacket)) is not None:
            # the registry counts an addition for each
            self.seconds += MULTIPLICATION * multiplications(*args, **(kwargs or {}), out_val=result) / 2
        return result

"""The gradients of a weighted sum of outputs or intermediate values for each weight of a PyTorch model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from tonnx._verify.runners import Gradients, Value, value_of
from tonnx._verify.torch_work import Counting

if TYPE_CHECKING:
    import numpy as np

_STATISTICS = ("running_mean", "running_var")  # which have no gradients

Factor = Callable[[int, Value], "np.ndarray | None"]


class Sum:
    """Sums the elements of values, each times its factor."""

    def __init__(self, factor: Factor) -> None:
        self._factor = factor
        self.total: torch.Tensor | None = None

    def add(self, place: int, value: torch.Tensor) -> None:
        if not value.requires_grad or not value.numel():
            return
        found = self._factor(place, value_of(value))
        if found is None:
            return
        if value.is_complex():
            value = torch.view_as_real(value)
        factor = torch.from_numpy(found.copy()).to(value.device)
        part = (torch.where(torch.isfinite(value), value, 0.0).float() * factor).sum()
        self.total = part if self.total is None else self.total + part

    def add_all(self, outputs: Any) -> None:
        for place, value in enumerate(leaf for leaf in pytree.tree_leaves(outputs) if leaf is not None):
            if isinstance(value, torch.Tensor):
                self.add(place, value)


def gradients(weights: Mapping[str, torch.Tensor], factor: Factor, run: Callable[[Sum], Any]) -> Gradients | None:
    """The gradients of what `run` sums for each weight of floats; None where PyTorch cannot compute them."""
    floats = {
        name: tensor
        for name, tensor in weights.items()
        if tensor.is_floating_point() and not name.endswith(_STATISTICS)
    }
    were = [tensor.requires_grad for tensor in floats.values()]
    found = Sum(factor)
    try:
        for tensor in floats.values():
            tensor.requires_grad_(True)
        with torch.enable_grad(), Counting() as counting:
            run(found)
            slopes: Iterable[torch.Tensor | None] = [None] * len(floats)
            if found.total is not None:
                slopes = torch.autograd.grad(found.total, list(floats.values()), allow_unused=True)
    except Exception:  # operators without a derivative, in-place changes
        return None
    finally:
        for tensor, was in zip(floats.values(), were):
            tensor.requires_grad_(was)
    rows = [
        (name, value_of(tensor), None if slope is None else value_of(slope))
        for (name, tensor), slope in zip(floats.items(), slopes)
    ]
    return Gradients(rows, counting.seconds)

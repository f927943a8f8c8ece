"""How far what was compared depends on each weight: a backward pass through the model of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tonnx._verify.runners import Influence, Tolerances
from tonnx._verify.torch_work import Counting

PROBE = 0.01  # the relative change of a weight that is to be seen


class Sum:
    """Adds up values with random signs, in units of what may differ: its gradient is that of all of them at once.

    A value of n elements weighs as much as one of its usual elements does: it is only seen that they differ where one
    of them does, and not where all of them together do.
    """

    def __init__(self) -> None:
        self._generator = torch.Generator().manual_seed(5)
        self.total: torch.Tensor | None = None

    def add(self, value: torch.Tensor, tolerances: Tolerances) -> None:
        if not value.requires_grad or not value.numel():
            return
        if value.is_complex():
            value = torch.view_as_real(value)
        rtol, atol = tolerances
        signs = torch.randint(0, 2, value.shape, generator=self._generator, dtype=torch.int8).float().mul_(2).sub_(1)
        with torch.no_grad():
            allowed = (atol + rtol * value.abs().float()).clamp(min=1e-30)
            factor = signs / allowed / (value.numel() ** 0.5 / 4)
            factor = torch.where(torch.isfinite(value) & torch.isfinite(factor), factor, 0.0)
        part = (torch.where(torch.isfinite(value), value, 0.0).float() * factor).sum()
        self.total = part if self.total is None else self.total + part


def influence(weights: Mapping[str, torch.Tensor], run: Callable[[Sum], Any]) -> Influence | None:
    """For each weight how far a change by `PROBE` of all its elements moves what `run` adds up, 1 being what is seen.

    None for a weight that had no part in it; None for all where PyTorch cannot differentiate the model.
    """
    floats = {name: tensor for name, tensor in weights.items() if _counts(name, tensor)}
    were = [tensor.requires_grad for tensor in floats.values()]
    found = Sum()
    try:
        for tensor in floats.values():
            tensor.requires_grad_(True)
        with torch.enable_grad(), Counting() as counting:
            run(found)
            if found.total is None:
                return Influence(dict.fromkeys(floats), counting.seconds)
            gradients = torch.autograd.grad(found.total, list(floats.values()), allow_unused=True)
    except Exception:  # operators without a derivative, values changed in place
        return None
    finally:
        for tensor, was in zip(floats.values(), were):
            tensor.requires_grad_(was)
    moved: dict[str, float | None] = {}
    for (name, tensor), gradient in zip(floats.items(), gradients):
        if gradient is None:
            moved[name] = None
            continue
        with torch.no_grad():
            product = torch.nan_to_num(tensor.float() * gradient.float(), nan=0.0, posinf=0.0, neginf=0.0)
            moved[name] = PROBE * float(torch.linalg.vector_norm(product))
    return Influence(moved, counting.seconds)


def _counts(name: str, tensor: torch.Tensor) -> bool:
    """Not zeros, which hold nothing, and not the statistics of normalisations, which have no derivative: they do what
    scale and bias of the same layer do."""
    is_statistic = name.endswith(("running_mean", "running_var"))
    return tensor.is_floating_point() and not is_statistic and bool((tensor.detach() != 0).any())


def leaves(result: Any) -> Iterable[Any]:
    return (leaf for leaf in pytree.tree_leaves(result) if leaf is not None)

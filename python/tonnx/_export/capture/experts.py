"""Mixtures of experts while a model is traced: products of groups of rows, and what is done where there are few rows.

PyTorch knows the shapes of such products (torch._grouped_mm) for bfloat16 alone, as its kernels for GPUs do; the CPU
computes them in every type. In ONNX each group has a product of its own, though most of them are empty where there are
few rows; these are better multiplied by copies of their experts' weights, as long as the weights are small.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_impls import op_implementations_dict


def _shape_of(mode: Any, operator: Any, a: Any, b: Any, offs: Any = None, *rest: Any, **options: Any) -> Any:
    sizes = [a.shape[-2], b.shape[-1]]
    if a.dim() == b.dim():  # stacks, or matrices that are grouped along what the product sums over
        sizes.insert(0, a.shape[0] if a.dim() == 3 else offs.shape[0])
    with mode:
        return a.new_empty(sizes)


@contextmanager
def grouped_products_of_any_type() -> Iterator[None]:
    operator: Any = getattr(torch.ops.aten, "_grouped_mm", None)
    if operator is None or operator.default in op_implementations_dict:  # before torch 2.8
        yield
        return
    op_implementations_dict[operator.default] = _shape_of
    try:
        yield
    finally:
        del op_implementations_dict[operator.default]


# An empty product takes as long as to copy so many elements of weights.
_COPIED = 8192


def _most_copies(experts: Any) -> int:
    """Up to how many rows it takes less time to copy the weights of their experts than to multiply by all of them."""
    stacks = [p for p in experts.parameters(recurse=False) if p.dim() == 3 and p.numel()]
    return min((p.shape[0] ** 2 * _COPIED // p.numel() for p in stacks), default=0)


def _by_rows(few: Callable[..., Any], many: Callable[..., Any]) -> Callable[..., Any]:
    def forward(experts: Any, x: Any, chosen: Any, shares: Any) -> Any:
        most = _most_copies(experts) // chosen.shape[-1]
        if most == 0:
            return many(experts, x, chosen, shares)

        def with_few(x: Any, chosen: Any, shares: Any) -> Any:
            return few(experts, x, chosen, shares)

        def with_many(x: Any, chosen: Any, shares: Any) -> Any:
            return many(experts, x, chosen, shares)

        return torch.cond(x.shape[0] <= most, with_few, with_many, (x, chosen, shares))

    return forward


@contextmanager
def experts_by_rows() -> Iterator[None]:
    """Layers of the library `transformers` that multiply groups of rows choose between that and copies of weights."""
    functions = getattr(sys.modules.get("transformers.integrations.moe"), "ALL_EXPERTS_FUNCTIONS", {})
    if not {"batched_mm", "grouped_mm"} <= set(functions):
        yield
        return
    grouped = functions["grouped_mm"]
    functions["grouped_mm"] = _by_rows(functions["batched_mm"], grouped)
    try:
        yield
    finally:
        functions["grouped_mm"] = grouped

"""Mixtures of experts while a model is traced: grouped matrix products, and a cheaper form for few rows.

PyTorch infers the shape of a grouped product (torch._grouped_mm) only for bfloat16, although the CPU computes it in
every type. In ONNX each group becomes a MatMul. With few rows most of these are empty, and it is faster to copy the
weights of each row's expert and do one batched product, as long as the weights are small.
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
    if a.dim() == b.dim():  # batches of matrices, or matrices grouped along the dimension that the product sums over
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


# An empty product takes about as long as copying this many elements.
_COPIED = 8192


def _most_copies(experts: Any) -> int:
    """The number of rows up to which copying the experts' weights is faster than one product for each expert."""
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
    """Lets the expert layers of the library `transformers` choose between the two forms by the number of rows."""
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

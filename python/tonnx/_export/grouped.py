"""Products of groups of rows (torch._grouped_mm) while a model is traced: of every type that the CPU computes them in.

PyTorch knows their shapes for bfloat16 alone, as its kernels for GPUs do.
"""

from __future__ import annotations

from collections.abc import Iterator
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

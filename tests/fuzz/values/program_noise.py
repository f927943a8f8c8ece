"""Whether a difference is one that rounding explains: the program runs again, each inexact result changed a little."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

# what IEEE rounds, or what only moves elements: the same on every runtime
EXACT = frozenset(
    """abs add neg sub mul div maximum minimum max min amax amin clamp relu floor ceil round trunc sign where eq ne lt le gt ge
    cat stack clone copy fill zero index index_put index_select gather scatter masked_fill flip roll repeat constant_pad_nd
    full zeros ones arange empty new_zeros new_full full_like zeros_like ones_like lift_fresh_copy tril triu sort topk
    select_scatter slice_scatter diagonal_scatter frac nan_to_num relu_ hardtanh isnan isinf""".split()
)
EPSILON = {torch.float16: 2e-3, torch.float32: 5e-7, torch.float64: 1e-12}


class Noise(TorchDispatchMode):
    """Changes the result of each operator as another order of sums could have."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        name = op._schema.name.removeprefix("aten::").rstrip("_")
        returns_view = any(r.alias_info is not None and not r.alias_info.is_write for r in op._schema.returns)
        casts = name == "_to_copy"
        if name in EXACT or returns_view or casts:
            return result
        for one in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(one, torch.Tensor) and one.dtype in EPSILON:
                self.change(one, [a for a in args if isinstance(a, torch.Tensor)])
        return result

    def change(self, one: torch.Tensor, inputs: list[torch.Tensor]) -> None:
        epsilon = EPSILON[one.dtype]
        largest = 0.0
        for t in (one, *inputs):
            finite = t[torch.isfinite(t)].double().abs() if t.is_floating_point() else t.new_zeros(0).double()
            largest = max(largest, float(finite.max()) if finite.numel() else 0.0)
        signs = torch.randint(0, 2, one.shape, generator=self.random).double() * 2 - 1
        after = one.double() * (1 + epsilon * signs) + epsilon * signs * min(largest, 1e6)
        one.copy_(after.to(one.dtype))


def explained_by_rounding(
    module: torch.nn.Module,
    feeds: tuple[list[torch.Tensor], ...],
    outputs: set[tuple[int, int]],
    want: list[list[np.ndarray]],
    difference: Callable[[Any, np.ndarray], str | None],
) -> bool:
    """Whether each of these outputs (size, number) changes visibly under noise of the size of rounding."""
    moved: set[tuple[int, int]] = set()
    for seed in range(12):
        for at in {at for at, _ in outputs}:
            try:
                with torch.no_grad(), Noise(seed):
                    got = module(*(t.clone() for t in feeds[at]))
                results = [r.numpy() if isinstance(r, torch.Tensor) else torch.tensor(r).numpy() for r in got]
            except Exception:
                return False
            moved |= {(at, i) for at_, i in outputs if at_ == at and difference(results[i], want[at][i])}
    return outputs <= moved

"""Replacements for functions that read values of tensors, which do not exist while torch.export traces a model."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch

_sym_max: Any = torch.sym_max
_MOST_COMBINATIONS = 1 << 16  # beyond that they are selected by a mask at run time


def _covariance(
    input: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor | None:
    """torch.cov reads the values of its weights, to refuse negative ones."""
    if input.dim() > 2 or not input.dtype.is_floating_point:
        return None
    x = input if input.dim() == 2 else input.reshape(1, -1)
    weights = aweights if fweights is None else fweights if aweights is None else fweights * aweights
    count: Any
    if weights is None:
        mean, count = x.mean(1, keepdim=True), x.shape[1] - correction
        divisor: Any = _sym_max(count, 0) if isinstance(count, torch.SymInt) else max(count, 0)
    else:
        total = weights.sum()
        mean = (x * weights).sum(1, keepdim=True) / total
        lost = correction if aweights is None else correction * (weights * aweights).sum() / total
        divisor = (total - lost).clamp(min=0)
    apart = x - mean
    weighted = apart if weights is None else apart * weights
    result = torch.true_divide(apart @ weighted.t(), divisor)
    return result.squeeze() if input.dim() == 2 else result.reshape(())


def _correlation(input: torch.Tensor) -> torch.Tensor | None:
    covariance = _covariance(input)
    if covariance is None:
        return None
    if covariance.dim() == 0:
        return covariance / covariance
    spread = covariance.diagonal().sqrt()
    return (covariance / spread[:, None] / spread[None, :]).clamp(-1, 1)


def _combinations(input: torch.Tensor, r: int = 2, with_replacement: bool = False) -> torch.Tensor | None:
    """torch.combinations selects by a mask, so that the number of rows would depend on data, not on the size."""
    size: Any = input.shape[0] if input.dim() == 1 else None
    if size is None or r < 1:
        return None
    if isinstance(size, int) and math.comb(size + r, r) <= _MOST_COMBINATIONS:
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        return input[torch.tensor(list(choose(range(size), r)), dtype=torch.int64).reshape(-1, r)]
    places = torch.arange(size, device=input.device)
    axes = [places.reshape([-1 if i == axis else 1 for i in range(r)]) for axis in range(r)]
    mask = torch.ones([size] * r, dtype=torch.bool, device=input.device)
    for first, second in itertools.pairwise(axes):
        mask = mask & (first <= second if with_replacement else first < second)
    return input[mask.nonzero()]


# Each returns None where PyTorch's own function can be traced, or raises the better error.
COMPOSED_FUNCTIONS: dict[Any, Any] = {
    torch.cov: _covariance,
    torch.Tensor.cov: _covariance,
    torch.corrcoef: _correlation,
    torch.Tensor.corrcoef: _correlation,
    torch.combinations: _combinations,
}

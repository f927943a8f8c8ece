"""Replacements for functions that need sizes as Python numbers, for which torch.export would fix open sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

_sym_min: Any = torch.sym_min
_sym_max: Any = torch.sym_max


def _is_open(*sizes: Any) -> bool:
    return any(isinstance(size, torch.SymInt) for size in sizes)


def _linspace(start: Any, end: Any, steps: Any, **options: Any) -> torch.Tensor | None:
    """Counts from both ends, as PyTorch does, so that both are exact."""
    if not _is_open(steps) or isinstance(start, torch.Tensor) or isinstance(end, torch.Tensor):
        return None
    dtype = options.pop("dtype", None) or torch.get_default_dtype()
    places = torch.arange(steps, **options)
    step = (end - start) / _sym_max(steps - 1, 1)
    return torch.where(places < (steps + 1) // 2, start + step * places, end - step * (steps - 1 - places)).to(dtype)


def _affine_grid(theta: torch.Tensor, size: Any, align_corners: bool | None = None) -> torch.Tensor | None:
    if len(size) != 4 or not _is_open(*size[2:]):
        return None

    def places(steps: Any) -> Any:
        inner = _sym_min(steps - 1, 1) if align_corners else (steps - 1) / steps  # a single place is in the middle
        line = _linspace if _is_open(steps) else torch.linspace
        return line(-1, 1, steps, dtype=theta.dtype, device=theta.device) * inner

    y, x = torch.meshgrid(places(size[2]), places(size[3]), indexing="ij")
    points = torch.stack([x, y, torch.ones_like(x)], -1).reshape(1, -1, 3)
    return (points @ theta.transpose(1, 2)).reshape(size[0], size[2], size[3], 2)


def _is_whole(input: torch.Tensor, kernel_size: Any, padding: Any, dims: int) -> bool:
    """Whether the window has open sizes and covers the whole input."""
    sizes = list(kernel_size) if isinstance(kernel_size, tuple | list) else [kernel_size] * dims
    is_padded = any(padding) if isinstance(padding, tuple | list) else padding != 0
    return len(sizes) == dims and _is_open(*sizes) and not is_padded and sizes == list(input.shape[-dims:])


def _pool(dims: int, names: Sequence[str], reduce: Callable[..., torch.Tensor]) -> Any:
    """A pool; `names` are those of the parameters after the padding."""

    def pool(
        input: torch.Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, *rest: Any, **options: Any
    ) -> torch.Tensor | None:
        given = dict(zip(names, rest)) | options
        dilation = given.get("dilation", 1)
        is_dense = all(d == 1 for d in (dilation if isinstance(dilation, tuple | list) else [dilation]))
        if given.get("return_indices") or given.get("divisor_override") is not None or not is_dense:
            return None
        if not _is_whole(input, kernel_size, padding, dims):
            return None
        return reduce(input, tuple(range(-dims, 0)), keepdim=True)

    return pool


_AVERAGE = (("ceil_mode", "count_include_pad", "divisor_override"), torch.mean)
_MAXIMUM = (("dilation", "ceil_mode", "return_indices"), torch.amax)


def _tensor_split(
    input: torch.Tensor, indices_or_sections: Any = None, dim: int = 0, **options: Any
) -> tuple[torch.Tensor, ...] | None:
    """Parts of nearly equal size, or parts between indices. Their number does not depend on the size."""
    places = options.get("sections", options.get("indices", indices_or_sections))
    size = input.shape[dim]
    if not _is_open(size) or isinstance(places, torch.Tensor):
        return None
    around: list[Any] = [slice(None)] * (dim % input.dim())
    if not isinstance(places, int):
        if any(not isinstance(place, int) or place < 0 for place in places):
            return None
        ends = [0, *(_sym_min(place, size) for place in places), size]
        return tuple(input[(*around, slice(a, b))] for a, b in zip(ends, ends[1:], strict=False))
    sizes = [(size + places - 1 - i) // places for i in range(places)]
    return input.split_with_sizes(sizes, dim)


def _shape_as_tensor(input: torch.Tensor) -> torch.Tensor:
    """One tensor; in a trace, PyTorch would return a tuple of sizes."""
    if input.dim() == 0:
        return torch.empty(0, dtype=torch.int64)
    return torch.stack([torch.scalar_tensor(size, dtype=torch.int64) for size in input.shape])


def _reshape_from_tensor(input: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    """PyTorch reads the sizes from memory, which a traced tensor does not have."""
    sizes: Any = [shape[i].item() for i in range(shape.shape[0])]
    return input.reshape(sizes)


# Each returns None where PyTorch's own function can be traced.
OPEN_FUNCTIONS: dict[Any, Any] = {
    torch._shape_as_tensor: _shape_as_tensor,
    torch._reshape_from_tensor: _reshape_from_tensor,
    torch.linspace: _linspace,
    torch.tensor_split: _tensor_split,
    torch.Tensor.tensor_split: _tensor_split,
    F.affine_grid: _affine_grid,
    **{getattr(F, f"avg_pool{dims}d"): _pool(dims, *_AVERAGE) for dims in (1, 2, 3)},
    **{getattr(F, f"max_pool{dims}d"): _pool(dims, *_MAXIMUM) for dims in (1, 2, 3)},
    **{getattr(torch, f"max_pool{dims}d"): _pool(dims, *_MAXIMUM) for dims in (1, 2, 3)},
}

"""Access to tensors that torch.export does not trace correctly.

It treats `x.data` as a constant without values, and the size of `x[[True, False]]` as dependent on data although the
list is part of the model. It also fixes sizes that `torch.take_along_dim` compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from tonnx._export.capture.composed_functions import COMPOSED_FUNCTIONS
from tonnx._export.capture.open_functions import OPEN_FUNCTIONS
from tonnx._export.capture.run_time_axes import reduced

_REPLACED = OPEN_FUNCTIONS | COMPOSED_FUNCTIONS

_DATA: Any = torch.Tensor.data


def _is_booleans(part: Any) -> bool:
    return isinstance(part, list) and bool(part) and all(isinstance(i, bool) for i in part)


def _with_places(tensor: torch.Tensor, index: Any) -> Any:
    """Replaces each list of booleans in an index with the positions of its true elements, if its length fits."""
    parts = index if isinstance(index, tuple) else (index,)
    result = list(parts)
    axis = 0
    for i, part in enumerate(parts):
        if isinstance(part, bool | torch.Tensor) or part is Ellipsis:  # may stand for several axes
            return index
        if _is_booleans(part):
            if axis >= tensor.dim() or tensor.shape[axis] != len(part):
                return index  # PyTorch raises the error
            result[i] = [place for place, is_taken in enumerate(part) if is_taken]
        axis += 0 if part is None else 1
    return tuple(result) if isinstance(index, tuple) else result[0]


def _along_dim(input: torch.Tensor, indices: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """torch.take_along_dim, with a broadcast that leaves the other sizes open."""
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % input.dim()
    broadcast: Any = torch.broadcast_shapes
    others = broadcast(*([*t.shape[:axis], *t.shape[axis + 1 :]] for t in (input, indices)))
    same, places = (t.expand(*others[:axis], t.shape[axis], *others[axis:]) for t in (input, indices))
    return same.gather(axis, places)


_exact_slices: ContextVar[bool] = ContextVar("exact_slices", default=False)


@contextmanager
def slices_of_short_axes() -> Iterator[None]:
    """Inside, `x[:9]` along an open axis has min(9, size) rows; torch.export would assume 9."""
    token = _exact_slices.set(True)
    try:
        yield
    finally:
        _exact_slices.reset(token)


def _bound(number: int, size: Any) -> Any:
    least, most = cast(Any, torch.sym_max), cast(Any, torch.sym_min)
    return least(size + number, 0) if number < 0 else most(size, number)


def _exact(part: slice, size: Any) -> slice:
    """The slice clamped to the size; slices with a step or with symbolic bounds are left alone."""
    numbers = (part.start or 0, part.stop)
    is_known = all(n is None or type(n) is int for n in numbers) and part.step in (None, 1)
    if not is_known or not isinstance(size, torch.SymInt) or numbers == (0, None):
        return part
    start = _bound(numbers[0], size) if numbers[0] else 0
    end = size if numbers[1] is None else _bound(numbers[1], size)
    return slice(start, end if isinstance(start, int) else cast(Any, torch.sym_max)(end, start))


def _with_exact_slices(tensor: torch.Tensor, index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    if not _exact_slices.get() or not all(
        p is None or isinstance(p, slice | int) and type(p) is not bool for p in parts
    ):
        return index
    axis = 0
    result = []
    for part in parts:
        result.append(_exact(part, tensor.shape[axis]) if isinstance(part, slice) else part)
        axis += 0 if part is None else 1
    return tuple(result)


class TensorAccessFollowed(TorchFunctionMode):
    """Inside, such access is traced correctly.

    A mode, because methods of torch.Tensor must not be replaced: with a `__getitem__` written in Python it looks like a
    sequence to other code, torch.onnx among it, which then asks for its length.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            tensor, index, *value = args
            args = (tensor, _with_exact_slices(tensor, _with_places(tensor, index)), *value)
        elif getattr(func, "__self__", None) is _DATA and func.__name__ == "__get__":
            if isinstance(args[0], FakeTensor):
                return args[0].detach()
        elif (result := reduced(func, args, kwargs)) is not None:
            return result
        elif func in _REPLACED:
            made = _REPLACED[func](*args, **(kwargs or {}))
            if made is not None:
                return made
        elif func in (torch.take_along_dim, torch.Tensor.take_along_dim) and len({t.dim() for t in args[:2]}) == 1:
            return _along_dim(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

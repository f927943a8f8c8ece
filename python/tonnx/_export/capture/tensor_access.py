"""Ways to get at a tensor that torch.export does not follow, while a model is traced.

It takes what `x.data` gives for a constant without values, and what `x[[True, False]]` gives for as long as its values
say, though they are part of the model; and it fixes sizes that `torch.take_along_dim` compares.
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
    """The index with the places where a list of booleans is true in place of it, where it is as long as the tensor."""
    parts = index if isinstance(index, tuple) else (index,)
    result = list(parts)
    axis = 0
    for i, part in enumerate(parts):
        if isinstance(part, bool | torch.Tensor) or part is Ellipsis:  # of as many axes as it says
            return index
        if _is_booleans(part):
            if axis >= tensor.dim() or tensor.shape[axis] != len(part):
                return index  # PyTorch says why not
            result[i] = [place for place, is_taken in enumerate(part) if is_taken]
        axis += 0 if part is None else 1
    return tuple(result) if isinstance(index, tuple) else result[0]


def _along_dim(input: torch.Tensor, indices: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """torch.take_along_dim, whose other sizes are broadcast by an operator that leaves them open."""
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
    """Inside, x[:9] of an open size is as long as that where it is less; torch.export would take 9 for granted."""
    token = _exact_slices.set(True)
    try:
        yield
    finally:
        _exact_slices.reset(token)


def _bound(number: int, size: Any) -> Any:
    least, most = cast(Any, torch.sym_max), cast(Any, torch.sym_min)
    return least(size + number, 0) if number < 0 else most(size, number)


def _exact(part: slice, size: Any) -> slice:
    """The slice within the size; one of a step, or by numbers that are open too, as it is."""
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
    """Inside, they are followed.

    Not by other methods of torch.Tensor for a while: once it has had a `__getitem__` of Python's own, it passes for
    a sequence, and others, torch.onnx among them, ask for its length.
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

"""Ways to get at a tensor that torch.export does not follow, while a model is traced: `x.data`, and lists of booleans.

It takes what `x.data` gives for a constant without values, and what `x[[True, False]]` gives for as long as its values
say, though they are part of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

_data: Any = torch._C.TensorBase.data
_get: Any = torch._C.TensorBase.__getitem__
_set: Any = torch._C.TensorBase.__setitem__


def _data_of(tensor: torch.Tensor) -> Any:
    return tensor.detach() if isinstance(tensor, FakeTensor) else _data.__get__(tensor)


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


def _item(tensor: torch.Tensor, index: Any) -> Any:
    return _get(tensor, _with_places(tensor, index))


def _set_item(tensor: torch.Tensor, index: Any, value: Any) -> None:
    _set(tensor, _with_places(tensor, index), value)


@contextmanager
def tensor_access_followed() -> Iterator[None]:
    """Inside, both are followed."""
    kind: Any = torch.Tensor
    kind.data = property(_data_of, _data.__set__, _data.__delete__)
    kind.__getitem__ = _item
    kind.__setitem__ = _set_item
    try:
        yield
    finally:
        for name in ("data", "__getitem__", "__setitem__"):
            delattr(kind, name)

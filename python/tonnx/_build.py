"""Makes a module of generated code in memory, and gives it its weights."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from tonnx._generated import Generated, generated

if TYPE_CHECKING:
    from tonnx._core import StateEntry, TensorDescription


def tensor_of(description: TensorDescription) -> torch.Tensor:
    """A view of the bytes where they lie. Writing to it copies the pages that are written, and changes no file."""
    buffer, offset, dtype_name, sizes = description
    dtype: torch.dtype = getattr(torch, dtype_name)
    if buffer is None:
        return torch.empty(sizes, dtype=dtype)
    count = 1
    for size in sizes:
        count *= size
    return torch.frombuffer(buffer, dtype=dtype, count=count, offset=offset).view(sizes)


class _Uninitialized:
    """Stands for torch.nn while a model is made that gets all its weights afterwards.

    Layers come without memory for their weights and without the random numbers that PyTorch would fill them with, which
    takes most of the time of making a model.
    """

    def __getattr__(self, name: str) -> Any:
        kind = getattr(nn, name)
        has_weights = isinstance(kind, type) and hasattr(kind, "reset_parameters")
        if not has_weights:
            return kind
        # recurrent layers hide their arguments behind *args
        if not issubclass(kind, nn.RNNBase) and "device" not in inspect.signature(kind).parameters:
            return kind
        quick = type(name, (kind,), {"reset_parameters": lambda self: None})
        made: dict[str, nn.Module] = {}

        def make(*args: Any, **kwargs: Any) -> nn.Module:
            key = repr((args, kwargs))
            if (like := made.get(key)) is not None:
                return _copied(like)
            layer: nn.Module = quick(*args, device="meta", **kwargs)
            layer.__class__ = kind
            if not layer._modules and not isinstance(layer, nn.RNNBase):  # what has lists of its weights is made anew
                made[key] = _copied(layer)
            return layer

        self.__dict__[name] = make
        return make


def _copied(layer: nn.Module) -> nn.Module:
    """Another layer of the same arguments, quicker than by its class. Weights, which hold nothing, are shared."""
    other = layer.__class__.__new__(layer.__class__)
    for name, value in layer.__dict__.items():
        other.__dict__[name] = value.copy() if isinstance(value, dict | list | set) else value
    return other


def build(source: str, title: str, state: list[StateEntry], external: list[nn.Module]) -> nn.Module:
    """A model of generated code with these weights, in eval mode."""
    model = make(generated(source, title), external)
    parts = dict(model.named_modules(remove_duplicate=False))
    for path, description, transposed, trainable in state:
        tensor = tensor_of(description)
        if transposed:
            tensor = tensor.t()
        owner_name, _, attribute = path.rpartition(".")
        owner = parts[owner_name]
        if attribute in owner._parameters:
            owner._parameters[attribute] = nn.Parameter(tensor, requires_grad=trainable)
        else:
            owner._buffers[attribute] = tensor
    for part in parts.values():  # what no model file has, such as the batch counter of a BatchNorm
        for attribute, buffer in part._buffers.items():
            if buffer is not None and buffer.is_meta:
                part._buffers[attribute] = torch.zeros(buffer.shape, dtype=buffer.dtype)
    return model.eval()


def make(code: Generated, external: Sequence[nn.Module]) -> nn.Module:
    """A model whose weights have no memory, or no values.

    Modules that converters of the user's own gave stand in the code as `EXTERNAL[i]`.
    """
    # The code runs once more, with other names around it: those of the module itself may be in use by other threads.
    names: dict[str, Any] = {"__name__": code.module.__name__, "__file__": code.module.__file__}
    exec(code.code, names)
    names.update(nn=_Uninitialized(), EXTERNAL=external)
    model: nn.Module = names["Model"]()
    for part in model.modules():
        kind = type(part)
        if names.get(kind.__name__) is kind:
            part.__class__ = vars(code.module)[kind.__name__]
    return model

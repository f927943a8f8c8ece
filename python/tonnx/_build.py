"""Creates a model from generated code in memory, and assigns its weights."""

from __future__ import annotations

import functools
import inspect
import math
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from tonnx._generated import Generated, generated

if TYPE_CHECKING:
    from tonnx._core import StateEntry, TensorDescription


def tensor_of(description: TensorDescription) -> torch.Tensor:
    """A tensor over mapped memory. Writing to it copies the pages that change, and leaves the file alone."""
    buffer, offset, dtype_name, sizes = description
    dtype: torch.dtype = getattr(torch, dtype_name)
    if buffer is None:
        return torch.empty(sizes, dtype=dtype)
    flat = torch.frombuffer(buffer, dtype=dtype, count=math.prod(sizes), offset=offset)
    return flat if len(sizes) == 1 else flat.view(sizes)


_PLAIN = frozenset((bool, int, float, str, tuple, type(None)))  # which cannot be submodules or weights
_COPIED = frozenset((dict, list, set, OrderedDict))


def _set_quickly(self: nn.Module, name: str, value: Any) -> None:
    """A faster nn.Module.__setattr__ for plain values."""
    fields = self.__dict__
    if type(value) in _PLAIN and name not in fields.get("_parameters", ()):  # absent before nn.Module.__init__
        fields[name] = value
    else:
        nn.Module.__setattr__(self, name, value)


@functools.cache
def _quick_kind(kind: type[nn.Module]) -> type[nn.Module] | None:
    """A subclass whose layers have uninitialised weights, or None if `kind` has none to initialise."""
    if not hasattr(kind, "reset_parameters"):
        return None
    # recurrent layers hide their arguments behind *args
    if not issubclass(kind, nn.RNNBase) and "device" not in inspect.signature(kind).parameters:
        return None
    members: dict[str, Any] = {"reset_parameters": lambda self: None}
    if kind.__setattr__ is nn.Module.__setattr__:
        members["__setattr__"] = _set_quickly
    return type(kind.__name__, (kind,), members)


# layers by their class, the type of their weights, and their arguments, which are literals in generated code
_made: dict[tuple[type[nn.Module], torch.dtype, str], nn.Module] = {}
_MOST_MADE = 1024


class _Uninitialized:
    """Stands for torch.nn while a model is created whose weights are assigned afterwards.

    Its layers have no memory for weights and draw no random numbers, which take most of the time of creating a model.
    """

    def __getattr__(self, name: str) -> Any:
        kind = getattr(nn, name)
        quick = _quick_kind(kind) if isinstance(kind, type) else None
        if quick is None:
            return kind

        def make(*args: Any, **kwargs: Any) -> nn.Module:
            key = (kind, torch.get_default_dtype(), repr((args, kwargs)))
            if (like := _made.get(key)) is not None:
                return _copied(like)
            layer: nn.Module = quick(*args, device="meta", **kwargs)
            layer.__class__ = kind
            if not layer._modules and not isinstance(layer, nn.RNNBase):  # recurrent layers hold lists of their weights
                if len(_made) >= _MOST_MADE:
                    _made.clear()
                _made[key] = _copied(layer)
            return layer

        self.__dict__[name] = make
        return make


def _copied(layer: nn.Module) -> nn.Module:
    """A copy of a layer, faster than by its class. The weights are shared, as they hold no values yet."""
    other = layer.__class__.__new__(layer.__class__)
    fields = other.__dict__
    for name, value in layer.__dict__.items():
        kind = type(value)
        if kind is OrderedDict and not value:  # hooks, mostly
            fields[name] = OrderedDict()
        else:
            fields[name] = value.copy() if kind in _COPIED else value
    return other


def build(source: str, title: str, state: list[StateEntry], external: list[nn.Module]) -> nn.Module:
    """A model from generated code with these weights, in eval mode."""
    model = make(generated(source, title), external)
    parts = dict(model.named_modules(remove_duplicate=False))
    for names, description, transposed, trainable in state:
        tensor = tensor_of(description)
        if transposed:
            tensor = tensor.t()
        places = [(parts[path], attribute) for path, _, attribute in (name.rpartition(".") for name in names)]
        owner, attribute = places[0]
        if attribute in owner._parameters:
            parameter = nn.Parameter(tensor, requires_grad=trainable)
            for owner, attribute in places:  # several for shared weights
                owner._parameters[attribute] = parameter
        else:
            owner._buffers[attribute] = tensor
    for part in parts.values():  # not in model files, such as the batch counter of BatchNorm
        for attribute, buffer in part._buffers.items():
            if buffer is not None and buffer.is_meta:
                part._buffers[attribute] = torch.zeros(buffer.shape, dtype=buffer.dtype)
    _turn_to_eval(model, parts.values())
    return model


def _turn_to_eval(model: nn.Module, parts: Collection[nn.Module]) -> None:
    """model.eval(), faster where no submodule overrides train or eval."""
    if any(type(part).train is not nn.Module.train or type(part).eval is not nn.Module.eval for part in parts):
        model.eval()
        return
    for part in parts:
        part.__dict__["training"] = False


def make(code: Generated, external: Sequence[nn.Module]) -> nn.Module:
    """A model with uninitialised weights.

    `external` are the modules that registered converters returned, which the code calls `EXTERNAL[i]`.
    """
    # The code runs again with its own globals, since other threads may use those of the module.
    names: dict[str, Any] = {"__name__": code.module.__name__, "__file__": code.module.__file__}
    exec(code.code, names)
    names.update(nn=_Uninitialized(), EXTERNAL=external)
    model: nn.Module = names["Model"]()
    for part in model.modules():
        kind = type(part)
        if names.get(kind.__name__) is kind:
            part.__class__ = vars(code.module)[kind.__name__]
    return model

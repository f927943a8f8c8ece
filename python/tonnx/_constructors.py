"""Layers of torch.nn as constructor calls: `nn.Linear(512, 10, bias=False)`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

_SIMPLE = (bool, int, float, str, tuple, type(None))


def constructor_of(layer: nn.Module) -> str | None:
    """The constructor call of a layer; None if its arguments cannot be read from its attributes."""
    kind = type(layer)
    if getattr(nn, kind.__name__, None) is not kind:
        return None
    if kind is nn.Sequential:
        parts = [constructor_of(part) for part in layer.children()]
        is_numbered = [name for name, _ in layer.named_children()] == [str(i) for i in range(len(parts))]
        return f"nn.Sequential({', '.join(filter(None, parts))})" if is_numbered and None not in parts else None
    found = _arguments(layer)
    if found is None or any(isinstance(p, UninitializedParameter) for p in layer.parameters()):
        return None
    required, others = found
    if not _gives(layer, required, others):
        return None
    for name in list(others):  # leave out what is not needed
        without = {k: v for k, v in others.items() if k != name}
        others = without if _gives(layer, required, without) else others
    required = _shortened(layer, required, others)
    first = next(iter(others), "")
    if not required and first == next(iter(_parameters(kind)), None) and first != "dim" and _is_number(others[first]):
        required.append(others.pop(first))  # nn.Dropout(0.3)
    texts = [_text(value) for value in required] + [f"{k}={_text(v)}" for k, v in others.items()]
    return f"nn.{kind.__name__}({', '.join(texts)})"


def _gives(layer: nn.Module, required: Sequence[Any], others: Mapping[str, Any]) -> bool:
    """Whether a call with these arguments creates such a layer."""
    try:
        with torch.device("meta"):
            return _are_alike(type(layer)(*required, **others), layer)
    except Exception:  # the class does not accept the arguments
        return False


def _shortened(layer: nn.Module, required: list[Any], others: dict[str, Any]) -> list[Any]:
    """Replaces `(3, 3)` by `3` where the layer is the same, also in `others`."""
    for i, value in enumerate(required):
        short = [*required[:i], _first_of_equal(value), *required[i + 1 :]]
        required = short if _gives(layer, short, others) else required
    for name, value in others.items():
        if _gives(layer, required, others | {name: _first_of_equal(value)}):
            others[name] = _first_of_equal(value)
    return required


def _arguments(layer: nn.Module) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments without a default, in order, and those that differ from their default."""
    required: list[Any] = []
    others: dict[str, Any] = {}
    for name, parameter in _parameters(type(layer)).items():
        if name in ("device", "dtype") or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = parameter.default
        value = _value(layer, name, default)
        if not isinstance(value, _SIMPLE):
            return None
        if default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            required.append(value)
        elif value != default:
            others[name] = value
    return required, others


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parameters(kind: type[nn.Module]) -> Mapping[str, inspect.Parameter]:
    """The parameters of the class, and of the base classes that it passes *args to."""
    found: dict[str, inspect.Parameter] = {}
    for base in kind.__mro__:
        if "__init__" not in vars(base) or base is nn.Module:
            continue
        own = inspect.signature(vars(base)["__init__"]).parameters
        left_out = ("self", "mode") if base is nn.RNNBase else ("self",)
        named = {n: p for n, p in own.items() if n not in left_out}
        found |= {n: p for n, p in named.items() if n not in found}
        if not any(p.kind is p.VAR_POSITIONAL for p in own.values()):
            break
    return found


def _value(layer: nn.Module, name: str, default: Any) -> Any:
    """The argument as the layer's attributes show it, or the default."""
    if isinstance(default, bool) or name in ("bias", "elementwise_affine", "affine"):
        found = getattr(layer, name, None)
        if isinstance(found, bool):
            return found
        if name == "bias":
            return any("bias" in key for key in layer.state_dict())
        return default if found is None else bool(found)
    return getattr(layer, name, default)


def _are_alike(made: nn.Module, layer: nn.Module) -> bool:
    """Whether two layers have the same repr, shapes of weights and plain attributes, and no hooks."""
    return (
        repr(made) == repr(layer)
        and _shapes(made) == _shapes(layer)
        and _simple(made) == _simple(layer)
        and not layer._forward_hooks
        and not layer._forward_pre_hooks
    )


def _shapes(layer: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}


def _simple(layer: nn.Module) -> dict[str, str]:
    names = {"training"}
    return {n: repr(v) for n, v in vars(layer).items() if isinstance(v, _SIMPLE) and n not in names}


def _first_of_equal(value: Any) -> Any:
    is_even = isinstance(value, tuple) and len(set(value)) == 1 and isinstance(value[0], int)
    return value[0] if is_even else value


def _text(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str):
        return f'"{value}"' if value.isidentifier() else repr(value)
    return repr(value)

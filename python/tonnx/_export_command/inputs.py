"""The example that `tonnx export` traces a model with, from its options."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from tonnx._error import Error, nearest
from tonnx._export.script import is_script, signature_of

# The sizes of open axes in an example, by axis, so that related inputs have equal sizes. They are large enough for the
# windows and pools of most models.
OPEN_SIZES = (2, 64, 96, 128, 160, 192)


@dataclass
class Example:
    """A call of the model, and its open sizes."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic_axes: dict[str, dict[int, str]] = field(default_factory=dict)


def make_example(model: nn.Module, inputs: Sequence[str], types: Sequence[str], dynamic: Sequence[str]) -> Example:
    """`--input x:-1,3`, `--input-type x:int64`, `--dynamic x:0=batch`, by name or by index."""
    parameters = inspect.signature(signature_of(model) if is_script(model) else model.forward).parameters
    positional = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_keyword = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    rest = next((n for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL), None)
    if rest is not None:
        positional += [f"{rest}_{i}" for i in range(len(inputs))]
    known = [*positional, *by_keyword]
    shapes = _shapes(inputs, known)
    dtypes = {name: _dtype(text) for name, text in _by_name(types, "--input-type", "x:int64", known).items()}
    missing = [n for n in known if n in parameters and parameters[n].default is inspect.Parameter.empty]
    missing = [n for n in missing if n not in shapes]
    if missing:
        options = " ".join(f"--input {name}:1,3,224,224" for name in missing)
        raise Error(f"the model wants {', '.join(missing)}: {options} gives a shape", "invalid_model")
    for name in dtypes:
        _require_shape(name, shapes, "--input-type")
    axes = {name: {i: f"{name}_{i}" for i, s in enumerate(shape) if s < 0} for name, shape in shapes.items()}
    for text in dynamic:
        _add_dynamic(text, known, shapes, axes)
    tensors = {name: example_tensor(shape, dtypes.get(name, torch.float32)) for name, shape in shapes.items()}
    count = next((i for i, name in enumerate(positional) if name not in tensors), len(positional))
    args = tuple(tensors.pop(name) for name in positional[:count])
    return Example(args, tensors, {name: named for name, named in axes.items() if named})


def _find_input(name: str, known: Sequence[str]) -> str:
    if name in known:
        return name
    if name.isdecimal() and int(name) < len(known):
        return known[int(name)]
    raise Error(f"the model has no input '{name}'; it has: {nearest(name, known) or 'none'}", "invalid_model")


def _shapes(texts: Sequence[str], known: Sequence[str]) -> dict[str, list[int]]:
    shapes: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        name, _, sizes = text.rpartition(":")
        try:
            shape = [int(size) for size in sizes.split(",") if size]
        except ValueError:
            shape = [-2]
        if any(size < -1 for size in shape):
            raise Error(f"--input '{text}' is not of the form x:1,3,224,224, where -1 is an open size", "invalid_model")
        own = _find_input(name or str(place), known)
        if own in shapes:
            raise Error(f"input '{own}' is given two shapes", "invalid_model")
        shapes[own] = shape
    return shapes


def _by_name(texts: Sequence[str], option: str, form: str, known: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, colon, value = text.rpartition(":")
        if not colon or not name or not value:
            raise Error(f"{option} '{text}' is not of the form {form}", "invalid_model")
        found[_find_input(name, known)] = value
    return found


def _require_shape(name: str, shapes: Mapping[str, Sequence[int]], option: str) -> None:
    if name not in shapes:
        raise Error(
            f"{option} names '{name}', which has no shape: --input {name}:1,3,224,224 gives it", "invalid_model"
        )


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        known = sorted({str(v).removeprefix("torch.") for v in vars(torch).values() if isinstance(v, torch.dtype)})
        raise Error(f"there is no type '{name}'; there are: {nearest(name, known)}", "invalid_model")
    return found


def _add_dynamic(
    text: str, known: Sequence[str], shapes: Mapping[str, Sequence[int]], axes: dict[str, dict[int, str]]
) -> None:
    place, equals, label = text.partition("=")
    name, _, axis = place.rpartition(":")
    if not equals or not name or not label.isidentifier() or not axis.isdecimal():
        raise Error(f"--dynamic '{text}' is not of the form x:0=batch", "invalid_model")
    own = _find_input(name, known)
    _require_shape(own, shapes, "--dynamic")
    if int(axis) >= len(shapes[own]):
        raise Error(f"--dynamic '{text}': the input '{own}' has {len(shapes[own])} dimensions", "invalid_model")
    axes[own][int(axis)] = label


def example_tensor(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of random floats, or of integer ones; -1 is an open size."""
    sizes = [size if size >= 0 else OPEN_SIZES[min(i, len(OPEN_SIZES) - 1)] for i, size in enumerate(shape)]
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(sizes, generator=torch.Generator().manual_seed(0)).to(dtype)
    return torch.ones(sizes, dtype=dtype)  # 1 is a valid index of tables with two rows

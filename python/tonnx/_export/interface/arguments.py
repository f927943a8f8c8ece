"""The arguments of tonnx.export: the example as a call of the model, its mode, and the sizes that stay open."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tonnx._error import Error, nearest
from tonnx._export.interface.structures import register_structures
from tonnx._export.script import is_script, signature_of
from tonnx._export.sizes.dynamic import (
    DynamicShapes,
    as_tree,
    callable_of,
    from_dynamic_axes,
    from_dynamic_shapes,
    from_program,
)


def arguments_of(model: Any, args: Any, kwargs: Mapping[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example as args and kwargs; accepts a single tensor, and a last dict with the keyword arguments."""
    if not isinstance(args, tuple | list):
        args = (args,)
    args = tuple(args)
    if isinstance(model, torch.export.ExportedProgram):
        if not args and not kwargs and model.example_inputs is not None:
            args, kwargs = model.example_inputs
        return tuple(args), dict(kwargs or {})
    called = signature_of(model) if is_script(model) else model
    if not kwargs and args and isinstance(args[-1], dict) and _is_keywords(called, args):
        args, kwargs = args[:-1], args[-1]
    return args, dict(kwargs or {})


def with_inputs_apart(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """The same example, with a tensor that is given twice cloned: otherwise both would be the same input."""
    if model is None:
        return args, kwargs, dynamic_shapes
    _require_arguments(model, args, kwargs)
    register_structures((args, kwargs))
    dynamic_shapes = as_tree(model, args, kwargs, dynamic_shapes)
    values, structure = pytree.tree_flatten((args, kwargs))
    seen: set[int] = set()
    for i, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            values[i] = value.clone() if id(value) in seen else value
            seen.add(id(value))
    return *pytree.tree_unflatten(values, structure), dynamic_shapes


def _require_arguments(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Throws where the example does not fit the signature of the model."""
    try:
        signature = inspect.signature(callable_of(model))
    except ValueError:  # functions of torch have no signature
        return
    parameters = signature.parameters
    if all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        for name in kwargs:
            if name not in parameters:
                there = nearest(name, parameters)
                raise Error(f"kwargs names '{name}', but the arguments of the model are {there}", "unsupported")
    try:
        signature.bind(*args, **kwargs)
    except TypeError as failure:
        there = ", ".join(map(str, parameters.values())) or "none"
        raise Error(
            f"the model cannot be called with the example: {failure}; its arguments are: {there}", "unsupported"
        ) from None


def _is_keywords(model: Any, args: tuple[Any, ...]) -> bool:
    last = args[-1]
    try:
        signature = inspect.signature(callable_of(model))
        signature.bind(*args[:-1], **last)
    except (TypeError, ValueError):
        return False
    if last and all(k in signature.parameters for k in last):
        return True
    try:
        signature.bind(*args)
    except TypeError:
        return True
    return False


def training_mode(training: Any) -> bool | None:
    """True for train, False for eval, None to leave the mode alone."""
    modes = torch._C._onnx.TrainingMode
    names = {"eval": False, "train": True, "training": True, "preserve": None}
    if training is None or training is False or training == modes.EVAL:
        return False
    if training is True or training == modes.TRAINING:
        return True
    if training == modes.PRESERVE:
        return None
    if isinstance(training, str) and training.lower() in names:
        return names[training.lower()]
    raise ValueError(f"training is a torch.onnx.TrainingMode, not {training!r}")


def dynamic_sizes(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_axes: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> DynamicShapes:
    if dynamic_axes and dynamic_shapes:
        raise ValueError("give dynamic_axes or dynamic_shapes, not both")
    if isinstance(model, torch.export.ExportedProgram):
        return from_program(model, dynamic_axes, dynamic_shapes, input_names)
    if dynamic_axes:
        return from_dynamic_axes(model, args, kwargs, dynamic_axes, input_names, output_names)
    return from_dynamic_shapes(model, args, kwargs, dynamic_shapes) if dynamic_shapes else DynamicShapes()

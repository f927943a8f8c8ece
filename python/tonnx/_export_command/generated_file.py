"""Files that tonnx wrote: loads their weights, and makes an example from their docstring."""

from __future__ import annotations

import ast
import inspect
import operator
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tonnx._docstring import Interface, TensorRow, read_docstring
from tonnx._error import Error
from tonnx._export_command.inputs import OPEN_SIZES, Example, example_tensor

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def has_loader(made: Any) -> bool:
    """Whether it is a generated class with a class method `load` that needs no arguments."""
    if not (isinstance(made, type) and issubclass(made, nn.Module)):
        return False
    if not isinstance(vars(made).get("load"), classmethod) or find_interface(made) is None:
        return False
    return all(p.default is not p.empty for p in inspect.signature(_loader(made)).parameters.values())


def _loader(made: type[nn.Module]) -> Callable[..., nn.Module]:
    loader: Callable[..., nn.Module] = vars(made)["load"].__get__(None, made)
    return loader


def load(made: type[nn.Module], source: str) -> nn.Module:
    """The model with the weights beside its file."""
    weights = inspect.signature(_loader(made)).parameters.get("weights")
    if weights is not None and not Path(weights.default).is_file():
        raise Error(
            f"the weights of {source} are in {Path(weights.default).name} beside it, and there is no such file: "
            "--weights says where they are",
            "bad_file",
        )
    return _loader(made)()


def find_interface(made: Any) -> Interface | None:
    """The inputs and outputs in the docstring; None if tonnx did not write the file."""
    module = sys.modules.get(made.__module__)
    text = (module.__doc__ or "") if module is not None else ""
    if " by tonnx" not in text and "\nInputs " not in text and "\nOutputs " not in text:
        return None
    return read_docstring(text)


@dataclass
class Call:
    """An example of a call, and the names of its inputs and outputs."""

    example: Example
    input_names: list[str]
    output_names: list[str]


def find_call(model: nn.Module) -> Call | None:
    """An example with the sizes and types in the docstring; None if some are missing."""
    interface = find_interface(type(model))
    parameters = list(inspect.signature(model.forward).parameters)
    if interface is None:
        return None
    by_name = {each.name: each for each in interface.inputs}
    if sorted(by_name) != sorted(parameters):
        return None
    inputs = [by_name[name] for name in parameters]
    if not all(each.has_shape for each in inputs):
        return None
    sizes: dict[str, int] = {}
    for each in inputs:
        for axis, dim in enumerate(each.dims):
            if dim.isidentifier():
                sizes.setdefault(dim, OPEN_SIZES[min(axis, len(OPEN_SIZES) - 1)])
    tensors: list[torch.Tensor] = []
    axes: dict[str, dict[int, str]] = {}
    for each in inputs:
        shape = [_size(dim, sizes) for dim in each.dims]
        dtype = getattr(torch, {"bool_": "bool"}.get(each.dtype, each.dtype), None)
        if None in shape or not isinstance(dtype, torch.dtype):
            return None
        tensors.append(example_tensor([size for size in shape if size is not None], dtype))
        open_axes = {axis: _label(each, axis) for axis, dim in enumerate(each.dims) if not dim.isdecimal()}
        if open_axes:
            axes[each.own] = open_axes
    outputs = [each.own for each in interface.outputs] if interface.are_outputs_in_order else []
    return Call(Example(tuple(tensors), {}, axes), [each.own for each in inputs], outputs)


def _label(tensor: TensorRow, axis: int) -> str:
    dim = tensor.dims[axis]
    return dim if dim.isidentifier() else re.sub(r"\W", "_", f"{tensor.own}_{axis}")


def _size(text: str, sizes: Mapping[str, int]) -> int | None:
    """The value of a size: 3 for `past + 1`, if `past` is 2."""
    try:
        return _number(ast.parse(text, mode="eval").body, sizes)
    except (SyntaxError, KeyError, ZeroDivisionError):
        return None


def _number(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return int(_OPERATORS[type(node.op)](_number(node.left, sizes), _number(node.right, sizes)))
    raise KeyError(ast.dump(node))

"""Files of code that tonnx wrote: they load their own weights, and say what their inputs and outputs are."""

from __future__ import annotations

import ast
import inspect
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tonnx._error import Error
from tonnx._export_command.inputs import OPEN_SIZES, Example, example_tensor

_ROW = re.compile(r"(?P<heading>Inputs|Outputs)?\s+(?P<name>\S+) +(?P<type>\w+)\[(?P<dims>.*)\](?:  \((?P<own>.*)\))?$")
_COUNTED = re.compile(r"(.*?)(\d+)\.\.(\d+)(.*)")
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass
class Tensors:
    """An input or output as the docstring has it."""

    name: str  # of the argument
    own: str  # in the model that the code came from
    dtype: str
    dims: list[str]


@dataclass
class Interface:
    """The inputs and outputs that a file names."""

    inputs: list[Tensors] = field(default_factory=list)
    outputs: list[Tensors] = field(default_factory=list)
    are_outputs_in_order: bool = True  # rows that count may stand for tensors in turn, or for one group behind another


def has_loader(made: Any) -> bool:
    """Whether it is a class that loads its weights itself: a class method `load` that needs no arguments."""
    if not (isinstance(made, type) and issubclass(made, nn.Module)):
        return False
    if not isinstance(vars(made).get("load"), classmethod) or find_interface(made) is None:
        return False
    return all(p.default is not p.empty for p in inspect.signature(_loader(made)).parameters.values())


def _loader(made: type[nn.Module]) -> Callable[..., nn.Module]:
    loader: Callable[..., nn.Module] = vars(made)["load"].__get__(None, made)
    return loader


def load(made: type[nn.Module], source: str) -> nn.Module:
    """The model with the weights that lie beside its file."""
    weights = inspect.signature(_loader(made)).parameters.get("weights")
    if weights is not None and not Path(weights.default).is_file():
        raise Error(
            f"the weights of {source} are in {Path(weights.default).name} beside it, and there is no such file: "
            "--weights says where they are",
            "bad_file",
        )
    return _loader(made)()


def find_interface(made: Any) -> Interface | None:
    """What the docstring of the file says; None where it is no file of tonnx's."""
    module = sys.modules.get(made.__module__)
    text = (module.__doc__ or "") if module is not None else ""
    if " by tonnx" not in text and "\nInputs " not in text and "\nOutputs " not in text:
        return None
    found = Interface()
    rows: list[Tensors] | None = None
    did_count = False
    for line in text.splitlines():
        row = _ROW.match(line)
        if not line.startswith(" "):
            rows = {"Inputs": found.inputs, "Outputs": found.outputs}.get(line.partition(" ")[0])
        counts = _COUNTED.fullmatch(row["name"]) is not None if row is not None else False
        if rows is found.outputs and row is not None:
            found.are_outputs_in_order &= not (counts and did_count)
            did_count = counts
        if rows is not None and row is not None:
            rows += _tensors(row["name"], row["own"] or row["name"], row["type"], row["dims"])
    return found


def _tensors(name: str, own: str, dtype: str, dims: str) -> Iterator[Tensors]:
    """`key_0..3` stands for four of them."""
    sizes = [size.strip() for size in dims.split(",")] if dims else []
    many, owns = _COUNTED.fullmatch(name), _COUNTED.fullmatch(own)
    if many is None or owns is None:
        yield Tensors(name, own, dtype, sizes)
        return
    for i in range(int(many[2]), int(many[3]) + 1):
        yield Tensors(f"{many[1]}{i}{many[4]}", f"{owns[1]}{i}{owns[4]}", dtype, sizes)


@dataclass
class Call:
    """An example of a call, and what its inputs and outputs are named."""

    example: Example
    input_names: list[str]
    output_names: list[str]


def find_call(model: nn.Module) -> Call | None:
    """An example of the sizes and types that the file gives; None where it does not give all of them."""
    interface = find_interface(type(model))
    parameters = list(inspect.signature(model.forward).parameters)
    if interface is None:
        return None
    by_name = {each.name: each for each in interface.inputs}
    if sorted(by_name) != sorted(parameters):
        return None
    inputs = [by_name[name] for name in parameters]
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


def _label(tensor: Tensors, axis: int) -> str:
    dim = tensor.dims[axis]
    return dim if dim.isidentifier() else re.sub(r"\W", "_", f"{tensor.own}_{axis}")


def _size(text: str, sizes: Mapping[str, int]) -> int | None:
    """The number that a size is: of `past + 1`, where `past` is 2, 3."""
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

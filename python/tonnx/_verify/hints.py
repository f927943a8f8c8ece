"""What an ONNX graph tells of its inputs: rows of tables that they choose, numbers they are compared with, windows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tonnx import _core
from tonnx._verify.expression import Needs
from tonnx._verify.runners import Input

if TYPE_CHECKING:
    import numpy as np

# operators whose result holds the elements of their first input
_PASSES_ON = {
    *("Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Slice", "Expand", "Tile"),
    *("Clip", "Split", "Dropout", "Gather"),
}
_COMPARES = {"Equal": 0, "Less": -1, "LessOrEqual": -1, "Greater": 1, "GreaterOrEqual": 1}
_COUNTS = {"Range", "Expand", "ConstantOfShape", "Tile", "TopK", "OneHot", "SequenceMask"}
_WINDOWS = {"Conv", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool"}
_LARGEST_CONSTANT = 1 << 16  # elements of a constant that an input is compared with
_TELLING = 2  # a size inside that is one says nothing of what goes along it


def attributes(node: Any) -> dict[str, Any]:
    return {attribute.name: attribute for attribute in node.attribute}


def subgraphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(graph: Any) -> Iterator[Any]:
    """Those of the graphs inside nodes too."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from all_nodes(inner)


class Hints:
    """Follows the inputs of a graph through what only moves their elements."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._inputs = {value.name: value for value in inputs}
        self._from: dict[str, Input] = dict(self._inputs)
        self._tables: dict[str, list[int]] = {}
        self._constants: dict[str, Any] = {}
        self._limits: dict[str, int] = {}

    def read(self, graph: Any) -> None:
        self._visit(graph)
        for value in self._inputs.values():
            name = value.name.lower()
            value.is_mask = value.is_mask or "mask" in name
            if value.name in self._limits:
                value.limit = max(1, self._limits[value.name])
            is_number = len(value.shape or ()) <= 1 and (value.dtype or "").startswith("int")
            value.is_length = is_number and (value.is_length or "len" in name) and not value.choices

    def _visit(self, graph: Any) -> None:
        for tensor in graph.initializer:
            self._tables[tensor.name] = list(tensor.dims)
            if math.prod(tensor.dims) <= _LARGEST_CONSTANT:
                self._constants[tensor.name] = tensor
        for node in graph.node:
            if node.op_type == "Constant" and (tensor := attributes(node).get("value")) is not None:
                self._tables[node.output[0]] = list(tensor.t.dims)
                if math.prod(tensor.t.dims) <= _LARGEST_CONSTANT:
                    self._constants[node.output[0]] = tensor.t
            self._look_at(node)
            for inner in subgraphs(node):
                self._visit(inner)

    def _look_at(self, node: Any) -> None:
        first = self._from.get(node.input[0]) if node.input else None
        if node.op_type in _PASSES_ON and first is not None:
            if node.op_type == "Cast" and attributes(node)["to"].i == 9:  # to truth values
                first.is_mask = True
            self._from.update((name, first) for name in node.output)
        if node.op_type == "Concat":
            sources = [self._from[name] for name in node.input if name in self._from]
            if len(sources) == 1:
                self._from[node.output[0]] = sources[0]
        if node.op_type in ("Gather", "GatherElements") and node.input[0] in self._tables:
            self._note_rows(node)
        elif node.op_type == "OneHot" and first is not None and node.input[1] in self._constants:
            self._limit(first, int(self._array(node.input[1]).reshape(-1)[0]))
        elif node.op_type in _COMPARES:
            self._note_comparison(node)
        if node.op_type in _COUNTS:
            for name in node.input:
                if name in self._from:
                    self._from[name].is_length = True

    def _limit(self, value: Input, rows: int) -> None:
        self._limits[value.name] = min(self._limits.get(value.name, rows), rows)

    def _note_rows(self, node: Any) -> None:
        dims = self._tables[node.input[0]]
        axis = attributes(node)["axis"].i if "axis" in attributes(node) else 0
        if node.input[1] in self._from and -len(dims) <= axis < len(dims):
            self._limit(self._from[node.input[1]], dims[axis])

    def _array(self, name: str) -> np.ndarray:
        from onnx import numpy_helper

        return numpy_helper.to_array(self._constants[name])

    def _note_comparison(self, node: Any) -> None:
        for at, other in ((0, 1), (1, 0)):
            value = self._from.get(node.input[at])
            if value is None:
                continue
            if node.input[other] not in self._constants:
                value.is_length = True  # positions are compared with it
                continue
            numbers = self._array(node.input[other]).reshape(-1)
            if not numbers.size or numbers.dtype.kind not in "fiu":
                continue
            low, high = float(numbers.min()), float(numbers.max())
            sign = _COMPARES[node.op_type] * (1 if at == 0 else -1)
            # the first makes the comparison true, the second false
            choices = (low, low + 1) if sign == 0 else (high + 1, low - 1) if sign > 0 else (low - 1, high + 1)
            if numbers.size > 1 and sign != 0:
                choices = (high, low) if sign > 0 else (low, high)
            value.choices += tuple(choice for choice in choices if choice not in value.choices)


def needs_of(path: str, inputs: Sequence[Input]) -> Needs:
    """What sizes inside ask for, as far as inference knows them; names open sizes of inputs that have none."""
    import onnx

    needs = Needs()
    try:
        found = _core.infer(path, "", None, {})
    except Exception:  # the sizes are guessed then
        return needs
    if found is None:
        return needs
    graph = onnx.load_from_string(found).graph
    shapes: dict[str, list[Any]] = {
        value.name: [dim.dim_param if dim.HasField("dim_param") else dim.dim_value for dim in _dims(value)]
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    for value in inputs:
        shape = shapes.get(value.name)
        if value.shape is not None and shape is not None and len(shape) == len(value.shape):
            value.shape = [there if size is None else size for size, there in zip(value.shape, shape)]
    names = {size for value in inputs for size in value.shape or () if isinstance(size, str)}
    for text in dict.fromkeys(size for shape in shapes.values() for size in shape if isinstance(size, str)):
        if text not in names:
            needs.add(text, 1, names)
            needs.add(text, _TELLING, names)
            needs.add_scale(text, names)
    weights = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        for size, window in _windows(node, shapes, weights):
            if isinstance(size, str):
                needs.add(size if size not in names else _quoted(size), window, names)
    return needs


def _dims(value: Any) -> Sequence[Any]:
    return value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '\\"') + '"'


def _windows(node: Any, shapes: Mapping[str, list[Any]], weights: Mapping[str, list[int]]) -> list[tuple[Any, int]]:
    """The sizes that windows are moved along, and how much of them each window looks at."""
    if node.op_type == "STFT" and node.input[0] in shapes:
        kernel = [next((weights[name][0] for name in node.input[2:3] if weights.get(name)), 1)]
        return list(zip(shapes[node.input[0]][1:2], kernel))
    if node.op_type not in _WINDOWS or node.input[0] not in shapes:
        return []
    given = attributes(node)
    kernel = list(given["kernel_shape"].ints) if "kernel_shape" in given else []
    if not kernel and len(node.input) > 1:
        kernel = weights.get(node.input[3 if node.op_type == "QLinearConv" else 1], [])[2:]
    spacing = list(given["dilations"].ints) if "dilations" in given else [1] * len(kernel)
    return list(zip(shapes[node.input[0]][2:], ((k - 1) * d + 1 for k, d in zip(kernel, spacing))))

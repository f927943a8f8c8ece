"""Runs TorchScript files; intermediate values are observed by making them outputs of the graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from tonnx._error import Error
from tonnx._orders import orders_chosen
from tonnx._verify.gradients import Factor, gradients
from tonnx._verify.runners import (
    Depth,
    Gradients,
    Input,
    Runner,
    Step,
    Value,
    identifier,
    layer_of_weight,
    short,
    value_of,
)
from tonnx._verify.torch_runner import coarsest, depth_of_weights, is_plain, named_outputs, weights_of

if TYPE_CHECKING:
    import numpy as np


_NUMBERS = {"IntType": "int64", "FloatType": "float32", "BoolType": "bool"}


def _is_optional(argument: Any) -> bool:
    return bool(argument.has_default_value() or argument.type.kind() == "OptionalType")


def _element_type(argument: Any) -> Any:
    return argument.type.getElementType() if argument.type.kind() == "OptionalType" else argument.type


def _value_of(argument: Any, array: np.ndarray) -> Any:
    tensor = torch.from_numpy(array.copy())
    return tensor.item() if _element_type(argument).kind() in _NUMBERS else tensor


class ScriptRunner(Runner):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        try:
            self._module = torch.jit.load(path, map_location="cpu").eval()  # type: ignore[no-untyped-call]
        except Exception as e:
            raise Error(f"PyTorch cannot load '{path}' as TorchScript: {short(e)}", "bad_file") from None
        self._arguments = list(self._module.forward.schema.arguments[1:])
        self._limits = self._rows_of_tables()
        self.inputs = [self._input_of(a) for a in self._arguments if not _is_optional(a)]
        self.precision = coarsest(self._module.state_dict().values())
        self._has_open_orders = re.search(r"\b(topk|_unique2?)\b", str(self._module.inlined_graph)) is not None
        self._graph: Any = None
        self._weights: list[Any] = []
        self._steps: list[Step] = []
        self._places: list[
            tuple[int, int]
        ] = []  # indices of the node and the output of each step: a copy of the graph has other names

    def _input_of(self, argument: Any) -> Input:
        kind = _element_type(argument).kind()
        if kind in _NUMBERS:
            return Input(argument.name, _NUMBERS[kind], [])
        if kind != "TensorType":
            raise Error(f"input '{argument.name}' of '{self.path}' is a {argument.type}, no tensor", "unsupported")
        return Input(argument.name, limit=self._limits.get(argument.name))

    def _rows_of_tables(self) -> dict[str, int]:
        """Arguments that are indices into tables, with the least number of rows of a table."""
        graph = self._module.inlined_graph
        places = {value.debugName(): i for i, value in enumerate(graph.inputs())}  # the first one is the module
        rows = min((t.shape[0] for t in self._module.state_dict().values() if t.ndim == 2), default=0)
        asked = [list(node.inputs())[1].debugName() for node in graph.findAllNodes("aten::embedding", recurse=True)]
        return {self._arguments[places[name] - 1].name: rows for name in asked if rows and places.get(name, 0) > 0}

    def fit(self, other: Runner) -> None:
        """Optional arguments are inputs if the other model has an input of that name, or more inputs."""
        names = {name for value in other.inputs for name in (value.name, identifier(value.name))}
        own = {value.name for value in self.inputs}
        optional = [a for a in self._arguments if a.name not in own]
        own |= {a.name for a in optional if a.name in names}
        for argument in optional:
            if len(own) < len(other.inputs) and _element_type(argument).kind() == "TensorType":
                own.add(argument.name)
        self.inputs = [self._input_of(a) for a in self._arguments if a.name in own]

    def _values(self, feeds: Sequence[np.ndarray]) -> list[Any]:
        """All arguments of a call: inputs, and defaults for others."""
        given = {value.name: array for value, array in zip(self.inputs, feeds)}
        return [
            _value_of(argument, given[argument.name])
            if argument.name in given
            else (argument.default_value if argument.has_default_value() else None)
            for argument in self._arguments
        ]

    def _guarded(self, function: Any, feeds: Sequence[np.ndarray]) -> Any:
        try:
            with torch.no_grad(), orders_chosen(self._has_open_orders):
                return function(*self._values(feeds))
        except Exception as e:
            reason = str(e).strip().rpartition("\n")[2]  # the lines before it are code
            raise Error(f"PyTorch cannot run '{self.path}': {reason}", "invalid_model") from None

    def run(self, feeds: Sequence[np.ndarray]) -> list[tuple[str, Value]]:
        return named_outputs(self._guarded(self._module, feeds), ())

    def find_steps(self, feeds: Sequence[np.ndarray]) -> list[Step]:
        if self._graph is None:
            self._find_steps()
        return self._steps

    def _find_steps(self) -> None:
        graph = self._module.inlined_graph.copy()
        try:
            # weights become inputs of the graph, and in-place operators become functional
            self._graph, self._weights = torch._C._jit_pass_lower_graph(graph, self._module._c)
            torch._C._jit_pass_remove_mutation(self._graph)
        except RuntimeError as e:
            raise Error(f"the layers of '{self.path}' cannot be shown: {short(e)}", "unsupported") from None
        names = {tensor.data_ptr(): name for name, tensor in self._module.state_dict().items()}
        inputs = list(self._graph.inputs())
        first_weight = len(inputs) - len(self._weights)
        sources: dict[str, tuple[int, ...]] = {
            value.debugName(): (-1 - i,) for i, value in enumerate(inputs[:first_weight])
        }
        weights = {
            value.debugName(): names.get(tensor.data_ptr(), "") if isinstance(tensor, torch.Tensor) else ""
            for value, tensor in zip(inputs[first_weight:], self._weights)
        }
        for number, node in enumerate(self._graph.nodes()):
            given = [value.debugName() for value in node.inputs()]
            parents = tuple(dict.fromkeys(p for name in given for p in sources.get(name, ())))
            used = tuple(name for given_name in given if (name := weights.get(given_name)))
            layer = layer_of_weight(used[0]) if used else ""
            for place, value in enumerate(node.outputs()):
                sources[value.debugName()] = parents
                if value.type().kind() == "TensorType" and node.kind() != "prim::GetAttr" and parents:
                    sources[value.debugName()] = (len(self._steps),)
                    op = node.kind().split("::")[1]
                    step = Step(value.debugName(), op, parents, layer, used, (layer,) if layer else ())
                    self._steps.append(step)
                    self._places.append((number, place))

    def fetch(self, feeds: Sequence[np.ndarray], wanted: Iterable[int]) -> dict[int, Value]:
        steps = list(wanted)
        graph = self._graph.copy()
        while len(list(graph.outputs())):
            graph.eraseOutput(0)
        nodes = list(graph.nodes())
        for step in steps:
            number, place = self._places[step]
            graph.registerOutput(list(nodes[number].outputs())[place])
        graph.makeMultiOutputIntoTuple()
        function = torch._C._create_function_from_graph("forward", graph)
        found = self._guarded(lambda *tensors: function(*tensors, *self._weights), feeds)
        values = found if isinstance(found, tuple) else (found,)
        return {step: value_of(tensor) for step, tensor in zip(steps, values) if is_plain(tensor)}

    def gradients(self, feeds: Sequence[np.ndarray], factor: Factor, is_inside: bool) -> Gradients | None:
        if is_inside:
            return None
        return gradients(
            weights_of(self._module), factor, lambda found: found.add_all(self._module(*self._values(feeds)))
        )

    def depth(self) -> Depth:
        return depth_of_weights(self._module.state_dict().values())

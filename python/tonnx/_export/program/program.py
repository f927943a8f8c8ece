"""Writes a torch.export.ExportedProgram for the core: the JSON of a .pt2, and the addresses of the weights."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import (
    ConstantArgument,
    CustomObjArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
)
from torch.fx import Node

from tonnx._error import Error
from tonnx._export.capture.autograd_functions import FunctionCall
from tonnx._export.program.decompose import name_of
from tonnx._export.program.graph import SIMPLE_ARGUMENTS, ProgramGraph
from tonnx._export.program.source_paths import SourcePaths
from tonnx._export.program.values import Expressions, Json, Storage, Storages, TensorMetas
from tonnx._export.symbolic.call import write_function, write_operator
from tonnx._export.symbolic.fallthrough import write_as_it_is
from tonnx._export.symbolic.registry import Symbolic, find_symbolic


@dataclass(frozen=True)
class ProgramOptions:
    """How a program is written."""

    opset: int = 0  # for symbolics
    functions: Mapping[Any, FunctionCall] = field(default_factory=dict)  # that symbolics write, by operator
    source_lines: bool = True
    weight_names: Mapping[str, str] = field(default_factory=dict)  # by the names of the state dict
    as_they_are: frozenset[str] = frozenset()  # operators that are written without a conversion
    form: str = ""  # "own" or "aten": how these are written


class Program:
    """An exported program while it is written."""

    def __init__(self, exported: torch.export.ExportedProgram, options: ProgramOptions) -> None:
        self.exported = exported
        self._options = options
        self._paths = SourcePaths() if options.source_lines else None
        self._symbolics: dict[Any, Symbolic | None] = {}
        self.expressions = Expressions()
        self.storages = Storages()
        self.aliases: dict[Node, Node] = {}
        self.weights: dict[str, Json] = {}
        self.constants: dict[str, Json] = {}
        self.lifted: list[tuple[Json, Json]] = []
        self._metas = TensorMetas(self.expressions)

    def write_custom(self, graph: ProgramGraph, node: Node) -> bool:
        """Writes a call that the user has a symbolic for; false where there is none."""
        target: Any = node.target
        opset = self._options.opset
        if target not in self._symbolics:
            is_operator = isinstance(target, torch._ops.OpOverload)
            self._symbolics[target] = find_symbolic(target._schema.name, opset) if is_operator else None
        symbolic = self._symbolics[target]
        if symbolic is not None:
            write_operator(graph, node, symbolic, opset)
        elif target in self._options.functions:
            write_function(graph, node, self._options.functions[target], opset)
        elif isinstance(target, torch._ops.OpOverload) and name_of(target) in self._options.as_they_are:
            write_as_it_is(graph, node, self._options.form, opset)
        else:
            return False
        return True

    def alias(self, node: Node, first: Node) -> None:
        """Makes a second getitem of an element the same value as the first one."""
        if node is not first:
            self.aliases[node] = first

    def json(self, extra: Mapping[str, Json]) -> Json:
        exported = self.exported
        graph = ProgramGraph(self, exported.graph_module).json()
        input_specs = [self._input_spec(s) for s in exported.graph_signature.input_specs]
        specs = zip(exported.graph_signature.output_specs, graph["outputs"])
        output_specs = [self._output_spec(spec, argument) for spec, argument in specs]
        for argument, spec in self.lifted:
            graph["inputs"].insert(0, argument)
            input_specs.insert(0, spec)
        return {
            "graph_module": {
                "graph": graph,
                "signature": {"input_specs": input_specs, "output_specs": output_specs},
                "module_call_graph": [],
                "metadata": {},
                "treespec_namedtuple_fields": {},
            },
            "opset_version": {"aten": torch._C._get_max_operator_version()},
            "range_constraints": {str(s): _range_json(r) for s, r in exported.range_constraints.items()},
            "schema_version": {"major": 8, "minor": 20},
            "verifiers": [v.dialect for v in exported.verifiers],
            "torch_version": torch.__version__,
            "guards_code": [],
            "weights": self.weights,
            "constants": self.constants,
            "tonnx": extra,
        }

    def tensor_meta(self, tensor: torch.Tensor) -> Json:
        return self._metas.json(tensor)

    def metadata(self, node: Node) -> Json:
        result = {}
        trace = node.meta.get("stack_trace")
        if trace and self._paths is not None:
            result["stack_trace"] = self._paths.shortened(trace)
        stack = node.meta.get("nn_module_stack")
        if stack:
            result["nn_module_stack"] = ";".join(f"{key},{path},{kind}" for key, (path, kind) in stack.items())
        return result

    def add_constant(self, name: str, tensor: torch.Tensor) -> None:
        self.constants[name] = self._payload(name, tensor, False)

    def lift(self, graph: ProgramGraph, node: Node, tensor: torch.Tensor) -> Json:
        """Makes a tensor attribute of the graph a constant input, as torch.export does with most."""
        if graph.module is not self.exported.graph_module:
            raise Error(
                f"the tensor '{node.target}' is made inside a branch or body; make it outside and pass it in",
                "unsupported",
            )
        name = str(node.target)
        self.add_constant(name, tensor)
        argument = graph.define(node.name, tensor)
        spec = {"tensor_constant": {"arg": {"name": node.name}, "tensor_constant_name": name}}
        self.lifted.append((argument, spec))
        return argument

    def _payload(self, name: str, tensor: torch.Tensor, is_param: bool) -> Json:
        key, view = self.storages.add(tensor, name)
        meta = self.tensor_meta(view)
        meta["requires_grad"] = tensor.requires_grad
        return {"path_name": key, "is_param": is_param, "use_pickle": False, "tensor_meta": meta}

    def _input_spec(self, spec: InputSpec) -> Json:
        kind, argument, target = spec.kind, spec.arg, spec.target
        if kind is InputKind.USER_INPUT:
            if isinstance(argument, ConstantArgument):
                value = _constant_json(argument.value)
                return {"constant_input": {"name": argument.name, "value": value}}
            return {"user_input": {"arg": _argument_spec(argument)}}
        name = {"name": argument.name}
        if kind is InputKind.TOKEN:
            return {"token": {"arg": name}}
        if kind is InputKind.CUSTOM_OBJ:
            raise Error(f"the object '{target}' is of a C++ class, which ONNX has no type for", "unsupported")
        assert target is not None
        chosen = self._chosen(target)
        if kind is InputKind.PARAMETER:
            self.weights[chosen] = self._payload(chosen, self.exported.state_dict[target], True)
            return {"parameter": {"arg": name, "parameter_name": chosen}}
        if kind is InputKind.BUFFER:
            self._add_buffer(target, bool(spec.persistent))
            return {"buffer": {"arg": name, "buffer_name": chosen, "persistent": spec.persistent}}
        self.add_constant(target, self.exported.constants[target])
        return {"tensor_constant": {"arg": name, "tensor_constant_name": target}}

    def _add_buffer(self, target: str, persistent: bool) -> None:
        state, constants = self.exported.state_dict, self.exported.constants
        chosen = self._chosen(target)
        if persistent or target not in constants:
            self.weights[chosen] = self._payload(chosen, state[target], False)
        else:
            self.add_constant(chosen, constants[target])

    def _chosen(self, target: str) -> str:
        return self._options.weight_names.get(target, target)

    def _output_spec(self, spec: OutputSpec, argument: Json) -> Json:
        """`argument` is from the graph: the signature may name another value that is equal."""
        kind = spec.kind
        if kind is OutputKind.USER_OUTPUT:
            return {"user_output": {"arg": argument}}
        name = argument["as_tensor"]
        key = _MUTATIONS.get(kind)
        if key is not None:
            return {key[0]: {"arg": name, key[1]: self._chosen(str(spec.target))}}
        if kind is OutputKind.TOKEN:
            return {"token": {"arg": name}}
        if kind is OutputKind.LOSS_OUTPUT:
            return {"loss_output": {"arg": name}}
        raise Error(f"an exported program whose outputs are gradients ({kind.name.lower()})", "unsupported")


_MUTATIONS = {
    OutputKind.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
    OutputKind.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name"),
}
if hasattr(OutputKind, "PARAMETER_MUTATION"):
    _MUTATIONS[OutputKind.PARAMETER_MUTATION] = ("parameter_mutation", "parameter_name")


def _constant_json(value: Any) -> Json:
    simple = SIMPLE_ARGUMENTS.get(type(value))
    return simple(value) if simple is not None else {"as_string": str(value)}


def _argument_spec(argument: Any) -> Json:
    name = argument.name
    if isinstance(argument, SymIntArgument):
        return {"as_sym_int": {"as_name": name}}
    if isinstance(argument, SymFloatArgument):
        return {"as_sym_float": {"as_name": name}}
    if isinstance(argument, SymBoolArgument):
        return {"as_sym_bool": {"as_name": name}}
    if isinstance(argument, CustomObjArgument):
        return {"as_custom_obj": {"name": name, "class_fqn": argument.class_fqn}}
    return {"as_tensor": {"name": name}}


def _range_json(bounds: Any) -> Json:
    def bound(value: Any, round_to: Callable[[Any], int]) -> int | None:
        if value.is_infinite or not value.is_number or abs(value) >= 2**63 - 1:
            return None
        return int(round_to(value))

    return {"min_val": bound(bounds.lower, math.ceil), "max_val": bound(bounds.upper, math.floor)}


def program_json(
    exported: torch.export.ExportedProgram,
    extra: Mapping[str, Json] | None = None,
    options: ProgramOptions | None = None,
) -> tuple[bytes, dict[str, Storage]]:
    """The arguments of `_core.Program.read`: the JSON, and the storages by their keys."""
    program = Program(exported, options or ProgramOptions())
    text = json.dumps(program.json(extra or {}), separators=(",", ":"), allow_nan=False)
    return text.encode(), program.storages.entries

"""Symbolics: functions of the user's own that say how an operator is written in ONNX, as torch.onnx takes them."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from tonnx._error import Error, nearest
from tonnx._export.functions import FunctionCall, TensorArgument
from tonnx._export.program_values import DTYPE_CODES, Json, float_json, is_tensor_list

if TYPE_CHECKING:
    from tonnx._export.program_graph import ProgramGraph

Symbolic = Callable[..., Any]

_symbolics: dict[str, dict[int, Symbolic]] = {}


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Symbolic, opset_version: int) -> None:
    """Registers how an operator is written in ONNX, from the given opset on; it goes before tonnx's own conversion.

    `symbolic_name` is "namespace::operator". `symbolic_fn(g, *inputs)` gets a value for each argument of the operator,
    and returns what `g.op("domain::Op", x, alpha_f=1.0)` gives; `torch.onnx.symbolic_helper.parse_args` works on it.
    """
    if not re.fullmatch(r"[a-zA-Z0-9_]+::[a-zA-Z0-9_.]+", symbolic_name):
        raise ValueError(f"'{symbolic_name}' is not the name of an operator: it has the form namespace::operator")
    namespace, _, operator = symbolic_name.partition("::")
    if namespace == "aten" and not torch._C._jit_get_schemas_for_operator(symbolic_name):
        known = [
            n.partition("::")[2].partition(".")[0] for n in torch._C._dispatch_get_all_op_names() if n[:6] == "aten::"
        ]
        there = nearest(operator, dict.fromkeys(known))
        raise ValueError(f"there is no operator {symbolic_name}; there are: {there}")
    if not callable(symbolic_fn):
        raise TypeError(f"the symbolic of {symbolic_name} is a function, not {type(symbolic_fn).__name__}")
    _symbolics.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back what register_custom_op_symbolic did."""
    versions = _symbolics.get(symbolic_name, {})
    if opset_version not in versions:
        raise ValueError(f"no symbolic of {symbolic_name} is registered for opset {opset_version}")
    del versions[opset_version]


def _of_torch(name: str) -> dict[int, Symbolic]:
    """What the user registered with torch.onnx; torch's own symbolics are not asked."""
    for path in ("torch.onnx._internal.torchscript_exporter.registration", "torch.onnx._internal.registration"):
        registration = sys.modules.get(path)
        if registration is not None:
            group = registration.registry.get_function_group(name)
            return dict(group._functions._overrides) if group is not None else {}
    return {}


def find_symbolic(name: str, opset: int) -> Symbolic | None:
    """The newest symbolic of the operator that the opset allows."""
    for versions in (_symbolics.get(name, {}), _of_torch(name)):
        allowed = [v for v in versions if v <= opset]
        if allowed:
            return versions[max(allowed)]
    return None


def _exporter_module(name: str) -> Any:
    """A module of torch's old exporter, which has moved from version to version."""
    for package in ("torch.onnx._internal.torchscript_exporter", "torch.onnx._internal", "torch.onnx"):
        try:
            return importlib.import_module(f"{package}.{name}")
        except ImportError:
            continue
    raise Error(f"this version of torch has no {name} of torch.onnx, which symbolics need", "unsupported")


@contextmanager
def _torch_globals(opset: int) -> Iterator[None]:
    """symbolic_helper asks torch.onnx for the opset that is being written."""
    exporter_globals = _exporter_module("_globals").GLOBALS
    before = exporter_globals._export_onnx_opset_version
    exporter_globals._export_onnx_opset_version = opset
    try:
        yield
    finally:
        exporter_globals._export_onnx_opset_version = before


def write_operator(graph: ProgramGraph, node: Node, symbolic: Symbolic, opset: int) -> None:
    """Writes the nodes that a symbolic gives for a call of an operator."""
    target: Any = node.target
    call = _SymbolicCall(graph, node, opset, str(target._schema.name))
    values = []
    for i, argument in enumerate(target._schema.arguments):
        if argument.name in node.kwargs:
            value = node.kwargs[argument.name]
        elif i < len(node.args) and not argument.kwarg_only:
            value = node.args[i]
        else:
            value = argument.default_value
        values.append(call.list_of([]) if value == [] and is_tensor_list(argument.type) else call.value_of(value))
    call.write(symbolic, values)


def write_function(graph: ProgramGraph, node: Node, function: FunctionCall, opset: int) -> None:
    """Writes the nodes that the symbolic of an autograd.Function gives; what is no tensor is passed as it is."""
    call = _SymbolicCall(graph, node, opset, function.title)
    tensors = [call.value_of(a) for a in node.args]
    filled = [tensors[a.index] if isinstance(a, TensorArgument) else a for a in function.arguments]
    call.write(function.symbolic, filled)


class _SymbolicCall:
    """One call of a symbolic: the graph of torch that it writes into, and the way of its nodes into the program."""

    def __init__(self, graph: ProgramGraph, node: Node, opset: int, title: str) -> None:
        self.graph = graph
        self.node = node
        self.opset = opset
        self.title = title
        self.torch_graph: Any = torch._C.Graph()
        context_type = _exporter_module("jit_utils").GraphContext
        self.context = context_type(self.torch_graph, self.torch_graph, opset, None, {}, {}, set())
        self.arguments: dict[str, Json] = {}

    def write(self, symbolic: Symbolic, arguments: Sequence[Any]) -> None:
        with _torch_globals(self.opset):
            try:
                result = symbolic(self.context, *arguments)
            except Error:
                raise
            except Exception as e:
                raise Error(f"the symbolic of {self.title} failed: {type(e).__name__}: {e}", "unsupported") from e
        results = list(result) if isinstance(result, list | tuple) else [result]
        outputs = self.graph.outputs_of(self.node)
        values = [o for o in _flat_outputs(outputs) if o is not None]
        if len(results) != len(values) or not all(isinstance(r, torch._C.Value) for r in results):
            raise Error(
                f"the symbolic of {self.title} gives {len(results)} values, but the operator returns {len(values)}",
                "unsupported",
            )
        self._write_nodes(results, values)

    def value_of(self, argument: Any) -> Any:
        """An argument as the symbolic sees it: constants are Constant nodes, which parse_args reads."""
        if isinstance(argument, Node):
            return self._input(argument)
        if argument is None:
            return self.torch_graph.insertConstant(None)
        if isinstance(argument, list | tuple) and any(isinstance(a, Node) or a is None for a in argument):
            return self.list_of([self.value_of(a) for a in argument])
        if isinstance(argument, str | torch.device):
            return self.context.op("Constant", value_s=str(argument))
        if isinstance(argument, torch.dtype | torch.memory_format | torch.layout):
            return self.context.op("Constant", value_t=torch.tensor(_c10_number(argument)))
        if isinstance(argument, bool | int | float | list | tuple):
            empty = isinstance(argument, list | tuple) and not argument
            dtype = torch.int64 if empty else None
            return self.context.op("Constant", value_t=torch.tensor(argument, dtype=dtype))
        raise Error(f"the symbolic of {self.title} cannot be given a {type(argument).__name__}", "unsupported")

    def list_of(self, values: list[Any]) -> Any:
        return self.torch_graph.insertNode(self.torch_graph.create("prim::ListConstruct", values, 1)).output()

    def _input(self, node: Node) -> Any:
        name = f"input_{len(self.arguments)}"
        value = self.torch_graph.addInput(name)
        meta = node.meta.get("val")
        argument = self.graph.argument(node)
        kind: Any = torch._C.TensorType.get()
        if isinstance(meta, torch.Tensor):
            sizes = [s if isinstance(s, int) else None for s in meta.shape]
            kind = kind.with_dtype(meta.dtype).with_sizes(sizes)
        else:
            argument = self._as_tensor(argument, node)
            kind = kind.with_dtype(torch.int64 if isinstance(meta, torch.SymInt) else torch.float32).with_sizes([])
        value.setType(kind)
        self.arguments[name] = argument
        return value

    def _as_tensor(self, argument: Json, node: Node) -> Json:
        """A size as the tensor of rank 0 that ONNX knows instead."""
        name = self._fresh_name()
        meta = node.meta["val"]
        dtype = torch.int64 if isinstance(meta, torch.SymInt) else torch.float32
        output = self.graph.define(name, torch.empty((), dtype=dtype, device="meta"))
        inputs = [
            {"name": "s", "arg": argument, "kind": 1},
            {"name": "dtype", "arg": {"as_scalar_type": DTYPE_CODES[dtype]}, "kind": 2},
        ]
        self.graph.add_node("torch.ops.aten.scalar_tensor.default", name, inputs, [output], self.node)
        return output

    def _fresh_name(self) -> str:
        self.graph.symbolic_values += 1
        return f"{self.node.name}_symbolic_{self.graph.symbolic_values}"

    def _write_nodes(self, results: Sequence[Any], values: Sequence[Json]) -> None:
        names: dict[str, Json] = {}
        copies = []
        for result, value in zip(results, values):
            name = result.debugName()
            if name in names or name in self.arguments:
                copies.append((name, value))
            else:
                names[name] = value
        for torch_node in _needed_nodes(results):
            self._write_node(torch_node, names)
        for name, value in copies:
            source = names.get(name) or self.arguments[name]
            self._add("Identity", [source], {}, [value])

    def _write_node(self, torch_node: Any, names: dict[str, Json]) -> None:
        kind = torch_node.kind()
        if torch_node.mustBeNone():
            self.arguments[torch_node.output().debugName()] = {"as_none": True}
            return
        domain, op = kind.split("::", 1)
        if domain in ("prim", "aten") or list(torch_node.blocks()):
            raise Error(f"the symbolic of {self.title} writes {kind}, which is no operator of ONNX", "unsupported")
        inputs = [self.arguments[i.debugName()] for i in torch_node.inputs()]
        attributes = dict(self._attribute(torch_node, a, op) for a in torch_node.attributeNames())
        outputs = []
        for output in torch_node.outputs():
            name = output.debugName()
            value = names.get(name) or self._define_intermediate(output)
            self.arguments[name] = value
            outputs.append(value)
        self._add(op if domain == "onnx" else f"{domain}::{op}", inputs, attributes, outputs)

    def _add(self, op: str, inputs: list[Json], attributes: Json, outputs: list[Json]) -> None:
        arguments = [
            {"name": "op", "arg": {"as_string": op}, "kind": 1},
            {"name": "inputs", "arg": {"as_optional_tensors": inputs}, "kind": 1},
            {"name": "attributes", "arg": {"as_string": json.dumps(attributes)}, "kind": 1},
        ]
        self.graph.add_node("tonnx.onnx_op", self._fresh_name(), arguments, outputs, self.node)

    def _define_intermediate(self, output: Any) -> Json:
        name = self._fresh_name()
        kind = output.type()
        sizes: Any = kind.varyingSizes() if isinstance(kind, torch._C.TensorType) else None
        dtype = kind.dtype() if sizes is not None else None
        if sizes is None or dtype is None or None in sizes:
            return {"as_tensor": {"name": name}}  # the core infers what torch does not know
        return self.graph.define(name, torch.empty(sizes, dtype=dtype, device="meta"))

    def _attribute(self, torch_node: Any, name: str, op: str) -> tuple[str, Json]:
        kind = torch_node.kindOf(name)
        value = getattr(torch_node, kind)(name)
        if kind == "t":
            constant = f"{self._fresh_name()}.{name}"
            self.graph.program.add_constant(constant, value)
            return name, {"kind": "t", "value": constant}
        if kind == "f":
            return name, {"kind": "f", "value": float_json(value)}
        if kind == "fs":
            return name, {"kind": "fs", "value": [float_json(v) for v in value]}
        if kind in ("i", "s", "is", "ss"):
            if op == "Constant" and name == "value":
                name = {"i": "value_int", "s": "value_string", "is": "value_ints", "ss": "value_strings"}[kind]
            return name, {"kind": kind, "value": value}
        raise Error(f"the symbolic of {self.title} gives '{name}' as a graph, which tonnx does not take", "unsupported")


def _flat_outputs(outputs: Sequence[Json]) -> list[Json]:
    result: list[Json] = []
    for output in outputs:
        if "as_tensors" in output:
            result += [{"as_tensor": t} for t in output["as_tensors"]]
        else:
            result.append(None if "as_none" in output else output)
    return result


def _needed_nodes(results: Sequence[Any]) -> list[Any]:
    """The nodes that the results come from, each after what it uses; the arguments that nobody uses are left out."""
    ordered: list[Any] = []
    seen: set[str] = set()

    def visit(value: Any) -> None:
        node = value.node()
        if node.kind() == "prim::Param" or value.debugName() in seen:
            return
        seen.update(o.debugName() for o in node.outputs())
        for used in node.inputs():
            visit(used)
        ordered.append(node)

    for result in results:
        visit(result)
    return ordered


def _c10_number(value: Any) -> int:
    if isinstance(value, torch.dtype):
        return int(_exporter_module("_type_utils").JitScalarType.from_dtype(value))
    if isinstance(value, torch.memory_format):
        order = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]
        return order.index(value)
    return 0

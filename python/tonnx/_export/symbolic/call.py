"""Calls a symbolic with a graph of torch.onnx, and copies the nodes that it makes into the program."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from tonnx._error import Error
from tonnx._export.capture.autograd_functions import FunctionCall, TensorArgument
from tonnx._export.program.values import DTYPE_CODES, Json, float_json, is_tensor_list
from tonnx._export.symbolic.arguments import fitting, require_all_read
from tonnx._export.symbolic.former_attributes import former_attributes
from tonnx._export.symbolic.registry import PYTHON_OP, Symbolic, find_symbolic
from tonnx._replaced import replaced

if TYPE_CHECKING:
    from tonnx._export.program.graph import ProgramGraph


def _exporter_module(name: str) -> Any:
    """A module of torch's old exporter, which has moved between versions."""
    for package in ("torch.onnx._internal.torchscript_exporter", "torch.onnx._internal", "torch.onnx"):
        try:
            return importlib.import_module(f"{package}.{name}")
        except ImportError:
            continue
    raise Error(f"this version of torch has no {name} of torch.onnx, which symbolics need", "unsupported")


@contextmanager
def _torch_globals(opset: int) -> Iterator[None]:
    """Inside, symbolic_helper finds the opset in torch.onnx, and the values of constants in the graph."""
    scalar: Any = _exporter_module("symbolic_helper")._scalar
    before = scalar.__code__
    scalar.__code__ = _scalar.__code__  # not the attribute of the module: symbolics import the function itself
    try:
        with replaced(_exporter_module("_globals").GLOBALS, "_export_onnx_opset_version", opset):
            yield
    finally:
        scalar.__code__ = before


def _scalar(x: Any) -> Any:
    """The number of a tensor or a constant node; torch's own returns None for nodes and loses the attribute."""
    if isinstance(x, torch._C.Value) and x.node().kind() == "onnx::Constant":
        x = x.node().t("value") if x.node().hasAttribute("value") else None
        return x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else None
    return x.item() if isinstance(x, torch.Tensor) and x.shape == () else None


def write_operator(graph: ProgramGraph, node: Node, symbolic: Symbolic, opset: int) -> None:
    """Writes a call of an operator as the nodes that the symbolic makes."""
    target: Any = node.target
    call = SymbolicCall(graph, node, opset, str(target._schema.name))
    given = fitting(symbolic, target._schema, [value for _, value in arguments_of(node)], call.title)
    kinds = [argument.type for argument in target._schema.arguments]

    def values_for(call: SymbolicCall, arguments: Sequence[Any]) -> list[Any]:
        return [
            call.list_of([]) if value == [] and is_tensor_list(kind) else call.value_of(value)
            for kind, value in zip(kinds, arguments)
        ]

    def nodes_for(arguments: Sequence[Any]) -> str:
        trial = SymbolicTrial(graph, node, opset, call.title)
        return trial.text(symbolic, values_for(trial, arguments))

    require_all_read(symbolic, target._schema, given, call.title, nodes_for)
    call.write(symbolic, values_for(call, given))


def arguments_of(node: Node) -> list[tuple[str, Any]]:
    """All arguments of a call of an operator by name, including defaults."""
    target: Any = node.target
    found = []
    for i, argument in enumerate(target._schema.arguments):
        if argument.name in node.kwargs:
            value = node.kwargs[argument.name]
        elif i < len(node.args) and not argument.kwarg_only:
            value = node.args[i]
        else:
            value = argument.default_value
        found.append((argument.name, value))
    return found


def write_function(graph: ProgramGraph, node: Node, function: FunctionCall, opset: int) -> None:
    """Writes a call of an autograd.Function as the nodes that its symbolic makes."""
    call = SymbolicCall(graph, node, opset, function.title)
    tensors = [call.value_of(a) for a in node.args]
    filled = [tensors[a.index] if isinstance(a, TensorArgument) else a for a in function.arguments]
    if function.symbolic is not None:
        call.write(function.symbolic, filled)
        return
    symbolic = find_symbolic(PYTHON_OP, opset)
    assert symbolic is not None
    original = call.original(function.name, tensors)
    if not call.write(lambda g, *args: symbolic(g, original, *args, name=function.name), filled, may_decline=True):
        raise Declined(function.function)


class Declined(Exception):
    """The symbolic "::prim_PythonOp" returned None for a Function, which is then traced like other code."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.function = function


class SymbolicCall:
    """One call of a symbolic."""

    def __init__(self, graph: ProgramGraph, node: Node, opset: int, title: str) -> None:
        self.graph = graph
        self.node = node
        self.opset = opset
        self.title = title
        self.torch_graph: Any = torch._C.Graph()
        context_type = _exporter_module("jit_utils").GraphContext
        self.context = context_type(self.torch_graph, self.torch_graph, opset, None, {}, {}, set())
        self.arguments: dict[str, Json] = {}

    def write(self, symbolic: Symbolic, arguments: Sequence[Any], *, may_decline: bool = False) -> bool:
        """Writes the nodes of the symbolic; false where it returns None and `may_decline`."""
        with _torch_globals(self.opset):
            try:
                result = self._called(symbolic, arguments)
            except Error:
                raise
            except Exception as e:
                raise Error(self._failure(e), "unsupported") from e
        if result is None and may_decline:
            return False
        results = list(result) if isinstance(result, list | tuple) else [result]
        values = self.outputs()
        if len(results) != len(values) or not all(isinstance(r, torch._C.Value) for r in results):
            raise Error(
                f"the symbolic of {self.title} gives {len(results)} values, but the operator returns {len(values)}",
                "unsupported",
            )
        self._write_nodes(results, values)
        return True

    def _called(self, symbolic: Symbolic, arguments: Sequence[Any]) -> Any:
        try:
            return symbolic(self.context, *arguments)
        except (IndexError, RuntimeError) as e:
            if "_M_range_check" not in str(e):
                raise
        # torch cannot infer shapes of nodes in the form of older opsets; the core can
        with replaced(_exporter_module("_globals").GLOBALS, "onnx_shape_inference", False):
            return symbolic(self.context, *arguments)

    def _failure(self, problem: Exception) -> str:
        """The error about a symbolic that raised; most often it used a value of the graph as an attribute."""
        if not isinstance(problem, TypeError) or "incompatible function arguments" not in str(problem):
            return f"the symbolic of {self.title} failed: {type(problem).__name__}: {problem}"
        kinds = ", ".join(f'"{kind}"' for kind in _parse_kinds(self.node.target))
        return (
            f"the symbolic of {self.title} gives a value of the graph where an attribute wants a number: put "
            f"@torch.onnx.symbolic_helper.parse_args({kinds}) above it"
        )

    def outputs(self) -> list[Json]:
        """Defines the values that the call returns, without those that are None."""
        return [o for o in _flat_outputs(self.graph.outputs_of(self.node)) if o is not None]

    def original(self, name: str, inputs: Sequence[Any]) -> Any:
        """The call as a node of torch, for symbolics that read its inputs and outputs."""
        value = self.node.meta.get("val")
        values = list(value) if isinstance(value, list | tuple) else [value]
        made = self.torch_graph.create(f"python::{name}", list(inputs), len(values))
        for output, one in zip(made.outputs(), values):
            output.setType(_type_of(one))
        return made

    def value_of(self, argument: Any) -> Any:
        """An argument for the symbolic: constants become Constant nodes, which parse_args reads."""
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
        value.setType(_type_of(node.meta.get("val")))
        self.arguments[name] = self.operand(node)
        return value

    def operand(self, node: Node) -> Json:
        """A value of the program as an input of a node."""
        argument = self.graph.argument(node)
        return argument if isinstance(node.meta.get("val"), torch.Tensor) else self._as_tensor(argument, node)

    def _as_tensor(self, argument: Json, node: Node) -> Json:
        """A size as a tensor of rank 0, since ONNX has no sizes as values."""
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
            self.add("Identity", [source], {}, [value])

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
        if domain == "onnx":
            former = former_attributes(op, attributes, len(inputs), _dtype_of_first(torch_node))
            inputs += [{"as_none": True} if value is None else self._constant(value) for value in former]
        outputs = []
        for output in torch_node.outputs():
            name = output.debugName()
            value = names.get(name) or self._define_intermediate(output)
            self.arguments[name] = value
            outputs.append(value)
        self.add(op if domain == "onnx" else f"{domain}::{op}", inputs, attributes, outputs)

    def add(self, op: str, inputs: list[Json], attributes: Json, outputs: list[Json]) -> None:
        arguments = [
            {"name": "op", "arg": {"as_string": op}, "kind": 1},
            {"name": "inputs", "arg": {"as_optional_tensors": inputs}, "kind": 1},
            {"name": "attributes", "arg": {"as_string": json.dumps(attributes)}, "kind": 1},
        ]
        self.graph.add_node("tonnx.onnx_op", self._fresh_name(), arguments, outputs, self.node)

    def _constant(self, value: torch.Tensor) -> Json:
        name = self._fresh_name()
        self.graph.program.add_constant(f"{name}.value", value)
        output = self.graph.define(name, value)
        self.add("Constant", [], {"value": {"kind": "t", "value": f"{name}.value"}}, [output])
        return output

    def _define_intermediate(self, output: Any) -> Json:
        name = self._fresh_name()
        kind = output.type()
        sizes: Any = kind.varyingSizes() if isinstance(kind, torch._C.TensorType) else None
        try:
            dtype = kind.dtype() if sizes is not None else None
        except ValueError:  # a string
            dtype = None
        if sizes is None or dtype is None or None in sizes:
            return {"as_tensor": {"name": name}}  # the core infers its type
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


class SymbolicTrial(SymbolicCall):
    """A call of a symbolic whose nodes are not written."""

    def _input(self, node: Node) -> Any:
        value = self.torch_graph.addInput(f"input_{node.name}")
        value.setType(_type_of(node.meta.get("val")))
        return value

    def text(self, symbolic: Symbolic, arguments: Sequence[Any]) -> str:
        """The nodes that the results of the symbolic need."""
        with _torch_globals(self.opset):
            result = self._called(symbolic, arguments)
        results = list(result) if isinstance(result, list | tuple) else [result]
        needed = _needed_nodes(results)
        constants = [n.t("value").tolist() for n in needed if n.hasAttribute("value") and n.kindOf("value") == "t"]
        return repr(([str(n) for n in needed], constants, [r.debugName() for r in results]))


_PARSE_KINDS = {"int": "i", "bool": "b", "float": "f", "number": "f", "Scalar": "f", "str": "s", "int[]": "is"}


def _parse_kinds(target: Any) -> list[str]:
    """The letters that parse_args takes for the arguments of an operator."""
    arguments = target._schema.arguments if isinstance(target, torch._ops.OpOverload) else []
    kinds = [str(a.type).removeprefix("Optional[").rstrip("]?").replace("List[int", "int[]") for a in arguments]
    return [_PARSE_KINDS.get(kind, "v") for kind in kinds] or ["v", "f"]


def _type_of(meta: Any) -> Any:
    """The type of a value in torch.onnx."""
    kind: Any = torch._C.TensorType.get()
    if isinstance(meta, torch.Tensor):
        return kind.with_dtype(meta.dtype).with_sizes([s if isinstance(s, int) else None for s in meta.shape])
    return kind.with_dtype(torch.int64 if isinstance(meta, torch.SymInt) else torch.float32).with_sizes([])


def _dtype_of_first(torch_node: Any) -> torch.dtype:
    """The element type of a node's first input, if torch knows it; otherwise float32."""
    kind = next((i.type() for i in torch_node.inputs()), None)
    found = kind.dtype() if isinstance(kind, torch._C.TensorType) else None
    return found if isinstance(found, torch.dtype) else torch.float32


def _flat_outputs(outputs: Sequence[Json]) -> list[Json]:
    result: list[Json] = []
    for output in outputs:
        if "as_tensors" in output:
            result += [{"as_tensor": t} for t in output["as_tensors"]]
        else:
            result.append(None if "as_none" in output else output)
    return result


def _needed_nodes(results: Sequence[Any]) -> list[Any]:
    """The nodes that the results depend on, in topological order."""
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

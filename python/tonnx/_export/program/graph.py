"""A graph of an exported program in the schema of .pt2: nodes, arguments, branches and bodies."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.export.graph_signature import CustomObjArgument
from torch.fx import GraphModule, Node

from tonnx._error import Error
from tonnx._export.program.values import DTYPE_CODES, LAYOUT_CODES, Json, float_json, is_tensor_list

if TYPE_CHECKING:
    from tonnx._export.program.program import Program

_MEMORY_FORMATS = {
    torch.contiguous_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
    torch.preserve_format: 4,
}
_POSITIONAL, _KEYWORD = 1, 2
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class Signature:
    """The parts of an operator's schema that are needed, cached because torch is slow at reading it."""

    arguments: list[tuple[str, bool, Any]]
    returns: list[Any]
    returns_list: bool


_signatures: dict[Any, Signature] = {}


def signature_of(target: Any) -> Signature:
    found = _signatures.get(target)
    if found is None:
        schema = target._schema
        returns = [r.real_type for r in schema.returns]
        found = Signature(
            [(a.name, a.kwarg_only, a.type) for a in schema.arguments],
            returns,
            len(returns) == 1 and is_tensor_list(returns[0]),
        )
        _signatures[target] = found
    return found


_parameter_names: dict[Any, list[str]] = {}


def _names_of_parameters(function: Callable[..., Any], count: int) -> list[str]:
    names = _parameter_names.get(function)
    if names is None:
        try:
            names = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            names = []
        _parameter_names[function] = names
    return names if len(names) >= count else [*names, *(f"arg{i}" for i in range(len(names), count))]


def target_text(target: Any) -> str:
    module: str = target.__module__
    return f"{module.replace('torch._ops', 'torch.ops', 1)}.{target.__name__}"


class ProgramGraph:
    """Writes one graph of the program: the top one, a branch or a body."""

    def __init__(self, program: Program, module: GraphModule) -> None:
        self.program = program
        self.module = module
        self.inputs: list[Json] = []
        self.outputs: list[Json] = []
        self.nodes: list[Json] = []
        self.tensor_values: dict[str, Json] = {}
        self.sym_int_values: dict[str, Json] = {}
        self.sym_bool_values: dict[str, Json] = {}
        self.sym_float_values: dict[str, Json] = {}
        self.custom_obj_values: dict[str, Json] = {}
        self.single_tensor_return = False
        self.arguments: dict[Node, Json] = {}
        self.symbolic_values = 0

    def json(self) -> Json:
        for node in self.module.graph.nodes:
            if node.op == "call_function":
                if node.target is not operator.getitem:
                    self._call(node)
            elif node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "output":
                self._output(node)
            elif node.op != "get_attr":
                raise Error(f"node '{node.name}' is a {node.op}, which an exported program cannot have", "unsupported")
        return {
            "inputs": self.inputs,
            "outputs": self.outputs,
            "nodes": self.nodes,
            "tensor_values": self.tensor_values,
            "sym_int_values": self.sym_int_values,
            "sym_bool_values": self.sym_bool_values,
            "is_single_tensor_return": self.single_tensor_return,
            "custom_obj_values": self.custom_obj_values,
            "sym_float_values": self.sym_float_values,
        }

    def _placeholder(self, node: Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, (torch.Tensor, *_SYMBOLIC, CustomObjArgument)):
            argument = self.arguments[node] = self.define(node.name, value)
        else:
            argument = self.arguments[node] = self._constant_input(value)
        self.inputs.append(argument)

    def _constant_input(self, value: Any) -> Json:
        try:
            return self.argument(value)
        except Error:  # no node uses such a value: any text will do
            return {"as_string": str(value)}

    def _output(self, node: Node) -> None:
        result = node.args[0]
        self.single_tensor_return = isinstance(result, Node)
        elements = [result] if isinstance(result, Node) else result
        self.outputs = [self.argument(a) for a in elements]  # type: ignore[union-attr]

    def _call(self, node: Node) -> None:
        if self.program.write_custom(self, node):
            return
        target: Any = node.target
        value = node.meta.get("val")
        single = None
        if isinstance(target, torch._ops.OpOverload):
            inputs = self._named_inputs(node, signature_of(target))
        elif isinstance(value, (int, float, *_SYMBOLIC)):
            names = _names_of_parameters(target, len(node.args))
            inputs = [{"name": n, "arg": self.argument(a), "kind": _POSITIONAL} for n, a in zip(names, node.args)]
        else:
            inputs = self._unnamed_inputs(node)
            if isinstance(target, torch._ops.HigherOrderOperator):
                single = isinstance(value, torch.Tensor)
        self.add_node(target_text(target), node.name, inputs, self.outputs_of(node), node, single)

    def add_node(
        self,
        target: str,
        name: str,
        inputs: list[Json],
        outputs: list[Json],
        origin: Node,
        is_hop_single_tensor_return: bool | None = None,
    ) -> None:
        self.nodes.append(
            {
                "target": target,
                "inputs": inputs,
                "outputs": outputs,
                "metadata": self.program.metadata(origin),
                "is_hop_single_tensor_return": is_hop_single_tensor_return,
                "name": name,
            }
        )

    def outputs_of(self, node: Node) -> list[Json]:
        """Defines the values that the node returns."""
        value = node.meta.get("val")
        if isinstance(node.target, torch._ops.OpOverload):
            return self._outputs_of_operator(node, signature_of(node.target), value)
        return self._outputs_of_call(node, value)

    def _named_inputs(self, node: Node, signature: Signature) -> list[Json]:
        args, kwargs = node.args, node.kwargs
        result = []
        for i, (name, keyword_only, kind) in enumerate(signature.arguments):
            if name in kwargs:
                result.append({"name": name, "arg": self.argument(kwargs[name], kind), "kind": _KEYWORD})
            elif i < len(args) and not keyword_only:
                result.append({"name": name, "arg": self.argument(args[i], kind), "kind": _POSITIONAL})
        return result

    def _unnamed_inputs(self, node: Node) -> list[Json]:
        result = [{"name": "", "arg": self.argument(a), "kind": _POSITIONAL} for a in node.args]
        result += [{"name": k, "arg": self.argument(a), "kind": _KEYWORD} for k, a in node.kwargs.items()]
        return result

    def _element_names(self, node: Node, user_of: dict[Any, Node] | None = None) -> Callable[[Any], str]:
        """The name of each element of the result: that of the getitem that selects it."""
        elements: dict[Any, Node] = {}
        for user in node.users:
            if user.target is not operator.getitem:
                raise Error(f"'{node.name}' returns several values, and '{user.name}' uses them as one", "unsupported")
            first = elements.setdefault(user.args[1], user)
            self.program.alias(user, first)
        if user_of is not None:
            user_of.update(elements)
        return lambda index: elements[index].name if index in elements else f"{node.name}_unused_{index}"

    def _outputs_of_operator(self, node: Node, signature: Signature, value: Any) -> list[Json]:
        if not signature.returns:
            return []
        if signature.returns_list:
            return [self._list_output(node, value)]
        if len(signature.returns) == 1 and not isinstance(value, tuple | list):
            return [self._define_node(node, value)]
        return self._outputs_of_call(node, tuple(value))

    def _outputs_of_call(self, node: Node, value: Any) -> list[Json]:
        if isinstance(value, dict):
            name_of = self._element_names(node)
            return [{"as_tensors": [self.define(name_of(k), v)["as_tensor"] for k, v in value.items()]}]
        if not isinstance(value, tuple | list):
            return [self._define_node(node, value)]
        users: dict[Any, Node] = {}
        name_of = self._element_names(node, users)
        result = []
        for i, element in enumerate(value):
            if isinstance(element, tuple | list):
                result.append(self._nested_list_output(node, i, users.get(i), element))
            else:
                result.append(self.define(name_of(i), element))
                if i in users:
                    self.arguments[users[i]] = result[-1]
        return result

    def _list_output(self, node: Node, value: Sequence[Any]) -> Json:
        return {"as_tensors": [argument["as_tensor"] for argument in self._outputs_of_call(node, value)]}

    def _nested_list_output(self, node: Node, index: int, user: Node | None, value: Sequence[Any]) -> Json:
        if user is not None:
            return self._list_output(user, value)
        names = (f"{node.name}_unused_{index}_{j}" for j in range(len(value)))
        return {"as_tensors": [self.define(n, v)["as_tensor"] for n, v in zip(names, value)]}

    def _define_node(self, node: Node, value: Any) -> Json:
        argument = self.arguments[node] = self.define(node.name, value)
        return argument

    def define(self, name: str, value: Any) -> Json:
        """Defines a value of the graph; returns it as an argument."""
        if isinstance(value, torch.Tensor):
            self.tensor_values[name] = self.program.tensor_meta(value)
            return {"as_tensor": {"name": name}}
        expressions = self.program.expressions
        if isinstance(value, bool | torch.SymBool):
            self.sym_bool_values[name] = expressions.bool_json(value)
            return {"as_sym_bool": {"as_name": name}}
        if isinstance(value, int | torch.SymInt):
            self.sym_int_values[name] = expressions.int_json(value)
            return {"as_sym_int": {"as_name": name}}
        if isinstance(value, float | torch.SymFloat):
            self.sym_float_values[name] = expressions.float_json(value)
            return {"as_sym_float": {"as_name": name}}
        if value is None:
            return {"as_none": True}
        if isinstance(value, CustomObjArgument):
            self.custom_obj_values[name] = {"name": value.name, "class_fqn": value.class_fqn}
            return {"as_custom_obj": {"name": name, "class_fqn": value.class_fqn}}
        raise Error(f"'{name}' is a {type(value).__name__}, which ONNX has no type for", "unsupported")

    def argument(self, value: Any, kind: Any = None) -> Json:
        """An argument of a node, as the tagged union of the schema."""
        if isinstance(value, Node):
            return self._node_argument(value)
        simple = SIMPLE_ARGUMENTS.get(type(value))
        if simple is not None:
            return simple(value)
        if isinstance(value, list | tuple):
            return self._list_argument(value, kind)
        if isinstance(value, dict):
            return {"as_string_to_argument": {str(k): self.argument(v) for k, v in value.items()}}
        if isinstance(value, torch._ops.OpOverload | torch._ops.HigherOrderOperator):
            return {"as_operator": target_text(value)}
        for base in (bool, int, float, str):  # subclasses: enumerations, numpy's float64
            if isinstance(value, base):
                return SIMPLE_ARGUMENTS[base](base(value))
        raise Error(
            f"an argument of the type {type(value).__name__} has no place in an exported program", "unsupported"
        )

    def _node_argument(self, node: Node) -> Json:
        node = self.program.aliases.get(node, node)
        found = self.arguments.get(node)
        if found is not None:
            return found
        if node.op == "get_attr":
            attribute = operator.attrgetter(str(node.target))(self.module)
            if isinstance(attribute, GraphModule):
                graph = ProgramGraph(self.program, attribute).json()
                return {"as_graph": {"name": node.target, "graph": graph}}
            if isinstance(attribute, torch.Tensor):
                found = self.arguments[node] = self.program.lift(self, node, attribute)
                return found
            raise Error(f"'{node.target}' is a {type(attribute).__name__}, which ONNX has no type for", "unsupported")
        raise Error(f"'{node.name}' is used, and no node gives it", "internal")

    def _list_argument(self, values: Sequence[Any], kind: Any) -> Json:
        if not values:
            return {_empty_list_kind(kind): []}
        kinds = {type(v) for v in values}
        if len(kinds) == 1:
            (only,) = kinds
            if only in _LISTS:
                return {_LISTS[only]: [float_json(v) for v in values] if only is float else list(values)}
            if only is not Node and issubclass(only, list | tuple):
                return self._nested_list_argument(values)
        arguments = [self._node_argument(v) if isinstance(v, Node) else v for v in values]
        if all(isinstance(v, Node) for v in values) and all("as_tensor" in a for a in arguments):
            return {"as_tensors": [a["as_tensor"] for a in arguments]}
        return self._mixed_list_argument(values, arguments)

    def _mixed_list_argument(self, values: Sequence[Any], arguments: list[Any]) -> Json:
        forms = {next(iter(a)) if isinstance(v, Node) else type(v) for v, a in zip(values, arguments)}
        if forms <= {"as_tensor", "as_none", type(None)}:
            return {"as_optional_tensors": [a if a is not None else {"as_none": True} for a in arguments]}
        for form, plain, plain_type in _SYMBOLIC_LISTS:
            if forms <= {form, plain_type}:
                return {form + "s": [a[form] if isinstance(a, dict) else {plain: a} for a in arguments]}
        raise Error(
            f"a list of {', '.join(sorted(map(str, forms)))} has no place in an exported program", "unsupported"
        )

    def _nested_list_argument(self, values: Sequence[Sequence[Any]]) -> Json:
        if all(isinstance(v, Node) for inner in values for v in inner):
            return {"as_nested_tensors": [[self._node_argument(v)["as_tensor"] for v in inner] for inner in values]}
        if all(type(v) is int for inner in values for v in inner):
            return {"as_int_lists": [list(inner) for inner in values]}
        if all(isinstance(v, float) for inner in values for v in inner):
            return {"as_float_lists": [[float_json(v) for v in inner] for inner in values]}
        raise Error("a list of lists of several types has no place in an exported program", "unsupported")


SIMPLE_ARGUMENTS: dict[type, Callable[[Any], Json]] = {
    bool: lambda v: {"as_bool": v},
    int: lambda v: {"as_int": v},
    float: lambda v: {"as_float": float_json(v)},
    str: lambda v: {"as_string": v},
    type(None): lambda v: {"as_none": True},
    complex: lambda v: {"as_complex": {"real": float_json(v.real), "imag": float_json(v.imag)}},
    torch.dtype: lambda v: {"as_scalar_type": DTYPE_CODES[v]},
    torch.device: lambda v: {"as_device": {"type": v.type, "index": v.index}},
    torch.memory_format: lambda v: {"as_memory_format": _MEMORY_FORMATS[v]},
    torch.layout: lambda v: {"as_layout": LAYOUT_CODES[v]},
}
_LISTS = {bool: "as_bools", int: "as_ints", float: "as_floats", str: "as_strings"}
_SYMBOLIC_LISTS = (
    ("as_sym_int", "as_int", int),
    ("as_sym_float", "as_float", float),
    ("as_sym_bool", "as_bool", bool),
)


def _empty_list_kind(kind: Any) -> str:
    for _ in range(3):
        if not isinstance(kind, torch.OptionalType | torch.ListType):
            break
        kind = kind.getElementType()
    if isinstance(kind, torch.BoolType):
        return "as_bools"
    if isinstance(kind, torch.FloatType):
        return "as_floats"
    if isinstance(kind, torch.StringType):
        return "as_strings"
    if kind is None or isinstance(kind, torch.TensorType):
        return "as_tensors"
    return "as_ints"

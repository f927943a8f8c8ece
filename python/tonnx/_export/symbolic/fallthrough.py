"""Writes operators without a conversion as nodes of their own domain, or as ATen nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from tonnx._error import Error
from tonnx._export.program.values import Json, float_json
from tonnx._export.symbolic.call import SymbolicCall, arguments_of, write_operator

if TYPE_CHECKING:
    from tonnx._export.program.graph import ProgramGraph

ATEN = "org.pytorch.aten::ATen"  # torch.onnx's name for it


def write_as_it_is(graph: ProgramGraph, node: Node, form: str, opset: int) -> None:
    """The call as one node: "own" gives `library::operator`, "aten" the node that torch.onnx falls back to."""
    if form == "aten":
        write_operator(graph, node, _aten_symbolic(node), opset)
        return
    target: Any = node.target
    call = SymbolicCall(graph, node, opset, str(target._schema.name))
    inputs: list[Json] = []
    attributes: dict[str, Json] = {}
    for name, value in arguments_of(node):
        found = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(v, Node) for v in found):
            inputs += [{"as_none": True} if v is None else call.operand(v) for v in found]
        elif value is not None:
            attributes[name] = _attribute(call.title, name, value)
    call.add(call.title, inputs, attributes, call.outputs())


def _aten_symbolic(node: Node) -> Any:
    target: Any = node.target
    namespace, _, name = str(target._schema.name).partition("::")
    value = node.meta.get("val")
    count = len(value) if isinstance(value, list | tuple) else 1

    def symbolic(g: Any, *values: Any) -> Any:
        flat: list[Any] = []
        for v in values:
            flat += list(v.node().inputs()) if v.node().kind() == "prim::ListConstruct" else [v]
        return g.op(
            ATEN,
            *flat,
            operator_s=name if namespace == "aten" else f"{namespace}::{name}",
            overload_name_s=target._schema.overload_name,
            outputs=count,
        )

    return symbolic


def _attribute(title: str, name: str, value: Any) -> Json:
    values = list(value) if isinstance(value, list | tuple) else [value]
    suffix = "s" if isinstance(value, list | tuple) else ""
    plain: list[Any]
    if all(isinstance(v, bool | int) for v in values):
        kind, plain = "i", [int(v) for v in values]
    elif all(isinstance(v, int | float) for v in values):
        kind, plain = "f", [float_json(float(v)) for v in values]
    elif all(isinstance(v, str | torch.device | torch.dtype | torch.layout | torch.memory_format) for v in values):
        kind, plain = "s", [str(v).removeprefix("torch.") for v in values]
    else:
        text = f"argument '{name}' of {title} is a {type(value).__name__}, which a node of ONNX cannot have"
        raise Error(text, "unsupported")
    return {"kind": kind + suffix, "value": plain if suffix else plain[0]}

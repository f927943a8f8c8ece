"""Symbolics that were registered here or with torch.onnx, by operator and opset."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import torch

from tonnx._arguments import checks_arguments
from tonnx._error import nearest

Symbolic = Callable[..., Any]

PYTHON_OP = "aten::prim_PythonOp"  # "::prim_PythonOp" in torch.onnx: all autograd.Functions

_symbolics: dict[str, dict[int, Symbolic]] = {}


def _whole_name(symbolic_name: str) -> str:
    """`::op` means `aten::op`, as in torch.onnx."""
    if symbolic_name == "prim::PythonOp":
        return PYTHON_OP
    return f"aten{symbolic_name}" if symbolic_name.startswith("::") else symbolic_name


@checks_arguments
def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Symbolic, opset_version: int) -> None:
    """Registers how an operator is written in ONNX, from the given opset on; it replaces tonnx's own conversion.

    `symbolic_name` is "namespace::operator". `symbolic_fn(g, *inputs)` gets a value for each argument of the operator,
    and returns what `g.op("domain::Op", x, alpha_f=1.0)` gives; `torch.onnx.symbolic_helper.parse_args` works on it.
    "::prim_PythonOp" stands for every autograd.Function: `symbolic_fn(g, node, *args, name=...)` gets the name of its
    class; where it returns None, the Function is traced like other code.
    """
    symbolic_name = _whole_name(symbolic_name)
    if not re.fullmatch(r"[a-zA-Z0-9_]+::[a-zA-Z0-9_.]+", symbolic_name):
        raise ValueError(f"'{symbolic_name}' is not the name of an operator: it has the form namespace::operator")
    namespace, _, operator = symbolic_name.partition("::")
    if namespace == "aten" and symbolic_name != PYTHON_OP and not torch._C._jit_get_schemas_for_operator(symbolic_name):
        known = [
            n.partition("::")[2].partition(".")[0] for n in torch._C._dispatch_get_all_op_names() if n[:6] == "aten::"
        ]
        there = nearest(operator, dict.fromkeys(known))
        raise ValueError(f"there is no operator {symbolic_name}; there are: {there}")
    if not callable(symbolic_fn):
        raise TypeError(f"the symbolic of {symbolic_name} is a function, not {type(symbolic_fn).__name__}")
    _symbolics.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Undoes register_custom_op_symbolic."""
    symbolic_name = _whole_name(symbolic_name)
    versions = _symbolics.get(symbolic_name, {})
    if opset_version not in versions:
        raise ValueError(f"no symbolic of {symbolic_name} is registered for opset {opset_version}")
    del versions[opset_version]


def _of_torch(name: str) -> dict[int, Symbolic]:
    """The symbolics that the user registered with torch.onnx, without torch's own."""
    for path in ("torch.onnx._internal.torchscript_exporter.registration", "torch.onnx._internal.registration"):
        registration = sys.modules.get(path)
        if registration is not None:
            group = registration.registry.get_function_group(name)
            return dict(group._functions._overrides) if group is not None else {}
    return {}


def find_symbolic(name: str, opset: int) -> Symbolic | None:
    """The symbolic of the operator with the highest opset up to this one."""
    for versions in (_symbolics.get(name, {}), _of_torch(name)):
        allowed = [v for v in versions if v <= opset]
        if allowed:
            return versions[max(allowed)]
    return None

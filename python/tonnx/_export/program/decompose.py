"""Decomposes operators without a conversion by PyTorch, only those; an error lists what is left."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from tonnx import _core

Decomposition = Callable[..., Any]
Way = tuple[Decomposition, bool]  # and whether composite operators inside it are kept


_ORIGIN = "decomposed_from"


def name_of(target: Any) -> str:
    """The core's name of an operator."""
    overload = "" if target._overloadname == "default" else f".{target._overloadname}"
    return f"{target._schema.name}{overload}"


def _operator_of(target: str) -> Any:
    """The operator `namespace::name.overload`, or None; the overload may be missing."""
    namespace, _, rest = target.partition("::")
    name, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace, None), name, None) if name else None
    found = getattr(packet, overload or "default", None)
    return found if isinstance(found, torch._ops.OpOverload) else None


def _ways_to_decompose(target: Any) -> list[Way]:
    """PyTorch's decompositions of the operator, the best one first."""
    from torch._decomp import core_aten_decompositions, decomposition_table

    tables = (core_aten_decompositions(), decomposition_table)
    ways: list[Way] = [(table[target], True) for table in tables if target in table]
    return [*ways, (target, False)] if target._can_decompose() else ways


def _in_place_form(target: Any) -> Any:
    """The in-place variant of an operator."""
    packet = getattr(getattr(torch.ops, target.namespace), f"{target._schema.name.split('::')[1]}_", None)
    return getattr(packet, target._overloadname, None)


def _written_back(decomposition: Decomposition) -> Decomposition:
    return lambda self, *args, **kwargs: self.copy_(decomposition(self, *args, **kwargs))


def decomposed(exported: torch.export.ExportedProgram, targets: Sequence[str]) -> torch.export.ExportedProgram | None:
    """The program with these operators decomposed; None where PyTorch has no decomposition of any of them."""
    chosen: dict[Any, list[Way]] = {}
    for target in filter(None, map(_operator_of, targets)):
        ways = _ways_to_decompose(target)
        if ways:
            chosen[target] = ways
            chosen[_in_place_form(target)] = [(_written_back(way), whole) for way, whole in ways]
    if not chosen:
        return None
    result = copy.copy(exported)  # the original may be the user's
    result._graph_module = copy.deepcopy(exported.graph_module)
    changed = False
    for module in _graph_modules(result.graph_module):
        for node in [n for n in module.graph.nodes if n.target in chosen]:
            changed = any(_replace(module, node, *way) for way in chosen[node.target]) or changed
    return result if changed else None


def _graph_modules(root: GraphModule) -> Iterator[GraphModule]:
    for module in root.modules():
        if isinstance(module, GraphModule):
            yield module


def _replace(module: GraphModule, node: Node, decomposition: Decomposition, whole: bool) -> bool:
    """Traces the decomposition on the types of the node's arguments, and replaces the node with the result."""
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Node)]
    nodes = [leaves[i] for i in places]

    def call(*values: Any) -> Any:
        filled = list(leaves)
        for place, value in zip(places, values):
            filled[place] = value
        args, kwargs = pytree.tree_unflatten(filled, structure)
        result = decomposition(*args, **kwargs)
        return tuple(result) if isinstance(result, tuple) else result  # a named tuple would be traced as a call

    values = [n.meta["val"] for n in nodes]
    try:
        traced = make_fx(call, tracing_mode="real", pre_dispatch=whole, _allow_non_fake_inputs=True)(*values)
    except Exception:  # the operator stays, and the error lists it
        return False
    targets = [n.target for n in traced.graph.nodes if isinstance(n.target, torch._ops.OpOverload)]
    if node.target in targets or any(t.namespace == "prims" for t in targets):
        return False
    _inline(module, node, traced, nodes)
    return True


def _inline(module: GraphModule, node: Node, traced: GraphModule, arguments: Sequence[Node]) -> None:
    graph = module.graph
    copies: dict[Node, Any] = {}
    given = iter(arguments)
    origin = {k: node.meta[k] for k in ("nn_module_stack", "stack_trace", _ORIGIN) if k in node.meta}
    origin.setdefault(_ORIGIN, name_of(node.target))
    result: Any = None
    with graph.inserting_before(node):
        for inner in traced.graph.nodes:
            if inner.op == "placeholder":
                copies[inner] = next(given)
            elif inner.op == "output":
                result = torch.fx.map_arg(inner.args[0], lambda n: copies[n])
            else:
                copies[inner] = graph.node_copy(inner, lambda n: copies[n])
                copies[inner].meta = {**inner.meta, **origin}
                if inner.op == "get_attr":
                    _copy_attribute(module, traced, copies[inner])
    _use_instead(node, result)
    graph.erase_node(node)


def _copy_attribute(module: GraphModule, traced: GraphModule, node: Node) -> None:
    value = operator.attrgetter(str(node.target))(traced)
    name, i = f"{str(node.target).replace('.', '_')}_0", 0
    while hasattr(module, name):
        name, i = f"{name.rsplit('_', 1)[0]}_{i + 1}", i + 1
    setattr(module, name, value)
    node.target = name
    node.meta.setdefault("val", value)


def _use_instead(node: Node, result: Any) -> None:
    if (
        isinstance(result, list | tuple)
        and len(result) == 1
        and any(u.target is not operator.getitem for u in node.users)
    ):
        (result,) = result
    if isinstance(result, Node):
        node.replace_all_uses_with(result)
        return
    for user in list(node.users):
        if user.target is operator.getitem and isinstance(result, list | tuple):
            user.replace_all_uses_with(result[user.args[1]])  # type: ignore[index]
            user.graph.erase_node(user)


def _origins(exported: torch.export.ExportedProgram) -> dict[str, set[str]]:
    """The operators of the model that each decomposed operator comes from."""
    result: dict[str, set[str]] = {}
    for module in _graph_modules(exported.graph_module):
        for node in module.graph.nodes:
            if _ORIGIN in node.meta and isinstance(node.target, torch._ops.OpOverload):
                result.setdefault(name_of(node.target), set()).add(node.meta[_ORIGIN])
    return result


def _line_to_copy(target: str) -> str:
    """The line that registers a symbolic for an operator, for the user to complete."""
    name = target.partition(".")[0]
    found = _operator_of(target)
    arguments = [argument.name for argument in found._schema.arguments] if found is not None else ["x"]
    tensors = [a.name for a in found._schema.arguments if "Tensor" in str(a.type)] if found is not None else ["x"]
    node = name if not name.startswith("aten::") else name.replace("aten", "my.domain", 1)
    call = ", ".join([f'"{node}"', *tensors])
    return f'tonnx.register_custom_op_symbolic("{name}", lambda {", ".join(["g", *arguments])}: g.op({call}), 9)'


def unsupported_text(
    rows: Sequence[tuple[str, int, Sequence[str], str]],
    exported: torch.export.ExportedProgram | None,
    program: _core.Program,
    opset: int,
) -> str:
    """The error that lists each operator without a conversion: how often it occurs, in which modules, and why."""
    for target, _, places, reason in rows:
        if not target:  # an unsupported use of an operator that has a conversion
            return "\n".join([reason, *(f"  {place}" for place in places)])
    origins = _origins(exported) if exported is not None else {}
    lines = []
    for target, count, paths, reason in rows:
        where = sorted({p or "the model itself" for p in paths})
        shown = ", ".join(where[:5]) + (f" and {len(where) - 5} more" if len(where) > 5 else "")
        times = "once" if count == 1 else f"{count} times"
        part = f" (of {', '.join(sorted(origins[target]))})" if target in origins else ""
        lines.append(f"  {target.removeprefix('::')}{part}: {times}, in {shown}{f': {reason}' if reason else ''}")
    if all(row[0].startswith("::") for row in rows):  # operators of ONNX itself
        enough = next((n for n in range(opset + 1, _core.newest_opset + 1) if not program.unsupported(n)), None)
        if enough is not None:
            lines.append(f"  opset_version={enough} has what it takes")
        return "\n".join([f"the model cannot be written with opset {opset}:", *lines])
    count = len(rows)
    title = "an operator has" if count == 1 else f"{count} operators have"
    advice = f"{_line_to_copy(rows[0][0])}  # or export(..., fallthrough=True)"
    return "\n".join([f"{title} no conversion to ONNX:", *lines, f"  {advice}"])

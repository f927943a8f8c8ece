"""Inlines subgraphs for given inputs, so that the nodes inside If and Loop can be compared like others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_NODES = 20_000  # the largest graph that is made
_TURNS = 2  # of a Loop that are inlined
_ROUNDS = 32  # for branches inside branches

Fetch = Callable[[Any, Sequence[str]], Mapping[str, "np.ndarray"]]


def body(node: Any, name: str) -> Any:
    return next(attribute.g for attribute in node.attribute if attribute.name == name)


def has_bodies(graph: Any) -> bool:
    return any(node.op_type in ("If", "Loop") for node in graph.node)


def opened(model: Any, fetch: Fetch) -> Any:
    """A copy of the model with each If replaced by the branch that is taken, and the first turns of each Loop added.

    `fetch` returns values of a model by name, for the inputs in question.
    """
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    looped: set[str] = set()  # Loops that are inlined already
    for _ in range(_ROUNDS):
        nodes = list(copy.graph.node)
        choices = [node for node in nodes if node.op_type == "If"]
        loops = [node for node in nodes if node.op_type == "Loop" and node.output[0] not in looped]
        if not choices and not loops or len(nodes) > _NODES:
            break
        looped.update(node.output[0] for node in loops)
        wanted = {node.input[0] for node in choices} | {name for node in loops for name in _trips(node)}
        values = fetch(copy, sorted(wanted))
        made: list[Any] = []
        opening = _Opening(copy.graph)
        for node in nodes:
            if node.op_type == "If" and node.input[0] in values:
                made += opening.branch(node, bool(values[node.input[0]].reshape(-1)[0]))
                continue
            if any(node is loop for loop in loops):
                made += opening.turns(node, _count(node, values))
            made.append(node)
        if len(made) == len(nodes) and all(a is b for a, b in zip(made, nodes)):
            break
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in made]
        del copy.graph.node[:]
        copy.graph.node.extend(kept)
    return copy


def _trips(node: Any) -> list[str]:
    """Values that tell how often a Loop runs."""
    carried = len(node.input) - 2
    scanned = [name for name in node.output[carried:] if name][:1]
    return scanned or [name for name in node.input[:1] if name]


def _count(node: Any, values: Mapping[str, np.ndarray]) -> int:
    carried = len(node.input) - 2
    for name in _trips(node):
        if name in values:
            value = values[name]
            count = value.shape[0] if name in node.output[carried:] else int(value.reshape(-1)[0])
            return min(count, _TURNS if name in node.output[carried:] else 1)
    return 0


class _Opening:
    """Copies nodes of subgraphs with new names."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._taken = {name for node in graph.node for name in node.output}
        self._taken |= {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}

    def _free(self, name: str) -> str:
        found, number = name, 1
        while found in self._taken:
            number += 1
            found = f"{name}~{number}"
        self._taken.add(found)
        return found

    def branch(self, node: Any, is_true: bool) -> list[Any]:
        inner = body(node, "then_branch" if is_true else "else_branch")
        made, names = self._copied(inner, {})
        return made + self._renamed([names.get(value.name, value.name) for value in inner.output], node.output)

    def turns(self, node: Any, count: int) -> list[Any]:
        import numpy as np
        from onnx import numpy_helper

        inner = body(node, "body")
        carried, made = list(node.input[2:]), []
        for turn in range(count):
            names = {}
            for value, constant in zip(inner.input[:2], (np.int64(turn), np.bool_(True))):
                names[value.name] = self._free(value.name)
                self._graph.initializer.append(numpy_helper.from_array(np.asarray(constant), names[value.name]))
            names.update(zip((value.name for value in inner.input[2:]), carried))
            copied, names = self._copied(inner, names)
            made += copied
            carried = [names.get(value.name, value.name) for value in inner.output[1 : 1 + len(carried)]]
        return made

    def _copied(self, inner: Any, names: Mapping[str, str]) -> tuple[list[Any], dict[str, str]]:
        import onnx

        known = dict(names)
        for tensor in inner.initializer:
            known[tensor.name] = self._free(tensor.name)
            self._graph.initializer.add().CopyFrom(tensor)
            self._graph.initializer[-1].name = known[tensor.name]
        made = []
        for node in inner.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            known.update((name, self._free(name)) for name in node.output if name)
            rename(copy, known)
            made.append(copy)
        return made, known

    @staticmethod
    def _renamed(inner: Sequence[str], outer: Sequence[str]) -> list[Any]:
        from onnx import helper

        return [helper.make_node("Identity", [a], [b]) for a, b in zip(inner, outer) if b]


def rename(node: Any, names: Mapping[str, str]) -> None:
    """Renames values, also in the subgraphs of the node."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    _rename_inside(node, names)


def _rename_inside(node: Any, names: Mapping[str, str]) -> None:
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else list(attribute.graphs):
            own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            own |= {name for inner in graph.node for name in inner.output}
            visible = {old: new for old, new in names.items() if old not in own}
            for inner in graph.node:
                inner.input[:] = [visible.get(name, name) for name in inner.input]
                _rename_inside(inner, visible)
            for value in graph.output:
                value.name = visible.get(value.name, value.name)

"""Names of inputs and outputs: the path of each tensor through tuples, dicts and other structures (`batch.pair.0`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from tonnx._error import Error


def _children(spec: Any) -> Sequence[Any]:
    children = getattr(spec, "children", None)
    found: Sequence[Any] = children() if callable(children) else spec.children_specs
    return found


def _is_name_list(value: object, length: int) -> bool:
    return isinstance(value, list | tuple) and len(value) == length and all(isinstance(v, str) for v in value)


def _child_names(spec: Any, count: int) -> list[str]:
    """The name of each child: its key, its field, or its position."""
    context = spec.context
    if hasattr(context, "_fields"):
        return list(context._fields)
    if isinstance(spec.type, type) and issubclass(spec.type, dict):
        keys = (
            context[1] if isinstance(context, list) and len(context) == 2 and isinstance(context[1], list) else context
        )
        if isinstance(keys, list | tuple) and len(keys) == count:
            return [str(k) for k in keys]
    if _is_name_list(context, count):
        return list(context)
    if isinstance(context, list | tuple) and context and _is_name_list(context[0], count):  # dataclasses, caches
        return list(context[0])
    return [str(i) for i in range(count)]


_CACHE_FIELDS = {"key_cache": "key", "value_cache": "value"}


def _cache_paths(fields: Sequence[str], children: Sequence[Any]) -> list[tuple[str, ...]]:
    """Names a cache of transformers, which holds a list of keys and a list of values, layer by layer."""
    return [(str(i), _CACHE_FIELDS[f]) for f, child in zip(fields, children) for i in range(len(_children(child)))]


def paths_of(spec: Any) -> list[tuple[str, ...]]:
    """The path of each leaf of a structure."""
    if spec.type is None:
        return [()]
    children = _children(spec)
    names = _child_names(spec, len(children))
    if names and set(names) == set(_CACHE_FIELDS):
        return _cache_paths(names, children)
    return [(name, *path) for name, child in zip(names, children) for path in paths_of(child)]


def paths_of_inputs(in_spec: Any, positional: Sequence[str] | None) -> list[tuple[str, ...]]:
    """The paths of the leaves of (args, kwargs), beginning with the names of parameters."""
    args, kwargs = _children(in_spec)
    arguments = _children(args)
    names = list(positional or [])[: len(arguments)]
    names += [f"input_{i}" for i in range(len(names), len(arguments))]
    result = [(name, *path) for name, child in zip(names, arguments) for path in paths_of(child)]
    return result + paths_of(kwargs)


def positional_names_of(exported: torch.export.ExportedProgram) -> list[str]:
    """The names of the parameters whose arguments were positional when the program was exported."""
    call = exported.module_call_graph[0].signature if exported.module_call_graph else None
    if call is None:
        return []
    args, _ = _children(call.in_spec)
    return list(call.forward_arg_names or [])[: len(_children(args))]


def unique(names: Iterable[str], taken: set[str]) -> list[str]:
    result = []
    for name in names:
        candidate, i = name, 1
        while candidate in taken:
            candidate, i = f"{name}_{i}", i + 1
        taken.add(candidate)
        result.append(candidate)
    return result


def _replaced(default: list[str], chosen: Sequence[str] | None, what: str) -> list[str]:
    if not chosen:
        return default
    if isinstance(chosen, str):
        raise TypeError(f"{what}_names is a list of names, not one string")
    if len(chosen) > len(default):
        there = ", ".join(default) or "none"
        kinds = "tensors" if what == "input" else "tensors or numbers"
        raise Error(
            f"{what}_names has {len(chosen)} names, but {len(default)} {what}s of the model are {kinds}: {there}",
            "unsupported",
        )
    _require_distinct(chosen, what)
    return [*chosen, *default[len(chosen) :]]


def _require_distinct(names: Sequence[str], what: str) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise Error(f"{what}_names has '{twice}' twice", "unsupported")


def chosen_inputs(own: list[str], input_names: Sequence[str] | None) -> list[str]:
    """The names of inputs: the user's, then the model's own."""
    return unique(_replaced(own, input_names, "input"), set())


def chosen_outputs(own: list[str], output_names: Sequence[str] | None, inputs: Sequence[str]) -> list[str]:
    """The names of outputs, which differ from those of the inputs."""
    taken = set(inputs)
    outputs = _replaced([_apart(name, taken) for name in own], output_names, "output")
    clash = next((name for name in output_names or () if name in taken), None)
    if clash is not None:
        raise Error(f"output_names has '{clash}', which is the name of an input", "unsupported")
    return unique(outputs, taken)


def _joined(path: tuple[str, ...], root: str) -> str:
    return ".".join(path) if path else root


@dataclass(frozen=True)
class Interface:
    """The model's own names of its inputs, and the names of inputs and outputs in ONNX."""

    own: list[str]
    inputs: list[str]
    outputs: list[str]


class InterfaceNames:
    """The names of inputs and outputs in ONNX: those of tensors, and those of all leaves for the core."""

    def __init__(
        self,
        exported: torch.export.ExportedProgram,
        input_names: Sequence[str] | None,
        output_names: Sequence[str] | None,
    ) -> None:
        signature = exported.graph_signature
        call = exported.module_call_graph[0].signature if exported.module_call_graph else None
        inputs = [s for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
        outputs = [s for s in signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
        input_paths = paths_of_inputs(call.in_spec, call.forward_arg_names) if call else []
        if len(input_paths) != len(inputs):
            input_paths = [(s.arg.name,) for s in inputs]
        output_paths = paths_of(call.out_spec) if call else []
        if len(output_paths) != len(outputs):
            output_paths = [(str(i),) for i in range(len(outputs))]
        root = "output" if call is None or _is_positional(call.out_spec) else ""
        input_leaves = [_joined(p, "input") for p in input_paths]
        output_leaves = [_joined((root, *p) if root and p else p, "output") for p in output_paths]
        is_input = [not isinstance(s.arg, ConstantArgument) for s in inputs]
        is_output = [_is_carried(s.arg) for s in outputs]
        own = [n for n, keep in zip(input_leaves, is_input) if keep]
        self.own_inputs = list(zip(own, [s.arg.name for s, keep in zip(inputs, is_input) if keep]))
        self.inputs = chosen_inputs(own, (input_names or ())[: len(own)])
        self.weights = _weight_names(exported, own, input_names or ())
        self.outputs = chosen_outputs(
            [n for n, keep in zip(output_leaves, is_output) if keep], output_names, self.inputs
        )
        self.interface = Interface(own, self.inputs, self.outputs)
        self.input_leaves = _merged(input_leaves, is_input, self.inputs)
        self.output_leaves = _merged(output_leaves, is_output, self.outputs)


def _is_carried(argument: Any) -> bool:
    """Whether a result is an output in ONNX: tensors and numbers are, None is not."""
    return not isinstance(argument, ConstantArgument) or argument.value is not None


def _weight_names(
    exported: torch.export.ExportedProgram, inputs: Sequence[str], input_names: Sequence[str]
) -> dict[str, str]:
    """The names after those of the inputs, for the weights that the graph uses, in the order of the state dict."""
    if isinstance(input_names, str) or len(input_names) <= len(inputs):
        return {}
    used = {node.name for node in exported.graph.nodes if node.users}
    kinds = (InputKind.PARAMETER, InputKind.BUFFER)
    specs = [s for s in exported.graph_signature.input_specs if s.kind in kinds and s.arg.name in used]
    order = {name: i for i, name in enumerate(exported.state_dict)}
    weights = sorted((str(s.target) for s in specs), key=lambda name: order.get(name, len(order)))
    surplus = input_names[len(inputs) :]
    if len(surplus) > len(weights):
        there = ", ".join([*inputs, *weights]) or "none"
        raise Error(
            f"input_names has {len(input_names)} names, but the model has {len(inputs)} inputs that are tensors and "
            f"{len(weights)} weights: {there}",
            "unsupported",
        )
    _require_distinct(input_names, "input")
    return dict(zip(weights, surplus))


def _apart(name: str, inputs: set[str]) -> str:
    """Renames an output that has the name of an input: to `present.0.key` for caches, to `output.x` for others."""
    if name not in inputs:
        return name
    return (
        f"present.{name.removeprefix('past_key_values.')}" if name.startswith("past_key_values.") else f"output.{name}"
    )


def _merged(leaves: list[str], is_value: list[bool], names: list[str]) -> list[str]:
    """The names of all leaves: those of values from `names`, those of constants their own."""
    chosen = iter(names)
    return [next(chosen) if value else leaf for leaf, value in zip(leaves, is_value)]


def _is_positional(spec: Any) -> bool:
    """Whether the elements of a result have no names."""
    if spec.type is None:
        return False
    return _child_names(spec, len(_children(spec))) == [str(i) for i in range(len(_children(spec)))] and not (
        isinstance(spec.type, type) and issubclass(spec.type, dict)
    )

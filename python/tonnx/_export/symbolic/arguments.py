"""Which arguments of an operator a symbolic is called with, and whether it reads all that matter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import Node

from tonnx._error import Error

# where a result is stored and where random numbers come from, which ONNX does not express
_NOT_IN_ONNX = {"device", "layout", "pin_memory", "memory_format", "non_blocking", "generator", "out"}


def _parameters_of(symbolic: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters after the graph; None where the symbolic takes any number of arguments."""
    try:
        parameters = list(inspect.signature(symbolic).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][1:]


def _is_default(argument: Any, value: Any) -> bool:
    if not argument.has_default_value() or isinstance(value, Node):
        return False
    default = argument.default_value
    if isinstance(value, list | tuple) and isinstance(default, list | tuple):
        return not any(isinstance(v, Node) for v in value) and list(value) == list(default)
    return bool(value == default)


def _shown(value: Any) -> str:
    return "an input" if isinstance(value, Node) else f"{value!r} here"


def fitting(symbolic: Callable[..., Any], schema: Any, values: Sequence[Any], title: str) -> list[Any]:
    """The arguments that the symbolic has parameters for; only arguments at their defaults are left out."""
    parameters = _parameters_of(symbolic)
    given = list(values)
    if parameters is None:
        return given
    while given:
        last = len(given) - 1
        argument = schema.arguments[last]
        has_place = last < len(parameters)
        is_other = has_place and parameters[last].name != argument.name
        is_left_out = not has_place or (is_other and parameters[last].default is not inspect.Parameter.empty)
        if not is_left_out or not _is_default(argument, given[last]):
            break
        given.pop()
    if len(given) > len(parameters):
        last = len(given) - 1
        names = ", ".join(a.name for a in schema.arguments)
        raise Error(
            f"the symbolic of {title} has no parameter for '{schema.arguments[last].name}', which is "
            f"{_shown(given[last])}; the arguments of the operator are {names}",
            "unsupported",
        )
    return given


def require_all_read(
    symbolic: Callable[..., Any],
    schema: Any,
    values: Sequence[Any],
    title: str,
    nodes_for: Callable[[Sequence[Any]], str],
) -> None:
    """Throws where the symbolic writes the same nodes for an argument as for its default."""
    parameters = _parameters_of(symbolic) or []
    for i, (argument, value) in enumerate(zip(schema.arguments, values)):
        is_ignored = i < len(parameters) and parameters[i].name.startswith("_")
        if not argument.has_default_value() or _is_default(argument, value):
            continue
        if is_ignored or argument.name in _NOT_IN_ONNX:
            continue
        try:
            is_read = nodes_for(values) != nodes_for([*values[:i], argument.default_value, *values[i + 1 :]])
        except Exception:  # the error comes when the nodes are written
            is_read = True
        if not is_read:
            raise Error(
                f"the symbolic of {title} does not read '{argument.name}', which is {_shown(value)} and "
                f"{argument.default_value!r} by default: read it, or begin the name of the parameter with an "
                "underscore if it makes no difference",
                "unsupported",
            )

"""The operators that are drawn: each with a function that proposes a node, and how often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from drawing import CARRIERS, PLAIN, Block, Drawing, Unfit, Value
from onnx import TensorProto, helper

Draws = Callable[[Drawing, str], Block]
OPERATORS: dict[str, tuple[Draws, float]] = {}


def draws(*names: str, weight: float = 1.0) -> Callable[[Draws], Draws]:
    """Registers a function for some operators; `weight` is how often each is tried, beside 1 for the others."""

    def register(function: Draws) -> Draws:
        for name in names:
            OPERATORS[name] = (function, weight)
        return function

    return register


def make(
    d: Drawing, op: str, inputs: Sequence[Value | None], outputs: int = 1, domain: str = "", **attributes: Any
) -> Block:
    """One node; attributes that are None, or that this version of the operator does not have, are left out."""
    known = d.schema(op).attributes if not domain else attributes
    given = {name: value for name, value in attributes.items() if value is not None and value != [] and name in known}
    names = [value.name if value else "" for value in inputs]
    while names and not names[-1]:
        names.pop()
    results = [d.name() for _ in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **given)
    return Block([node], [value for value in inputs if value], results)


def kinds_of(d: Drawing, op: str, place: int = 0) -> list[int]:
    """The element types that an input of an operator may have, always in the same order."""
    schema = d.schema(op)
    formal = schema.inputs[min(place, len(schema.inputs) - 1)]
    found = []
    for text in sorted(formal.types):
        name = text.removeprefix("tensor(").removesuffix(")")
        kind = {"float": "FLOAT", "double": "DOUBLE"}.get(name, name.upper())
        value = getattr(TensorProto, kind, None)
        if value in PLAIN or value in CARRIERS:
            found.append(value)
    if not found:
        raise Unfit(op)
    return found


def has_input(d: Drawing, op: str, name: str) -> bool:
    return any(formal.name == name for formal in d.schema(op).inputs)


def axis_of(d: Drawing, value: Value, *, extra: int = 0) -> int:
    """An axis, from the front or from the end."""
    rank = value.rank + extra
    if rank == 0:
        raise Unfit("a scalar has no axis")
    axis = d.rng.randrange(rank)
    return axis - rank if d.chance(0.4) else axis


def some_axes(d: Drawing, value: Value) -> list[int]:
    axes = [a for a in range(value.rank) if d.chance(0.5)]
    return [a - value.rank if d.chance(0.3) else a for a in axes]


def number(d: Drawing, low: float = -2.0, high: float = 2.0) -> float:
    drawn = d.rng.choice([d.rng.uniform(low, high), float(round(d.rng.uniform(low, high)))])
    return float(np.float32(min(max(drawn, low), high)))


def whole(value: Value) -> tuple[tuple[int, int], ...]:
    return value.shape

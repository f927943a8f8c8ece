"""The inputs and outputs that the docstring of generated code lists: names, types and sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

_ROW = re.compile(r"(?P<name>\S+)\s\s+(?P<type>[a-z]\w*)(?:\[(?P<dims>[^\]]*)\])?(?:\s\s+\((?P<own>.*)\))?$")
_COUNTED = re.compile(r"(.*?)(\d+)\.\.(\d+)(.*)")


@dataclass
class TensorRow:
    """An input or an output."""

    name: str  # of the argument
    own: str  # in the model that the code was made from
    dtype: str
    dims: list[str]  # numbers, names and expressions
    has_shape: bool  # whether the file says how many dimensions it has


@dataclass
class Interface:
    """The inputs and outputs of a file."""

    inputs: list[TensorRow] = field(default_factory=list)
    outputs: list[TensorRow] = field(default_factory=list)
    are_outputs_in_order: bool = True  # two numbered rows may stand for tensors that take turns: a0, b0, a1, b1


def read_docstring(text: str) -> Interface:
    found = Interface()
    rows: list[TensorRow] | None = None
    did_count = False
    for line in text.splitlines():
        heading = "" if line.startswith(" ") else line.partition(" ")[0]
        if not line.startswith(" "):
            rows = {"Inputs": found.inputs, "Outputs": found.outputs}.get(heading)
        row = _ROW.match(line.removeprefix(heading).strip())
        if rows is None or row is None:
            continue
        if rows is found.outputs:
            counts = _COUNTED.fullmatch(row["name"]) is not None
            found.are_outputs_in_order &= not (counts and did_count)
            did_count = counts
        dims = [size.strip() for size in (row["dims"] or "").split(",") if size.strip()]
        made = TensorRow(row["name"], row["own"] or row["name"], row["type"], dims, row["dims"] is not None)
        rows += _each_counted(made)
    return found


def _each_counted(row: TensorRow) -> Iterator[TensorRow]:
    """`key_0..3` stands for four of them."""
    many, owns = _COUNTED.fullmatch(row.name), _COUNTED.fullmatch(row.own)
    if many is None or owns is None:
        yield row
        return
    for i in range(int(many[2]), int(many[3]) + 1):
        yield replace(row, name=f"{many[1]}{i}{many[4]}", own=f"{owns[1]}{i}{owns[4]}")

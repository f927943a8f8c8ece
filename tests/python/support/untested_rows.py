"""Which rows of the aten tables no test exports: pytest --list-untested-rows notes what each test saves as a program."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import torch

EXPORTED: set[str] = set()


def name_of(target: object) -> str:
    """As a row is named: `aten::add.Scalar`, `_operator::mul`, `higher_order::cond`."""
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return f"{schema.name}.{schema.overload_name}".removesuffix(".")
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order::{target.name()}"
    return f"{getattr(target, '__module__', '')}::{getattr(target, '__name__', target)}"


def note_all_programs() -> None:
    """From now on, what torch.export.save is given is noted."""
    save = torch.export.save

    def noted(program: torch.export.ExportedProgram, *args: object, **options: object) -> None:
        for module in program.graph_module.modules():
            if isinstance(module, torch.fx.GraphModule):
                EXPORTED.update(name_of(node.target) for node in module.graph.nodes if node.op == "call_function")
        save(program, *args, **options)  # type: ignore[arg-type]

    torch.export.save = noted


def rows_that_go_to_onnx(command: list[str]) -> Iterator[str]:
    text = subprocess.run([*command, "ops", "--markdown"], capture_output=True, text=True, check=True).stdout
    for row in text.partition("## From PyTorch")[2].splitlines():
        if found := re.match(r"\| (\w+::[\w.]+) \| yes \|", row):
            yield found[1]

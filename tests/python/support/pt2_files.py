"""What tests of written .pt2 files share: loading with the true cause of a failure, and the types of all values."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.export import ExportedProgram


def load(path: str | os.PathLike[str]) -> ExportedProgram:
    """torch.export.load, which hides the cause of a failure behind that of its fallback."""
    from torch.export.pt2_archive._package import load_pt2

    return load_pt2(os.fspath(path)).exported_programs["model"]


class _TypeCheck(torch.fx.Interpreter):
    def __init__(self, program: ExportedProgram) -> None:
        super().__init__(program.graph_module)
        self.wrong: list[str] = []
        self.checked = 0

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        said = n.meta.get("val")
        if n.op != "output" and isinstance(result, torch.Tensor):
            self.checked += 1
            sizes = [(a, b) for a, b in zip(result.shape, said.shape, strict=True) if isinstance(b, int) and a != b]
            if result.dtype != said.dtype or result.dim() != said.dim() or sizes:
                self.wrong.append(f"{n.name}: {said.dtype} {list(said.shape)}, is {result.dtype} {list(result.shape)}")
        return result


def wrong_types(program: ExportedProgram, args: tuple[Any, ...]) -> list[str]:
    """The values whose element type or shape is not what the file says, in a run with these inputs."""
    state = {**program.state_dict, **program.constants}
    users = iter(args)
    inputs = [
        next(users) if spec.kind.name == "USER_INPUT" else state[spec.target]
        for spec in program.graph_signature.input_specs
    ]
    check = _TypeCheck(program)
    check.run(*inputs)
    assert check.checked >= len(inputs)
    return check.wrong

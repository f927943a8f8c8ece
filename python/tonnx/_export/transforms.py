"""torch.vmap in a model: torch.export keeps its steps as calls of Python's own, and they are traced once more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx import GraphModule

_STEPS = "torch._functorch.predispatch"


def without_transforms(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program itself where it has no steps of such transforms."""
    modules = [m for m in program.graph_module.modules() if isinstance(m, GraphModule)]
    if not any(getattr(n.target, "__module__", None) == _STEPS for m in modules for n in m.graph.nodes):
        return program
    result: torch.export.ExportedProgram = program.run_decompositions({})
    for module in filter(lambda m: isinstance(m, GraphModule), result.graph_module.modules()):
        _make_tensors_of_numbers(module)
    return result


def _make_tensors_of_numbers(module: Any) -> None:
    """A number beside a batched tensor is turned into another type as if it were a tensor."""
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten._to_copy.default):
        if isinstance(node.args[0], bool | int | float):
            node.target = torch.ops.aten.scalar_tensor.default
            node.kwargs = {"dtype": node.kwargs.get("dtype")}


@contextmanager
def transforms_ended() -> Iterator[None]:
    """A transform that fails on its way leaves PyTorch inside of it; afterwards it is as before."""
    layers: Any = torch._C._functorch
    depth = layers.get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        layers.pop_dynamic_layer_stack_and_undo_to_depth(depth)

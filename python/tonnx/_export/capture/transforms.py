"""torch.func in a model: torch.export leaves steps of vmap as calls of Python functions, and cannot trace gradients."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule

_STEPS = "torch._functorch.predispatch"


def without_transforms(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program without the steps of transforms; the same object if it has none."""
    modules = [m for m in program.graph_module.modules() if isinstance(m, GraphModule)]
    if not any(getattr(n.target, "__module__", None) == _STEPS for m in modules for n in m.graph.nodes):
        return program
    result: torch.export.ExportedProgram = program.run_decompositions({})
    for module in filter(lambda m: isinstance(m, GraphModule), result.graph_module.modules()):
        _make_tensors_of_numbers(module)
    return result


def _make_tensors_of_numbers(module: Any) -> None:
    """vmap casts numbers as if they were tensors: makes such casts create a tensor."""
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten._to_copy.default):
        if isinstance(node.args[0], bool | int | float):
            node.target = torch.ops.aten.scalar_tensor.default
            node.kwargs = {"dtype": node.kwargs.get("dtype")}


# torch.export itself uses other files of that folder
_OF_TRANSFORMS = re.compile(r"_functorch[/\\](apis|eager_transforms|vmap)\.py$")


def is_of_transforms(failure: BaseException | None) -> bool:
    """Whether it was raised inside a transform of torch.func."""
    while failure is not None:
        if "functorch tensor" in str(failure) or any(
            _OF_TRANSFORMS.search(frame.filename) for frame in traceback.extract_tb(failure.__traceback__)
        ):
            return True
        failure = failure.__cause__ or failure.__context__
    return False


def written_out(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[..., Any]:
    """The module at these sizes as a function of plain operators, with its gradients computed explicitly."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def weights() -> dict[str, torch.Tensor]:
        return {**dict(module.named_parameters()), **dict(module.named_buffers())}

    def call(given: dict[str, torch.Tensor], args: Any, kwargs: Any) -> Any:
        return torch.func.functional_call(module, given, tuple(args), dict(kwargs))

    plain = {name: weight.detach() for name, weight in weights().items()}
    with transforms_ended():
        graph: Any = make_fx(call, tracing_mode="fake")(plain, tuple(args), dict(kwargs))
    # without further gradients, detach is the identity
    for node in graph.graph.find_nodes(op="call_function", target=torch.ops.aten.detach.default):
        node.replace_all_uses_with(node.args[0])
        graph.graph.erase_node(node)
    graph.recompile()
    return lambda *args, **kwargs: graph(weights(), args, kwargs)


@contextmanager
def transforms_ended() -> Iterator[None]:
    """Restores PyTorch's stack of transforms: one that fails does not leave it."""
    layers: Any = torch._C._functorch
    depth = layers.get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        layers.pop_dynamic_layer_stack_and_undo_to_depth(depth)

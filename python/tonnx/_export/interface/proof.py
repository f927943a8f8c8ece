"""Whether a written model computes what the model in PyTorch does: both, as the judge of verify runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from tonnx._error import Error
from tonnx._orders import has_open_orders, orders_chosen
from tonnx._verify import judged_runners
from tonnx._verify.runners import Input, OutputRunner, Value, short, value_of

if TYPE_CHECKING:
    import numpy as np

_QUANTISING = ("quantize_per", "fake_quantize_per")

Run = Callable[[Mapping[str, torch.Tensor], bool], list[Any]]


class CalledRunner(OutputRunner):
    """A function of PyTorch, called as its example is, with other tensors in the places of the example's."""

    def __init__(
        self,
        title: str,
        call: Callable[[Any], Any],
        example: Any,
        tensors: Mapping[str, torch.Tensor] | None = None,
        sorts: bool = False,
    ) -> None:
        super().__init__(title)
        if tensors is None:
            found = {id(leaf): leaf for leaf in pytree.tree_leaves(example) if isinstance(leaf, torch.Tensor)}
            tensors = {f"input {i}": leaf for i, leaf in enumerate(found.values())}
        self._call, self._example, self._sorts = call, example, sorts
        self.tensors = list(tensors.values())
        self.inputs = [Input(name, *_kind_of(tensor)) for name, tensor in tensors.items()]

    def run(self, feeds: Sequence[np.ndarray]) -> list[tuple[str, Value]]:
        given = {
            id(own): torch.from_numpy(feed.copy()).to(own.dtype).to(own.device)
            for own, feed in zip(self.tensors, feeds)
        }
        arguments = pytree.tree_map(lambda leaf: given.get(id(leaf), leaf), self._example)
        try:
            with orders_chosen(self._sorts):
                results = self._call(arguments)
        except Exception as e:
            raise Error(f"PyTorch cannot run {self.path}: {short(e)}", "invalid_model") from e
        found = [v for v in pytree.tree_leaves(results) if isinstance(v, torch.Tensor | int | float)]
        return [("", value_of(v if isinstance(v, torch.Tensor) else torch.tensor(v))) for v in found]


class _Written(OutputRunner):
    """The ONNX model, in ONNX Runtime."""

    def __init__(
        self, model: bytes | str, run: Run, tensors: Mapping[str, torch.Tensor], names: Sequence[str], optimizes: bool
    ) -> None:
        super().__init__("the ONNX model")
        self.model_path = model if isinstance(model, str) else None
        self.model_data = model if isinstance(model, bytes) else None
        self._run, self._names, self._optimizes = run, names, optimizes
        self.inputs = [Input(name, *_kind_of(tensor)) for name, tensor in tensors.items()]

    def run(self, feeds: Sequence[np.ndarray]) -> list[tuple[str, Value]]:
        tensors = {value.name: torch.from_numpy(feed.copy()) for value, feed in zip(self.inputs, feeds)}
        found: list[tuple[str, Value]] = []
        for name, output in zip(self._names, self._run(tensors, self._optimizes)):
            found += [(name, value_of(part)) for part in (output if isinstance(output, list) else [output])]
        return found


def _kind_of(tensor: torch.Tensor) -> tuple[str, list[Any]]:
    value = value_of(tensor)
    return str(value.array.dtype), list(value.array.shape)


def prove(
    model: bytes | str,
    run: Run,
    names: Sequence[str],
    tensors: Mapping[str, torch.Tensor],
    reference: Callable[..., Any],
    example: tuple[Sequence[Any], Mapping[str, Any]],
    graph: torch.fx.GraphModule | None,
) -> None:
    """Runs both models on the example; values that differ are an error that says where, and by how much."""
    # made faster, a quantised model adds rounded biases: steps that fall the other way become more from layer to layer
    nodes = graph.graph.nodes if graph is not None else ()
    is_quantised = any(getattr(node.target, "__name__", "").startswith(_QUANTISING) for node in nodes)
    sorts = graph is not None and has_open_orders(graph)
    call = lambda given: reference(*given[0], **given[1])  # noqa: E731
    first = CalledRunner("the model in PyTorch", call, example, tensors, sorts)
    second = _Written(model, run, tensors, names, not is_quantised)
    report = judged_runners(first, second, {name: value_of(t) for name, t in tensors.items()}, outputs_only=True)
    if report.missing:
        counts = {side: sum(f"in the {side} model" in text for text in report.missing) for side in ("first", "second")}
        theirs, ours = (len(report.outputs) + counts[side] for side in ("first", "second"))
        raise Error(f"the ONNX model gives {ours} outputs, and PyTorch {theirs}", "verification")
    wrong = [output for output in report.outputs if not output.ok]
    if not wrong:
        return
    worst = max(wrong, key=lambda output: output.max_abs)
    if worst.why:
        kinds = f"is {worst.type} in PyTorch, and {worst.why.removeprefix('is ').removesuffix(' in the second model')}"
        raise Error(f"output '{worst.name}' {kinds} in ONNX Runtime", "verification")
    raise Error(
        f"output '{worst.name}' of ONNX Runtime differs from PyTorch by up to {worst.max_abs:.3g}", "verification"
    )

"""Compares an exported model with the PyTorch model, as `tonnx verify` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from tonnx._error import Error
from tonnx._orders import has_open_orders, orders_chosen
from tonnx._runtime import RuntimeFailure, open_session
from tonnx._verify import CompareOptions, compare_runners
from tonnx._verify.runners import Input, Runner, Value, short, value_of

if TYPE_CHECKING:
    import numpy as np

    from tonnx._export.interface.onnx_program import OnnxProgram

_QUANTISING = ("quantize_per", "fake_quantize_per")


def run(model: bytes | str, tensors: Mapping[str, torch.Tensor], optimizes: bool = True) -> list[Any]:
    """The outputs of an ONNX model (its bytes or its path) on these inputs."""
    try:
        session = open_session(model, optimizes=optimizes)
        names = [i.name for i in session.get_inputs()]
        missing = [name for name in names if name not in tensors]
        if missing:
            text = f"the ONNX model has inputs that the PyTorch model has not: {', '.join(missing)}"
            raise Error(text, "unsupported")
        outputs = session.run(None, {name: _array_of(tensors[name]) for name in names})
    except RuntimeFailure as failure:
        reason = str(failure).splitlines()[0]
        raise Error(f"ONNX Runtime cannot run the model: {reason}", "unsupported") from None
    return [list(map(torch.as_tensor, o)) if isinstance(o, list) else torch.as_tensor(o) for o in outputs]


def _array_of(tensor: torch.Tensor) -> Any:
    tensor = tensor.detach().cpu()
    if tensor.dtype is torch.bfloat16:
        raise Error("ONNX Runtime takes no bfloat16 from Python: verify the model in float32", "unsupported")
    return tensor.contiguous().numpy()


class CalledRunner(Runner):
    """A function of PyTorch, called like its example with other tensors."""

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


class _Written(Runner):
    """The ONNX model, in ONNX Runtime."""

    def __init__(
        self, model: bytes | str, tensors: Mapping[str, torch.Tensor], names: Sequence[str], optimizes: bool
    ) -> None:
        super().__init__("the ONNX model")
        self.model_path = model if isinstance(model, str) else None
        self.model_data = model if isinstance(model, bytes) else None
        self._model, self._names, self._optimizes = model, names, optimizes
        self.inputs = [Input(name, *_kind_of(tensor)) for name, tensor in tensors.items()]

    def run(self, feeds: Sequence[np.ndarray]) -> list[tuple[str, Value]]:
        tensors = {value.name: torch.from_numpy(feed.copy()) for value, feed in zip(self.inputs, feeds)}
        found: list[tuple[str, Value]] = []
        for name, output in zip(self._names, run(self._model, tensors, self._optimizes)):
            found += [(name, value_of(part)) for part in (output if isinstance(output, list) else [output])]
        return found


def _kind_of(tensor: torch.Tensor) -> tuple[str, list[Any]]:
    value = value_of(tensor)
    return str(value.array.dtype), list(value.array.shape)


def prove(
    model: bytes | str,
    program: OnnxProgram,
    reference: Callable[..., Any],
    example: tuple[Sequence[Any], Mapping[str, Any]],
) -> None:
    """Runs both models on the example, and throws where outputs differ."""
    # ONNX Runtime's optimiser rounds the biases of quantised models, and differences of one step grow by the layer
    graph = None if program.exported_program is None else program.exported_program.graph_module
    nodes = graph.graph.nodes if graph is not None else ()
    is_quantised = any(getattr(node.target, "__name__", "").startswith(_QUANTISING) for node in nodes)
    sorts = graph is not None and has_open_orders(graph)
    tensors = program.tensors(*example)
    call = lambda given: reference(*given[0], **given[1])  # noqa: E731
    first = CalledRunner("the model in PyTorch", call, example, tensors, sorts)
    second = _Written(model, tensors, program.output_names, not is_quantised)
    values = {name: value_of(tensor) for name, tensor in tensors.items()}
    report = compare_runners(first, second, values, CompareOptions(outputs_only=True))
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

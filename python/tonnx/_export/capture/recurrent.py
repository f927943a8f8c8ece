"""Keeps recurrent layers as one operator while a model is traced; torch.export would unroll them.

Unrolling would fix the length of the sequence to that of the example. To keep a layer whole, only the shapes of its
results are needed. Those of packed sequences depend on data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils.weak import WeakTensorKeyDictionary

from tonnx._replaced import replaced

Shapes = Callable[..., tuple[torch.Tensor, ...]]

_KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def _output_size(states: list[torch.Tensor], bidirectional: bool) -> int:
    return int(states[0].shape[2]) * (2 if bidirectional else 1)


def _of_layer(
    input: torch.Tensor, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    states = list(hx) if isinstance(hx, list | tuple) else [hx]
    _require_steps(input.shape[1 if batch_first else 0])
    _require_features(input.shape[2], params[0].shape[1])
    output = input.new_empty([*input.shape[:2], _output_size(states, bidirectional)])
    return (output, *map(torch.empty_like, states))


def _require_steps(count: Any) -> None:
    if isinstance(count, int) and count == 0:  # in the words of PyTorch
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")


def _require_features(given: Any, expected: Any) -> None:
    if isinstance(given, int) and isinstance(expected, int) and given != expected:
        raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {expected}, got {given}")


class _Packed:
    """The shapes of packed sequences in one trace."""

    def __init__(self) -> None:
        self._batches: Any = WeakTensorKeyDictionary()  # the number of sequences, by the tensor of batch sizes

    def of_layer(
        self, data: torch.Tensor, batch_sizes: torch.Tensor, hx: Any, params: Any, has_biases: bool, num_layers: int,
        dropout: float, train: bool, bidirectional: bool,
    ) -> tuple[torch.Tensor, ...]:  # fmt: skip
        states = list(hx) if isinstance(hx, list | tuple) else [hx]
        batch = self._batches.get(batch_sizes, states[0].shape[1])
        output = data.new_empty([data.shape[0], _output_size(states, bidirectional)])
        return (output, *(s.new_empty([s.shape[0], batch, s.shape[2]]) for s in states))

    def pack(self, input: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """torch._VF._pack_padded_sequence, written in operators whose shapes can be inferred."""
        steps = input.transpose(0, 1) if batch_first else input
        is_there = torch.arange(steps.shape[0]).unsqueeze(1) < lengths.unsqueeze(0)
        counts = is_there.sum(1)
        sizes = counts[counts > 0]
        torch._check(sizes.shape[0] <= steps.shape[0])  # type: ignore[no-untyped-call]
        self._batches[sizes] = steps.shape[1]
        return steps[is_there], sizes

    def pad(
        self, data: torch.Tensor, batch_sizes: torch.Tensor, batch_first: bool, padding_value: float, total_length: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """torch._VF._pad_packed_sequence, written in the same way."""
        batch = self._batches.get(batch_sizes)
        if batch is None:
            batch = batch_sizes[0].item()
        number = torch.arange(batch).unsqueeze(0)
        if total_length is not batch_sizes.shape[0]:
            batch_sizes = nn.functional.pad(batch_sizes, (0, total_length - batch_sizes.shape[0]))
        starts = (batch_sizes.cumsum(0) - batch_sizes).unsqueeze(1)
        is_there = number < batch_sizes.unsqueeze(1)
        found = data[torch.where(is_there, starts + number, 0)]
        padded = torch.where(is_there.view(*is_there.shape, *[1] * (data.dim() - 1)), found, padding_value)
        return padded.transpose(0, 1) if batch_first else padded, is_there.sum(0)


@contextmanager
def recurrent_layers_whole() -> Iterator[None]:
    """Inside, recurrent layers are traced as one operator; on real tensors they compute as usual."""
    packed = _Packed()
    with ExitStack() as stack:
        for layer in (getattr(torch.ops.aten, kind) for kind in _KINDS):
            stack.enter_context(_shaped_by(layer.input, _of_layer))
            stack.enter_context(_shaped_by(layer.data, packed.of_layer))
        stack.enter_context(replaced(torch._VF, "_pack_padded_sequence", packed.pack))
        stack.enter_context(replaced(torch._VF, "_pad_packed_sequence", packed.pad))
        for kind in (nn.RNNBase, nn.LSTM):
            stack.enter_context(replaced(kind, "check_forward_args", _of_padded_only(kind.check_forward_args)))
        yield


def _of_padded_only(check: Callable[..., None]) -> Callable[..., None]:
    """Does not check the sizes of initial states of packed sequences, which depend on data."""

    def check_forward_args(self: nn.RNNBase, input: Any, hidden: Any, batch_sizes: Any) -> None:
        if batch_sizes is None:
            check(self, input, hidden, batch_sizes)

    return check_forward_args


@contextmanager
def _shaped_by(operator: Any, shapes: Shapes) -> Iterator[None]:
    """Inside, the operator is not decomposed when it is called with fake tensors."""
    before = dict(operator.py_kernels)

    def kernel(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            has_values = not isinstance(args[0], FakeTensor)
            return original(*args, **kwargs) if has_values else shapes(*args, **kwargs)

        return call

    operator.py_kernels.update({key: kernel(original) for key, original in before.items()})
    operator._dispatch_cache.clear()
    try:
        yield
    finally:
        operator.py_kernels.update(before)
        operator._dispatch_cache.clear()

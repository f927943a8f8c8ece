"""Recurrent layers in tonnx.export: sequences of any length, states of any batch, packed sequences."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import onnx
import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils import _pytree as pytree

import tonnx
from tonnx._runtime import open_session

torch.manual_seed(0)

LAYERS: dict[str, nn.RNNBase] = {
    "lstm": nn.LSTM(4, 5),
    "lstm of two layers, both directions": nn.LSTM(4, 5, 2, bidirectional=True),
    "lstm, batch first": nn.LSTM(4, 5, batch_first=True, bias=False),
    "lstm with projections": nn.LSTM(4, 6, proj_size=3, bias=False),
    "lstm with projections, both directions": nn.LSTM(4, 6, 2, proj_size=3, bidirectional=True, batch_first=True),
    "gru": nn.GRU(4, 5),
    "gru of two layers, both directions": nn.GRU(4, 5, 2, batch_first=True, bidirectional=True),
    "rnn of two layers": nn.RNN(4, 5, 2),
    "rnn, both directions": nn.RNN(4, 5, nonlinearity="relu", bidirectional=True),
    "rnn, batch first": nn.RNN(4, 5, 2, nonlinearity="relu", batch_first=True, bias=False),
}
SIZES = [(3, 2), (1, 1), (9, 4), (1, 3), (6, 1)]  # time and batch


class Given(nn.Module):
    """A layer whose initial states are inputs; it may be given none."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer

    def state(self, states: Sequence[torch.Tensor]) -> Any:
        return (tuple(states) if len(states) == 2 else states[0]) if states else None

    def forward(self, x, h=None, c=None):
        return self.layer(x, self.state([s for s in (h, c) if s is not None]))


class Packed(Given):
    """The same on packed sequences."""

    def __init__(self, layer: nn.RNNBase, sorted: bool = False, total: bool = False, padding: float = 0.0) -> None:
        super().__init__(layer)
        self.sorted, self.total, self.padding = sorted, total, padding

    def forward(self, x, lengths, h=None, c=None):
        first = self.layer.batch_first
        packed = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=self.sorted)
        packed, state = self.layer(packed, self.state([s for s in (h, c) if s is not None]))
        total = x.shape[1 if first else 0] if self.total else None
        return *pad_packed_sequence(packed, first, self.padding, total), state


def example(layer: nn.RNNBase, time: int, batch: int, is_given: bool) -> dict[str, torch.Tensor]:
    values = {"x": torch.randn((batch, time, 4) if layer.batch_first else (time, batch, 4))}
    if is_given:
        count = layer.num_layers * (2 if layer.bidirectional else 1)
        values["h"] = torch.randn(count, batch, layer.proj_size or layer.hidden_size)
        if isinstance(layer, nn.LSTM):
            values["c"] = torch.randn(count, batch, layer.hidden_size)
    return values


def axes_of(layer: nn.RNNBase, values: dict[str, torch.Tensor]) -> dict[str, dict[int, str]]:
    axes = {name: {1: "batch"} for name in values}
    axes["x"] = {0: "batch", 1: "time"} if layer.batch_first else {0: "time", 1: "batch"}
    return axes | ({"lengths": {0: "batch"}} if "lengths" in values else {})


def compare(model: nn.Module, session: Any, values: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        expected = pytree.tree_leaves(model(**values))
    got = session.run(None, {n: v.numpy() for n, v in values.items()})
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(torch.as_tensor(ours), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_given", [False, True], ids=["", "states given"])
@pytest.mark.parametrize("name", LAYERS)
def test_time_and_batch_are_open(name: str, is_given: bool) -> None:
    layer = LAYERS[name]
    values = example(layer, 3, 2, is_given)
    program = tonnx.export(Given(layer), kwargs=values, dynamic_axes=axes_of(layer, values))
    onnx.checker.check_model(program.model_proto, full_check=True)
    session = open_session(bytes(program))
    for time, batch in SIZES:
        compare(Given(layer).eval(), session, example(layer, time, batch, is_given))


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("name", ["lstm with projections, both directions", "gru of two layers, both directions"])
def test_older_opsets(name: str, opset: int) -> None:
    layer = LAYERS[name]
    values = example(layer, 3, 2, True)
    program = tonnx.export(Given(layer), kwargs=values, dynamic_axes=axes_of(layer, values), opset_version=opset)
    session = open_session(bytes(program))
    for time, batch in SIZES:
        compare(Given(layer).eval(), session, example(layer, time, batch, True))


def test_an_example_of_one_step_is_open() -> None:
    layer = LAYERS["gru"]
    program = tonnx.export(layer, torch.randn(1, 1, 4), dynamic_axes={"input": {0: "time", 1: "batch"}})
    session = open_session(bytes(program))
    x = torch.randn(5, 3, 4)
    with torch.no_grad():
        expected = layer(x)
    for ours, theirs in zip(session.run(None, {"input": x.numpy()}), expected, strict=True):
        torch.testing.assert_close(torch.as_tensor(ours), theirs)


def test_automatic_sizes_leave_time_open() -> None:
    layer = LAYERS["lstm, batch first"]
    program = tonnx.export(layer, torch.randn(2, 3, 4), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    sizes = program.model_proto.graph.input[0].type.tensor_type.shape.dim
    assert sizes[0].dim_param and sizes[1].dim_param


def test_the_lists_of_weights_of_a_layer_are_nobodys_concern() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tonnx.export(nn.GRU(4, 5), (torch.randn(3, 6, 4),), input_names=["x"], dynamic_axes={"x": {0: "time"}})
    assert not [warning for warning in caught if "_flat_weights" in str(warning.message)]


def test_layers_are_as_before_afterwards() -> None:
    kernels = dict(torch.ops.aten.lstm.input.py_kernels)
    check = nn.RNNBase.check_forward_args
    tonnx.export(LAYERS["lstm"], torch.randn(3, 2, 4))
    assert torch.ops.aten.lstm.input.py_kernels == kernels
    assert nn.RNNBase.check_forward_args is check and "_pad_packed_sequence" not in vars(torch._VF)


PACKED = {
    "lstm": Packed(nn.LSTM(4, 5)),
    "lstm to the length of the input": Packed(
        nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), total=True, padding=-1.5
    ),
    "lstm of sorted sequences": Packed(nn.LSTM(4, 5, batch_first=True), sorted=True),
    "lstm with projections": Packed(nn.LSTM(4, 6, 2, proj_size=3, bidirectional=True, batch_first=True)),
    "gru": Packed(nn.GRU(4, 5, 2, batch_first=True, bidirectional=True)),
    "rnn": Packed(nn.RNN(4, 5, 2)),
    "rnn, both directions": Packed(nn.RNN(4, 5, nonlinearity="relu", bidirectional=True)),
}
LENGTHS = [[5, 4, 2], [3, 3, 1], [1], [9, 7, 7, 1], [3, 2]]


@pytest.mark.parametrize("is_given", [False, True], ids=["", "states given"])
@pytest.mark.parametrize("name", PACKED)
def test_packed_sequences(name: str, is_given: bool) -> None:
    model = PACKED[name].eval()

    def values_of(lengths: list[int]) -> dict[str, torch.Tensor]:
        values = example(model.layer, 9 if len(lengths) > 3 else 5, len(lengths), is_given)
        given = torch.tensor(lengths if model.sorted else lengths[::-1])
        return {"x": values.pop("x"), "lengths": given, **values}

    values = values_of(LENGTHS[0])
    program = tonnx.export(model, kwargs=values, dynamic_axes=axes_of(model.layer, values))
    session = open_session(bytes(program))
    for lengths in LENGTHS:
        compare(model, session, values_of(lengths))


def test_packed_sequences_where_no_size_is_open() -> None:
    model = PACKED["gru"].eval()
    values = (torch.randn(3, 5, 4), torch.tensor([2, 5, 4]))
    tonnx.export(model, values, verify=True)


def test_inputs_of_another_size_are_refused_as_ever() -> None:
    """Also where the size of a layer is given only by its weights."""

    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LSTM(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            state = x.new_zeros(1, x.shape[1], 4)
            return torch.lstm(x, (state, state), self.layer._flat_weights, True, 1, 0.0, False, False, False)[0]

    with pytest.raises(tonnx.Error, match="Expected 3, got 5"):
        tonnx.export(Bare(), torch.randn(2, 1, 5))

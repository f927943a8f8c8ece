"""Ways to get at tensors that torch.export does not follow by itself: `x.data`, lists of booleans, an empty last dict."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import tonnx
from tonnx._runtime import open_session

X = torch.randn(4, 3)


class Calls(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.function(self, x)


def written(m: Calls, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[[True, False, True, False]] = 0
    return y


def clamped(m: Calls, x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.data.clamp_(0)
    return y + 1


CASES: dict[str, Callable[..., Any]] = {
    "data of an input": lambda m, x: x.data + 1,
    "data of weights": lambda m, x: x @ m.linear.weight.data.t() + m.linear.bias.data,
    "written through data": clamped,
    "booleans": lambda m, x: x[[True, False, True, False]],
    "booleans behind": lambda m, x: x[:, [True, False, True]],
    "booleans beside numbers": lambda m, x: x[[True, False, True, True], [0, 1, 2]],
    "booleans behind a new axis": lambda m, x: x[None, [True, False, True, False], 1:],
    "booleans behind dots": lambda m, x: x[..., [True, False, True]],
    "written at booleans": written,
}


@pytest.mark.parametrize("name", CASES)
def test_followed(name: str) -> None:
    model = Calls(CASES[name]).eval()
    session = open_session(bytes(tonnx.export(model, X)))
    x = torch.randn(4, 3)
    with torch.no_grad():
        expected = pytree.tree_leaves(model(x.clone()))
    for ours, theirs in zip(session.run(None, {"x": x.numpy()}), expected, strict=True):
        torch.testing.assert_close(torch.as_tensor(ours), theirs)


def test_taken_along_a_dimension_of_open_sizes() -> None:
    def forward(x, scores):
        best = scores.topk(3, dim=1).indices
        first = torch.take_along_dim(x, best.unsqueeze(2), dim=1)
        return first, scores.take_along_dim(torch.tensor([[2, 0]]), -1), torch.take_along_dim(scores, best[:, 0])

    values = (torch.randn(2, 10, 4), torch.rand(2, 10))
    axes = {"x": {0: "batch"}, "scores": {0: "batch"}}
    session = open_session(bytes(tonnx.export(forward, values, dynamic_axes=axes)))
    for batch in (2, 1, 5):
        x, scores = torch.randn(batch, 10, 4), torch.rand(batch, 10)
        found = session.run(None, {"x": x.numpy(), "scores": scores.numpy()})
        for ours, theirs in zip(found, forward(x, scores), strict=True):
            torch.testing.assert_close(torch.as_tensor(ours), theirs)


def test_booleans_of_the_model_give_a_known_size() -> None:
    program = tonnx.export(Calls(CASES["booleans"]), X)
    sizes = program.model_proto.graph.output[0].type.tensor_type.shape.dim
    assert [size.dim_value for size in sizes] == [2, 3]


def test_tensors_are_as_before_afterwards() -> None:
    tonnx.export(Calls(CASES["booleans"]), X)
    assert not {"data", "__getitem__", "__setitem__"} & set(vars(torch.Tensor))
    assert not ctypes.pythonapi.PySequence_Check(ctypes.py_object(torch.ones(())))


class Optional(nn.Module):
    def forward(self, x, extra=None):
        return x + extra["a"] if extra else x + 1


@pytest.mark.parametrize("model", [Optional(), nn.Linear(3, 2)])
def test_an_empty_last_dict_is_no_argument(model: nn.Module) -> None:
    program = tonnx.export(model, (X, {}), verify=True)
    assert len(program.model_proto.graph.input) == 1


def test_inputs_of_a_script_are_called_as_its_arguments() -> None:
    program = tonnx.export(torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.ReLU())), torch.ones(1, 3), verify=True)
    assert program.input_names == ["input"]

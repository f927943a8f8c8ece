"""torch.func in a model, PyTorch -> ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
from torch import nn

import tonnx
from tonnx._runtime import open_session


def ratio(row: torch.Tensor) -> torch.Tensor:
    return (row * row).sum() / (1 + row.abs().max())


def causal(x: torch.Tensor) -> torch.Tensor:
    places = torch.arange(x.shape[0])
    pairs = torch.vmap(torch.vmap(lambda i, j: i >= j, in_dims=(None, 0)), in_dims=(0, None))
    return pairs(places, places)


class Model(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.function = function

    def forward(self, x):
        return self.function(self.linear(x))


CASES: dict[str, Callable[..., Any]] = {
    "rows": lambda x: torch.vmap(ratio)(x),
    "columns": lambda x: torch.vmap(lambda c: c.cumsum(0), in_dims=1)(x),
    "a mask": causal,
    "a product with its derivative": lambda x: torch.func.jvp(torch.sin, (x,), (x,))[1],
}


@pytest.mark.parametrize("name", CASES)
def test_transforms(name: str) -> None:
    model = Model(CASES[name]).eval()
    session = open_session(bytes(tonnx.export(model, torch.randn(2, 6), dynamic_axes={"x": {0: "batch"}})))
    for batch in (2, 1, 5):
        x = torch.randn(batch, 6)
        with torch.no_grad():
            expected = model(x)
        (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()} if session.get_inputs() else {})
        torch.testing.assert_close(torch.as_tensor(got), expected)


def energy(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() * x).sum()


GRADIENTS: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x: torch.func.grad(lambda y: energy(f(y)))(x),
    "grad and value": lambda f, x: torch.func.grad_and_value(lambda y: energy(f(y)))(x),
    "grad of rows": lambda f, x: torch.vmap(torch.func.grad(lambda row: energy(f(row))))(x),
    "jacrev": lambda f, x: torch.func.jacrev(lambda y: f(y).tanh())(x[0]),
    "jacfwd": lambda f, x: torch.func.jacfwd(lambda y: f[0](y).tanh())(x[0]),
    "vjp": lambda f, x: torch.func.vjp(lambda y: f(y).sin(), x)[1](torch.ones(3, 5))[0],
    "hessian": lambda f, x: torch.func.hessian(lambda y: energy(f[0](y)))(x[0]),
}


class Differentiates(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.LayerNorm(5))
        self.function = function

    def forward(self, x):
        return self.function(self.layers, x)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    """At fixed sizes they are operators like all others, and the weights keep their names."""
    model = Differentiates(GRADIENTS[name]).eval()
    exported = bytes(tonnx.export(model, torch.randn(3, 6)))
    assert {"layers.0.weight"} <= {weight.name for weight in onnx.load_from_string(exported).graph.initializer}
    session = open_session(exported)
    x = torch.randn(3, 6)
    expected = model(x)
    got = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    for found, wanted in zip(got, expected if isinstance(expected, tuple) else [expected], strict=True):
        torch.testing.assert_close(torch.as_tensor(found), wanted.detach(), rtol=1e-4, atol=1e-5)


def test_a_transform_that_fails_leaves_nothing_behind() -> None:
    model = Model(lambda x: torch.vmap(torch.func.grad(lambda row: row.sin().sum()))(x))
    with pytest.raises(tonnx.Error, match=r"with torch\.func.*fixed sizes") as failure:
        tonnx.export(model, torch.randn(2, 6), dynamic_axes={"x": {0: "batch"}})
    assert "\n" not in str(failure.value) and len(str(failure.value)) < 600
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0

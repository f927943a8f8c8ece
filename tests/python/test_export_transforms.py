"""torch.vmap in a model, PyTorch -> ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def test_a_transform_that_fails_leaves_nothing_behind() -> None:
    model = Model(lambda x: torch.vmap(torch.func.grad(lambda row: row.sin().sum()))(x))
    with pytest.raises(tonnx.Error, match=r"torch\.export cannot trace the model"):
        tonnx.export(model, torch.randn(2, 6))
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0
    assert torch.randn(2).shape == (2,)

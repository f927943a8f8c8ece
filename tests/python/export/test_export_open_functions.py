"""Functions that take sizes as numbers, and pools, over sizes that are open, PyTorch -> ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tonnx
from tonnx._runtime import open_session


def identity(x: torch.Tensor) -> torch.Tensor:
    return (torch.eye(2, 3) * 0.9).expand(x.shape[0], 2, 3)


CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "linspace": lambda x: torch.linspace(-1, 1, x.shape[2])[:, None] + x,
    "linspace of a type": lambda x: torch.linspace(0, 5, x.shape[3], dtype=torch.float64) + x,
    "parts": lambda x: torch.cat([part.sum(2) for part in torch.tensor_split(x, 4, 2)], 1),
    "parts between places": lambda x: torch.cat([p.sum(-1) for p in x.tensor_split((2, 5), dim=-1)], 2),
    "parts that overlap": lambda x: torch.cat([p.sum(3) for p in torch.tensor_split(x, [5, 2], 3)], 2),
    "affine_grid": lambda x: F.grid_sample(
        x, F.affine_grid(identity(x), x.shape, align_corners=True), align_corners=True
    ),
    "affine_grid inside": lambda x: F.affine_grid(identity(x), x.shape, align_corners=False),
    "mean of planes": lambda x: F.avg_pool2d(x.clamp(min=1e-6).pow(3), (x.size(-2), x.size(-1))).pow(1 / 3),
    "maximum of planes": lambda x: F.max_pool2d(x, x.shape[2:]),
    "maximum of lines": lambda x: torch.max_pool1d(x.flatten(2), x.shape[2] * x.shape[3]),
    "adaptive mean": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "adaptive mean of one dimension": lambda x: F.adaptive_avg_pool2d(x, (None, 5)),
    "adaptive mean of lines": lambda x: F.adaptive_avg_pool1d(x.flatten(2), 7),
    "adaptive mean to one line": lambda x: F.adaptive_avg_pool2d(x, (1, 2)),
    "adaptive maximum": lambda x: F.adaptive_max_pool2d(x, (3, 3)),
    "adaptive mean of volumes": lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)),
}


@pytest.mark.parametrize("opset", [13, None])
@pytest.mark.parametrize("name", CASES)
def test_open_sizes(name: str, opset: int | None) -> None:
    function: Any = CASES[name]
    if opset is not None and name.startswith("affine_grid"):
        opset = 16  # GridSample came with it
    axes = {"x": {0: "batch", 2: "height", 3: "width"}}
    session = open_session(
        bytes(tonnx.export(function, torch.randn(2, 3, 7, 9), dynamic_axes=axes, opset_version=opset))
    )
    for batch, height, width in [(2, 7, 9), (1, 12, 8), (3, 5, 6), (1, 1, 1)]:
        x = torch.randn(batch, 3, height, width)
        (got,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.as_tensor(got), function(x), rtol=1e-4, atol=1e-5)


SLICES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the first": lambda x: x[:, :9] * 2,
    "the last": lambda x: x[:, -3:],
    "all but the last": lambda x: torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1),
    "the middle": lambda x: x[:, 2:-2].sum(1),
    "the best": lambda x: x.sum(2).argsort(1, descending=True)[:, :4],
    "the best by their order": lambda x: x.flatten(1).topk(5).values[:, :9],
    "of both ends": lambda x: x[None, :, -4:, 1:],
}


@pytest.mark.filterwarnings("ignore:where axis 1 of input 'x' is 0")
@pytest.mark.parametrize("name", SLICES)
def test_slices_that_are_longer_than_some_sizes(name: str) -> None:
    function: Any = SLICES[name]
    axes = {"x": {0: "batch", 1: "length"}}
    session = open_session(bytes(tonnx.export(function, torch.randn(2, 6, 5), dynamic_axes=axes)))
    for batch, length in [(2, 6), (1, 1), (3, 2), (1, 3), (2, 20)]:
        x = torch.randn(batch, length, 5)
        (got,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.as_tensor(got), function(x))


def test_a_size_of_nothing_that_differs_is_a_warning() -> None:
    def forward(x):
        return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1) + x

    with pytest.warns(UserWarning, match="axis 1 of input 'x' is 0"):
        tonnx.export(forward, torch.randn(2, 6), dynamic_axes={"x": {1: "length"}})

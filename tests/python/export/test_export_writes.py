"""Writes through views that repeat or pick elements, and values at the borders, of exported models: as PyTorch has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import tonnx


class Calls(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def require_same(function: Callable[[Tensor], Any], example: Tensor, others: list[Tensor]) -> None:
    """At the sizes of the example, and with the first axis open at those of the others."""
    model = Calls(function)
    for shapes, tried in [(None, [example]), ([{0: "n"}], [example, *others])]:
        program = tonnx.export(model, example.clone(), dynamic_shapes=shapes)
        session = onnxruntime.InferenceSession(bytes(program), providers=["CPUExecutionProvider"])
        for x in tried:
            expected = model(x.clone())
            got = session.run(None, {i.name: x.numpy() for i in session.get_inputs()})
            for ours, theirs in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
                np.testing.assert_array_equal(ours, theirs.numpy())
                assert ours.dtype == theirs.numpy().dtype


def windows(x: Tensor) -> Any:
    view = x.unfold(0, 2, 2)
    view.mul_(3)
    return x, view


def windows_with_gaps(x: Tensor) -> Any:
    x.unfold(0, 1, 3).add_(torch.arange(2.0).reshape(2, 1))
    return x


def one_window_of_a_part(x: Tensor) -> Any:
    x[1:].unfold(1, 1, 1)[:, 1].fill_(7)
    return x


def an_expanded_view(x: Tensor) -> Any:
    x.unsqueeze(0).expand(3, *x.shape).zero_()
    return x


def an_expanded_part(x: Tensor) -> Any:
    x[:1, :1].expand(3, 2).fill_(4)
    return x


def what_an_expanded_view_looks_at(x: Tensor) -> Any:
    view = x[0].expand(3, 2)
    x.neg_()
    return view


def a_grid(x: Tensor) -> Any:
    rows, columns = torch.meshgrid(x[:, 0], x[0], indexing="ij")
    x.add_(1)
    return rows, columns


def a_turned_grid(x: Tensor) -> Any:
    rows, columns = torch.meshgrid(x[:, 0], x[0], indexing="xy")
    x.mul_(2)
    rows.zero_()
    return x, rows, columns


def broadcast_tensors(x: Tensor) -> Any:
    first, second = torch.broadcast_tensors(x, x[0])
    x[0].neg_()
    return first, second


WRITES = [windows, windows_with_gaps, one_window_of_a_part, an_expanded_view, an_expanded_part]
WRITES += [what_an_expanded_view_looks_at, a_grid, a_turned_grid, broadcast_tensors]


@pytest.mark.parametrize("function", WRITES)
def test_writes_through_views(function: Callable[[Tensor], Any]) -> None:
    sizes = [size for size in (2, 5, 7) if size > 2 or function is not windows_with_gaps]
    require_same(function, torch.arange(8.0).reshape(4, 2) - 3, [torch.arange(2.0 * n).reshape(n, 2) for n in sizes])


def test_overlapping_windows_are_refused() -> None:
    with pytest.raises(tonnx.Error, match="a write to what unfold gives is not supported"):
        tonnx.export(lambda x: (x.unfold(0, 2, 1).add_(1), x)[1], torch.rand(4))


BORDERS: dict[str, Callable[[Tensor], Tensor]] = {
    "clamp from below": lambda x: x.clamp(min=0),
    "clamp from above": lambda x: x.clamp(max=0.5),
    "clamp on both sides": lambda x: x.clamp(-1, 1),
    "sign": torch.sign,
    "sgn": torch.sgn,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", BORDERS)
def test_infinities_and_nan(name: str, dtype: torch.dtype) -> None:
    values = torch.tensor([float("inf"), -float("inf"), float("nan"), -0.0, 2.5, -3.0], dtype=dtype)
    require_same(BORDERS[name], values, [values[:1], values[1:3]])


NOTHING: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "softmax of integers": (lambda x: x.softmax(1), torch.zeros(3, 0, dtype=torch.int64)),
    "remainder of zero": (lambda x: torch.remainder(x, 0), torch.zeros(2, 0, dtype=torch.int64)),
    "gather of another rank": (lambda x: torch.gather(torch.ones(5, 4), 1, x), torch.zeros(2, 0, 7, dtype=torch.int64)),
    "a product of pairs": (lambda x: torch.cartesian_prod(x[0], x[0]), torch.zeros(3, 0)),
    "a layer": (lambda x: torch.nn.functional.layer_norm(x, (3,)), torch.zeros(2, 0, 3)),
}


@pytest.mark.parametrize("name", NOTHING)
def test_tensors_without_elements(name: str) -> None:
    function, example = NOTHING[name]
    if name == "a product of pairs":
        return require_same(function, example, [])
    require_same(function, example, [torch.zeros(5, *example.shape[1:], dtype=example.dtype)])

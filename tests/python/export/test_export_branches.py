"""Branches that cannot run at the sizes of the example: the model is exported without them, and that is said."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from models import runtime_run
from torch import nn

import tonnx


class TwoRates(nn.Module):
    """One layer for each of two rates, of which each takes other sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.slow, self.fast = nn.Linear(8, 3), nn.Linear(16, 3)

    def forward(self, x: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
        return torch.cond(rate == 16, lambda: self.fast(x), lambda: self.slow(x))


@pytest.mark.parametrize("rate", [8, 16])
def test_a_branch_for_other_sizes_is_left_out(rate: int) -> None:
    model = TwoRates().eval()
    args = (torch.randn(2, rate), torch.tensor(rate))
    with pytest.warns(UserWarning, match=f"is left out, where the condition is {rate != 16}"):
        tonnx.export(model, args, "rates.onnx")
    with torch.no_grad():
        wanted = model.slow(args[0]) if rate == 8 else model.fast(args[0])
    exported = onnx.load("rates.onnx")
    feeds = {i.name: a.numpy() for i, a in zip(exported.graph.input, args, strict=True)}
    (found,) = runtime_run(exported, feeds)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_both_branches_stay_where_both_run() -> None:
    class Signs(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)

    tonnx.export(Signs(), (torch.ones(3),), "signs.onnx")
    exported = onnx.load("signs.onnx")
    name = exported.graph.input[0].name
    for x in (np.ones(3, np.float32), -np.ones(3, np.float32)):
        np.testing.assert_allclose(runtime_run(exported, {name: x})[0], x * 2 if x[0] > 0 else x - 1)

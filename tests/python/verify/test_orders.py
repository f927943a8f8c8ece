"""What a model leaves in any order is not judged by it; what has an order keeps it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import tonnx


class Best(nn.Module):
    """The best of a row, and what lies at their places."""

    def __init__(self, is_sorted: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.is_sorted = is_sorted

    def forward(self, x):
        values, places = self.linear(x).topk(40, sorted=self.is_sorted)
        return values, places, x.gather(1, places)


class Different(nn.Module):
    def forward(self, x):
        return torch.unique(x.round(), sorted=False)


def program(model: nn.Module, path: Path) -> Path:
    torch.export.save(torch.export.export(model.eval(), (torch.randn(3, 64),)), path)
    return path


@pytest.fixture
def best() -> Best:
    torch.manual_seed(0)
    return Best(is_sorted=False)


def test_pytorch_gives_another_order(best: Best) -> None:
    values = best(torch.randn(3, 64))[0]
    assert not torch.equal(values, values.sort(descending=True).values), "else nothing is tested here"


def test_export_does_not_judge_an_open_order(best: Best) -> None:
    tonnx.export(best, torch.randn(3, 64), verify=True)
    tonnx.export(Different(), torch.randn(3, 64), verify=True)


@pytest.mark.parametrize("ending", ["onnx", "py", "pt"])
def test_verify_does_not_judge_an_open_order(best: Best, tmp_path: Path, ending: str) -> None:
    source, target = program(best, tmp_path / "model.pt2"), tmp_path / f"model.{ending}"
    tonnx.convert(source, target)
    assert tonnx.verify(source, target).ok


def test_verify_judges_an_order_that_there_is(best: Best, tmp_path: Path) -> None:
    """The same values, the smallest first."""
    first = program(best, tmp_path / "first.pt2")

    class Reversed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.best = best

        def forward(self, x):
            values, places, found = self.best(x)
            return values.sort(dim=1).values, places, found

    second = program(Reversed(), tmp_path / "second.pt2")
    assert not tonnx.verify(first, second, outputs_only=True).ok


def test_onnx_of_open_order(tmp_path: Path) -> None:
    paths = []
    for is_sorted in (0, 1):
        node = helper.make_node("TopK", ["x", "k"], ["values", "places"], sorted=is_sorted)
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 64])]
        outputs = [helper.make_tensor_value_info("values", TensorProto.FLOAT, [3, 40])]
        outputs.append(helper.make_tensor_value_info("places", TensorProto.INT64, [3, 40]))
        k = helper.make_tensor("k", TensorProto.INT64, [1], [40])
        graph = helper.make_graph([node], "g", inputs, outputs, [k])
        paths.append(tmp_path / f"{is_sorted}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), paths[-1])
    assert tonnx.verify(*paths).ok

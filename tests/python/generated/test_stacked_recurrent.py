"""Recurrent layers that one module of several layers became are that module again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tonnx


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module, wants_state: bool) -> None:
        super().__init__()
        self.layer = layer
        self.wants_state = wants_state

    def forward(self, x: torch.Tensor) -> Any:
        y, state = self.layer(x)
        if not self.wants_state:
            return torch.tanh(y)
        return y, *(state if isinstance(state, tuple) else (state,))


class Two(nn.Module):
    """Two modules, the second of which is given what the first gives."""

    def __init__(self, hidden: int = 4) -> None:
        super().__init__()
        self.first = nn.GRU(3, 4)
        self.second = nn.GRU(4, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)[0])[0]


class Between(nn.Module):
    """What is between the layers is needed."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, _ = self.layer(x)
        return y, self.layer(y)[0]


class Started(nn.Module):
    """The layers begin with a state that is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(3, 4, num_layers=2)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return self.layer(x, h)[0]


def check(model: nn.Module, folder: Path, *inputs: torch.Tensor) -> str:
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    model.eval()
    path = folder / "net.onnx"
    tonnx.export(model, inputs, path)
    tonnx.convert(path, folder / "net.py")
    tonnx.convert(path, folder / "net.pt2")
    tonnx.convert(path, folder / "net.pt")
    with torch.no_grad():
        want = model(*inputs)
        for form in (
            tonnx.convert(path),
            torch.export.load(folder / "net.pt2").module(),
            torch.jit.load(folder / "net.pt"),
        ):
            torch.testing.assert_close(form(*inputs), want, rtol=1e-4, atol=1e-5)
    return (folder / "net.py").read_text()


@pytest.mark.parametrize("wants_state", [False, True])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_layers_of_one_module(kind: Any, both: bool, wants_state: bool, tmp_path: Path) -> None:
    model = Recurrent(kind(3, 4, num_layers=3, bidirectional=both), wants_state)
    text = check(model, tmp_path, torch.randn(5, 2, 3))
    end = ", bidirectional=True" if both else ""
    assert f"nn.{kind.__name__}(3, 4, num_layers=3{end})" in text
    assert "flatten" not in text
    if not wants_state:
        converted = tonnx.convert(tmp_path / "net.onnx").state_dict()
        model.load_state_dict(converted)


def test_batches_first(tmp_path: Path) -> None:
    model = Recurrent(nn.LSTM(3, 4, num_layers=2, batch_first=True), False)
    text = check(model, tmp_path, torch.randn(2, 5, 3))
    assert "nn.LSTM(3, 4, num_layers=2, batch_first=True)" in text
    assert "transpose" not in text


@pytest.mark.parametrize("hidden", [4, 5])
def test_two_modules_stay_two(hidden: int, tmp_path: Path) -> None:
    model = Two(hidden)
    assert "num_layers" not in check(model, tmp_path, torch.randn(5, 2, 3))
    model.load_state_dict(tonnx.convert(tmp_path / "net.onnx").state_dict())


def test_what_is_between_is_needed(tmp_path: Path) -> None:
    assert "num_layers" not in check(Between(), tmp_path, torch.randn(5, 2, 4))


def test_a_state_that_is_given(tmp_path: Path) -> None:
    check(Started(), tmp_path, torch.randn(5, 2, 3), torch.randn(2, 2, 4))

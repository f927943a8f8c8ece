"""Places that hold layers alone, what each layer makes of the same, and loops with a step behind the call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from generated_code import load
from test_module_classes import IMAGES, Bottleneck, check_format, classes_of, code_of_network
from torch import nn

import tonnx


class Masking(nn.Module):
    """Each layer makes the same mask of the same lengths, inside of a place that has the layers alone."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(3, 4)
        self.encoder = nn.ModuleDict({"layers": nn.ModuleList(MaskingLayer() for _ in range(3))})
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        lengths, x = x[:, 0, :, 0] * 16, self.stem(x[:, :, 0].transpose(1, 2))
        for layer in self.encoder["layers"]:
            x = layer(x, lengths)
        return x, self.head(x[:, 0])


class MaskingLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(4, 4) for _ in range(4))

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        q, k, v = (f(x).unflatten(-1, (2, 2)).transpose(1, 2) for f in (self.q, self.k, self.v))
        mask = torch.where(lengths[:, None, None] > 3, 0.0, -10000.0)
        y = nn.functional.scaled_dot_product_attention(q, k, v, mask)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Stepping(nn.Module):
    """A loop with a step that takes nothing but what the layer gives."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Bottleneck(3, 3, 1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for layer in self.layers:
            y = torch.tanh(layer(y))
        return x * y


class Wrapped(nn.Module):
    """Classes that only call their one member, and are there more than once."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Wrapper(), Wrapper()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.first(x) + self.second(x)


class Wrapper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 1), nn.SiLU(), nn.Conv2d(4, 4, 1), nn.SiLU(), nn.Conv2d(4, 3, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


def test_a_mask_is_made_once_and_a_place_around_layers_alone_is_a_loop() -> None:
    code = code_of_network(Masking)
    assert classes_of(code) == ["MaskingLayer", "Model"]
    assert 'self.encoder = nn.ModuleDict({"layers": nn.ModuleList(MaskingLayer() for _ in range(3))})' in code
    assert code.count("torch.where(") == 1 and "def forward(self, x, mask):" in code
    assert re.search(r'for layer in self\.encoder\["layers"\]:\n +(\w) = layer\(\1, mask\)', code)
    assert re.search(r"return (\w), self\.head\(\1\[:, 0\]\)", code)


def test_three_layers_of_one_tensor_go_through_the_compiler() -> None:
    code_of_network(Masking)
    model, want = load(Path("m.py")), load(Path("m.py"))(IMAGES)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(IMAGES), want)
    torch.testing.assert_close(torch.export.export(model, (IMAGES,)).module()(IMAGES), want)


def test_a_loop_has_a_step_behind_the_call() -> None:
    torch.manual_seed(0)
    original = Stepping().eval()
    torch.onnx.export(original, (IMAGES,), "m.onnx", dynamo=False)
    tonnx.convert("m.onnx", "m.py")
    code = Path("m.py").read_text()
    assert re.search(r"for layer in self\.layers:\n +(\w) = torch\.tanh\(layer\(\1\)\)", code)
    torch.testing.assert_close(load(Path("m.py"))(IMAGES), original(IMAGES), rtol=1e-4, atol=1e-4)


def test_what_only_calls_its_member_is_a_sequential() -> None:
    code = code_of_network(Wrapped)
    assert classes_of(code) == ["First", "Model"]
    assert "class First(nn.Sequential):" in code and code.count("def forward") == 1


@pytest.mark.parametrize("network", [Masking, Wrapped])
def test_formatters_have_nothing_to_say(network: type[nn.Module]) -> None:
    code_of_network(network)
    check_format()

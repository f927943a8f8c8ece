"""Parts that only call their members one behind the other are an nn.Sequential where they are made."""

from __future__ import annotations

from collections import OrderedDict

import torch
from test_module_classes import check_format, classes_of, code_of_network
from torch import nn


class Feed(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(features, 2 * features)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(2 * features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Layer(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.ffn = Feed(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.ffn(self.norm(x))


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(Layer(16) for _ in range(3)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Sizes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = Layer(16), nn.Linear(16, 8), Layer(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.middle(self.first(x)))


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(channels, channels, 1), nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.b(torch.relu(self.a(x)))


class Stages(nn.Module):
    """A chain of chains, one of which has one member only, under names that are no attributes."""

    def __init__(self) -> None:
        super().__init__()
        stages = [
            OrderedDict((f"block{n}-{i}", Residual(3)) for i in range(count)) for n, count in ((1, 1), (2, 3), (3, 4))
        ]
        self.trunk = nn.Sequential(
            OrderedDict((f"block{n}", nn.Sequential(stage)) for n, stage in enumerate(stages, start=1))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.trunk(x) * 2


def test_a_class_that_is_made_at_one_place_is_written_there() -> None:
    code = code_of_network(Layers)
    assert classes_of(code) == ["Layer", "Model"]
    assert "self.ffn = nn.Sequential(OrderedDict(fc1=nn.Linear(16, 32), act=nn.GELU(), fc2=nn.Linear(32, 16)))" in code
    check_format()


def test_what_the_class_was_given_stands_there_too() -> None:
    code = code_of_network(Sizes)
    assert classes_of(code) == ["Layer", "Model"]
    assert "fc1=nn.Linear(features, 2 * features), act=nn.GELU(), fc2=nn.Linear(2 * features, features)" in code
    check_format()


def test_a_chain_of_chains_is_one_statement() -> None:
    code = code_of_network(Stages)
    assert classes_of(code) == ["Residual", "Model"]
    assert 'block1=nn.Sequential(OrderedDict({"block1-0": Residual()}))' in code
    assert "self.trunk(x)" in code
    check_format()


class Transition(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.relu = nn.ReLU()
        self.conv = nn.Conv2d(inputs, inputs // 2, 1)
        self.pool = nn.AvgPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(self.conv(self.relu(self.norm(x))))


class Transitions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.first, self.second = Transition(16), Transition(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.second(self.first(self.stem(x))))


def test_a_class_of_chains_has_no_forward() -> None:
    code = code_of_network(Transitions)
    assert (
        classes_of(code) == ["First", "Model"]
        and "class First(nn.Sequential):" in code
        and code.count("def forward") == 1
    )
    assert "self.relu = nn.ReLU()" in code and "self.pool = nn.AvgPool2d(2)" in code
    check_format()


class Windowed(nn.Module):
    """One window of all rows and columns: its reshapes become one on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.proj = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x.reshape(2, 1, 3, 1, 16, 16).permute(0, 1, 3, 2, 4, 5).reshape(2, 48, 16))
        x = self.proj(torch.tanh(x))
        return x.reshape(2, 1, 1, 3, 16, 16).permute(0, 1, 3, 2, 4, 5).reshape(2, 3, 16, 16)


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(16), Windowed()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.attn(self.norm(x))


class Windows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Around(), Around())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def test_reshapes_that_became_one_stay_in_their_module() -> None:
    code = code_of_network(Windows)
    assert classes_of(code) == ["Windowed", "Around", "Model"]
    assert "return x + self.attn(self.norm(x))\n" in code
    assert ".unflatten(1, (3, 16))" in code

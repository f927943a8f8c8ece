"""Classes of generated code: what differs between blocks is an argument, and what repeats is a loop."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from allowed_code import check_python
from generated_code import load
from torch import nn

import tonnx

IMAGES = torch.rand(2, 3, 16, 16)


def conv_norm(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.Hardswish(),
    )


class Inverted(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = 2 * inputs
        self.is_residual = stride == 1 and inputs == outputs
        self.block = nn.Sequential(
            conv_norm(inputs, wide, 1), conv_norm(wide, wide, kernel, stride, wide), nn.Conv2d(wide, outputs, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.block(x)
        return y + x if self.is_residual else y


class Mobile(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            conv_norm(3, 8, 3),
            Inverted(8, 8, 3, 1),
            Inverted(8, 12, 3, 2),
            Inverted(12, 12, 5, 1),
            Inverted(12, 20, 5, 2),
            conv_norm(20, 24, 1),
            conv_norm(24, 24, 3, 2),
        )
        self.classifier = nn.Sequential(nn.Dropout(), nn.Linear(24, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


class Repeating(nn.Module):
    """The same few layers again and again, with other arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv_norm(3, 1280, 1),
            *(conv_norm(1280, 1280, kernel, stride, 1280) for kernel in (3, 5, 7) for stride in (1, 2)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, stride, 1)
        self.norm = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.conv2(torch.relu(self.conv1(x))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.layer1 = nn.Sequential(Bottleneck(8, 16, 1), Bottleneck(16, 16, 1))
        self.layer2 = nn.Sequential(Bottleneck(16, 24, 2), *(Bottleneck(24, 24, 1) for _ in range(3)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer2(self.layer1(self.stem(x)))


class DenseLayer(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, 4, 3, padding=1)

    def forward(self, parts: list[torch.Tensor]) -> torch.Tensor:
        return self.conv(torch.relu(self.norm(torch.cat(parts, 1))))


class DenseBlock(nn.Module):
    def __init__(self, count: int, inputs: int) -> None:
        super().__init__()
        for i in range(count):
            self.add_module(f"layer{i + 1}", DenseLayer(inputs + 4 * i))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [x]
        for layer in self.children():
            parts.append(layer(parts))
        return torch.cat(parts, 1)


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            OrderedDict(
                conv0=nn.Conv2d(3, 8, 3),
                block1=DenseBlock(6, 8),
                pool=nn.MaxPool2d(2),
                block2=DenseBlock(5, 32),
            )
        )
        self.head = nn.Linear(52, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).mean((2, 3)))


class Accumulating(nn.Module):
    """A loop whose step is more than a call, and lists that none is: the last layer is called twice, or out of turn."""

    def __init__(self) -> None:
        super().__init__()
        self.adding = nn.ModuleList(Bottleneck(3, 3, 1) for _ in range(4))
        self.twice = nn.ModuleList(Bottleneck(3, 3, 1) for _ in range(3))
        self.turned = nn.ModuleList(Bottleneck(3, 3, 1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.adding:
            x = x * layer(x)
        for layer in self.twice:
            x = x + layer(x)
        x = x + self.twice[2](x)
        for layer in reversed(self.turned):
            x = x - layer(x)
        return x


class Named(nn.Module):
    """A layer that is called as the flag would be."""

    def __init__(self, is_residual: bool) -> None:
        super().__init__()
        self.conv, self.shortcut = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 1)
        self.is_residual = is_residual

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.shortcut(torch.relu(self.conv(x)))
        return y + x if self.is_residual else y


class WithNames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Named(True), Named(False), Named(True), Named(False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Biased(nn.Module):
    """The first of several layers has the table that all of them use."""

    def __init__(self, has_table: bool) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16, bias=False) for _ in range(3))
        if has_table:
            self.table = nn.Embedding(16, 3)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if not bias.is_floating_point():
            bias = self.table(bias).permute(2, 0, 1)
        weights = torch.softmax(self.query(x) @ self.key(x).transpose(2, 3) + bias, -1)
        return x + torch.tanh(weights @ self.value(x)), bias


class Tables(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Biased(i == 0) for i in range(3))
        self.register_buffer("distances", (torch.arange(16)[:, None] - torch.arange(16)).abs())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = self.distances
        for layer in self.layers:
            x, bias = layer(x, bias)
        return x


class Named2d(nn.Sequential):
    """Members with names that are no attributes, one behind the other."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        for i in range(3):
            self.add_module(f"conv-{i}", nn.Conv2d(channels, channels, 3, padding=1))


class Chains(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Named2d(3), Named2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.first(x)) + self.second(x)


class Gate(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.inner(x)) * self.outer(x)


class Roll(nn.Module):
    """Another way to mix."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Conv2d(channels, 2 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k = self.qkv(torch.roll(x, [1, 1], [2, 3])).chunk(2, 1)
        return self.proj(torch.tanh(q) * k)


class MixingBlock(nn.Module):
    def __init__(self, channels: int, mix: nn.Module) -> None:
        super().__init__()
        self.norm, self.mix = nn.BatchNorm2d(channels), mix
        self.mlp = nn.Sequential(nn.Conv2d(channels, 2 * channels, 1), nn.GELU(), nn.Conv2d(2 * channels, channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mix(self.norm(x))
        return x + self.mlp(x)


class Mixers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.blocks = nn.Sequential(*(MixingBlock(8, (Gate, Roll)[i % 2](8)) for i in range(4)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks(self.stem(x))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = (f(x).unflatten(-1, (4, 4)).transpose(1, 2) for f in (self.query, self.key, self.value))
        return nn.functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)


class Output(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.norm = nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        return self.norm(self.dense(x) + before)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.output = Attention(), Output()

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.output(self.attention(x, mask), x)


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(1, 2)
        mask = (x[..., 0] > 0.1)[:, None, None]
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Activated(nn.Module):
    """The same few layers, with one activation or another, or none."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(inputs, 1280, kernel, padding=kernel // 2, groups=groups, bias=False),
                    nn.BatchNorm2d(1280, eps=0.001),
                    *([] if activation is None else [activation()]),
                )
                for inputs, kernel, groups, activation in (
                    (3, 1, 1, nn.ReLU),
                    (1280, 3, 1280, nn.Hardswish),
                    (1280, 5, 1280, None),
                    (1280, 3, 1280, nn.ReLU),
                    (1280, 7, 1280, nn.ReLU),
                    (1280, 5, 1280, nn.Hardswish),
                )
            )
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


class Shallow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(4, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.conv1(x), self.conv2(x)], 1)


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(8, 1, 1))
        self.inner = Shallow()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(torch.tanh(x)) * self.scale


class Holder(nn.Module):
    """What is inside of it has classes inside, or none."""

    def __init__(self, inputs: int, part: nn.Module) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, 4, 3, padding=1)
        self.part = part
        self.out = nn.Conv2d(8, 6, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.conv(x))
        return torch.relu(self.out(self.part(y))) * 0.5 + torch.sigmoid(self.out(self.part(y * 2)))


class Depths(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Holder(3, Shallow())
        self.second = Holder(6, Deep())
        self.third = Holder(6, Shallow())
        self.fourth = Holder(6, Deep())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fourth(self.third(self.second(self.first(x))))


class Heads(nn.Module):
    """One head for each size, as detectors have them."""

    def __init__(self) -> None:
        super().__init__()
        self.stems = nn.ModuleList(nn.Conv2d(3, n, 3, padding=1, stride=i) for i, n in ((1, 8), (2, 12), (4, 20)))
        self.heads = nn.ModuleList(nn.Sequential(conv_norm(n, 16, 3), nn.Conv2d(16, n, 1)) for n in (8, 12, 20))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat(
            [head(torch.tanh(stem(x))).flatten(1) for head, stem in zip(self.heads, self.stems, strict=True)], 1
        )


class Grid(nn.Module):
    """Lists in a list, all of whose sizes grow: the outer loop would be taken for the inner one."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.ModuleList(
            nn.ModuleList(nn.Conv2d(3, self.size(row, column), 1) for column in range(4)) for row in range(4)
        )

    def size(self, row: int, column: int) -> int:
        return 2 + row + 3 * column

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.tanh(conv(x)) for row in self.rows for conv in row], 1)


class Products(Grid):
    """The outer number is a factor of the inner one."""

    def size(self, row: int, column: int) -> int:
        return 2 + (2 + row) * column


NETWORKS = {
    "grid": Grid,
    "products": Products,
    "heads": Heads,
    "activated": Activated,
    "depths": Depths,
    "attending": Attending,
    "mixers": Mixers,
    "tables": Tables,
    "chains": Chains,
    "names": WithNames,
    "mobile": Mobile,
    "repeating": Repeating,
    "residual": Residual,
    "dense": Dense,
    "accumulating": Accumulating,
}


def code_of(name: str) -> str:
    return code_of_network(NETWORKS[name])


def code_of_network(network: type[nn.Module]) -> str:
    torch.manual_seed(0)
    original = network().eval()
    for module in original.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    tonnx.export(original, (IMAGES,), "m.onnx", do_constant_folding=False)
    tonnx.convert("m.onnx", "m.py")
    converted, code = load(Path("m.py")), Path("m.py").read_text()
    torch.testing.assert_close(converted(IMAGES), original(IMAGES), rtol=1e-4, atol=1e-4)
    fresh = network().eval()
    missing, extra = fresh.load_state_dict(converted.state_dict(), strict=False)
    assert all(key.endswith("num_batches_tracked") for key in missing) and not extra
    torch.testing.assert_close(fresh(IMAGES), original(IMAGES))
    check_python(code)
    return code


def classes_of(code: str) -> list[str]:
    return re.findall(r"^class (\w+)", code, re.MULTILINE)


def test_a_shortcut_that_not_all_have_is_an_argument() -> None:
    code = code_of("mobile")
    assert classes_of(code) == ["ConvBNHardswish", "Inverted", "Model"]
    assert "return y + x if self.shortcut else y" in code
    assert "Inverted(8, 3, 12, shortcut=False, stride=2)" in code
    assert "kernel_size, stride, kernel_size // 2, groups=groups" in code and "2 * in_channels" in code


def test_a_member_that_is_called_shortcut_stays() -> None:
    code = code_of("names")
    assert classes_of(code) == ["Named", "Named2", "Model"]
    assert "self.shortcut = nn.Conv2d(3, 3, 1)" in code


def test_layers_that_repeat_are_a_class() -> None:
    code = code_of("repeating")
    assert classes_of(code) == ["ConvBNHardswish", "Model"]
    assert "def __init__(self, in_channels, kernel_size, stride=1, groups=1):" in code
    assert "ConvBNHardswish(1280, 5, stride=2, groups=1280)" in code


def test_an_activation_that_not_all_have_is_given() -> None:
    code = code_of("activated")
    assert classes_of(code) == ["ConvBNActivation", "Model"]
    assert "activation=nn.ReLU):" in code and "            activation(),\n" in code
    assert re.search(r"ConvBNActivation\(1280, 5, groups=1280, activation=nn.Identity\)", code)
    assert re.search(r"ConvBNActivation\(1280, 7, groups=1280\)", code)
    assert "kernel_size, padding=kernel_size // 2, groups=groups, bias=False" in code


def test_parts_that_go_deeper_than_others_share_their_class() -> None:
    code = code_of("depths")
    assert classes_of(code) == ["Shallow", "Deep", "Holder", "Model"]
    assert "self.part = part" in code
    assert "Holder(3, Shallow())" in code and "Holder(6, Deep())" in code


def test_layers_without_weights_are_part_of_the_sequence_that_has_their_number() -> None:
    code = code_of("mobile")
    assert "nn.Hardswish()" in code and "F.hardswish" not in code
    assert "self.classifier = nn.Sequential(nn.Identity(), nn.Linear(24, 5))" in code


def test_a_member_that_not_all_have_is_made_after_a_flag() -> None:
    code = code_of("residual")
    assert classes_of(code) == ["Bottleneck", "Model"]
    assert "Bottleneck(16, 24, stride=2, downsample=True), *(Bottleneck(24, 24) for _ in range(3))" in code
    assert "+ self.downsample(x)" in code


def test_what_the_graph_tells_is_called_so() -> None:
    code = code_of("attending")
    assert code.count("def forward(self, x, mask):") == 2
    assert "def forward(self, x, residual):" in code and "+ residual)" in code
    assert re.search(r"\n        mask = ", code)
    assert re.search(r"\n        q, k, v = \(f\(x\)\.\S+.* for f in \(self\.query, self\.key, self\.value\)\)", code)
    assert not re.search(r"\n        [qkv] = F.scaled_dot_product_attention", code)


def test_a_member_of_another_class_is_given() -> None:
    code = code_of("mixers")
    assert classes_of(code) == ["Gate", "Roll", "MixingBlock", "Model"]
    assert "def __init__(self, mix):" in code and "self.mix = mix" in code
    assert "MixingBlock(Gate()), MixingBlock(Roll()), MixingBlock(Gate()), MixingBlock(Roll())" in code


def test_numbered_members_are_made_and_called_in_loops() -> None:
    code = code_of("dense")
    assert classes_of(code) == ["DenseLayer", "DenseBlock", "Model"]
    assert 'self.add_module(f"layer{i + 1}", DenseLayer(channels + 4 * i))' in code
    assert "for layer in self.children():\n            x = torch.cat([x, layer(x)], 1)" in code
    assert "self.features = nn.Sequential(\n            OrderedDict(\n                conv0=nn.Conv2d(3, 8, 3)" in code


def test_members_that_differ_in_one_number_are_chosen_by_it() -> None:
    code = code_of("heads")
    assert re.search(r"self\.heads = nn\.ModuleList\(\n +nn\.Sequential\(", code)
    assert " for n in (8, 12, 20)\n" in code and "nn.Conv2d(16, n, 1)" in code


def test_loops_do_not_stand_in_loops_of_the_same_variable() -> None:
    assert "nn.Conv2d(3, j + 2 + 3 * i, 1) for i in range(4)) for j in range(4))" in code_of("grid")
    assert "nn.Conv2d(3, 2 + (j + 2) * i, 1) for i in range(4)) for j in range(4))" in code_of("products")


def test_a_table_of_the_first_layer_is_looked_up_around_all() -> None:
    code = code_of("tables")
    assert classes_of(code) == ["Biased", "Model"]
    assert "Biased(table=True), Biased(), Biased()" in code
    assert "self.layers[0].table(" in code
    assert re.search(r"for layer in self\.layers:\n +(\w+) = layer\(\1, \w+\)", code)


def test_what_only_calls_its_members_is_a_sequential() -> None:
    code = code_of("chains")
    assert classes_of(code) == ["First", "Model"]
    assert "class First(nn.Sequential):" in code
    assert code.count("def forward") == 1


def test_a_loop_has_a_step_beside_the_call() -> None:
    code = code_of("accumulating")
    assert re.search(r"for \w+ in self\.adding:\n +(\w+) = \1 \* \w+\(\1\)", code)
    assert len(re.findall(r"for \w+ in self", code)) == 1


@pytest.mark.parametrize("name", NETWORKS)
def test_formatters_have_nothing_to_say(name: str) -> None:
    code_of(name)
    check_format()


def check_format() -> None:
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "--diff", "m.py"]
    done = subprocess.run(ruff, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout

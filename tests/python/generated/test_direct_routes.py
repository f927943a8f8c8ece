"""Code of a program is as good as code of the ONNX that the program becomes: the same layers, types and values."""

from __future__ import annotations

import collections
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tonnx

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.Identity)
LINES = 1.05  # times as many as by way of ONNX, and two for each layer that ONNX does not have


class Attention(nn.Module):
    """With a mask that is computed, and tensors that are made as floats."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.last = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        mask = torch.full((n, n), float("-inf")).triu(1)
        y, _ = self.attention(x, x, x, attn_mask=mask, need_weights=False)
        return self.last(y) + torch.arange(n, dtype=torch.float32)[None, :, None] + torch.zeros(1)


class Language(nn.Module):
    """Whose last layer has the weight of the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 8)
        self.recurrent = nn.GRU(8, 8, 2, batch_first=True)
        self.head = nn.Linear(8, 12, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(self.head(self.recurrent(self.embedding(ids))[0]), -1)


class Norm(nn.Module):
    """As language models write it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Gelu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))


class Masked(nn.Module):
    """Attention that is written out, with masks of numbers alone and of the input, and rows as those of one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.gelu = Norm(16), Gelu()
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.norm(x)
        q, k, v = (layer(x).view(2, 5, 4, 4).transpose(1, 2) for layer in (self.q, self.k, self.v))
        place = torch.arange(5)[None, None]
        seen = (place.unsqueeze(-1) >= 0) & torch.ones(2, 1, 5, 5, dtype=torch.bool)
        y = nn.functional.scaled_dot_product_attention(q, k, v, seen.expand(2, 1, 5, 5), scale=0.5)
        scores = q @ k.transpose(-1, -2) / 2 + (1.0 - mask[:, None, None, :]) * torch.finfo(torch.float32).min
        y = y + scores.softmax(-1) @ v
        y = torch.addmm(self.o.bias, y.transpose(1, 2).reshape(-1, 16), self.o.weight.t()).view(2, 5, 16)
        return self.gelu(y * 1.0)


def image_layers() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d((3, 2)), nn.Dropout(0.0),
        nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.LeakyReLU(0.2), nn.Flatten(), nn.Dropout(0.1), nn.Linear(48, 4),
    )  # fmt: skip


def encoder() -> nn.Module:
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]] = {
    "attention": (Attention, (torch.rand(2, 5, 16),)),
    "language": (Language, (torch.randint(0, 12, (2, 5)),)),
    "masked": (Masked, (torch.rand(2, 5, 16), torch.tensor([[1.0, 1, 1, 1, 1], [1, 1, 0, 0, 0]]))),
    "image": (image_layers, (torch.rand(2, 3, 12, 12),)),
    "encoder": (encoder, (torch.rand(2, 5, 16),)),
}


def layers_of(module: nn.Module) -> collections.Counter[str]:
    """A batch norm may have become a part of what is in front of it, and an inference has no dropout."""
    own = [m for m in module.modules() if type(m).__module__.startswith("torch.nn") and not isinstance(m, CONTAINERS)]
    return collections.Counter(type(m).__name__ for m in own)


def written(source: Path, target: Path) -> tuple[str, Any]:
    tonnx.convert(source, target)
    spec = importlib.util.spec_from_file_location(target.stem, target)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return target.read_text(), module.Model.load()


@pytest.mark.parametrize("ending", ["pt2", "pt"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_direct_way_is_as_good_as_that_by_way_of_onnx(name: str, ending: str, tmp_path: Path) -> None:
    make, inputs = NETWORKS[name]
    torch.manual_seed(0)
    model = make().eval()
    source = tmp_path / f"model.{ending}"
    if ending == "pt2":
        torch.export.save(torch.export.export(model, inputs), source)
    else:
        torch.jit.trace(model, inputs, check_trace=False).save(str(source))
    tonnx.convert(source, tmp_path / "model.onnx")
    code, direct = written(source, tmp_path / "direct.py")
    other, around = written(tmp_path / "model.onnx", tmp_path / "around.py")
    more = layers_of(direct) - layers_of(around)
    assert not layers_of(around) - layers_of(direct), f"{layers_of(around)} and {layers_of(direct)}"
    assert code.count("\n") <= LINES * other.count("\n") + 2 * more.total()
    with torch.no_grad():
        torch.testing.assert_close(direct(*inputs), model(*inputs))
        halves = [x.bfloat16() if x.is_floating_point() else x for x in inputs]
        assert direct.bfloat16()(*halves).dtype == torch.bfloat16


def test_classes_have_the_names_that_they_had(tmp_path: Path) -> None:
    model = Masked()
    inputs = NETWORKS["masked"][1]

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.inner(x, mask) + 1

    torch.export.save(torch.export.export(Around().eval(), inputs), tmp_path / "model.pt2")
    code, _ = written(tmp_path / "model.pt2", tmp_path / "model.py")
    assert "class Masked(nn.Module):" in code


def test_a_live_module_takes_the_same_way(tmp_path: Path) -> None:
    model, inputs = Attention().eval(), NETWORKS["attention"][1]
    tonnx.export(model, inputs, tmp_path / "model.onnx")
    program = torch.export.export(model, inputs)
    torch.export.save(program, tmp_path / "model.pt2")
    converted = tonnx.convert(tmp_path / "model.pt2")
    assert layers_of(converted) == layers_of(tonnx.convert(tmp_path / "model.onnx"))
    with torch.no_grad():
        torch.testing.assert_close(converted.eval()(*inputs), model(*inputs))


def test_shared_weights_are_one_in_a_program(tmp_path: Path) -> None:
    """The module that has the weight of another one calls it by its own name in .onnx, and is the same tensor in .pt2."""
    model, inputs = Language().eval(), NETWORKS["language"][1]
    torch.export.save(torch.export.export(model, inputs), tmp_path / "model.pt2")
    tonnx.convert(tmp_path / "model.pt2", tmp_path / "model.onnx")
    tonnx.convert(tmp_path / "model.onnx", tmp_path / "back.pt2")
    back = torch.export.load(tmp_path / "back.pt2")
    with torch.no_grad():
        torch.testing.assert_close(back.module()(*inputs), model(*inputs))
    assert sum(tuple(x.shape) in {(12, 8), (8, 12)} for x in back.state_dict.values()) == 1

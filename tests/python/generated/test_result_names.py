"""Constants that an exporter computed, and called as its operators are, belong to the modules that need them."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import torch
from allowed_code import check_python
from generated_code import load
from torch import nn

import tonnx

X = torch.rand(2, 4, 8)


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.register_buffer("table", torch.rand(4, 8))
        self.register_buffer("mask", torch.rand(4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(self.inner(x * self.mask) + self.table)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(Shifted() for _ in range(4)))
        for layer in self.layers[2:]:  # which exporters keep once
            layer.mask = self.layers[1].mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def exported() -> nn.Module:
    torch.manual_seed(0)
    model = Layers().eval()
    tonnx.export(model, (X,), "m.onnx", do_constant_folding=False)
    proto = onnx.load("m.onnx")
    new = {}
    for i in range(4):
        new |= {f"layers.{i}.table": f"permute_{i}" if i else "permute", f"layers.{i}.mask": f"masked_fill_{i}"}
    for initializer in proto.graph.initializer:
        initializer.name = new.get(initializer.name, initializer.name)
    for node in proto.graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
    onnx.save(proto, "m.onnx")
    return model


def test_each_module_has_its_own() -> None:
    original = exported()
    tonnx.convert("m.onnx", "m.py")
    code = Path("m.py").read_text()
    assert re.findall(r"^class (\w+)", code, re.MULTILINE) == ["Shifted", "Model"]
    assert code.count("self.register_buffer(") == 2 and "nn.Parameter" not in code
    assert re.search(r"nn\.Sequential\(\*\(Shifted\(\) for _ in range\(4\)\)\)", code)
    converted = load(Path("m.py"))
    torch.testing.assert_close(converted(X), original(X))
    assert sorted(key.split(".")[1] for key in converted.state_dict() if "constant" in key) == [*"00112233"]
    check_python(code)

"""What a model computes of its weights alone, the code computes too: each weight has the name and the sizes of the file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import tonnx

IMAGE = torch.rand(2, 8, 6, 6)
ROWS = torch.rand(2, 5, 8)


class Standardised(nn.Conv2d):
    """A convolution whose weights are normalised each time, and scaled by a number that follows from their sizes."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__(inputs, outputs, size)
        self.gain = nn.Parameter(torch.rand(outputs, 1, 1, 1))
        self.scale = self.weight[0].numel() ** -0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.weight.reshape(1, self.out_channels, -1)
        weight = F.batch_norm(rows, None, None, (self.gain * self.scale).view(-1), None, True, 0.0, 1e-6)
        return F.conv2d(x, weight.reshape_as(self.weight), self.bias)


class Convolutions(nn.Module):
    """Some of one kernel and some of another: the number is an argument, and `weight` is a name that is taken."""

    def __init__(self) -> None:
        super().__init__()
        widths = [(8, 8), (8, 12), (12, 12), (12, 8)]
        self.layers = nn.Sequential(*(Standardised(i, o, 1) for i, o in widths))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class WeightNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(5, 6, 3, padding=1), dim=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x))


class Attention(nn.Module):
    """Biases of query and value alone, a scale with a limit, and positions that a small network makes."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24, bias=False)
        self.q_bias, self.v_bias = nn.Parameter(torch.rand(8)), nn.Parameter(torch.rand(8))
        self.logit_scale = nn.Parameter(torch.rand(2, 1, 1))
        self.mlp = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2, bias=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = torch.cat([self.q_bias, torch.zeros(8), self.v_bias])
        q, k, v = F.linear(x, self.qkv.weight, bias).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        i = torch.arange(5)
        places = torch.stack([i[:, None] - i[None], i[:, None] + i[None]], -1).to(torch.float32)
        y = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        y = y * self.logit_scale.clamp(max=1.5).exp() + self.mlp(places).permute(2, 0, 1)
        return (y.softmax(-1) @ v).transpose(1, 2).flatten(2)


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Attention() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


class Scaled(nn.Module):
    """Group norms, and scales of channels that are vectors in the state dict."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1)
        self.gamma = nn.Parameter(torch.rand(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(self.norm(x)) * self.gamma.view(-1, 1, 1)


class Scales(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Scaled() for _ in range(3)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks(x)


class SeparatedBias(nn.Module):
    """A bias that is the module's own, and not of the convolution that it is added to."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Module()
        self.part.pointwise = nn.Conv1d(5, 6, 1, bias=False)
        self.part.bias = nn.Parameter(torch.rand(6, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part.pointwise(x) + self.part.bias


class Positions(nn.Module):
    """The first rows of a table of positions, and a norm whose weight is what is missing to 1."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Module()
        self.part.positions = nn.Embedding(9, 8)
        self.part.weight = nn.Parameter(torch.rand(8) - 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.part.positions(torch.arange(x.shape[1]))
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (1.0 + self.part.weight)


MODELS = {
    "standardised": (Convolutions, IMAGE),
    "weight_norm": (WeightNorm, ROWS),
    "attention": (Attending, ROWS),
    "scales": (Scales, IMAGE),
    "separated_bias": (SeparatedBias, ROWS),
    "positions": (Positions, ROWS),
}


def make(name: str) -> tuple[nn.Module, torch.Tensor]:
    """A model none of whose weights is 0 or 1, as after training."""
    torch.manual_seed(0)
    kind, x = MODELS[name]
    model = kind().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.rand_like(parameter) * 0.1)
    return model, x


def export_torchscript(model: nn.Module, x: torch.Tensor, path: Path) -> None:
    torch.onnx.export(
        model, (x,), path, dynamo=False, do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE
    )


def export_tonnx(model: nn.Module, x: torch.Tensor, path: Path) -> None:
    tonnx.export(model, (x,), path, do_constant_folding=False)


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model.load()


@pytest.mark.parametrize("export", [export_torchscript, export_tonnx])
@pytest.mark.parametrize("name", MODELS)
def test_weights_are_computed_with_and_not_lost(name: str, export: Any, tmp_path: Path) -> None:
    model, x = make(name)
    export(model, x, tmp_path / "model.onnx")
    tonnx.convert(tmp_path / "model.onnx", tmp_path / "model.py")
    converted = load(tmp_path / "model.py")
    with torch.no_grad():
        want = model(x)
        torch.testing.assert_close(converted(x), want, rtol=1e-4, atol=1e-5)
    state = converted.state_dict()
    for key, value in model.state_dict().items():
        assert key in state and torch.equal(state[key], value), key


@pytest.mark.parametrize("name", ["weight_norm", "scales", "separated_bias", "positions"])
def test_state_dict_loads_into_the_original(name: str, tmp_path: Path) -> None:
    model, x = make(name)
    export_torchscript(model, x, tmp_path / "model.onnx")
    other = MODELS[name][0]().eval()
    other.load_state_dict(tonnx.convert(tmp_path / "model.onnx").state_dict())
    with torch.no_grad():
        torch.testing.assert_close(other(x), model(x))


@pytest.mark.parametrize("name", MODELS)
def test_what_is_computed_of_weights_is_trained(name: str, tmp_path: Path) -> None:
    model, x = make(name)
    export_torchscript(model, x, tmp_path / "model.onnx")
    converted = tonnx.convert(tmp_path / "model.onnx")
    converted(x).square().sum().backward()
    assert all(p.grad is not None for p in converted.parameters())


def test_integers_that_nodes_make_floats_of_are_the_weights_of_a_layer() -> None:
    """A file that quantised its weights by itself: its scales have names, and are no weights of the model."""
    generator = np.random.default_rng(0)
    weight = generator.integers(-90, 90, (6, 3, 4)).astype(np.int8)
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["conv.weight_quantized"], ["conv.weight_cast"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["conv.weight_cast", "conv.weight_scale"], ["conv.weight_mul"]),
            helper.make_node("Add", ["conv.weight_mul", "conv.weight_shift"], ["conv.weight_add"]),
            helper.make_node("Conv", ["x", "conv.weight_add"], ["y"], "/conv/Conv"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(weight, "conv.weight_quantized"),
            numpy_helper.from_array(np.array([0.02], np.float32), "conv.weight_scale"),
            numpy_helper.from_array(np.array([0.1], np.float32), "conv.weight_shift"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    module, x = tonnx.convert(model), generator.normal(size=(2, 3, 9)).astype(np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(module(torch.from_numpy(x)).detach().numpy(), want, atol=1e-5)
    assert [tuple(p.shape) for p in module.parameters()] == [(6, 3, 4)]
    assert not list(module.buffers())


def assert_the_same(module: nn.Module, original: nn.Module, x: torch.Tensor) -> None:
    """In what it computes, and in each weight under its own name."""
    torch.testing.assert_close(module(x), original(x))
    state = module.state_dict()
    assert set(state) == set(original.state_dict())
    for key, value in original.state_dict().items():
        assert torch.equal(state[key], value)


class JoinedBiases(nn.Module):
    """Three layers whose biases go to an attention as one, which takes them apart again."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = torch.cat([self.q_proj.bias, self.k_proj.bias, self.v_proj.bias])
        weights = (self.q_proj.weight, self.k_proj.weight, self.v_proj.weight)
        q, k, v = (F.linear(x, weight, part) for weight, part in zip(weights, bias.chunk(3), strict=True))
        return self.out_proj(F.scaled_dot_product_attention(q, k, v))


def test_biases_that_are_joined_and_taken_apart(tmp_path: Path) -> None:
    original, path = JoinedBiases().eval(), tmp_path / "net.onnx"
    torch.onnx.export(original, (ROWS,), path, dynamo=False, do_constant_folding=False)
    assert "Concat" in {node.op_type for node in onnx.load(path).graph.node}
    assert_the_same(tonnx.convert(path), original, ROWS)

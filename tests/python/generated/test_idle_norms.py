"""Normalisations without weights of their own: ONNX asks for ones and zeros, which no state dict of PyTorch has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper
from torch import nn

import tonnx

LAYERS = {
    "instance": lambda affine: nn.InstanceNorm2d(4, affine=affine),
    "layer": lambda affine: nn.LayerNorm(5, elementwise_affine=affine),
    "layer without bias": lambda affine: nn.LayerNorm(5, elementwise_affine=affine, bias=False),
    "group": lambda affine: nn.GroupNorm(2, 4, affine=affine),
    "batch": lambda affine: nn.BatchNorm2d(4, affine=affine),
}


class Around(nn.Module):
    """The layer is a part of the model, so that its weights have names."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.norm = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x) + x


@pytest.mark.parametrize("exporter", ["torchscript", "tonnx"])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_the_original_takes_the_weights(name: str, affine: bool, exporter: str, tmp_path: Path) -> None:
    original, x = Around(LAYERS[name](affine)).eval(), torch.randn(2, 4, 3, 5)
    path = tmp_path / "norm.onnx"
    if exporter == "tonnx":
        tonnx.export(original, (x,), path, do_constant_folding=False)
    else:
        torch.onnx.export(original, (x,), path, dynamo=False, do_constant_folding=False)
    module = tonnx.convert(path)
    torch.testing.assert_close(module(x), original(x))
    assert set(module.state_dict()) == set(original.state_dict())
    original.load_state_dict(module.state_dict(), strict=True)


@pytest.mark.parametrize("exporter", ["torchscript", "tonnx"])
def test_as_many_groups_as_channels(exporter: str, tmp_path: Path) -> None:
    """Nothing has to be reshaped for the instance norm that stands for it."""
    original, x = Around(nn.GroupNorm(4, 4)).eval(), torch.randn(2, 4, 7)
    nn.init.uniform_(original.norm.weight)
    if exporter == "tonnx":
        tonnx.export(original, (x,), tmp_path / "norm.onnx", do_constant_folding=False)
    else:
        torch.onnx.export(original, (x,), tmp_path / "norm.onnx", dynamo=False, do_constant_folding=False)
    module = tonnx.convert(tmp_path / "norm.onnx")
    torch.testing.assert_close(module(x), original(x))
    assert {key: value.tolist() for key, value in module.state_dict().items()} == {
        key: value.tolist() for key, value in original.state_dict().items()
    }


def test_weights_with_names_stay_though_they_do_nothing_yet() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[2, 4, 3] x) => (float[2, 4, 3] y) {
        y = InstanceNormalization(x, gain, shift) }"""
    model = onnx.parser.parse_model(text)
    for name, value in (("gain", np.ones(4, np.float32)), ("shift", np.zeros(4, np.float32))):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    assert {tuple(p.shape) for p in tonnx.convert(model).parameters()} == {(4,)}


def test_statistics_that_a_file_keeps_with_a_weight_are_no_parameter() -> None:
    """An exporter that keeps one of several equal tensors: what is 1 is the weight of one layer, and the variance of another."""
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[2, 4, 3] x) => (float[2, 4, 3] y) {
        a = InstanceNormalization(x, ones, zeros) y = BatchNormalization(a, ones, zeros, zeros, ones) }"""
    model = onnx.parser.parse_model(text)
    for name, value in (("ones", np.ones(4, np.float32)), ("zeros", np.zeros(4, np.float32))):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    module, x = tonnx.convert(model), np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    got = module(torch.from_numpy(x))
    np.testing.assert_allclose(got.detach().numpy(), want, atol=1e-5)
    got.sum().backward()
    assert {key.rpartition(".")[2] for key, _ in module.named_buffers()} >= {"running_mean", "running_var"}

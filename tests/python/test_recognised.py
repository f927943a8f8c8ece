"""What exporters write out in small parts is recognised, and reads as the one function that it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import tonnx

CONSTANTS = """half = Constant<value_float=0.5>() one = Constant<value_float=1.0>() two = Constant<value_float=2.0>()
    three = Constant<value_float=3.0>() six = Constant<value_float=6.0>() zero = Constant<value_float=0.0>()
    root = Constant<value_float=1.4142135>() inverse = Constant<value_float=0.70710677>() """

ACTIVATIONS = {
    "silu": ["a = Sigmoid(x) y = Mul(x, a)", "a = Sigmoid(x) y = Mul(a, x)"],
    "mish": ["a = Softplus(x) b = Tanh(a) y = Mul(x, b)"],
    "hardsigmoid": ["a = Add(x, three) b = Clip(a, zero, six) y = Div(b, six)"],
    "hardswish": [
        "a = Add(x, three) b = Clip(a, zero, six) c = Mul(x, b) y = Div(c, six)",
        "a = Add(x, three) b = Clip(a, zero, six) c = Div(b, six) y = Mul(c, x)",
        "a = HardSigmoid<alpha=0.16666667, beta=0.5>(x) y = Mul(x, a)",
    ],
    "gelu": [
        "a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)",
        "a = Mul(x, inverse) b = Erf(a) c = Add(one, b) d = Mul(x, half) y = Mul(d, c)",
        "a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(c, half) y = Mul(x, d)",
    ],
}


def model_of(nodes: str) -> onnx.ModelProto:
    header = '<ir_version: 10, opset_import: ["" : 18]> g (float[n, 5] x) => (float[n, 5] y)'
    return onnx.parser.parse_model(f"{header} {{ {CONSTANTS} {nodes} }}")


@pytest.mark.parametrize("name, nodes", [(name, nodes) for name, forms in ACTIVATIONS.items() for nodes in forms])
def test_activation(name: str, nodes: str, tmp_path: Path) -> None:
    model = model_of(nodes)
    tonnx.convert(model, tmp_path / "net.py")
    assert f"return F.{name}(x)" in (tmp_path / "net.py").read_text()
    x = np.random.default_rng(0).normal(0, 3, (7, 5)).astype(np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(tonnx.convert(model)(torch.from_numpy(x)).numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Sigmoid(x) b = Mul(x, a) y = Add(a, b)",  # the sigmoid is needed anyway
        "a = Neg(x) b = Sigmoid(a) y = Mul(x, b)",
        "a = Add(x, two) b = Clip(a, zero, six) y = Div(b, six)",
        "a = Div(x, root) b = Erf(a) c = Add(b, one) y = Mul(x, c)",
    ],
)
def test_what_only_looks_like_one(nodes: str, tmp_path: Path) -> None:
    tonnx.convert(model_of(nodes), tmp_path / "net.py")
    text = (tmp_path / "net.py").read_text()
    assert not any(f"F.{name}(" in text for name in ACTIVATIONS)

"""A convolution whose input is quantised as it comes is one call of a small class that the file has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import tonnx

QUANTISED = "q, step, zero = DynamicQuantizeLinear(x) s = Mul(step, ws) "
LAYER = "i = ConvInteger<pads = [1, 0, 1, 0], strides = [2, 1], group = 2>(q, w, zero, wz) "
SCALED = "f = Cast<to = 1>(i) {y} = Mul(f, s) "
# quantisers of some years ago add the bias to the integers
WHOLE = "d = Div(b, s) g = Floor(d) k = Cast<to = 6>(g) r = Reshape(k, {shape}) j = Add(i, r) f = Cast<to = 1>(j) y = Mul(f, s)"
PER_CHANNEL, PER_COLUMN = "t", "u"
PLAIN = QUANTISED + LAYER + SCALED.format(y="y")
ADDED = QUANTISED + LAYER + SCALED.format(y="p") + "y = Add(p, c)"
FLOORED = QUANTISED + LAYER + WHOLE.format(shape=PER_CHANNEL)


def made(nodes: str, kind: type = np.uint8, prefix: str = "") -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> g (float[n, 4, h, 6] x) => (float[n, 6, hh, 6] y) {{ {nodes} }}'
    )
    rng = np.random.default_rng(0)
    low = 0 if kind is np.uint8 else -127
    values = {
        "w": rng.integers(low, low + 255, (6, 2, 3, 1)).astype(kind),
        "wz": np.array(low + 100, kind),
        "ws": np.array(0.013, np.float32),
        "b": rng.normal(size=6).astype(np.float32),
        "c": rng.normal(size=(1, 6, 1, 1)).astype(np.float32),
        "t": np.array([1, -1, 1, 1]),
        "u": np.array([1, 1, 1, -1]),
    }
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(value, key) for key, value in values.items() if key in used
    )
    if prefix:
        for node in model.graph.node:
            node.input[:] = [prefix + "weight_quantized" if name == "w" else name for name in node.input]
        for tensor in model.graph.initializer:
            tensor.name = prefix + "weight_quantized" if tensor.name == "w" else tensor.name
    return model


def code_of(model: onnx.ModelProto, folder: Path) -> str:
    tonnx.convert(model, folder / "net.py")
    return (folder / "net.py").read_text()


def check(model: onnx.ModelProto) -> None:
    module = tonnx.convert(model)
    rng = np.random.default_rng(1)
    for x in (rng.normal(size=(2, 4, 7, 6)), rng.normal(5, 1, size=(1, 4, 3, 6)), np.zeros((2, 4, 5, 6))):
        given = x.astype(np.float32)
        want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": given})[0]
        np.testing.assert_allclose(module(torch.from_numpy(given)).detach().numpy(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize(
    ("nodes", "options"),
    [(PLAIN, ", bias=False"), (ADDED, ""), (FLOORED, ", floor=True")],
    ids=["plain", "added", "floored"],
)
def test_one_layer(kind: type, nodes: str, options: str, tmp_path: Path) -> None:
    model = made(nodes, kind)
    text = code_of(model, tmp_path)
    dtype = "" if kind is np.uint8 else ", dtype=torch.int8"
    assert f"self.w = QuantConv2d(4, 6, (3, 1), stride=(2, 1), padding=(1, 0), groups=2{options}{dtype})" in text
    assert "return self.w(x)" in text
    if kind is np.uint8:  # ONNX Runtime has no kernel for the other
        check(model)


def test_signed_weights_give_what_the_parts_give(tmp_path: Path) -> None:
    model = made(ADDED, np.int8)
    tonnx.convert(model, tmp_path / "net.pt2")
    x = torch.randn(2, 4, 7, 6)
    torch.testing.assert_close(tonnx.convert(model)(x), torch.export.load(tmp_path / "net.pt2").module()(x))


@pytest.mark.parametrize("prefix", ["stem.conv.", "stem.conv.other."])
def test_names_with_dots(prefix: str, tmp_path: Path) -> None:
    model = made(ADDED, prefix=prefix)
    assert " QuantConv2d(4, 6" in code_of(model, tmp_path)
    assert {name.rsplit(".", 1)[-1] for name in tonnx.convert(model).state_dict()} == {
        "weight",
        "scale",
        "zero_point",
        "bias",
    }
    check(model)


@pytest.mark.parametrize(
    "nodes",
    [
        QUANTISED + LAYER + WHOLE.format(shape=PER_COLUMN),  # a number for each column, not for each channel
        QUANTISED + LAYER + WHOLE.format(shape=PER_CHANNEL).replace("Div(b, s)", "Div(b, step)"),  # of other steps
        QUANTISED.replace("Mul(step, ws)", "Mul(zs, ws) zs = Cast<to = 1>(zero)").replace(
            "s = Mul(zs, ws) zs = Cast<to = 1>(zero)", "zs = Cast<to = 1>(zero) s = Mul(zs, ws)"
        )
        + LAYER
        + SCALED.format(y="y"),  # the factor is no step
    ],
)
def test_others_stay_as_they_are(nodes: str, tmp_path: Path) -> None:
    model = made(nodes)
    assert "QuantConv" not in code_of(model, tmp_path)
    check(model)


def test_exported_again() -> None:
    module = tonnx.convert(made(FLOORED))
    x = torch.randn(2, 4, 7, 6)
    program = torch.export.export(module, (x,), strict=True)
    torch.testing.assert_close(program.module()(x), module(x))

"""A layer whose input is quantised as it comes is one call of a small class that the file has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from models import whole_numbers

import tonnx

QUANTISED = "q, step, zero = DynamicQuantizeLinear(x) "
LAYER = "i = MatMulInteger(q, {w}, zero, {w}z) f = Cast<to = 1>(i) s = Mul(step, {w}s) {y} = Mul(f, s) "


def made(nodes: str, kind: type = np.uint8) -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> g (float[n, k, 6] x) => (float[n, k, 4] y) {{ {nodes} }}'
    )
    rng = np.random.default_rng(0)
    low = 0 if kind is np.uint8 else -127
    for name in ("u", "v"):
        weight = whole_numbers(rng, kind, (6, 4))
        values = {name: weight, f"{name}z": np.array(low + 100, kind), f"{name}s": np.array(0.013, np.float32)}
        values[f"{name}b"] = rng.normal(size=4).astype(np.float32)
        model.graph.initializer.extend(onnx.numpy_helper.from_array(value, key) for key, value in values.items())
    return model


def layer(name: str, result: str) -> str:
    text = LAYER.format(w=name, y=result)
    return (
        text.replace("i =", f"i{name} =")
        .replace("(i)", f"(i{name})")
        .replace("f =", f"f{name} =")
        .replace("s =", f"s{name} =")
        .replace("(f, s)", f"(f{name}, s{name})")
    )


def check(model: onnx.ModelProto) -> None:
    module = tonnx.convert(model)
    rng = np.random.default_rng(1)
    for x in (rng.normal(size=(2, 3, 6)), rng.normal(5, 1, size=(1, 1, 6)), np.zeros((2, 2, 6))):
        given = x.astype(np.float32)
        want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": given})[0]
        np.testing.assert_allclose(module(torch.from_numpy(given)).detach().numpy(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("bias", [False, True])
def test_one_layer(kind: type, bias: bool, tmp_path: Path) -> None:
    nodes = layer("u", "r") + "y = Add(ub, r)" if bias else layer("u", "y")
    model = made(QUANTISED + nodes, kind)
    tonnx.convert(model, tmp_path / "net.py")
    text = (tmp_path / "net.py").read_text()
    assert "self.u = QuantLinear(6, 4" in text
    assert "return self.u(x)" in text
    assert text.count("aminmax") == 1
    check(model)


def test_layers_of_one_input(tmp_path: Path) -> None:
    model = made(QUANTISED + layer("u", "a") + layer("v", "b") + "c = Add(b, vb) y = Add(a, c)")
    tonnx.convert(model, tmp_path / "net.py")
    text = (tmp_path / "net.py").read_text()
    assert text.count("class ") == 2
    assert "self.u(x) + self.v(x)" in text
    check(model)


def test_a_bias_of_two_layers_stays_outside() -> None:
    check(made(QUANTISED + layer("u", "a") + layer("v", "b") + "c = Add(a, ub) d = Add(b, ub) y = Mul(c, d)"))


def test_sizes_of_the_integers(tmp_path: Path) -> None:
    shape = "h = Shape<start = 0, end = 2>(iu) m = Constant<value = int64[1] {4}>() t = Concat<axis = 0>(h, m) y = Reshape(r, t)"
    model = made(QUANTISED + layer("u", "r") + shape)
    tonnx.convert(model, tmp_path / "net.py")
    assert (tmp_path / "net.py").read_text().count("aminmax") == 1
    check(model)


def test_other_forms(tmp_path: Path) -> None:
    model = made(QUANTISED + layer("u", "r") + "y = Add(ub, r)")
    tonnx.convert(model, tmp_path / "net.pt2")
    tonnx.convert(model, tmp_path / "net.pt")
    x = torch.randn(2, 3, 6)
    want = tonnx.convert(model)(x)
    torch.testing.assert_close(torch.export.load(tmp_path / "net.pt2").module()(x), want)
    torch.testing.assert_close(torch.jit.load(tmp_path / "net.pt")(x), want)


def test_exported_again() -> None:
    module = tonnx.convert(made(QUANTISED + layer("u", "r") + "y = Add(ub, r)"))
    x = torch.randn(2, 3, 6)
    program = torch.export.export(module, (x,), strict=True)
    torch.testing.assert_close(program.module()(x), module(x))

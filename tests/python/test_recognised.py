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


LAYER_NORMS = {
    "one difference": "m = ReduceMean(x, last) d = Sub(x, m) q = Pow(d, two) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) n = Div(d, r)",
    "two differences": """m = ReduceMean(x, last) d = Sub(x, m) c = Sub(x, m) q = Mul(c, c) v = ReduceMean(q, last) e = Add(eps, v)
        r = Sqrt(e) n = Div(d, r)""",
}
AFFINE = {
    "nn.LayerNorm(5, eps=0.001)": "s = Mul(n, w) y = Add(b, s)",
    "nn.LayerNorm(5, eps=0.001, bias=False)": "y = Mul(w, n)",
    "F.layer_norm(x, ": "y = Identity(n)",
}


def run_both(model: onnx.ModelProto, x: np.ndarray) -> None:
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(tonnx.convert(model)(torch.from_numpy(x)).detach().numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("nodes", LAYER_NORMS.values(), ids=LAYER_NORMS)
@pytest.mark.parametrize("said", AFFINE)
def test_layer_norm(nodes: str, said: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (float[n, 3, 5] x) => (float[n, 3, 5] y)
        <float[5] w = {{1, 2, 3, 4, 5}}, float[5] b = {{0.5, 1, 1.5, 2, 2.5}}, int64[1] last = {{-1}}, float two = {{2}}, float eps = {{0.001}}>
        {{ {nodes} {AFFINE[said]} }}""")
    tonnx.convert(model, tmp_path / "net.py")
    text = (tmp_path / "net.py").read_text()
    assert said in text
    assert ".mean(" not in text
    run_both(model, np.random.default_rng(0).normal(0, 3, (2, 3, 5)).astype(np.float32))


@pytest.mark.parametrize("shape", ["1,4,1,1", "4,1,1", "1,4,1,6"])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_bias_of_a_convolution(op: str, shape: str, tmp_path: Path) -> None:
    sizes = [int(size) for size in shape.split(",")]
    values = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    weight = np.random.default_rng(0).normal(size=(4, 4, 1, 1)).astype(np.float32)
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (float[n, 4, 5, 6] x) => (float[n, 4, 5, 6] y)
        {{ c = {op}(x, w) y = Add(c, b) }}""")
    model.graph.initializer.extend(
        [onnx.numpy_helper.from_array(weight, "w"), onnx.numpy_helper.from_array(values, "b")]
    )
    tonnx.convert(model, tmp_path / "net.py")
    assert ("bias=False" in (tmp_path / "net.py").read_text()) == (sizes[-1] != 1)
    run_both(model, np.random.default_rng(0).normal(size=(2, 4, 5, 6)).astype(np.float32))


def test_a_negative_number_is_taken_away(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[n, 5] x) => (float[n, 5] y)
        { k = Constant<value_float=-2.5>() y = Add(x, k) }""")
    tonnx.convert(model, tmp_path / "net.py")
    assert "return x - 2.5" in (tmp_path / "net.py").read_text()


def test_branches_of_a_rank_that_only_the_model_declares(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[n, m, k] x, bool c) => (float[a, b] y) {
        s = Squeeze(x)
        z = If(c)<then_branch = t () => (u) { u = Neg(s) }, else_branch = e () => (v) { v = Exp(s) }>
        y = Identity(z) }""")
    module, x = tonnx.convert(model), torch.randn(2, 1, 3)
    tonnx.convert(model, tmp_path / "net.py")
    assert "torch.cond(" in (tmp_path / "net.py").read_text()
    program = torch.export.export(module, (x, torch.tensor(True)), strict=False).module()
    for flag, want in ((True, -x.squeeze()), (False, x.squeeze().exp())):
        torch.testing.assert_close(module(x, torch.tensor(flag)), want)
        torch.testing.assert_close(program(x, torch.tensor(flag)), want)


def test_what_one_mask_picks_is_of_one_size(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[n] x, float[n] z) => (float[k] y) {
        zero = Constant<value_float=0.0>() m = Greater(x, zero)
        a = NonZero(m) b = Transpose(a) c = GatherND(x, b) d = NonZero(m) e = Transpose(d) f = GatherND(z, e) y = Add(c, f) }""")
    tonnx.convert(model, tmp_path / "net.py")
    assert (tmp_path / "net.py").read_text().count("nonzero(") == 1
    module, x = tonnx.convert(model), torch.randn(6)
    program = torch.export.export(module, (x, x), strict=False).module()
    for run in (module, program):
        torch.testing.assert_close(run(x, x), 2 * x[x > 0])


def test_weights_of_layers_are_no_statements(tmp_path: Path) -> None:
    long = "model_with_a_very_long_name_of_its_layers_dense_Tensordot_ReadVariableOp"
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[n, 5] x) => (float[n, 5] y)
        { a = MatMul(x, w1) b = MatMul(a, w2) y = MatMul(b, w2) }""")
    for node, names in zip(model.graph.node, ("w1", "w2", "w2"), strict=True):
        node.input[1] = long + names
    for name in ("w1", "w2"):
        values = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, long + name))
    tonnx.convert(model, tmp_path / "net.py")
    assert ".t()" not in (tmp_path / "net.py").read_text()
    run_both(model, np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32))

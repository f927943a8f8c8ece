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


NORMS = {
    "rms": (
        "q = Mul(x, x) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) n = Div(x, r) y = Mul(w, n)",
        "nn.RMSNorm(5, eps=0.001)",
    ),
    "rms by a reciprocal": (
        "q = Pow(x, two) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r) n = Mul(x, i) y = Mul(n, w)",
        "nn.RMSNorm(5, eps=0.001)",
    ),
    "by a reciprocal": (
        """m = ReduceMean(x, last) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r)
        n = Mul(d, i) s = Mul(n, w) y = Add(s, b)""",
        "nn.LayerNorm(5, eps=0.001)",
    ),
    "Keras": (
        """m = ReduceMean(x, last) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r)
        f = Mul(i, w) s = Mul(x, f) t = Mul(m, f) o = Sub(b, t) y = Add(s, o)""",
        "nn.LayerNorm(5, eps=0.001)",
    ),
}


def norm_model(nodes: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (float[n, k, 5] x) => (float[n, k, 5] y)
        <float[5] w = {{1, 2, 3, 4, 5}}, float[5] b = {{0.5, 1, 1.5, 2, 2.5}}, int64[1] last = {{-1}}, float two = {{2}}, float eps = {{0.001}}>
        {{ {nodes} }}""")


@pytest.mark.parametrize("nodes, said", NORMS.values(), ids=NORMS)
def test_norms(nodes: str, said: str, tmp_path: Path) -> None:
    model = norm_model(nodes)
    tonnx.convert(model, tmp_path / "net.py")
    text = (tmp_path / "net.py").read_text()
    assert said in text
    assert ".mean(" not in text
    for sizes in ((2, 3, 5), (1, 1, 5), (0, 3, 5)):
        run_both(model, np.random.default_rng(0).normal(0, 3, sizes).astype(np.float32))
    tonnx.convert(model, tmp_path / "net.pt2")
    x = torch.randn(2, 3, 5)
    torch.testing.assert_close(torch.export.load(tmp_path / "net.pt2").module()(x), tonnx.convert(model)(x))


@pytest.mark.parametrize(
    "nodes",
    [
        "q = Mul(x, x) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) n = Div(x, r) s = Mul(n, w) z = Mul(r, s) y = Add(z, b)",
        """m = ReduceMean(x, last) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r)
        f = Mul(i, w) s = Mul(d, f) t = Mul(m, f) o = Sub(b, t) y = Add(s, o)""",
        "q = Mul(x, x) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r) n = Mul(b, i) z = Add(n, x) y = Mul(z, w)",
    ],
)
def test_what_only_looks_like_a_norm(nodes: str, tmp_path: Path) -> None:
    model = norm_model(nodes)
    tonnx.convert(model, tmp_path / "net.py")
    assert "Norm(" not in (tmp_path / "net.py").read_text()
    run_both(model, np.random.default_rng(0).normal(0, 3, (2, 3, 5)).astype(np.float32))


def test_a_size_is_asked_where_it_comes_from(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[n, k, 5] x) => (float[n, k, 5] y, int64[1] size)
        <float[5] w = {1, 2, 3, 4, 5}, int64[1] last = {-1}, float eps = {0.001}>
        { q = Mul(x, x) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) n = Div(x, r) y = Mul(w, n) size = Shape<start = 1, end = 2>(v) }""")
    tonnx.convert(model, tmp_path / "net.py")
    assert "x.size(1)" in (tmp_path / "net.py").read_text()
    y, size = tonnx.convert(model)(torch.randn(2, 3, 5))
    assert y.shape == (2, 3, 5)
    assert size.tolist() == [3]


ROWS = {
    "a product": "f = Reshape(x, rows) p = MatMul(f, w) r = Reshape(p, back) y = Add(r, b)",
    "a layer": "f = Reshape(x, rows) p = Gemm<transB = 1>(f, w) r = Reshape(p, back) y = Add(r, b)",
    "open sizes": "f = Reshape(x, rows) p = MatMul(f, w) s = Shape<start = 0, end = 2>(x) t = Concat<axis = 0>(s, four) r = Reshape(p, t) y = Add(r, b)",
}


@pytest.mark.parametrize("nodes", ROWS.values(), ids=ROWS)
def test_a_layer_of_rows_is_a_layer(nodes: str, tmp_path: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (float[n, 3, 4] x) => (float[n, 3, 4] y)
        <int64[2] rows = {{-1, 4}}, int64[3] back = {{-1, 3, 4}}, int64[1] four = {{4}}, float[4] b = {{1, 2, 3, 4}}> {{ {nodes} }}""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    tonnx.convert(model, tmp_path / "net.py")
    text = (tmp_path / "net.py").read_text()
    assert "reshape" not in text
    assert "flatten" not in text
    for size in (2, 1, 0):
        run_both(model, np.random.default_rng(0).normal(size=(size, 3, 4)).astype(np.float32))


def test_heads_behind_a_layer_of_rows(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[n, 3, 4] x) => (float[n, 3, 2, 2] y)
        <int64[2] rows = {-1, 4}, int64[4] back = {-1, 3, 2, 2}> { f = Reshape(x, rows) p = MatMul(f, w) y = Reshape(p, back) }""")
    weight = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    tonnx.convert(model, tmp_path / "net.py")
    assert "self.w(x).unflatten(-1, (2, 2))" in (tmp_path / "net.py").read_text()
    run_both(model, np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32))


@pytest.mark.parametrize("shift", [1, 2, 3, -1, -3])
@pytest.mark.parametrize("both", [False, True])
def test_parts_that_change_places(shift: int, both: bool, tmp_path: Path) -> None:
    nodes = "a = Slice(x, k, end, one) b = Slice(x, zero, k, one) y = Concat<axis = 1>(a, b)"
    if both:
        nodes = (
            nodes.replace(" y = ", " z = ")
            + " c = Slice(z, k, end, two) d = Slice(z, zero, k, two) y = Concat<axis = 2>(c, d)"
        )
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (float[n, 4, 5] x) => (float[n, 4, 5] y)
        <int64[1] k = {{{shift}}}, int64[1] end = {{9223372036854775807}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{ {nodes} }}""")
    tonnx.convert(model, tmp_path / "net.py")
    text = (tmp_path / "net.py").read_text()
    assert text.count("torch.roll(") == 1
    assert "cat" not in text
    run_both(model, np.random.default_rng(0).normal(size=(2, 4, 5)).astype(np.float32))
    tonnx.convert(model, tmp_path / "net.pt2")
    x = torch.randn(2, 4, 5)
    torch.testing.assert_close(torch.export.load(tmp_path / "net.pt2").module()(x), tonnx.convert(model)(x))


def test_parts_of_an_open_size_stay(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[n, 4] x) => (float[n, 4] y)
        <int64[1] k = {3}, int64[1] end = {9223372036854775807}, int64[1] zero = {0}>
        { a = Slice(x, k, end, zero) b = Slice(x, zero, k, zero) y = Concat<axis = 0>(a, b) }""")
    tonnx.convert(model, tmp_path / "net.py")
    assert "roll" not in (tmp_path / "net.py").read_text()
    for size in (2, 3, 4):
        run_both(model, np.random.default_rng(0).normal(size=(size, 4)).astype(np.float32))


@pytest.mark.parametrize("other, count", [("a", 1), ("b", 2)])
def test_what_a_module_computes_twice(other: str, count: int, tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[4, 3] x) => (float[4, 3] y)
        <int64[3] lengths = {2, 4, 1}>
        { n = Neg(x) a = ReverseSequence<time_axis = 0, batch_axis = 1>(x, lengths) b = ReverseSequence<time_axis = 0, batch_axis = 1>(n, lengths)
          y = Mul(a, b) }""")
    model.graph.node[1].name, model.graph.node[2].name = "/a/ReverseSequence", f"/{other}/ReverseSequence_1"
    tonnx.convert(model, tmp_path / "net.py")
    assert (tmp_path / "net.py").read_text().count("torch.where(") == count
    run_both(model, np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))


def test_what_is_random_is_drawn_twice() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[64] x) => (float[64] y)
        { a = RandomNormalLike(x) b = RandomNormalLike(x) y = Sub(a, b) }""")
    assert tonnx.convert(model)(torch.zeros(64)).abs().max() > 0


@pytest.mark.parametrize(
    "constant, said",
    [
        ("int64[1, 5] c = {0, 1, 2, 3, 4}", "torch.arange(5, device=x.device).unsqueeze(0)"),
        ("int64[5, 1] c = {3, 4, 5, 6, 7}", "torch.arange(3, 8, device=x.device).unsqueeze(1)"),
        ("int64[4, 5] c = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}", "torch.full([4, 5], 7, "),
        ("int64[2, 1, 1] c = {0, 0}", "torch.zeros([2, 1, 1], "),
        ("int64[2, 1, 3] c = {0, 1, 2, 0, 1, 2}", "torch.arange(3, device=x.device).unsqueeze(0).unsqueeze(1).expand(2, 1, 3)"),
        ("int64[5, 1] c = {0, 1, 2, 4, 3}", 'self.register_buffer("c", '),
        ("int64[2, 2] c = {0, 1, 2, 3}", 'self.register_buffer("c", '),
        ("int64[1, 3] ids = {0, 1, 2}", 'self.register_buffer("ids", '),  # it has its place in a state dict
    ],
)  # fmt: skip
def test_constants_that_a_line_of_code_says(constant: str, said: str, tmp_path: Path) -> None:
    name = constant.split()[constant.split().index("=") - 1]
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (float[9, 4] x) => (float y)
        <{constant}, int64[1] all = {{-1}}> {{ rows = Gather(x, {name}) flat = Reshape(rows, all) y = ReduceSum<keepdims=0>(flat) }}""")
    if name == "ids":
        model.graph.initializer[0].name = model.graph.node[0].input[1] = "encoder.ids"
    tonnx.convert(model, tmp_path / "net.py")
    assert said in (tmp_path / "net.py").read_text()
    run_both(model, np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32))


@pytest.mark.parametrize("diagonal", [0, 1])
def test_a_triangle_of_ones(diagonal: int, tmp_path: Path) -> None:
    mask = np.tril(np.ones((4, 6), bool), diagonal)[None]
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[2, 4, 6] x) => (float[2, 4, 6] y)
        <float low = {-1}> { y = Where(m, x, low) }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(mask, "m"))
    tonnx.convert(model, tmp_path / "net.py")
    assert ".tril()" in (text := (tmp_path / "net.py").read_text()) or f".tril({diagonal})" in text
    run_both(model, np.random.default_rng(0).normal(size=(2, 4, 6)).astype(np.float32))


def test_a_token_that_was_repeated_for_a_batch_is_stored_once(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[2, 3, 4] x) => (float[2, 4, 4] y)
        { y = Concat<axis=1>(class_token, x) }""")
    token = np.random.default_rng(1).normal(size=(1, 1, 4)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.repeat(token, 2, 0), "class_token"))
    assert tonnx.convert(model).state_dict()["class_token"].shape == (1, 1, 4)
    run_both(model, np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32))

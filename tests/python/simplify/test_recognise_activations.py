"""recognise_activations: sums and products that are an activation become it, where no value changes but by rounding."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from simplify_checks import assert_same, check, check_unchanged, count, model, run, special_values

import tonnx

EXACT, LOOSE = ["recognise_activations"], ["recognise_overflowing_activations"]
NUMBERS = {
    "half": 0.5,
    "one": 1,
    "two": 2,
    "three": 3,
    "six": 6,
    "root": 1.4142135381698608,
    "inverse_root": 0.7071067690849304,
    "zero": 0,
    "sixth": 0.1666666716337204,
    "cubic": 0.044714998453855515,
    "by_pi": 0.7978845834732056,
    "fifth": 0.2,
    "quick": 1.702,
    "minus": -0.25,
    "far": 1.5,
}


def made(nodes: str, opset: int = 24, dtype: str = "float"):
    names = [name for name in NUMBERS if name in nodes.replace("(", " ").replace(")", " ").replace(",", " ").split()]
    inputs = f"g ({dtype}[N,4] x) => ({dtype}[N,4] y) {{ {nodes} }}"
    source = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {inputs}')
    for name in names:
        number = np.array(NUMBERS[name], dtype={"float": np.float32, "float16": np.float16}[dtype])
        source.graph.initializer.append(numpy_helper.from_array(number, name))
    return source


def values(dtype=np.float32) -> np.ndarray:
    line = np.linspace(-12, 12, 400).astype(dtype)
    large = np.array([1e4, 5e4, -1e4]).astype(dtype) * (1 if dtype == np.float16 else 1e20)
    x = np.concatenate([line, special_values(np.dtype(dtype)), large])
    return np.resize(x, (-(-x.size // 4), 4))


ERF = "d = Div(x, root) e = Erf(d) p = Add(e, one) "
ERF_2 = "d = Mul(inverse_root, x) e = Erf(d) p = Add(one, e) "
TANH = "c = Pow(x, three) m = Mul(c, cubic) s = Add(x, m) i = Mul(s, by_pi) t = Tanh(i) p = Add(t, one) "
TANH_2 = "q = Mul(x, x) c = Mul(x, q) m = Mul(cubic, c) s = Add(m, x) i = Mul(by_pi, s) t = Tanh(i) p = Add(one, t) "
TANH_3 = "q = Mul(x, x) m = Mul(q, cubic) s = Add(m, one) b = Mul(x, by_pi) i = Mul(b, s) t = Tanh(i) p = Add(t, one) "
CLIP = "a = Add(x, three) c = Clip(a, zero, six) "
FOUND = [
    *[(part + "h = Mul(x, half) y = Mul(h, p)", "Gelu", 20) for part in (ERF, ERF_2, TANH, TANH_2, TANH_3)],
    (ERF + "h = Mul(half, p) y = Mul(h, x)", "Gelu", 20),
    (ERF + "h = Div(x, two) y = Mul(p, h)", "Gelu", 24),
    (CLIP + "d = Div(c, six) y = Mul(x, d)", "HardSwish", 14),
    (CLIP + "d = Mul(c, sixth) y = Mul(d, x)", "HardSwish", 18),
    (CLIP + "d = Div(x, six) y = Mul(d, c)", "HardSwish", 18),
    ("h = HardSigmoid<alpha = 0.1666666716337204>(x) y = Mul(x, h)", "HardSwish", 18),
    (CLIP + "y = Div(c, six)", "HardSigmoid", 11),
    ("m = Mul(x, fifth) a = Add(m, half) y = Clip(a, zero, one)", "HardSigmoid", 18),
    ("s = Softplus(x) t = Tanh(s) y = Mul(t, x)", "Mish", 18),
    ("s = Sigmoid(x) y = Mul(x, s)", "Swish", 24),
    ("m = Mul(x, quick) s = Sigmoid(m) y = Mul(s, x)", "Swish", 24),
    ("m = Mul(x, fifth) y = Max(x, m)", "LeakyRelu", 12),
    ("m = Mul(x, fifth) y = Max(m, x)", "LeakyRelu", 18),
    ("y = Max(x, zero)", "Relu", 13),
    ("r = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, fifth) y = Sub(r, m)", "PRelu", 9),
    ("r = Relu(x) n = Neg(x) q = Relu(n) m = Mul(minus, q) y = Add(m, r)", "PRelu", 18),
    ("a = Abs(x) s = Add(a, one) y = Div(x, s)", "Softsign", 9),
]


@pytest.mark.parametrize("nodes, op, opset", FOUND)
def test_found(nodes, op, opset):
    check(made(nodes, opset), {op: 1}, EXACT, {"x": values()}, tolerance=2e-6)


@pytest.mark.parametrize(
    "nodes, op, opset", [each for each in FOUND if each[1] in ("Gelu", "HardSwish", "Mish", "Swish")]
)
def test_not_before_the_opset_has_it(nodes, op, opset):
    since = {"Gelu": 20, "HardSwish": 14, "Mish": 18, "Swish": 24}[op]
    simplified, _ = tonnx.simplify(made(nodes, since - 1), only=EXACT)
    assert op not in count(simplified.graph)


OVERFLOWING = [
    (ERF + "m = Mul(x, p) y = Mul(m, half)", "Gelu"),
    (TANH + "w = Mul(p, x) y = Mul(half, w)", "Gelu"),
    (CLIP + "m = Mul(x, c) y = Div(m, six)", "HardSwish"),
    ("e = Exp(x) s = Add(e, one) y = Log(s)", "Softplus"),
    ("n = Neg(x) e = Exp(n) s = Add(one, e) y = Div(one, s)", "Sigmoid"),
    ("n = Neg(x) e = Exp(n) s = Add(e, one) y = Reciprocal(s)", "Sigmoid"),
]


@pytest.mark.parametrize("nodes, op", OVERFLOWING)
def test_overflowing_forms_on_request(nodes, op):
    source = made(nodes)
    x = {"x": np.linspace(-20, 20, 400, dtype=np.float32).reshape(-1, 4)}
    check(source, {op: 1}, LOOSE, x, tolerance=1e-6)
    simplified, _ = tonnx.simplify(source)
    assert op not in count(simplified.graph)
    assert_same(run(simplified, {"x": values()}), run(source, {"x": values()}), 1e-6)


def test_clip_without_a_limit():
    body = "g (float[N,4] x) => (float[N,4] y) <float zero = {0}> { y = Clip(x, zero) }"
    check_unchanged(model(body), EXACT)  # infinity becomes the largest number
    body = "g (float[N,4] x) => (float[N,4] y) <float zero = {0}, float one = {1}> { i = Div(one, zero) y = Clip(x, zero, i) }"
    check(model(body), {"Relu": 1}, ["fold_constants", *EXACT])


@pytest.mark.parametrize(
    "nodes",
    [
        "d = Div(x, two) e = Erf(d) p = Add(e, one) h = Mul(x, half) y = Mul(h, p)",
        "d = Div(x, root) e = Erf(d) p = Add(e, two) h = Mul(x, half) y = Mul(h, p)",
        "d = Div(x, root) e = Erf(d) p = Add(e, one) h = Mul(x, one) y = Mul(h, p)",
        "a = Add(x, three) c = Clip(a, zero, three) d = Div(c, six) y = Mul(x, d)",
        "a = Add(x, two) c = Clip(a, zero, six) d = Div(c, three) y = Mul(x, d)",
        "s = Softplus(x) t = Tanh(s) y = Mul(t, s)",
        "m = Mul(x, far) y = Max(x, m)",
        "m = Mul(x, minus) y = Max(x, m)",
        "y = Max(x, one)",
        "a = Abs(x) s = Add(a, two) y = Div(x, s)",
        "a = Abs(x) s = Add(a, one) y = Div(s, x)",
        "n = Neg(x) q = Relu(n) m = Mul(q, fifth) y = Sub(x, m)",
    ],
)
def test_what_stays(nodes):
    check_unchanged(made(nodes), EXACT, special=False, tolerance=1e-6)


def test_parts_that_others_use():
    body = """g (float[N,4] x) => (float[N,4] y, float[N,4] p) <float half = {0.5}, float one = {1}, float root = {1.4142135}>
    { d = Div(x, root) e = Erf(d) p = Add(e, one) h = Mul(x, half) y = Mul(h, p) }"""
    check_unchanged(model(body, 20), EXACT, tolerance=1e-6)


@pytest.mark.parametrize("nodes, op", [(TANH, "Gelu"), (ERF, "Gelu")])
def test_half_precision(nodes, op):
    source = made(nodes + "h = Mul(x, half) y = Mul(h, p)", 20, "float16")
    check(source, {op: 1}, EXACT, {"x": np.linspace(-4, 4, 400).astype(np.float16).reshape(-1, 4)}, tolerance=1e-2)

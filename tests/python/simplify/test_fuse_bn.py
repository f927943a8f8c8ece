"""fuse_bn: what scales and shifts the channels of a layer becomes its weights, where these stay exact."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from simplify_checks import check, check_unchanged

ONLY = ["fold_constants", "fuse_bn", "eliminate_dead_code"]
TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16}
RANDOM = np.random.default_rng(0)


def made(body: str, opset: int = 18, dtype: str = "float", **weights) -> onnx.ModelProto:
    """A model whose initializers are the arrays, or random ones of the sizes given."""
    text = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {body.replace("T[", dtype + "[")}')
    for name, value in weights.items():
        array = np.array(value) if isinstance(value, np.ndarray) else RANDOM.uniform(0.5, 1.5, value)
        text.graph.initializer.append(numpy_helper.from_array(array.astype(TYPES[dtype]), name))
    return text


def feeds(*shape: int, dtype: str = "float", special: bool = True):
    """Numbers with an infinite one, and one that is none, in rows of their own."""
    x = RANDOM.standard_normal(shape)
    if special:
        x.reshape(shape[0], -1)[1::3, 0] = np.inf
        x.reshape(shape[0], -1)[2::3, 0] = np.nan
    return {"x": x.astype(TYPES[dtype])}


def tolerance(dtype: str) -> float:
    return {"float": 2e-5, "double": 1e-12, "float16": 2e-2}[dtype]


NORM = {"s": (4,), "b": (4,), "m": (4,), "v": (4,)}


@pytest.mark.parametrize("opset, dtype", [(7, "float"), (9, "float"), (14, "float"), (15, "double"), (22, "float")])
@pytest.mark.parametrize("bias", [True, False])
def test_normalised_convolution(opset, dtype, bias):
    inputs = "x, w, c" if bias else "x, w"
    body = f"""g (T[N,3,5,5] x) => (T[N,4,3,3] y)
    {{ h = Conv({inputs}) y = BatchNormalization<epsilon = 0.01>(h, s, b, m, v) }}"""
    got = made(body, opset, dtype, w=(4, 3, 3, 3), **({"c": (4,)} if bias else {}), **NORM)
    check(got, {"Conv": 1}, ONLY, feeds(3, 3, 5, 5, dtype=dtype), tolerance=tolerance(dtype))


def test_half_precision():
    body = """g (T[N,3,5,5] x) => (T[N,4,3,3] y)
    { h = Conv(x, w) y = BatchNormalization(h, s, b, m, v) }"""
    got = made(body, 15, "float16", w=(4, 3, 3, 3), **NORM)
    check(got, {"Conv": 1}, ONLY, feeds(3, 3, 5, 5, dtype="float16", special=False), tolerance=2e-2)


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution(groups):
    body = f"""g (T[N,4,5,5] x) => (T[N,4,7,7] y)
    {{ h = ConvTranspose<group = {groups}>(x, w, c) y = BatchNormalization(h, s, b, m, v) }}"""
    got = made(body, w=(4, 4 // groups, 3, 3), c=(4,), **NORM)
    check(got, {"ConvTranspose": 1}, ONLY, feeds(3, 4, 5, 5), tolerance=2e-5)


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("count", [1, 4])
def test_normalised_gemm(turned, count):
    body = f"""g (T[N,6] x) => (T[N,4] y)
    {{ h = Gemm<transB = {turned}, alpha = 0.5>(x, w, c) y = BatchNormalization(h, s, b, m, v) }}"""
    got = made(body, w=(4, 6) if turned else (6, 4), c=(count,), **NORM)
    check(got, {"Gemm": 1}, ONLY, feeds(3, 6), tolerance=2e-5)


ARITHMETIC = ["Add(h, k)", "Add(k, h)", "Sub(h, k)", "Sub(k, h)", "Mul(h, k)", "Mul(k, h)", "Div(h, k)", "Neg(h)"]


@pytest.mark.parametrize("shape", [(1, 4, 1, 1), (4, 1, 1), (), (1, 1)])
@pytest.mark.parametrize("arithmetic", ARITHMETIC)
@pytest.mark.parametrize("opset", [7, 18])
def test_arithmetic_with_channels(arithmetic, shape, opset):
    body = f"g (T[N,3,5,5] x) => (T[N,4,3,3] y) {{ h = Conv(x, w, c) y = {arithmetic} }}"
    got = made(body, opset, w=(4, 3, 3, 3), c=(4,), **({"k": shape} if "k" in arithmetic else {}))
    check(got, {"Conv": 1}, ONLY, feeds(3, 3, 5, 5), tolerance=2e-5)


@pytest.mark.parametrize("arithmetic", ["Mul(h, k)", "Div(h, k)", "Neg(h)"])
@pytest.mark.parametrize("shape", [(4,), (1, 1, 4), ()])
def test_scaled_product(arithmetic, shape):
    got = made(
        f"g (T[N,2,6] x) => (T[N,2,4] y) {{ h = MatMul(x, w) y = {arithmetic} }}",
        w=(6, 4),
        **({"k": shape} if "k" in arithmetic else {}),
    )
    check(got, {"MatMul": 1}, ONLY, feeds(3, 2, 6), tolerance=2e-5)


def test_many_in_a_row():
    body = """g (T[N,16,6,6] x) => (T[N,64,4,4] y)
    { a = Conv(x, w) b = Mul(a, k) c = Add(b, l) d = BatchNormalization(c, s, l2, m, v) y = Div(d, k2) }"""
    got = made(
        body, w=(64, 48 // 3, 3, 3), k=(64, 1, 1), l=(64, 1, 1), k2=(1,), s=(64,), l2=(64,), m=(64,), v=(64,)
    )  # large enough for its weights to be computed while they are written
    assert len(got.graph.initializer[0].raw_data) < 1 << 16
    check(got, {"Conv": 1}, ONLY, feeds(3, 16, 6, 6), tolerance=1e-4)


def test_large_weights_are_scaled_twice():
    body = """g (T[N,64,4,4] x) => (T[N,64,4,4] y, T[64,64,3,3] z)
    { a = Conv<pads = [1, 1, 1, 1]>(x, w) b = Mul(a, k) y = BatchNormalization(b, s, l, m, v) z = Neg(u) }"""
    same = RANDOM.standard_normal((64, 64, 3, 3))  # equal to what the scaled weights are made of
    got = made(body, w=same, u=same, k=(64, 1, 1), s=(64,), l=(64,), m=(64,), v=(64,))
    check(got, {"Conv": 1}, [], feeds(3, 64, 4, 4), tolerance=1e-3)


@pytest.mark.parametrize("k", ["0.0", "nan", "inf", "1e-39", "1e39"])
@pytest.mark.parametrize("arithmetic", ["Mul(h, k)", "Div(h, k)", "Add(h, k)"])
def test_numbers_at_the_border(arithmetic, k):
    number = np.full((), float(k))
    got = made(f"g (T[N,3,5,5] x) => (T[N,4,3,3] y) {{ h = Conv(x, w) y = {arithmetic} }}", w=(4, 3, 3, 3), k=number)
    check(got, None, ONLY, feeds(3, 3, 5, 5), tolerance=2e-5)


@pytest.mark.parametrize("w, k", [(1e-30, 1e-20), (1e30, 1e20), (np.inf, 2), (np.nan, 2)])
def test_weights_that_would_be_lost(w, k):
    weights = np.full((4, 3, 3, 3), w)
    body = "g (T[N,3,5,5] x) => (T[N,4,3,3] y) { h = Conv(x, w) y = Mul(h, k) }"
    check_unchanged(made(body, w=weights, k=np.array(k)), ONLY)


@pytest.mark.parametrize(
    "body",
    [
        # others use what the layer gives, or its weights
        "g (T[N,3,5,5] x) => (T[N,4,3,3] y, T[N,4,3,3] h) { h = Conv(x, w) y = Mul(h, k) }",
        "g (T[N,3,5,5] x) => (T[N,4,3,3] y, T[N,4,3,3] z) { h = Conv(x, w) y = Mul(h, k) z = Conv(x, w) }",
        # the constants are no numbers of channels
        "g (T[N,3,5,7] x) => (T[N,4,3,5] y) { h = Conv(x, w) y = Mul(h, rows) }",
        "g (T[N,3,5,5] x) => (T[1,N,4,3,3] y) { h = Conv(x, w) y = Mul(h, deep) }",
        "g (T[N,3,5,5] x) => (T[N,4,3,3] y) { h = Conv(x, w) y = Div(k, h) }",
        # in training
        """g (T[N,3,5,5] x) => (T[N,4,3,3] y)
        { h = Conv(x, w) y, p, q = BatchNormalization<training_mode = 1>(h, s, b, m, v) }""",
        # weights that are given at run time
        "g (T[N,3,5,5] x, T[4,3,3,3] u) => (T[N,4,3,3] y) { h = Conv(x, u) y = Mul(h, k) }",
    ],
)
def test_what_stays(body):
    weights = {"w": (4, 3, 3, 3), "k": (4, 1, 1), "rows": (5,), "deep": (1, 1, 4, 1, 1), **NORM}
    weights = {name: shape for name, shape in weights.items() if f" {name}" in body or f"({name}" in body}
    check_unchanged(made(body, **weights), ["fuse_bn"], special=False, tolerance=1e-5)


def test_old_broadcast():
    body = "g (T[N,3,5,5] x) => (T[N,4,3,3] y) { h = Conv(x, w) y = Mul<broadcast = 1, axis = 1>(h, k) }"
    source = onnx.parser.parse_model(f'<ir_version: 3, opset_import: ["" : 6]> {body.replace("T[", "float[")}')
    for name, shape in {"w": (4, 3, 3, 3), "k": (4,)}.items():
        array = RANDOM.uniform(0.5, 1.5, shape).astype(np.float32)
        source.graph.initializer.append(numpy_helper.from_array(array, name))
    newest = made(body.replace("<broadcast = 1, axis = 1>", ""), w=(4, 3, 3, 3), k=(4, 1, 1))
    for i, each in enumerate(source.graph.initializer):
        array = numpy_helper.to_array(each)
        newest.graph.initializer[i].CopyFrom(
            numpy_helper.from_array(array.reshape(-1, 1, 1) if i else array, each.name)
        )
    from simplify_checks import assert_same, count, run

    import tonnx

    simplified, _ = tonnx.simplify(source, only=ONLY)
    assert dict(count(simplified.graph)) == {"Conv": 1}
    x = feeds(2, 3, 5, 5)
    assert_same(run(simplified, x), run(newest, x), 2e-5)


def test_large_weights_inside_of_nodes_and_functions():
    branch = "() => (float[N,64,2,2] a) { h = Conv(x, w) a = Mul(h, k) }"
    body = f"""g (bool c, float[N,64,4,4] x) => (float[N,64,2,2] y)
    {{ y = If(c) <then_branch = t {branch}, else_branch = e () => (float[N,64,2,2] d) {{ d = MaxPool<kernel_shape = [3, 3]>(x) }}> }}"""
    source = made(body)
    weights = {"w": (64, 64, 3, 3), "k": (1, 64, 1, 1)}
    arrays = {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in weights.items()}
    then = next(each.g for each in source.graph.node[0].attribute if each.name == "then_branch")
    then.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    x = {"c": np.array(True), **feeds(3, 64, 4, 4)}
    check(source, {"If": 1, "Conv": 1, "MaxPool": 1}, ONLY, x, tolerance=1e-3)

    function = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]> g (float[N,64,4,4] x) => (float[N,64,2,2] y) { y = own.f(x) }
    <domain: "own", opset_import: ["" : 18]> f (x) => (y) { w = Constant() k = Constant() h = Conv(x, w) y = Mul(h, k) }"""
    called = onnx.parser.parse_model(function)
    for node, (name, array) in zip(called.functions[0].node[:2], arrays.items(), strict=True):
        node.attribute.append(onnx.helper.make_attribute("value", numpy_helper.from_array(array, name)))
    check(called, {"f": 1}, [*ONLY], feeds(3, 64, 4, 4), tolerance=1e-3)
    check(called, {"Conv": 1}, ["inline_functions", *ONLY], feeds(3, 64, 4, 4), tolerance=1e-3)

"""fuse_gemm: products of matrices with sums and transposed operands become Gemm, where Gemm can say it."""

from __future__ import annotations

import pytest
from simplify_checks import check, check_unchanged, model

ONLY = ["fuse_gemm"]
EXACT = {"special": False, "tolerance": 1e-5}


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 22])
@pytest.mark.parametrize("bias", ["4", "1,4", "1", "N,4", "N,1"])
@pytest.mark.parametrize("swapped", [False, True])
def test_product_and_sum(opset, bias, swapped):
    total = "Add(c, h)" if swapped else "Add(h, c)"
    body = f"g (float[N,3] a, float[3,4] b, float[{bias}] c) => (float[N,4] y) {{ h = MatMul(a, b) y = {total} }}"
    check(model(body, opset), {"Gemm": 1}, ONLY, **EXACT)


@pytest.mark.parametrize("dtype", ["double", "float16"])
def test_types(dtype):
    body = f"g ({dtype}[N,3] a, {dtype}[3,4] b, {dtype}[4] c) => ({dtype}[N,4] y) {{ h = MatMul(a, b) y = Add(h, c) }}"
    check(model(body), {"Gemm": 1}, ONLY, special=False, tolerance=1e-2)


@pytest.mark.parametrize("opset", [7, 11, 18])
def test_transposed_operands(opset):
    body = """g (float[3,N] a, float[4,3] b, float[4] c) => (float[N,4] y)
    { t = Transpose<perm = [1, 0]>(a) u = Transpose(b) h = MatMul(t, u) y = Add(h, c) }"""
    check(model(body, opset), {"Gemm": 1}, ONLY, **EXACT)


def test_transposed_operand_of_gemm():
    body = """g (float[N,3] a, float[3,4] b, float[4] c) => (float[N,4] y)
    { u = Transpose<perm = [1, 0]>(b) y = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(a, u, c) }"""
    check(model(body), {"Gemm": 1}, ONLY, **EXACT)


def test_gemm_and_sum():
    body = """g (float[N,3] a, float[4,3] b, float[4] c) => (float[N,4] y)
    { h = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(a, b) y = Add(h, c) }"""
    check(model(body), {"Gemm": 1}, ONLY, **EXACT)


def test_gemm_with_zeros_and_sum():
    body = """g (float[N,3] a, float[3,4] b, float[4] c) => (float[N,4] y) <float[4] z = {0, 0, 0, 0}>
    { h = Gemm<beta = 2.0>(a, b, z) y = Add(h, c) }"""
    check(model(body), {"Gemm": 1}, ONLY, **EXACT)


def test_infinite_values():
    body = "g (float[N,1] a, float[1,4] b, float[4] c) => (float[N,4] y) { h = MatMul(a, b) y = Add(h, c) }"
    check(model(body), {"Gemm": 1}, ONLY)


@pytest.mark.parametrize(
    "body",
    [
        "g (float[2,N,3] a, float[3,4] b, float[4] c) => (float[2,N,4] y) { h = MatMul(a, b) y = Add(h, c) }",
        "g (float[N,3] a, float[3,1] b, float[4] c) => (float[N,4] y) { h = MatMul(a, b) y = Add(h, c) }",
        "g (float[N,3] a, float[3,4] b, float[1,1,4] c) => (float[1,N,4] y) { h = MatMul(a, b) y = Add(h, c) }",
        "g (float[N,3] a, float[3,4] b, float[M,4] c) => (float[M,4] y) { h = MatMul(a, b) y = Add(h, c) }",
        "g (float[N,3] a, float[3,4] b, float[4] c) => (float[N,4] y, float[N,4] h) { h = MatMul(a, b) y = Add(h, c) }",
        "g (int32[N,3] a, int32[3,4] b, int32[4] c) => (int32[N,4] y) { h = MatMul(a, b) y = Add(h, c) }",
        """g (float[N,3] a, float[3,4] b, float[4] c, float[4] d) => (float[N,4] y)
        { h = Gemm(a, b, d) y = Add(h, c) }""",
        """g (uint8[N,3] q, float[3,4] b, float[4] c) => (float[N,4] y) <float s = {0.5}>
        { a = DequantizeLinear(q, s) h = MatMul(a, b) y = Add(h, c) }""",
        """g (float[3,N] a, float[3,4] b) => (float[N,4] y, float[N,3] t)
        { t = Transpose(a) y = MatMul(t, b) }""",
        "g (float[2,3,N] a, float[3,4] b) => (float[2,N,4] y) { t = Transpose<perm = [0, 2, 1]>(a) y = MatMul(t, b) }",
    ],
)
def test_what_stays(body):
    check_unchanged(model(body), ONLY, sizes={"N": 2, "M": 2}, **EXACT)


@pytest.mark.parametrize("opset", [9, 11])
def test_transposed_operand_alone(opset):
    body = "g (float[3,N] a, float[3,4] b) => (float[N,4] y) { t = Transpose(a) y = MatMul(t, b) }"
    check(model(body, opset), {"Gemm": 1}, ONLY, **EXACT)


@pytest.mark.parametrize(
    ("opset", "nodes", "left"),
    [
        (13, "a = Transpose(x) y = MatMul(a, w)", {"Gemm": 1}),
        (11, "b = Transpose(x) a = Transpose(w) c = Neg(w) d = Transpose(c) y = MatMul(a, d)", {"Gemm": 1, "Neg": 1}),
        (13, "a = Transpose(x) y = Gemm(a, w)", {"Gemm": 1}),
        (13, "a = Transpose(x) y = Gemm<transA=1,alpha=2.0>(a, a)", {"Gemm": 1, "Transpose": 1}),
        (10, "a = Transpose(x) y = MatMul(a, w)", {"Gemm": 1}),
        (13, "a = Neg(x) y = MatMul(a, w)", {"MatMul": 1, "Neg": 1}),
    ],
)
def test_turned_operands(opset, nodes, left):
    made = model(
        f"g (float[5,5] x, float[5,5] w) => (float[N,M] y) {{ {nodes} }}".replace("b = Transpose(x) ", ""), opset=opset
    )
    check(made, left, ONLY, special=False, tolerance=1e-5)


def test_turned_operands_of_more_axes_and_integers():
    check_unchanged(
        model(
            "g (float[2,5,5] x, float[5,5] w) => (float[2,5,5] y) { a = Transpose<perm=[0,2,1]>(x) y = MatMul(a, w) }"
        ),
        ONLY,
        special=False,
    )
    check_unchanged(
        model("g (int32[5,5] x, int32[5,5] w) => (int32[5,5] y) { a = Transpose(x) y = MatMul(a, w) }"),
        ONLY,
        special=False,
    )

"""recognise_reductions: reductions of squares, magnitudes and exponentials that have a name of their own."""

from __future__ import annotations

import numpy as np
import pytest
from simplify_checks import check, check_unchanged, count, model

import tonnx

EXACT, LOOSE = ["recognise_reductions"], ["recognise_log_sum_exp"]


def made(nodes: str, opset: int = 18, axes: str = "-1", result: str = "float[N,M,1]", dtype: str = "float"):
    numbers = f"<int64[{axes.count(',') + 1}] axes = {{{axes}}}, {dtype} two = {{2}}, {dtype} three = {{3}}>"
    if opset < 18:
        nodes = nodes.replace("ReduceMax(x, axes)", f"ReduceMax<axes = [{axes}]>(x)")
    if opset < 13:
        nodes = nodes.replace("ReduceSum(", f"ReduceSum<axes = [{axes}]>(").replace(", axes)", ")")
    return model(f"g ({dtype}[N,M,4] x) => ({result.replace('float', dtype)} y) {numbers} {{ {nodes} }}", opset)


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize(
    "nodes, op",
    [
        ("q = Mul(x, x) s = ReduceSum(q, axes) y = Sqrt(s)", "ReduceL2"),
        ("q = Pow(x, two) s = ReduceSum(q, axes) y = Sqrt(s)", "ReduceL2"),
        ("q = Mul(x, x) y = ReduceSum(q, axes)", "ReduceSumSquare"),
        ("q = Abs(x) y = ReduceSum(q, axes)", "ReduceL1"),
        ("s = ReduceSum(x, axes) y = Log(s)", "ReduceLogSum"),
    ],
)
def test_found(nodes, op, opset):
    check(made(nodes, opset), {op: 1}, EXACT, tolerance=1e-6)


@pytest.mark.parametrize("axes, attributes, result", [("0, -1", "", "1,M,1"), ("1", "<keepdims = 0>", "N,4")])
def test_axes(axes, attributes, result):
    source = made(f"q = Mul(x, x) s = ReduceSum{attributes}(q, axes) y = Sqrt(s)", 13, axes, f"float[{result}]")
    check(source, {"ReduceL2": 1}, EXACT, tolerance=1e-6)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_softmax(opset):
    nodes = "m = ReduceMax(x, axes) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, axes) y = Div(e, s)"
    check(made(nodes, opset, result="float[N,M,4]"), {"Softmax": 1}, EXACT, tolerance=1e-6)


@pytest.mark.parametrize(
    "nodes, result",
    [
        ("e = Exp(x) s = ReduceSum(e, axes) y = Div(e, s)", "float[N,M,4]"),  # NaN for large numbers
        ("q = Pow(x, three) s = ReduceSum(q, axes) y = Sqrt(s)", "float[N,M,1]"),
        ("q = Mul(x, two) y = ReduceSum(q, axes)", "float[N,M,1]"),
        ("e = Exp(x) s = ReduceSum(e, axes) y = Log(s)", "float[N,M,1]"),
    ],
)
def test_what_stays(nodes, result):
    check_unchanged(made(nodes, result=result), EXACT, tolerance=1e-6)


def test_double_stays():
    check_unchanged(made("q = Mul(x, x) y = ReduceSum(q, axes)", dtype="double"), EXACT)


@pytest.mark.parametrize(
    "nodes, op, result",
    [
        ("e = Exp(x) s = ReduceSum(e, axes) y = Log(s)", "ReduceLogSumExp", "float[N,M,1]"),
        ("s = Softmax(x) y = Log(s)", "LogSoftmax", "float[N,M,4]"),
    ],
)
def test_logarithms_on_request(nodes, op, result):
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    source = made(nodes, result=result)
    check(source, {op: 1}, LOOSE, {"x": x}, tolerance=1e-6)
    assert op not in count(tonnx.simplify(source)[0].graph)

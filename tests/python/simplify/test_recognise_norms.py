"""recognise_layer_norm and recognise_rms_norm: means and quotients that are a normalised layer become it."""

from __future__ import annotations

import numpy as np
import pytest
from simplify_checks import check, check_unchanged, count, model

import tonnx

LAYER, RMS = ["recognise_layer_norm", "eliminate_dead_code"], ["recognise_rms_norm", "eliminate_dead_code"]
CENTRED = "m = ReduceMean(x, axes) d = Sub(x, m) "
ROOT = "v = ReduceMean(p, axes) a = Add(v, eps) q = Sqrt(a) "
AFFINE = " n = Mul(z, scale) y = Add(n, bias)"


def made(nodes: str, opset: int = 18, axes: str = "-1", sizes: str = "4"):
    if opset < 18:
        nodes = nodes.replace("ReduceMean(x, axes)", f"ReduceMean<axes = [{axes}]>(x)")
        nodes = nodes.replace("ReduceMean(p, axes)", f"ReduceMean<axes = [{axes}]>(p)")
    numbers = np.random.default_rng(0).standard_normal(4 * sizes.count("4") ** 2).astype(np.float32)
    text = ", ".join(str(number) for number in numbers)
    weights = f"""<int64[{axes.count(",") + 1}] axes = {{{axes}}}, float two = {{2}}, float eps = {{0.00001}},
    float one = {{1}}, float minus = {{-0.5}}, float[{sizes}] scale = {{{text}}}, float[{sizes}] bias = {{{text}}}>"""
    return model(f"g (float[N,4,4] x) => (float[N,4,4] y) {weights} {{ {nodes} }}", opset)


def feeds():
    x = np.random.default_rng(1).standard_normal((5, 4, 4)) * 3 + np.array([0, 10, 100, 1e15, 0]).reshape(-1, 1, 1)
    x[4, :, 1] = [np.inf, -np.inf, np.nan, 1e-30]
    return {"x": x.astype(np.float32)}


@pytest.mark.parametrize("opset", [17, 18, 23])
@pytest.mark.parametrize("square", ["p = Pow(d, two) ", "p = Mul(d, d) "])
@pytest.mark.parametrize(
    "quotient", ["z = Div(d, q)", "r = Reciprocal(q) z = Mul(d, r)", "r = Div(one, q) z = Mul(r, d)"]
)
def test_layer_norm(opset, square, quotient):
    check(
        made(CENTRED + square + ROOT + quotient + AFFINE, opset),
        {"LayerNormalization": 1},
        LAYER,
        feeds(),
        tolerance=1e-3,
    )


def test_layer_norm_over_two_axes():
    source = made(CENTRED + "p = Mul(d, d) " + ROOT + "z = Div(d, q)" + AFFINE, 18, "1, 2", "4,4")
    check(source, {"LayerNormalization": 1}, LAYER, special=False, tolerance=1e-5)


def test_layer_norm_is_not_exact_for_large_sums():
    source = made(CENTRED + "p = Mul(d, d) " + ROOT + "z = Div(d, q)" + AFFINE)
    check(source, None, [], tolerance=1e-5, sizes={"N": 8})
    assert "LayerNormalization" not in count(tonnx.simplify(source)[0].graph)
    assert "LayerNormalization" not in count(made(CENTRED + "p = Mul(d, d) " + ROOT + "y = Div(d, q)", 16).graph)


@pytest.mark.parametrize(
    "nodes",
    [
        CENTRED + "p = Mul(x, x) " + ROOT + "y = Div(d, q)",
        CENTRED + "p = Mul(d, d) " + ROOT + "y = Div(x, q)",
        CENTRED + "p = Mul(d, m) " + ROOT + "y = Div(d, q)",
        CENTRED + "p = Mul(d, d) " + ROOT + "w = Div(d, q) y = Mul(w, d)",
        "m = ReduceMean<keepdims = 0>(x, axes) d = Sub(x, m) p = Mul(d, d) " + ROOT + "y = Div(d, q)",
        CENTRED + "p = Mul(d, d) v = ReduceMean(p, axes) a = Sub(v, one) q = Sqrt(a) y = Div(d, q)",
    ],
)
def test_no_layer_norm(nodes):
    check_unchanged(made(nodes), ["recognise_layer_norm"], special=False, sizes={"N": 4}, tolerance=1e-5)


RMS_ROOT = ROOT + "r = Reciprocal(q) z = Mul(x, r)"


@pytest.mark.parametrize(
    "nodes",
    [
        "p = Pow(x, two) " + ROOT + "z = Div(x, q) y = Mul(z, scale)",
        "p = Mul(x, x) " + RMS_ROOT + " y = Mul(scale, z)",
        "p = Mul(x, x) v = ReduceMean(p, axes) a = Add(eps, v) r = Pow(a, minus) z = Mul(r, x) y = Mul(scale, z)",
        "p = Mul(x, x) " + ROOT + "y = Div(x, q)",
    ],
)
def test_rms_norm(nodes):
    check(made(nodes, 23), {"RMSNormalization": 1}, RMS, tolerance=1e-5)
    assert "RMSNormalization" not in count(tonnx.simplify(made(nodes, 22))[0].graph)


@pytest.mark.parametrize(
    "nodes",
    [
        "p = Pow(x, two) " + ROOT + "y = Div(p, q)",
        "p = Pow(x, two) v = ReduceMean(p, axes) a = Add(v, eps) y = Div(x, a)",
    ],
)
def test_no_rms_norm(nodes):
    check_unchanged(made(nodes, 23), ["recognise_rms_norm"], special=False, tolerance=1e-5)

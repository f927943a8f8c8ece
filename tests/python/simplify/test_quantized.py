"""Weights that are quantised stay so, and nothing comes between them and those that use them."""

from __future__ import annotations

import pytest
from simplify_checks import check, check_unchanged, model

SCALES = "float s = {0.5}, uint8 z = {3}, float t = {0.25}, int8 u = {0}"


def made(nodes: str, weights: str, opset: int = 18):
    return model(f"g (float[N,2] x) => (float[N,2] y) <{SCALES}, {weights}> {{ {nodes} }}", opset)


IN = "q = QuantizeLinear(x, s, z) a = DequantizeLinear(q, s, z) "


@pytest.mark.parametrize(
    "nodes, weights",
    [
        (IN + "w = DequantizeLinear(i, t, u) y = MatMul(a, w)", "int8[2,2] i = {1, 2, 3, 4}"),
        (IN + "v = DequantizeLinear(i, t, u) w = Transpose(v) y = MatMul(a, w)", "int8[2,2] i = {1, 2, 3, 4}"),
        (
            IN + "k = QuantizeLinear(f, t, u) w = DequantizeLinear(k, t, u) y = MatMul(a, w)",
            "float[2,2] f = {1, 2, 3, 4}",
        ),
        (
            IN + "w = DequantizeLinear(i, t, u) h = MatMul(a, w) y = Add(h, b)",
            "int8[2,2] i = {1, 2, 3, 4}, float[2] b = {1, 2}",
        ),
        (
            IN + "w = DequantizeLinear(i, t, u) h = MatMul(a, w) y = Mul(h, b)",
            "int8[2,2] i = {1, 2, 3, 4}, float[2] b = {1, 2}",
        ),
        (IN + "o = DequantizeLinear(i, t, u) y = Mul(a, o)", "int8 i = {4}"),
    ],
)
def test_what_stays(nodes, weights):
    check_unchanged(made(nodes, weights), [], special=False, tolerance=1e-6)


def test_what_is_in_front_is_computed():
    nodes = IN + "j = Transpose(i) w = DequantizeLinear(j, t, u) y = MatMul(a, w)"
    left = {"QuantizeLinear": 1, "DequantizeLinear": 2, "MatMul": 1}
    check(made(nodes, "int8[2,2] i = {1, 2, 3, 4}"), left, special=False, tolerance=1e-6)


def test_outputs_are_computed():
    body = "g (float[2] x) => (float[2] y, float[2] z) <float s = {0.5}, int8[2] i = {1, 2}> { y = DequantizeLinear(i, s) z = Neg(x) }"
    check(model(body), {"Neg": 1})

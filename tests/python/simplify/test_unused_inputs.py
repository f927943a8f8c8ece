"""drop_unused_inputs: on request, inputs that nobody uses go away."""

from __future__ import annotations

from simplify_checks import model

import tonnx


def names(graph):
    return [each.name for each in graph.input]


def test_unused_inputs():
    source = model("g (float[2] a, float[2] x, int64[1] b) => (float[2] y) { n = Shape(b) y = Neg(x) }")
    assert names(tonnx.simplify(source)[0].graph) == ["a", "x", "b"]
    assert names(tonnx.simplify(source, enable=["drop_unused_inputs"])[0].graph) == ["x"]


def test_one_stays():
    source = model("g (float[2] a, float[2] b) => (float[1] y) { y = Constant<value = float[1] {1}>() }")
    assert names(tonnx.simplify(source, enable=["drop_unused_inputs"])[0].graph) == ["a"]

"""drop_default_inputs: optional inputs that are what is assumed without them."""

from __future__ import annotations

import pytest
from simplify_checks import check, model

ONLY = ["drop_default_inputs"]
ONES = ",".join(["0.5"] * 48)


@pytest.mark.parametrize(
    ("number", "left"),
    [("0", {"LSTM": 1}), ("0.5", {"LSTM": 1, "Shape": 1, "Slice": 1, "Concat": 1, "Expand": 1, "Unsqueeze": 1})],
)
def test_states(number, left):
    made = model(
        f"""g (float[T,B,2] x) => (float[T,1,B,2] y) <float[1,8,2] w = {{{ONES[:63]}}}, float[1,8,2] r = {{{ONES[:63]}}}, float[1,16] b = {{{ONES[:63]}}},
        float zero = {{{number}}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] none = {{0}}> {{
        s = Shape(x) batch = Slice(s, one, two) to = Concat<axis=0>(batch, two) e = Expand(zero, to) h = Unsqueeze(e, none)
        y, yh, yc = LSTM<hidden_size=2>(x, w, r, b, , h, h) }}"""
    )
    check(made, left, ONLY, special=False, tolerance=1e-5)


@pytest.mark.parametrize(("op", "constant", "inputs"), [("Gemm(x, w, c)", "0,0", 2), ("Gemm(x, w, c)", "0,1", 3)])
@pytest.mark.parametrize("opset", [9, 13])
def test_bias(op, constant, inputs, opset):
    made = model(
        f"g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {{1,2,3,4}}, float[2] c = {{{constant}}}> {{ y = {op} }}",
        opset=opset,
    )
    found = check(made, {"Gemm": 1}, ONLY)
    assert len(found.graph.node[0].input) == (3 if opset < 11 else inputs)


@pytest.mark.parametrize(("constant", "inputs"), [("0", 2), ("1", 3)])
def test_bias_of_conv(constant, inputs):
    made = model(
        f"g (float[N,1,4] x) => (float[N,1,3] y) <float[1,1,2] w = {{1,2}}, float[1] c = {{{constant}}}> {{ y = Conv(x, w, c) }}"
    )
    assert len(check(made, {"Conv": 1}, ONLY, special=False).graph.node[0].input) == inputs

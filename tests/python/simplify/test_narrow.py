"""remove_redundant_broadcasts and merge_gathers: what only repeats a tensor, or takes all of it in its order, goes."""

from __future__ import annotations

import numpy as np
import pytest
from simplify_checks import check, check_unchanged, model

NARROW = ["remove_redundant_broadcasts"]
GATHERS = ["merge_gathers"]
TRUE = (
    "<bool[3,1] t = {1,1,1}, bool[3,1] f = {0,0,0}, bool[3,1] m = {1,0,1}, int64[2] s = {3,4}, float[3,1] o = {1,1,1}>"
)

# inputs beside x, nodes from x to y, what is left
NARROWED = [
    ("float[3,4] z", "a = Expand(x, s) y = Add(a, z)", {"Add": 1}),
    ("float[3,4] z", "a = Expand(x, s) b = Neg(a) c = Exp(b) y = Add(c, z)", {"Neg": 1, "Exp": 1, "Add": 1}),
    ("float[3,4] z", "a = Mul(x, o) b = Relu(a) y = Add(z, b)", {"Relu": 1, "Add": 1}),
    ("float[2,3,4] z", "a = Expand(x, s) y = Add(a, z)", {"Add": 1}),
    ("float[3,4] z", "a = Expand(x, s) b = Neg(a) c = Add(a, z) y = Add(b, c)", {"Neg": 1, "Add": 2}),
    ("float[3,4] z", "a = Where(t, x, z) b = Neg(a) y = Add(b, z)", {"Neg": 1, "Add": 1}),
    ("float[3,4] z", "a = Where(f, z, x) y = Add(a, z)", {"Add": 1}),
]
NOT_NARROWED = [
    ("", "y = Expand(x, s)"),  # the result is what somebody wants
    ("", "a = Expand(x, s) y = Neg(a)"),
    ("float[3,4] z", "a = Expand(x, s) b = Softmax<axis=0>(a) y = Add(b, z)"),  # another size, another result
    ("float[3,4] z", "a = Expand(x, s) y = PRelu(a, z)"),  # repeats its slope alone
    ("float[1,4] z", "a = Expand(x, s) y = Add(a, z)"),  # nobody else is as large
    ("float[3,4] z", "a = Where(m, x, z) y = Add(a, z)"),
]


@pytest.mark.parametrize(("inputs", "nodes", "left"), NARROWED)
def test_what_others_repeat_is_not_repeated(inputs, nodes, left):
    made = model(f"g (float[1,4] x, {inputs}) => ({inputs.split()[0]} y) {TRUE} {{ {nodes} }}")
    check(made, left, NARROW)


@pytest.mark.parametrize(("inputs", "nodes"), NOT_NARROWED)
def test_what_is_needed_as_large_as_it_is_stays(inputs, nodes):
    inputs = f", {inputs}" if inputs else ""
    check_unchanged(model(f"g (float[1,4] x{inputs}) => (float[3,4] y) {TRUE} {{ {nodes} }}"), NARROW)


def test_masks():
    nodes = "i = Constant<value_float=-1.0>() a = And(t, x) b = Or(a, f) c = Not(b) y = Where(c, z, i)"
    made = model(f"g (bool[1,4] x, float[2,3,4] z) => (float[2,3,4] y) {TRUE} {{ {nodes} }}")
    check(made, {"Not": 1, "Where": 1}, NARROW)


@pytest.mark.parametrize(
    ("x", "y", "constants", "nodes", "left"),
    [
        ("float[2,3]", "float[2,1,1,3]", "int64[2,1,1,3,2] i = {0,0,0,1,0,2,1,0,1,1,1,2}", "a = GatherND(x, i)", {"Unsqueeze": 1}),
        ("float[2,3,N]", "float[6,N]", "int64[6,2] i = {0,0,0,1,0,2,1,0,1,1,1,2}", "a = GatherND(x, i)", {"Reshape": 1}),
        ("float[N,6]", "float[N,2,3]", "int64[2,3] i = {0,1,2,3,4,5}", "a = Gather<axis=1>(x, i)", {"Reshape": 1}),
        ("float[N,3]", "float[N,3]", "int64[3] i = {0,-2,2}", "a = Gather<axis=-1>(x, i)", {}),
        ("float[N,6]", "float[N,2,3]", "int64[2,3] i = {0,1,2,3,5,4}", "a = Gather<axis=1>(x, i)", {"Gather": 1}),
        ("float[N,6]", "float[N,2,2]", "int64[2,2] i = {0,1,2,3}", "a = Gather<axis=1>(x, i)", {"Gather": 1}),
        ("float[2,3]", "float[2,1]", "int64[2,1,1] i = {0,1}", "a = GatherND<batch_dims=1>(x, i)", {"GatherND": 1}),
        ("float[2,3]", "float[6]", "int64[6,2] i = {0,0,1,0,0,1,1,1,0,2,1,2}", "a = GatherND(x, i)", {"GatherND": 1}),
    ],
)  # fmt: skip
def test_all_there_is_in_its_order(x, y, constants, nodes, left):
    check(model(f"g ({x} x) => ({y} y) <{constants}> {{ {nodes} y = Neg(a) }}"), {"Neg": 1, **left}, GATHERS)


@pytest.mark.parametrize("batch", [0, 2])
def test_the_only_one_of_an_open_batch(batch):
    """Case 31000156: a Reshape to [0, -1] has no meaning where the batch is empty."""
    made = model("g (float[N,1,M] x) => (float[N,M] y) <int64 i = {-1}> { a = Gather<axis=-2>(x, i) y = Neg(a) }")
    check(made, {"Neg": 1, "Squeeze": 1}, GATHERS, feeds={"x": np.ones((batch, 1, 3), np.float32)})

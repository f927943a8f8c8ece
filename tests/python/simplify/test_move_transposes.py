"""move_transposes: Transposes meet, end, or become attributes, and there are never more nodes than before."""

from __future__ import annotations

import pytest
from simplify_checks import check, check_unchanged, model

ONLY = ["move_transposes"]
TO, BACK = "Transpose<perm=[0,2,3,1]>", "Transpose<perm=[0,3,1,2]>"
C = "<float[4] c = {1,-2,3,4}, float[1] s = {2}, float[1,1,1,4] d = {1,2,3,5}, float[5,1] e = {7,8,9,-1,1}>"


def nhwc(nodes: str, constants: str = C, y: str = "float[N,C,H,W]", opset: int = 18):
    return model(f"g (float[N,4,3,5] x, float[N,4,3,5] w) => ({y} y) {constants} {{ {nodes} }}", opset=opset)


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        (f"a = {TO}(x) b = Relu(a) y = {BACK}(b)", {"Relu": 1}),
        (f"a = {TO}(x) b = Add(a, c) f = Sigmoid(b) y = {BACK}(f)", {"Add": 1, "Sigmoid": 1}),
        (f"a = {TO}(x) b = Mul(d, a) f = Div(b, e) h = Clip(f, sc) y = {BACK}(h)", {"Mul": 1, "Div": 1, "Clip": 1}),
        (f"a = {TO}(x) a2 = {TO}(w) b = Sub(a, a2) y = {BACK}(b)", {"Sub": 1}),
        (f"a = {TO}(x) a2 = {TO}(w) b = Relu(a) f = Max(b, a2, s) y = {BACK}(f)", {"Relu": 1, "Max": 1}),
        (f"a = {TO}(x) b = Where(q, a, c) y = {BACK}(b)", {"Where": 1}),
        (f"a = {TO}(x) a2 = {TO}(w) y = Add(a, a2)", {"Add": 1, "Transpose": 1}),
        (f"a = {TO}(x) a2 = {TO}(w) y = Concat<axis=3>(a, a2, a)", {"Concat": 1, "Transpose": 1}),
        (f"a = {TO}(x) a2 = {TO}(w) b = Concat<axis=-1>(a, a2) y = {BACK}(b)", {"Concat": 1}),
        (f"a = {TO}(x) b = Softmax(a) y = {BACK}(b)", {"Softmax": 1}),
        (f"a = {TO}(x) b = LogSoftmax<axis=1>(a) y = {BACK}(b)", {"LogSoftmax": 1}),
        (f"a = {TO}(x) b = ReduceMax(a, l12) y = {BACK}(b)", {"ReduceMax": 1}),
        (f"a = {TO}(x) b = ReduceMax(a) y = {BACK}(b)", {"ReduceMax": 1}),
        (f"a = {TO}(x) b = Pad(a, p) y = {BACK}(b)", {"Pad": 1}),
        (f"a = {TO}(x) b = Pad<mode=\"edge\">(a, l4, , l13) y = {BACK}(b)", {"Pad": 1}),
        (f"a = {TO}(x) b = Slice(a, l12, l34, l13) y = {BACK}(b)", {"Slice": 1}),
        (f"a = {TO}(x) b = Slice(a, l12, l34) y = {BACK}(b)", {"Slice": 1}),
        (f"a = {TO}(x) b = Relu(a) f = {BACK}(b) h = Neg(b) z = {BACK}(h) y = Add(f, z)", {"Relu": 1, "Neg": 1, "Add": 1}),
        (f"a = {TO}(x) b = Relu(a) y = Transpose<perm=[1,0,2,3]>(b)", {"Relu": 1, "Transpose": 1}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("opset", [13, 18])
def test_moves(nodes, left, opset):
    if opset < 18:
        nodes = nodes.replace("ReduceMax(a, l12)", "ReduceMax<axes=[1,2]>(a)")
        if ", , l13" in nodes:
            return
    lists = "int64[2] l12 = {1,2}, int64[2] l34 = {3,4}, int64[2] l13 = {1,3}, int64[4] l4 = {1,2,0,1}, int64[8] p = {0,1,0,2,1,0,0,3}, float sc = {0.5}, bool[3,1,1] q = {1,0,1}"
    made = nhwc(nodes, C.replace(">", f", {lists}>"), opset=opset)
    if "Where" in nodes:
        made.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 1
        made.graph.initializer[[i.name for i in made.graph.initializer].index("q")].dims[:] = [3, 1, 1]
    # ONNX Runtime's maximum depends on where among the numbers a NaN is
    check(made, left, [*ONLY, "merge_transposes"], special="ReduceMax" not in nodes)


@pytest.mark.parametrize(
    "nodes",
    [
        f"a = {TO}(x) y = Relu(a)",
        f"a = Relu(x) y = {TO}(a)",
        f"a = Add(x, w) y = {TO}(a)",
        f"a = {TO}(x) y = Add(a, c)",
        f"a = {TO}(x) b = CumSum(a, i) y = {BACK}(b)",
        f"a = {TO}(x) b = Reshape(a, k) y = {BACK}(b)",
        f"a = {TO}(x) b = Transpose<perm=[0,2,1,3]>(w) b2 = Reshape(b, k) y = Add(a, b2)",
    ],
)
def test_stays(nodes):
    constants = C.replace(">", ", int64 i = {3}, int64[4] k = {-1,3,5,4}>")
    check_unchanged(nhwc(nodes, constants), ONLY)


def test_softmax_of_the_first_form_stays():
    check_unchanged(nhwc(f"a = {TO}(x) b = Softmax<axis=3>(a) y = {BACK}(b)", "", opset=11), ONLY)


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("a = Transpose<perm=[0,2,3,1]>(x) y = ReduceSum<keepdims=0>(a, l12)", {"ReduceSum": 1}),
        ("a = Transpose<perm=[0,2,3,1]>(x) y = ReduceSum<keepdims=0>(a, l3)", {"ReduceSum": 1}),
        ("a = Transpose<perm=[3,2,1,0]>(x) y = ReduceSum<keepdims=0>(a, l3)", {"Transpose": 1, "ReduceSum": 1}),
        ("a = Transpose<perm=[0,2,3,1]>(x) y = ArgMax<axis=-1,keepdims=0>(a)", {"ArgMax": 1}),
        ("a = Transpose<perm=[0,2,3,1]>(x) y = Gather<axis=3>(a, i)", {"Gather": 1}),
        ("a = Transpose<perm=[0,2,3,1]>(x) y = Gather<axis=3>(a, l3)", {"Transpose": 1, "Gather": 1}),
        ("a = Transpose<perm=[1,0,2,3]>(x) y = Gather<axis=2>(a, i)", {"Transpose": 1, "Gather": 1}),
    ],
)
def test_axes_that_go_away(nodes, left):
    made = model(
        f"g (float[N,4,3,5] x) => (float y) <int64[2] l12 = {{1,2}}, int64[1] l3 = {{3}}, int64 i = {{2}}> {{ {nodes} }}"
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    if "ArgMax" in nodes:
        made.graph.output[0].type.tensor_type.elem_type = 7
    check(made, left, ONLY, special=False, tolerance=1e-5)


@pytest.mark.parametrize(
    ("x", "nodes", "left"),
    [
        (
            "float[N,1,3,4]",
            "a = Transpose<perm=[0,1,3,2]>(x) b = Squeeze(a, l1) y = Transpose<perm=[0,2,1]>(b)",
            {"Squeeze": 1},
        ),
        (
            "float[N,3,4]",
            "a = Transpose<perm=[0,2,1]>(x) b = Unsqueeze(a, l1) y = Transpose<perm=[0,1,3,2]>(b)",
            {"Unsqueeze": 1},
        ),
        ("float[N,3,4]", "a = Unsqueeze(x, l1) y = Transpose<perm=[0,2,1,3]>(a)", {"Unsqueeze": 1}),
        ("float[N,3,4]", "a = Unsqueeze(x, l1) y = Transpose<perm=[0,3,1,2]>(a)", {"Unsqueeze": 1, "Transpose": 1}),
        ("float[1,N,3,4]", "b = Squeeze(x, l0) y = Transpose<perm=[0,2,1]>(b)", {"Squeeze": 1, "Transpose": 1}),
    ],
)
def test_axes_of_size_one(x, nodes, left):
    made = model(f"g ({x} x) => (float y) <int64[1] l1 = {{1}}, int64[1] l0 = {{0}}> {{ {nodes} }}")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    check(made, left, ONLY)

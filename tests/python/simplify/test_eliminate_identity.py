"""eliminate_identity: nodes that give what they are given go away, and others do not."""

from __future__ import annotations

import numpy as np
import pytest
from simplify_checks import check, check_unchanged, model

ONLY = ["eliminate_identity"]


def with_neg(nodes: str, x: str, y: str, constants: str, opset: int):
    return model(f"g ({x} x) => ({y} y) {constants} {{ {nodes} y = Neg(b) }}", opset=opset)


X = "float[N,3,1,4]"
# opset, type of x and of y, constants, nodes: all go away
NOTHING = [
    (7, X, "", "b = Identity(x)"), (25, X, "", "b = Identity(x)"),
    (9, X, "", "b = Cast<to=1>(x)"), (25, X, "", "b = Cast<to=1>(x)"),
    (19, X, "<float c = {1}>", "b = CastLike(x, c)"),
    (7, X, "<int64[4] c = {0,3,1,-1}>", "b = Reshape(x, c)"), (21, "float[2,3]", "<int64[2] c = {2,3}>", "b = Reshape(x, c)"),
    (9, "float[N,5]", "", "b = Flatten(x)"), (21, "float[2,3]", "", "b = Flatten<axis=-1>(x)"),
    (11, "float[2,3]", "", "b = Squeeze(x)"), (13, "float[2,3]", "", "b = Squeeze(x)"),
    (13, X, "<int64[0] c = {}>", "b = Unsqueeze(x, c)"),
    (8, X, "<int64[2] c = {1,1}>", "b = Expand(x, c)"), (13, X, "<int64[3] c = {3,1,4}>", "b = Expand(x, c)"),
    (7, X, "<int64[4] c = {1,1,1,1}>", "b = Tile(x, c)"), (13, X, "<int64[4] c = {1,1,1,1}>", "b = Tile(x, c)"),
    (9, X, "", "b = Slice<axes=[1,3],starts=[0,-4],ends=[100,4]>(x)"),
    (10, X, "<int64[1] s = {0}, int64[1] e = {9223372036854775807}, int64[1] a = {0}>", "b = Slice(x, s, e, a)"),
    (13, X, "<int32[2] s = {0,0}, int32[2] e = {1000000,3}, int32[2] a = {1,2}, int32[2] t = {1,2}>", "b = Slice(x, s, e, a, t)"),
    (7, X, "", "b = Pad<pads=[0,0,0,0,0,0,0,0]>(x)"), (13, X, "<int64[8] c = {0,0,0,0,0,0,0,0}>", 'b = Pad<mode="reflect">(x, c)'),
    (18, X, "<int64[2] c = {0,0}, int64[1] a = {3}>", "b = Pad(x, c, , a)"),
    (7, X, "", "b = Transpose<perm=[0,1,2,3]>(x)"), (13, "float[N]", "", "b = Transpose(x)"),
    (7, X, "", "b = Concat<axis=1>(x)"), (13, X, "", "b = Concat<axis=-1>(x)"),
    (7, X, "", "b = Split<axis=1,split=[3]>(x)"), (13, X, "<int64[1] c = {4}>", "b = Split<axis=3>(x, c)"), (18, X, "", "b = Split<axis=1,num_outputs=1>(x)"),
    (13, X, "<int64[3] c = {0,-2,2}>", "b = Gather<axis=1>(x, c)"), (7, X, "<int32[1] c = {0}>", "b = Gather<axis=-2>(x, c)"),
    (7, "float[1,1,3,4]", "", "b = Upsample<scales=[1.0,1.0,1.0,1.0]>(x)"), (9, "float[1,1,3,4]", "<float[4] c = {1,1,1,1}>", 'b = Upsample<mode="linear">(x, c)'),
    (10, "float[1,1,3,4]", "<float[4] c = {1,1,1,1}>", "b = Resize(x, c)"), (13, "float[1,1,3,4]", "<float[4] c = {1,1,1,1}>", 'b = Resize<mode="linear">(x, , c)'),
    (19, "float[1,1,3,4]", "<int64[4] c = {1,1,3,4}>", 'b = Resize<mode="cubic">(x, , , c)'),
    (7, X, "", "b = Dropout<ratio=0.3>(x)"), (10, X, "", "b, mask = Dropout(x)"), (13, X, "<float r = {0.3}, bool t = {0}>", "b = Dropout(x, r, t)"), (22, X, "", "b = Dropout(x)"),
    (7, X, "<float c = {0}>", "b = Add(x, c)"), (13, X, "<float[3,1,1] c = {0,0,0}>", "b = Add(c, x)"), (14, "int8[N,3]", "<int8 c = {0}>", "b = Add(c, x)"),
    (13, X, "<float c = {-0.0}>", "b = Add(x, c)"), (13, X, "<float c = {0}>", "b = Sub(x, c)"), (13, "int64[N]", "<int64[1] c = {0}>", "b = Sub(x, c)"),
    (7, X, "<float c = {1}>", "b = Mul(x, c)"), (13, X, "<float[1,1,1,1] c = {1}>", "b = Mul(c, x)"), (13, "double[N]", "<double[1] c = {1}>", "b = Div(x, c)"),
    (14, "int32[N]", "<int32[1] c = {1}>", "b = Div(x, c)"), (7, X, "<float c = {1}>", "b = Pow(x, c)"), (15, X, "<int64 c = {1}>", "b = Pow(x, c)"),
    (9, X, "<bool c = {1}, float d = {2}>", "b = Where(c, x, d)"), (16, X, "<bool[1,1] c = {0}, float d = {2}>", "b = Where(c, d, x)"),
    (13, X, "", "b = Sum(x)"), (13, X, "", "b = Max(x)"), (13, X, "", "b = Min(x)"), (13, X, "", "b = Mean(x)"),
    (11, X, "", "b = DepthToSpace<blocksize=1>(x)"), (13, X, "", "b = SpaceToDepth<blocksize=1>(x)"),
    (7, "float[2,3,4,5]", "", "b = AveragePool<kernel_shape=[1,1]>(x)"), (22, "float[2,3,4,5]", "", "b = AveragePool<kernel_shape=[1,1],strides=[1,1],pads=[0,0,0,0],count_include_pad=1>(x)"),
    (13, "float[N,M]", "<int64[0] a = {}>", "b = ReduceSum<noop_with_empty_axes=1>(x, a)"),
    (11, X, "", "b = ReduceSum<axes=[2]>(x)"), (13, X, "<int64[1] a = {2}>", "b = ReduceSum(x, a)"), (18, X, "<int64[1] a = {-2}>", "b = ReduceMean(x, a)"),
    (11, X, "", "b = ReduceMax<axes=[2]>(x)"), (18, X, "<int64[1] a = {-2}>", "b = ReduceMin(x, a)"), (13, X, "", "b = ReduceProd<axes=[2]>(x)"), (13, "float[N,3,1,1]", "", "b = GlobalAveragePool(x)"),
    (16, X, "<int64[0,2] i = {}, float[0,1,4] u = {}>", "b = ScatterND(x, i, u)"),
    (12, "int32[N]", "", "b = Clip(x)"), (13, "int8[N]", "<int8 l = {-128}, int8 h = {127}>", "b = Clip(x, l, h)"),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "x", "constants", "nodes"), NOTHING)
def test_nothing(opset, x, constants, nodes):
    special = "Pool" not in nodes  # ONNX Runtime's pools know no NaN
    check(with_neg(nodes, x, x, constants, opset), {"Neg": 1}, ONLY, special=special)


# opset, type of x and of y, constants, nodes: all stay
SOMETHING = [
    (13, "float[N]", "double[N]", "", "b = Cast<to=11>(x)"),
    (13, "float[N,3]", "float[M]", "<int64[1] c = {-1}>", "b = Reshape(x, c)"),
    (13, "float[2,2]", "float[2,2]", "", "b = Transpose(x)"), (13, "float[1,3]", "float[3,1]", "", "b = Transpose(x)"),
    (13, "float[4]", "float[4]", "<int64[1] s = {-1}, int64[1] e = {-100}, int64[1] a = {0}, int64[1] t = {-1}>", "b = Slice(x, s, e, a, t)"),
    (13, "float[N]", "float[M]", "<int64[1] s = {0}, int64[1] e = {-1}>", "b = Slice(x, s, e)"),
    (13, "float[N]", "float[M]", "<int64[1] s = {0}, int64[1] e = {3}>", "b = Slice(x, s, e)"),
    (13, "float[3]", "float[3]", "<int64[2] c = {1,-1}>", "b = Pad(x, c)"),
    (13, "float[3]", "float[3]", "<int64[3] c = {0,2,1}>", "b = Gather(x, c)"),
    (13, "float[1,3]", "float[2,3]", "<int64[2] c = {2,1}>", "b = Expand(x, c)"),
    (19, "float[1,1,2,2]", "float[1,1,2,2]", "<float[4] c = {1,1,1.2,1.2}>", 'b = Resize<mode="linear">(x, , c)'),
    (13, "float[3]", "float[2,3]", "<float[2,3] c = {0,0,0,0,0,0}>", "b = Add(x, c)"),
    (13, "float[1]", "float[3]", "<float[3] c = {1,1,1}>", "b = Mul(x, c)"),
    (13, "float[3]", "float[1,3]", "<float[1,1] c = {1}>", "b = Mul(x, c)"),
    (13, "float[N]", "float[N]", "<float c = {0}>", "b = Sub(c, x)"), (13, "float[N]", "float[N]", "<float c = {1}>", "b = Div(c, x)"),
    (13, "float[N]", "float[N]", "<float c = {0}>", "b = Mul(x, c)"), (13, "float[N]", "float[N]", "<float c = {0}>", "b = Div(c, x)"),
    (13, "float[N]", "float[N]", "", "b = Sub(x, x)"), (13, "float[N]", "float[N]", "", "b = Div(x, x)"), (13, "float[N]", "float[N]", "<float c = {1}>", "b = Pow(c, x)"),
    (13, "float[2]", "float[2]", "<float[2] c = {0,1}>", "b = Add(x, c)"),
    (16, "float[3]", "float[2,3]", "<bool[2,1] c = {1,1}, float d = {2}>", "b = Where(c, x, d)"),
    (13, "float[N]", "float[N]", "", "b = Clip(x)"), (7, "float[N]", "float[N]", "", "b = Clip(x)"),
    (13, "float[N]", "float[N]", "<float c = {-3.4028234663852886e+38}>", "b = Clip(x, c)"), (13, "int8[N]", "int8[N]", "<int8 c = {126}>", "b = Clip(x, , c)"),
    (18, "float[N,1]", "float[N,1]", "<int64[1] a = {1}>", "b = ReduceL1(x, a)"), (18, "float[N,1]", "float[N,1]", "<int64[1] a = {1}>", "b = ReduceSumSquare(x, a)"),
    (18, "float[N,1]", "float[N]", "<int64[1] a = {1}>", "b = ReduceSum<keepdims=0>(x, a)"),
    (18, "float[N,1]", "float[N,1]", "<int64[1] a = {1}>", "b = ReduceLogSumExp(x, a)"), (13, "float[N,2]", "float[1,1]", "<int64[0] a = {}>", "b = ReduceSum(x, a)"),
    (13, "float[1,1,4,4]", "float[1,1,4,4]", "", "b = AveragePool<kernel_shape=[3,3],pads=[1,1,1,1]>(x)"), (13, "float[1,1,4,4]", "float[1,1,2,2]", "", "b = MaxPool<kernel_shape=[1,1],strides=[2,2]>(x)"),
    (13, "float[N]", "float[N]", "", "b = Max(x, x)"), (13, "float[N]", "float[N]", "", "a = Sigmoid(x) b = Floor(a)"),
    (13, "float[N]", "float[N]", "", "a = Neg(x) b = Relu(a)"), (13, "float[N]", "float[N]", "", "a = Abs(x) b = Sign(a)"),
    (14, "int8[N]", "int8[N]", "", "a = Abs(x) b = Relu(a)"), (13, "float[N]", "float[N]", "<float l = {-1}>", "a = Relu(x) b = Clip(a, l)"),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "x", "y", "constants", "nodes"), SOMETHING)
def test_something(opset, x, y, constants, nodes):
    check_unchanged(
        with_neg(nodes, x, y, constants, opset), ONLY, special="Pool" not in nodes and "Resize" not in nodes
    )


# opset, constants, nodes, what is left with Neg
PAIRS = [
    (13, "", "a = Relu(x) b = Relu(a)", {"Relu": 1}), (13, "", "a = Abs(x) b = Abs(a)", {"Abs": 1}), (13, "", "a = Relu(x) b = Abs(a)", {"Relu": 1}),
    (13, "", "a = Sigmoid(x) b = Relu(a)", {"Sigmoid": 1}), (13, "", "a = Floor(x) b = Floor(a)", {"Floor": 1}), (13, "", "a = Ceil(x) b = Floor(a)", {"Ceil": 1}),
    (13, "", "a = Round(x) b = Round(a)", {"Round": 1}), (13, "", "a = Sign(x) b = Sign(a)", {"Sign": 1}), (13, "", "a = Neg(x) c = Neg(a) b = Floor(c)", {"Floor": 1}),
    (13, "<float l = {0}, float h = {6}>", "a = Relu(x) b = Clip(a, l, h)", {"Clip": 1}), (6, "", "a = Relu(x) b = Clip<min=0.5>(a)", {"Clip": 1}),
    (13, "<float l = {0}, float h = {6}>", "a = Clip(x, l, h) b = Relu(a)", {"Clip": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "constants", "nodes", "left"), PAIRS)
def test_pairs(opset, constants, nodes, left):
    check(with_neg(nodes, "float[N]", "float[N]", constants, max(opset, 7)), {"Neg": 1, **left}, ONLY)


@pytest.mark.parametrize(
    ("constants", "nodes", "left"),
    [
        ("<bool c = {1}>", "b = And(x, c)", 0),
        ("<bool c = {0}>", "b = Or(c, x)", 0),
        ("<bool c = {0}>", "b = Xor(x, c)", 0),
        ("<bool c = {0}>", "b = And(x, c)", 1),
        ("<bool c = {1}>", "b = Or(x, c)", 1),
        ("<bool c = {1}>", "b = Xor(x, c)", 1),
    ],
)
def test_logic(constants, nodes, left):
    made = model(
        f"g (bool[N] x) => (bool[N,1] y) {constants} <int64[1] e = {{1}}> {{ {nodes} y = Unsqueeze(b, e) }}".replace(
            "> <", ", "
        )
    )
    op = nodes.split(" = ")[1].split("(")[0]
    check(made, {"Unsqueeze": 1} | ({op: 1} if left else {}), ONLY)


@pytest.mark.parametrize("op", ["Not", "BitwiseNot"])
def test_twice(op):
    kind = "bool" if op == "Not" else "uint8"
    made = model(
        f"g ({kind}[N] x) => ({kind}[N,1] y) <int64[1] e = {{1}}> {{ a = {op}(x) b = {op}(a) y = Unsqueeze(b, e) }}"
    )
    check(made, {"Unsqueeze": 1}, ONLY)


@pytest.mark.parametrize(("training", "left"), [("1", {"Dropout": 1, "Neg": 1}), ("0", {"Neg": 1})])
def test_dropout_for_training(training, left):
    made = with_neg("b = Dropout(x, r, t)", "float[N]", "float[N]", f"<float r = {{0}}, bool t = {{{training}}}>", 13)
    check(made, left, ONLY)


def test_used_mask_and_indices():
    check_unchanged(model("g (float[N] x) => (float[N] y, bool[N] m) { a, m = Dropout(x) y = Neg(a) }"), ONLY)
    pool = model(
        "g (float[1,1,3] x) => (float[1,1,3] y, int64[1,1,3] i) { a, i = MaxPool<kernel_shape=[1]>(x) y = Neg(a) }"
    )
    check_unchanged(pool, ONLY, special=False)


@pytest.mark.parametrize(
    ("kind", "left"), [("int32", {"Cast": 1, "Neg": 1}), ("float16", {"Cast": 1, "Floor": 1, "Neg": 1})]
)
def test_whole_numbers(kind, left):
    check(model(f"g ({kind}[N] x) => (float[N] y) {{ a = Cast<to=1>(x) b = Floor(a) y = Neg(b) }}"), left, ONLY)


def test_names_of_outputs_stay():
    check_unchanged(model("g (float[N,3] x) => (float[N,3] y) { y = Identity(x) }"), ONLY)
    two = model("g (float[N] x) => (float[N] y, float[N] z) { y = Neg(x) z = Identity(y) }")
    check_unchanged(two, ONLY)
    check(model("g (float[N] x) => (float[N] y) { a = Neg(x) b = Identity(a) y = Identity(b) }"), {"Neg": 1}, ONLY)


def test_inside_a_branch():
    made = model(
        """g (bool c, float[N] x) => (float[N] y) {
        y = If (c) <then_branch = t () => (float[N] a) { a0 = Relu(x) a1 = Relu(a0) a = Identity(a1) },
                    else_branch = e () => (float[N] b) { b = Identity(x) }>
    }"""
    )
    check(made, {"If": 1, "Relu": 1, "Identity": 1}, ONLY, feeds={"c": np.array(True), "x": np.float32([1, -1])})


def test_attributes_of_the_caller():
    """In a function an attribute may be the caller's, and nothing is known of it."""
    body = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    g (float[1,3] x) => (float[3,1] y) { y = own.move <order = [1, 0]> (x) }
    <opset_import: ["" : 18], domain: "own"> move <order> (a) => (b) { b = Transpose <perm: ints = @order> (a) }"""
    import onnx

    check(onnx.parser.parse_model(body), only=ONLY)

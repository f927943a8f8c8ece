"""merge_*: chains of Reshape, Transpose, Cast, Slice, Concat, Gather and Pad become one node, or none."""

from __future__ import annotations

import numpy as np
import pytest
from simplify_checks import check, check_unchanged, model

RESHAPES = ["merge_reshapes"]

# opset, x, y, constants, nodes from x to b, what is left beside Neg
CHAINS = [
    (13, "float[N,3,4]", "float[N,12]", "<int64[2] c = {-1,3}, int64[2] d = {-1,12}>", "a = Reshape(x, c) b = Reshape(a, d)", {"Reshape": 1}),
    (7, "float[N,3,4]", "float[N,12]", "<int64[2] c = {-1,3}, int64[2] d = {-1,12}>", "a = Reshape(x, c) b = Reshape(a, d)", {"Reshape": 1}),
    (21, "float[N,3,4]", "float[N,3,4]", "<int64[1] c = {-1}, int64[3] d = {-1,3,4}>", "a = Reshape(x, c) b = Reshape(a, d)", {}),
    (13, "float[2,3,4]", "float[6,4]", "<int64[1] c = {-1}, int64[2] d = {6,4}>", "a = Flatten(x) e = Reshape(a, c) b = Reshape(e, d)", {"Reshape": 1}),
    (13, "float[N,M]", "float[N,M,1,1]", "<int64[1] c = {2}, int64[1] d = {3}>", "a = Unsqueeze(x, c) b = Unsqueeze(a, d)", {"Unsqueeze": 1}),
    (11, "float[N,M]", "float[1,N,M,1]", "", "a = Unsqueeze<axes=[2]>(x) b = Unsqueeze<axes=[0]>(a)", {"Unsqueeze": 1}),
    (13, "float[1,N,1,M]", "float[N,M]", "<int64[1] c = {2}, int64[1] d = {0}>", "a = Squeeze(x, c) b = Squeeze(a, d)", {"Squeeze": 1}),
    (11, "float[1,N,1,M]", "float[N,M]", "", "a = Squeeze<axes=[0]>(x) b = Squeeze<axes=[-2]>(a)", {"Squeeze": 1}),
    (13, "float[N,M]", "float[N,M]", "<int64[1] c = {1}>", "a = Unsqueeze(x, c) b = Squeeze(a, c)", {}),
    (13, "float[N,1]", "float[N,1]", "<int64[1] c = {1}>", "a = Squeeze(x, c) b = Unsqueeze(a, c)", {}),
    (13, "float[N,1,M]", "float[N,M,1]", "<int64[1] c = {1}, int64[1] d = {2}>", "a = Squeeze(x, c) b = Unsqueeze(a, d)", {"Reshape": 1}),
    (13, "float[N,1,M]", "float[N,M,1]", "<int64[1] c = {2}>", "a = ReduceMean<axes=[1],keepdims=0>(x) b = Unsqueeze(a, c)", {"Reshape": 1}),
    (13, "float[N,1,M]", "float[N,1,M]", "<int64 c = {0}, int64[1] d = {1}>", "a = Gather<axis=1>(x, c) b = Unsqueeze(a, d)", {}),
    (13, "float[N,M]", "float[N,M]", "<int64[3] c = {1,1,1}, int64[1] d = {0}>", "a = Expand(x, c) b = Squeeze(a, d)", {}),
    (13, "float[N,2,M]", "float[N,M,1]", "<int64[1] c = {2}>", "a = ReduceMean<axes=[1],keepdims=0>(x) b = Unsqueeze(a, c)", {"ReduceMean": 1, "Unsqueeze": 1}),
    (13, "float[N,2,M]", "float[N,1,M]", "<int64 c = {0}, int64[1] d = {1}>", "a = Gather<axis=1>(x, c) b = Unsqueeze(a, d)", {"Gather": 1, "Unsqueeze": 1}),
    (13, "float[N,1,M]", "float[N,M,1]", "<int64[1] c = {2}>", "a = ReduceL1<axes=[1],keepdims=0>(x) b = Unsqueeze(a, c)", {"ReduceL1": 1, "Unsqueeze": 1}),
    (13, "float[N,1,M]", "float[N,M]", "<int64[1] c = {1}>", "a = Transpose<perm=[1,0,2]>(x) d = Transpose<perm=[1,2,0]>(a) b = Squeeze(d, e)".replace("e)", "e2)"), {"Squeeze": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "x", "y", "constants", "nodes", "left"), CHAINS)
def test_reshapes(opset, x, y, constants, nodes, left):
    constants = constants.replace(">", ", int64[1] e2 = {-1}>") if "e2" in nodes else constants
    made = model(f"g ({x} x) => ({y} y) {constants} {{ {nodes} y = Neg(b) }}", opset=opset)
    check(made, {"Neg": 1, **left}, RESHAPES)


def test_reshape_between_names_that_stay():
    made = model("g (float[N,M] x) => (float[N,M] y) <int64[1] c = {1}> { a = Unsqueeze(x, c) y = Squeeze(a, c) }")
    check(made, {"Identity": 1}, RESHAPES)


@pytest.mark.parametrize(("shape", "left"), [("3,-1", {"Reshape": 2, "Neg": 2}), ("0,-1", {"Reshape": 3, "Neg": 2})])
def test_reshape_of_unknown_shape(shape, left):
    made = model(
        f"g (float[N,6] x, int64[k] s) => (float[K,M] y) <int64[2] c = {{{shape}}}> {{ w = Reshape(x, s) v = Neg(w) a = Reshape(v, s) b = Reshape(a, c) y = Neg(b) }}"
    )
    check(made, left, RESHAPES, feeds={"x": np.arange(12, dtype=np.float32).reshape(2, 6), "s": np.int64([4, 3])})


def test_reshape_with_other_users():
    used = "g (float[N,6] x) => (float[N,3,2] y, float[M,3] z) <int64[2] c = {-1,3}, int64[3] d = {-1,3,2}> { a = Reshape(x, c) b = Reshape(a, d) y = Neg(b) z = Neg(a) }"
    check_unchanged(model(used), RESHAPES)
    both = "g (float[N,6] x) => (float[N,3,2] y, float[M] z) <int64[2] c = {-1,3}, int64[3] d = {-1,3,2}, int64[1] e = {-1}> { a = Reshape(x, c) b = Reshape(a, d) y = Neg(b) f = Reshape(a, e) z = Neg(f) }"
    check(model(both), {"Reshape": 2, "Neg": 2}, RESHAPES)


def test_transpose_is_no_reshape():
    check_unchanged(
        model("g (float[2,3] x) => (float[6] y) <int64[1] c = {-1}> { a = Transpose(x) b = Reshape(a, c) y = Neg(b) }"),
        RESHAPES,
    )


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("a = Transpose<perm=[0,2,3,1]>(x) b = Transpose<perm=[0,3,1,2]>(a)", {}),
        ("a = Transpose<perm=[0,2,3,1]>(x) b = Transpose<perm=[0,2,3,1]>(a)", {"Transpose": 1}),
        (
            "a = Transpose(x) c = Transpose(a) d = Transpose<perm=[1,0,2,3]>(c) b = Transpose<perm=[1,0,3,2]>(d)",
            {"Transpose": 1},
        ),
    ],
)
def test_transposes(nodes, left):
    made = model(f"g (float[N,3,4,5] x) => (float y) {{ {nodes} y = Neg(b) }}")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    check(made, {"Neg": 1, **left}, ["merge_transposes"])


def test_transpose_with_other_users():
    made = model(
        "g (float[N,3] x) => (float[N,3] y, float[3,N] z) { a = Transpose(x) b = Transpose(a) y = Neg(b) z = Neg(a) }"
    )
    check(made, {"Transpose": 1, "Neg": 2}, ["merge_transposes"])


TYPES = {
    "float": 1,
    "uint8": 2,
    "int8": 3,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "double": 11,
    "uint32": 12,
    "bfloat16": 16,
}


@pytest.mark.parametrize(
    ("first", "middle", "last", "left"),
    [
        ("int32", "int64", "float", 1), ("int32", "int64", "int32", 0), ("float16", "float", "double", 1), ("float16", "float", "float16", 0),
        ("bool", "float", "int64", 1), ("bool", "int64", "bool", 0), ("int32", "double", "float", 1), ("uint8", "float16", "float", 1), ("uint32", "int64", "int32", 1),
        ("int8", "int32", "uint8", 1), ("float", "double", "float16", 1), ("bool", "float", "double", 1), ("int16", "float", "int64", 1),
        ("int64", "int32", "int64", 2), ("int32", "float", "int32", 2), ("float", "float16", "float", 2), ("float", "int32", "float", 2), ("int64", "double", "float", 2),
        ("int64", "bool", "int64", 2), ("int16", "float16", "int32", 2), ("int8", "float", "uint8", 2), ("int32", "double", "float16", 2), ("uint8", "int8", "int32", 2),
        ("int8", "uint8", "int32", 2),
    ],
)  # fmt: skip
def test_casts(first, middle, last, left):
    made = model(
        f"g ({first}[N] x) => ({last}[N,1] y) <int64[1] e = {{1}}> {{ a = Cast<to={TYPES[middle]}>(x) b = Cast<to={TYPES[last]}>(a) y = Unsqueeze(b, e) }}"
    )
    # what is outside the range of the last type, or no number, is up to the runtime
    is_defined = not (first in ("float", "float16", "double") and last.startswith(("int", "uint")))
    check(made, {"Unsqueeze": 1} | ({"Cast": left} if left else {}), ["merge_casts"], special=is_defined and left < 2)


SLICES = ["merge_slices"]


def ints(**lists):
    return ", ".join(f"int64[{len(v)}] {k} = {{{','.join(map(str, v))}}}" for k, v in lists.items())


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        (([1], [5], [0], [1]), ([0], [3], [1], [1]), 1),
        (([1], [6], [0], [1]), ([1], [3], [0], [1]), 1),
        (([1], [100], [0], [2]), ([1], [3], [0], [2]), 1),
        (([0], [9223372036854775807], [0], [1]), ([2], [9223372036854775807], [0], [1]), 1),
        (([1, 0], [5, 4], [0, 1], [1, 1]), ([1, 1], [3, 3], [-1, 0], [1, 2]), 1),
        (([-5], [-1], [1], [1]), ([1], [-1], [1], [1]), 1),
        (([-5], [-1], [0], [1]), ([1], [3], [0], [1]), 2),
        (([6], [0], [1], [-1]), ([1], [3], [1], [1]), 2),
        (([1], [5], [0], [1]), ([1], [-1], [0], [1]), 2),
    ],
)
def test_two_slices(first, second, left):
    constants = ints(**dict(zip("stuv", first, strict=True)), **dict(zip("opqr", second, strict=True)))
    made = model(
        f"g (float[N,7] x) => (float[K,M] y) <{constants}> {{ a = Slice(x, s, t, u, v) b = Slice(a, o, p, q, r) y = Neg(b) }}"
    )
    check(made, {"Slice": left, "Neg": 1}, SLICES, sizes={"N": 7})


def test_two_slices_of_the_first_form():
    made = model(
        "g (float[N,7] x) => (float[2,3] y) { a = Slice<axes=[0],starts=[1],ends=[4]>(x) b = Slice<axes=[1,0],starts=[2,0],ends=[5,2]>(a) y = Neg(b) }",
        opset=9,
    )
    check(made, {"Slice": 1, "Neg": 1}, SLICES, sizes={"N": 7})


def test_slice_with_other_users():
    made = model(
        f"g (float[7] x) => (float[2] y, float[4] z) <{ints(s=[1], e=[5], f=[2])}> {{ z = Slice(x, s, e) b = Slice(z, s, f) y = Neg(b) }}".replace(
            "[2] y", "[1] y"
        )
    )
    check_unchanged(made, SLICES)


@pytest.mark.parametrize("opset", [7, 13])
def test_concats(opset):
    made = model(
        "g (float[N,2] x, float[M,2] w) => (float[K,2] y) { a = Concat<axis=0>(x, w) b = Concat<axis=-2>(w, a, x) c = Concat<axis=0>(x, w) y = Concat<axis=0>(b, c) }",
        opset=max(opset, 11),
    )
    check(made, {"Concat": 1}, SLICES)


def test_concats_that_stay():
    check_unchanged(
        model("g (float[N,2] x) => (float[K,4] y) { a = Concat<axis=0>(x, x) y = Concat<axis=1>(a, a) }"), SLICES
    )
    check_unchanged(
        model("g (float[N,2] x) => (float[K,2] y, float[L,2] z) { z = Concat<axis=0>(x, x) y = Concat<axis=0>(z, x) }"),
        SLICES,
    )


@pytest.mark.parametrize(
    ("opset", "split"), [(11, "Split<axis=1>(x)"), (13, "Split<axis=-1>(x)"), (18, "Split<axis=1,num_outputs=3>(x)")]
)
def test_split_and_concat(opset, split):
    check(
        model(
            f"g (float[N,6] x) => (float[N,6] y) {{ a, b, c = {split} d = Concat<axis=1>(a, b, c) y = Neg(d) }}",
            opset=opset,
        ),
        {"Neg": 1},
        SLICES,
    )
    check_unchanged(
        model(
            f"g (float[N,6] x) => (float[N,6] y) {{ a, b, c = {split} d = Concat<axis=1>(a, c, b) y = Neg(d) }}",
            opset=opset,
        ),
        SLICES,
    )
    check_unchanged(
        model(
            f"g (float[N,6] x) => (float[M,2] y) {{ a, b, c = {split} d = Concat<axis=0>(a, b, c) y = Neg(d) }}",
            opset=opset,
        ),
        SLICES,
    )


@pytest.mark.parametrize(
    ("bounds", "left"),
    [
        ([(0, 2), (2, 5), (5, 7)], {}), ([(0, 2), (2, 5)], {"Slice": 1}), ([(-7, -5), (2, 1000)], {}), ([(0, 3), (2, 7)], {"Slice": 2, "Concat": 1}),
        ([(3, 7), (0, 3)], {"Slice": 2, "Concat": 1}), ([(1, 3), (3, 4), (0, 1)], {"Slice": 2, "Concat": 1}), ([(3, 8), (8, 9)], {"Slice": 2, "Concat": 1}),
    ],
)  # fmt: skip
def test_slices_side_by_side(bounds, left):
    lists = {f"{kind}{i}": [bound[j]] for i, bound in enumerate(bounds) for j, kind in enumerate("se")}
    nodes = " ".join(f"a{i} = Slice(x, s{i}, e{i}, c)" for i in range(len(bounds)))
    parts = ", ".join(f"a{i}" for i in range(len(bounds)))
    made = model(
        f"g (float[N,7] x) => (float[N,M] y) <{ints(c=[1], **lists)}> {{ {nodes} b = Concat<axis=1>({parts}) y = Neg(b) }}"
    )
    check(made, {"Neg": 1, **left}, SLICES)


@pytest.mark.parametrize(
    ("opset", "nodes", "left"),
    [
        (13, "a = Gather<axis=1>(x, i) b = Unsqueeze(a, one)", {"Gather": 1}),
        (11, "a = Gather<axis=1>(x, i) b = Unsqueeze<axes=[-2]>(a)", {"Gather": 1}),
        (13, "a = Gather<axis=1>(x, i) b = Unsqueeze(a, none)", {"Gather": 1, "Unsqueeze": 1}),
        (13, "a = Gather<axis=1>(x, list) b = Squeeze(a, one)", {"Gather": 1}),
        (13, "a = Slice(x, one, two, one) b = Squeeze(a, one)", {"Gather": 1}),
        (13, "a = Slice(x, none, one, none) b = Squeeze(a, none)", {"Gather": 1}),
        (13, "a = Slice(x, list, end, one) b = Squeeze(a, one)", {"Gather": 1}),
        (13, "a = Slice(x, list, end, none) b = Squeeze(a, none)", {"Slice": 1, "Squeeze": 1}),
    ],
)
def test_one_element(opset, nodes, left):
    constants = ints(one=[1], none=[0], two=[2], list=[-1], end=[9223372036854775807])
    made = model(
        f"g (float[N,3,4] x) => (float y) <{constants}, int64 i = {{-1}}> {{ {nodes} y = Neg(b) }}", opset=opset
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    check(made, {"Neg": 1, **left}, SLICES, sizes={"N": 1})


@pytest.mark.parametrize(
    ("opset", "nodes", "left"),
    [
        (15, "b = Gather(a, one)", {"Shape": 1}), (21, "b = Gather(a, back)", {"Shape": 1}), (15, "b = Slice(a, one, end)", {"Shape": 1}), (15, "b = Slice(a, none, back)", {"Shape": 1}),
        (15, "b = Gather(a, both)", {"Shape": 1}), (15, "b = Gather(a, swapped)", {"Shape": 1, "Gather": 1}), (13, "b = Gather(a, one)", {"Shape": 1, "Gather": 1}),
    ],
)  # fmt: skip
def test_sizes(opset, nodes, left):
    constants = ints(one=[1], none=[0], back=[-1], end=[9223372036854775807], both=[0, 1], swapped=[1, 0])
    made = model(f"g (float[N,M,4] x) => (int64[k] y) <{constants}> {{ a = Shape(x) {nodes} y = Neg(b) }}", opset=opset)
    check(made, {"Neg": 1, **left}, SLICES)


@pytest.mark.parametrize(
    ("opset", "nodes", "left"),
    [
        (11, "a = Pad<mode='constant'>(x, p) b = Pad(a, q)", 1), (13, "a = Pad(x, p, v) b = Pad(a, q, v)", 1), (18, "a = Pad(x, r, v, one) b = Pad(a, q, v)", 1),
        (7, "a = Pad<pads=[1,0,0,2]>(x) b = Pad<pads=[0,1,3,0]>(a)", 1), (13, "a = Pad(x, p) b = Pad(a, back)", 1),
        (13, "a = Pad(x, p, v) b = Pad(a, q)", 2), (13, "a = Pad<mode='edge'>(x, q) b = Pad<mode='edge'>(a, q)", 2), (13, "a = Pad(x, back) b = Pad(a, p)", 2),
    ],
)  # fmt: skip
def test_pads(opset, nodes, left):
    constants = ints(p=[1, 0, 0, 2], q=[0, 1, 3, 0], r=[1, 2], one=[-1], back=[-1, 0, 0, -1]) + ", float v = {2.5}"
    nodes = nodes.replace("'", '"')
    made = model(f"g (float[N,3] x) => (float[K,M] y) <{constants}> {{ {nodes} y = Neg(b) }}", opset=opset)
    check(made, {"Pad": left, "Neg": 1}, ["merge_pads"])


@pytest.mark.parametrize(
    ("opset", "x", "bounds", "left"),
    [
        (13, "N,7", [(0, 2), (2, 5), (5, 7)], {"Split": 1}),
        (18, "N,7", [(3, 9223372036854775807), (0, 3)], {"Split": 1}),
        (11, "N,7", [(0, -3), (-3, 100)], {"Split": 1}),
        (10, "N,7", [(0, 2), (2, 7)], {"Split": 1}),
        (13, "N,7", [(0, 2), (3, 7)], {"Slice": 2}),
        (13, "N,7", [(0, 3), (2, 7)], {"Slice": 2}),
        (13, "N,7", [(0, 3), (3, 6)], {"Slice": 2}),
        (13, "N,M", [(0, 3), (3, 9223372036854775807)], {"Slice": 2}),
    ],
)
def test_split(opset, x, bounds, left):
    lists = {f"{kind}{i}": [bound[j]] for i, bound in enumerate(bounds) for j, kind in enumerate("se")}
    nodes = " ".join(f"a{i} = Slice(v, s{i}, e{i}, c) y{i} = Exp(a{i})" for i in range(len(bounds)))
    outputs = ", ".join(f"float[N,K{i}] y{i}" for i in range(len(bounds)))
    for start, more in (("v = Neg(x)", {"Neg": 1}), ("v = Identity(x)", {})):
        text = f"g (float[{x}] x) => ({outputs}) <{ints(c=[1], **lists)}> {{ {start} {nodes} }}"
        check(
            model(text, opset=opset),
            {"Exp": len(bounds), **more, **left},
            ["split_slices", "eliminate_identity"],
            sizes={"M": 7},
        )

"""loop_invariants and unroll_loops: what a Loop only carries along, and Loops of a few iterations."""

from __future__ import annotations

import pytest
from simplify_checks import check, check_unchanged, count, model

import tonnx

INVARIANTS, UNROLL = (
    ["loop_invariants"],
    ["unroll_loops", "fold_constants", "eliminate_dead_code", "eliminate_identity"],
)


def loop(body: str, trips: str = "3", opset: int = 18, outputs: str = "y, ys", first: str = "x, s") -> str:
    """x is carried and becomes y, s as well; ys collects."""
    return f"""g (float[4] x, float[4] s) => ({", ".join(f"float[{'k,' * (o == 'ys')}4] {o}" for o in outputs.split(", "))})
    <int64 trips = {{{trips}}}, bool go = {{1}}>
    {{ {body} }}"""


BODY = """b (int64 i, bool c, float[4] h, float[4] w) => (bool d, float[4] g, float[4] v, float[4] e)
{ d = Identity(c) k = Cast<to = 1>(i) a = Add(h, w) g = Mul(a, a) v = Identity(w) e = Sub(g, k) }"""


def made(trips: str = "3", body: str = BODY, outputs: str = "y, ys", opset: int = 18):
    node = f"y, w2, ys = Loop(trips, go, x, s) <body = {body}>"
    return model(loop(node, trips, opset, outputs), opset)


@pytest.mark.parametrize("opset", [11, 13, 18, 22])
def test_invariants(opset):
    simplified = check(made(opset=opset), None, INVARIANTS, tolerance=1e-5)
    node = next(each for each in simplified.graph.node if each.op_type == "Loop")
    assert len(node.input) == 3 and len(node.output) == 2
    assert len(node.attribute[0].g.input) == 3


def test_invariant_that_is_used_behind_the_loop():
    node = f"y, w2, ys = Loop(trips, go, x, s) <body = {BODY}> z = Neg(w2)"
    simplified = check(model(loop(node, outputs="y, z")), None, INVARIANTS, tolerance=1e-5)
    assert len(simplified.graph.node[0].input) == 3


def test_what_changes_is_carried():
    body = BODY.replace("v = Identity(w)", "v = Neg(w)")
    simplified = check(made(body=body), None, INVARIANTS, tolerance=1e-5)
    assert len(simplified.graph.node[0].input) == 4


def test_invariant_that_is_an_output_stays():
    node = f"y, w2, ys = Loop(trips, go, x, s) <body = {BODY}>"
    check_unchanged(model(loop(node, outputs="y, w2")), INVARIANTS, tolerance=1e-5)


@pytest.mark.parametrize("trips", ["1", "3", "16"])
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_unrolled(trips, opset):
    body = BODY.replace("g = Mul(a, a)", "g = Tanh(a)")
    source = made(trips, body, opset=opset)
    simplified = check(source, None, UNROLL, tolerance=1e-5)
    found = count(simplified.graph)
    assert "Loop" not in found and found["Tanh"] == int(trips)
    assert "Loop" in count(tonnx.simplify(source)[0].graph)


def test_sizes_that_change():
    body = """b (int64 i, bool c, float[m] h) => (bool d, float[o] g) { d = Identity(c) g = Concat<axis = 0>(h, h) }"""
    text = f"g (float[4] x) => (float[n] y) <int64 t = {{3}}, bool go = {{1}}> {{ y = Loop(t, go, x) <body = {body}> }}"
    simplified = check(model(text), {"Concat": 3}, UNROLL)
    assert simplified.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 32


@pytest.mark.parametrize(
    "trips, body",
    [
        ("17", BODY),
        (
            "3",
            BODY.replace(
                "d = Identity(c)", "q = ReduceMax<keepdims = 0>(h) z = Constant<value = float {9}>() d = Less(q, z)"
            ),
        ),
    ],
)
def test_not_unrolled(trips, body):
    simplified = check(made(trips, body), None, ["unroll_loops"], special=False, tolerance=1e-4)
    assert count(simplified.graph)["Loop"] == 1


def test_no_iteration():
    source = made("0", outputs="y")
    assert "Loop" in count(check(source, None, ["unroll_loops"]).graph)  # nothing is known of what would be collected

"""recognise_attention: products around a Softmax become an Attention, on request, with the heads where they are given."""

from __future__ import annotations

import pytest
from simplify_checks import check, check_unchanged, count, model

import tonnx

ONLY = ["recognise_attention", "eliminate_dead_code"]
ROUND = {"special": False, "tolerance": 1e-5}
INPUTS = "float[B,2,S,4] q, float[B,2,L,4] k, float[B,2,L,3] v, float[S,L] m, float[B,2,S,L] b"


def made(nodes: str, opset: int = 23, inputs: str = INPUTS, result: str = "B,2,S,3"):
    numbers = "<float c = {0.3}, float d = {2}, float root = {0.7}>"
    return model(f"g ({inputs}) => (float[{result}] y) {numbers} {{ {nodes} }}", opset)


TURN = "t = Transpose<perm = [0, 1, 3, 2]>(k) "
FOUND = [
    TURN + "p = MatMul(q, t) s = Mul(p, c) w = Softmax(s) y = MatMul(w, v)",
    TURN + "p = MatMul(q, t) s = Div(p, d) a = Add(s, m) w = Softmax<axis = -1>(a) y = MatMul(w, v)",
    TURN + "p = MatMul(q, t) s = Div(p, d) a = Add(b, s) w = Softmax<axis = 3>(a) y = MatMul(w, v)",
    TURN + "e = Mul(q, c) p = MatMul(e, t) w = Softmax(p) y = MatMul(w, v)",
    "f = Mul(k, root) t = Transpose<perm = [0, 1, 3, 2]>(f) e = Mul(root, q) p = MatMul(e, t) w = Softmax(p) y = MatMul(w, v)",
    TURN + "f = Mul(t, root) p = MatMul(q, f) w = Softmax(p) y = MatMul(w, v)",
]


@pytest.mark.parametrize("nodes", FOUND)
@pytest.mark.parametrize("opset", [23, 24])
def test_found(nodes, opset):
    check(made(nodes, opset), {"Attention": 1}, ONLY, **ROUND)
    assert "Attention" not in count(tonnx.simplify(made(nodes, opset))[0].graph)


def test_not_before_opset_23():
    check_unchanged(made(FOUND[0], 22), ONLY, **ROUND)


HEADS = "h = Constant<value = int64[4] {0, 0, 2, 4}>() o = Constant<value = int64[3] {0, 0, 8}>() "
HEADS += "q1 = Reshape(q, h) q2 = Transpose<perm = [0, 2, 1, 3]>(q1) k1 = Reshape(k, h) v1 = Reshape(v, h) "
HEADS += "v2 = Transpose<perm = [0, 2, 1, 3]>(v1) "
OUT = "p = MatMul(q2, t) s = Mul(p, c) w = Softmax(s) z = MatMul(w, v2) u = Transpose<perm = [0, 2, 1, 3]>(z) y = Reshape(u, o)"
WHOLE = {"inputs": "float[B,S,8] q, float[B,L,8] k, float[B,L,8] v", "result": "B,S,8"}


@pytest.mark.parametrize(
    "keys",
    [
        "k2 = Transpose<perm = [0, 2, 1, 3]>(k1) t = Transpose<perm = [0, 1, 3, 2]>(k2) ",
        "t = Transpose<perm = [0, 2, 3, 1]>(k1) ",
    ],
)
def test_heads(keys):
    check(made(HEADS + keys + OUT, **WHOLE), {"Attention": 1}, ONLY, **ROUND)


@pytest.mark.parametrize(
    "nodes",
    [
        TURN + "p = MatMul(q, t) s = Mul(p, c) w = Softmax<axis = 2>(s) y = MatMul(w, v)",
        TURN + "p = MatMul(q, t) s = Add(p, c) w = Softmax(s) y = MatMul(w, v)",
        TURN + "p = MatMul(q, t) w = Softmax(p) u = Neg(w) y = MatMul(u, v)",
        TURN + "p = MatMul(q, t) n = Neg(c) s = Mul(p, n) a = Abs(s) w = Softmax(a) y = MatMul(w, v)",
    ],
)
def test_what_stays(nodes):
    check_unchanged(made(nodes), ONLY, **ROUND)

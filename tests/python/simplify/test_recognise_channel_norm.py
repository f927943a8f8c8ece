"""recognise_channel_norm: InstanceNormalization and GroupNormalization, on request."""

from __future__ import annotations

import pytest
from simplify_checks import check, check_unchanged, count, model

import tonnx

ONLY = ["recognise_channel_norm", "eliminate_dead_code"]
ROUND = {"special": False, "tolerance": 1e-4}
WEIGHTS = """<int64[2] axes = {2, 3}, float eps = {0.001}, float[4,1,1] g = {1, 2, 3, 4}, float[1,4,1,1] b = {5, 6, 7, 8},
float[2] one = {1, 1}, float[2] zero = {0, 0}, int64[3] split = {0, 2, -1}, int64[4] whole = {0, 4, 3, 5}, float[2] two = {1, 2}>"""
CENTRED = "m = ReduceMean<axes = [2, 3]>(x) d = Sub(x, m) p = Mul(d, d) v = ReduceMean<axes = [-1, -2]>(p) "
CENTRED += "a = Add(v, eps) q = Sqrt(a) z = Div(d, q) "
GROUP = "r = Reshape(x, split) i = InstanceNormalization<epsilon = 0.01>(r, one, zero) z = Reshape(i, whole) "
AFFINE = "n = Mul(g, z) y = Add(n, b)"


def made(nodes: str, opset: int = 22):
    if opset >= 18:
        nodes = nodes.replace("<axes = [2, 3]>(x)", "(x, axes)").replace("<axes = [-1, -2]>(p)", "(p, axes)")
    return model(f"g (float[N,4,3,5] x) => (float[N,4,3,5] y) {WEIGHTS} {{ {nodes} }}", opset)


@pytest.mark.parametrize("opset", [7, 13, 18, 22])
def test_instance_norm(opset):
    check(made(CENTRED + AFFINE, opset), {"InstanceNormalization": 1}, ONLY, **ROUND)
    assert "InstanceNormalization" not in count(tonnx.simplify(made(CENTRED + AFFINE, opset))[0].graph)


@pytest.mark.parametrize("opset", [21, 22])
def test_group_norm(opset):
    check(made(GROUP + AFFINE, opset), {"GroupNormalization": 1}, ONLY, **ROUND)
    assert "GroupNormalization" not in count(tonnx.simplify(made(GROUP + AFFINE, opset))[0].graph)


@pytest.mark.parametrize(
    "nodes, opset",
    [
        (GROUP + AFFINE, 20),
        (GROUP.replace("one", "two") + AFFINE, 22),
        (CENTRED.replace("Sub(x, m)", "Sub(m, x)") + AFFINE, 22),
        (CENTRED.replace("[-1, -2]>(p)", "[-1]>(p)") + AFFINE, 13),
    ],
)
def test_what_stays(nodes, opset):
    check_unchanged(made(nodes, opset), ["recognise_channel_norm"], **ROUND)

"""Attention that a file writes out, as products around a Softmax, is scaled_dot_product_attention in generated code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import tonnx

CALL = "F.scaled_dot_product_attention("
NUMBERS = "<float c = {0.5}, float d = {2}, float root = {0.7071068}, float e = {0.3}, float zero = {0}>"
CONSTANTS = """never = Constant<value = float {-inf}>() least = Constant<value = float {-3.4028234663852886e38}>()
    few = Constant<value = float {-10000.0}>() """
TURN = "t = Transpose<perm = [0, 1, 3, 2]>(k) "
PRODUCT = TURN + "p = MatMul(q, t) s = Mul(p, c) "
BEHIND = " w = Softmax<axis = -1>(x) y = MatMul(w, v)"
GUARDED = " a = Softmax<axis = -1>(x) n = IsNaN(a) w = Where(n, zero, a) y = MatMul(w, v)"


def made(nodes: str, mask: str = "bool[B,1,S,L] m", opset: int = 18) -> onnx.ModelProto:
    inputs = f"float[B,2,S,4] q, float[B,2,L,4] k, float[B,2,L,3] v, {mask}"
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> g ({inputs}) => (float[B,2,S,3] y) {NUMBERS} {{ {CONSTANTS} {nodes} }}'
    return onnx.parser.parse_model(text)


def feeds_of(model: onnx.ModelProto, sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    feeds = {}
    for each in model.graph.input:
        dims = [sizes.get(d.dim_param, d.dim_value) for d in each.type.tensor_type.shape.dim]
        if each.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            feeds[each.name] = rng.normal(size=dims).astype(np.float32)
        elif each.type.tensor_type.elem_type == onnx.TensorProto.BOOL:
            feeds[each.name] = rng.random(dims) < 0.6
            feeds[each.name][..., 0, :] = False  # a row that is masked as a whole
        else:
            feeds[each.name] = rng.integers(0, 2, dims)
    return feeds


def code_of(model: onnx.ModelProto, folder: Path) -> str:
    tonnx.convert(model, folder / "net.py")
    return (folder / "net.py").read_text()


def check(model: onnx.ModelProto, module: torch.nn.Module) -> None:
    rng = np.random.default_rng(0)
    for sizes in ({"B": 2, "S": 5, "L": 7}, {"B": 1, "S": 3, "L": 3}, {"B": 2, "S": 1, "L": 4}):
        feeds = feeds_of(model, sizes, rng)
        want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
        got = module(*map(torch.from_numpy, feeds.values())).detach().numpy()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


FOUND = {
    "plain": (PRODUCT + "x = Identity(s)" + BEHIND, "(q, k, v)"),
    "another scale": (TURN + "p = MatMul(q, t) x = Mul(p, e)" + BEHIND, "(q, k, v, scale=0.3)"),
    "no scale": (TURN + "x = MatMul(q, t)" + BEHIND, "(q, k, v, scale=1.0)"),
    "scale of both": (TURN + "a = Mul(q, root) b = Mul(t, root) x = MatMul(a, b)" + BEHIND, "(q, k, v)"),
    "scale before the keys turn": (
        "b = Mul(k, c) t = Transpose<perm = [0, 1, 3, 2]>(b) x = MatMul(q, t)" + BEHIND,
        "(q, k, v)",
    ),
    "quotient": (TURN + "p = MatMul(q, t) x = Div(p, d)" + BEHIND, "(q, k, v)"),
    "guarded choice": (PRODUCT + "f = Where(m, zero, never) x = Add(s, f)" + GUARDED, "(q, k, v, m)"),
    "guarded, forbidden": (PRODUCT + "x = Where(m, never, s)" + GUARDED, "(q, k, v, ~m)"),
    "zeros by the mask": (
        PRODUCT + "x = Where(m, s, never) a = Softmax<axis = -1>(x) w = Where(m, a, zero) y = MatMul(w, v)",
        "(q, k, v, m)",
    ),
    "finite choice": (PRODUCT + "x = Where(m, s, least)" + BEHIND, "(q, k, v, torch.where(m, 0.0, -3.40"),
    "finite, forbidden": (PRODUCT + "x = Where(m, least, s)" + BEHIND, "(q, k, v, torch.where(m, -3.40"),
    "numbers of bools": (
        PRODUCT + "f = Cast<to = 1>(m) g = Mul(f, few) x = Add(g, s)" + BEHIND,
        "(q, k, v, m.to(v.dtype) * -10000.0)",
    ),
    "two masks": (
        PRODUCT + "f = Cast<to = 1>(m) g = Mul(f, few) h = Mul(f, e) i = Add(s, g) x = Add(i, h)" + BEHIND,
        "(q, k, v, ",
    ),
}


@pytest.mark.parametrize("nodes, said", FOUND.values(), ids=FOUND)
def test_found(nodes: str, said: str, tmp_path: Path) -> None:
    model = made(nodes)
    code = code_of(model, tmp_path)
    assert CALL[:-1] + said in code
    assert "softmax" not in code.replace(CALL, "")
    check(model, tonnx.convert(model))


def test_keys_of_another_order(tmp_path: Path) -> None:
    nodes = "t = Transpose<perm = [0, 2, 3, 1]>(k) p = MatMul(q, t) x = Mul(p, c)" + BEHIND
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]>
        g (float[B,2,S,4] q, float[B,L,2,4] k, float[B,2,L,3] v) => (float[B,2,S,3] y) {NUMBERS} {{ {nodes} }}""")
    assert CALL + "q, k.transpose(1, 2), v)" in code_of(model, tmp_path)
    check(model, tonnx.convert(model))


def test_keys_that_are_columns_already(tmp_path: Path) -> None:
    nodes = "p = MatMul(q, k) x = Mul(p, c)" + BEHIND
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]>
        g (float[B,S,4] q, float[B,4,L] k, float[B,L,3] v) => (float[B,S,3] y) {NUMBERS} {{ {nodes} }}""")
    assert CALL + "q, k.transpose(1, 2), v)" in code_of(model, tmp_path)
    check(model, tonnx.convert(model))


@pytest.mark.parametrize("guard", [BEHIND, GUARDED])
def test_causal_mask_of_the_file(guard: str, tmp_path: Path) -> None:
    model = made(PRODUCT + "x = Add(s, causal)" + guard, "float u")
    for each in model.graph.input:
        for dim in each.type.tensor_type.shape.dim:
            if dim.dim_param in ("S", "L"):
                dim.dim_value = 6
    causal = np.triu(np.full((6, 6), -np.inf, np.float32), 1)
    model.graph.initializer.append(onnx.numpy_helper.from_array(causal, "causal"))
    model.graph.node.append(onnx.helper.make_node("Identity", ["u"], ["unused"]))
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    assert CALL + "q, k, v, self.causal)" in code_of(model, tmp_path)
    feeds = feeds_of(model, {"B": 2}, np.random.default_rng(1))
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(["y"], feeds)[0]
    got = tonnx.convert(model)(*map(torch.from_numpy, map(np.asarray, feeds.values())))
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-4, atol=1e-5)


STAYS = {
    "rows that may be NaN": PRODUCT + "f = Where(m, zero, never) x = Add(s, f)" + BEHIND,
    "rows that may be NaN, chosen": PRODUCT + "x = Where(m, s, never)" + BEHIND,
    "zeros by another mask": PRODUCT
    + "n = Not(m) x = Where(m, s, never) a = Softmax<axis = -1>(x) w = Where(n, a, zero) y = MatMul(w, v)",
    "scores that are not lost": PRODUCT + "x = Where(m, s, few)" + BEHIND,
    "another axis": PRODUCT + "w = Softmax<axis = 2>(s) y = MatMul(w, v)",
    "weights that are used": PRODUCT + "w = Softmax<axis = -1>(s) z = MatMul(w, v) r = ReduceMax(w) y = Add(z, r)",
    "a negative scale": TURN + "o = Neg(d) p = MatMul(q, t) x = Div(p, o)" + BEHIND,
}


@pytest.mark.parametrize("nodes", STAYS.values(), ids=STAYS)
def test_what_stays(nodes: str, tmp_path: Path) -> None:
    model = made(nodes)
    assert CALL not in code_of(model, tmp_path)
    check(model, tonnx.convert(model))


def test_a_mask_that_is_given_may_forbid_rows(tmp_path: Path) -> None:
    model = made(PRODUCT + "x = Add(s, m)" + BEHIND, "float[B,1,S,L] m")
    assert CALL not in code_of(model, tmp_path)
    check(model, tonnx.convert(model))


@pytest.mark.parametrize("name", ["plain", "guarded choice", "finite choice", "numbers of bools"])
def test_other_forms(name: str, tmp_path: Path) -> None:
    model = made(FOUND[name][0])
    tonnx.convert(model, tmp_path / "net.pt2")
    program = torch.export.load(tmp_path / "net.pt2")
    assert "scaled_dot_product_attention" in program.graph_module.code
    check(model, program.module())
    tonnx.convert(model, tmp_path / "net.pt")
    check(model, torch.jit.load(tmp_path / "net.pt"))
    for opset in (
        (18,) if name == "finite choice" else (18, 23)
    ):  # ONNX Runtime's Attention takes the least number for -inf
        tonnx.convert(tmp_path / "net.pt2", tmp_path / "back.onnx", opset=opset)
        session = onnxruntime.InferenceSession(tmp_path / "back.onnx")
        names = [each.name for each in session.get_inputs()]
        feeds = feeds_of(model, {"B": 2, "S": 5, "L": 7}, np.random.default_rng(2))
        want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
        got = session.run(None, {each: feeds[each] for each in names})[0]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_no_keys() -> None:
    model = made(FOUND["plain"][0])
    feeds = feeds_of(model, {"B": 2, "S": 3, "L": 0}, np.random.default_rng(0))
    assert not tonnx.convert(model)(*map(torch.from_numpy, feeds.values())).any()


def test_heads_that_share_keys(tmp_path: Path) -> None:
    repeated = """ku = Unsqueeze(k, two) ke = Expand(ku, many) kr = Reshape(ke, heads) vu = Unsqueeze(v, two) ve = Expand(vu, many)
        vr = Reshape(ve, heads) t = Transpose<perm = [0, 1, 3, 2]>(kr) p = MatMul(q, t) x = Mul(p, c)"""
    repeated += BEHIND.replace("(w, v)", "(w, vr)")
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]>
        g (float[B,6,S,4] q, float[B,2,L,4] k, float[B,2,L,4] v) => (float[B,6,S,4] y)
        <float c = {{0.5}}, int64[1] two = {{2}}, int64[5] many = {{1, 1, 3, 1, 1}}, int64[4] heads = {{0, 6, -1, 4}}> {{ {repeated} }}""")
    assert CALL + "q, k, v, enable_gqa=True)" in code_of(model, tmp_path)
    check(model, tonnx.convert(model))
    tonnx.convert(model, tmp_path / "net.pt2")
    check(model, torch.export.load(tmp_path / "net.pt2").module())
    tonnx.convert(model, tmp_path / "net.pt")
    check(model, torch.jit.load(tmp_path / "net.pt"))

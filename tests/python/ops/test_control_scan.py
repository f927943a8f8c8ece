"""Scan: opsets 8, 9 and 11, axes and directions of inputs and outputs, several states and sequences, lengths that are open."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from checks import assert_formatted, check_model, expected, forward_of, parsed

import tonnx

RNG = np.random.default_rng(5)
X = RNG.standard_normal((4, 2, 3)).astype(np.float32)
Y = RNG.standard_normal((4, 3)).astype(np.float32)

SUM = "b (float[a, b] s, float[a, b] e) => (float[a, b] t, float[a, b] o) { t = Add(s, e) o = Neg(t) }"


def scan(options: str, shape: str, out: str = "float[] o", body: str = SUM, opset: int = 18) -> Any:
    return parsed(
        f"g (float[a, b] s, float[{shape}] x) => (float[] t, {out}) {{ t, o = Scan (s, x) <{options}, body = {body}> }}",
        opset,
    )


@pytest.mark.parametrize("opset", [9, 11, 18, 21])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("backwards", [None, 0, 1])
def test_inputs(axis: int | None, backwards: int | None, opset: int) -> None:
    options = ["num_scan_inputs = 1"]
    options += [] if axis is None else [f"scan_input_axes = [{axis}]"]
    options += [] if backwards is None else [f"scan_input_directions = [{backwards}]"]
    state = np.take(X, 0, axis or 0)
    for shape in ("p, q, r", "4, 2, 3"):
        check_model(scan(", ".join(options), shape, opset=opset), {"s": state, "x": X})


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_negative_axes(axis: int, opset: int) -> None:
    options = f"num_scan_inputs = 1, scan_input_axes = [{axis}], scan_output_axes = [{axis}]"
    check_model(scan(options, "p, q, r", opset=opset), {"s": np.take(X, 0, axis), "x": X})


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("backwards", [None, 0, 1])
def test_outputs(axis: int | None, backwards: int | None) -> None:
    options = ["num_scan_inputs = 1"]
    options += [] if axis is None else [f"scan_output_axes = [{axis}]"]
    options += [] if backwards is None else [f"scan_output_directions = [{backwards}]"]
    for shape in ("p, q, r", "4, 2, 3"):
        module = check_model(scan(", ".join(options), shape), {"s": X[0], "x": X})
    assert len(list(module.parameters())) == 0


SEVERAL = {
    "two_states_two_inputs": """g (float[3] s, float[3] u, float[n, 3] x, float[3, n] y) => (float[3] p, float[3] q, float[m, 3] o, float[m] r) {
        p, q, o, r = Scan (s, u, x, y) <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1], scan_output_directions = [1, 0],
            body = b (float[3] s1, float[3] u1, float[3] x1, float[3] y1) => (float[3] s2, float[3] u2, float[3] o1, float r1) {
                s2 = Add(s1, x1) u2 = Mul(u1, y1) o1 = Sub(s2, u2) r1 = ReduceSum <keepdims = 0> (o1) }> }""",
    "no_state": """g (float[3] s, float[3] u, float[n, 3] x, float[3, n] y) => (float[m, 3] o) {
        o = Scan (x, y) <num_scan_inputs = 2, scan_input_axes = [0, 1],
            body = b (float[3] x1, float[3] y1) => (float[3] o1) { o1 = Mul(x1, y1) }> }""",
    "no_scan_output": """g (float[3] s, float[3] u, float[n, 3] x, float[3, n] y) => (float[3] p) {
        p = Scan (s, x) <num_scan_inputs = 1, body = b (float[3] s1, float[3] x1) => (float[3] s2) { s2 = Add(s1, x1) }> }""",
    "captures": """g (float[3] s, float[3] u, float[n, 3] x, float[3, n] y) => (float[3] p, float[m, 3] o) {
        w = Neg(u) p, o = Scan (s, x) <num_scan_inputs = 1, body = b (float[3] s1, float[3] x1) => (float[3] s2, float[3] o1) {
            z = Mul(w, x1) s2 = Add(s1, z) o1 = Identity(s1) }> }""",
    "swapped_states": """g (float[3] s, float[3] u, float[n, 3] x, float[3, n] y) => (float[3] p, float[3] q, float[m, 3] o) {
        p, q, o = Scan (s, u, x) <num_scan_inputs = 1, body = b (float[3] s1, float[3] u1, float[3] x1) => (float[3] s2, float[3] u2, float[3] o1) {
            s2 = Identity(u1) u2 = Identity(s1) o1 = Add(s1, x1) }> }""",
    "element_is_handed_on": """g (float[3] s, float[3] u, float[n, 3] x, float[3, n] y) => (float[3] p, float[m, 3] o) {
        p, o = Scan (s, x) <num_scan_inputs = 1, body = b (float[3] s1, float[3] x1) => (float[3] s2, float[3] o1) {
            s2 = Identity(x1) o1 = Identity(s1) }> }""",
    "inside_a_scan": """g (float[3] s, float[3] u, float[n, 3] x, float[3, n] y) => (float p, float[m, k] o) {
        z = Constant <value_float = 0.0> ()
        p, o = Scan (z, x) <num_scan_inputs = 1, body = b (float s1, float[3] x1) => (float s2, float[3] o1) {
            s2, o1 = Scan (s1, x1) <num_scan_inputs = 1, body = bb (float s3, float x3) => (float s4, float o3) { s4 = Add(s3, x3) o3 = Mul(s4, s3) }> }> }""",
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several(name: str) -> None:
    model, module = parsed(SEVERAL[name]), None
    for count in (4, 1):
        feeds = {"s": X[0, 0], "u": X[1, 1], "x": Y[:count], "y": np.ascontiguousarray(Y[:count].T)}
        module = check_model(model, feeds, module=module)


def test_no_elements() -> None:
    feeds = {"s": X[0, 0], "u": X[1, 1], "x": Y[:0], "y": np.ascontiguousarray(Y[:0].T)}
    check_model(parsed(SEVERAL["captures"]), feeds, values=[X[0, 0], Y[:0]])


@pytest.mark.parametrize("backwards", [None, 0, 1])
@pytest.mark.parametrize("states", [0, 1, 2])
def test_opset_8(states: int, backwards: int | None) -> None:
    """A dimension for the batch stands in front of all, and lengths were an input."""
    names = ["s", "u"][:states]
    outer = "".join(f"float[b, 3] {name}, " for name in names)
    inner = "".join(f"float[3] {name}1, " for name in names)
    results = "".join(f"float[b, 3] {name}o, " for name in names)
    handed = "".join(f"float[3] {name}2, " for name in names)
    targets = "".join(f"{name}o, " for name in names)
    nodes = "".join(f"{name}2 = Add({name}1, x1) " for name in names)
    direction = "" if backwards is None else f"directions = [{backwards}], "
    model = parsed(f"""g ({outer}float[b, n, 3] x) => ({results}float[b, m, 3] o) {{
        {targets}o = Scan (, {"".join(name + ", " for name in names)}x) <num_scan_inputs = 1, {direction}
            body = b ({inner}float[3] x1) => ({handed}float[3] o1) {{ {nodes} o1 = Neg({"s1" if states else "x1"}) }}> }}""", 8)  # fmt: skip
    feeds = {name: RNG.standard_normal((4, 3)).astype(np.float32) for name in names} | {"x": X}
    check_model(model, feeds)


@pytest.mark.parametrize("opset", [9, 11, 16, 19, 21, 23, 24, 25])
def test_opset_steps(opset: int) -> None:
    text = """g (float[3] s, float[4, 3] x) => (float[3] t, float[4, 3] o) {
        t, o = Scan (s, x) <num_scan_inputs = 1, body = b (float[3] s1, float[3] x1) => (float[3] s2, float[3] o1) { s2 = Add(s1, x1) o1 = Neg(s2) }> }"""
    feeds = {"s": X[0, 0], "x": Y}
    tonnx.convert(parsed(text, 25), "changed.onnx", opset=opset)
    for got, want in zip(
        expected(onnx.load("changed.onnx"), feeds, False), expected(parsed(text, 18), feeds, False), strict=True
    ):
        np.testing.assert_allclose(got, want)
    with pytest.raises(tonnx.Error, match="Scan of opset 8 has another form"):
        tonnx.convert(parsed(text, opset), "changed.onnx", opset=8)


@pytest.mark.parametrize("how", ["export", "compile"])
def test_tracing(how: str) -> None:
    model = parsed(SEVERAL["captures"].replace("n, 3] x", "4, 3] x").replace("float[3, n] y", "float[3, 4] y"))
    module = tonnx.convert(model)
    feeds = {"s": X[0, 0], "u": X[1, 1], "x": Y, "y": np.ascontiguousarray(Y.T)}
    example = tuple(torch.from_numpy(value) for value in feeds.values())
    if how == "export":
        check_model(model, feeds, module=torch.export.export(module, example).module())
    else:
        torch.compiler.reset()
        check_model(model, feeds, module=torch.compile(module, fullgraph=True, backend="eager"))


def test_gradients_reach_weights_inside() -> None:
    model = parsed("""g (float[2] s, float[n, 2] x) => (float[2] t, float[n, 2] o) <float[2, 2] w = {0.1, 0.2, 0.3, 0.4}> {
        t, o = Scan (s, x) <num_scan_inputs = 1, body = b (float[2] s1, float[2] x1) => (float[2] s2, float[2] o1) {
            m = MatMul(s1, w) a = Add(m, x1) s2 = Tanh(a) o1 = Identity(s2) }> }""")
    module = tonnx.convert(model)
    (weight,) = module.parameters()
    state, total = torch.ones(2), torch.zeros(())
    w = torch.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    x = torch.from_numpy(Y[:, :2].copy())
    for row in x:
        state = torch.tanh(state @ w + row)
        total = total + state.sum()
    total.backward()
    module(torch.ones(2), x)[1].sum().backward()
    assert w.grad is not None and weight.grad is not None
    wanted = (
        w.grad if weight.grad.shape == w.grad.shape and torch.allclose(weight.grad, w.grad, atol=1e-5) else w.grad.t()
    )
    torch.testing.assert_close(weight.grad, wanted)


@pytest.mark.parametrize(
    "text, why",
    [
        ("num_scan_inputs = 3", "num_scan_inputs is 3, of 2 inputs"),
        ("num_scan_inputs = 0", "num_scan_inputs is 0, of 2 inputs"),
        ("num_scan_inputs = 1, scan_input_axes = [5]", "5"),
    ],
)
def test_what_does_not_fit(text: str, why: str) -> None:
    with pytest.raises(tonnx.Error, match=why):
        tonnx.convert(scan(text, "4, 2, 3"))


def test_it_reads_as_a_loop() -> None:
    text = """g (float[3] s, float[n, 3] x) => (float[3] p, float[n, 3] o) {
        p, o = Scan (s, x) <num_scan_inputs = 1, scan_output_axes = [1], body = b (float[3] s1, float[3] x1) => (float[3] s2, float[3] o1) {
            s2 = Add(s1, x1) o1 = Neg(s2) }> }"""
    assert textwrap.dedent(forward_of(parsed(text)).split("\n", 1)[1]) == (
        "y = s\nsteps = []\nfor i in range(x.size(0)):\n    y = y + x[i]\n    steps.append(-y)\n"
        "steps = torch.stack(steps) if steps else torch.empty(0, 3, device=s.device)\n"
        "return y, torch.movedim(steps, 0, 1)"
    )


def test_formatters_and_linters_agree() -> None:
    assert_formatted([parsed(text) for text in SEVERAL.values()])

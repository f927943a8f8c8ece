"""If and Loop: conditions, counts, captured and carried values, what comes out, how it reads, export and gradients."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from checks import assert_formatted, check_model, expected, forward_of, parsed

import tonnx

RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 3)).astype(np.float32)
YES, NO = np.array(True), np.array(False)


def int64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


# Each model takes a condition `c` and `x: float[n, 3]`; both conditions are tried.
BRANCHES = {
    "tensors": """g (bool c, float[n, 3] x) => (float[n, 3] y) {
        y = If (c) <then_branch = t () => (float[n, 3] a) { a = Add(x, x) },
                    else_branch = e () => (float[n, 3] b) { b = Neg(x) }> }""",
    "condition_of_one_element": """g (bool[1] c, float[n, 3] x) => (float[n, 3] y) {
        y = If (c) <then_branch = t () => (float[n, 3] a) { a = Add(x, x) },
                    else_branch = e () => (float[n, 3] b) { b = Neg(x) }> }""",
    "sizes_differ": """g (bool c, float[n, 3] x) => (float[m, 3] y) {
        y = If (c) <then_branch = t () => (float[k, 3] a) { a = Concat <axis = 0> (x, x) },
                    else_branch = e () => (float[n, 3] b) { b = Neg(x) }> }""",
    "ranks_differ": """g (bool c, float[n, 3] x) => (float[] y) {
        y = If (c) <then_branch = t () => (float[] a) { a = ReduceSum <keepdims = 0> (x) },
                    else_branch = e () => (float[] b) { b = Neg(x) }> }""",
    "ranks_differ_and_more_follows": """g (bool c, float[n, 3] x) => (float[] z, int64[] s) {
        y = If (c) <then_branch = t () => (float[] a) { a = Flatten <axis = 0> (x) },
                    else_branch = e () => (float[] b) { b = ReduceMax <keepdims = 0> (x) }>
        z = Mul(y, y) s = Shape(y) }""",
    "outer_value": """g (bool c, float[n, 3] x) => (float[n, 3] y) {
        z = Abs(x)
        y = If (c) <then_branch = t () => (float[n, 3] a) { a = Identity(x) },
                    else_branch = e () => (float[n, 3] b) { b = Identity(z) }> }""",
    "outer_value_that_is_made_later": """g (bool c, float[n, 3] x) => (float[n, 3] y) {
        y = If (c) <then_branch = t () => (float[n, 3] a) { a = Mul(x, z) },
                    else_branch = e () => (float[n, 3] b) {
                        b = If (c) <then_branch = tt () => (float[n, 3] p) { p = Neg(z) },
                                    else_branch = ee () => (float[n, 3] q) { q = Add(x, z) }> }>
        z = Abs(x) }""",
    "constant": """g (bool c, float[n, 3] x) => (float[] y) {
        y = If (c) <then_branch = t () => (float[2] a) <float[2] a = {1.0, 2.0}> { },
                    else_branch = e () => (float[2] b) { b = Constant <value = float[2] {3.0, 4.0}> () }> }""",
    "same_value_twice": """g (bool c, float[n, 3] x) => (float[n, 3] y, float[n, 3] z) {
        y, z = If (c) <then_branch = t () => (float[n, 3] a, float[n, 3] d) { a = Neg(x) d = Identity(a) },
                       else_branch = e () => (float[n, 3] b, float[n, 3] f) { b = Identity(x) f = Identity(x) }> }""",
    "several_outputs_of_several_types": """g (bool c, float[n, 3] x) => (float[n, 3] y, int64[] s, bool[n, 3] p) {
        y, s, p = If (c) <
            then_branch = t () => (float[n, 3] a1, int64[] a2, bool[n, 3] a3) {
                a1 = Sin(x) a2 = Shape(x) zero = Constant <value_float = 0.0> () a3 = Greater(x, zero) },
            else_branch = e () => (float[n, 3] b1, int64[] b2, bool[n, 3] b3) {
                b1 = Cos(x) b2 = Constant <value_ints = [7]> () zero = Constant <value_float = 0.0> () b3 = Less(x, zero) }> }""",
    "unused_output": """g (bool c, float[n, 3] x) => (float[n, 3] y) {
        u, y = If (c) <then_branch = t () => (float[] p, float[n, 3] a) { p = ReduceSum(x) a = Neg(x) },
                       else_branch = e () => (float[] q, float[n, 3] b) { q = ReduceMax(x) b = Abs(x) }> }""",
    "nobody_uses_it": """g (bool c, float[n, 3] x) => (float[n, 3] y) {
        u = If (c) <then_branch = t () => (float[] p) { p = ReduceSum(x) }, else_branch = e () => (float[] q) { q = ReduceMax(x) }>
        y = Neg(x) }""",
    "of_sequences": """g (bool c, float[n, 3] x) => (seq(float[]) y) {
        y = If (c) <then_branch = t () => (seq(float[]) a) { a = SequenceConstruct(x, x) },
                    else_branch = e () => (seq(float[]) b) { b = SequenceEmpty() }> }""",
    "sequences_and_tensors": """g (bool c, float[n, 3] x) => (seq(float[]) y, float[n, 3] z) {
        y, z = If (c) <then_branch = t () => (seq(float[]) a, float[n, 3] p) { a = SplitToSequence(x) p = Neg(x) },
                       else_branch = e () => (seq(float[]) b, float[n, 3] q) { b = SequenceConstruct(x) q = Identity(x) }> }""",
    "nested_three_deep": """g (bool c, float[n, 3] x) => (float[] y) {
        p = Abs(x) deep = ReduceMax <keepdims = 0> (x) one = Constant <value_float = 1.0> () d = Greater(deep, one)
        y = If (c) <
            then_branch = t () => (float[] a) {
                q = Add(p, x) d2 = Not(d)
                a = If (d2) <
                    then_branch = tt () => (float[] a2) {
                        r = Mul(q, p)
                        a2 = If (d) <then_branch = ttt () => (float[] a3) { a3 = Add(r, p) },
                                     else_branch = tte () => (float[] a4) { s = Sub(r, q) a4 = Add(s, x) }> },
                    else_branch = te () => (float[] a5) { a5 = Mul(q, x) }> },
            else_branch = e () => (float[] b) {
                b = If (d) <then_branch = et () => (float[] b2) { b2 = Neg(p) },
                            else_branch = ee () => (float[] b3) { b3 = Exp(x) }> }> }""",
    "one_after_the_other": """g (bool c, float[n, 3] x) => (float[n, 3] z) {
        y = If (c) <then_branch = t () => (float[n, 3] a) { a = Add(x, x) }, else_branch = e () => (float[n, 3] b) { b = Neg(x) }>
        w = Mul(y, x) d = Not(c)
        z = If (d) <then_branch = t2 () => (float[n, 3] a2) { a2 = Add(y, w) },
                    else_branch = e2 () => (float[n, 3] b2) { b2 = Sub(w, y) }> }""",
    "weights_inside": """g (bool c, float[n, 3] x) => (float[n, 2] y) <float[3, 2] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, float[2] v = {0.5, 0.25}> {
        y = If (c) <then_branch = t () => (float[n, 2] a) { a = Gemm(x, w, v) },
                    else_branch = e () => (float[n, 2] b) <float[3, 2] u = {6.0, 5.0, 4.0, 3.0, 2.0, 1.0}> { b = MatMul(x, u) }> }""",
}
CONDITIONS = {"condition_of_one_element": (np.array([True]), np.array([False]))}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name: str) -> None:
    model, module = parsed(BRANCHES[name]), None
    for condition in CONDITIONS.get(name, (YES, NO)):
        for x in (X, X * 10, X[:1], X[:0]):
            if x.size or "ReduceMax" not in BRANCHES[name]:
                module = check_model(model, {"c": condition, "x": x}, module=module)


@pytest.mark.parametrize(
    "name",
    ["tensors", "outer_value", "constant", "several_outputs_of_several_types", "unused_output", "weights_inside"],
)
@pytest.mark.parametrize("how", ["export", "compile"])
def test_branches_that_pytorch_traces(name: str, how: str) -> None:
    text = BRANCHES[name].replace("b2 = Constant <value_ints = [7]> ()", "b2 = Constant <value_ints = [7, 8]> ()")
    model = parsed(text)
    module = tonnx.convert(model)
    if how == "export":
        shapes = (None, {0: torch.export.Dim("n", min=2, max=64)})
        traced: Any = torch.export.export(
            module, (torch.tensor(True), torch.ones(4, 3)), dynamic_shapes=shapes
        ).module()
    else:
        torch.compiler.reset()
        traced = torch.compile(module, fullgraph=True, backend="eager")
    with torch.no_grad():
        for condition in (YES, NO):
            check_model(model, {"c": condition, "x": X}, module=traced)


# A condition on sizes is a plain bool, which tracing decides, and needs no tensor.
SIZES = [
    ("Equal", "x.size(0) == 2"),
    ("Less", "x.size(0) < 2"),
    ("Greater", "x.size(0) > 2"),
    ("LessOrEqual", "x.size(0) <= 2"),
    ("GreaterOrEqual", "x.size(0) >= 2"),
]


@pytest.mark.parametrize("op, words", SIZES)
@pytest.mark.parametrize("negated", [False, True])
def test_condition_on_a_size(op: str, words: str, negated: bool) -> None:
    model = parsed(f"""g (float[n, 3] x) => (float[] y) {{
        s = Shape <start = 0, end = 1> (x) two = Constant <value_ints = [2]> () c1 = {op}(s, two)
        {"c2 = Not(c1)" if negated else "c2 = Identity(c1)"} c = Squeeze(c2)
        y = If (c) <then_branch = t () => (float[] a) {{ a = ReduceSum <keepdims = 0> (x) }},
                    else_branch = e () => (float[] b) {{ b = Neg(x) }}> }}""")
    opposite = {"==": "!=", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}
    left, sign, right = words.rsplit(" ", 2)
    text = forward_of(model)
    assert f" if {left} {opposite[sign] if negated else sign} 2 else " in text and "tensor" not in text.replace(
        "Tensor", ""
    ), text
    module = tonnx.convert(model)
    for count in (1, 2, 3):
        check_model(model, {"x": np.resize(X, (count, 3))}, module=module)
    exported = torch.export.export(module, (torch.ones(5, 3),), dynamic_shapes=({0: torch.export.Dim("n", min=3)},))
    assert exported.module()(torch.ones(7, 3)) is not None


@pytest.mark.parametrize("op, word", [("And", "and"), ("Or", "or")])
def test_conditions_on_two_sizes(op: str, word: str) -> None:
    model = parsed(f"""g (float[n, m] x) => (float[] y) {{
        s = Shape(x) zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
        n0 = Gather(s, zero) m0 = Gather(s, one) p = Greater(n0, one) q = Less(m0, n0) c = {op}(p, q)
        y = If (c) <then_branch = t () => (float[] a) {{ a = ReduceSum <keepdims = 0> (x) }},
                    else_branch = e () => (float[] b) {{ b = Neg(x) }}> }}""")
    assert f" {word} " in forward_of(model)
    module = tonnx.convert(model)
    for shape in ((1, 1), (2, 1), (1, 2), (2, 3), (3, 2)):
        check_model(model, {"x": np.resize(X, shape)}, module=module)


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize(
    "condition",
    [
        "c = Constant <value = bool {{{flag}}}> ()",
        "f = Constant <value_int = {flag}> () c = Cast <to = 9> (f)",
        "f = Constant <value_int = {flag}> () o = Constant <value_int = 0> () c = Greater(f, o)",
        "s = Shape(x) i = Constant <value_int = 1> () m = Gather(s, i) k = Constant <value_int = {size}> () c = Equal(m, k)",
    ],
)
def test_known_condition_leaves_no_branch(condition: str, flag: int) -> None:
    model = parsed(f"""g (float[n, 3] x) => (float[] y, float[n, 3] z) {{
        {condition.format(flag=flag, size=3 if flag else 4)}
        y, z = If (c) <then_branch = t () => (float[] a, float[n, 3] p) {{ a = ReduceSum <keepdims = 0> (x) p = Identity(x) }},
                       else_branch = e () => (float[] b, float[n, 3] q) {{ b = Neg(x) q = Abs(x) }}> }}""")
    text = forward_of(model)
    assert "if " not in text and "cond" not in text
    check_model(model, {"x": X})


def test_known_conditions_inside_one_another() -> None:
    model = parsed("""g (float[n, 3] x) => (float[] y) {
        c = Constant <value = bool {1}> ()
        y = If (c) <then_branch = t () => (float[] a) {
                        p = Neg(x) d = Not(c)
                        a = If (d) <then_branch = tt () => (float[] a1) { a1 = Exp(p) },
                                    else_branch = te () => (float[] a2) { q = Abs(p) a2 = Add(q, x) }> },
                    else_branch = e () => (float[] b) { b = Neg(x) }> }""")
    assert "if " not in forward_of(model)
    check_model(model, {"x": X})


# Loops: the model, and what it is fed with.
LOOP = "g (float[n, 3] x, int64 k, bool c) => ({outputs}) <int64 three = {{3}}, bool yes = {{1}}, float half = {{0.5}}> {{ {nodes} }}"
STEP = "b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) {{ {nodes} }}"


def loop(nodes: str, outputs: str = "float[n, 3] y") -> str:
    return LOOP.format(nodes=nodes, outputs=outputs)


LOOPS = {
    "count_is_constant": loop("y = Loop (three, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                              "{ on = Identity(go) w = Mul(v, half) }>"),
    "count_is_an_input": loop("y = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                              "{ on = Identity(go) w = Mul(v, half) }>"),
    "count_is_a_size": loop("s = Shape <start = 0, end = 1> (x) m = Squeeze(s) "
                            "y = Loop (m, yes, x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                            "{ on = Identity(go) w = Add(v, x) }>"),
    "condition_from_outside": loop("y = Loop (k, c, x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                                   "{ on = Identity(go) w = Mul(v, half) }>"),
    "condition_from_inside": loop("y = Loop ( , yes, x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                                  "{ w = Mul(v, half) m = ReduceMax <keepdims = 0> (w) on = Greater(m, half) }>"),
    "both": loop("y = Loop (k, c, x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                 "{ w = Mul(v, half) m = ReduceMax <keepdims = 0> (w) on = Greater(m, half) }>"),
    "condition_is_the_iteration": loop("y = Loop (k, c, x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                                       "{ w = Mul(v, half) on = Less(i, three) }>"),
    "stops_by_a_constant": loop("y = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                                "{ w = Mul(v, half) on = Constant <value = bool {0}> () }>"),
    "scan_output": loop("y, s = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w, float[n, 3] o) "
                        "{ on = Identity(go) w = Mul(v, half) o = Add(w, x) }>", "float[n, 3] y, float[m, n, 3] s"),
    "only_scan_outputs": loop("s, t = Loop (k, yes) <body = b (int64 i, bool go) => (bool on, int64 o, float[n, 3] p) "
                              "{ on = Identity(go) o = Identity(i) f = Cast <to = 1> (i) p = Mul(x, f) }>", "int64[m] s, float[m, n, 3] t"),
    "scan_output_of_a_constant": loop("s = Loop (k, yes) <body = b (int64 i, bool go) => (bool on, float[2] o) "
                                      "{ on = Identity(go) o = Constant <value = float[2] {1.0, 2.0}> () }>", "float[m, 2] s"),
    "scan_output_of_an_outer_value": loop("s = Loop (k, yes) <body = b (int64 i, bool go) => (bool on, float[n, 3] o) "
                                          "{ on = Identity(go) o = Identity(x) }>", "float[m, n, 3] s"),
    "scan_output_and_condition": loop("y, s = Loop (k, c, x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w, float[3] o) "
                                      "{ w = Mul(v, half) m = ReduceMax <keepdims = 0> (w) on = Greater(m, half) "
                                      "z = Constant <value_ints = [0]> () o = ReduceSum <keepdims = 0> (w, z) }>", "float[n, 3] y, float[m, 3] s"),
    "unused_scan_output": loop("y, s = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w, float[n, 3] o) "
                               "{ on = Identity(go) w = Mul(v, half) o = Add(w, x) }>"),
    "unused_carried_value": loop("u, s = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w, float[n, 3] o) "
                                 "{ on = Identity(go) w = Mul(v, half) o = Add(w, x) }>", "float[m, n, 3] s"),
    "dead_ends": loop(
        "y, s, u = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w, float[n, 3] o, float[n, 3] d) "
        "{ on = Identity(go) w = Mul(v, half) o = Exp(w) d = Sin(w) }> a = Neg(s) c2 = Add(a, a) d2 = Shape(u)"
    ),
    "stops_before_it_begins": loop(
        "y, s = Loop (three, c, x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w, float[3] o) "
        "{ w = Mul(v, half) m = ReduceMax <keepdims = 0> (w) on = Greater(m, half) z = Constant <value_ints = [0]> () o = ReduceSum <keepdims = 0> (w, z) }>",
        "float[n, 3] y, float[m, 3] s",
    ),
    "grows": loop("y = Loop (k, , x) <body = b (int64 i, bool go, float[p, 3] v) => (bool on, float[q, 3] w) "
                  "{ on = Identity(go) w = Concat <axis = 0> (v, x) }>", "float[m, 3] y"),
    "gains_a_dimension": loop("one = Constant <value_ints = [0]> () y = Loop (k, , x) <body = b (int64 i, bool go, float[] v) => (bool on, float[] w) "
                              "{ on = Identity(go) w = Unsqueeze(v, one) }>", "float[] y"),
    "grows_from_nothing": loop("e = Constant <value = float[0, 3] {}> () y = Loop (k, , e) <body = b (int64 i, bool go, float[p, 3] v) => (bool on, float[q, 3] w) "
                               "{ on = Identity(go) w = Concat <axis = 0> (v, x) }>", "float[m, 3] y"),
    "invariant": loop("y, u = Loop (k, , x, half) <body = b (int64 i, bool go, float[n, 3] v, float h) => (bool on, float[n, 3] w, float h2) "
                      "{ on = Identity(go) w = Mul(v, h) h2 = Identity(h) }>", "float[n, 3] y, float u"),
    "initial_value_again": loop("y, s = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w, float[n, 3] o) "
                                "{ on = Identity(go) w = Identity(x) o = Mul(v, half) }>", "float[n, 3] y, float[m, n, 3] s"),
    "invariant_size": loop("s = Shape(x) a = Neg(x) y, u = Loop (k, , x, s) <body = b (int64 i, bool go, float[] v, int64[2] h) => (bool on, float[] w, int64[2] h2) "
                           "{ on = Identity(go) t = Reshape(v, h) w = Add(t, a) h2 = Identity(h) }>", "float[n, 3] y, int64[2] u"),
    "swapped": loop("z = Neg(x) y, u = Loop (k, , x, z) <body = b (int64 i, bool go, float[n, 3] v, float[n, 3] w) => (bool on, float[n, 3] p, float[n, 3] q) "
                    "{ on = Identity(go) p = Identity(w) q = Identity(v) }>", "float[n, 3] y, float[n, 3] u"),
    "fibonacci": loop("z = Neg(x) y, u = Loop (k, , x, z) <body = b (int64 i, bool go, float[n, 3] v, float[n, 3] w) => (bool on, float[n, 3] p, float[n, 3] q) "
                      "{ on = Identity(go) p = Identity(w) q = Add(v, w) }>", "float[n, 3] y, float[n, 3] u"),
    "rotated": loop("a = Neg(x) d = Abs(x) y, u, r = Loop (k, , x, a, d) <body = b (int64 i, bool go, float[n, 3] v, float[n, 3] w, float[n, 3] z) "
                    "=> (bool on, float[n, 3] p, float[n, 3] q, float[n, 3] o) "
                    "{ on = Identity(go) p = Identity(w) q = Identity(z) o = Identity(v) }>", "float[n, 3] y, float[n, 3] u, float[n, 3] r"),
    "iteration_as_tensor": loop("y = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                                "{ on = Identity(go) f = Cast <to = 1> (i) w = Add(v, f) }>"),
    "iteration_as_index": loop("zero = Constant <value_float = 0.0> () t = Constant <value_int = 2> () "
                               "y = Loop (t, , zero) <body = b (int64 i, bool go, float v) => (bool on, float w) "
                               "{ on = Identity(go) r = Gather <axis = 1> (x, i) s = ReduceSum <keepdims = 0> (r) w = Add(v, s) }>", "float y"),
    "iteration_carried": loop("z = Constant <value_int = 0> () y = Loop (k, , z) <body = b (int64 i, bool go, int64 v) => (bool on, int64 w) "
                              "{ on = Identity(go) w = Add(v, i) }>", "int64 y"),
    "carried_integer_is_an_index": loop("z = Constant <value_int = 0> () o = Constant <value_int = 1> () three2 = Constant <value_int = 3> () "
                                        "u, s = Loop (three2, , z) <body = b (int64 i, bool go, int64 v) => (bool on, int64 w, float[n] r) "
                                        "{ on = Identity(go) r = Gather <axis = 1> (x, v) w = Add(v, o) }>", "int64 u, float[m, n] s"),
    "slices_by_iteration": loop("u, s = Loop (three, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w, float[n] r) "
                                "{ on = Identity(go) w = Mul(v, half) a = Constant <value_ints = [0]> () j = Unsqueeze(i, a) e = Constant <value_ints = [1]> () f = Add(j, e) "
                                "l = Slice(v, j, f, e) r = Squeeze(l, e) }>", "float[n, 3] u, float[m, n] s"),
    "nested": loop("""z = Abs(x) y = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) {
        on = Identity(go) p = Mul(v, half)
        w = Loop (three, , v) <body = bb (int64 j, bool go2, float[n, 3] v2) => (bool on2, float[n, 3] w2) {
            on2 = Identity(go2) ij = Add(i, j) f = Cast <to = 1> (ij) q = Mul(p, f) r = Add(q, z) w2 = Add(v2, r) }> }>"""),
    "nested_with_scan_outputs": loop("""s = Loop (three, yes) <body = b (int64 i, bool go) => (bool on, float[p, n, 3] o) {
        on = Identity(go)
        o = Loop (k, yes) <body = bb (int64 j, bool go2) => (bool on2, float[n, 3] q) {
            on2 = Identity(go2) ij = Mul(i, j) f = Cast <to = 1> (ij) q = Mul(x, f) }> }>""", "float[a, d, n, 3] s"),
    "count_of_the_inner_is_the_iteration": loop("""y = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) {
        on = Identity(go)
        w = Loop (i, , v) <body = bb (int64 j, bool go2, float[n, 3] v2) => (bool on2, float[n, 3] w2) {
            on2 = Identity(go2) w2 = Add(v2, x) }> }>"""),
    "if_inside": loop("""y = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) {
        on = Identity(go) two = Constant <value_int = 2> () zero = Constant <value_int = 0> () m = Mod(i, two) e = Equal(m, zero)
        w = If (e) <then_branch = t () => (float[n, 3] a) { a = Add(v, x) }, else_branch = f () => (float[n, 3] d) { d = Mul(v, half) }> }>"""),
    "if_inside_inside_if": loop("""y = If (c) <
        then_branch = t () => (float[n, 3] a) {
            z = Abs(x)
            a = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) {
                on = Identity(go) m = ReduceMax <keepdims = 0> (v) e = Less(m, half)
                w = If (e) <then_branch = tt () => (float[n, 3] p) { p = Add(v, z) }, else_branch = ee () => (float[n, 3] q) { q = Mul(v, half) }> }> },
        else_branch = e () => (float[n, 3] d) { d = Neg(x) }>"""),
    "sequence_carried": loop("e = SequenceEmpty() y = Loop (k, , e) <body = b (int64 i, bool go, seq(float[]) v) => (bool on, seq(float[]) w) "
                             "{ on = Identity(go) w = SequenceInsert(v, x) }>", "seq(float[]) y"),
    "two_loops": loop("""a = Loop (k, , x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) { on = Identity(go) w = Mul(v, half) }>
        y, s = Loop (three, , a) <body = d (int64 j, bool go2, float[n, 3] v2) => (bool on2, float[n, 3] w2, float[n, 3] o) {
            on2 = Identity(go2) w2 = Add(v2, x) o = Sub(w2, a) }>""", "float[n, 3] y, float[m, n, 3] s"),
    "no_change": loop("y = Loop (k, c, x) <body = b (int64 i, bool go, float[n, 3] v) => (bool on, float[n, 3] w) "
                      "{ on = Identity(go) w = Identity(v) }>"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    model, module = parsed(LOOPS[name]), None
    for count in (4, 1, 0):
        for condition in (YES, NO):
            feeds = {"x": X, "k": np.array(count), "c": condition}
            module = check_model(model, feeds, module=module)


EXPORTED = ["count_is_constant", "count_is_a_size", "scan_output", "swapped", "iteration_as_tensor", "iteration_as_index", "invariant", "nested",
            "slices_by_iteration", "grows", "if_inside"]  # fmt: skip


@pytest.mark.parametrize("name", EXPORTED)
@pytest.mark.parametrize("how", ["export", "compile"])
def test_loops_that_pytorch_traces(name: str, how: str) -> None:
    text = LOOPS[name].replace("int64 k, ", "").replace("<int64 three", "<int64 k = {2}, int64 three")
    model = parsed(text)
    module = tonnx.convert(model)
    static = name == "count_is_a_size"  # as many statements as there are rows
    if how == "export":
        rows = None if static else {0: torch.export.Dim("n", min=2, max=64)}
        example = (torch.ones(2 if static else 5, 3), torch.tensor(True))
        traced: Any = torch.export.export(module, example, dynamic_shapes=(rows, None)).module()
    else:
        torch.compiler.reset()
        traced = torch.compile(module, fullgraph=True, backend="eager")
    with torch.no_grad():
        check_model(model, {"x": X, "c": YES}, module=traced)


def test_gradients_reach_weights_inside() -> None:
    model = parsed("""g (float[n, 2] x, bool c) => (float[n, 2] y) <float[2, 2] w = {0.1, 0.2, 0.3, 0.4}, float[2] v = {0.5, 0.25}, int64 k = {3}> {
        a = If (c) <then_branch = t () => (float[n, 2] p) { p = Gemm(x, w, v) }, else_branch = e () => (float[n, 2] q) { q = Mul(x, v) }>
        y = Loop (k, , a) <body = b (int64 i, bool go, float[n, 2] s) => (bool on, float[n, 2] r) <float[2, 2] u = {0.5, 0.6, 0.7, 0.8}> {
            on = Identity(go) m = MatMul(s, u) r = Tanh(m) }> }""")
    for condition in (True, False):
        module = tonnx.convert(model)
        assert len(list(module.parameters())) >= 3
        module(torch.ones(2, 2), torch.tensor(condition)).sum().backward()
        grads = {name: p.grad for name, p in module.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
        assert len(grads) == len(list(module.parameters())) - (0 if condition else 1), grads.keys()
        # against a loop written by hand
        w = torch.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
        v, u = torch.tensor([0.5, 0.25], requires_grad=True), torch.tensor([[0.5, 0.6], [0.7, 0.8]], requires_grad=True)
        y = torch.ones(2, 2) @ w + v if condition else torch.ones(2, 2) * v
        for _ in range(3):
            y = torch.tanh(y @ u)
        y.sum().backward()
        wanted = sorted(float(g.abs().sum()) for g in (w.grad, v.grad, u.grad) if g is not None)
        unique = {round(float(g.abs().sum()), 5) for g in grads.values()}
        np.testing.assert_allclose(sorted(unique), wanted, rtol=1e-4)


@pytest.mark.parametrize("opset", [1, 8, 11, 13, 16, 19, 21, 23, 25])
def test_opsets(opset: int) -> None:
    text = """g (float[2, 3] x, bool c, int64 k) => (float[2, 3] y) {
        a = If (c) <then_branch = t () => (float[2, 3] p) { p = Neg(x) }, else_branch = e () => (float[2, 3] q) { q = Abs(x) }>
        y = Loop (k, c, a) <body = b (int64 i, bool go, float[2, 3] v) => (bool on, float[2, 3] w) { on = Identity(go) w = Neg(v) }> }"""
    feeds = {"x": X, "c": YES, "k": np.array(3)}
    values = expected(parsed(text, 18), feeds, False)
    check_model(parsed(text, opset), feeds, values=values)
    tonnx.convert(parsed(text, 25), "changed.onnx", opset=opset)
    changed = onnx.load("changed.onnx")
    assert changed.opset_import[0].version == opset
    if opset >= 8:  # what ONNX Runtime still takes
        for got, want in zip(expected(changed, feeds, False), values, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_opset_step_that_cannot_be_taken() -> None:
    text = BRANCHES["of_sequences"]
    with pytest.raises(tonnx.Error, match=r"\(If\): the older opset takes no sequence"):
        tonnx.convert(parsed(text, 13), "changed.onnx", opset=12)


def test_formatters_and_linters_agree() -> None:
    assert_formatted([parsed(text) for text in [*BRANCHES.values(), *LOOPS.values()]])


def body_of(text: str) -> str:
    return textwrap.dedent(forward_of(parsed(text)).split("\n", 1)[1])


def test_a_branch_reads_well() -> None:
    assert body_of(BRANCHES["ranks_differ"]) == "return x.sum() if c else -x"


def test_a_loop_reads_well() -> None:
    assert body_of(LOOPS["fibonacci"].replace("Loop (k", "Loop (three")) == (
        "y = -x\nz = x\nu = y\nfor _ in range(3):\n    z, u = u, z + u\nreturn z, u"
    )
    assert body_of(LOOPS["fibonacci"]) == (
        "y = -x\n\ndef condition(i, z, u):\n    return i < k\n\ndef body(i, z, u):\n    return i + 1, u.clone(), z + u\n\n"
        "state = (torch.tensor(0, device=x.device), x, y)\nif torch.compiler.is_compiling():\n"
        "    state = torch.while_loop(condition, body, state)\nelse:\n    while condition(*state):\n"
        "        state = body(*state)\n_, z, u = state\nreturn z, u"
    )


def test_a_loop_over_rows_reads_well() -> None:
    assert body_of(LOOPS["count_is_a_size"]) == "y = x\nfor _ in range(x.size(0)):\n    y = y + x\nreturn y"


def test_a_loop_with_scan_outputs_reads_well() -> None:
    assert body_of(LOOPS["carried_integer_is_an_index"]) == (
        "steps = []\nfor i in range(3):\n    steps.append(x[:, i])\nsteps = torch.stack(steps)\nreturn self.shape, steps"
    )


@pytest.mark.parametrize("outputs", ["y", ", y", "y, ", ", , y", "y, , "])
def test_outputs_that_are_not_named(outputs: str) -> None:
    """ONNX Runtime crashes where the last ones are left out."""
    model = parsed(loop(f"""z = Neg(x) {outputs} = Loop (k, , x, z) <
        body = b (int64 i, bool go, float[n, 3] v, float[n, 3] w) => (bool on, float[n, 3] p, float[n, 3] q, float[n, 3] o) {{
            on = Identity(go) p = Add(v, w) q = Mul(v, half) o = Identity(p) }}>""", "float[] y"))  # fmt: skip
    v, w, steps = X, -X, []
    for _ in range(3):
        v, w = v + w, v * np.float32(0.5)
        steps.append(v)
    wanted = (v, w, np.stack(steps))[outputs.split(", ").index("y")]
    check_model(model, {"x": X, "k": np.array(3), "c": YES}, values=[wanted])


def test_what_nobody_uses_is_not_computed() -> None:
    text = forward_of(parsed(LOOPS["dead_ends"]))
    assert "exp" not in text and "sin" not in text and "steps" not in text
    assert "amax" not in forward_of(parsed(BRANCHES["unused_output"]))
    deep = parsed("""g (bool c, float[n, 3] x) => (float[n, 3] y) {
        u, y = If (c) <
            then_branch = t () => (float[n, 3] p, float[n, 3] a) {
                q, a = If (c) <then_branch = tt () => (float[n, 3] p1, float[n, 3] a1) { p1 = Exp(x) a1 = Neg(x) },
                               else_branch = te () => (float[n, 3] p2, float[n, 3] a2) { p2 = Sin(x) a2 = Abs(x) }>
                p = Cos(q) },
            else_branch = e () => (float[n, 3] r, float[n, 3] b) { r = Tanh(x) b = Identity(x) }> }""")
    assert not any(op in forward_of(deep) for op in ("exp", "sin", "cos", "tanh"))
    check_model(deep, {"c": YES, "x": X})

"""Sequences and optional values: every operator and attribute, positions of both signs, known and not; inputs, outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from checks import assert_formatted, assert_same, check_model, forward_of, parsed

import tonnx

RNG = np.random.default_rng(3)
X = RNG.standard_normal((4, 3)).astype(np.float32)
Y = RNG.standard_normal((4, 3)).astype(np.float32)
ITEMS = [X, Y, X[:2], X[:0]]


def position(place: str, value: int) -> tuple[str, dict[str, Any]]:
    """The text that makes `p`, and its feed where it is an input."""
    if place == "constant":
        return f"p = Constant <value_int = {value}> ()", {}
    if place == "int32":
        return f"q = Constant <value_int = {value}> () p = Cast <to = 6> (q)", {}
    return "", {"p": np.array(value, np.int64)}


PLACES = ["constant", "int32", "run time"]
TEXTS: list[str] = []  # of the models that this process has tried, for the linter


def model_of(text: str, opset: int = 18) -> Any:
    TEXTS.append(text)
    return parsed(text, opset)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("at", [0, 1, 3, -1, -4])
def test_at(place: str, at: int) -> None:
    text, feed = position(place, at)
    given = ", int64 p" if feed else ""
    model = model_of(f"g (seq(float[]) s{given}) => (float[] y) {{ {text} y = SequenceAt(s, p) }}")
    check_model(model, {"s": ITEMS} | feed)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("at", [0, 1, 4, -1, -4])
def test_insert(place: str, at: int) -> None:
    text, feed = position(place, at)
    given = ", int64 p" if feed else ""
    model = model_of(
        f"g (seq(float[]) s, float[a, b] x{given}) => (seq(float[]) y) {{ {text} y = SequenceInsert(s, x, p) }}"
    )
    check_model(model, {"s": ITEMS, "x": X} | feed)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("at", [0, 1, 3, -1, -2, -4])
def test_erase(place: str, at: int) -> None:
    text, feed = position(place, at)
    given = ", int64 p" if feed else ""
    model = model_of(f"g (seq(float[]) s{given}) => (seq(float[]) y) {{ {text} y = SequenceErase(s, p) }}")
    check_model(model, {"s": ITEMS} | feed)


@pytest.mark.parametrize("items", [ITEMS, [X], [X[:0]]])
def test_without_positions(items: list[np.ndarray]) -> None:
    model = model_of("""g (seq(float[]) s, float[a, b] x) => (seq(float[]) y, seq(float[]) z, int64 n) {
        y = SequenceInsert(s, x) z = SequenceErase(s) n = SequenceLength(s) }""")
    check_model(model, {"s": items, "x": Y})


def test_of_the_empty_sequence() -> None:
    model = model_of("""g (seq(float[]) s, float[a, b] x) => (seq(float[]) y, int64 n, seq(float[]) e) {
        y = SequenceInsert(s, x) n = SequenceLength(s) e = Identity(s) }""")
    check_model(model, {"s": [], "x": Y}, reference=True)


@pytest.mark.parametrize("dtype, number", [(None, 1), ("int64", 7), ("float64", 11), ("bool", 9)])
def test_empty(dtype: str | None, number: int) -> None:
    name = {1: "float", 7: "int64", 11: "double", 9: "bool"}[number]
    attribute = "" if dtype is None else f"<dtype = {number}>"
    model = model_of(f"""g ({name}[a, b] x) => (seq({name}[]) y, seq({name}[]) e, int64 n) {{
        e = SequenceEmpty {attribute} () y = SequenceInsert(e, x) n = SequenceLength(e) }}""")
    check_model(model, {"x": X.astype(dtype or "float32")})


def test_construct_and_take_apart() -> None:
    model = model_of("""g (float[a, b] x, float[c] y) => (seq(float[]) s, float[a, b] p, float[c] q, int64 n) {
        s = SequenceConstruct(x, y, x) one = Constant <value_int = 1> () minus = Constant <value_int = -1> ()
        p = SequenceAt(s, minus) q = SequenceAt(s, one) n = SequenceLength(s) }""")
    check_model(model, {"x": X, "y": X[0]})


@pytest.mark.parametrize("position", [3, -4])
def test_a_position_that_is_not_there(position: int) -> None:
    model = parsed(f"""g (float[a, b] x) => (float[a, b] y) {{
        s = SequenceConstruct(x, x, x) p = Constant <value_int = {position}> () y = SequenceAt(s, p) }}""")
    with pytest.raises(tonnx.Error, match=str(position)):
        tonnx.convert(model)


@pytest.mark.parametrize("shape", ["a, b", "4, 3"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2])
@pytest.mark.parametrize("keepdims", [None, 0, 1])
def test_split_into_ones(keepdims: int | None, axis: int | None, shape: str) -> None:
    attributes = [f"{k} = {v}" for k, v in (("axis", axis), ("keepdims", keepdims)) if v is not None]
    options = f"<{', '.join(attributes)}>" if attributes else ""
    model = model_of(f"g (float[{shape}] x) => (seq(float[]) s) {{ s = SplitToSequence {options} (x) }}")
    for x in (X, X[:0]) if shape == "a, b" else (X,):
        check_model(model, {"x": x})


@pytest.mark.parametrize("place", ["constant", "run time"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("split", [1, 2, 3, 5, [1, 1, 1], [3, 0], [1, 2]])
def test_split(split: int | list[int], axis: int, place: str) -> None:
    array = np.array(split, np.int64)
    x = X if isinstance(split, int) else np.resize(X, (sum(split), sum(split)))
    shape = "" if isinstance(split, int) else f"[{len(split)}]"
    values = ", ".join(map(str, np.atleast_1d(array)))
    constant = f"k = Constant <value = int64{shape} {{{values}}}> ()" if place == "constant" else ""
    given = "" if constant else f", int64{shape} k"
    keepdims = "" if isinstance(split, int) else ", keepdims = 0"  # means nothing beside sizes
    model = model_of(f"""g (float[a, b] x{given}) => (seq(float[]) s) {{
        {constant} s = SplitToSequence <axis = {axis}{keepdims}> (x, k) }}""")
    feed = {} if constant else {"k": array}
    module = check_model(model, {"x": x} | feed)
    if isinstance(split, int):
        check_model(model, {"x": np.zeros((0, 0), np.float32)} | feed, module=module)


def test_split_by_a_list_of_unknown_length() -> None:
    model = model_of("g (float[a, b] x, int64[n] k) => (seq(float[]) s) { s = SplitToSequence(x, k) }")
    module = check_model(model, {"x": X, "k": np.array([1, 3])})
    check_model(model, {"x": X, "k": np.array([2, 1, 1], np.int64)}, module=module)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_concat(axis: int) -> None:
    model = model_of(f"g (seq(float[]) s) => (float[] y) {{ y = ConcatFromSequence <axis = {axis}> (s) }}")
    parts = [X, X[:2], X[:0]] if axis in (0, -2) else [X, X[:, :1], X[:, :0]]
    check_model(model, {"s": parts})


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stack(axis: int) -> None:
    model = model_of(
        f"g (seq(float[]) s) => (float[] y) {{ y = ConcatFromSequence <axis = {axis}, new_axis = 1> (s) }}"
    )
    check_model(model, {"s": [X, Y]})
    check_model(model, {"s": [X[:0], X[:0]]}, reference=True)


MAPS = {
    "one_sequence": """g (seq(float[]) s) => (seq(float[]) y) {
        y = SequenceMap (s) <body = b (float[] e) => (float[] r) { r = Neg(e) }> }""",
    "two_sequences": """g (seq(float[]) s, seq(float[]) t) => (seq(float[]) y) {
        y = SequenceMap (s, t) <body = b (float[] e, float[] f) => (float[] r) { r = Add(e, f) }> }""",
    "sequence_and_tensor": """g (seq(float[]) s, float[3] x) => (seq(float[]) y) {
        y = SequenceMap (s, x) <body = b (float[] e, float[3] f) => (float[] r) { r = Add(e, f) }> }""",
    "two_outputs": """g (seq(float[]) s) => (seq(float[]) y, seq(int64[]) z) {
        y, z = SequenceMap (s) <body = b (float[] e) => (float[] r, int64[] q) { r = Neg(e) q = Shape(e) }> }""",
    "captures": """g (seq(float[]) s, float[3] x) => (seq(float[]) y) {
        z = Neg(x) y = SequenceMap (s) <body = b (float[] e) => (float[] r) { r = Add(e, z) }> }""",
    "hands_on": """g (seq(float[]) s) => (seq(float[]) y) {
        y = SequenceMap (s) <body = b (float[] e) => (float[] r) { r = Identity(e) }> }""",
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("items", [[X, Y], [X], []], ids=["two", "one", "none"])
def test_map(name: str, items: list[np.ndarray]) -> None:
    feeds: dict[str, Any] = {"s": items}
    if name == "two_sequences":
        feeds["t"] = [2 * item for item in items]
    elif "x" in MAPS[name].split("=>")[0]:
        feeds["x"] = X[0]
    check_model(model_of(MAPS[name]), feeds)


def test_map_over_what_was_split() -> None:
    model = model_of("""g (float[a, 3] x) => (float[a, 3] y) {
        s = SplitToSequence(x) t = SequenceMap (s) <body = b (float[1, 3] e) => (float[1, 3] r) { r = Softmax(e) }>
        y = ConcatFromSequence <axis = 0> (t) }""")
    module = check_model(model, {"x": X})
    exported = torch.export.export(module, (torch.from_numpy(X),))
    check_model(model, {"x": Y}, module=exported.module())


# Optional values


@pytest.mark.parametrize("value", [X, None], ids=["given", "none"])
@pytest.mark.parametrize("opset", [15, 18, 28])
def test_optional_input(value: np.ndarray | None, opset: int) -> None:
    model = model_of("""g (optional(float[a, b]) o, float[a, b] x) => (bool h, float[a, b] y) {
        h = OptionalHasElement(o)
        y = If (h) <then_branch = t () => (float[a, b] p) { g = OptionalGetElement(o) p = Neg(g) },
                    else_branch = e () => (float[a, b] q) { q = Abs(x) }> }""", opset)  # fmt: skip
    wanted = [np.array(value is not None), np.abs(Y) if value is None else -X]
    check_model(model, {"o": value, "x": Y}, values=wanted)


@pytest.mark.parametrize("value", [[X, Y], [], None], ids=["two", "empty", "none"])
def test_optional_sequence(value: list[np.ndarray] | None) -> None:
    model = model_of("""g (optional(seq(float[a, b])) o, float[a, b] x) => (seq(float[a, b]) y) {
        h = OptionalHasElement(o)
        y = If (h) <then_branch = t () => (seq(float[a, b]) p) { g = OptionalGetElement(o) p = SequenceInsert(g, x) },
                    else_branch = e () => (seq(float[a, b]) q) { q = SequenceConstruct(x, x) }> }""")
    check_model(model, {"o": value, "x": Y}, values=[[Y, Y] if value is None else [*value, Y]])


def test_optional_outputs() -> None:
    model = model_of("""g (float[a, b] x) => (optional(float[a, b]) o, optional(seq(float[])) s, bool h, float[a, b] y) {
        o = Optional(x) l = SequenceConstruct(x, x) s = Optional(l) h = OptionalHasElement(o) y = OptionalGetElement(o) }""")
    check_model(model, {"x": X}, values=[X, [X, X], np.array(True), X])


def test_optional_of_nothing() -> None:
    from onnx import TensorProto, helper

    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    node = helper.make_node("Optional", [], ["o"], type=tensor)
    has = helper.make_node("OptionalHasElement", ["o"], ["h"])
    absent = helper.make_node("OptionalHasElement", [""], ["a"])
    outputs = [
        helper.make_value_info("o", helper.make_optional_type_proto(tensor)),
        helper.make_tensor_value_info("h", TensorProto.BOOL, []),
        helper.make_tensor_value_info("a", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph([node, has, absent], "g", [], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    assert_same(list(tonnx.convert(model)()), [None, np.array(False), np.array(False)])
    with pytest.raises(tonnx.Error, match="the older opset needs the input"):
        tonnx.convert(model, "older.onnx", opset=17)


def test_has_element_of_a_tensor() -> None:
    """From opset 18 on the input may be what is always there."""
    model = model_of("g (float[a, b] x, seq(float[]) s) => (bool h, bool k, float[a, b] y) { h = OptionalHasElement(x) k = OptionalHasElement(s) y = OptionalGetElement(x) }")  # fmt: skip
    check_model(model, {"x": X, "s": [X]}, values=[np.array(True), np.array(True), X])


@pytest.mark.parametrize("value", [X, None], ids=["given", "none"])
@pytest.mark.parametrize("condition", [True, False])
def test_optional_out_of_a_branch(condition: bool, value: np.ndarray | None) -> None:
    model = model_of("""g (bool c, optional(float[a, b]) o, optional(float[a, b]) z) => (optional(float[a, b]) y) {
        y = If (c) <then_branch = t () => (optional(float[a, b]) p) { p = Identity(o) },
                    else_branch = e () => (optional(float[a, b]) q) { q = Identity(z) }> }""")
    check_model(model, {"c": np.array(condition), "o": value, "z": Y}, values=[value if condition else Y])


def test_sequences_read_as_lists() -> None:
    model = parsed("""g (seq(float[]) s, float[a, b] x, int64 p) => (seq(float[]) y, seq(float[]) z, float[] w, int64 n) {
        one = Constant <value_int = 1> () y = SequenceInsert(s, x, one) z = SequenceErase(y, p)
        w = SequenceAt(z, one) n = SequenceLength(z) }""")
    assert forward_of(model).split("\n", 1)[1] == (
        "        y = [*s[:1], x, *s[1:]]\n"
        "        n = p.item()\n"
        "        z = [*y[:n], *y[n:][1:]]\n"
        "        return y, z, z[1], torch.tensor(len(z), device=x.device)"
    )


def test_formatters_and_linters_agree() -> None:
    assert_formatted([parsed(text) for text in {*TEXTS, *MAPS.values()}])

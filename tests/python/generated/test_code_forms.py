"""What exporters write out in small parts is one call in generated code, and in the other forms, with the same values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import tonnx


def made(signature: str, nodes: str, **constants: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> g {signature} {{ {nodes} }}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in constants.items())
    return model


def code_of(model: onnx.ModelProto, folder: Path) -> str:
    tonnx.convert(model, folder / "net.py")
    return (folder / "net.py").read_text()


def check(model: onnx.ModelProto, *inputs: np.ndarray, folder: Path | None = None) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    want = session.run(None, dict(zip(names, inputs, strict=True)))
    given = [torch.from_numpy(x) for x in inputs]
    forms = [tonnx.convert(model)]
    if folder is not None:
        tonnx.convert(model, folder / "net.pt2")
        tonnx.convert(model, folder / "net.pt")
        forms += [torch.export.load(folder / "net.pt2").module(), torch.jit.load(folder / "net.pt")]
    for form in forms:
        got = form(*given)
        got = got if isinstance(got, tuple) else (got,)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g.detach().numpy(), w, rtol=1e-4, atol=1e-5)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# A reshape that splits one dimension

HEADS = "n = Shape<start = 0, end = 2>(x) s = Concat<axis = 0>(n, {sizes}) y = Reshape({data}, s)"
SPLIT = made("(float[b, k, 12] x) => (float[b, k, 3, 4] y)", HEADS.format(sizes="h", data="x"), h=np.array([3, 4]))
MIDDLE = made(
    "(float[b, 12, k] x) => (float[b, 3, 4, k] y)",
    "n = Shape<start = 0, end = 1>(x) m = Shape<start = 2>(x) s = Concat<axis = 0>(n, h, m) y = Reshape(x, s)",
    h=np.array([3, 4]),
)
OTHER = made(  # the sizes are those of another order
    "(float[b, k, 12] x) => (float[k, b, 3, 4] y)",
    "n = Shape<start = 0, end = 1>(x) m = Shape<start = 1, end = 2>(x) s = Concat<axis = 0>(m, n, h) y = Reshape(x, s)",
    h=np.array([3, 4]),
)


@pytest.mark.parametrize(
    ("model", "line", "shape"),
    [(SPLIT, "return x.unflatten(-1, (3, 4))", (2, 5, 12)), (MIDDLE, "return x.unflatten(1, (3, 4))", (2, 12, 5))],
)
def test_one_dimension_becomes_several(
    model: onnx.ModelProto, line: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    text = code_of(model, tmp_path)
    assert line in text and ".size(" not in text
    check(model, normal(*shape), folder=tmp_path)


PATCHES = "r = Reshape(x, {fine}) t = Transpose<perm = [0, 1, 3, 2, 4, 5]>(r) y = Reshape(t, {coarse})"


def test_two_dimensions_become_windows_and_rows(tmp_path: Path) -> None:
    model = made(
        "(float[2, 6, 8, 5] x) => (float[8, 6, 5] y)",
        PATCHES.format(fine="a", coarse="b"),
        a=np.array([2, 2, 3, 4, 2, 5]),
        b=np.array([16, 6, 5]),
    )
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 16
    text = code_of(model, tmp_path)
    assert "x.unflatten(2, (-1, 2)).unflatten(1, (-1, 3)).transpose(2, 3).flatten(3, 4)" in text
    assert ".flatten(0, 2)" in text and "reshape" not in text
    check(model, normal(2, 6, 8, 5), folder=tmp_path)


@pytest.mark.parametrize("fine", [[2, 6, 1, 4, 2, 5], [2, 3, 4, 2, 2, 5], [4, 3, 1, 4, 2, 5], [2, 2, 3, 8, 1, 5]])
def test_windows_of_other_sizes(fine: list[int], tmp_path: Path) -> None:
    nodes = PATCHES.format(fine="a", coarse="b")
    model = made("(float[2, 6, 8, 5] x) => (float[n, m] y)", nodes, a=np.array(fine), b=np.array([-1, 5]))
    code_of(model, tmp_path)
    check(model, normal(2, 6, 8, 5), folder=tmp_path)


def test_a_reshape_that_mixes_dimensions_stays(tmp_path: Path) -> None:
    assert "unflatten" not in code_of(OTHER, tmp_path)
    check(OTHER, normal(2, 5, 12), folder=tmp_path)


# Slices that are all of a tensor

PARTS = "a = Slice(x, {a}, {b}, ax) c = Slice(x, {b}, {c}, ax) d = Mul(a, a) e = Sum(a, d) f = ReduceSum(c, ax) y = Mul(e, f)"


def parts(starts: tuple[int, int, int], size: int = 6) -> onnx.ModelProto:
    a, b, c = [np.array([each]) for each in starts]
    nodes = PARTS.format(a="a0", b="b0", c="c0")
    return made(f"(float[n, {size}] x) => (float[n, k] y)", nodes, a0=a, b0=b, c0=c, ax=np.array([1]))


@pytest.mark.parametrize(
    ("starts", "line"),
    [
        ((0, 3, 6), "y, z = x.chunk(2, 1)"),
        ((0, 2, 6), "y, z = torch.split(x, [2, 4], 1)"),
        ((0, -2, 9), "y, z = torch.split(x, [4, 2], 1)"),
    ],
)
def test_slices_that_are_all_of_a_tensor(starts: tuple[int, int, int], line: str, tmp_path: Path) -> None:
    model = parts(starts)
    assert line in code_of(model, tmp_path)
    check(model, normal(4, 6), folder=tmp_path)


@pytest.mark.parametrize("starts", [(0, 2, 5), (1, 3, 6)])
def test_slices_that_leave_something_out_stay(starts: tuple[int, int, int], tmp_path: Path) -> None:
    model = parts(starts)
    text = code_of(model, tmp_path)
    assert "chunk" not in text and "split" not in text
    check(model, normal(4, 6), folder=tmp_path)


def test_elements_that_are_all_of_a_tensor(tmp_path: Path) -> None:
    nodes = "a = Gather(x, i) b = Gather(x, j) c = Mul(a, b) d = Add(a, b) y = Sub(c, d)"
    model = made("(float[2, n] x) => (float[n] y)", nodes, i=np.array(0), j=np.array(1))
    assert "y, z = torch.unbind(x)" in code_of(model, tmp_path)
    check(model, normal(2, 5), folder=tmp_path)


# Group norms

GROUPED = "r = Reshape(x, g) i = InstanceNormalization(r, one, zero) s = Shape(x) q = Reshape(i, s) "
AFFINE = "m = Mul(q, w) y = Add(m, b)"
IMAGES = "(float[n, 6, h, 8] x) => (float[n, 6, h, 8] y)"
CONSTANTS = {
    "g": np.array([0, 3, -1]),
    "one": np.ones(3, np.float32),
    "zero": np.zeros(3, np.float32),
    "w": normal(6, 1, 1),
    "b": normal(6, 1, 1, seed=1),
}


def test_group_norm(tmp_path: Path) -> None:
    model = made(IMAGES, GROUPED + AFFINE, **CONSTANTS)
    text = code_of(model, tmp_path)
    assert "nn.GroupNorm(3, 6)" in text and "reshape" not in text
    state = tonnx.convert(model).state_dict()
    assert sorted(tuple(tensor.shape) for tensor in state.values()) == [(6,), (6,)]
    check(model, normal(2, 6, 5, 8), folder=tmp_path)


def test_group_norm_without_weights(tmp_path: Path) -> None:
    model = made(IMAGES, GROUPED.replace("q = ", "y = "), **{name: CONSTANTS[name] for name in ("g", "one", "zero")})
    assert "return F.group_norm(x, 3)" in code_of(model, tmp_path)
    check(model, normal(2, 6, 5, 8), folder=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"one": np.array([1, 2, 1], np.float32)},  # the groups have weights of their own
        {"g": np.array([-1, 3, 16])},  # the rows are not those of the batch
        {"w": normal(8), "b": normal(8)},  # a weight for each column
    ],
)
def test_other_instance_norms_stay(change: dict[str, np.ndarray], tmp_path: Path) -> None:
    model = made(IMAGES, GROUPED + AFFINE, **{**CONSTANTS, **change})
    assert "nn.GroupNorm" not in code_of(model, tmp_path)
    check(model, normal(2, 6, 4, 8), folder=tmp_path)


# Branches

CHOICE = """
    t = ReduceMax<keepdims = 0>(x) z = Constant<value = float {0.0}>() c = Greater(t, z)
    y = If(c) <
        then_branch = g1 () => (float[n] a) { a = Exp(x) },
        else_branch = g2 () => (float[n] b) { b = Identity(x) }
    >
"""


def test_the_results_of_a_branch_are_returned_as_they_are(tmp_path: Path) -> None:
    model = made(
        "(float[n] x) => (float[n] y, float[n] z)",
        CHOICE.replace("z = Constant", "zero = Constant")
        .replace("Greater(t, z)", "Greater(t, zero)")
        .replace("y = If", "y, z = If")
        .replace("(float[n] a) { a = Exp(x) }", "(float[n] a, float[n] d) { a = Exp(x) d = Neg(x) }")
        .replace("(float[n] b) { b = Identity(x) }", "(float[n] b, float[n] e) { b = Abs(x) e = Exp(x) }"),
    )
    assert "return torch.cond(" in code_of(model, tmp_path)
    for x in (normal(3), -np.abs(normal(3))):
        check(model, x)


def test_a_branch_of_one_value_is_one_line(tmp_path: Path) -> None:
    nodes = """
        r = Shape(x) k = Size(r) two = Constant<value = int64 {2}>() c = Equal(k, two)
        y = If(c) <
            then_branch = g1 () => (float[m, n, l] a) { ax = Constant<value = int64[1] {0}>() a = Unsqueeze(x, ax) },
            else_branch = g2 () => (float[m, n, l] b) { b = Identity(x) }
        >
    """
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> g (float x) => (float y) {{ {nodes} }}')
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    assert "x.unsqueeze(0) if " in code_of(model, tmp_path)
    check(model, normal(3, 4))
    check(model, normal(2, 3, 4))


# Rows of the docstring


def test_inputs_that_count_on_are_one_row(tmp_path: Path) -> None:
    names = [f"past.{i}.{kind}" for i in range(4) for kind in ("key", "value")]
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 4]) for name in names]
    results = [onnx.helper.make_tensor_value_info(f"now{i}", onnx.TensorProto.FLOAT, ["n", 4]) for i in range(2)]
    nodes = [onnx.helper.make_node("Sum", names[i::2], [f"now{i}"]) for i in range(2)]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", info, results), opset_imports=[onnx.helper.make_opsetid("", 18)]
    )
    model.ir_version = 9
    text = code_of(model, tmp_path)
    docstring = text.split('"""')[1]
    assert "past_0..3_key    float32[n, 4]  (past.0..3.key)" in docstring
    assert "past_0..3_value  float32[n, 4]  (past.0..3.value)" in docstring
    assert "past_1" not in docstring
    assert "now0" in docstring and "now1" in docstring  # two of a kind stay
    check(model, *(normal(3, 4, seed=i) for i in range(8)))


# Activations

THIRD, ROOT = np.array(0.044715, np.float32), np.array(0.7978845608, np.float32)
HALF, ONE, THREE, TWO = (np.array(value, np.float32) for value in (0.5, 1, 3, 2))
NUMBERS = {"third": THIRD, "root": ROOT, "half": HALF, "one": ONE, "three": THREE, "two": TWO}
STEP = "t = Tanh(i) s = Add(t, one) "
TANH_GELUS = [
    "p = Pow(x, three) q = Mul(p, third) a = Add(x, q) i = Mul(a, root) " + STEP + "h = Mul(x, half) y = Mul(h, s)",
    "p = Mul(x, third) q = Mul(x, p) r = Mul(x, q) a = Add(x, r) i = Mul(a, root) "
    + STEP
    + "g = Mul(s, half) y = Mul(x, g)",
    "p = Mul(x, x) q = Mul(p, third) r = Add(one, q) a = Mul(root, x) i = Mul(a, r) "
    + STEP
    + "m = Mul(x, s) y = Mul(m, half)",
]


def activation(nodes: str, **changes: np.ndarray) -> onnx.ModelProto:
    numbers = {**NUMBERS, **changes}
    used = {name: value for name, value in numbers.items() if f"({name}" in nodes or f", {name})" in nodes}
    return made("(float[n, 4] x) => (float[n, 4] y)", nodes, **used)


@pytest.mark.parametrize("nodes", TANH_GELUS)
def test_gelu_by_tanh(nodes: str, tmp_path: Path) -> None:
    model = activation(nodes)
    assert 'F.gelu(x, approximate="tanh")' in code_of(model, tmp_path)
    check(model, 3 * normal(5, 4), folder=tmp_path)


@pytest.mark.parametrize("nodes", TANH_GELUS)
@pytest.mark.parametrize("change", [{"third": np.array(0.05, np.float32)}, {"one": TWO}, {"half": ONE}])
def test_other_sums_with_tanh_stay(nodes: str, change: dict[str, np.ndarray], tmp_path: Path) -> None:
    model = activation(nodes, **change)
    assert "gelu" not in code_of(model, tmp_path)
    check(model, normal(5, 4), folder=tmp_path)


SOFTMAX = "m = ReduceMax<keepdims = {k}>(x, {ax}) d = Sub(x, {m}) e = Exp(d) s = ReduceSum<keepdims = {k}>(e, {bx}) "


def softmax(last: str, keep: int = 1, max_axis: int = 1, sum_axis: int = 1) -> onnx.ModelProto:
    nodes = SOFTMAX.format(k=keep, ax="a", bx="b", m="m" if keep else "mm") + last
    if not keep:
        nodes = nodes.replace(" d = Sub", " mm = Unsqueeze(m, a) d = Sub") + " ss = Unsqueeze(s, b) y = Div(e, ss)"
    return made("(float[n, 4, k] x) => (float[n, 4, k] y)", nodes, a=np.array([max_axis]), b=np.array([sum_axis]))


@pytest.mark.parametrize("keep", [0, 1])
def test_softmax(keep: int, tmp_path: Path) -> None:
    model = softmax("y = Div(e, s)" if keep else "", keep)
    assert "return F.softmax(x, dim=1)" in code_of(model, tmp_path)
    x = normal(2, 4, 3)
    x[0, 1:3, 0] = -np.inf
    check(model, x, folder=tmp_path)


@pytest.mark.parametrize(
    "model",
    [
        softmax("y = Div(e, s)", max_axis=2),  # less the maximum of something else
        softmax("y = Div(e, s)", max_axis=2, sum_axis=1),
        softmax("z = Div(e, s) y = Add(z, e)"),  # the exponents are needed
    ],
)
def test_other_quotients_of_exponents_stay(model: onnx.ModelProto, tmp_path: Path) -> None:
    assert "softmax" not in code_of(model, tmp_path)
    check(model, normal(2, 4, 3), folder=tmp_path)


# Stacks


@pytest.mark.parametrize(("axis", "line"), [(0, "torch.stack([x, y])"), (2, "torch.stack([x, y], 2)")])
def test_tensors_that_get_a_dimension_each(axis: int, line: str, tmp_path: Path) -> None:
    nodes = f"a = Unsqueeze(x, at) b = Unsqueeze(y, at) z = Concat<axis = {axis}>(a, b)"
    model = made("(float[n, 4] x, float[n, 4] y) => (float[n, 4, k] z)", nodes, at=np.array([axis]))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert line in code_of(model, tmp_path)
    check(model, normal(3, 4), normal(3, 4, seed=1), folder=tmp_path)


def test_joined_along_another_dimension(tmp_path: Path) -> None:
    nodes = "a = Unsqueeze(x, at) b = Unsqueeze(y, at) z = Concat<axis = 2>(a, b)"
    model = made("(float[n, 4] x, float[n, 4] y) => (float[n, 1, k] z)", nodes, at=np.array([1]))
    assert "stack" not in code_of(model, tmp_path)
    check(model, normal(3, 4), normal(3, 4, seed=1), folder=tmp_path)


# Heads of an attention, as torch.nn.MultiheadAttention makes them

TURNED = "r = Reshape(x, {rows}) t = Transpose<perm = [1, 0, 2]>(r) y = Reshape(t, {heads})"


def test_heads_beside_the_batch(tmp_path: Path) -> None:
    nodes = TURNED.format(rows="a", heads="b")
    model = made("(float[5, 2, 12] x) => (float[2, 3, 5, 4] y)", nodes, a=np.array([5, 6, 4]), b=np.array([2, 3, 5, 4]))
    assert "return x.unflatten(-1, (3, 4)).permute(1, 2, 0, 3)" in code_of(model, tmp_path)
    check(model, normal(5, 2, 12), folder=tmp_path)


BEHIND = "r = Reshape(x, a) t = Transpose<perm = [0, 2, 1]>(r) {last}"


@pytest.mark.parametrize("batch", ["2", "n"])
def test_what_is_turned_behind_the_heads_is_so_without_joining_them(batch: str, tmp_path: Path) -> None:
    nodes = BEHIND.format(last="h = Reshape(t, b) y = Relu(h)")
    signature = f"(float[{batch}, 3, 5, 4] x) => (float[{batch}, 3, 4, 5] y)"
    model = made(signature, nodes, a=np.array([-1, 5, 4]), b=np.array([-1, 3, 4, 5]))
    code = code_of(model, tmp_path)
    assert batch == "n" or "F.relu(x.transpose(2, 3))" in code
    check(model, normal(2, 3, 5, 4), folder=tmp_path)
    back = BEHIND.format(last="h = Reshape(t, b) i = Transpose<perm = [0, 1, 3, 2]>(h) y = Relu(i)")
    model = made(
        f"(float[{batch}, 3, 5, 4] x) => (float[{batch}, 3, 5, 4] y)",
        back,
        a=np.array([-1, 5, 4]),
        b=np.array([-1, 3, 4, 5]),
    )
    code = code_of(model, tmp_path)
    assert batch == "n" or "return F.relu(x)" in code
    check(model, normal(2, 3, 5, 4), folder=tmp_path)


@pytest.mark.parametrize(
    ("rows", "heads"),
    [
        ([5, 6, 4], [3, 2, 5, 4]),  # the batch is not in front
        ([10, 3, 4], [3, 2, 5, 4]),  # the rows were joined
        ([5, 4, 6], [2, 2, 5, 6]),
    ],
)
def test_other_reshapes_around_a_transpose(rows: list[int], heads: list[int], tmp_path: Path) -> None:
    shape = ", ".join(map(str, heads))
    model = made(
        f"(float[5, 2, 12] x) => (float[{shape}] y)",
        TURNED.format(rows="a", heads="b"),
        a=np.array(rows),
        b=np.array(heads),
    )
    code_of(model, tmp_path)
    check(model, normal(5, 2, 12), folder=tmp_path)


def test_a_dimension_moves_to_the_front(tmp_path: Path) -> None:
    nodes = "u = Reshape(x, a) t = Transpose<perm = [3, 1, 2, 0, 4]>(u) y = Squeeze(t, b)"
    model = made("(float[5, 2, 12] x) => (float[3, 5, 2, 4] y)", nodes, a=np.array([1, 5, 2, 3, 4]), b=np.array([3]))
    assert "return x.unflatten(-1, (3, 4)).permute(2, 0, 1, 3)" in code_of(model, tmp_path)
    check(model, normal(5, 2, 12), folder=tmp_path)


def test_heads_are_joined_for_a_layer(tmp_path: Path) -> None:
    nodes = "r = Reshape(x, a) s = Gemm(r, w, c) y = Reshape(s, b)"
    constants = {"a": np.array([10, 12]), "b": np.array([5, 2, 6]), "w": normal(12, 6), "c": normal(6)}
    model = made("(float[5, 2, 3, 4] x) => (float[5, 2, 6] y)", nodes, **constants)
    assert "(x.flatten(2))" in code_of(model, tmp_path)
    check(model, normal(5, 2, 3, 4), folder=tmp_path)


def test_rows_that_are_none_of_the_tensor(tmp_path: Path) -> None:
    nodes = "r = Reshape(x, a) s = Gemm(r, w, c) y = Reshape(s, b)"
    constants = {"a": np.array([10, 12]), "b": np.array([2, 5, 6]), "w": normal(12, 6), "c": normal(6)}
    model = made("(float[5, 2, 3, 4] x) => (float[2, 5, 6] y)", nodes, **constants)
    assert "x.flatten(2)" not in code_of(model, tmp_path)
    check(model, normal(5, 2, 3, 4), folder=tmp_path)


# Attention of windows, with a mask for each window that all images share

WINDOWS = """
    kt = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, kt) s = Mul(p, scale) a = Reshape(s, apart) b = Add(a, mask)
    c = Reshape(b, whole) w = Softmax<axis = -1>(c) y = MatMul(w, v)
"""


def windows(images: int, mask: np.ndarray) -> onnx.ModelProto:
    count, shape = images * 3, "2, 5, 4"
    signature = f"(float[{count}, {shape}] q, float[{count}, {shape}] k, float[{count}, {shape}] v) => (float[{count}, {shape}] y)"
    constants = {
        "scale": np.array(0.5, np.float32),
        "apart": np.array([images, 3, 2, 5, 5]),
        "whole": np.array([count, 2, 5, 5]),
        "mask": mask,
    }
    return made(signature, WINDOWS, **constants)


def test_attention_of_windows(tmp_path: Path) -> None:
    for images in (1, 2):
        model = windows(images, normal(1, 3, 1, 5, 5))
        assert "F.scaled_dot_product_attention(q, k, v, " in code_of(model, tmp_path)
        check(model, *(normal(images * 3, 2, 5, 4, seed=i) for i in range(3)), folder=tmp_path)


@pytest.mark.parametrize("shape", [(2, 1, 1, 5, 5), (2, 3, 1, 5, 5), (1, 3, 2, 1, 5)])
def test_other_masks_of_windows(shape: tuple[int, ...], tmp_path: Path) -> None:
    model = windows(2, normal(*shape))
    assert "scaled_dot_product_attention" not in code_of(model, tmp_path)
    check(model, *(normal(6, 2, 5, 4, seed=i) for i in range(3)), folder=tmp_path)


def test_a_mask_that_may_forbid_a_window_stays(tmp_path: Path) -> None:
    mask = normal(1, 3, 1, 5, 5)
    mask[0, 1, 0, 2] = -np.inf  # a row of NaN
    model = windows(2, mask)
    assert "scaled_dot_product_attention" not in code_of(model, tmp_path)
    check(model, *(normal(6, 2, 5, 4, seed=i) for i in range(3)))

"""ONNX through a .pt2 file and back: ONNX Runtime gives what it gave for the first model, and nodes are what they were."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import floats, make_model, runtime_run
from onnx import TensorProto, helper, numpy_helper

import tonnx

RNG = np.random.default_rng(3)


def there_and_back(model: onnx.ModelProto) -> onnx.ModelProto:
    tonnx.convert(model, "there.pt2")
    tonnx.convert("there.pt2", "back.onnx")
    back = onnx.load("back.onnx")
    onnx.checker.check_model(back, full_check=True)
    return back


def check(model: onnx.ModelProto, *runs: dict[str, np.ndarray], atol: float = 1e-5) -> onnx.ModelProto:
    """The model that comes back, once its values are those of the first for all these inputs."""
    back = there_and_back(model)
    assert runs
    for feeds in runs:
        for a, b in zip(runtime_run(back, feeds), runtime_run(model, feeds), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=atol)
    return back


def ops(graph: onnx.GraphProto) -> Counter[str]:
    """How often each operator is there, those of graphs inside nodes included."""
    found = Counter(node.op_type for node in graph.node if node.op_type != "Constant")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += ops(attribute.g)
    return found


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def ints(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


@pytest.mark.parametrize(("axes", "sizes"), [((1,), [(5, 1), (3, 1)]), ((0, 1), [(1, 1)])])
def test_squeeze_of_open_sizes(axes: tuple[int, ...], sizes: list[tuple[int, int]]) -> None:
    nodes = [helper.make_node("Squeeze", ["x", "axes"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    result = floats("y", *[None] * (3 - len(axes)))
    model = make_model(nodes, [floats("x", "a", "b", 12)], [result], [ints("axes", *axes)])
    check(model, *({"x": array(*size, 12)} for size in sizes))


def test_squeeze_without_axes_leaves_open_sizes() -> None:
    nodes = [helper.make_node("Squeeze", ["x"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=-1)]
    model = make_model(nodes, [floats("x", "a", 1, 12)], [floats("y", "a", 12)])
    check(model, {"x": array(5, 1, 12)}, {"x": array(3, 1, 12)})


def squeeze_where_one(x: str, axis: int, y: str) -> list[onnx.NodeProto]:
    """`x.squeeze(axis)` as exporters write it for a size that they do not know."""
    squeeze = [helper.make_node("Squeeze", [x, "axis"], [f"{y}.then"])]
    same = [helper.make_node("Identity", [x], [f"{y}.else"])]

    def branch(nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        name = nodes[0].output[0]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])

    return [
        helper.make_node("Shape", [x], [f"{y}.shape"], start=axis, end=axis + 1),
        helper.make_node("Equal", [f"{y}.shape", "one"], [f"{y}.is_one"]),
        helper.make_node("If", [f"{y}.is_one"], [y], then_branch=branch(squeeze), else_branch=branch(same)),
    ]


def test_squeeze_in_a_branch() -> None:
    nodes = [
        *squeeze_where_one("x", 2, "s"),
        helper.make_node("Shape", ["s"], ["shape"]),
        helper.make_node("Size", ["shape"], ["rank"]),
        helper.make_node("Equal", ["rank", "two"], ["is_flat"]),
        helper.make_node(
            "If",
            ["is_flat"],
            ["t"],
            then_branch=helper.make_graph(
                [helper.make_node("Unsqueeze", ["s", "zero"], ["t.then"])],
                "then",
                [],
                [helper.make_tensor_value_info("t.then", TensorProto.FLOAT, None)],
            ),
            else_branch=helper.make_graph(
                [helper.make_node("Identity", ["s"], ["t.else"])],
                "else",
                [],
                [helper.make_tensor_value_info("t.else", TensorProto.FLOAT, None)],
            ),
        ),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
    ]
    w = numpy_helper.from_array(array(8, 3), "w")
    two = numpy_helper.from_array(np.int64(2), "two")
    constants = [w, two, ints("axis", 2), ints("one", 1), ints("zero", 0)]
    model = make_model(nodes, [floats("x", "batch", 8, "k")], [floats("y", 1, "batch", 3)], constants)
    back = check(model, {"x": array(5, 8, 1)})
    assert "If" not in ops(back.graph)


def test_branches_of_different_ranks() -> None:
    def branch(op: str, *inputs: str, **attributes: Any) -> onnx.GraphProto:
        node = helper.make_node(op, ["x", *inputs], [op], **attributes)
        return helper.make_graph([node], op, [], [helper.make_tensor_value_info(op, TensorProto.FLOAT, None)])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["u"], then_branch=branch("Flatten"), else_branch=branch("Neg")),
        helper.make_node("Mul", ["u", "u"], ["y"]),
    ]
    zero = numpy_helper.from_array(np.float32(0), "zero")
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = make_model(nodes, [floats("x", 2, 3, 4)], [out], [zero])
    x = np.abs(array(2, 3, 4))
    check(model, {"x": x}, {"x": -x})


def collecting_loop() -> onnx.ModelProto:
    """A Loop that stacks what it computes in each turn; how many turns, and how wide, the run tells."""
    body = helper.make_graph(
        [helper.make_node("Mul", ["a", "half"], ["a_next"]), helper.make_node("Add", ["a_next", "bias"], ["row"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            floats("a", "batch", 4),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            floats("a_next", "batch", 4),
            floats("row", "batch", 4),
        ],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["last", "rows"], body=body)]
    n = helper.make_tensor_value_info("n", TensorProto.INT64, [])
    constants = [
        numpy_helper.from_array(np.float32(0.5), "half"),
        numpy_helper.from_array(np.arange(4, dtype=np.float32), "bias"),
    ]
    outputs = [floats("last", "batch", 4), floats("rows", "turns", "batch", 4)]
    return make_model(nodes, [n, floats("x", "batch", 4)], outputs, constants)


def test_a_loop_stacks_its_rows() -> None:
    model = collecting_loop()
    back = check(model, *({"n": np.array(turns), "x": array(3, 4)} for turns in (1, 5)))
    (loop,) = [node for node in back.graph.node if node.op_type == "Loop"]
    body = loop.attribute[0].g
    assert "Concat" not in ops(body)  # ONNX Runtime dies of one with an empty list
    assert len(body.output) > len(body.input) - 1  # there are rows besides what is carried


def test_padding_that_follows_from_an_open_size() -> None:
    """Half of it, rounded down: what is divided is negative at some sizes (case 31000039)."""
    pool = helper.make_node("AveragePool", ["x"], ["y"], auto_pad="SAME_LOWER", kernel_shape=[4, 4], strides=[3, 1])
    model = make_model([pool], [floats("x", 1, 2, "height", 5)], [floats("y", 1, 2, None, None)], opset=19)
    check(model, *({"x": array(1, 2, height, 5)} for height in (4, 5, 6, 7)))


@pytest.mark.parametrize("start", [-3, -1, 0, 2, 7])
@pytest.mark.parametrize("end", [-2, 3])
def test_slice_from_where_the_run_says(start: int, end: int) -> None:
    """Case 31000148: a number out of a tensor may count from the end, as no size does."""
    nodes = [
        helper.make_node("Slice", ["x", "start", "end", "axis"], ["part"]),
        helper.make_node("Relu", ["part"], ["y"]),
    ]
    given = helper.make_tensor_value_info("start", TensorProto.INT64, [1])
    constants = [ints("end", end), ints("axis", 1)]
    model = make_model(nodes, [floats("x", 0, 5), given], [floats("y", 0, None)], constants)
    check(model, {"x": array(0, 5), "start": np.array([start])})  # what has no elements is made by its shape alone


REDUCTIONS = ["Sum", "Mean", "Prod", "Max", "Min", "SumSquare", "L1", "L2", "LogSum", "LogSumExp"]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_axes_that_the_run_says(op: str, keepdims: int) -> None:
    """Cases 31000138, 37000172 and 38000213: PyTorch runs such programs, though it exports none."""
    given = helper.make_tensor_value_info("axes", TensorProto.INT64, [2])
    node = helper.make_node(f"Reduce{op}", ["x", "axes"], ["y"], keepdims=keepdims)
    model = make_model([node], [floats("x", 2, 3, 4), given], [floats("y", *[None] * (1 + 2 * keepdims))])
    x = RNG.uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
    runs = [{"x": x, "axes": np.array(axes)} for axes in ((0, -1), (1, 2), (1, 0))]
    check(model, *runs)
    program = torch.export.load("there.pt2").module()
    for feeds in runs:
        got = program(*(torch.from_numpy(feeds[name]) for name in ("x", "axes")))
        np.testing.assert_allclose(got.numpy(), runtime_run(model, feeds)[0], rtol=1e-4)


@pytest.mark.parametrize("size", [1, 4])
def test_squeeze_of_nothing_of_an_open_size(size: int) -> None:
    """Case 31000340: which axes go away does not follow from the type that PyTorch gives the result."""
    model = make_model([helper.make_node("Squeeze", ["x"], ["y"])], [floats("x", 0, 1, "n")], [floats("y")])
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.zeros((0, 1, size), np.float32)
    (got,) = runtime_run(there_and_back(model), {"x": x})
    assert got.shape == runtime_run(model, {"x": x})[0].shape


def test_window_whose_length_the_run_says() -> None:
    """Case 31000096: a script computes the length, and what reads it says that there is no number."""
    given = helper.make_tensor_value_info("size", TensorProto.INT64, [])
    model = make_model([helper.make_node("HannWindow", ["size"], ["y"])], [given], [floats("y", None)], opset=17)
    tonnx.convert(model, "there.pt")
    got = torch.jit.load("there.pt")(torch.tensor(7))
    np.testing.assert_allclose(got.numpy(), runtime_run(model, {"size": np.array(7)})[0], atol=1e-6)
    with pytest.raises(tonnx.Error, match="'window_length' of hann_window follows from"):
        tonnx.convert("there.pt", "back.onnx", input_types={"0": "int64"}, input_shapes={"0": []})


def script_and_back(model: onnx.ModelProto, *feeds: np.ndarray) -> None:
    """Through a .pt file, where the sizes of floats are open, and back."""
    tonnx.convert(model, "there.pt")
    shapes = {str(i): [-1] * x.ndim if x.dtype.kind == "f" else list(x.shape) for i, x in enumerate(feeds)}
    tonnx.convert(
        "there.pt", "back.onnx", input_shapes=shapes, input_types={str(i): x.dtype.name for i, x in enumerate(feeds)}
    )
    names = [i.name for i in model.graph.input]
    want = runtime_run(model, dict(zip(names, feeds, strict=True)))[0]
    back = onnx.load("back.onnx")
    got = runtime_run(back, dict(zip((i.name for i in back.graph.input), feeds, strict=True)))[0]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(("part", "whole"), [(1, 5), (5, 1), (3, 3)])
def test_sum_with_a_size_that_the_run_says(part: int, whole: int) -> None:
    """Case 37000016: which of the two is the 1 that is repeated, nobody knows beforehand."""
    nodes = [
        helper.make_node("Slice", ["x", "zero", "end", "one"], ["slice"]),
        helper.make_node("Add", ["slice", "z"], ["sum"]),
        helper.make_node("Shape", ["sum"], ["y"]),
    ]
    given = helper.make_tensor_value_info("end", TensorProto.INT64, [1])
    result = helper.make_tensor_value_info("y", TensorProto.INT64, [2])
    model = make_model(
        nodes, [floats("x", 2, "n"), given, floats("z", 2, "m")], [result], [ints("zero", 0), ints("one", 1)]
    )
    script_and_back(model, array(2, 6), np.array([part]), array(2, whole))


def test_reshape_to_what_the_run_says() -> None:
    """Case 35000070: a size that is read out of a tensor may be -1."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["s"]), helper.make_node("Shape", ["s"], ["y"])]
    given = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    result = helper.make_tensor_value_info("y", TensorProto.INT64, [2])
    model = make_model(nodes, [floats("x", "n", 4), given], [result])
    for sizes in ([-1, 3], [8, 3], [2, -1]):
        script_and_back(model, array(6, 4), np.array(sizes))
    model = make_model(nodes, [floats("x", 6, 4), given], [result])
    check(model, *({"x": array(6, 4), "shape": np.array(sizes)} for sizes in ([-1, 3], [8, 3], [2, -1])))


def test_range_down_to_what_the_run_says() -> None:
    """Case 31000156: the count is by a number that may be negative, and no size."""
    nodes = [helper.make_node("Range", ["zero", "end", "step"], ["r"]), helper.make_node("Shape", ["r"], ["y"])]
    given = helper.make_tensor_value_info("end", TensorProto.INT64, [])
    result = helper.make_tensor_value_info("y", TensorProto.INT64, [1])
    constants = [numpy_helper.from_array(np.array(n), name) for name, n in (("zero", 0), ("step", -1))]
    model = make_model(nodes, [given], [result], constants)
    check(model, *({"end": np.array(end)} for end in (-4, 0, 3)))
    script_and_back(model, np.array(-4))


def test_windows_over_what_the_run_pads() -> None:
    """Case 69000156: how many windows there are follows from a size that no other tensor has."""
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["p"], mode="edge"),
        helper.make_node("LpPool", ["p"], ["y"], kernel_shape=[3, 1], dilations=[2, 1], strides=[2, 1], p=2),
    ]
    pads = helper.make_tensor_value_info("pads", TensorProto.INT64, [8])
    model = make_model(nodes, [floats("x", 2, "n", 3, 2), pads], [floats("y", None, None, None, None)])
    check(
        model,
        *(
            {"x": array(2, n, 3, 2), "pads": np.array([0, 0, 2, 1, 0, 1, behind, 0])}
            for n, behind in ((2, 0), (3, 4), (1, 1))
        ),
    )

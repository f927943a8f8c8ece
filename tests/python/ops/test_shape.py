"""Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Expand, Tile, Shape, Size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from checks import check, one_node, parsed, source
from models import runtime_run

import tonnx

X = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
ALL_TYPES = [
    "float16",
    "float64",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "complex64",
]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def three_ways(op: str, x: np.ndarray, data: str, name: str, values: np.ndarray, opset: int, **options) -> None:
    """The list constant, given at run time, and over sizes that are open."""
    check(op, {data: x, name: values}, opset, (name,), **options)
    check(op, {data: x, name: values}, opset, (name,), dynamic=(data,), **options)
    check(op, {data: x, name: values}, opset, **options)
    check(op, {data: x, name: values}, opset, dynamic=(data,), **options)


@pytest.mark.parametrize(
    "shape", [(6, 4), (-1,), (0, -1), (0, 0, 2, 2), (4, 0, -1), (2, 3, 4), (2, -1, 2), (1, 24, 1)], ids=str
)
@pytest.mark.parametrize("opset", [5, 13, 21])
def test_reshape(shape: tuple[int, ...], opset: int) -> None:
    three_ways("Reshape", X, "data", "shape", ints(*shape), opset)


def test_reshape_of_nothing() -> None:
    empty = np.zeros((0, 3), np.float32)
    three_ways("Reshape", empty, "data", "shape", ints(3, 0), 14, allowzero=1)
    three_ways("Reshape", empty, "data", "shape", ints(0, 3, 1), 14)
    three_ways("Reshape", np.array(5, np.float32), "data", "shape", ints(1, 1), 14)
    three_ways("Reshape", np.array([5], np.float32), "data", "shape", ints(), 14)


def test_reshape_of_opset_1() -> None:
    check("Reshape", {"data": X}, 1, values=[X.reshape(6, 4)], shape=[-1, 4], consumed_inputs=[0])


@pytest.mark.parametrize("dtype", ALL_TYPES)
def test_types(dtype: str) -> None:
    x = np.array([[3, 0, 1], [2, 1, 7]]).astype(dtype)
    check("Reshape", {"data": x, "shape": ints(3, 2)}, 13, ("shape",), reference=True)
    check("Transpose", {"data": x}, 13, reference=True)
    check("Expand", {"input": x, "shape": ints(2, 1, 1)}, 13, ("shape",), reference=True)
    check("Tile", {"input": x, "repeats": ints(1, 2)}, 13, ("repeats",), reference=True)
    check("Unsqueeze", {"data": x, "axes": ints(0)}, 13, ("axes",), reference=True)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3, -1, -3])
@pytest.mark.parametrize("opset", [1, 9, 11, 13])
def test_flatten(axis: int | None, opset: int) -> None:
    options = {} if axis is None else {"axis": axis}
    if axis is not None and axis < 0 and opset < 11:
        pytest.skip("axes count from the front only")
    at = 1 if axis is None else axis
    for x in (X, X[:0]):
        want = [x.reshape(int(np.prod(x.shape[:at])), int(np.prod(x.shape[at:])))]
        for dynamic in (False, True):
            check("Flatten", {"input": x}, opset, values=want, dynamic=dynamic, **options)


@pytest.mark.parametrize("axes", [None, (0,), (-2,), (0, 2), (2, 0)], ids=str)
@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze(axes: tuple[int, ...] | None, opset: int) -> None:
    x = X.reshape(1, 6, 1, 4)
    if axes is None or opset < 13:
        options = {} if axes is None else {"axes": axes}
        for dynamic in (False, True):
            check("Squeeze", {"data": x}, opset, dynamic=dynamic, **options)
    else:
        three_ways("Squeeze", x, "data", "axes", ints(*axes), opset)


@pytest.mark.parametrize("axes", [(0,), (-1,), (1, 3), (3, 1), (-1, 0)], ids=str)
@pytest.mark.parametrize("opset", [11, 13])
def test_unsqueeze(axes: tuple[int, ...], opset: int) -> None:
    if opset < 13:
        check("Unsqueeze", {"data": X}, opset, axes=axes)
        check("Unsqueeze", {"data": X}, opset, dynamic=True, axes=axes)
    else:
        three_ways("Unsqueeze", X, "data", "axes", ints(*axes), opset)


@pytest.mark.parametrize("perm", [None, (0, 1, 2), (0, 2, 1), (2, 0, 1), (2, 1, 0)], ids=str)
@pytest.mark.parametrize("opset", [1, 13])
def test_transpose(perm: tuple[int, ...] | None, opset: int) -> None:
    options = {} if perm is None else {"perm": perm}
    for dynamic in (False, True):
        check("Transpose", {"data": X}, opset, dynamic=dynamic, **options)


@pytest.mark.parametrize("shape", [(2, 3, 4), (1,), (4,), (5, 1, 1, 1), (1, 3, 1), (5, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("opset", [8, 13])
def test_expand(shape: tuple[int, ...], opset: int) -> None:
    three_ways("Expand", X, "input", "shape", ints(*shape), opset)
    three_ways("Expand", X[:, :1], "input", "shape", ints(*shape), opset)
    three_ways("Expand", np.array(3, np.float32), "input", "shape", ints(*shape), opset)


def test_expand_to_nothing() -> None:
    three_ways("Expand", X[:, :1, 0], "input", "shape", ints(2, 0), 13)


@pytest.mark.parametrize("repeats", [(1, 1, 1), (2, 1, 3), (0, 1, 1)], ids=str)
@pytest.mark.parametrize("opset", [6, 13])
def test_tile(repeats: tuple[int, ...], opset: int) -> None:
    three_ways("Tile", X, "input", "repeats", ints(*repeats), opset)


def test_tile_of_opset_1() -> None:
    feeds = {"input": X, "tiles": np.array([3], np.float32), "axis": np.array([1], np.float32)}
    check("Tile", feeds, 1, ("tiles", "axis"), values=[np.tile(X, (1, 3, 1))])


@pytest.mark.parametrize(
    "options", [{}, {"start": 1}, {"end": -1}, {"start": -2, "end": 9}, {"start": 2, "end": 1}], ids=str
)
def test_shape(options: dict[str, int]) -> None:
    for dynamic in (False, True):
        check("Shape", {"data": X}, 15, dynamic=dynamic, **options)
        check("Shape", {"data": X}, 1, values=[ints(2, 3, 4)], dynamic=dynamic)


@pytest.mark.parametrize("opset", [1, 13, 21])
def test_size(opset: int) -> None:
    for dynamic in (False, True):
        check("Size", {"data": X}, opset, dynamic=dynamic)
        check("Size", {"data": X[:0]}, opset, dynamic=dynamic)


def test_rank_that_is_not_known() -> None:
    for op, inputs, options in [
        ("Shape", {}, {}),
        ("Shape", {}, {"start": 1, "end": -1}),
        ("Size", {}, {}),
        ("Reshape", {"b": ints(0, -1)}, {}),
        ("Expand", {"b": ints(5, 1, 1, 1)}, {}),
        ("Unsqueeze", {"b": ints(0)}, {}),
        ("Squeeze", {"b": ints(0)}, {}),
        ("Flatten", {}, {}),
        ("Transpose", {}, {"perm": [2, 0, 1]}),
    ]:
        x = X[:1]
        model = one_node(op, {"a": x, **inputs}, 18, tuple(inputs), **options)
        model.graph.input[0].type.tensor_type.ClearField("shape")
        want = onnx.reference.ReferenceEvaluator(model).run(None, {"a": x})[0]
        got = tonnx.convert(model)(torch.from_numpy(x.copy()))
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize(
    ("op", "inputs", "options", "text"),
    [
        ("Reshape", {"b": ints(0, -1)}, {}, "return a.flatten(1)"),
        ("Reshape", {"b": ints(0, 0, 0)}, {}, "return a\n"),
        ("Reshape", {"b": ints(0, 2, -1)}, {}, "return a.reshape(a.size(0), 2, -1)"),
        ("Transpose", {}, {"perm": [0, 2, 1]}, "return a.transpose(1, 2)"),
        ("Expand", {"b": ints(5, 1, 1, 1)}, {}, "return a.expand(5, -1, -1, -1)"),
        ("Unsqueeze", {"b": ints(1)}, {}, "return a.unsqueeze(1)"),
        ("Tile", {"b": ints(1, 2, 1)}, {}, "return a.repeat(1, 2, 1)"),
    ],
    ids=str,
)
def test_reads_well(op: str, inputs: dict[str, np.ndarray], options: dict[str, list[int]], text: str) -> None:
    assert text in source(op, {"a": X, **inputs}, 18, tuple(inputs), dynamic=True, **options) + "\n"


@pytest.mark.parametrize(
    ("op", "inputs", "options"),
    [
        ("Reshape", {"b": ints(5, -1)}, {}),
        ("Reshape", {"b": ints(-1, -1)}, {}),
        ("Reshape", {"b": ints(-2, 4)}, {}),
        ("Reshape", {"b": ints(1, 1, 1, 0)}, {}),
        ("Flatten", {}, {"axis": 4}),
        ("Squeeze", {"b": ints(0)}, {}),
        ("Squeeze", {"b": ints(5)}, {}),
        ("Unsqueeze", {"b": ints(0, 0)}, {}),
        ("Transpose", {}, {"perm": [0, 0, 1]}),
        ("Transpose", {}, {"perm": [0, 1]}),
        ("Expand", {"b": ints(7)}, {}),
        ("Expand", {"b": ints(-3)}, {}),
        ("Tile", {"b": ints(1, 1)}, {}),
        ("Tile", {"b": ints(1, 1, -1)}, {}),
    ],
    ids=str,
)
def test_contradictions(op: str, inputs: dict[str, np.ndarray], options: dict[str, object]) -> None:
    with pytest.raises(tonnx.Error) as error:
        tonnx.convert(one_node(op, {"a": X, **inputs}, 18, tuple(inputs), **options))
    assert error.value.kind == "invalid_model"


# 67000059: there are no sizes of the input for all zeros of the shape
def test_reshape_of_an_unknown_rank_comes_back_from_a_script(tmp_path: Path) -> None:
    model = parsed(
        """
        g (float[3] a, int64[2] shape) => (float[p, q] y) <int64 zero = {0}> {
          both = SequenceConstruct(a, a)
          one = SequenceErase(both, zero)
          x = ConcatFromSequence <axis = 0>(one)
          y = Reshape(x, shape)
        }
        """
    )
    tonnx.convert(model, tmp_path / "m.pt")
    shapes = {"0": [3], "1": [2]}
    tonnx.convert(
        tmp_path / "m.pt", tmp_path / "back.onnx", input_shapes=shapes, input_types={"0": "float32", "1": "int64"}
    )
    session = onnxruntime.InferenceSession(str(tmp_path / "back.onnx"))
    names = [i.name for i in session.get_inputs()]
    a = np.array([1, 2, 3], np.float32)
    for sizes in ([3, 1], [1, 3], [0, 1], [-1, 3]):
        [got] = session.run(None, dict(zip(names, (a, np.array(sizes)), strict=True)))
        np.testing.assert_array_equal(got, runtime_run(model, {"a": a, "shape": np.array(sizes)})[0])

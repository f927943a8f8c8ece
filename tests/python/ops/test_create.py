"""Constant in all its forms, ConstantOfShape, Range, EyeLike and Trilu."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from checks import check, one_node, source
from onnx import TensorProto, helper, numpy_helper

import tonnx

X = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)
TYPES = ["float16", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def sparse() -> onnx.SparseTensorProto:
    values = helper.make_tensor("values", TensorProto.FLOAT, [2], [1.5, 2.5])
    return helper.make_sparse_tensor(values, helper.make_tensor("at", TensorProto.INT64, [2], [1, 4]), [2, 3])


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"value": numpy_helper.from_array(X)}, X),
        ({"value_int": 7}, np.array(7, np.int64)),
        ({"value_ints": [3, -1]}, ints(3, -1)),
        ({"value_float": 0.5}, np.array(0.5, np.float32)),
        ({"value_floats": [0.5, 2]}, np.array([0.5, 2], np.float32)),
        ({"sparse_value": sparse()}, np.array([[0, 1.5, 0], [0, 2.5, 0]], np.float32)),
    ],
    ids=lambda value: str(value)[:20],
)
def test_constant(options: dict[str, object], want: np.ndarray) -> None:
    check("Constant", {}, 13, values=[want], **options)
    if "value" in options:
        check("Constant", {}, 1, values=[want], **options)


@pytest.mark.parametrize("options", [{"value_string": "a"}, {"value_strings": ["a", "b"]}], ids=str)
def test_strings_are_not_supported(options: dict[str, object]) -> None:
    with pytest.raises(tonnx.Error, match="PyTorch has no tensors of strings"):
        tonnx.convert(one_node("Constant", {}, 13, **options))


@pytest.mark.parametrize("shape", [(2, 3), (0,), ()], ids=str)
@pytest.mark.parametrize("value", [None, 0, 1, 7])
@pytest.mark.parametrize("opset", [9, 20])
def test_constant_of_shape(shape: tuple[int, ...], value: int | None, opset: int) -> None:
    for dtype in ["float32"] if value is None else ["float32", *TYPES]:
        fill = np.array([value or 0]).astype(dtype)
        options = {} if value is None else {"value": numpy_helper.from_array(fill)}
        for constant in (("input",), ()):
            feeds = {"input": ints(*shape)}
            check("ConstantOfShape", feeds, opset, constant, values=[np.full(shape, fill[0])], **options)


def test_weights_of_known_shape_are_constants() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 2, 8] x) => (float[n, 4, 6] y) <int64[3] s = {4, 2, 3}> { w = ConstantOfShape(s) y = Conv(x, w) }"""
    module = tonnx.convert(onnx.parser.parse_model(text))
    assert [type(child) for child in module.children()] == [torch.nn.Conv1d]


@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 5, 1), (1, 9, 3), (10, 4, -2), (5, 1, 1), (2, 2, 1)])
@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
def test_range(start: int, limit: int, delta: int, dtype: str) -> None:
    feeds = {"start": np.array(start, dtype), "limit": np.array(limit, dtype), "delta": np.array(delta, dtype)}
    for constant in (tuple(feeds), ("start", "delta"), ("delta",), ()):
        check("Range", feeds, 11, constant)


def test_range_of_half() -> None:
    feeds = {name: np.array(value, np.float16) for name, value in [("a", 1), ("b", 3), ("c", 0.25)]}
    for constant in (tuple(feeds), ()):
        check("Range", feeds, 27, constant, values=[np.arange(1, 3, 0.25).astype(np.float16)])


def test_range_over_sizes() -> None:
    assert source("Range", {"a": ints(0)[0], "b": ints(5)[0], "c": ints(1)[0]}, 11, ("a", "c")).endswith(
        "torch.arange(b.item(), device=b.device)"
    )


@pytest.mark.parametrize("k", [None, 1, -2, 9])
@pytest.mark.parametrize("dtype", [None, *TYPES])
@pytest.mark.parametrize("opset", [9, 22])
def test_eye_like(k: int | None, dtype: str | None, opset: int) -> None:
    options = {} if k is None else {"k": k}
    if dtype is not None:
        options["dtype"] = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    want = np.eye(3, 4, k or 0).astype(dtype or "float32")
    for dynamic in (False, True):
        check("EyeLike", {"input": X}, opset, values=[want], dynamic=dynamic, **options)


@pytest.mark.parametrize("upper", [None, 0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -1, 9])
def test_trilu(upper: int | None, k: int | None) -> None:
    options = {} if upper is None else {"upper": upper}
    for dtype in ["float32", *TYPES]:
        x = np.array([[[3, 1, 1], [2, 1, 7]], [[1, 2, 3], [4, 5, 6]]]).astype(dtype)
        feeds = {"input": x} | ({} if k is None else {"k": np.array(k, np.int64)})
        want = [(np.tril if upper == 0 else np.triu)(x, k or 0)]
        check("Trilu", feeds, 14, ("k",) if k is not None else (), values=want, **options)
        check("Trilu", feeds, 14, values=want, dynamic=True, **options)


@pytest.mark.parametrize(
    ("op", "feeds", "options"),
    [
        ("Constant", {}, {}),
        ("Constant", {}, {"value_int": 1, "value_float": 1.0}),
        ("ConstantOfShape", {"a": ints(-1)}, {}),
        ("ConstantOfShape", {"a": ints(2)}, {"value": numpy_helper.from_array(ints(1, 2))}),
        ("Range", {"a": ints(0)[0], "b": ints(5)[0], "c": ints(0)[0]}, {}),
        ("EyeLike", {"x": np.zeros(3, np.float32)}, {}),
        ("EyeLike", {"x": X}, {"dtype": 99}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_contradictions(op: str, feeds: dict[str, np.ndarray], options: dict[str, object]) -> None:
    with pytest.raises(tonnx.Error) as error:
        tonnx.convert(one_node(op, feeds, 18, tuple(name for name in feeds if name != "x"), **options))
    assert error.value.kind == "invalid_model"


def test_no_memory_for_the_asking() -> None:
    module = tonnx.convert(one_node("ConstantOfShape", {"a": ints(1 << 40, 1 << 10)}, 13, ("a",)))
    assert not list(module.buffers())

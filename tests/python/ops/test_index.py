"""Gather and its kin, NonZero and OneHot: constant and run-time indices from both ends, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, one_node, source

import tonnx

X = np.random.default_rng(6).standard_normal((3, 4, 5)).astype(np.float32)
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


@pytest.mark.parametrize("opset", [1, 11, 13])
@pytest.mark.parametrize("axis", [None, 1, -1])
@pytest.mark.parametrize(
    "indices", [2, [1], [0, 2], [1, 2], [[0, 1], [2, 0]], -1, [-1, 0], [-2], [[-1, 0]], np.zeros(0), [0, 1, 2]], ids=str
)
def test_gather(indices, axis: int | None, opset: int) -> None:
    options = {} if axis is None else {"axis": axis}
    indices = np.array(indices, np.int64)
    for constant in (("indices",), ()):
        for dynamic in ((), ("data",), ("data", "indices")):
            check("Gather", {"data": X, "indices": indices}, opset, constant, dynamic=dynamic, **options)
    check("Gather", {"data": X, "indices": indices.astype(np.int32)}, opset, **options)


@pytest.mark.parametrize("dtype", ALL_TYPES)
def test_gather_types(dtype: str) -> None:
    x = np.array([[3, 0, 1], [2, 1, 7]]).astype(dtype)
    for indices in (np.array(1), np.array([1, 0, 1]), np.array([[-1, 0]])):
        for constant in (("indices",), ()):
            check("Gather", {"data": x, "indices": indices}, 13, constant, reference=True)


def test_embedding() -> None:
    weight = np.random.default_rng(7).standard_normal((10, 4)).astype(np.float32)
    indices = np.array([[1, 2, 9], [0, 0, 4]])
    module = check("Gather", {"data": weight, "indices": indices}, 13, ("data",), dynamic=True)
    assert [type(child) for child in module.children()] == [torch.nn.Embedding]
    check("Gather", {"data": weight, "indices": np.array([-1, 2])}, 13, ("data", "indices"))


@pytest.mark.parametrize(
    ("indices", "text"),
    [(2, "return data[:, 2]"), ([1, 2], "return data[:, 1:3]"), ([3], "return data[:, 3:4]")],
    ids=str,
)
def test_gather_reads_well(indices, text: str) -> None:
    assert text in source("Gather", {"data": X, "indices": np.array(indices)}, 13, ("indices",), axis=1)


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [None, 1, -2])
def test_gather_elements(axis: int | None, opset: int) -> None:
    options = {} if axis is None else {"axis": axis}
    x = X[:, :, 0]
    for indices in ([[0, 1], [2, 0]], [[-1, 0, 1]], np.zeros((0, 2))):
        indices = np.array(indices, np.int64)
        for constant in (("indices",), ()):
            check("GatherElements", {"data": x, "indices": indices}, opset, constant, **options)
        check("GatherElements", {"data": x, "indices": indices.astype(np.int32)}, opset, dynamic=True, **options)


@pytest.mark.parametrize("dtype", ALL_TYPES)
def test_gather_elements_types(dtype: str) -> None:
    x = np.array([[3, 0, 1], [2, 1, 7]]).astype(dtype)
    check("GatherElements", {"data": x, "indices": np.array([[0, -1], [2, 1]])}, 13, axis=1, reference=True)


@pytest.mark.parametrize(
    ("indices", "batch_dims"),
    [([[0, 1], [2, -1]], 0), ([[1]], 0), ([[[0, 1, 2]], [[2, 3, 4]]], 0), ([1, 2], 0), ([[1], [0], [3]], 1),
     ([[[1], [0]], [[2], [2]], [[-1], [0]]], 1), ([[[1], [0], [2], [3]]] * 3, 2), ([[1, 2], [0, 1], [3, 4]], 1)],
    ids=str,
)  # fmt: skip
def test_gather_nd(indices, batch_dims: int) -> None:
    inputs = {"data": X, "indices": np.array(indices)}
    if batch_dims == 0:
        check("GatherND", inputs, 11)
    for constant in (("indices",), ()):
        for dynamic in ((), ("data",)):
            check("GatherND", inputs, 13, constant, dynamic=dynamic, batch_dims=batch_dims)


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "uint8", "uint16", "uint64"])
def test_non_zero(dtype: str, opset: int) -> None:
    x = np.array([[3, 0, 1], [0, 0, 7]]).astype(dtype)
    check("NonZero", {"X": x}, opset, values=[np.array(np.nonzero(x))])
    check("NonZero", {"X": x[:, :0]}, opset, values=[np.zeros((2, 0), np.int64)], dynamic=True)


@pytest.mark.parametrize("opset", [9, 11])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -2])
@pytest.mark.parametrize("values", [[0, 1], [2, 5]], ids=str)
def test_one_hot(values: list[float], axis: int | None, opset: int) -> None:
    options = {} if axis is None else {"axis": axis}
    indices = np.array([[1, 3, 0], [2, 7, 1]]) - (opset >= 11)
    inputs = {"indices": indices, "depth": np.array([4]), "values": np.array(values, np.float32)}
    for constant in (("depth", "values"), ("indices", "depth", "values"), ("values",), ()):
        for dynamic in ((), ("indices",)):
            check("OneHot", inputs, opset, constant, dynamic=dynamic, **options)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "uint8", "uint16", "uint32"])
def test_one_hot_index_types(dtype: str) -> None:
    inputs = {"indices": np.array([0, 2], dtype), "depth": np.array(3, "int32"), "values": np.array([0, 1], np.int32)}
    want = np.eye(3, dtype=np.int32)[[0, 2]]
    check("OneHot", inputs, 11, ("depth", "values"), values=[want])
    inputs["depth"] = np.array(3, np.float32)
    check("OneHot", inputs, 11, ("depth", "values"), values=[want])
    check("OneHot", inputs, 11, dynamic=True, values=[want])


@pytest.mark.parametrize("dtype", ["bool", "float16", "int64", "uint8", "uint16", "uint64"])
def test_one_hot_value_types(dtype: str) -> None:
    for values in ([0, 1], [1, 0]):
        inputs = {"indices": np.array([0, 2]), "depth": np.array(3), "values": np.array(values, dtype)}
        check("OneHot", inputs, 11, ("depth", "values"), values=[np.array(values, dtype)[np.eye(3, dtype=int)[[0, 2]]]])


def test_gather_exports_with_an_index_that_varies() -> None:
    model = one_node("Gather", {"data": X, "indices": np.array(1)}, 13, dynamic=("data",), axis=1)
    module = tonnx.convert(model)
    dynamic = {0: torch.export.Dim.DYNAMIC}
    arguments = (torch.from_numpy(X), torch.tensor(1))
    program = torch.export.export(module, arguments, dynamic_shapes=(dynamic, None)).module()
    torch.testing.assert_close(program(torch.from_numpy(X), torch.tensor(2)), torch.from_numpy(X)[:, 2])


@pytest.mark.parametrize(
    ("op", "inputs", "options", "message"),
    [
        ("Gather", {"data": X, "indices": np.array([3])}, {}, "out of range"),
        ("Gather", {"data": X, "indices": np.array(-4)}, {}, "out of range"),
        ("Gather", {"data": X, "indices": np.array([0])}, {"axis": 3}, "out of range"),
        ("GatherND", {"data": X, "indices": np.zeros((1, 4), np.int64)}, {}, "do not fit"),
        ("GatherND", {"data": X, "indices": np.zeros((1, 1), np.int64)}, {"batch_dims": -1}, "do not fit"),
        ("GatherND", {"data": X, "indices": np.zeros((1, 0), np.int64)}, {}, "is 0"),
        ("OneHot", {"indices": np.array([0]), "depth": np.array(-2), "values": np.zeros(2, np.float32)}, {}, "depth"),
    ],
)
def test_refuses(op: str, inputs: dict, options: dict, message: str) -> None:
    constant = tuple(name for name in inputs if name != "data")
    with pytest.raises(tonnx.Error, match=message):
        tonnx.convert(one_node(op, inputs, 13, constant, **options))

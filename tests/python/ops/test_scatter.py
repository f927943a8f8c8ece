"""ScatterElements, ScatterND and TensorScatter: every reduction and type, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, one_node

import tonnx

X = np.random.default_rng(8).standard_normal((3, 4, 5)).astype(np.float32)
INDICES = np.array([[0, 2, 1], [-1, 0, 3]])
UPDATES = np.random.default_rng(9).standard_normal((2, 3)).astype(np.float32)
REDUCTIONS = ["none", "add", "mul", "max", "min"]
TYPES = ["float16", "float64", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize(
    ("op", "opset"), [("Scatter", 9), ("Scatter", 10), ("ScatterElements", 11), ("ScatterElements", 13)]
)
def test_scatter_elements(op: str, opset: int) -> None:
    x = X[:, :, 0]
    indices = np.abs(INDICES)
    for constant in (("indices",), ()):
        check(op, {"data": x, "indices": indices % 3, "updates": UPDATES}, opset, constant)
        for dynamic in (False, True):
            check(op, {"data": x, "indices": indices, "updates": UPDATES}, opset, constant, axis=1, dynamic=dynamic)
    if opset >= 11:
        inputs = {"data": x, "indices": INDICES.astype(np.int32), "updates": UPDATES}
        check(op, inputs, opset, axis=-1)
        check(op, inputs, opset, ("indices",), axis=1)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("opset", [16, 18])
def test_scatter_elements_reduction(reduction: str, opset: int) -> None:
    if opset == 16 and reduction in ("max", "min"):
        pytest.skip("came with opset 18")
    indices = np.array([[1, 1, -1], [0, 2, 0]]) if reduction != "none" else INDICES
    check(
        "ScatterElements",
        {"data": X[:, :, 0], "indices": indices, "updates": UPDATES},
        opset,
        axis=1,
        reduction=reduction,
    )


ND = {
    "rows": np.array([[0], [2]]),
    "columns": np.array([[0, 1], [-1, -2]]),
    "elements": np.array([[0, 1, 2], [2, 3, -1], [0, 0, 0]]),
    "one": np.array([1, 2]),
    "grid": np.array([[[0, 1], [1, 2]], [[2, 3], [2, -4]]]),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("case", list(ND))
def test_scatter_nd(case: str, reduction: str) -> None:
    indices = ND[case]
    updates = (
        np.random.default_rng(10).standard_normal(indices.shape[:-1] + X.shape[indices.shape[-1] :]).astype(np.float32)
    )
    inputs = {"data": X, "indices": indices, "updates": updates}
    if reduction == "none":
        check("ScatterND", inputs, 11)
        check("ScatterND", inputs, 13)
    for constant in (("indices",), ()):
        for dynamic in ((), ("data",)):
            check("ScatterND", inputs, 18, constant, dynamic=dynamic, reduction=reduction)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_scatter_nd_duplicates(reduction: str) -> None:
    inputs = {"data": X, "indices": np.array([[1], [1], [-2]]), "updates": X[::-1].copy()}
    check("ScatterND", inputs, 18, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype: str, reduction: str) -> None:
    x, updates = np.arange(1, 7).reshape(2, 3).astype(dtype), np.array([[4, 2, 9]], dtype)
    elements = {"data": x, "indices": np.array([[1, 0, 1]]), "updates": updates}
    check("ScatterElements", elements, 18, reference=True, reduction=reduction)
    rows = {"data": x, "indices": np.array([[1]]), "updates": updates}
    check("ScatterND", rows, 18, reference=True, reduction=reduction)


@pytest.mark.parametrize("mode", [None, "circular"])
@pytest.mark.parametrize("axis", [None, 1, -1])
def test_tensor_scatter(axis: int | None, mode: str | None) -> None:
    options = {name: value for name, value in (("axis", axis), ("mode", mode)) if value is not None}
    dim = -2 if axis is None else axis
    cache = np.random.default_rng(11).standard_normal((2, 3, 4, 5)).astype(np.float32)
    update = np.take(cache, [0, 1], dim) + 1
    start = np.array([1, 2 if mode else 0])
    check(
        "TensorScatter", {"past_cache": cache, "update": update, "write_indices": start}, 24, reference=True, **options
    )
    check("TensorScatter", {"past_cache": cache, "update": update}, 24, reference=True, dynamic=True, **options)


def test_empty() -> None:
    none = np.zeros((0, 1), np.int64)
    for reduction in REDUCTIONS:
        inputs = {"data": X, "indices": none, "updates": np.zeros((0, 4, 5), np.float32)}
        check("ScatterND", inputs, 18, reduction=reduction, values=[X])


@pytest.mark.parametrize(
    ("op", "options", "message"),
    [
        ("ScatterND", {"reduction": "mean"}, "reduction"),
        ("ScatterElements", {"axis": 3}, "out of range"),
        ("ScatterElements", {"reduction": "mean"}, "reduction"),
    ],
)
def test_refuses(op: str, options: dict, message: str) -> None:
    inputs = {"data": X, "indices": np.zeros((1, 1, 1), np.int64), "updates": np.zeros((1, 1, 1), np.float32)}
    with pytest.raises(tonnx.Error, match=message):
        tonnx.convert(one_node(op, inputs, 18, **options))

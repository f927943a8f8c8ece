"""Comparisons, logic and Where, against ONNX Runtime and the reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, source

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, np.nan]], np.float32)
B = np.array([1.0, 5.0, 2.0], np.float32)
T, F = np.array([[True, True], [False, False]]), np.array([True, False])

ORDER = {"Less": 7, "Greater": 7, "LessOrEqual": 12, "GreaterOrEqual": 12}


@pytest.mark.parametrize("op", [*ORDER, "Equal"])
@pytest.mark.parametrize("constant", [(), ("a",), ("b",)])
@pytest.mark.parametrize("b", [B, np.float32(3)])
def test_compare(op: str, constant: tuple[str, ...], b: np.ndarray) -> None:
    for opset in (ORDER.get(op, 11), 16, 21):
        check(op, {"a": A, "b": np.asarray(b)}, opset, constant, reference=True)
        check(op, {"a": np.asarray(b), "b": A}, opset, constant, dynamic=True, reference=True)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("op", [*ORDER, "Equal"])
@pytest.mark.parametrize("constant", [(), ("b",)])
def test_compare_integers(op: str, dtype: type, constant: tuple[str, ...]) -> None:
    info = np.iinfo(dtype)
    a = np.array([info.min, 3, info.max], dtype)
    check(op, {"a": a, "b": np.array([3, 3, 3], dtype)}, 16, constant, reference=True)
    check(op, {"a": a, "b": np.array(3, dtype)}, 16, constant, reference=True)


@pytest.mark.parametrize("op", ["And", "Or", "Xor", "Equal"])
@pytest.mark.parametrize("opset", [7, 21])
def test_booleans(op: str, opset: int) -> None:
    check(op, {"a": T, "b": F}, opset, reference=True)
    check(op, {"a": T, "b": F}, opset, ("b",), reference=True)


@pytest.mark.parametrize(
    ("op", "function"), [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor), ("Equal", np.equal)]
)
def test_legacy_broadcast(op: str, function: np.ufunc) -> None:
    check(op, {"a": T, "b": F}, 1, ("b",), values=[function(T, F[:, None])], broadcast=1, axis=0)


@pytest.mark.parametrize("op", ["Less", "Greater"])
def test_legacy_order(op: str) -> None:
    function = {"Less": np.less, "Greater": np.greater}[op]
    b = np.array([2.0, 4.5], np.float32)
    check(op, {"a": A, "b": b}, 1, ("b",), values=[function(A, b[:, None])], broadcast=1, axis=0)


X = np.arange(6, dtype=np.float32).reshape(2, 3)
CONDITION = X > 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.uint64, bool])
@pytest.mark.parametrize("constant", [(), ("x",), ("y",), ("x", "y")])
@pytest.mark.parametrize("x", [X, np.array(7), np.array([[7]]), np.array([[[7]]])])
@pytest.mark.parametrize("y", [X[::-1], np.array(1)])
def test_where(dtype: type, constant: tuple[str, ...], x: np.ndarray, y: np.ndarray) -> None:
    check("Where", {"c": CONDITION, "x": x.astype(dtype), "y": y.astype(dtype)}, 16, constant, reference=True)


@pytest.mark.parametrize("constant", [(), ("x",), ("y",)])
def test_where_broadcasts_the_condition(constant: tuple[str, ...]) -> None:
    c = np.array([[True], [False]])
    check("Where", {"c": c, "x": X, "y": np.array(1, np.float32)}, 9, constant)
    check("Where", {"c": c, "x": np.array(1, np.float32), "y": X}, 9, constant)
    check("Where", {"c": CONDITION, "x": np.array(1, np.float32), "y": X[0]}, 9, constant)
    check("Where", {"c": c, "x": X, "y": X[0]}, 9, constant, dynamic=True)


def test_reads_well() -> None:
    lowest = np.array(np.finfo(np.float32).min)
    text = source("Where", {"c": CONDITION, "x": lowest, "y": X}, 16, ("x",))
    assert text.endswith("return y.masked_fill(c, torch.finfo(y.dtype).min)")
    assert source("Less", {"a": np.array(2, np.int64), "b": np.arange(3)}, 16, ("a",)).endswith("return b > 2")
    assert source("And", {"a": T, "b": F}, 16).endswith("return a & b")

"""Operators of one tensor, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, source

X = np.array([[-2.5, -0.5, 0.0], [0.5, 1.5, 2.5]], np.float32)
UNIT = np.array([-0.9, 0.0, 0.7], np.float32)

ANY = ["Abs", "Ceil", "Exp", "Floor", "Neg"]  # opset 1 with consumed_inputs, 6, 13
POSITIVE = ["Log", "Reciprocal", "Sqrt"]
TRIGONOMETRY = {
    "Acos": 7,
    "Asin": 7,
    "Atan": 7,
    "Cos": 7,
    "Sin": 7,
    "Tan": 7,
    "Asinh": 9,
    "Atanh": 9,
    "Cosh": 9,
    "Sinh": 9,
}


@pytest.mark.parametrize("opset", [6, 12, 13, 21])
@pytest.mark.parametrize("op", ANY + POSITIVE)
def test_float(op: str, opset: int) -> None:
    check(op, {"x": np.abs(X) + 0.5 if op in POSITIVE else X}, opset)


@pytest.mark.parametrize("op", ANY + POSITIVE)
def test_opset_1_has_consumed_inputs(op: str) -> None:
    x = np.abs(X) + 0.5
    values = {"Ceil": np.ceil, "Floor": np.floor, "Abs": np.abs, "Exp": np.exp, "Neg": np.negative, "Log": np.log,
              "Reciprocal": np.reciprocal, "Sqrt": np.sqrt}  # fmt: skip
    check(op, {"x": x}, 1, consumed_inputs=[0], values=[values[op](x)])


@pytest.mark.parametrize("op", TRIGONOMETRY)
def test_trigonometry(op: str) -> None:
    check(op, {"x": UNIT}, TRIGONOMETRY[op])
    check(op, {"x": UNIT}, 22, dynamic=True)


@pytest.mark.parametrize(
    ("op", "opset"), [("Acosh", 9), ("Erf", 9), ("Erf", 13), ("Round", 11), ("Round", 22), ("Sign", 13)]
)
def test_others(op: str, opset: int) -> None:
    check(op, {"x": np.abs(X) + 1 if op == "Acosh" else X}, opset, dynamic=True)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("op", ["Abs", "Sign", "Neg", "BitwiseNot"])
def test_integers(op: str, dtype: type) -> None:
    info = np.iinfo(dtype)
    if op == "Neg" and info.min == 0:
        pytest.skip("Neg takes no unsigned type")
    check(op, {"x": np.array([info.min + 1, 0, 5, info.max], dtype)}, 18, reference=True)


@pytest.mark.parametrize("positive", [None, 0, 1])
@pytest.mark.parametrize("negative", [None, 0, 1])
@pytest.mark.parametrize("opset", [10, 20])
def test_is_inf(opset: int, positive: int | None, negative: int | None) -> None:
    given = {"detect_positive": positive, "detect_negative": negative}
    x = np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)
    check("IsInf", {"x": x}, opset, **{name: flag for name, flag in given.items() if flag is not None})


@pytest.mark.parametrize("opset", [9, 13, 20])
def test_is_nan(opset: int) -> None:
    check("IsNaN", {"x": np.array([np.inf, np.nan, 1.0], np.float32)}, opset)


def test_not_and_identity() -> None:
    check("Not", {"x": np.array([True, False])}, 1)
    check("Identity", {"x": X}, 1)
    assert source("Not", {"x": np.array([True])}, 21).endswith("return ~x")
    assert source("Identity", {"x": X}, 21).endswith("return x")


@pytest.mark.parametrize("op", ["Abs", "Exp", "Sign", "Identity", "Round"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_empty_and_scalar(op: str, shape: tuple[int, ...]) -> None:
    check(op, {"x": np.ones(shape, np.float32)}, 21)

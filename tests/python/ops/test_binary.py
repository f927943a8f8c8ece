"""Arithmetic of two and more tensors, against ONNX Runtime and the reference evaluator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from checks import check, one_node, source

import tonnx

A = np.array([[-7.5, 3.25, 2.0], [5.0, -1.5, 8.0]], np.float32)
B = np.array([2.0, -3.0, 4.0], np.float32)
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Pow"])
@pytest.mark.parametrize("opset", [7, 13, 14])
@pytest.mark.parametrize("constant", [(), ("a",), ("b",)])
@pytest.mark.parametrize("b", [B, np.float32(2.5), np.ones((1,), np.float32), np.ones((1, 1, 1), np.float32)])
def test_float(op: str, opset: int, constant: tuple[str, ...], b: np.ndarray) -> None:
    inputs = {"a": np.abs(A), "b": np.asarray(b)}
    check(op, inputs, opset, constant)
    check(op, inputs, opset, constant, dynamic=True)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_a_number_on_the_left(op: str) -> None:
    for number in (1.0, 2.5):
        check(op, {"a": np.array(number, np.float32), "b": A}, 14, ("a",))
        check(op, {"a": np.array([number], np.float64), "b": A.astype(np.float64)}, 14, ("a",))
    check(op, {"a": np.array(100, np.int32), "b": np.array([3, -7], np.int32)}, 14, ("a",))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "op", ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "BitwiseAnd", "BitwiseOr", "BitwiseXor"]
)
@pytest.mark.parametrize("constant", [(), ("b",)])
def test_integers(op: str, dtype: type, constant: tuple[str, ...]) -> None:
    info = np.iinfo(dtype)
    a = np.array([7, 9, 2, 100], dtype) if info.min == 0 else np.array([7, -9, 2, -100], dtype)
    # numpy rounds a quotient down, ONNX cuts it off
    values = {"values": [np.trunc(a / 4).astype(dtype)]} if op == "Div" else {"reference": True}
    check(op, {"a": a, "b": np.array(4, dtype)}, 18, constant, **values)
    if op in ("Add", "Sub", "Mul", "Max", "Min", "BitwiseAnd"):
        check(op, {"a": np.array([info.max, 1], dtype), "b": np.array([3, info.max], dtype)}, 18, reference=True)


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize(("op", "opset"), [("Add", 1), ("Mul", 6), ("Pow", 1), ("Div", 6)])
def test_legacy_broadcast(op: str, opset: int, axis: int | None) -> None:
    a = np.random.default_rng(0).random((2, 3, 4), np.float32) + 1
    size = a.shape[2 if axis is None else axis]
    b = np.arange(1, size + 1, dtype=np.float32)
    shape = [size if i == (2 if axis is None else axis) else 1 for i in range(3)]
    function = {"Add": np.add, "Mul": np.multiply, "Pow": np.power, "Div": np.divide}[op]
    attributes = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
    check(op, {"a": a, "b": b}, opset, ("b",), values=[function(a, b.reshape(shape))], **attributes)


@pytest.mark.parametrize("axis", [-(2**62), 2**62, 4])
def test_legacy_axis_out_of_range(axis: int) -> None:
    with pytest.raises(tonnx.Error, match="axis"):
        tonnx.convert(one_node("Add", {"a": A, "b": B}, 6, broadcast=1, axis=axis))


@pytest.mark.parametrize("x", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("y", [np.float32, np.float64, np.int32, np.int64, np.uint32])
@pytest.mark.parametrize("constant", [(), ("y",)])
def test_pow_of_two_types(x: type, y: type, constant: tuple[str, ...]) -> None:
    base = np.array([2, 3, 5], x)
    for exponent in (np.array([3, 2, 0], y), np.array(2, y)):
        want = np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(x)
        check("Pow", {"x": base, "y": exponent}, 15, constant, values=[want])


@pytest.mark.parametrize("exponent", [-1.0, 0.5, -0.5, 2.0, 1e9, float("inf")])
def test_pow_of_numbers(exponent: float) -> None:
    check("Pow", {"x": np.array([0.5, 1.0, 4.0], np.float32), "y": np.array(exponent, np.float32)}, 15, ("y",))
    check("Pow", {"x": np.array(2.0, np.float32), "y": A}, 15, ("x",))


@pytest.mark.parametrize("fmod", [None, 0, 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("constant", [(), ("b",)])
def test_mod(fmod: int | None, dtype: type, constant: tuple[str, ...]) -> None:
    inputs = {"a": np.array([-7, 7, -7, 7, 6], dtype), "b": np.array([3, 3, -3, -3, 3], dtype)}
    check("Mod", inputs, 28, constant, reference=True, **({} if fmod is None else {"fmod": fmod}))
    check(
        "Mod",
        {**inputs, "b": np.array(-3, dtype)},
        28,
        constant,
        reference=True,
        **({} if fmod is None else {"fmod": fmod}),
    )


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("opset", [6, 8, 13])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_variadic(op: str, opset: int, count: int) -> None:
    check(op, {f"x{i}": A * (i + 1) - i for i in range(count)}, opset)


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
def test_variadic_broadcast_and_numbers(op: str) -> None:
    inputs = {"x": A, "y": B, "n": np.array(1.5, np.float32)}
    for constant in ((), ("n",), ("y",)):
        check(op, inputs, 13, constant)
    check(op, {"n": inputs["n"], "x": A}, 13, ("n",), dynamic=True)


def test_uint64_keeps_its_order() -> None:
    a, b = np.array([2**63 + 5, 3], np.uint64), np.array([7, 2**64 - 1], np.uint64)
    for op in ("Max", "Min"):
        check(op, {"a": a, "b": b}, 13, reference=True)
    check("Clip", {"x": a, "min": np.array(4, np.uint64), "max": np.array(2**63, np.uint64)}, 13, reference=True)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("constant", [(), ("y",)])
def test_bit_shift(dtype: type, direction: str, constant: tuple[str, ...]) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.max, info.min, 1, 77], dtype)
    for y in (np.array([1, 3, 0, info.bits], dtype), np.array(2, dtype), np.array(info.bits + 3, dtype)):
        check("BitShift", {"x": x, "y": y}, 28, constant, direction=direction, reference=True)


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
@pytest.mark.parametrize("op", ["Add", "Div", "Max", "Mean"])
def test_empty(op: str, shape: tuple[int, ...]) -> None:
    check(op, {"a": np.zeros(shape, np.float32), "b": np.array(2, np.float32)}, 14, reference=True)


def test_reads_well() -> None:
    def body(op: str, a: float | np.ndarray, b: float | np.ndarray) -> str:
        inputs = {"a": np.asarray(a, np.float32), "b": np.asarray(b, np.float32)}
        constant = tuple(name for name, array in inputs.items() if array.ndim == 0)
        return source(op, inputs, 21, constant).splitlines()[-1].strip()

    assert body("Mul", A, 0.1) == "return a * 0.1"
    assert body("Sub", 1, A) == "return 1.0 - b"
    assert body("Pow", A, 2) == "return a.pow(2)"
    assert body("Div", 1, A) == "return torch.reciprocal(b)"
    assert body("Max", A, 0.5) == "return torch.clamp(a, min=0.5)"


def test_a_weight_stays_a_parameter() -> None:
    module = check("Mul", {"a": A, "b": B}, 21, ("b",))
    assert [name for name, _ in module.named_parameters()] == ["b"]


def test_a_number_adds_no_dimension_silently() -> None:
    check("Add", {"a": np.array(3, np.float32), "b": np.ones((1, 1), np.float32)}, 21, ("b",))


@pytest.mark.parametrize(("op", "to"), [("Add", 6), ("Pow", 7), ("Max", 6)])
def test_other_opset(op: str, to: int) -> None:
    inputs = {"a": np.abs(A), "b": A if op == "Max" else B}
    model = one_node(op, inputs, 21)
    tonnx.convert(model, "other.onnx", opset=to)
    feeds = [torch.from_numpy(array) for array in inputs.values()]
    torch.testing.assert_close(tonnx.convert(onnx.load("other.onnx"))(*feeds), tonnx.convert(model)(*feeds))


@pytest.mark.parametrize(("op", "to", "why"), [("Max", 7, "one shape"), ("Mod", 27, "fmod=1"), ("Add", 13, "int8")])
def test_cannot_go_down(op: str, to: int, why: str) -> None:
    inputs = {"a": A, "b": B} if op != "Add" else {"a": np.ones(2, np.int8), "b": np.ones(2, np.int8)}
    with pytest.raises(tonnx.Error, match=why):
        tonnx.convert(one_node(op, inputs, 28), "other.onnx", opset=to)

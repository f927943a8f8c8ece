"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, against ONNX Runtime and the reference evaluator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from checks import check, check_opset, one_node, refuses_opset, source
from onnx import TensorProto, helper

import tonnx

# ties, both signs, past the range of every type, and zero
X = np.array([[0.0, 0.25, 0.75, -0.25, 1.25], [-0.75, 1e4, -1e4, 63.75, -64.25]], np.float32)
SCALE = np.array(0.5, np.float32)
AXIS_SCALE = np.array([0.5, 0.25, 0.1, 2.0, 1.0], np.float32)


def zero(dtype: str, value: float = 0, count: int = 0) -> np.ndarray:
    numpy_type = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, dtype))
    return np.full([count] if count else [], value, numpy_type)


@pytest.mark.parametrize("constant", [(), ("scale", "zero")])
@pytest.mark.parametrize("dtype", ["UINT8", "INT8", "UINT16", "INT16"])
def test_per_tensor(dtype: str, constant: tuple[str, ...]) -> None:
    inputs = {"x": X, "scale": SCALE, "zero": zero(dtype, 3)}
    check("QuantizeLinear", inputs, 21, constant)
    check("QuantizeLinear", inputs, 21, constant, dynamic=("x",))
    numbers = np.array([[0, 3, 100], [7, 5, 1]]).astype(inputs["zero"].dtype)
    check("DequantizeLinear", {"x": numbers, "scale": SCALE, "zero": zero(dtype, 3)}, 21, constant)


@pytest.mark.parametrize("axis", [None, 1, -1])
@pytest.mark.parametrize("constant", [(), ("scale", "zero")])
@pytest.mark.parametrize("dtype", ["UINT8", "INT8"])
def test_per_axis(dtype: str, constant: tuple[str, ...], axis: int | None) -> None:
    given = {} if axis is None else {"axis": axis}
    zeros = np.array([0, 1, 2, 3, 100], zero(dtype).dtype)
    check("QuantizeLinear", {"x": X, "scale": AXIS_SCALE, "zero": zeros}, 13, constant, **given)
    numbers = np.array([[0, 3, 100, 5, 6], [7, 5, 1, 127, 8]]).astype(zeros.dtype)
    check("DequantizeLinear", {"x": numbers, "scale": AXIS_SCALE, "zero": zeros}, 13, constant, **given)
    x = np.stack([X, X * 2], 2)  # the axis is not the last
    if axis != -1:
        check("QuantizeLinear", {"x": x, "scale": AXIS_SCALE, "zero": zeros}, 13, constant, **given)


def test_no_zero_point() -> None:
    check("QuantizeLinear", {"x": X, "scale": SCALE}, 10)
    check("QuantizeLinear", {"x": X, "scale": SCALE}, 21, output_dtype=TensorProto.INT8)
    check("QuantizeLinear", {"x": X, "scale": np.array(1, np.float32)}, 10, ("scale",))
    check("DequantizeLinear", {"x": X.clip(0, 9).astype(np.uint8), "scale": SCALE}, 10)
    check("DequantizeLinear", {"x": np.array([-5, 2**24 + 1], np.int32), "scale": SCALE}, 10, ("scale",))


def test_one_dimension_needs_no_axis() -> None:
    check("QuantizeLinear", {"x": X[0], "scale": AXIS_SCALE}, 23, reference=True, axis=0)
    check("QuantizeLinear", {"x": X[0], "scale": SCALE.reshape(1)}, 13)


def test_empty() -> None:
    check("QuantizeLinear", {"x": X[:0], "scale": SCALE, "zero": zero("INT8", 3)}, 13)
    check("DequantizeLinear", {"x": X[:0].astype(np.int8), "scale": SCALE, "zero": zero("INT8", 3)}, 13)


@pytest.mark.parametrize("constant", [(), ("scale", "zero")])
@pytest.mark.parametrize("size", [6, 5])  # a last block that is not full
def test_blocked(size: int, constant: tuple[str, ...]) -> None:
    x = np.linspace(-9, 9, 2 * size, dtype=np.float32).reshape(2, size)
    scale = np.array([[0.5, 0.25, 2], [1, 0.1, 0.3]], np.float32)
    zeros = np.array([[1, 2, 3], [4, 5, 6]], np.uint8)
    options = {"axis": 1, "block_size": 2}
    check("QuantizeLinear", {"x": x, "scale": scale, "zero": zeros}, 21, constant, **options)
    numbers = np.arange(2 * size, dtype=np.uint8).reshape(2, size)
    check("DequantizeLinear", {"x": numbers, "scale": scale, "zero": zeros}, 21, constant, **options)


@pytest.mark.parametrize("dtype", ["INT4", "UINT4", "INT2", "UINT2"])
def test_small_integers(dtype: str) -> None:
    model = one_node("QuantizeLinear", {"x": X, "scale": SCALE, "zero": zero(dtype, 1)}, 25, ("scale", "zero"))
    got = tonnx.convert(model)(torch.from_numpy(X)).numpy()
    info = ml_dtypes.iinfo(zero(dtype).dtype)
    np.testing.assert_array_equal(got, np.clip(np.rint(X / SCALE) + 1, int(info.min), int(info.max)))
    packed = np.array([[1, 0], [1, 1]]).astype(zero(dtype).dtype)
    model = one_node(
        "DequantizeLinear", {"x": packed, "scale": SCALE, "zero": zero(dtype, 1)}, 25, ("x", "scale", "zero")
    )
    np.testing.assert_array_equal(tonnx.convert(model)().numpy(), [[0, -0.5], [0, 0]])


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", ["FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"])
def test_small_floats(dtype: str, saturate: int) -> None:
    inputs = {"x": X, "scale": SCALE, "zero": zero(dtype)}
    model = one_node("QuantizeLinear", inputs, 23, ("scale", "zero"), saturate=saturate)
    want = X / SCALE
    largest = float(ml_dtypes.finfo(zero(dtype).dtype).max)
    if saturate or dtype == "FLOAT4E2M1":
        want = np.clip(want, -largest, largest)
    want = want.astype(zero(dtype).dtype).astype(np.float32)
    got = tonnx.convert(model)(torch.from_numpy(X))
    np.testing.assert_array_equal(got.to(torch.float32).numpy(), want)
    back = one_node(
        "DequantizeLinear", {"x": inputs["zero"], "scale": SCALE, "zero": inputs["zero"]}, 23, ("scale", "zero")
    )
    np.testing.assert_array_equal(tonnx.convert(back)(got).numpy(), want * SCALE)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_output_dtype(dtype: type) -> None:
    numbers = np.array([-128, 3, 127], np.int8)
    options = {"output_dtype": int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))}
    model = one_node("DequantizeLinear", {"x": numbers, "scale": np.array(0.3, np.float32)}, 23, ("scale",), **options)
    got = tonnx.convert(model)(torch.from_numpy(numbers))
    np.testing.assert_array_equal(
        got.to(torch.float32).numpy(), (numbers * np.float32(0.3)).astype(dtype).astype(np.float32)
    )


def test_halves_are_divided_in_32_bits_unless_told() -> None:
    x = np.arange(0, 20, 0.01, dtype=np.float32).astype(np.float16)
    inputs = {"x": x, "scale": np.array(0.03, np.float16), "zero": zero("INT8", 5)}
    check("QuantizeLinear", inputs, 19, ("scale", "zero"))
    check("QuantizeLinear", inputs, 23, precision=TensorProto.FLOAT16, reference=True)
    numbers = np.arange(-128, 128).astype(np.int8)
    check("DequantizeLinear", {"x": numbers, "scale": np.array(0.03, np.float16), "zero": zero("INT8", 5)}, 19)


def test_integers_are_quantised() -> None:
    check(
        "QuantizeLinear",
        {"x": np.array([-700, 3, 5, 1000], np.int32), "scale": np.array(2, np.float32)},
        13,
        reference=True,
    )


@pytest.mark.parametrize("x", [X, X[:1], np.abs(X), -np.abs(X) - 1, np.zeros((2, 2), np.float32)])
def test_dynamic(x: np.ndarray) -> None:
    check("DynamicQuantizeLinear", {"x": x}, 11, outputs=3)
    check("DynamicQuantizeLinear", {"x": x}, 11, outputs=3, dynamic=True)


def test_opsets() -> None:
    inputs = {"x": X, "scale": SCALE, "zero": zero("UINT8", 3)}
    for opset, to in [(10, 13), (13, 10), (13, 19), (19, 13), (19, 21), (21, 19), (21, 23), (23, 10)]:
        check_opset("QuantizeLinear", inputs, opset, to, ("scale", "zero"))
        numbers = {"x": X.clip(0, 9).astype(np.uint8), "scale": SCALE, "zero": zero("UINT8", 3)}
        check_opset("DequantizeLinear", numbers, opset, to, ("scale", "zero"))
    check_opset("QuantizeLinear", {"x": X, "scale": SCALE}, 21, 19, ("scale",), output_dtype=TensorProto.INT8)
    assert "one scale" in refuses_opset("QuantizeLinear", {"x": X, "scale": AXIS_SCALE}, 13, 10)
    assert "precision" in refuses_opset("QuantizeLinear", {"x": X, "scale": SCALE}, 23, 21, precision=1)
    assert "int16" in refuses_opset("QuantizeLinear", {"x": X, "scale": SCALE, "zero": zero("INT16")}, 21, 19)


def test_reads_well(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = {"x": X, "scale": SCALE, "zero": zero("UINT8", 128)}
    text = source("QuantizeLinear", inputs, 13, ("scale", "zero"))
    assert "torch.clamp(torch.round(x / 0.5) + 128, min=0, max=255).to(torch.uint8)" in text
    text = source("DequantizeLinear", {**inputs, "x": X.astype(np.uint8)}, 13, ("scale", "zero"))
    assert "(x.to(torch.float32) - 128) * 0.5" in text


def test_wrong_types_are_refused() -> None:
    model = one_node("QuantizeLinear", {"x": X, "scale": SCALE}, 21, output_dtype=TensorProto.INT64)
    with pytest.raises(tonnx.Error, match="not a type of quantised numbers"):
        tonnx.convert(model)
    bad = one_node(
        "DequantizeLinear", {"x": X.astype(np.int8), "scale": np.ones((2, 2), np.float32)}, 21, block_size=-1
    )
    with pytest.raises(tonnx.Error, match="block_size"):
        tonnx.convert(bad)

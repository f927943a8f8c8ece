"""MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv: the very integers that ONNX Runtime gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, one_node, source
from models import whole_numbers

import tonnx

RNG = np.random.default_rng(0)


def integers(dtype: type, *shape: int) -> np.ndarray:
    return whole_numbers(RNG, dtype, shape)


def one(dtype: type, value: float) -> np.ndarray:
    return np.array(value, dtype)


@pytest.mark.parametrize("constant", [(), ("b",), ("b", "a_zero", "b_zero")])
@pytest.mark.parametrize(("a_type", "b_type"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_mat_mul_integer(a_type: type, b_type: type, constant: tuple[str, ...]) -> None:
    a, b = integers(a_type, 2, 3, 40), integers(b_type, 40, 5)
    check("MatMulInteger", {"a": a, "b": b, "a_zero": one(a_type, 7), "b_zero": one(b_type, 9)}, 10, constant)
    columns = integers(b_type, 5)
    check("MatMulInteger", {"a": a, "b": b, "a_zero": one(a_type, 7), "b_zero": columns}, 10, constant)


def test_mat_mul_integer_without_zero_points() -> None:
    check("MatMulInteger", {"a": integers(np.uint8, 3, 4), "b": integers(np.int8, 4, 5)}, 10)
    check("MatMulInteger", {"a": integers(np.uint8, 2, 3, 4), "b": integers(np.int8, 2, 4, 5)}, 10, dynamic=True)
    check("MatMulInteger", {"a": integers(np.uint8, 0, 4), "b": integers(np.int8, 4, 5)}, 10, reference=True)


def test_rows_may_have_zero_points() -> None:
    inputs = {"a": integers(np.uint8, 3, 4), "b": integers(np.uint8, 4, 5), "zero": np.array([1, 2, 3], np.uint8)}
    want = (inputs["a"].astype(np.int32) - inputs["zero"][:, None]) @ inputs["b"].astype(np.int32)
    check("MatMulInteger", inputs, 10, values=[want])


def test_long_sums_are_exact(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    a, b = np.full((1, 3001), 255, np.uint8), np.full((3001, 1), 255, np.uint8)
    b[0] = 254
    for constant in [(), ("b",)]:
        check("MatMulInteger", {"a": a, "b": b}, 10, constant, values=[a.astype(np.int32) @ b.astype(np.int32)])
        assert "torch.float64" in source("MatMulInteger", {"a": a, "b": b}, 10, constant)
    b = integers(np.int8, 768, 4) // 4  # as trained weights are: sums that float32 holds
    assert "torch.float64" not in source("MatMulInteger", {"a": a[:, :768], "b": b}, 10, ("b",))


CONV_OPTIONS = [
    {},
    {"pads": [1, 2, 1, 2]},
    {"pads": [0, 1, 2, 0], "strides": [2, 1]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"auto_pad": "SAME_LOWER"},
    {"auto_pad": "VALID", "kernel_shape": [3, 3]},
    {"dilations": [2, 2]},
]


@pytest.mark.parametrize("constant", [(), ("w", "x_zero", "w_zero")])
@pytest.mark.parametrize("options", CONV_OPTIONS)
def test_conv_integer(options: dict, constant: tuple[str, ...]) -> None:
    inputs = {"x": integers(np.uint8, 1, 4, 7, 8), "w": integers(np.uint8, 6, 4, 3, 3)}
    inputs |= {"x_zero": one(np.uint8, 3), "w_zero": one(np.uint8, 130)}
    check("ConvInteger", inputs, 10, constant, **options)


def test_conv_integer_groups_and_channels() -> None:
    x = integers(np.uint8, 2, 4, 9)
    check("ConvInteger", {"x": x, "w": integers(np.int8, 6, 2, 3)}, 10, group=2)
    inputs = {
        "x": x,
        "w": integers(np.uint8, 2, 4, 3),
        "x_zero": one(np.uint8, 3),
        "w_zero": np.array([1, 200], np.uint8),
    }
    weight = inputs["w"] - inputs["w_zero"].astype(float)[:, None, None]
    want = torch.nn.functional.conv1d(torch.from_numpy(x - 3.0), torch.from_numpy(weight)).int().numpy()
    check("ConvInteger", inputs, 10, ("w", "w_zero"), values=[want])
    check("ConvInteger", inputs, 10, values=[want])


def qlinear_mat_mul(a_type: type, b_type: type, b_scale: np.ndarray, b_zero: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "a": integers(a_type, 2, 3, 20),
        "a_scale": one(np.float32, 0.0123),
        "a_zero": one(a_type, 7),
        "b": integers(b_type, 20, 5),
        "b_scale": b_scale,
        "b_zero": b_zero,
        "y_scale": one(np.float32, 0.37),
        "y_zero": one(a_type, 11),
    }


@pytest.mark.parametrize("constant", [(), "all"])
@pytest.mark.parametrize(("a_type", "b_type"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_qlinear_mat_mul(a_type: type, b_type: type, constant: tuple[str, ...] | str) -> None:
    scales = np.array([0.01, 0.02, 0.005, 0.1, 0.07], np.float32)
    for b_scale, b_zero in [(one(np.float32, 0.02), one(b_type, 5)), (scales, integers(b_type, 5))]:
        inputs = qlinear_mat_mul(a_type, b_type, b_scale, b_zero)
        fixed = tuple(name for name in inputs if name != "a") if constant == "all" else ()
        check("QLinearMatMul", inputs, 10, fixed)
        check("QLinearMatMul", inputs, 21, fixed)


@pytest.mark.parametrize("bias", [None, 0, 1 << 24])
@pytest.mark.parametrize("constant", [(), "all"])
@pytest.mark.parametrize(("x_type", "w_type"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_qlinear_conv(x_type: type, w_type: type, constant: tuple[str, ...] | str, bias: int | None) -> None:
    channels = np.array([0.01, 0.02, 0.005], np.float32)
    for w_scale in [one(np.float32, 0.02), channels]:
        inputs = {
            "x": integers(x_type, 2, 4, 6, 7),
            "x_scale": one(np.float32, 0.0123),
            "x_zero": one(x_type, 7),
            "w": integers(w_type, 3, 4, 3, 3),
            "w_scale": w_scale,
            "w_zero": np.zeros(w_scale.shape, w_type),
            "y_scale": one(np.float32, 0.37),
            "y_zero": one(x_type, 11),
            "bias": None if bias is None else (RNG.integers(-9999, 9999, 3) + bias).astype(np.int32),
        }
        if bias is None:
            del inputs["bias"]
        fixed = tuple(name for name in inputs if name != "x") if constant == "all" else ()
        check("QLinearConv", inputs, 10, fixed, pads=[1, 1, 1, 1])


def test_qlinear_conv_reads_well_and_stays_small(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = {
        "x": integers(np.uint8, 2, 4, 6, 7),
        "x_scale": one(np.float32, 0.5),
        "x_zero": one(np.uint8, 7),
        "w": integers(np.int8, 3, 4, 3, 3),
        "w_scale": one(np.float32, 0.25),
        "w_zero": one(np.int8, 0),
        "y_scale": one(np.float32, 2),
        "y_zero": one(np.uint8, 11),
    }
    fixed = tuple(name for name in inputs if name != "x")
    text = source("QLinearConv", inputs, 10, fixed)
    assert "torch.round(F.conv2d(x.to(torch.float32) - 7, self.w.to(torch.float32)) * 0.0625) + 11" in text
    assert "torch.clamp(y, min=0, max=255).to(torch.uint8)" in text
    module = tonnx.convert(one_node("QLinearConv", inputs, 10, fixed, dynamic=("x",)))
    assert [(b.dtype, tuple(b.shape)) for b in module.buffers()] == [(torch.int8, (3, 4, 3, 3))]
    batch = torch.export.Dim("batch")
    torch.export.export(module, (torch.from_numpy(inputs["x"]),), dynamic_shapes=({0: batch},))

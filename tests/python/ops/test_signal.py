"""DFT, STFT, MelWeightMatrix and the windows: real and complex, every axis, lengths known and not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from checks import check, check_opset, one_node, source

import tonnx

RNG = np.random.default_rng(6)
REAL = RNG.standard_normal((2, 6, 5, 1)).astype(np.float32)
COMPLEX = RNG.standard_normal((2, 6, 5, 2)).astype(np.float32)


def dft(x: np.ndarray, axis: int, inverse: int = 0, onesided: int = 0, length: int | None = None) -> np.ndarray:
    z = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]
    axis = axis % x.ndim
    if inverse and onesided:
        return np.fft.irfft(z, length, axis)[..., None].astype(x.dtype)
    y = np.fft.ifft(z, length, axis) if inverse else np.fft.fft(z, length, axis)
    if onesided:
        y = np.take(y, range(y.shape[axis] // 2 + 1), axis)
    return np.stack([y.real, y.imag], -1).astype(x.dtype)


@pytest.mark.parametrize("length", [None, 4, 7])
@pytest.mark.parametrize("axis", [None, 0, 1, -2])
@pytest.mark.parametrize("inverse, onesided", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("x", [REAL, COMPLEX])
def test_dft(x: np.ndarray, inverse: int, onesided: int, axis: int | None, length: int | None) -> None:
    if inverse and onesided and x is REAL:
        pytest.skip("half a spectrum is complex")
    options = {"inverse": inverse, "onesided": onesided}
    sizes = None if length is None else np.array(length)
    new = {"x": x, "length": sizes, "axis": None if axis is None else np.array(axis)}
    values = [dft(x, -2 if axis is None else axis, inverse, onesided, length)]
    for constant in (("length", "axis"), ("axis",), ()):
        check("DFT", new, 20, constant, values=values, **options)
    check("DFT", new, 20, ("length", "axis"), values=values, dynamic=False, **options)
    old = options | ({} if axis is None else {"axis": axis})
    values = [dft(x, 1 if axis is None else axis, inverse, onesided, length)]
    check("DFT", {"x": x, "length": sizes}, 17, ("length",), values=values, **old)


def test_dft_with_open_sizes_and_other_types() -> None:
    model = one_node("DFT", {"x": REAL}, 20, onesided=1)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    module = tonnx.convert(model)
    np.testing.assert_allclose(module(torch.tensor(REAL)).numpy(), dft(REAL, -2, 0, 1), atol=1e-5)
    check("DFT", {"x": COMPLEX.astype(np.float64)}, 20, values=[dft(COMPLEX.astype(np.float64), -2)])
    half = COMPLEX.astype(np.float16)
    check("DFT", {"x": half}, 20, values=[dft(half, -2)], tolerance=2e-2)
    turned = COMPLEX.transpose(2, 1, 0, 3)
    check("DFT", {"x": turned}, 20, values=[dft(turned, -2)])


def test_dft_opsets() -> None:
    check_opset("DFT", {"x": REAL}, 17, 20, onesided=1)
    changed = check_opset("DFT", {"x": REAL, "length": None, "axis": np.array(2)}, 20, 19, ("axis",))
    assert changed.graph.node[0].attribute[0].i == 2


# 61000879: torch.export has no axes that follow from data
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("x", [REAL, COMPLEX])
def test_dft_along_an_axis_that_is_an_input_comes_back(x: np.ndarray, inverse: int, tmp_path: Path) -> None:
    model = one_node("DFT", {"x": x, "length": None, "axis": np.array(1)}, 20, dynamic=("x",), inverse=inverse)
    tonnx.convert(model, tmp_path / "m.pt2")
    tonnx.convert(tmp_path / "m.pt2", tmp_path / "back.onnx")
    run = onnxruntime.InferenceSession(str(tmp_path / "back.onnx"))
    for axis in (0, 1, 2, -2, -3):
        [got] = run.run(None, {"x": x, "axis": np.array(axis)})
        np.testing.assert_allclose(got, dft(x, axis, inverse), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"inverse": 1}, {"onesided": 1}], ids=str)
@pytest.mark.parametrize("length", [None, 4, 7])
def test_dft_whose_sizes_follow_from_an_axis_comes_back(
    length: int | None, options: dict[str, int], tmp_path: Path
) -> None:
    sizes = None if length is None else np.array(length)
    model = one_node("DFT", {"x": REAL, "length": sizes, "axis": np.array(1)}, 20, ("length",), **options)
    tonnx.convert(model, tmp_path / "m.pt2")
    tonnx.convert(tmp_path / "m.pt2", tmp_path / "back.onnx")
    run = onnxruntime.InferenceSession(str(tmp_path / "back.onnx"))
    for axis in (0, 1, -2):
        [got] = run.run(None, {"x": REAL, "axis": np.array(axis)})
        want = dft(REAL, axis, options.get("inverse", 0), options.get("onesided", 0), length)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_dft_text() -> None:
    assert "torch.view_as_real(torch.fft.rfft(x.squeeze(-1)))" in source("DFT", {"x": REAL}, 20, onesided=1)


@pytest.mark.parametrize("constant", [("step", "window", "length"), ("window",), ()])
@pytest.mark.parametrize("onesided", [None, 0, 1])
@pytest.mark.parametrize("window, length", [(True, True), (True, False), (False, True)])
def test_stft(window: bool, length: bool, onesided: int | None, constant: tuple[str, ...]) -> None:
    inputs = {
        "signal": RNG.standard_normal((2, 64, 1)).astype(np.float32),
        "step": np.array(8),
        "window": RNG.random(16).astype(np.float32) if window else None,
        "length": np.array(16) if length else None,
    }
    options = {} if onesided is None else {"onesided": onesided}
    check("STFT", inputs, 17, constant, tolerance=1e-4, **options)


@pytest.mark.parametrize("dynamic", [(), ("signal",)])
def test_stft_of_signals_without_a_last_dimension(dynamic: tuple[str, ...]) -> None:
    inputs = {
        "signal": RNG.standard_normal((2, 64)).astype(np.float32),
        "step": np.array(8),
        "window": np.hanning(16).astype(np.float32),
    }
    check("STFT", inputs, 17, ("step", "window"), dynamic=dynamic, tolerance=1e-4)


def test_stft_of_complex_signals() -> None:
    inputs = {
        "signal": RNG.standard_normal((2, 40, 2)).astype(np.float32),
        "step": np.array(5),
        "window": np.hanning(12).astype(np.float32),
    }
    check("STFT", inputs, 17, ("step",), onesided=0, reference=True, tolerance=1e-4)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("numbers", [(8, 16, 8192, 0, 4096), (40, 512, 16000, 20, 7600), (12, 16, 8000, 100, 300)])
def test_mel_weight_matrix(numbers: tuple[int, ...], constant: bool) -> None:
    names = ["num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"]
    inputs = {name: np.array(number, np.int64) for name, number in zip(names, numbers, strict=True)}
    for name in names[3:]:
        inputs[name] = inputs[name].astype(np.float32)
    check("MelWeightMatrix", inputs, 17, tuple(names) if constant else ())


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("constant", [("size",), ()])
def test_windows(op: str, constant: tuple[str, ...]) -> None:
    size = {"size": np.array(10)}
    check(op, size, 17, constant, reference=True, tolerance=1e-6)
    check(op, size, 17, constant, reference=True, periodic=0, tolerance=1e-6)
    check(op, size, 17, constant, reference=True, output_datatype=11, tolerance=1e-9)
    check(op, size, 17, constant, reference=True, output_datatype=10, tolerance=1e-3)
    check(op, {"size": np.array(0)}, 17, constant, values=[np.zeros(0, np.float32)])


# 64000476
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows_whose_length_is_an_input_come_back(op: str, periodic: int, tmp_path: Path) -> None:
    tonnx.convert(one_node(op, {"size": np.array(4)}, 17, periodic=periodic), tmp_path / "m.pt2")
    tonnx.convert(tmp_path / "m.pt2", tmp_path / "back.onnx")
    run = onnxruntime.InferenceSession(str(tmp_path / "back.onnx"))
    program = torch.export.load(tmp_path / "m.pt2").module()
    for length in (1, 2, 7, 16):
        [got] = run.run(None, {"size": np.array(length)})
        np.testing.assert_allclose(got, program(torch.tensor(length)).numpy(), atol=1e-6)

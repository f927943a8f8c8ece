"""Windows that overlap, added up: inverse STFTs and the gradient of unfold, PyTorch -> ONNX."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim

import tonnx
from tonnx._runtime import open_session


def same(function: Callable[..., Any], session: Any, x: torch.Tensor) -> None:
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.as_tensor(got), function(x), rtol=1e-4, atol=1e-4)


ROUND_TRIPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a quarter": ({"n_fft": 64, "hop_length": 16, "window": torch.hann_window(64)}, {}),
    "to a length": ({"n_fft": 64, "hop_length": 16, "window": torch.hann_window(64)}, {"length": 390}),
    "not centred": ({"n_fft": 64, "hop_length": 32, "window": torch.ones(64), "center": False}, {}),
    "uneven": ({"n_fft": 64, "hop_length": 20, "win_length": 50, "window": torch.hann_window(50)}, {}),
    "both sides": (
        {"n_fft": 64, "hop_length": 32, "window": torch.hamming_window(64), "normalized": True, "onesided": False},
        {},
    ),
}


def round_trip(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    options, more = ROUND_TRIPS[name]

    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.istft(torch.stft(x, **options, return_complex=True), **options, **more)

    return forward


@pytest.mark.parametrize("opset", [11, 16, 17, None])
@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_istft(name: str, opset: int | None) -> None:
    forward, x = round_trip(name), torch.randn(2, 400)
    same(forward, open_session(bytes(tonnx.export(forward, x, opset_version=opset))), x)


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_istft_of_a_program(name: str, tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return forward(x)

    forward, x = round_trip(name), torch.randn(400)
    torch.export.save(torch.export.export(Model(), (x,)), tmp_path / "m.pt2")
    tonnx.convert(tmp_path / "m.pt2", tmp_path / "m.onnx")
    same(forward, open_session((tmp_path / "m.onnx").read_bytes()), x)


@pytest.mark.parametrize("opset", [16, 17, None])
@pytest.mark.parametrize(
    "more", [{}, {"length": 390}, {"length": 500}, {"normalized": True}, {"center": False}], ids=str
)
@pytest.mark.parametrize("shape", [(64, 9), (2, 64, 9)], ids=len)
def test_istft_to_complex_numbers(shape: tuple[int, ...], more: dict[str, Any], opset: int | None) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.complex(x, x.flip(0) * 2)
        window = torch.hamming_window(64)
        y = torch.istft(spectrum, 64, 40, window=window, onesided=False, return_complex=True, **more)
        return torch.view_as_real(y)

    x = torch.randn(shape)
    same(forward, open_session(bytes(tonnx.export(forward, x, opset_version=opset))), x)


def test_istft_beyond_the_last_frame() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        options: dict[str, Any] = {"n_fft": 64, "hop_length": 16, "window": torch.ones(64)}
        return torch.istft(torch.stft(x, **options, return_complex=True), **options, length=500)

    program = tonnx.export(forward, torch.randn(2, 400), dynamic_shapes=({1: Dim.DYNAMIC},))
    session = open_session(bytes(program))
    for size in (400, 390, 600):
        same(forward, session, torch.randn(2, size))


TRANSFORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rfft": lambda x: torch.view_as_real(torch.fft.rfft(x)),
    "fft of a padded dimension": lambda x: torch.view_as_real(torch.fft.fft(x, n=7, dim=1)),
    "fft2": lambda x: torch.view_as_real(torch.fft.ifft2(torch.fft.fft2(x) * 1j)),
    "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x, norm="ortho"), n=9, norm="ortho"),
}


@pytest.mark.parametrize("opset", [11, 16])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_before_there_was_an_operator(name: str, opset: int) -> None:
    axes = {"x": {0: "batch"}}
    program = tonnx.export(TRANSFORMS[name], torch.randn(2, 5, 9), dynamic_axes=axes, opset_version=opset)
    session = open_session(bytes(program))
    for batch in (2, 3):
        same(TRANSFORMS[name], session, torch.randn(batch, 5, 9))


def test_istft_of_open_length() -> None:
    forward = round_trip("a quarter")
    program = tonnx.export(forward, torch.randn(2, 400), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},))
    session = open_session(bytes(program))
    for sizes in [(2, 400), (1, 160), (3, 555)]:
        same(forward, session, torch.randn(sizes))


@pytest.mark.parametrize(("dim", "size", "step"), [(0, 4, 2), (1, 3, 1), (2, 5, 3), (-1, 2, 4), (1, 6, 6)])
def test_gradient_of_unfold(dim: int, size: int, step: int) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.unfold_backward(x.unfold(dim, size, step), x.shape, dim % 3, size, step)

    x = torch.randn(8, 7, 11)
    same(forward, open_session(bytes(tonnx.export(forward, x))), x)

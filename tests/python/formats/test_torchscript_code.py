"""Traces as generated code: layers and calls that only traces of PyTorch have compute what the trace computes."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from allowed_code import check_python
from generated_code import load
from torch import Tensor, nn

from tonnx._runtime import open_session

Cli = Callable[..., subprocess.CompletedProcess[str]]


class Statistics(nn.Module):
    """Norms that keep statistics, and use them once they are trained."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.InstanceNorm1d(6, eps=1e-2)
        self.affine = nn.InstanceNorm1d(6, affine=True)
        self.kept = nn.InstanceNorm1d(6, momentum=0.3, track_running_stats=True)
        self.both = nn.InstanceNorm2d(6, affine=True, track_running_stats=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.kept(self.affine(self.plain(x)) * 2 + 1)
        return self.both(y.unsqueeze(2)).squeeze(2)  # type: ignore[no-any-return]


class Sizes(nn.Module):
    """Interpolation by the operators that are given the sizes of the result."""

    def forward(self, x: Tensor) -> list[Tensor]:
        aten, plane = torch.ops.aten, x.unsqueeze(1)
        return [
            F.interpolate(x, size=16),
            aten.upsample_linear1d(x, [9], True),
            aten.upsample_bilinear2d(plane, [7, 9], False),
            aten.upsample_nearest2d(plane, [12, 18], 2.0, 2.0),
            aten._upsample_nearest_exact1d(x, [5]),
        ]


class Inner(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm, self.wide = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, 4 * outputs, 1)
        self.deep = nn.Conv2d(4 * outputs, 4 * outputs, 3, stride, 1, groups=4 * outputs)
        self.out = nn.Conv2d(4 * outputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.gelu(self.deep(F.gelu(self.wide(self.norm(x))))))  # type: ignore[no-any-return]


class Shortcut(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        pool = nn.AvgPool2d(3, stride, 1)
        self.proj = nn.Sequential(pool, nn.Conv2d(inputs, outputs, 1)) if stride == 2 else nn.Identity()
        self.layers = Inner(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x) + self.layers(x)  # type: ignore[no-any-return]


class Shortcuts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = ((6, 6, 2), (6, 6, 1), (6, 12, 2), (12, 12, 1))
        self.stem, self.blocks = nn.Conv2d(6, 6, 1), nn.Sequential(*(Shortcut(*each) for each in sizes))
        self.head = nn.Conv2d(12, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)))  # type: ignore[no-any-return]


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "statistics": (Statistics, (3, 6, 8)),
    "sizes": (Sizes, (2, 6, 9)),
    "shortcuts": (Shortcuts, (2, 6, 16, 16)),
}


@pytest.mark.parametrize("name", CASES)
def test_code_and_onnx_compute_what_the_trace_does(cli: Cli, tmp_path: Path, name: str) -> None:
    build, sizes = CASES[name]
    torch.manual_seed(3)
    module = build()
    for _ in range(3):
        module(torch.randn(sizes) * 3 + 1)  # statistics of its own
    x = torch.randn(sizes)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        trace = torch.jit.trace(module.eval(), x)  # type: ignore[no-untyped-call]
        torch.jit.save(trace, tmp_path / "model.pt")
        wanted = trace(x) if name == "sizes" else [trace(x)]
    for target in ("code.py", "model.onnx"):
        done = cli("convert", str(tmp_path / "model.pt"), str(tmp_path / target))
        assert done.returncode == 0, done.stderr
    check_python((tmp_path / "code.py").read_text())
    with torch.no_grad():
        got = load(tmp_path / "code.py")(x)
    for y, want in zip([got] if isinstance(got, Tensor) else got, wanted, strict=True):
        torch.testing.assert_close(y, want)
    session = open_session((tmp_path / "model.onnx").read_bytes())
    for array, want in zip(session.run(None, {session.get_inputs()[0].name: x.numpy()}), wanted, strict=True):
        np.testing.assert_allclose(array, want.numpy(), rtol=1e-4, atol=1e-4)


class Deep(nn.Module):
    """A flag and a number stand before the tensor, and in the branch new tensors are made."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(4, 4)

    def forward(self, deep: bool, steps: int, x: Tensor) -> Tensor:
        for i in range(steps):
            x = self.wide(x) if deep else x + torch.arange(4) * i
        return x


def test_flags_are_arguments_of_code(cli: Cli, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.script(Deep().eval())
        torch.jit.save(script, tmp_path / "model.pt")  # type: ignore[no-untyped-call]
    done = cli("convert", str(tmp_path / "model.pt"), str(tmp_path / "code.py"), "--input-shape", "x:2,4")
    assert done.returncode == 0, done.stderr
    module, x = load(tmp_path / "code.py"), torch.randn(2, 4)
    for deep, steps in ((True, 3), (False, 2), (False, 0)):
        torch.testing.assert_close(module(deep, torch.tensor(steps), x), script(deep, steps, x))

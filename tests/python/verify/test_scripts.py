"""tonnx verify with TorchScript archives of others: optional arguments, numbers, tables, loops and branches."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import tonnx

warnings.filterwarnings("ignore", category=DeprecationWarning)


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x: Tensor, h: Tensor | None, scale: float = 2.0) -> tuple[Tensor, Tensor]:
        if h is None:
            h = torch.zeros(x.size(1), 4)
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
        return h * scale, h


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 3)
        self.head = nn.Linear(3, 2)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        y = self.head(self.table(ids))
        return y if mask is None else y * mask.unsqueeze(-1)


class Counts(nn.Module):
    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int]:
        k = 0
        for i in range(n):
            x = x * 1.01
            k += i
        return x, k


CASES = [
    (Steps, {"x": (-1, 2, 3)}, {}, ["x"]),
    (Steps, {"x": (-1, 2, 3), "h": (2, 4)}, {}, ["x", "h"]),
    (Masked, {"ids": (-1, 5)}, {"ids": "int64"}, ["ids"]),
    (Masked, {"ids": (-1, 5), "mask": (-1, 5)}, {"ids": "int64"}, ["ids", "mask"]),
    (Counts, {"x": (-1, 5)}, {}, ["x", "n"]),
]


@pytest.mark.parametrize(("kind", "shapes", "types", "inputs"), CASES)
@pytest.mark.parametrize("ending", ["onnx", "py"])
def test_an_archive_and_what_it_became(
    tmp_path: Path, kind: Any, shapes: Any, types: Any, inputs: list[str], ending: str
) -> None:
    source, target = tmp_path / "s.pt", tmp_path / f"t.{ending}"
    torch.jit.save(torch.jit.script(kind().eval()), source)
    tonnx.convert(source, target, input_shapes=shapes, input_types=types)
    for report in (tonnx.verify(source, target), tonnx.verify(target, source)):
        assert report.ok
        assert list(report.inputs) == inputs


@pytest.mark.parametrize("is_first", [True, False])
def test_an_optional_argument_counts(tmp_path: Path, is_first: bool) -> None:
    class Other(Masked):
        def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
            y = self.head(self.table(ids))
            return y if mask is None else y * mask.unsqueeze(-1) * 2

    torch.manual_seed(0)
    model = Masked().eval()
    other = Other().eval()
    other.load_state_dict(model.state_dict())
    torch.jit.save(torch.jit.script(model), tmp_path / "s.pt")
    torch.jit.save(torch.jit.script(other), tmp_path / "other.pt")
    types = {"ids": "int64"}
    without, masked = tmp_path / "without.onnx", tmp_path / "masked.onnx"
    tonnx.convert(tmp_path / "other.pt", without, input_shapes={"ids": (2, 5)}, input_types=types)
    tonnx.convert(tmp_path / "other.pt", masked, input_shapes={"ids": (2, 5), "mask": (2, 5)}, input_types=types)

    def same(target: Path) -> bool:
        pair = (tmp_path / "s.pt", target)
        return tonnx.verify(*(pair if is_first else pair[::-1])).ok

    assert same(without)
    assert not same(masked)


def test_a_difference_in_a_loop_ends_with_3(tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(Steps().eval()), tmp_path / "a.pt")
    torch.jit.save(torch.jit.script(Steps().eval()), tmp_path / "b.pt")  # other weights
    tonnx.convert(tmp_path / "b.pt", tmp_path / "b.onnx", input_shapes={"x": (5, 2, 3)})
    command = [sys.executable, "-m", "tonnx", "verify", "a.pt", "b.onnx"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 3, done.stderr


def test_what_an_archive_cannot_run(tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(nn.Linear(3, 2)), tmp_path / "a.pt")
    with pytest.raises(tonnx.Error, match=r"PyTorch cannot run '.*a.pt': .*(shapes|size).*") as failure:
        tonnx.verify(tmp_path / "a.pt", tmp_path / "a.pt", shapes={"input": (1, 4)})
    assert "\n" not in str(failure.value)

"""What traces write down in a way of their own: numbers as tensors, and operators whose types they do not tell."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

import tonnx

warnings.filterwarnings("ignore", category=DeprecationWarning)
warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)


class Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


def check(folder: Path, model: nn.Module, *args: Tensor, atol: float = 1e-5) -> None:
    """What the archive gives in ONNX Runtime, and as generated code, is what PyTorch gives."""
    with torch.no_grad():
        torch.jit.trace(model.eval(), args, check_trace=False).save(str(folder / "m.pt"))
        wanted = model(*args)
    shapes = {str(i): list(x.shape) for i, x in enumerate(args)}
    tonnx.convert(folder / "m.pt", folder / "m.onnx", input_shapes=shapes)
    session = onnxruntime.InferenceSession(str(folder / "m.onnx"), providers=["CPUExecutionProvider"])
    feeds = {value.name: x.numpy() for value, x in zip(session.get_inputs(), args, strict=True)}
    torch.testing.assert_close(torch.from_numpy(session.run(None, feeds)[0]), wanted, rtol=1e-4, atol=atol)
    with torch.no_grad():
        found = tonnx.convert(folder / "m.pt", input_shapes=shapes)(*args)  # type: ignore[misc]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=atol)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear"])
def test_sizes_that_a_factor_gives_are_known(tmp_path: Path, mode: str) -> None:
    """The trace computes them in tensors. Were they not known, the nearest elements of the last would be others."""
    first = nn.Upsample(scale_factor=(4, 4.5), mode=mode, recompute_scale_factor=True)
    check(tmp_path, nn.Sequential(first, nn.Upsample(size=(16, 24), mode=mode)), torch.rand(1, 3, 20, 20))


Q, K, V = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 3)
ATTENTION = {
    "keys of fewer dimensions": (Q, K[0], V[0]),
    "queries of fewer dimensions": (Q[0], K, V),
    "one query for all": (Q[0, 0], K, V),
    "one batch of keys": (Q, K[:1], V[:1]),
    "one batch of queries": (Q[:1, :1], K, V),
    "masks of a batch": (Q[0], K, V, torch.randn(2, 1, 6, 5)),
    "a mask without batch": (Q[0], K, V, torch.randn(6, 5)),
}


@pytest.mark.parametrize("name", list(ATTENTION))
def test_attention_broadcasts_what_is_before_the_last_two_sizes(tmp_path: Path, name: str) -> None:
    check(tmp_path, Call(F.scaled_dot_product_attention), *ATTENTION[name])


def test_shared_keys_do_not_broadcast(tmp_path: Path) -> None:
    check(
        tmp_path, Call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)), Q, K[:, :2], V[:, :2]
    )

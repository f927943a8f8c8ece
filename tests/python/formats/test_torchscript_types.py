"""Types of what operators give, which an archive does not tell: the graph that follows from them computes the same."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from generated_code import load
from torch import Tensor, nn

Cli = Callable[..., subprocess.CompletedProcess[str]]

warnings.filterwarnings("ignore", category=DeprecationWarning)


def rand(*sizes: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(sizes[0]).standard_normal(sizes).astype(np.float32))


def spectrum(x: Tensor) -> Tensor:
    return torch.view_as_real(torch.fft.rfft2(torch.fft.fftn(x, dim=(1,)).real)).flatten(1)


def grid(x: Tensor) -> Tensor:
    """Learnt places, resized from the square that they are: its side is the root of a size."""
    places = torch.arange(32.0).view(16, 2) * 0.1
    side: Any = (torch.as_tensor(places.shape[0]) ** 0.5).to(torch.int64)
    half: Any = (torch.as_tensor(places.shape[0]) / 4).ceil().to(torch.int64)
    square = places.reshape(1, side, half, -1).permute(0, 3, 1, 2)
    return F.interpolate(square, size=(x.shape[1], x.shape[2]), mode="bilinear")[:, 0] + x


# Each takes a tensor of [n, 4, 6], where n is open.
OPERATORS: dict[str, Callable[[Tensor], Any]] = {
    "view_as": lambda x: x.transpose(1, 2).contiguous().view_as(x) + 1,
    "ravel": lambda x: x.ravel() * 2,
    "adjoint": lambda x: x.adjoint() @ x,
    "mH": lambda x: x.mH @ x,
    "numpy_T": lambda x: x.sum(0).T + 1,
    "broadcast_tensors": lambda x: torch.stack(torch.functional.broadcast_tensors(x, x[:, :1])),  # type: ignore[no-untyped-call]
    "rot90": lambda x: torch.rot90(x, 1, [1, 2]).flatten(1),
    "rot90 twice": lambda x: torch.rot90(x, 2, [1, -1]) - x,
    "var_mean": lambda x: torch.cat(torch.var_mean(x, dim=(1, 2), keepdim=True), 1),
    "std_mean": lambda x: torch.stack(torch.std_mean(x, 2)).flatten(1),
    "diff": lambda x: torch.diff(x, dim=1).flatten(1),
    "diff with more": lambda x: torch.diff(x, n=2, prepend=x[..., :1]).flatten(1),
    "im2col": lambda x: F.unfold(x.unsqueeze(1), (2, 3), padding=1, stride=(1, 2)).flatten(1),
    "grid_sampler": lambda x: F.grid_sample(x.unsqueeze(1), x[:, :, :2].unsqueeze(1), align_corners=False).flatten(1),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(1), dim=2).unsqueeze(0),
    "pairwise_distance": lambda x: F.pairwise_distance(x, x + 1, keepdim=True).flatten(1),
    "mse_loss": lambda x: F.mse_loss(x, x[:, :1], reduction="none").flatten(1) + F.l1_loss(x, x * 2),
    "hstack": lambda x: torch.hstack([x, x[:, :2]]).flatten(1),
    "vstack": lambda x: torch.vstack([x.sum(0).sum(0), torch.ones(6)]) + 1,
    "dstack": lambda x: torch.dstack([x[:, 0], x[:, 1]]).flatten(1),
    "column_stack": lambda x: torch.column_stack([x[:, 0, 0], x[:, 1]]) + 1,
    "diag_embed": lambda x: torch.diag_embed(x, 1, 0, -1).flatten(1),
    "diag": lambda x: torch.diag(torch.diag(x[0], -1)) + 1,
    "trace": lambda x: x.sum(0).trace() + 1,
    "complex": lambda x: torch.view_as_real(torch.complex(x, x * 2)).flatten(1),
    "spectrum": spectrum,
    "hfft": lambda x: torch.fft.hfft(x).flatten(1) + torch.fft.hfft2(x, (5, 6)).sum((1, 2)).unsqueeze(1),
    "ihfft": lambda x: torch.fft.ihfft(x, dim=1).abs().flatten(1),
    "ihfftn": lambda x: torch.fft.ihfftn(x, dim=(1, 2)).imag.flatten(1),
    "stft": lambda x: torch.stft(x.flatten(1), 8, 3, window=torch.hann_window(8), return_complex=True).abs().flatten(1),
    "stft of frames as they are": lambda x: torch.view_as_real(
        torch.stft(x.flatten(1), 9, center=False, window=torch.ones(9), return_complex=True)
    ).flatten(1),
    "istft": lambda x: torch.istft(torch.complex(x, x)[:, :, :5], 6, window=torch.ones(6)),
    "istft to a length": lambda x: torch.istft(torch.complex(x, x)[:, :, :5], 6, window=torch.ones(6), length=4),
    "repeat_interleave": lambda x: torch.repeat_interleave(x, 2),
    "repeat_interleave by counts": lambda x: x.repeat_interleave(torch.tensor([1, 0, 2, 1]), 1).flatten(1),
    "shifts": lambda x: ((x * 9).int() << 2) + ((x * 9).int() >> 1),
    "index by lists of flags": lambda x: x[:, [True, False, True, False]].flatten(1) + 1,
    "index by places and flags": lambda x: x[:, [3, 2], [True, False, False, False, True, False]].flatten(1) + 1,
    "index by two masks": lambda x: x[:, [False, True, True, False], [True, False, False, False, True, False]] + 1,
    "embedding_bag": lambda x: F.embedding_bag(torch.tensor([[0, 2], [1, 1]]), x[0], mode="mean") + 1,
    "embedding_bag by offsets": lambda x: (
        F.embedding_bag(torch.arange(4), x[0], torch.tensor([0, 1, 3]), mode="sum") + 1
    ),
    "tensor_split of an open size": lambda x: torch.cat([p[:1] + 1 for p in torch.tensor_split(x, 3)[:2]]).flatten(1),
    "irfft2": lambda x: torch.fft.irfft2(torch.complex(x, x)).flatten(1),
    "tril_indices": lambda x: x[:, torch.tril_indices(4, 4)[0]].flatten(1),
    "native_layer_norm": lambda x: torch.native_layer_norm(x, [4, 6], None, None, 1e-5)[0].flatten(1),
    "tensordot": lambda x: torch.tensordot(x, x, dims=([1, 2], [1, 2])) + 1,
    "inner": lambda x: torch.inner(x, torch.ones(3, 6)).flatten(1),
    "bilinear": lambda x: F.bilinear(x, x, torch.ones(3, 6, 6)).flatten(1),
    "addmv": lambda x: torch.addmv(torch.ones(4), x.sum(0), torch.ones(6)) + 1,
    "addr": lambda x: torch.addr(torch.ones(4, 6), x[0, :, 0], x[0, 0]) + 1,
    "cross": lambda x: torch.linalg.cross(x[..., :3], x[..., 3:]).flatten(1),
    "tensor_split": lambda x: torch.cat(torch.tensor_split(x, [1, 9], 1), 2 - 1).flatten(1),
    "sections": lambda x: torch.tensor_split(x, 4, 2)[0].flatten(1) + torch.tensor_split(x, 4, 2)[1].flatten(1),
    "where": lambda x: x.flatten()[torch.where(x.flatten() > 0)[0]],
    "bartlett": lambda x: x * torch.bartlett_window(6),
    "logspace": lambda x: x * torch.logspace(0, 1, 6),
    "softmax forward": lambda x: torch._softmax(x, 2, False) + torch._log_softmax(x, 1, False),
    "argwhere": lambda x: torch.argwhere(x > 0).sum(1) + 1,
    "nonzero_static": lambda x: torch.nonzero_static(x[0] > -9, size=5) + 1,
    "pdist": lambda x: F.pdist(x[0]) + 1,
    "inv_ex": lambda x: torch.linalg.inv_ex(x @ x.mT + torch.eye(4))[0].flatten(1),
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(4)).flatten(1),
    "slogdet": lambda x: torch.stack(torch.linalg.slogdet(x @ x.mT + torch.eye(4))) + 1,
    "logdet": lambda x: torch.logdet(x @ x.mT + torch.eye(4)) + 1,
    "nll_loss": lambda x: F.nll_loss(x, torch.ones(x.shape[0], 6, dtype=torch.long), reduction="none").flatten(1) + 1,
    "nll_loss of all": lambda x: F.nll_loss(x[0], torch.tensor([0, 1, 2, 3])) + x,
    "margin_ranking": lambda x: F.margin_ranking_loss(x, x[:, :1], torch.ones(1, 1, 6), 0.5, reduction="none").flatten(
        1
    ),
    "poisson": lambda x: F.poisson_nll_loss(x, x.exp(), reduction="none").flatten(1),
    "multi_margin": lambda x: (
        F.multi_margin_loss(x[:, 0], torch.ones(x.shape[0], dtype=torch.long), reduction="none") + 1
    ),
    "angle": lambda x: torch.angle(x).flatten(1) + 1,
    "vdot": lambda x: torch.vdot(x[0, 0], x[0, 1]) + x,
    "vecdot": lambda x: torch.linalg.vecdot(x, x[:, :1], dim=-1) + 1,
    "addbmm": lambda x: torch.addbmm(torch.ones(4, 4), x, x.mT) + 1,
    "kron": lambda x: torch.kron(x, torch.ones(2, 3)).flatten(1),
    "kron of more": lambda x: torch.kron(torch.ones(2), x).flatten(1),
    "linalg.diagonal": lambda x: torch.linalg.diagonal(x, offset=1) + 1,
    "diagflat": lambda x: torch.diagflat(x[0], -2) + 1,
    "block_diag": lambda x: torch.block_diag(x[0], x[1, 0], torch.ones(2, 3)) + 1,
    "cartesian_prod": lambda x: torch.cartesian_prod(x[0, 0], x[0, 1]) + 1,
    "combinations": lambda x: torch.combinations(x[0, 0], 3) + 1,
    "reflection": lambda x: torch.ops.aten.reflection_pad1d(x, [1, 2]).flatten(1),
    "replication": lambda x: torch.ops.aten.replication_pad2d(x, [1, 2, 0, 3]).flatten(1),
    "circular": lambda x: F.pad(x, (1, 2), mode="circular").flatten(1),
    "max_unpool2d": lambda x: torch.ops.aten.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), [4, 6]).flatten(1),
    "feature_dropout": lambda x: torch.feature_dropout(x, 0.5, False).flatten(1),
    "dist": lambda x: torch.dist(x, x + 1) + x,
    "frobenius": lambda x: torch.ops.aten.frobenius_norm.dim(x, [1, 2], True).flatten(1),
    "sum_to_size": lambda x: x.sum_to_size(1, 6) + 1,
    "trapezoid": lambda x: torch.trapezoid(x, dim=1) + 1,
    "trapezoid of places": lambda x: torch.trapezoid(x, torch.arange(6.0)) + 1,
    "cumulative_trapezoid": lambda x: torch.cumulative_trapezoid(x, dx=0.5, dim=1).flatten(1),
    "bincount": lambda x: torch.bincount(torch.tensor([1, 3, 3])) + 1,
    "histc": lambda x: torch.histc(x[0], 5, -2, 2) + 1,
    "nanmedian": lambda x: torch.nanmedian(x, 1)[0] + torch.nanmedian(x[0]),
    "quantile": lambda x: torch.quantile(x, 0.3, dim=2) + 1,
    "quantiles": lambda x: torch.quantile(x, torch.tensor([0.3, 0.8]), dim=1, keepdim=True).flatten(1),
    "nanquantile": lambda x: torch.nanquantile(x[0], 0.5) + x,
    "atleast": lambda x: torch.atleast_3d(x[0]) + torch.atleast_2d(x[0, 0, :1]) + torch.atleast_1d(x[0, 0, 0]),
    "as_strided": lambda x: (x[0] * 2).as_strided([3, 2], [2, 1]) + 1,
    "root of a size": grid,
    "arange of whole floats": lambda x: (
        torch.arange(4, -6, -2.0, dtype=torch.int64).unsqueeze(1).expand(-1, len(x)) + 1
    ),
    "size that folding tells": lambda x: (
        torch.arange(0.25, 2.0, 0.5).unsqueeze(1).expand(-1, x.shape[0]) + torch.ones(4, x.shape[0])
    ),
    "conv of a mode": lambda x: F.conv1d(x, torch.ones(2, 4, 3), padding="same").flatten(1),
}

# Each takes a tensor of [4, 6]: what as_strided gives depends on how PyTorch has it in memory.
STRIDED: dict[str, Callable[[Tensor], Any]] = {
    "sum of a transposed tensor": lambda x: (x.t() + 1).as_strided([3, 2], [2, 1]),
    "relu of a transposed tensor": lambda x: torch.relu(x.t()).as_strided([2, 3], [7, 1], 2),
    "transposed": lambda x: (x * 2).t().as_strided([3, 2], [2, 1]),
    "copy of a transposed tensor": lambda x: x.t().clone().as_strided([3, 2], [2, 1]),
    "in order": lambda x: x.t().contiguous().as_strided([3, 2], [2, 1]),
    "reshaped by a copy": lambda x: x.t().reshape(2, -1).as_strided([3, 2], [2, 1]),
    "reshaped as it lies": lambda x: x.view(2, 2, 6).transpose(1, 2).reshape(2, 3, 2, 2).as_strided([3, 4], [2, 1]),
    "part": lambda x: x[1:, 2].as_strided([3, 2], [2, 1]),
    "part by a place": lambda x: x[1:].as_strided([3, 2], [2, 1], 5),
    "product": lambda x: (x @ x.t()).t().as_strided([3, 2], [2, 1]),
    "written before": lambda x: x.t().clone().add_(1).t().as_strided([2, 5], [3, 2]),
}

# PyTorch does not leave these row by row in memory.
OWN_LAYOUT: dict[str, Callable[[Tensor], Any]] = {
    "inverse": lambda x: torch.linalg.inv(x[:, :4]).as_strided([3, 2], [2, 1]),
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.t() + torch.eye(4)).as_strided([3, 2], [2, 1]),
    "solution": lambda x: torch.linalg.solve(x[:, :4], x).as_strided([3, 2], [2, 1]),
    "places": lambda x: torch.nonzero(x > -99).as_strided([3, 2], [2, 1]),
    "turned": lambda x: torch.rot90(x).as_strided([3, 2], [2, 1]),
    "product": lambda x: torch.einsum("ij,jk->ki", x, x.t()).as_strided([3, 2], [2, 1]),
    "spectrum": lambda x: torch.view_as_real(torch.fft.fft(x, dim=0)).as_strided([3, 2], [2, 1]),
}


class Of(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


@pytest.mark.parametrize("name", OPERATORS)
def test_what_an_operator_gives(cli: Cli, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.trace(Of(OPERATORS[name]), rand(3, 4, 6), check_trace=False)  # type: ignore[no-untyped-call]
    torch.jit.save(module, "m.pt")
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "x:-1,4,6")
    assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    for batch in (3, 5):
        x = rand(batch, 4, 6)
        got = session.run(None, {"x": x.numpy()})[0]
        np.testing.assert_allclose(got, module(x).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", STRIDED)
def test_memory_that_strides_look_at(cli: Cli, name: str) -> None:
    x = rand(4, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.trace(Of(STRIDED[name]), x, check_trace=False)  # type: ignore[no-untyped-call]
    torch.jit.save(module, "m.pt")
    for target in ("m.onnx", "m.py"):
        done = cli("convert", "m.pt", target)
        assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    want = module(x)
    np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], want.numpy(), rtol=1e-5)
    torch.testing.assert_close(load(Path("m.py"))(x), want)


@pytest.mark.parametrize("name", OWN_LAYOUT)
def test_memory_that_is_not_row_by_row_is_not_known(cli: Cli, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.trace(Of(OWN_LAYOUT[name]), rand(4, 6), check_trace=False)  # type: ignore[no-untyped-call]
    torch.jit.save(module, "m.pt")
    done = cli("convert", "m.pt", "m.onnx")
    assert done.returncode == 2
    assert "as_strided of a view, whose strides are not known" in done.stderr


def test_memory_of_open_sizes_is_not_known(cli: Cli) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.trace(Of(STRIDED["transposed"]), rand(4, 6), check_trace=False)  # type: ignore[no-untyped-call]
    torch.jit.save(module, "m.pt")
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "x:-1,6")
    assert done.returncode == 2
    assert "as_strided of a view, whose strides are not known" in done.stderr

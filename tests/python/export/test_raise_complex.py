"""Operators on complex numbers, whose parts ONNX holds in a last dimension of their own: aten -> ONNX.

All sizes are 2, as that of the pairs: what takes them for another dimension gives a wrong result, and no error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from export_checks import check
from torch import nn
from torch.nn import functional as F

PLACES = torch.tensor([[[0, 1], [1, 0]], [[1, 1], [0, 0]]])
MASK = PLACES.bool()
ORDER = torch.tensor([1, 0])

# numbers that are moved, or added up
MOVED: dict[str, Callable[..., Any]] = {
    "sum": lambda z: z.sum(),
    "sum_dims": lambda z: z.sum((0, -1)),
    "sum_keepdim": lambda z: z.sum(1, keepdim=True),
    "mean": lambda z: z.mean(),
    "mean_dim": lambda z: z.mean(-1, keepdim=True),
    "cumsum": lambda z: z.cumsum(-1),
    "tril": lambda z: z.tril(),
    "triu": lambda z: z.triu(1),
    "diagonal": lambda z: torch.diagonal(z, dim1=1, dim2=2),
    "diag_embed": lambda z: torch.diag_embed(z[0]),
    "trace": lambda z: z[0].trace(),
    "masked_fill": lambda z: z.masked_fill(MASK, 2.0),
    "masked_fill_complex": lambda z: z.masked_fill(MASK, 2.0 + 1j),
    "where": lambda z: torch.where(MASK, z, -z),
    "where_real": lambda z: torch.where(MASK, z, z.real),
    "where_number": lambda z: torch.where(MASK, z, 1.5),
    "where_one": lambda z: torch.where(MASK[0, 0], z, -z),
    "gather": lambda z: z.gather(1, PLACES),
    "scatter": lambda z: z.scatter(1, PLACES[:, :1], z[:, 1:]),
    "scatter_add": lambda z: z.scatter_add(1, PLACES, z),
    "take": lambda z: z.take(PLACES),
    "index_put": lambda z: z.index_put((ORDER,), z),
    "index_put_mask": lambda z: torch.index_put(z, (MASK,), torch.tensor(3 + 1j)),
    "index_add": lambda z: z.index_add(1, ORDER, z, alpha=3),
    "index_copy": lambda z: z.index_copy(1, ORDER, z),
    "index_fill": lambda z: z.index_fill(1, ORDER[:1], 2.0),
    "masked_select": lambda z: z.masked_select(MASK),
    "masked_scatter": lambda z: z.masked_scatter(MASK, z),
    "pad": lambda z: F.pad(z, (1, 0, 0, 2), value=1.0),
    "repeat_interleave": lambda z: z.repeat_interleave(2, -1),
    "diff": lambda z: z.diff(dim=1),
    "slice_scatter": lambda z: torch.slice_scatter(z, z[:, :1], 1, 1, 2),
    "select_scatter": lambda z: torch.select_scatter(z, z[0], 0, 1),
    "diagonal_scatter": lambda z: torch.diagonal_scatter(z, z[0], 0, 1, 2),
    "zeros_like": lambda z: torch.zeros_like(z) + z,
    "ones_like": lambda z: torch.ones_like(z) + z,
    "full_like": lambda z: torch.full_like(z, 2 + 1j) * z,
    "new_ones": lambda z: z.new_ones(2, 2) * z,
    "full": lambda z: torch.full((2, 2), 1 + 2j) * z,
    "eye": lambda z: torch.eye(2, dtype=torch.complex64) * z,
}
PRODUCTS: dict[str, Callable[..., Any]] = {
    "matmul": lambda z: z @ z,
    "matmul_real": lambda z: z @ z.real.to(z.dtype),
    "bmm": lambda z: torch.bmm(z, z),
    "mm": lambda z: torch.mm(z[0], z[1]),
    "mv": lambda z: torch.mv(z[0], z[0, 0]),
    "dot": lambda z: torch.dot(z[0, 0], z[1, 0]),
    "outer": lambda z: torch.outer(z[0, 0], z[1, 1]),
    "kron": lambda z: torch.kron(z[0], z[1]),
    "inner": lambda z: torch.inner(z[0], z[1]),
    "tensordot": lambda z: torch.tensordot(z, z, dims=1),
    "einsum": lambda z: torch.einsum("bij,bjk->bki", z, z),
    "einsum_of_three": lambda z: torch.einsum("bij,bjk,bk->bi", z, z, z[0]),
    "einsum_of_one": lambda z: torch.einsum("bij->bji", z),
    "linear": lambda z: F.linear(z, z[0], z[1, 0]),
    "conv1d": lambda z: F.conv1d(z, z, z[0, 0]),
    "conv1d_without_batch": lambda z: F.conv1d(z[0], z, z[0, 0]),
    "conv2d": lambda z: F.conv2d(z[None], z[None]),
    "cross": lambda z: torch.linalg.cross(torch.cat([z, z], 1)[:, :3], torch.cat([z, z], 1)[:, 1:], dim=1),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: (lambda f: lambda z: f(z))(getattr(torch, name))
    for name in (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
        *("sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid", "sgn", "square", "reciprocal"),
    )
}
POWERS: dict[str, Callable[..., Any]] = {
    "3": lambda z: z**3,
    "-1": lambda z: z**-1,
    "-4": lambda z: z**-4,
    "7": lambda z: z**7,
    "0": lambda z: z**0,
    "half": lambda z: z**0.5,
    "2.5": lambda z: z**2.5,
    "complex number": lambda z: z ** (1 + 1j),
    "complex": lambda z: z**z,
    "real": lambda z: z**z.real,
    "of a number": lambda z: 2**z,
    "of a real": lambda z: z.real.abs() ** z,
}
QUESTIONS: dict[str, Callable[..., Any]] = {
    "isnan": lambda z: (z / z).isnan(),
    "isinf": lambda z: z.isinf(),
    "isfinite": lambda z: (z / z).isfinite(),
    "nonzero": lambda z: z.nonzero(),
    "any": lambda z: z.any(),
    "all": lambda z: z.all(1),
    "logical_not": lambda z: z.logical_not(),
    "logical_and": lambda z: z.logical_and(z.conj()),
    "count_nonzero": lambda z: torch.count_nonzero(z, 1),
    "var": lambda z: z.var(),
    "std": lambda z: z.std(1, unbiased=False),
}
ALL = {
    f"{kind} {name}": function
    for kind, cases in {
        "moved": MOVED,
        "product": PRODUCTS,
        "function": FUNCTIONS,
        "power": POWERS,
        "question": QUESTIONS,
    }.items()
    for name, function in cases.items()
}


@pytest.mark.parametrize("name", ALL)
def test_complex(name: str) -> None:
    torch.manual_seed(0)

    def function(pairs: torch.Tensor) -> torch.Tensor:
        y = ALL[name](torch.view_as_complex(pairs))
        return torch.view_as_real(y.resolve_conj()) if y.is_complex() else y

    with_zeros = torch.randn(2, 2, 2, 2)
    with_zeros[0, 1] = 0
    question = name.startswith("question") and "var" not in name
    check(function, torch.randn(2, 2, 2, 2), also=[(with_zeros,)] if question else [], atol=1e-4)


@pytest.mark.parametrize("name", ["det", "matrix_power", "var_mean"])
def test_what_is_no_operator_on_parts_is_refused(name: str) -> None:
    refused: dict[str, Callable[..., Any]] = {
        "det": torch.linalg.det,
        "matrix_power": lambda z: torch.linalg.matrix_power(z, 2),
        "var_mean": lambda z: torch.var_mean(z, 1)[0],
    }

    def function(pairs: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(refused[name](torch.view_as_complex(pairs)) + 0j)

    with pytest.raises(Exception, match="complex numbers"):
        check(function, torch.randn(2, 2, 2, 2))


class Layers(nn.Module):
    """Complex layers, and products of some of the frequencies of a signal."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(9, 9, dtype=torch.complex64)
        self.conv = nn.Conv1d(3, 3, 3, padding=1, dtype=torch.complex64)
        self.weight = nn.Parameter(torch.randn(3, 3, 5, dtype=torch.complex64))

    def forward(self, x):
        z = torch.fft.rfft(x)
        low = torch.zeros(x.shape[0], 3, 9, dtype=torch.complex64)
        low[:, :, :5] = torch.einsum("bix,iox->box", z[:, :, :5], self.weight)
        return torch.fft.irfft(self.conv(self.linear(z)) + low, n=16)


def test_complex_layers_of_an_open_batch() -> None:
    torch.manual_seed(0)
    batch = torch.export.Dim("batch")
    check(Layers(), torch.randn(2, 3, 16), dynamic=[{0: batch}], also=[(torch.randn(5, 3, 16),)])

"""Modules that write to tensors, their views and out= arguments: ONNX Runtime gives what eager PyTorch gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

CASES: dict[str, Callable[..., Any]] = {}
DYNAMIC: dict[str, Callable[..., Any]] = {}


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    CASES[function.__name__] = function
    return function


def dynamic(function: Callable[..., Any]) -> Callable[..., Any]:
    DYNAMIC[function.__name__] = function
    return function


class Written(nn.Module):
    """Calls a function of itself and its inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("four", torch.arange(4.0))
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


# x is of 4 rows and 6 columns


@case
def slices_with_steps(self: Any, x: Tensor) -> Any:
    y = x.clone()
    y[1:3, ::2] += 1
    y[..., -1] = 7
    return y


@case
def transposed(self: Any, x: Tensor) -> Any:
    x.t().zero_()
    return x + 1


@case
def input_itself(self: Any, x: Tensor) -> Any:
    x.add_(1)
    row = x[1]
    row.zero_()
    return x * 1, row * 1


@case
def buffers(self: Any, x: Tensor) -> Any:
    self.four[1:3] = 5
    self.count.add_(2)
    return x[:, :4] + self.four, self.count * 1


@case
def chunks(self: Any, x: Tensor) -> Any:
    y = x * 2
    a, b = y.chunk(2, 1)
    a.mul_(2)
    b += a
    return y, a, b


@case
def uneven_parts(self: Any, x: Tensor) -> Any:
    y = x * 2
    y.split([2, 4], 1)[1].sub_(1)
    y.tensor_split(4, 1)[0].fill_(1)
    y.hsplit(2)[1].neg_()
    return y


@case
def elements(self: Any, x: Tensor) -> Any:
    y = x.clone()
    a, b, c, d = y.unbind(0)
    a += 1
    b.mul_(a)
    c.copy_(b)
    d.zero_()
    return y, b


@case
def masks(self: Any, x: Tensor) -> Any:
    y = x.clone()
    y[y > 0] = 0
    y.masked_fill_(y < -1, 3)
    y[y < 0] *= 2
    return y


@case
def lists_of_indices(self: Any, x: Tensor) -> Any:
    y = x.clone()
    y[:, torch.tensor([0, 2])] = 5.0
    y[torch.tensor([0, 2]), 1:3] = 9
    y[:, [1, 0]] = y[:, [0, 1]]
    return y


@case
def rows_of_constants(self: Any, x: Tensor) -> Any:
    y = x.clone()
    y[1] = torch.arange(6.0)
    y[2:, -2:] = torch.tensor([[1.0], [2.0]])
    y[None, 0] = 3
    return y


@case
def read_then_written(self: Any, x: Tensor) -> Any:
    y = x.clone()
    before = y[0] + 1
    y[0] = 9
    return before, y[0] + 1


@case
def other_view(self: Any, x: Tensor) -> Any:
    y = x.clone()
    row, column = y[0], y[:, 0]
    row.add_(5)
    return column, row, y.sum()


@case
def view_of_view(self: Any, x: Tensor) -> Any:
    y = x.clone()
    view = y.view(2, 2, 6).transpose(0, 1)[1].permute(1, 0)[2:5]
    view.mul_(10)
    row = y[2]
    view.add_(row[:3].unsqueeze(1))
    return y, view, row


@case
def views_outlive_the_whole(self: Any, x: Tensor) -> Any:
    y = x.clone()
    row = y[0]
    part = row[1:3]
    y.zero_()
    part.add_(1)
    row.mul_(2)
    return y, row, part


@case
def reshaped(self: Any, x: Tensor) -> Any:
    y = x * 2
    y.reshape(-1)[3] = 1
    y.flatten()[2:4].fill_(3)
    y.view(-1, 2).unbind(1)[0].copy_(torch.arange(12))
    y.unflatten(1, (2, 3))[:, 1].abs_()
    return y


@case
def reshape_that_copies(self: Any, x: Tensor) -> Any:
    y = x * 2
    a = y.t().reshape(-1)
    a.add_(1)
    b = y[:, 1:3].flatten()
    b.zero_()
    c = y.t().contiguous()
    c.zero_()
    d = y[1:3].reshape(-1)  # rows lie behind each other: no copy
    d.add_(100)
    return y, a, b, c, d


@case
def diagonals(self: Any, x: Tensor) -> Any:
    y = x[:, :4].clone()
    y.diagonal(1).add_(1)
    y.fill_diagonal_(2)
    y.view(2, 2, 2, 2).diagonal(0, 1, 2).zero_()
    return y


@case
def sizes_of_one(self: Any, x: Tensor) -> Any:
    y = x.clone().unsqueeze(1).unsqueeze(0)
    y.squeeze()[1] = 2
    y.squeeze((0, 2))[2] = 3
    y.squeeze(2)[0, 3] += 4
    y.movedim(3, 0)[0] = 9
    y.flatten(1, 2)[0, 0, 0] = 1
    return y


@case
def turned_in_place(self: Any, x: Tensor) -> Any:
    y = x * 2
    y.unsqueeze_(0)
    y.squeeze_(0)
    y.t_()
    y.T[0] = 1
    y.mT[0, 0] = 3
    return y


@case
def narrowed(self: Any, x: Tensor) -> Any:
    y = x.clone()
    y.narrow(0, 1, 2).add_(1)
    y.narrow(1, -2, 2).zero_()
    return y


@case
def swapped(self: Any, x: Tensor) -> Any:
    y = x.clone()
    first = y[0].clone()
    y[0] = y[1]
    y[1] = first
    alias = y[2]
    y[2] = y[3]
    y[3] = alias
    return y


@case
def loops(self: Any, x: Tensor) -> Any:
    y = torch.zeros(4, 6)
    for i in range(4):
        for j in range(3):
            y[i, j] = x[i, j] * 2
    z = y.t()
    for i in range(6):
        z[i] += z[0]
    return y, z


@case
def everything_overwritten(self: Any, x: Tensor) -> Any:
    y = torch.empty(4, 6)
    for i in range(4):
        y[i] = x[i] * i
    y[:] = y[...] + x
    return y


@case
def broadcast_sources(self: Any, x: Tensor) -> Any:
    y, z = x.clone(), x.clone()
    y.copy_(x[0])
    z[:] = x[:, :1]
    z[1:3] = torch.tensor(5)
    return y, z


@case
def copies_stay(self: Any, x: Tensor) -> Any:
    y = x * 1
    z = y.clone()
    y.add_(1)
    same = y.detach()
    same.mul_(2)
    wide = y.expand(2, 4, 6)
    y[1] = 4
    return y, z, same, wide


@case
def evaluated_dropout(self: Any, x: Tensor) -> Any:
    y = x * 1
    z = functional.dropout(y, 0.5, training=False)
    z.add_(1)
    w = z.to(torch.float32)
    w.mul_(2)
    return y, z, w


@case
def activations(self: Any, x: Tensor) -> Any:
    y = x + 1
    z = functional.relu(y, inplace=True)
    return y, z, functional.hardtanh_(x - 1), functional.leaky_relu_(x - 2)


@case
def without_gradients(self: Any, x: Tensor) -> Any:
    y = x * 1
    with torch.no_grad():
        y[0] = 1
        z = y + 1
    y.add_(1)
    return y, z


@case
def arithmetic(self: Any, x: Tensor) -> Any:
    y = x.clone().abs_().sqrt_().pow_(2).div_(3).clip_(0, 1)
    y.addcmul_(x, x).lerp_(x, 0.5).multiply_(2).subtract_(1)
    return y.tril_()


@case
def scattered(self: Any, x: Tensor) -> Any:
    y = x.clone()
    y.index_add_(0, torch.tensor([0, 1]), x[:2])
    y.scatter_(1, torch.tensor([[0], [1], [2], [3]]), 5.0)
    y.index_fill_(0, torch.tensor([3]), 2.0)
    return y


@case
def types_stay(self: Any, x: Tensor) -> Any:
    ints = (x * 10).to(torch.int32)
    ints.add_(torch.ones(6, dtype=torch.int64))
    equal = x.clone().gt_(0.0)
    wide = x.double()
    wide.copy_(ints)
    half = x.half()
    half.add_(x)
    return ints, equal, wide, half


@case
def bits(self: Any, x: Tensor) -> Any:
    y = (x * 10).to(torch.int64).abs_()
    y |= 1
    y &= 7
    y <<= 1
    y ^= 3
    flags = y > 2
    flags |= y == 3
    return y, flags


@case
def out_arguments(self: Any, x: Tensor) -> Any:
    empty = torch.empty(0)
    torch.add(x, x, out=empty)
    values, indices = torch.empty(4), torch.empty(4, dtype=torch.int64)
    torch.max(x, 1, out=(values, indices))
    return empty, values, indices


@case
def out_views(self: Any, x: Tensor) -> Any:
    y = torch.zeros(8, 6)
    torch.mul(x, 2, out=y[::2])
    torch.cat([x[:2], x[:2]], out=y[1::2])
    z = torch.empty(6, 4)
    torch.sub(x, 1, out=z.t())
    return y, z


@case
def out_types(self: Any, x: Tensor) -> Any:
    wide = torch.empty(4, 6, dtype=torch.float64)
    torch.mul(x, 2, out=wide)
    sums = torch.empty(4, dtype=torch.float64)
    torch.sum(x, 1, out=sums)
    flags = torch.empty(4, 6, dtype=torch.bool)
    torch.lt(x, 0, out=flags)
    return wide, sums, flags


# here the number of rows is not known


@dynamic
def rows(self: Any, x: Tensor) -> Any:
    y = x.clone()
    y[0] = 1
    y[-1] = x[0]
    y[1:-1] *= 2
    y.t()[2] = 0
    return y


@dynamic
def flat(self: Any, x: Tensor) -> Any:
    y = x * 2
    y.view(-1)[2:] += 1
    y.reshape(-1, 3).t().zero_()
    y[x.shape[0] - 2 :].copy_(x[0])
    return y


@dynamic
def columns(self: Any, x: Tensor) -> Any:
    y = torch.zeros(x.shape[0], 8)
    y[:, :6] = x
    y[:, 6:] = 1
    return y


@dynamic
def grouped(self: Any, x: Tensor) -> Any:
    y = x.clone()
    y.reshape(x.shape[0], 2, 3).permute(1, 0, 2)[0].mul_(3)
    a, b = y.split([2, 4], 1)
    a.add_(b[:, :2])
    return y, a


@dynamic
def lengths(self: Any, x: Tensor) -> Any:
    y = x.clone()
    y.narrow(0, 1, x.shape[0] - 1).fill_(3)
    z = torch.empty_like(x)
    torch.mul(x, 2, out=z)
    return y, z


def compare(cli: Any, folder: Path, function: Callable[..., Any], inputs: list[Tensor], sizes: Any = None) -> None:
    program = torch.export.export(Written(function).eval(), (inputs[0].clone(),), dynamic_shapes=sizes)
    torch.export.save(program, folder / "m.pt2")
    done = cli("convert", folder / "m.pt2", folder / "m.onnx")
    assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession(folder / "m.onnx", providers=["CPUExecutionProvider"])
    for x in inputs:
        wanted = Written(function).eval()(x.clone())
        wanted = [wanted] if isinstance(wanted, Tensor) else list(wanted)
        found = session.run(None, {each.name: x.numpy() for each in session.get_inputs()})
        assert len(found) == len(wanted)
        for got, want in zip(found, wanted, strict=True):
            assert got.dtype == want.numpy().dtype
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_writes(name: str, cli: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    compare(cli, tmp_path, CASES[name], [torch.randn(4, 6)])


@pytest.mark.parametrize("name", DYNAMIC)
def test_writes_of_dynamic_sizes(name: str, cli: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(5, 6), torch.randn(8, 6)]
    compare(cli, tmp_path, DYNAMIC[name], inputs, ({0: torch.export.Dim("n", min=4, max=100)},))

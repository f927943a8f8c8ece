"""Branches, loops and numbers that depend on data: ONNX Runtime gives what PyTorch gives."""

import pytest
import torch
from export_checks import check
from torch._higher_order_ops import map as over
from torch._higher_order_ops import scan, while_loop

X = torch.rand(3, 4)


def branch(x):
    return torch.cond(x.sum() > 0, lambda x, y: (x * 2 + y, y - 1), lambda x, y: (x - 3, y + 1), (x, x[0] * 1))


def nested(x):
    def inner(x):
        return torch.cond(x.max() > 2, lambda x: x + 1, lambda x: x.sin(), (x,))

    return torch.cond(x.sum() > 0, inner, lambda x: x.clone(), (x,))


def loop(x):
    start = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5 - 1), (start, x))


def no_turn(x):
    return while_loop(lambda x: x.sum() > 1000, lambda x: (x * 2,), (x,))


def scanned(x):
    return scan(lambda carry, row: (carry + row, carry * row), x[0], x)


def mapped(x):
    return over(lambda row, all: row + all.sum(), x, x + 1)


def switched_off(x):
    with torch.no_grad():
        return x * 2


@pytest.mark.parametrize("function", [branch, nested, loop, no_turn, scanned, mapped, switched_off])
@pytest.mark.parametrize("opset", [None, 13])
def test_static(function, opset):
    check(function, X, also=[(-X,), (X * 5,)], opset=opset)


@pytest.mark.parametrize("function", [branch, loop, scanned, mapped])
def test_sizes_at_run_time(function):
    check(function, X, dynamic=({0: torch.export.Dim("n", min=2)},), also=[(torch.rand(7, 4),)])


def test_numbers():
    def function(x, i):
        n = i.item()
        torch._check(n >= 0)
        torch._check(n < 3)
        m = x.size(0) * 2 + n
        return x + n, x * (n * 3), x[n], torch.full((2,), m), x.narrow(0, n, 1), torch.tensor(1) * (m // 3)

    check(function, X, torch.tensor(2), also=[(X, torch.tensor(0))])


def test_sizes_of_what_is_found():
    def function(x):
        found = x[x > 0.5]
        return found * 2, torch.zeros(found.size(0)) + 1, found.reshape(-1, 1), torch.arange(found.numel())

    check(function, X, also=[(X - 0.3,)])

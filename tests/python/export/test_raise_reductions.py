"""Reductions, running sums, new tensors and random numbers: ONNX Runtime against PyTorch."""

import export_checks
import pytest
import torch

torch.manual_seed(1)
X = torch.randn(2, 3, 4)
NAN = torch.tensor([[1.0, float("nan"), 3.0], [float("nan"), 2.0, -1.0]])


def reductions(x):
    return (
        x.sum(), x.sum(1), x.sum((0, -1), keepdim=True), x.sum([]), x.mean(), x.mean(-1, keepdim=True), x.prod(),
        x.prod(1), x.amax(), x.amax((0, 2)), x.amin(1, keepdim=True), x.max(), x.min(), *x.max(1), *x.min(-1, keepdim=True),
        *torch.aminmax(x, dim=0), x.argmax(), x.argmax(1), x.argmin(-1, keepdim=True), x.argmax(keepdim=True), x.std(),
        x.std(1), x.var(0, unbiased=False), torch.var(x, (0, 1), correction=2, keepdim=True), *torch.var_mean(x, 1),
        *torch.std_mean(x), x.norm(), torch.norm(x, 1, dim=1), torch.linalg.vector_norm(x, 3, dim=(0, 1)),
        torch.linalg.vector_norm(x, float("inf")), torch.linalg.vector_norm(x, 0, dim=0), x.logsumexp(1),
        x.logsumexp((0, 2), keepdim=True), (x > 0).all(), (x > 0).any(1), (x > 0).all(-1, keepdim=True), x.any(),
        torch.count_nonzero(x > 0), torch.count_nonzero(x.relu(), 1), x.sum(1, dtype=torch.float64), (x > 0).sum(0),
        x.long().sum(), x.long().prod(1), torch.renorm(x, 2, 0, 0.5), x.sum_to_size(1, 4),
    )  # fmt: skip


@pytest.mark.parametrize("opset", [12, 13, None, 23])
def test_reductions(opset):
    export_checks.check(reductions, X, opset=opset)


def test_nan():
    export_checks.check(lambda x: (x.nansum(), x.nansum(1), x.nanmean(), x.nanmean(0, keepdim=True)), NAN)


def test_rank_zero():
    def scalar(x):
        return (
            x.sum(), x.sum(0), x.mean(), x.amax(), x.argmax(), *x.max(0), x.std(correction=0), x.logsumexp(0), x.norm(1),
            x.cumsum(0), *x.cummax(0), (x > 0).any(), x.prod(),
        )  # fmt: skip

    export_checks.check(scalar, torch.tensor(-1.5))


def test_nothing():
    export_checks.check(
        lambda x: (x.sum(), x.sum(0), x.mean(), x.mean(0), x.prod(), x.any(), x.all(), x.var(0)), torch.zeros(0, 3)
    )


def test_dynamic():
    n = torch.export.Dim("n", min=2, max=64)
    also = [(torch.randn(7, 3, 4),)]

    def sized(x):
        return x.var(0), x.std((0, 1)), x.mean(0), x.argmax(), x.cumsum(0), x.cumprod(0), torch.logcumsumexp(x, 0)

    export_checks.check(sized, X, dynamic=({0: n},), also=also)


def scans(x):
    y = x.sigmoid()
    return (
        x.cumsum(1), x.cumsum(-1, dtype=torch.float64), y.cumprod(0), y.cumprod(-1), *x.cummax(1), *x.cummin(-1),
        torch.logcumsumexp(x, 1), torch.diff(x), torch.diff(x, 2, 1), torch.diff(x, prepend=x[..., :1]),
        torch.diff(x > 0, dim=0), torch.trapezoid(x), torch.trapezoid(x, dx=0.5, dim=1), torch.trapezoid(x, y.cumsum(-1)),
        torch.trapezoid(x, torch.tensor([0.0, 1.0, 3.0]), dim=1), torch.cumulative_trapezoid(x), (x > 0).cumsum(0),
    )  # fmt: skip


@pytest.mark.parametrize("opset", [12, None, 26])
def test_scans(opset):
    export_checks.check(scans, X, opset=opset)


def test_scan_nan():
    export_checks.check(lambda x: (*x.cummax(1), *x.cummin(1)), NAN)


def test_creation():
    def creation(x):
        n = x.size(0)
        return (
            torch.zeros(n, 2), torch.ones(2, n, dtype=torch.int32), torch.full((n,), 2.5), torch.full((2,), True),
            torch.zeros_like(x), torch.ones_like(x, dtype=torch.int64), torch.full_like(x, 3), x.new_zeros(n),
            x.new_full((2, n), 7), x.new_ones(3), torch.arange(n), torch.arange(1, n + 1), torch.arange(0.5, 3, 0.7),
            torch.arange(5, 0, -1), torch.eye(n), torch.eye(n, 3, dtype=torch.int64), torch.linspace(0, 1, 7),
            torch.linspace(3, -1, 4), torch.logspace(0, 2, 5), torch.tril_indices(3, 4, 1), torch.triu_indices(3, 3),
            torch.hann_window(8), torch.hamming_window(7, periodic=False), torch.blackman_window(6),
            torch.bartlett_window(5), torch.scalar_tensor(3), torch.fill(x, 4),
        )  # fmt: skip

    export_checks.check(
        creation, X, dynamic=({0: torch.export.Dim("n", min=2, max=64)},), also=[(torch.randn(5, 3, 4),)]
    )


def test_random():
    def random(x):
        return (
            torch.rand(1000), torch.randn(2000), torch.randint(3, 9, (500,)), torch.rand_like(x), torch.randn_like(x),
            torch.bernoulli(torch.full((1000,), 0.3)), torch.randperm(50), torch.normal(5.0, 0.1, (500,)),
            torch.nn.functional.dropout(torch.ones(1000), 0.25, training=True), torch.empty(300).uniform_(2, 3),
            torch.empty(2000).exponential_(2.0),
        )  # fmt: skip

    results = export_checks.run(export_checks.exported(random, X), X)
    uniform, normal, whole, _, _, drawn, order, around, dropped, between, waiting = results
    assert 0 <= uniform.min() < 0.1 and 0.9 < uniform.max() <= 1
    assert abs(normal.mean()) < 0.15 and abs(normal.std() - 1) < 0.1
    assert set(whole) == {3, 4, 5, 6, 7, 8}
    assert set(drawn) == {0, 1} and 0.2 < drawn.mean() < 0.4
    assert sorted(order) == list(range(50))
    assert abs(around.mean() - 5) < 0.05
    assert abs((dropped == 0).mean() - 0.25) < 0.1 and abs(dropped.max() - 4 / 3) < 1e-5
    assert 2 <= between.min() and between.max() <= 3
    assert abs(waiting.mean() - 0.5) < 0.1

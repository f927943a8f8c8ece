"""Matrix products, linear algebra and Fourier transforms: PyTorch -> ONNX."""

import pytest
import torch
import torch.nn.functional as F
from export_checks import check, exported
from torch import nn

import tonnx

torch.manual_seed(1)
A, B, C = torch.randn(3, 4), torch.randn(4, 5), torch.randn(3, 5)
BATCH_A, BATCH_B = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
U, V, W = torch.randn(4), torch.randn(4), torch.randn(3)
N = torch.export.Dim("n", min=2, max=64)


def ints(*sizes, dtype=torch.int64):
    return torch.randint(-50, 50, sizes).to(dtype)


PRODUCTS = [
    (torch.matmul, A, B),
    (torch.matmul, A, V),
    (torch.matmul, U, V),
    (torch.matmul, BATCH_A, B),
    (torch.matmul, A, BATCH_B),
    (torch.matmul, torch.randn(5, 1, 3, 4), BATCH_B),
    (torch.matmul, ints(3, 4), ints(4, 5)),
    (torch.matmul, ints(3, 4, dtype=torch.int8), ints(4, 5, dtype=torch.int8)),
    (torch.matmul, torch.randn(3, 0), torch.randn(0, 4)),
    (torch.mm, A, B),
    (torch.bmm, BATCH_A, BATCH_B),
    (torch.mv, A, V),
    (torch.dot, U, V),
    (torch.vdot, U, V),
    (torch.inner, A, torch.randn(5, 4)),
    (torch.inner, BATCH_A, torch.randn(2, 5, 4)),
    (torch.inner, A, torch.tensor(2.0)),
    (torch.outer, U, W),
    (torch.kron, A, torch.randn(2, 3)),
    (torch.kron, U, torch.randn(2, 3)),
    (torch.linalg.vecdot, A, V),
    (lambda a, b: torch.linalg.vecdot(a, b, dim=0), A, torch.randn(3, 1)),
    (lambda a, b: torch.tensordot(a, b, 1), A, B),
    (lambda a, b: torch.tensordot(a, b, ([1, 2], [2, 0])), BATCH_A, torch.randn(4, 6, 3)),
    (lambda a, b: torch.tensordot(a, b, 0), U, W),
    (lambda a, b: torch.linalg.multi_dot([a, b, b.T, a.T]), A, B),
    (lambda a, b: torch.linalg.multi_dot([a, b]), U, B),
]


@pytest.mark.parametrize("case", PRODUCTS)
def test_product(case):
    check(*case)


SUMS = [
    (torch.addmm, C, A, B),
    (torch.addmm, C[:1], A, B),
    (torch.addmm, C[0], A, B),
    (torch.addmm, torch.tensor(2.0), A, B),
    (torch.addmm, ints(3, 5), ints(3, 4), ints(4, 5)),
    (torch.addmv, W, A, V),
    (torch.addr, A, W, V),
    (torch.addbmm, C, BATCH_A, BATCH_B),
    (torch.baddbmm, C, BATCH_A, BATCH_B),
]


@pytest.mark.parametrize("case", SUMS)
@pytest.mark.parametrize("factors", [{}, {"beta": 2, "alpha": 3}, {"beta": 0}])
def test_product_and_sum(case, factors):
    function, first, *rest = case
    if factors.get("beta") == 0 and first.is_floating_point():
        first = first * torch.nan
    check(lambda *args: function(*args, **factors), first, *rest)


@pytest.mark.parametrize("x", [V, A, BATCH_A])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(x, bias):
    check(nn.Linear(4, 6, bias=bias).eval(), x, nodes=1 + (bias and x.dim() != 2))


def test_bilinear():
    check(nn.Bilinear(4, 5, 6).eval(), A, C)
    check(lambda a, b, w: F.bilinear(a, b, w), torch.randn(2, 3, 4), torch.randn(2, 3, 5), torch.randn(6, 4, 5))


@pytest.mark.parametrize("opset", [None, 12, 23])
@pytest.mark.parametrize(
    ("equation", "args"),
    [
        ("ij,jk->ik", (A, B)),
        ("ij,jk", (A, B)),
        ("ij", (A,)),
        ("ji", (A,)),
        ("ij->", (A,)),
        ("i,j->ij", (U, W)),
        ("bij,bjk->bik", (BATCH_A, BATCH_B)),
        ("...ij,...jk->...ik", (BATCH_A, B)),
        ("...ij,jk", (BATCH_A, B)),
        ("b...,b...->...b", (BATCH_A, torch.randn(2, 3, 4))),
        ("ij,jk,kl->il", (A, B, torch.randn(5, 2))),
        ("ii->i", (torch.randn(4, 4),)),
        ("ii", (torch.randn(4, 4),)),
        ("bnqd,bnkd->bnqk", (torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5))),
        ("ij,jk->ik", (ints(3, 4), ints(4, 5))),
    ],
)
def test_einsum(equation, args, opset):
    check(lambda *tensors: torch.einsum(equation, *tensors), *args, opset=opset)


def test_dynamic_products():
    check(torch.matmul, A, B, dynamic=[{0: N}, {}], also=[(torch.randn(7, 4), B)], nodes=1)
    check(lambda a, b: torch.einsum("ij,jk->ik", a, b), A, B, dynamic=[{0: N}, {}], also=[(torch.randn(7, 4), B)])
    check(nn.Linear(4, 6).eval(), A, dynamic=[{0: N}], also=[(torch.randn(7, 4),)], nodes=1)


def test_cross_and_vander():
    x, y = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    check(lambda a, b: torch.linalg.cross(a, b, dim=1), x, y)
    check(lambda a, b: torch.linalg.cross(a, b), torch.randn(2, 3), torch.randn(1, 3))
    check(lambda a, b: torch.cross(a, b), x, y)
    check(lambda a: torch.linalg.vander(a), U)
    check(lambda a: torch.linalg.vander(a, N=3), A)


SQUARE, SQUARES = torch.randn(5, 5), torch.randn(2, 3, 4, 4)
POSITIVE = SQUARE @ SQUARE.T + torch.eye(5)
LINALG = [
    (torch.linalg.inv, SQUARE),
    (torch.linalg.inv, SQUARES),
    (torch.linalg.inv, SQUARES.double()),
    (torch.linalg.inv, torch.tensor([[0.0, 1.0], [2.0, 0.0]])),
    (torch.linalg.solve, SQUARE, torch.randn(5, 2)),
    (torch.linalg.solve, SQUARE, torch.randn(5)),
    (torch.linalg.solve, SQUARES, torch.randn(2, 3, 4)),
    (torch.linalg.solve, SQUARES, torch.randn(3, 4, 2)),
    (lambda a, b: torch.linalg.solve(a, b, left=False), SQUARE, torch.randn(2, 5)),
    (torch.linalg.det, SQUARES),
    (torch.linalg.det, SQUARE.double()),
    (torch.linalg.det, torch.ones(3, 3)),
    (lambda a: tuple(torch.linalg.slogdet(a)), SQUARES),
    (lambda a: tuple(torch.linalg.slogdet(a)), torch.ones(3, 3)),
    (torch.logdet, POSITIVE),
    (torch.linalg.cholesky, POSITIVE),
    (lambda a: torch.linalg.cholesky(a, upper=True), POSITIVE),
    (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), SQUARE + 3 * torch.eye(5), torch.randn(5, 2)),
    (lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True), SQUARE, torch.randn(5, 2)),
    (lambda a, b: torch.cholesky_solve(b, a), torch.linalg.cholesky(POSITIVE), torch.randn(5, 2)),
    (torch.cholesky_inverse, torch.linalg.cholesky(POSITIVE)),
    (lambda a: torch.linalg.matrix_power(a, 5), SQUARE),
    (lambda a: torch.linalg.matrix_power(a, 0), SQUARES),
    (lambda a: torch.linalg.matrix_power(a, -2), SQUARE),
    (torch.linalg.matrix_exp, SQUARES),
    (torch.linalg.matrix_exp, 8 * SQUARE),
    (torch.linalg.matrix_exp, torch.zeros(3, 3)),
    (torch.linalg.tensorinv, torch.randn(2, 3, 6)),
]


@pytest.mark.parametrize("case", LINALG)
def test_linalg(case):
    check(*case, rtol=2e-3, atol=1e-3)


def test_linalg_opsets():
    for opset in (11, 13, 23):
        check(torch.linalg.inv, SQUARES, opset=opset, rtol=2e-3, atol=1e-3)


def test_what_onnx_lacks_is_refused_with_a_reason():
    with pytest.raises(tonnx.Error, match="linalg_svd, 1 time: ONNX has no operator for it"):
        exported(lambda a: tuple(torch.linalg.svd(a)), SQUARE)


X = torch.randn(2, 6, 9)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(
    "there_and_back",
    [
        lambda x, norm: torch.fft.irfft(torch.fft.rfft(x, norm=norm), n=9, norm=norm),
        lambda x, norm: torch.fft.irfft(torch.fft.rfft(x, n=5, dim=1), dim=1, norm=norm),
        lambda x, norm: torch.fft.irfft(torch.fft.fft(x, norm=norm), n=12, norm=norm),
        lambda x, norm: torch.fft.irfft(torch.fft.ifft(x, n=4, norm=norm)),
        lambda x, norm: torch.fft.irfft2(torch.fft.rfft2(x, norm=norm), s=(6, 9)),
        lambda x, norm: torch.fft.irfft2(torch.fft.rfft2(x), norm=norm),
        lambda x, norm: torch.fft.irfftn(torch.fft.fftn(x, norm=norm), norm=norm),
        lambda x, norm: torch.fft.irfftn(torch.fft.ifftn(x, s=(4, 10), dim=(0, 2), norm=norm)),
        lambda x, norm: torch.fft.hfft(x, norm=norm),
        lambda x, norm: torch.fft.hfft(x, n=7, dim=1, norm=norm),
        lambda x, norm: torch.fft.irfft(torch.fft.ihfft(x, norm=norm)),
        lambda x, norm: torch.fft.hfftn(torch.fft.ihfftn(x, norm=norm), norm=norm),
        lambda x, norm: torch.fft.hfft2(torch.fft.ihfft2(x, norm=norm), norm=norm),
        lambda x, norm: torch.view_as_real(torch.fft.fft(x, norm=norm)),
    ],
)
def test_fft(there_and_back, norm):
    check(lambda x: there_and_back(x, norm), X)


@pytest.mark.parametrize("opset", [17, 20, 23])
def test_fft_opsets(opset):
    check(lambda x: torch.fft.irfft(torch.fft.rfft(x)), X[..., :8], opset=opset)


def test_dynamic_fft():
    auto = torch.export.Dim.AUTO
    check(
        lambda x: torch.fft.irfft(torch.fft.fft(x, norm="ortho"), n=x.shape[2], norm="ortho"),
        X,
        dynamic=[{0: auto, 2: auto}],
        also=[(torch.randn(3, 6, 12),)],
    )


def test_short_time_transform():
    window = torch.hann_window(16)
    signal = torch.randn(2, 100)

    def spectrum(x, **options):
        return torch.view_as_real(torch.stft(x, 16, window=window, return_complex=True, **options))

    for options in ({}, {"hop_length": 5, "center": False}, {"normalized": True, "onesided": False}):
        check(lambda x, options=options: spectrum(x, **options), signal)
        check(lambda x, options=options: spectrum(x, **options), signal[0])

"""Special functions: ONNX Runtime against PyTorch, over their whole range."""

import export_checks
import pytest
import torch

special = torch.special
POSITIVE = torch.cat([torch.linspace(0.01, 12, 60), torch.tensor([0.0, 20.0, 50.0, 1e4, float("inf"), float("nan")])])
REAL = torch.cat([torch.linspace(-12, 12, 97), torch.tensor([float("inf"), -float("inf"), float("nan")])])
PROBABILITY = torch.cat([torch.linspace(0, 1, 41), torch.tensor([1e-7, 1e-20, 1 - 1e-6, -0.5, 1.5])])


def gamma(x):
    return x.lgamma(), x.digamma(), x.polygamma(1), x.polygamma(2), x.polygamma(3)


def error(x):
    near = x.clamp(-5, 5)
    return x.erf(), x.erfc(), special.erfcx(near), special.ndtr(x), special.log_ndtr(x), special.entr(x)


def bessel(x):
    near = x.clamp(-10, 10)
    return (
        near.i0(), special.i0e(x), special.i1(near), special.i1e(x), special.bessel_j0(x), special.bessel_j1(x),
        special.spherical_bessel_j0(x), special.airy_ai(near),
    )  # fmt: skip


def bessel_positive(x):
    near = x.clamp(max=50)
    return (
        special.bessel_y0(x), special.bessel_y1(x), special.modified_bessel_k0(near), special.modified_bessel_k1(near),
        special.scaled_modified_bessel_k0(x), special.scaled_modified_bessel_k1(x),
    )  # fmt: skip


def orders(x, n):
    near = x.clamp(-1.5, 1.5)
    return (
        special.chebyshev_polynomial_t(near, n), special.chebyshev_polynomial_u(near, n),
        special.chebyshev_polynomial_v(near, n), special.chebyshev_polynomial_w(near, n),
        special.hermite_polynomial_h(near, n), special.hermite_polynomial_he(near, n),
        special.laguerre_polynomial_l(near, n), special.legendre_polynomial_p(near, n),
        special.shifted_chebyshev_polynomial_t(near, n), special.chebyshev_polynomial_t(near, 3),
    )  # fmt: skip


@pytest.mark.parametrize("opset", [13, None])
def test_gamma(opset):
    export_checks.check(gamma, POSITIVE[1:60], opset=opset)


def test_gamma_below_zero():
    export_checks.check(gamma, torch.linspace(-5.3, 5.4, 40), rtol=1e-3)
    export_checks.check(lambda x: (x.lgamma(), torch.mvlgamma(x.abs() + 3, 4)), REAL[:97])


@pytest.mark.parametrize("function", [error, bessel], ids=lambda f: f.__name__)
def test_real(function):
    export_checks.check(function, REAL)


def test_positive():
    export_checks.check(bessel_positive, POSITIVE)


def test_quantiles():
    export_checks.check(lambda p: (special.ndtri(p), torch.erfinv(2 * p - 1)), PROBABILITY)


def test_two_arguments():
    a, x = torch.meshgrid(torch.linspace(0.1, 30, 12), torch.linspace(0, 40, 13), indexing="ij")
    export_checks.check(lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)), a, x, rtol=1e-3)
    export_checks.check(lambda s, q: special.zeta(s, q), a + 1.5, x + 0.2)


def test_orders():
    x, n = torch.meshgrid(torch.linspace(-1.5, 1.5, 9), torch.arange(-1.0, 9), indexing="ij")
    export_checks.check(orders, x, n, rtol=1e-3)


def test_no_elements():
    export_checks.check(gamma, torch.zeros(0, 2))
    export_checks.check(error, torch.tensor(0.5))

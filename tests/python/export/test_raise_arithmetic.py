"""Arithmetic, comparisons, casts and rounding: many operators in one program, ONNX Runtime against PyTorch."""

import export_checks
import pytest
import torch

X = torch.tensor([[-2.5, -1.0, -0.3, 0.0], [0.4, 1.0, 1.5, 7.25]])
Y = torch.tensor([[3.0, -0.5, 2.0, 1.0], [-0.7, 1.0, 4.0, -2.0]])
ODD = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1.0, -2.0, 1e-8])
I = torch.tensor([[-7, 7, -7, 7], [0, 1, -1, 9]])  # noqa: E741
J = torch.tensor([[3, -3, -3, 3], [5, 1, 2, 4]])
B = torch.tensor([True, False, True, True])


def unary(x):
    positive = x.abs() + 0.1
    inside = x / 8
    return (
        x.abs(), x.ceil(), x.floor(), x.round(), x.trunc(), x.frac(), x.sign(), x.sgn(), -x, x.reciprocal(),
        x.square(), x.exp(), x.exp2(), x.expm1(), positive.log(), positive.log2(), positive.log10(), positive.log1p(),
        positive.sqrt(), positive.rsqrt(), x.sin(), x.cos(), x.tan(), inside.asin(), inside.acos(), x.atan(), x.sinh(),
        x.cosh(), x.tanh(), x.asinh(), (positive + 1).acosh(), inside.atanh(), x.sigmoid(), x.erf(), torch.sinc(x),
        torch.logit(inside.abs(), 0.01), torch.round(x * 3.3, decimals=1), torch.round(x * 33, decimals=-1),
        torch.deg2rad(x), torch.rad2deg(x), torch.positive(x), torch.angle(x), torch.signbit(x), x.logical_not(),
    )  # fmt: skip


def binary(x, y):
    return (
        x + y, torch.add(x, y, alpha=2), x - y, torch.sub(x, y, alpha=3), torch.rsub(x, y, alpha=2), 3 - x, x * y, x / y,
        torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), x // 0.7, x % y, x % 2, x % -2,
        torch.fmod(x, y), torch.remainder(5.5, y), x.abs() ** y, x**2, x**3, x.abs() ** 0.5, x**-1, 2.5**x,
        torch.float_power(x.abs(), 2), torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y),
        torch.atan2(x, y), torch.hypot(x, y), torch.copysign(x, y), torch.ldexp(x, torch.tensor(3)),
        torch.heaviside(x, y), torch.lerp(x, y, 0.3), torch.lerp(x, y, 0.8), torch.lerp(x, y, x),
        torch.addcmul(x, x, y, value=2), torch.addcdiv(x, x, y, value=0.5), torch.xlogy(x, y.abs()),
        torch.special.xlog1py(x, y.abs()), torch.logaddexp(x, y), torch.logaddexp2(x, y), torch.nextafter(x, y),
    )  # fmt: skip


def compared(x, y):
    return (
        x == y, x != y, x < y, x <= 1, x > 0, x >= y, torch.isclose(x, x + 1e-9), torch.where(x > 0, x, y),
        torch.where(x > 0, x, 1.0), torch.where(x > 0, 2.0, x), torch.clamp(x, -1, 1), torch.clamp(x, min=0.5),
        torch.clamp(x, max=0.5), torch.clamp(x, y, y + 1), torch.clamp_min(x, 0.25), torch.clamp_max(x, y),
        torch.logical_and(x, y), torch.logical_or(x, y), torch.logical_xor(x, y),
    )  # fmt: skip


def whole(i, j):
    return (
        i + j, i - j, i * j, i / j, i // j, torch.div(i, j, rounding_mode="trunc"), i % j, torch.fmod(i, j), i**2, i**3,
        torch.pow(2, j.abs()), i & j, i | j, i ^ j, ~i, i << j.abs(), i >> j.abs(), i << 2, i >> 1, i.abs(), i.sign(), i > j,
        i == 7, i > 1.5, i + 0.5, i * True, torch.gcd(i, j), torch.lcm(i, j), torch.maximum(i, j), i.sqrt(),
        torch.where(i > 0, i, j), torch.clamp(i, -2, 3), torch.clamp(i, min=1), i.ceil(), i.bool(), i.float(),
        torch.isnan(i), torch.isinf(i), torch.isfinite(i), i.to(torch.uint8), i.exp(), -i,
    )  # fmt: skip


def odd(x):
    one = torch.ones_like(x)
    return (
        x.isnan(), x.isinf(), x.isfinite(), x.isposinf(), x.isneginf(), torch.isreal(x), torch.nan_to_num(x),
        torch.nan_to_num(x, nan=2.0, posinf=3.0), torch.clamp(x, -1, 1), x.relu(), torch.maximum(x, one),
        torch.fmin(x, one), torch.log1p(x), torch.expm1(x), x == x, x.bool(), torch.signbit(x[1:]), torch.atan2(x, one),
        torch.logaddexp(x, x), torch.hypot(x, one), torch.frexp(x[2:])[0], x.exp(), x.trunc(), torch.copysign(one, x[1]),
    )  # fmt: skip


def flags(b, x):
    return b + b, b * b, b & ~b, b ^ b, b.logical_not(), b == b, b * x, b.sum(), b.long(), b < ~b, torch.where(b, b, ~b)


def small(x, y):
    return (
        x + y, x * y, x - y, x // y, x % y, torch.maximum(x, y), torch.clamp(x, 1, 3), x.sum(), torch.where(x > y, x, y),
        x < y, x.amax(), x.argmax(), x**2, x.cumsum(0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("function", "args"),
    [(unary, (X,)), (binary, (X, Y)), (compared, (X, Y)), (whole, (I, J)), (odd, (ODD,)), (flags, (B, X))],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("opset", [None, 23])
def test_values(function, args, opset):
    export_checks.check(function, *args, opset=opset)


@pytest.mark.parametrize("opset", [12, 13])
def test_older(opset):
    export_checks.check(unary, X, opset=opset)
    export_checks.check(binary, X, Y, opset=opset)
    export_checks.check(compared, X, Y, opset=opset)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32], ids=str)
@pytest.mark.parametrize("opset", [12, None])
def test_small_integers(dtype, opset):
    export_checks.check(
        small, torch.tensor([1, 2, 100], dtype=dtype), torch.tensor([3, 2, 1], dtype=dtype), opset=opset
    )


def test_float64():
    export_checks.check(unary, X.double(), rtol=1e-6)
    export_checks.check(compared, X.double(), Y.double())


def test_empty_and_scalar():
    export_checks.check(unary, torch.zeros(0, 3))
    export_checks.check(unary, torch.tensor(0.5))
    export_checks.check(
        lambda x, y: (x + y, x / y, x % y, x // y, torch.atan2(x, y)), torch.tensor(0.5), torch.zeros(2, 0)
    )


def test_dynamic():
    n = torch.export.Dim("n")
    export_checks.check(
        lambda x, y: (x + y, x // y, torch.hypot(x, y)), X, Y, dynamic=({0: n}, {0: n}), also=[(X[:1], Y[:1])]
    )


@pytest.mark.parametrize("opset", [11, 17, 18])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=str)
def test_bits(dtype, opset):
    a, b = torch.tensor([5, 12, 127, 0, 99]).to(dtype), torch.tensor([3, -2, -128, -1, 1 << 40]).to(dtype)
    export_checks.check(lambda a, b: (a & b, a | b, a ^ b), a, b, opset=opset)


def test_casts():
    def casts(x, i):
        return x.int(), x.half(), x.double(), x.bool(), i.float(), x.type_as(i), x.to(i), x.to(torch.int16), i.to(x)

    export_checks.check(casts, X, I)


def test_few_nodes():
    export_checks.check(lambda x: x**2 + 1, X, nodes=2)
    export_checks.check(lambda x: torch.clamp(x, 0, 1), X, nodes=1)
    export_checks.check(lambda x: x.to(torch.float32) * 1.5, X, nodes=1)


COMPLEX_NUMBERS = {
    "x - 1j": lambda x: x - 1j,
    "x + (2 - 1j)": lambda x: x + (2 - 1j),
    "x * (1 + 2j)": lambda x: x * (1 + 2j),
    "x / 2j": lambda x: x / 2j,
    "1j - x": lambda x: 1j - x,
    "2j / x": lambda x: 2j / x,
    "x ** 2": lambda x: x**2,
    "sub with alpha": lambda x: torch.sub(x, 1j, alpha=2),
}


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", COMPLEX_NUMBERS)
def test_complex_numbers(name, is_complex):
    function = COMPLEX_NUMBERS[name]

    def forward(x, y):
        z = function(torch.complex(x, y) if is_complex else x)
        return torch.view_as_real(z) if z.is_complex() else z

    export_checks.check(forward, torch.rand(3, 4) + 1, torch.randn(3, 4))


def test_complex_numbers_are_compared():
    def forward(x, y):
        z = torch.complex(x, y)
        return z == 1j, z != 1j, z == torch.complex(y, x), x == 1j

    x = torch.tensor([0.0, 1.0, 0.0, 2.0])
    export_checks.check(forward, x, torch.tensor([1.0, 0.0, 2.0, 2.0]))

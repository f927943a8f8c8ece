"""Overloads that torch.export gives seldom, or only after a decomposition: ONNX Runtime gives what PyTorch gives."""

import math

import pytest
import torch
from export_checks import check
from stand_in import calling

import tonnx

torch.manual_seed(3)
X, Y, SQUARE = torch.randn(3, 4), torch.rand(3, 4) + 0.5, torch.randn(2, 3, 3)
WHOLE, OTHER = torch.randint(-20, 20, (3, 4)), torch.randint(1, 5, (3, 4))
FLAGS = torch.rand(3, 4) > 0.4
IMAGE1, IMAGE2, IMAGE3 = torch.randn(2, 3, 7), torch.randn(2, 3, 6, 5), torch.randn(1, 2, 4, 3, 5)
WEIGHT, BIAS = torch.randn(4, 3, 3, 3), torch.randn(4)
CHANNELS = [torch.rand(3) + 0.5 for _ in range(4)]
COMPLEX = torch.randn(3, 4, dtype=torch.complex64)
TABLE, ROWS, OFFSETS = torch.randn(10, 4), torch.tensor([1, 5, 3, 9, 0]), torch.tensor([0, 2])
PLACES, COLUMNS = torch.tensor([2, 0, 1]), torch.tensor([0, 3, 1, 2])
POOLED = (torch.randn(2, 3, 3, 2), IMAGE2)
PLACES_OF_POOLED = torch.nn.functional.max_pool2d(IMAGE2, 2, return_indices=True)[1]

ARITHMETIC = [
    ("add.Scalar", X, 2.5, 3),
    ("sub.Scalar", X, 2.5, 3),
    ("mul.Scalar", X, 2.5),
    ("div.Scalar", X, 2.5),
    *[("div.Scalar_mode", X, 0.7, {"rounding_mode": mode}) for mode in (None, "floor", "trunc")],
    ("floor_divide.Scalar", X, 0.7),
    ("floor_divide.Scalar", WHOLE, 3),
    ("fmod.Scalar", X, 0.7),
    ("fmod.Scalar", WHOLE, 3),
    ("copysign.Scalar", X, -0.5),
    ("float_power.Scalar", 2.0, X),
    ("float_power.Tensor_Tensor", Y, X),
    ("xlogy.Scalar_Other", X, 2.0),
    ("xlogy.Scalar_Self", 2.0, Y),
    ("clamp_max", X, 0.3),
    ("clamp_min.Tensor", X, Y),
    ("fill.Tensor", X, torch.tensor(2.5)),
    ("ge.Scalar", X, 0.3),
    ("le.Tensor", X, Y),
    ("ne.Scalar", WHOLE, 3),
    ("isin.Scalar_Tensor", 3, WHOLE),
    ("bucketize.Scalar", 0.3, torch.tensor([-1.0, 0.0, 0.5, 2.0])),
    *[(f"bitwise_{name}.Tensor", WHOLE, OTHER) for name in ("and", "or", "xor", "left_shift", "right_shift")],
    *[(f"bitwise_{name}.Scalar", WHOLE, 5) for name in ("and", "or", "xor")],
    *[(f"bitwise_{name}.Scalar_Tensor", 5, WHOLE) for name in ("and", "or", "xor")],
    *[(f"bitwise_{name}.Tensor_Scalar", WHOLE, 2) for name in ("left_shift", "right_shift")],
    *[(f"bitwise_{name}.Scalar_Tensor", -9, OTHER) for name in ("left_shift", "right_shift")],
    ("bitwise_and.Tensor", FLAGS, ~FLAGS.roll(1)),
]

SPECIAL = [
    *[
        (f"special_{name}.n_scalar", X, 3)
        for name in (
            *(f"chebyshev_polynomial_{kind}" for kind in "uvw"),
            *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
            "hermite_polynomial_h",
            "hermite_polynomial_he",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
        )
    ],
    *[
        (f"special_{name}.x_scalar", 0.3, OTHER.float())
        for name in (
            *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
            *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
            "hermite_polynomial_h",
            "hermite_polynomial_he",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
        )
    ],
    *[(f"special_shifted_chebyshev_polynomial_{kind}", Y - 0.5, OTHER.float()) for kind in "uvw"],
    ("special_modified_bessel_i0", X),
    ("special_modified_bessel_i1", X),
    ("special_xlog1py.other_scalar", X, 0.5),
    ("special_xlog1py.self_scalar", 0.5, Y),
    ("special_zeta.other_scalar", Y + 1, 2.0),
    ("special_zeta.self_scalar", 2.5, Y),
]

REDUCTIONS = [
    ("all.dims", FLAGS, [0, 1]),
    ("all.dims", FLAGS, [1], True),
    ("any.dims", FLAGS, [0]),
    ("count_nonzero.dim_IntList", WHOLE, [0]),
    ("std", X),
    ("std", X, False),
    ("var", X),
    ("std_mean", X),
    ("std_mean.dim", X, [1]),
    ("var_mean", X),
    ("var_mean.correction", X, [1], {"correction": 0}),
    ("frobenius_norm.dim", X, [1]),
    ("norm.Scalar", X, 3),
    ("norm.ScalarOpt_dim", X, 3, [1]),
    ("norm.ScalarOpt_dim_dtype", X, 1, [0], True, {"dtype": torch.float64}),
    ("norm.ScalarOpt_dtype", X, 2, {"dtype": torch.float64}),
    ("argsort", X, 1, True),
    ("cumulative_trapezoid.x", X, Y, {"dim": 1}),
    ("_softmax", X, 1, False),
    ("_safe_softmax", X, 1),
    ("_log_softmax", X, 0, False),
    ("_softmax_backward_data", X, Y, 1, torch.float32),
    ("_unique", WHOLE, True, True),
    ("unique_dim_consecutive", WHOLE[[0, 0, 1]], 0, True, True),
]

SHAPES = [
    ("atleast_1d", torch.tensor(2.0)),
    ("atleast_2d", BIAS),
    ("atleast_1d.Sequence", [torch.tensor(2.0), X]),
    ("atleast_2d.Sequence", [BIAS, X]),
    ("atleast_3d.Sequence", [BIAS, X]),
    ("expand_as", BIAS, X),
    ("view_as", X, torch.zeros(2, 6)),
    ("reshape_as", X, torch.zeros(2, 6)),
    ("_reshape_copy", X, [2, 6]),
    ("_shape_as_tensor", X),
    ("adjoint", SQUARE),
    ("linalg_diagonal", SQUARE),
    ("hsplit.array", X, [1, 3]),
    ("vsplit.int", X, 3),
    ("dsplit.array", SQUARE, [1]),
    ("meshgrid", [BIAS, PLACES.float()]),
    ("combinations", BIAS, 2),
    ("combinations", BIAS, 2, True),
    ("native_channel_shuffle", torch.randn(2, 6, 3, 2), 3),
    ("_chunk_cat", [X, X], 0, 3),
    ("repeat_interleave.Tensor", PLACES),
    ("to.dtype_layout", X, {"dtype": torch.float64}),
    ("to.other", WHOLE, X),
    ("_to_copy", X, {"dtype": torch.int32}),
    ("constant_pad_nd", X, [1, 2, 0, -1], 0.5),
    ("_pad_circular", IMAGE2, [1, 2, 2, 0]),
    ("reflection_pad1d", IMAGE1, [2, 3]),
    ("reflection_pad2d", IMAGE2, [2, 1, 0, 3]),
    ("reflection_pad3d", IMAGE3, [1, 2, 1, 1, 0, 2]),
    ("replication_pad1d", IMAGE1, [2, 3]),
    ("replication_pad2d", IMAGE2, [2, 1, 0, 3]),
    ("replication_pad3d", IMAGE3, [1, 2, 1, 1, 0, 2]),
    ("linspace.Scalar_Tensor", 1.0, torch.tensor(4.0), 5),
    ("linspace.Tensor_Scalar", torch.tensor(1.0), 4.0, 5),
    ("linspace.Tensor_Tensor", torch.tensor(1.0), torch.tensor(4.0), 5),
    ("logspace.Scalar_Tensor", 1.0, torch.tensor(2.0), 5),
    ("logspace.Tensor_Scalar", torch.tensor(1.0), 2.0, 5, 3.0),
    ("logspace.Tensor_Tensor", torch.tensor(1.0), torch.tensor(2.0), 5),
    ("_unsafe_masked_index", X, FLAGS, [PLACES[:, None], COLUMNS], 0.5),
    ("_unsafe_masked_index_put_accumulate", X, FLAGS, [PLACES[:, None], COLUMNS], Y),
]

LAYERS = [
    ("conv1d.padding", IMAGE1, WEIGHT[:, :, 0], BIAS, [1], "same"),
    ("conv3d", IMAGE3, torch.randn(4, 2, 2, 2, 2), None, [1, 2, 1], [1, 0, 1]),
    ("convolution", IMAGE2, WEIGHT, BIAS, [2, 1], [1, 0], [1, 1], False, [0, 0], 1),
    ("convolution", IMAGE2, WEIGHT[:3, :2], None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1),
    ("_convolution", IMAGE2, WEIGHT, BIAS, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True, True),
    ("_convolution.deprecated", IMAGE2, WEIGHT, BIAS, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True),
    ("max_pool1d_with_indices", IMAGE1, [2]),
    ("max_pool3d", IMAGE3, [2, 2, 2], [1, 1, 2]),
    ("max_pool2d_with_indices_backward", *POOLED, [2, 2], [2, 2], [0, 0], [1, 1], False, PLACES_OF_POOLED),
    ("native_group_norm", torch.randn(2, 6, 4), torch.rand(6), torch.rand(6), 2, 6, 4, 3, 1e-5),
    ("native_layer_norm", X, [4], torch.rand(4), torch.rand(4), 1e-5),
    ("_fused_rms_norm", X, [4], torch.rand(4), 1e-5),
    ("native_batch_norm", IMAGE2, *CHANNELS, False, 0.1, 1e-5),
    ("_native_batch_norm_legit_no_training", IMAGE2, *CHANNELS, 0.1, 1e-5),
    ("_native_batch_norm_legit.no_stats", IMAGE2, *CHANNELS[:2], True, 0.1, 1e-5),
    ("nll_loss", X, PLACES),
    ("nll_loss", X, PLACES, Y[0], 2),
    ("nll_loss_forward", X, PLACES, Y[0], 1, -100),
    ("nll_loss2d", IMAGE2, torch.randint(0, 3, (2, 6, 5))),
    ("nll_loss2d_forward", IMAGE2, torch.randint(0, 3, (2, 6, 5)), None, 2, -100),
    ("grid_sampler_2d", IMAGE2, torch.rand(2, 4, 3, 2) * 2 - 1, 0, 0, False),
    ("grid_sampler_3d", IMAGE3, torch.rand(1, 2, 3, 2, 3) * 2 - 1, 0, 1, True),
    ("rnn_tanh_cell", X, torch.randn(3, 5), torch.randn(5, 4), torch.randn(5, 5), torch.randn(5), torch.randn(5)),
    ("native_dropout", X, 0.5, False),
    ("native_dropout_backward", X, FLAGS, 2.0),
    *[("upsample_nearest1d", IMAGE1, [14]), ("upsample_nearest2d", IMAGE2, [12, 10])],
    *[("upsample_nearest3d", IMAGE3, [8, 6, 10]), ("upsample_linear1d", IMAGE1, [14], False)],
    *[("upsample_bilinear2d", IMAGE2, [9, 10], flag) for flag in (True, False)],
    *[("upsample_trilinear3d", IMAGE3, [8, 6, 5], False), ("upsample_bicubic2d", IMAGE2, [9, 10], False)],
    *[("_upsample_nearest_exact1d", IMAGE1, [10]), ("_upsample_nearest_exact2d", IMAGE2, [9, 7])],
    ("_upsample_nearest_exact3d", IMAGE3, [6, 6, 7]),
    ("_upsample_nearest_exact1d.vec", IMAGE1, [10], None),
    ("_upsample_nearest_exact3d.vec", IMAGE3, [6, 6, 7], None),
    ("_upsample_bilinear2d_aa", IMAGE2, [3, 4], False),
    ("_upsample_bicubic2d_aa", IMAGE2, [3, 4], False),
]

ALGEBRA = [
    ("linalg_inv_ex", SQUARE[:1]),
    ("_cdist_forward", X, Y, 2.0, None),
    ("histogramdd.TensorList_bins", X[:, :2], [torch.tensor([-3.0, 0, 1, 3]), torch.tensor([-3.0, 0.5, 3])]),
    ("stft.center", IMAGE1[:, 0], 4, {"return_complex": False}),
    ("_pdist_forward", X, 2.0),
    ("triangular_solve", X[:3, :2], SQUARE[0].triu() + 3 * torch.eye(3)),
    ("histogramdd.int_bins", X[:, :2], 3, {"range": [-2.0, 2.0, -2.0, 2.0]}),
]

CASES = [*ARITHMETIC, *SPECIAL, *REDUCTIONS, *SHAPES, *LAYERS, *ALGEBRA]


def fake_unique(x, *_):
    count = torch.library.get_ctx().new_dynamic_size()
    return x.new_empty(count, x.shape[1]), PLACES.new_empty(x.shape[0]), PLACES.new_empty(count)


FAKES = {  # of operators that cannot say the shapes of their results
    "_shape_as_tensor": lambda x: PLACES.new_empty(x.dim()),
    "combinations": lambda x, r=2, again=False: x.new_empty(10 if again else 6, 2),
    "unique_dim_consecutive": fake_unique,
}


def named(cases):
    return {"argvalues": cases, "ids": [f"{i}-{case[0]}" for i, case in enumerate(cases)]}


def made(case):
    name, *args = case
    options = args.pop() if isinstance(args[-1], dict) else {}
    return calling(f"aten::{name}", *args, fake=FAKES.get(name), **options)


@pytest.mark.parametrize("case", **named(CASES))
def test_overload(case):
    function, tensors = made(case)
    check(function, *tensors)


FIRST = [  # the other results are for the way back
    ("log_sigmoid_forward", X),
    ("embedding_bag", TABLE, ROWS, OFFSETS),
    ("_embedding_bag", TABLE, ROWS, OFFSETS, False, 1),
    ("_embedding_bag_forward_only", TABLE, ROWS, OFFSETS, False, 2),
    ("_linalg_det", SQUARE),
    ("_linalg_slogdet", SQUARE),
    ("_linalg_solve_ex", SQUARE, SQUARE.roll(1, 1)),
    ("linalg_solve_ex", SQUARE, SQUARE.roll(1, 1)),
    ("linalg_cholesky_ex", SQUARE @ SQUARE.mT + torch.eye(3)),
    ("_native_batch_norm_legit", IMAGE2, *CHANNELS, False, 0.1, 1e-5),
    ("_native_batch_norm_legit_functional", IMAGE2, *CHANNELS, False, 0.1, 1e-5),
    ("_batch_norm_no_update", IMAGE2, *CHANNELS, 0.1, 1e-5),
    ("_batch_norm_with_update_functional", IMAGE2, *CHANNELS, 0.1, 1e-5),
]


@pytest.mark.parametrize("case", **named(FIRST))
def test_first_result(case):
    function, tensors = made(case)
    check(lambda *tensors: function(*tensors)[0], *tensors)


SPECTRA = [  # complex numbers stay inside the model
    ("complex", X, Y),
    ("polar", Y, X),
    ("_fft_r2c", X, [1], 0, True),
    ("_fft_r2c", X, [1], 2, False),
    ("fft_fft2", X),
    ("fft_ifft2", X),
    ("fft_rfftn", X),
]


@pytest.mark.parametrize("case", **named(SPECTRA))
def test_complex_result(case):
    function, tensors = made(case)
    check(lambda *tensors: torch.view_as_real(function(*tensors)), *tensors)


@pytest.mark.parametrize(
    "name", ["_conj", "conj", "conj_physical", "resolve_conj", "resolve_neg", "real", "imag", "adjoint"]
)
def test_complex_argument(name):
    function, _ = calling(f"aten::{name}", COMPLEX)

    def parts(x, y):
        z = function(torch.complex(x, y))
        return torch.view_as_real(z.resolve_conj()) if z.is_complex() else z

    check(parts, X, Y)


@pytest.mark.parametrize("case", **named([("_fft_c2c", [1], 0, True), ("_fft_c2c", [0, 1], 2, False)]))
def test_complex_to_complex(case):
    function, _ = made((case[0], COMPLEX, *case[1:]))
    check(lambda x, y: torch.view_as_real(function(torch.complex(x, y))), X, Y)


def test_complex_to_real():
    function, _ = calling("aten::_fft_c2r", COMPLEX, [1], 2, 6)
    check(lambda x, y: function(torch.complex(x, y)), X, Y)


@pytest.mark.parametrize(
    "case",
    **named(
        [
            ("hann_window.periodic", 9, False),
            ("bartlett_window.periodic", 9, False),
            ("blackman_window.periodic", 9, False),
            ("hamming_window", 9),
            ("hamming_window.periodic_alpha", 9, True, 0.6),
            ("hamming_window.periodic_alpha_beta", 9, False, 0.6, 0.4),
        ]
    ),
)
def test_window(case):
    name, *args = case
    window = getattr(torch, name.split(".")[0])
    check(lambda x: x + window(*args), torch.randn(9))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 0.5])
@pytest.mark.parametrize("data", [X, X[:, 0], IMAGE1[:, 0:1].repeat(2, 1, 1)[:3]])
def test_segment_reduce(data, initial, reduce):
    def by(**places):
        function, tensors = calling(
            "aten::segment_reduce", data, reduce, axis=0, unsafe=True, initial=initial, **places
        )
        check(function, *tensors)

    by(lengths=torch.tensor([1, 2]))
    by(offsets=torch.tensor([0, 1, 3]))
    if initial is not None or reduce in ("sum", "prod"):
        by(lengths=torch.tensor([2, 0, 1]))


def test_pairs_as_complex_numbers():
    function, _ = calling("aten::view_as_complex", torch.randn(3, 2))
    check(lambda x: torch.view_as_real(function(x) * function(x)), torch.randn(3, 2))


NUMBERS = {
    "truediv": lambda n, m: n / m,
    "mod": lambda n, m: n % m,
    "neg": lambda n, m: -n,
    "pow": lambda n, m: n**2,
    "trunc": lambda n, m: math.trunc(n / m),
    "max": lambda n, m: torch.sym_max(n, m),
    "min": lambda n, m: torch.sym_min(n, m),
    "float": lambda n, m: torch.sym_float(n),
    "int": lambda n, m: torch.sym_int(n / m),
    "root": lambda n, m: torch.sym_sqrt(n),
    "numel": lambda n, m: n * m,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_made_of_sizes(name):
    n, m = (torch.export.Dim(size, min=2, max=64) for size in "nm")
    also = [(torch.randn(7, 3),), (torch.randn(2, 9),)]
    check(lambda x: x + NUMBERS[name](*x.shape), torch.randn(5, 4), dynamic=[{0: n, 1: m}], also=also)


@pytest.mark.parametrize("rounded", [math.ceil, math.floor], ids=["ceil", "floor"])
def test_numbers_that_torch_does_not_save(rounded):
    class Net(torch.nn.Module):
        def forward(self, x):
            return x + rounded(x.shape[0] / x.shape[1])

    program = tonnx.export(Net(), torch.randn(5, 4), dynamic_axes={"x": {0: "n", 1: "m"}})
    for x in (torch.randn(5, 4), torch.randn(7, 3), torch.randn(2, 9)):
        torch.testing.assert_close(program(x)[0], Net()(x))

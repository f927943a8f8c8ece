"""Activation functions, Clip and Dropout, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from checks import check, one_node, source

import tonnx

X = np.linspace(-4, 4, 24, dtype=np.float32).reshape(1, 2, 3, 4)

# operator, opset, attributes: absent, and other than the default
CASES = [
    ("Relu", 6, {}), ("Relu", 14, {}), ("Sigmoid", 6, {}), ("Sigmoid", 13, {}), ("Tanh", 6, {}), ("Tanh", 13, {}),
    ("LeakyRelu", 6, {}), ("LeakyRelu", 16, {"alpha": 0.3}),
    ("Elu", 6, {}), ("Elu", 6, {"alpha": 2.0}),
    ("Selu", 6, {}), ("Selu", 6, {"alpha": 1.5, "gamma": 2.0}),
    ("Celu", 12, {}), ("Celu", 12, {"alpha": 2.0}),
    ("Gelu", 20, {}), ("Gelu", 20, {"approximate": "tanh"}),
    ("HardSigmoid", 6, {}), ("HardSigmoid", 6, {"alpha": 1 / 6}), ("HardSigmoid", 6, {"alpha": 0.5, "beta": 0.4}),
    ("HardSwish", 14, {}), ("Mish", 18, {}), ("Softplus", 1, {}), ("Softsign", 1, {}),
    ("ThresholdedRelu", 10, {}), ("ThresholdedRelu", 10, {"alpha": 2.0}),
    ("Shrink", 9, {}), ("Shrink", 9, {"lambd": 1.5}), ("Shrink", 9, {"lambd": 1.5, "bias": 1.5}),
    ("Shrink", 9, {"lambd": 1.5, "bias": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "opset", "attributes"), CASES)
def test_activation(op: str, opset: int, attributes: dict[str, object]) -> None:
    check(op, {"x": X}, opset, **attributes)
    check(op, {"x": X}, opset, dynamic=True, **attributes)


@pytest.mark.parametrize("alpha", [None, 1.0, 2.0])
def test_swish(alpha: float | None) -> None:
    check("Swish", {"x": X}, 24, reference=True, **({} if alpha is None else {"alpha": alpha}))


def test_selu_of_opset_1_has_shorter_constants() -> None:
    x = np.array([-1.0, 2.0], np.float32)
    want = np.where(x > 0, 1.0507 * x, 1.0507 * 1.6732 * (np.exp(x) - 1)).astype(np.float32)
    check("Selu", {"x": x}, 1, values=[want], tolerance=5e-7)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint16, np.uint32])
def test_shrink_of_integers(dtype: type) -> None:
    check("Shrink", {"x": np.arange(0, 6).astype(dtype)}, 9, lambd=1.5, bias=1.5, reference=True)


@pytest.mark.parametrize("shape", [(), (1,), (2, 1, 1), (1, 2, 1, 1), (4,), (3, 4), (1, 2, 3, 4)])
@pytest.mark.parametrize("constant", [True, False])
def test_prelu(shape: tuple[int, ...], constant: bool) -> None:
    slope = np.random.default_rng(0).random(shape, np.float32)
    check("PRelu", {"x": X, "slope": slope}, 16, constant=("slope",) if constant else ())


@pytest.mark.parametrize("slope", [np.nan, np.inf])
def test_slopes_that_are_not_finite(slope: float) -> None:
    """Case 51000040: of what is not below zero the slope says nothing, and PyTorch multiplies 0 by it."""
    x = np.array([[-1.0, 0.0, 2.0]], np.float32)
    with np.errstate(invalid="ignore"):
        want = np.where(x < 0, x * np.float32(slope), x)
    check("PRelu", {"x": x, "slope": np.array([slope], np.float32)}, 16, constant=("slope",), values=[want])
    check("LeakyRelu", {"x": x}, 16, values=[want], alpha=slope)


def test_prelu_is_a_module() -> None:
    slope = np.array([0.1, 0.2], np.float32).reshape(2, 1, 1)
    module = check("PRelu", {"x": X, "slope": slope}, 9, constant=("slope",))
    (prelu,) = module.children()
    assert isinstance(prelu, torch.nn.PReLU)
    assert prelu.weight.requires_grad


@pytest.mark.parametrize("opset", [1, 6])
def test_prelu_of_opset_6_matches_channels(opset: int) -> None:
    slope = np.array([0.1, 0.2], np.float32)
    want = np.where(X < 0, X * slope.reshape(2, 1, 1), X)
    check("PRelu", {"x": X, "slope": slope}, opset, constant=("slope",), values=[want])


def test_prelu_of_integers() -> None:
    x = np.array([-3, 0, 4], np.int32)
    check("PRelu", {"x": x, "slope": np.array([2], np.int32)}, 9, reference=True)
    check("PRelu", {"x": np.abs(x).astype(np.uint32), "slope": np.array([2], np.uint32)}, 9, reference=True)


BOUNDS = [(None, None), (-1.0, None), (None, 1.0), (-1.0, 1.0), (0.0, 6.0), (0.0, None), (2.0, 1.0)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
@pytest.mark.parametrize("opset", [1, 6, 10])
def test_clip_with_attributes(opset: int, low: float | None, high: float | None) -> None:
    given = {"min": low, "max": high}
    want = X if low is None else np.maximum(X, np.float32(low))
    want = want if high is None else np.minimum(want, np.float32(high))
    check("Clip", {"x": X}, opset, values=[want], **{name: bound for name, bound in given.items() if bound is not None})


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64],
)
@pytest.mark.parametrize("constant", [(), ("min",), ("min", "max")])
@pytest.mark.parametrize(("low", "high"), [(None, None), (1, None), (None, 4), (1, 4)])
def test_clip_with_inputs(dtype: type, constant: tuple[str, ...], low: int | None, high: int | None) -> None:
    inputs = {"x": np.arange(6).astype(dtype), "min": low, "max": high}
    inputs = {name: np.array(x, dtype) if x is not None else None for name, x in inputs.items()}
    check("Clip", inputs, 13, constant=constant, reference=True)


def test_clip_reads_well() -> None:
    number = {name: np.array(bound, np.float32) for name, bound in {"min": 0.0, "max": 6.0}.items()}
    assert source("Clip", {"x": X, **number}, 13, ("min", "max")).endswith("return F.relu6(x)")
    assert source("Clip", {"x": X, "min": None, "max": number["max"]}, 13, ("max",)).endswith(
        "return torch.clamp(x, max=6.0)"
    )


def test_the_largest_float32_is_one() -> None:
    lowest = np.array(np.finfo(np.float32).min)
    check("Clip", {"x": X, "min": lowest}, 13, ("min",))


@pytest.mark.parametrize(
    ("opset", "attributes"),
    [(1, {"is_test": 1}), (6, {"is_test": 1}), (7, {}), (7, {"ratio": 0.1}), (10, {}), (12, {})],
)
def test_dropout_in_inference(opset: int, attributes: dict[str, object]) -> None:
    check("Dropout", {"x": X}, opset, values=[X], **attributes)
    mask = np.ones(X.shape, bool if opset >= 10 else np.float32)
    check("Dropout", {"x": X}, opset, outputs=2, values=[X, mask], **attributes)


@pytest.mark.parametrize("constant", [(), ("ratio",), ("ratio", "training_mode")])
def test_dropout_with_inputs(constant: tuple[str, ...]) -> None:
    ratio, no = np.array(0.3, np.float32), np.array(False)
    inputs = {"x": X, "ratio": ratio, "training_mode": no}
    check("Dropout", inputs, 13, constant, values=[X])
    check("Dropout", inputs, 13, constant, outputs=2, values=[X, np.ones(X.shape, bool)])


def test_dropout_is_a_module() -> None:
    module = check("Dropout", {"x": X, "ratio": np.array(0.25, np.float32)}, 13, ("ratio",))
    (dropout,) = module.children()
    assert isinstance(dropout, torch.nn.Dropout)
    assert dropout.p == 0.25


@pytest.mark.parametrize("constant", [(), ("ratio",), ("ratio", "training_mode")])
@pytest.mark.parametrize("outputs", [1, 2])
def test_dropout_in_training(constant: tuple[str, ...], outputs: int) -> None:
    inputs = {"x": np.ones(4000, np.float32), "ratio": np.array(0.75, np.float32), "training_mode": np.array(True)}
    module = tonnx.convert(one_node("Dropout", inputs, 13, constant, outputs=outputs, seed=3))
    given = module(*(torch.from_numpy(array) for name, array in inputs.items() if name not in constant))
    y = given[0] if outputs == 2 else given
    assert set(y.unique().tolist()) == {0.0, 4.0}
    assert 0.2 < (y != 0).float().mean() < 0.3
    if outputs == 2:
        assert torch.equal(given[1], y != 0)


def test_ratio_out_of_range() -> None:
    with pytest.raises(tonnx.Error, match="ratio"):
        tonnx.convert(one_node("Dropout", {"x": X, "ratio": np.array(1.5, np.float32)}, 13, ("ratio",)))


@pytest.mark.parametrize(
    ("op", "inputs", "constant", "attributes", "opset", "to"),
    [
        ("Clip", {"min": np.array(-1, np.float32), "max": None}, ("min",), {}, 13, 6),
        ("Clip", {}, (), {"min": -1.0}, 6, 13),
        ("Dropout", {"ratio": np.array(0.25, np.float32)}, ("ratio",), {}, 13, 7),
        ("Dropout", {}, (), {"ratio": 0.25}, 7, 13),
        ("PRelu", {"slope": np.array([0.1, 0.2], np.float32).reshape(2, 1, 1)}, ("slope",), {}, 9, 6),
        ("Selu", {}, (), {}, 21, 1),
    ],
)
def test_other_opset(op: str, inputs: dict, constant: tuple[str, ...], attributes: dict, opset: int, to: int) -> None:
    model = one_node(op, {"x": X, **inputs}, opset, constant, **attributes)
    tonnx.convert(model, "other.onnx", opset=to)
    other = onnx.load("other.onnx")
    assert other.opset_import[0].version == to
    x = torch.from_numpy(X)
    torch.testing.assert_close(tonnx.convert(other)(x), tonnx.convert(model)(x))

"""Random draws: PyTorch -> ONNX. Two generators never agree, so shapes, types, ranges and moments are compared."""

import numpy as np
import onnxruntime
import pytest
import torch
from export_checks import exported, run
from stand_in import calling

COUNT = 20_000
ZEROS, ONES = torch.zeros(COUNT), torch.ones(COUNT)
RAMP = torch.arange(COUNT) / COUNT


def drawn(name, *args, **options):
    """What PyTorch and what ONNX Runtime draw. Both begin at the same place each time."""
    function, tensors = calling(f"aten::{name}", *args, **options)
    model = exported(function, *tensors)
    onnxruntime.set_seed(7)
    torch.manual_seed(7)
    wanted = torch.utils._pytree.tree_leaves(function(*tensors))
    found = run(model, *tensors)
    assert len(found) == len(wanted)
    pairs = []
    for ours, theirs in zip(found, wanted, strict=True):
        theirs = theirs.numpy()
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        pairs.append((ours, theirs))
    return pairs


def assert_alike(ours, theirs, tolerance=0.05):
    """The same quantiles, which even a distribution without a mean has."""
    places = np.linspace(0.05, 0.95, 19)
    mine, other = np.quantile(ours.astype(float), places), np.quantile(theirs.astype(float), places)
    np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance * max(1.0, np.ptp(other) / 4))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("cauchy", (ZEROS,)),
        ("cauchy", (ZEROS, 3.0, 0.5)),
        ("log_normal", (ZEROS,)),
        ("log_normal", (ZEROS, 0.5, 0.25)),
        ("exponential", (ZEROS,)),
        ("exponential", (ZEROS, 4.0)),
        ("uniform", (ZEROS,)),
        ("uniform", (ZEROS, -3.0, 5.0)),
        ("normal_functional", (ZEROS, 2.0, 0.5)),
        ("normal.Tensor_Tensor", (RAMP * 9, RAMP)),
        ("normal.Tensor_float", (RAMP * 9, 0.5)),
        ("normal.float_Tensor", (3.0, RAMP)),
    ],
)
def test_continuous(name, args):
    ((ours, theirs),) = drawn(name, *args)
    assert np.isfinite(ours).all() and len(np.unique(ours)) > COUNT // 4
    if name == "log_normal":
        ours, theirs = np.log(ours), np.log(theirs)
    assert_alike(ours, theirs)


@pytest.mark.parametrize("p", [0.2, 0.7])
def test_geometric(p):
    ((ours, theirs),) = drawn("geometric", ZEROS, p)
    assert ours.min() == 1 and (ours == ours.round()).all()
    np.testing.assert_allclose(ours.mean(), theirs.mean(), rtol=0.05)


@pytest.mark.parametrize("case", [("bernoulli.p", ZEROS, 0.3), ("bernoulli.Tensor", ZEROS, RAMP), ("bernoulli", RAMP)])
def test_bernoulli(case):
    ((ours, theirs),) = drawn(*case)
    assert set(np.unique(ours)) == {0, 1}
    halves = lambda values: values.reshape(2, -1).mean(1)
    np.testing.assert_allclose(halves(ours), halves(theirs), atol=0.03)


@pytest.mark.parametrize("p", [0.1, 0.6])
def test_alpha_dropout(p):
    """What is dropped becomes one value, and mean and deviation stay those of the normal distribution that came in."""
    torch.manual_seed(1)
    x = torch.randn(COUNT)
    ((ours, theirs),) = drawn("alpha_dropout", x, p, True)
    values, counts = np.unique(ours, return_counts=True)
    their_values, their_counts = np.unique(theirs, return_counts=True)
    np.testing.assert_allclose(counts.max() / COUNT, p, atol=0.02)
    np.testing.assert_allclose(values[counts.argmax()], their_values[their_counts.argmax()], rtol=1e-5)
    np.testing.assert_allclose([ours.mean(), ours.std()], [0, 1], atol=0.05)
    ((ours, theirs),) = drawn("alpha_dropout", x, p, False)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["feature_dropout", "feature_alpha_dropout"])
def test_whole_features_are_dropped(name):
    x = torch.ones(50, 40, 3)
    ((ours, theirs),) = drawn(name, x, 0.25, True)
    assert (ours == ours[:, :, :1]).all()
    np.testing.assert_allclose(np.unique(ours), np.unique(theirs), rtol=1e-5)
    np.testing.assert_allclose((ours == ours.min()).mean(), 0.25, atol=0.05)
    ((ours, theirs),) = drawn(name, x, 0.25, False)
    np.testing.assert_array_equal(ours, theirs)


def test_native_dropout():
    (ours, theirs), (mask, other) = drawn("native_dropout", ONES, 0.25, True)
    np.testing.assert_array_equal(ours != 0, mask)
    np.testing.assert_allclose(np.unique(ours), np.unique(theirs), rtol=1e-6)
    np.testing.assert_allclose(mask.mean(), other.mean(), atol=0.03)


def test_multinomial():
    weights = torch.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    ((ours, theirs),) = drawn("multinomial", weights, 4000, True)
    for mine, other in zip(ours, theirs, strict=True):
        shares = np.bincount(mine, minlength=3) / 4000
        np.testing.assert_allclose(shares, np.bincount(other, minlength=3) / 4000, atol=0.04)
        assert ((shares == 0) == (np.bincount(other, minlength=3) == 0)).all()


@pytest.mark.parametrize(
    ("name", "args", "numbers"),
    [
        ("randint_like", (ZEROS, 5), range(5)),
        ("randint_like.low_dtype", (ZEROS, -2, 3), range(-2, 3)),
        ("randint_like.low_dtype", (torch.zeros(COUNT, dtype=torch.int64), 7, 9), range(7, 9)),
    ],
)
def test_whole_numbers(name, args, numbers):
    ((ours, _),) = drawn(name, *args)
    values, counts = np.unique(ours, return_counts=True)
    assert values.tolist() == list(numbers)
    np.testing.assert_allclose(counts / COUNT, 1 / len(numbers), atol=0.02)

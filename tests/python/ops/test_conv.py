"""Conv and ConvTranspose: every attribute absent and given, constant and run-time weights, sizes known and not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, check_opset, one_node, source

import tonnx

RANDOM = np.random.default_rng(7)


def array(*sizes: int) -> np.ndarray:
    return RANDOM.standard_normal(sizes).astype(np.float32)


X = {1: array(2, 4, 11), 2: array(2, 4, 9, 8), 3: array(1, 4, 6, 5, 7)}
W = {1: array(6, 4, 3), 2: array(6, 4, 3, 2), 3: array(6, 4, 2, 3, 2)}
CONV = [
    (1, {}),
    (1, {"pads": [2, 2], "strides": [2], "dilations": [2]}),
    (1, {"pads": [0, 3]}),
    (2, {}),
    (2, {"kernel_shape": [3, 2]}),
    (2, {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    (2, {"pads": [0, 0, 1, 0]}),
    (2, {"pads": [1, 0, 2, 3], "dilations": [1, 2]}),
    (2, {"auto_pad": "SAME_UPPER"}),
    (2, {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    (2, {"auto_pad": "SAME_UPPER", "strides": [5, 2]}),
    (2, {"auto_pad": "VALID", "strides": [2, 2]}),
    (3, {"pads": [1, 1, 0, 1, 1, 0], "strides": [2, 1, 1]}),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("rank", "attributes"), CONV)
def test_conv(rank: int, attributes: dict, dynamic: bool) -> None:
    inputs = {"X": X[rank], "W": W[rank], "B": array(6)}
    check("Conv", inputs, 22, ("W", "B"), dynamic=dynamic, tolerance=1e-4, **attributes)
    check("Conv", inputs | {"B": None}, 11, (), dynamic=dynamic, tolerance=1e-4, **attributes)


def test_groups() -> None:
    inputs = {"X": X[2], "W": array(6, 2, 3, 3)}
    module = check("Conv", inputs, 1, ("W",), tolerance=1e-4, group=2)
    assert "Conv2d(4, 6" in repr(module) and "groups=2, bias=False" in repr(module)
    check("Conv", inputs, 11, (), tolerance=1e-4, group=2)


TRANSPOSE = [
    (1, {}),
    (1, {"strides": [3], "output_padding": [1]}),
    (2, {"pads": [1, 0, 1, 0], "strides": [2, 2], "output_padding": [1, 1]}),
    (2, {"pads": [1, 1, 0, 0]}),
    (2, {"pads": [0, 0, 2, 1], "strides": [2, 3]}),
    (2, {"pads": [1, 2, 1, 1], "dilations": [2, 1]}),
    (2, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    (2, {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    (2, {"auto_pad": "SAME_LOWER", "strides": [1, 1]}),
    (2, {"auto_pad": "VALID", "strides": [2, 2]}),
    (2, {"output_shape": [18, 16], "strides": [2, 2]}),
    (2, {"output_shape": [17, 15], "strides": [2, 2]}),
    (2, {"output_shape": [18, 15], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    (3, {"strides": [2, 1, 1], "pads": [0, 1, 0, 0, 1, 0]}),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("rank", "attributes"), TRANSPOSE)
def test_conv_transpose(rank: int, attributes: dict, dynamic: bool) -> None:
    weight = array(4, 6, *W[rank].shape[2:])
    inputs = {"X": X[rank], "W": weight, "B": array(6)}
    check("ConvTranspose", inputs, 22, ("W", "B"), dynamic=dynamic, tolerance=1e-4, **attributes)
    check("ConvTranspose", inputs | {"B": None}, 11, (), dynamic=dynamic, tolerance=1e-4, **attributes)


def test_conv_transpose_groups() -> None:
    check("ConvTranspose", {"X": X[2], "W": array(4, 3, 2, 2)}, 1, ("W",), tolerance=1e-4, group=2)


def test_output_shape_beyond_the_result() -> None:
    """PyTorch takes no output_padding of a stride or more: what is missing is the bias alone."""
    inputs = {"X": array(1, 2, 3, 3), "W": array(2, 2, 2, 2), "B": np.array([1.0, -2.0], np.float32)}
    small = one_node("ConvTranspose", inputs, 11, ("W", "B"), strides=[2, 2])
    wide = tonnx.convert(one_node("ConvTranspose", inputs, 11, ("W", "B"), strides=[2, 2], output_shape=[9, 7]))
    x = torch.from_numpy(inputs["X"])
    y = wide(x)
    assert y.shape == (1, 2, 9, 7)
    torch.testing.assert_close(y[:, :, :6, :6], tonnx.convert(small)(x))
    assert (y[0, 0, 6:] == 1).all() and (y[0, 1, :, 6:] == -2).all()


def test_no_batch() -> None:
    check("Conv", {"X": array(0, 4, 9, 8), "W": W[2]}, 11, ("W",))


def test_code(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = source("Conv", {"image": X[2], "conv1.weight": W[2]}, 22, ("conv1.weight",), pads=[0, 0, 1, 2])
    assert "return self.conv1(F.pad(image, (0, 2, 0, 1)))" in text
    text = source("Conv", {"image": X[2], "weight": W[2], "bias": array(6)}, 22, strides=[2, 2], pads=[1, 1, 1, 1])
    assert "F.conv2d(image, weight, bias, stride=2, padding=1)" in text
    check_opset("Conv", {"X": X[2], "W": W[2]}, 22, 8, ("W",))


@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": [0, 1]},
        {"strides": [1]},
        {"pads": [1, 1]},
        {"pads": [-1, 0, 0, 0]},
        {"dilations": [0, 1]},
        {"dilations": [1 << 62, 1]},
        {"group": 0},
        {"group": 3},
        {"kernel_shape": [3, 3]},
        {"auto_pad": "SOME"},
    ],
)
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_contradictions(op: str, attributes: dict) -> None:
    weight = W[2] if op == "Conv" else array(4, 6, 3, 2)
    with pytest.raises(tonnx.Error) as error:
        tonnx.convert(one_node(op, {"X": X[2], "W": weight}, 22, ("W",), **attributes))
    assert error.value.kind == "invalid_model"


def test_four_dimensions() -> None:
    with pytest.raises(tonnx.Error, match="no convolution over 4 dimensions"):
        tonnx.convert(one_node("Conv", {"X": array(1, 2, 3, 3, 3, 3), "W": array(2, 2, 2, 2, 2, 2)}, 22))


@pytest.mark.parametrize("bias", [False, True])
def test_a_window_that_does_not_fit_gives_nothing(bias: bool) -> None:
    """All attributes are given: each is looked at, though none matters."""
    inputs = {"X": np.ones((1, 4, 2, 5), np.float32), "W": np.ones((6, 2, 3, 3), np.float32)}
    if bias:
        inputs["B"] = np.ones(6, np.float32)
    attributes = {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "group": 2}
    module = tonnx.convert(one_node("Conv", inputs, 11, tuple(inputs)[1:], **attributes))
    assert module(torch.ones(1, 4, 2, 5)).shape == (1, 6, 0, 3)

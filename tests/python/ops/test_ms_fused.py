"""Operators of com.microsoft that ONNX Runtime's optimiser writes: activations, products and norms with what is fused into them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from checks import check, one_node
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(13)
MS = "com.microsoft::"


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def gelu(x: np.ndarray) -> np.ndarray:
    return (x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))).astype(np.float32)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return (0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


X, BIAS, SKIP = normal(2, 3, 8), normal(8), normal(2, 3, 8)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Gelu", {"x": X}, {}),
        ("FastGelu", {"x": X}, {}),
        ("FastGelu", {"x": X, "b": BIAS}, {}),
        ("QuickGelu", {"x": X}, {}),
        ("QuickGelu", {"x": X}, {"alpha": 0.5}),
        ("BiasGelu", {"x": X, "b": BIAS}, {}),
        ("SkipLayerNormalization", {"x": X, "s": SKIP, "g": BIAS, "b": BIAS * 2, "c": BIAS * 3}, {"epsilon": 0.1}),
        ("SkipLayerNormalization", {"x": X, "s": SKIP, "g": BIAS}, {}),
        ("SkipSimplifiedLayerNormalization", {"x": X, "s": SKIP, "g": BIAS, "b": BIAS * 2}, {"epsilon": 0.1}),
        ("SkipSimplifiedLayerNormalization", {"x": X, "s": SKIP, "g": BIAS}, {}),
        ("FusedGemm", {"a": normal(2, 3), "b": normal(3, 4), "c": normal(4)}, {"activation": "Relu", "alpha": 0.5}),
        (
            "FusedGemm",
            {"a": normal(3, 2), "b": normal(4, 3)},
            {"activation": "LeakyRelu", "activation_alpha": 0.2, "transA": 1, "transB": 1},
        ),
    ],
)
def test_one_output(op: str, inputs: dict, attributes: dict, dynamic: bool) -> None:
    check(MS + op, inputs, 17, dynamic=dynamic, **attributes)


def test_sums_of_skip_connections() -> None:
    inputs = {"x": X, "s": SKIP, "g": BIAS, "b": BIAS * 2, "c": BIAS * 3}
    total = X + SKIP + BIAS * 3
    mean = total.mean(-1, keepdims=True)
    deviation = 1 / np.sqrt(total.var(-1, keepdims=True) + 1e-12)
    y = (total - mean) * deviation * BIAS + BIAS * 2
    check(MS + "SkipLayerNormalization", inputs, 17, outputs=4, values=[y, mean, deviation, total], tolerance=1e-4)


@pytest.mark.parametrize("attributes", [{}, {"axis": 1, "epsilon": 0.1}])
def test_simplified_layer_normalization(attributes: dict) -> None:
    scale = normal(3, 8) if attributes else BIAS
    check("SimplifiedLayerNormalization", {"x": X, "s": scale}, 12, **attributes)
    check(
        "SimplifiedLayerNormalization",
        {"x": X, "s": scale},
        17,
        ("s",),
        dynamic=True,
        **({} if not attributes else {"axis": -2}),
    )


def test_layer_normalization_of_older_opsets() -> None:
    check("LayerNormalization", {"x": X, "s": BIAS, "b": BIAS}, 12, epsilon=0.1)


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("op", ["FusedMatMul", "TransposeMatMul"])
def test_products(op: str, turn: int, batch: int) -> None:
    a, b = normal(2, 3, 4, 5), normal(2, 3, 5, 4)
    attributes = {"transA": turn, "transB": turn, "alpha": 0.5}
    if batch and op == "FusedMatMul":
        attributes |= {"transBatchA": 1, "transBatchB": 1}
        a, b = np.moveaxis(a, 2, 0).copy(), np.moveaxis(b, 2, 0).copy()
    check(MS + op, {"a": a, "b": b}, 17, **attributes)
    check(MS + op, {"a": a, "b": b}, 17, dynamic=True, **attributes)


@pytest.mark.parametrize("z", [None, normal(1, 4, 4, 4)])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_params": [0.3]},
        {"activation": "Clip", "activation_params": [-0.2, 0.5]},
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
        {"activation": "Tanh", "pads": [1, 1, 1, 1], "strides": [2, 2], "kernel_shape": [3, 3]},
    ],
)
def test_fused_conv(attributes: dict, z) -> None:
    if "strides" in attributes:
        z = None
    inputs = {"x": normal(1, 3, 6, 6), "w": normal(4, 3, 3, 3), "b": normal(4), "z": z}
    check(MS + "FusedConv", inputs, 17, ("w", "b"), tolerance=1e-4, **attributes)


def test_conv_with_channels_last() -> None:
    x, w, b = normal(1, 3, 6, 5), normal(4, 3, 3, 3), normal(4)
    y = ReferenceEvaluator(one_node("Conv", {"x": x, "w": w, "b": b}, 17, pads=[1, 0, 1, 0])).run(
        None, {"x": x, "w": w, "b": b}
    )[0]
    inputs = {"x": x.transpose(0, 2, 3, 1).copy(), "w": w.transpose(0, 2, 3, 1).copy(), "b": b}
    values = [y.transpose(0, 2, 3, 1)]
    check(MS + "NhwcConv", inputs, 17, ("w", "b"), values=values, tolerance=1e-4, pads=[1, 0, 1, 0])
    check(
        MS + "NhwcFusedConv",
        inputs,
        17,
        values=[np.maximum(values[0], 0)],
        tolerance=1e-4,
        pads=[1, 0, 1, 0],
        activation="Relu",
    )


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("positions", [True, False])
def test_embeddings(positions: bool, segments: bool) -> None:
    ids = RNG.integers(0, 10, (2, 3)).astype(np.int32)
    inputs = {
        "ids": ids,
        "segments": (ids % 2).astype(np.int32) if segments else None,
        "words": normal(10, 8),
        "places": normal(5, 8),
        "kinds": normal(2, 8) if segments else None,
        "g": BIAS,
        "b": BIAS,
        "m": np.array([[1, 1, 1], [1, 1, 0]], np.int32),
        "p": RNG.integers(0, 5, (2, 3)).astype(np.int32) if positions else None,
    }
    if not positions:
        del inputs["p"]
    check(MS + "EmbedLayerNormalization", inputs, 17, outputs=3, epsilon=1e-3, constant=("words",))


def test_behind_a_bias() -> None:
    """ONNX Runtime has these on other devices only: the values are numpy's."""
    check(MS + "BiasAdd", {"x": X, "b": BIAS, "s": SKIP}, 17, values=[X + BIAS + SKIP])
    left, right = np.split(X + BIAS, 2, -1)
    check(MS + "BiasSplitGelu", {"x": X, "b": BIAS}, 17, values=[left * gelu(right)])
    scores, bias = normal(2, 4, 3, 5), normal(2, 1, 1, 5)
    check(
        MS + "BiasSoftmax", {"x": scores, "b": bias}, 17, values=[softmax(scores + bias)], axis=3, is_inner_broadcast=1
    )
    flat = softmax((scores + bias[:1]).reshape(8, 15)).reshape(scores.shape)
    check(MS + "BiasSoftmax", {"x": scores, "b": bias[:1]}, 17, values=[flat], axis=2, is_inner_broadcast=0)
    check(MS + "BiasDropout", {"x": X, "b": BIAS, "r": SKIP}, 17, values=[X + BIAS + SKIP])
    weight = normal(8, 4)
    check(MS + "GemmFastGelu", {"x": X, "w": weight}, 17, values=[gelu_tanh(X @ weight)], tolerance=1e-4)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("activation", [0, 1])
def test_group_norm(activation: int, last: int) -> None:
    x, skip, gamma, beta = normal(2, 8, 3, 3), normal(2, 8), normal(8), normal(8)
    total = x + skip[:, :, None, None] + beta[:, None, None]
    results = []
    for each in (x, total):
        groups = each.reshape(2, 4, -1)
        y = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-2)
        y = y.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
        results.append(y * sigmoid(y) if activation else y)
    place = (lambda y: y.transpose(0, 2, 3, 1).copy()) if last else (lambda y: y)
    options = {"groups": 4, "activation": activation, "channels_last": last, "epsilon": 1e-2, "tolerance": 1e-4}
    check(MS + "GroupNorm", {"x": place(x), "g": gamma, "b": beta}, 17, values=[place(results[0])], **options)
    inputs = {"x": place(x), "g": gamma, "b": beta, "s": skip, "c": beta}
    check(MS + "SkipGroupNorm", inputs, 17, values=[place(results[1]), place(total)], outputs=2, **options)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Affine", {"alpha": 2.0, "beta": 1.0}),
        ("Scale", {"scale": 3.0}),
        ("ScaledTanh", {"alpha": 2.0, "beta": 0.5}),
        ("ParametricSoftplus", {"alpha": 2.0, "beta": 0.5}),
        ("ImageScaler", {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}),
    ],
)
def test_first_opset(op: str, attributes: dict) -> None:
    check(op, {"x": normal(1, 3, 2, 2)}, 7, **attributes)

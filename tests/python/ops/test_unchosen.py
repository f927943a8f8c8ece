"""What a condition that is known does not choose does not keep the rest from being computed."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper

import tonnx

HEADER = '<ir_version: 10, opset_import: ["" : 18]>'


def model_of(text: str, **constants: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(HEADER + text)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


def both(model: onnx.ModelProto, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    return tonnx.convert(model)(torch.from_numpy(x)).detach().numpy(), want


def test_what_is_not_chosen_may_be_infinite() -> None:
    """The logarithm of no distance at all has no integer, and is not asked for."""
    distance = np.abs(np.arange(12)[None] - np.arange(12)[:, None])
    with np.errstate(divide="ignore"):
        large = np.log(distance / 8).astype(np.float32) * 3
    model = model_of(
        """g (int64[12, 12] x) => (int64[12, 12] y) <int64 eight = {8}, int64 most = {15}> {
        a = Cast<to=7>(large) b = Add(a, eight) c = Min(b, most) d = Where(is_small, distance, c) y = Add(x, d) }""",
        large=large,
        distance=distance,
        is_small=distance < 8,
    )
    np.testing.assert_array_equal(*both(model, np.zeros((12, 12), np.int64)))
    assert [node.op_type for node in tonnx.simplify(model)[0].graph.node] == ["Add"]


def test_what_is_chosen_stays_infinite() -> None:
    model = model_of(
        "g (float[4] x) => (float[4] y) { a = Sqrt(b) c = Cast<to=7>(b) d = Cast<to=1>(c) e = Where(chosen, a, d) "
        "y = Add(x, e) }",
        b=np.array([np.inf, 9.0, 4.0, np.nan], np.float32),
        chosen=np.array([True, False, True, True]),
    )
    np.testing.assert_array_equal(*both(model, np.ones(4, np.float32)))


def test_what_others_use_too_stays_infinite() -> None:
    model = model_of(
        "g (float[3] x) => (float[3] y) { a = Neg(b) c = Where(chosen, x, a) y = Add(c, b) }",
        b=np.array([np.inf, 1.0, -np.inf], np.float32),
        chosen=np.array([True, False, True]),
    )
    np.testing.assert_array_equal(*both(model, np.ones(3, np.float32)))

"""Evaluation of operators that move, window, sample and search: what is left of nodes over constants is a constant."""

from __future__ import annotations

import time
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from checks import expected, folded, one_node
from onnx import helper

RNG = np.random.default_rng(13)


def floats(*sizes: int) -> np.ndarray:
    return RNG.standard_normal(sizes).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def recurrent(op: str, directions: int = 1) -> dict[str, np.ndarray | None]:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    return {
        "X": floats(5, 2, 3),
        "W": floats(directions, gates * 4, 3),
        "R": floats(directions, gates * 4, 4),
        "B": floats(directions, 2 * gates * 4),
        "lens": np.array([5, 3], np.int32),
        "h": floats(directions, 2, 4),
    }


IMAGE = floats(2, 4, 7, 6)
ROIS = np.array([[0, 0, 5, 5], [1.5, 2.5, 4.25, 4], [-3, -2, 9, 5]], np.float32)
BOXES = np.sort(RNG.random((1, 8, 4)), -1).astype(np.float32)
QUERY = floats(2, 4, 3, 8)
WHOLE = [
    ("Conv", {"X": IMAGE, "W": floats(6, 2, 3, 2), "B": floats(6)}, {"group": 2, "auto_pad": "SAME_LOWER"}),
    ("Conv", {"X": floats(1, 2, 4, 5, 6), "W": floats(3, 2, 2, 2, 3)}, {"strides": [1, 2, 1], "dilations": [2, 1, 1]}),
    ("ConvTranspose", {"X": floats(1, 4, 5, 4), "W": floats(4, 3, 3, 2)}, {"strides": [2, 3], "output_padding": [1, 2], "group": 2}),
    ("ConvTranspose", {"X": floats(1, 2, 5), "W": floats(2, 3, 4)}, {"strides": [3], "output_shape": [14]}),
    ("ConvInteger", {"x": RNG.integers(0, 255, (1, 2, 5, 5), np.uint8), "w": RNG.integers(0, 255, (3, 2, 3, 3), np.uint8),
                     "xz": np.uint8(7).reshape(()), "wz": np.uint8(120).reshape(())}, {"pads": [1, 1, 0, 0]}),
    ("MaxPool", {"X": IMAGE}, {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1, "dilations": [2, 1]}),
    ("MaxPool", {"X": RNG.integers(-99, 99, (1, 2, 5, 5)).astype(np.int8)}, {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}),
    ("AveragePool", {"X": IMAGE}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("LpPool", {"X": IMAGE}, {"kernel_shape": [2, 3], "p": 3, "strides": [2, 1]}),
    ("GlobalAveragePool", {"X": IMAGE}, {}),
    ("GlobalMaxPool", {"X": IMAGE}, {}),
    ("GlobalLpPool", {"X": IMAGE}, {"p": 3}),
    ("RoiAlign", {"X": IMAGE, "rois": ROIS, "batch": ints(0, 1, 1)}, {"output_height": 3, "output_width": 2}),
    ("MaxRoiPool", {"X": IMAGE, "rois": np.c_[[0, 1, 0], ROIS].astype(np.float32)}, {"pooled_shape": [2, 3]}),
    ("Col2Im", {"x": floats(1, 8, 6), "image": ints(3, 4), "block": ints(2, 2)}, {}),
    ("Resize", {"X": IMAGE, "roi": None, "scales": np.array([1, 1, 0.6, 1.7], np.float32)}, {"mode": "cubic"}),
    ("Resize", {"X": IMAGE, "roi": None, "scales": None, "sizes": ints(9, 3)}, {"axes": [2, 3], "antialias": 1, "mode": "linear"}),
    ("GridSample", {"X": IMAGE, "grid": floats(2, 3, 4, 2)}, {"mode": "cubic", "padding_mode": "reflection"}),
    ("AffineGrid", {"theta": floats(2, 2, 3), "size": ints(2, 1, 4, 5)}, {"align_corners": 1}),
    ("CenterCropPad", {"x": IMAGE, "shape": ints(4, 9)}, {"axes": [2, 3]}),
    ("Pad", {"x": IMAGE, "pads": ints(1, -2, 3, 0), "value": None, "axes": ints(3, 1)}, {}),
    ("Pad", {"x": IMAGE, "pads": ints(0, 0, 3, 4, 0, 0, 2, 5)}, {"mode": "wrap"}),
    ("ScatterND", {"x": floats(4, 5), "i": ints(1, 3, 1).reshape(3, 1), "u": floats(3, 5)}, {"reduction": "max"}),
    ("OneHot", {"i": ints(1, -1, 9, -7), "depth": ints(5), "values": np.array([2, 5], np.float32)}, {"axis": 0}),
    ("NonZero", {"x": IMAGE * (IMAGE > 0)}, {}),
    ("Compress", {"x": IMAGE, "c": np.array([True, False, True])}, {"axis": 2}),
    ("ReverseSequence", {"x": floats(4, 3, 2), "lens": ints(4, 1, 2)}, {}),
    ("EyeLike", {"x": floats(3, 4)}, {"k": 1, "dtype": 7}),
    ("NonMaxSuppression", {"b": BOXES, "s": RNG.random((1, 2, 8), np.float32), "n": ints(4),
                           "iou": np.array([0.4], np.float32)}, {}),
    ("DFT", {"x": floats(2, 10, 1), "n": ints(7)}, {"onesided": 1}),
    ("STFT", {"x": floats(1, 16, 1), "step": np.array(3), "w": floats(6)}, {}),
    ("HannWindow", {"n": np.array(7)}, {"periodic": 0}),
    ("HammingWindow", {"n": np.array(7)}, {}),
    ("BlackmanWindow", {"n": np.array(7)}, {"output_datatype": 11}),
    ("Attention", {"Q": QUERY, "K": floats(2, 2, 5, 8), "V": floats(2, 2, 5, 6)}, {"is_causal": 1, "softcap": 0.7}),
    ("RotaryEmbedding", {"X": QUERY, "cos": floats(2, 3, 2), "sin": floats(2, 3, 2)}, {"rotary_embedding_dim": 4}),
    ("RNN", recurrent("RNN"), {"hidden_size": 4, "activations": ["LeakyRelu"], "activation_alpha": [0.3], "clip": 0.9}),
    ("GRU", recurrent("GRU", 2), {"hidden_size": 4, "direction": "bidirectional", "linear_before_reset": 1}),
    ("GRU", recurrent("GRU"), {"hidden_size": 4, "direction": "reverse"}),
    ("LSTM", recurrent("LSTM") | {"c": floats(1, 2, 4), "p": floats(1, 12)}, {"hidden_size": 4, "input_forget": 1}),
]  # fmt: skip
SEVERAL = [
    ("MaxPool", {"X": IMAGE}, {"kernel_shape": [3, 2], "storage_order": 1}, 2),
    ("TopK", {"x": RNG.integers(0, 5, (3, 6)), "k": ints(4)}, {"largest": 0}, 2),
    ("Unique", {"x": RNG.integers(0, 3, (4, 2)).astype(np.int8)}, {"axis": 0, "sorted": 0}, 4),
    ("Unique", {"x": floats(3, 3).round()}, {}, 4),
    ("Attention", {"Q": QUERY, "K": QUERY, "V": QUERY, "mask": None, "pk": QUERY, "pv": QUERY}, {}, 3),
    ("LSTM", recurrent("LSTM", 2), {"hidden_size": 4, "direction": "bidirectional"}, 3),
]


def values_of(op: str, inputs: dict[str, Any], opset: int, **options: Any) -> list[np.ndarray]:
    """From ONNX Runtime, or from the reference evaluator where that has no such kernel."""
    given = {name: array for name, array in inputs.items() if array is not None}
    try:
        return expected(one_node(op, inputs, opset, **options), given, False)
    except Exception:
        return expected(one_node(op, inputs, opset, **options), given, True)


@pytest.mark.parametrize("case", [(*case, 1) for case in WHOLE] + SEVERAL, ids=lambda case: case[0])
def test_is_a_constant(case: tuple[str, dict[str, Any], dict[str, Any], int]) -> None:
    op, inputs, attributes, outputs = case
    opset = {"Attention": 24, "RotaryEmbedding": 24, "GlobalLpPool": 2, "MaxRoiPool": 1}.get(op, 22)
    wanted = values_of(op, inputs, opset, outputs=outputs, **attributes)
    found = folded(one_node(op, inputs, opset, tuple(inputs), outputs=outputs, **attributes))
    for i, want in enumerate(wanted):
        got = found[f"out{i}"]
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def elements(dtype: str, *sizes: int) -> np.ndarray:
    numbers = RNG.integers(0, 7, sizes)
    if dtype == "string":
        return np.array([f"s{n}" for n in numbers.reshape(-1)], object).reshape(sizes)
    return numbers.astype(getattr(ml_dtypes, dtype, None) or dtype)


X = (3, 4, 2)
MOVES = [
    ("Transpose", {}, {"perm": [2, 0, 1]}, lambda x: x.transpose(2, 0, 1)),
    ("Concat", {}, {"axis": 1}, lambda x: x),
    ("Slice", {"s": ints(3), "e": ints(-9), "a": ints(1), "t": ints(-2)}, {}, lambda x: x[:, ::-2]),
    ("Tile", {"r": ints(1, 2, 2)}, {}, lambda x: np.tile(x, (1, 2, 2))),
    ("Expand", {"s": ints(2, 1, 1, 1)}, {}, lambda x: np.broadcast_to(x, (2, *X))),
    ("Gather", {"i": ints(-1, 0, 2)}, {}, lambda x: x[[-1, 0, 2]]),
    ("GatherND", {"i": ints(0, 3, 2, -1).reshape(2, 2)}, {}, lambda x: x[[0, 2], [3, -1]]),
    ("GatherElements", {"i": np.ones((1, 4, 2), np.int64)}, {}, lambda x: x[1:2]),
    ("Pad", {"p": ints(1, -1, 0, 0, 2, 1)}, {"mode": "constant"}, None),
    ("Pad", {"p": ints(0, 1, 0, 0, 2, 0)}, {"mode": "edge"}, lambda x: np.pad(x, ((0, 0), (1, 2), (0, 0)), "edge")),
    ("Compress", {"c": np.array([True, False, True])}, {"axis": 0}, lambda x: x[[0, 2]]),
    ("ReverseSequence", {"n": ints(1, 2, 3, 0)}, {}, None),
    ("Reshape", {"s": ints(0, -1)}, {}, lambda x: x.reshape(3, 8)),
    ("Split", {"n": ints(3)}, {}, lambda x: x),
]


@pytest.mark.parametrize("dtype", ["string", "bool", "float16", "bfloat16", "complex64", "uint64", "int8", "int4"])
@pytest.mark.parametrize("case", MOVES, ids=lambda case: case[0])
def test_moves_elements_of_any_type(case: tuple, dtype: str) -> None:
    op, inputs, attributes, move = case
    x = elements(dtype, *X)
    if move is None:
        move = {"Pad": padded, "ReverseSequence": reversed_sequences}[op]
    found = folded(one_node(op, {"x": x, **inputs}, 25, ("x", *inputs), **attributes))["out0"]
    want = move(x)
    assert found.shape == want.shape
    assert found.astype(str if dtype == "string" else x.dtype).tolist() == want.tolist()


def padded(x: np.ndarray) -> np.ndarray:
    result = np.full((4, 5, 3), "" if x.dtype == object else 0, x.dtype)
    result[1:, :3, :2] = x[:, 1:]
    return result


def reversed_sequences(x: np.ndarray) -> np.ndarray:
    result = x.copy()
    for batch, length in enumerate([1, 2, 3, 0]):
        result[:length, batch] = x[:length, batch][::-1]
    return result


def chain(*nodes: onnx.NodeProto, **initializers: np.ndarray) -> onnx.ModelProto:
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in initializers.items()]
    graph = helper.make_graph(list(nodes), "g", [], [onnx.ValueInfoProto(name="y")], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


@pytest.mark.parametrize(
    "model",
    [
        chain(helper.make_node("Expand", ["x", "s"], ["y"]), x=np.array(["a" * 100_000], object), s=ints(30_000)),
        chain(helper.make_node("Pad", ["x", "p"], ["y"]), x=floats(2), p=ints(0, 1 << 40)),
        chain(helper.make_node("OneHot", ["i", "d", "v"], ["y"]), i=ints(1, 2), d=ints(1 << 40), v=floats(2)),
        chain(helper.make_node("HannWindow", ["n"], ["y"]), n=np.array(1 << 39)),
        chain(helper.make_node("DFT", ["x", "n"], ["y"]), x=floats(1, 9, 1), n=ints(1 << 39)),
        chain(helper.make_node("AffineGrid", ["t", "s"], ["y"]), t=floats(1, 2, 3), s=ints(1, 1, 1 << 20, 1 << 20)),
        chain(helper.make_node("Conv", ["x", "w"], ["y"], pads=[200_000] * 2), x=floats(1, 1, 40_000), w=floats(1, 1, 200_000)),
    ],
    ids=lambda model: model.graph.node[0].op_type,
)  # fmt: skip
def test_small_files_stay_small(model: onnx.ModelProto) -> None:
    start = time.process_time()
    assert "y" not in folded(model)
    assert time.process_time() - start < 5

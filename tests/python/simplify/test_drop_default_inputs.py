"""drop_default_inputs: states and biases that are zero."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from simplify_checks import check


def recurrent(op: str, start: float, opset: int = 14) -> onnx.ModelProto:
    """A layer whose first state is made for the size of the batch, as exporters do it."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    random = np.random.default_rng(0)
    arrays = {
        "w": random.standard_normal((1, gates * 4, 3)).astype(np.float32),
        "r": random.standard_normal((1, gates * 4, 4)).astype(np.float32),
        "start": np.float32(start),
        "one": np.array([1], np.int64),
        "two": np.array([2], np.int64),
        "four": np.array([4], np.int64),
        "zero": np.array([0], np.int64),
    }
    states = ["h", "h"] if op == "LSTM" else ["h"]
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "one", "two"], ["n"]),
        helper.make_node("Concat", ["n", "four"], ["t"], axis=0),
        helper.make_node("Expand", ["start", "t"], ["e"]),
        helper.make_node("Unsqueeze", ["e", "zero"], ["h"]),
        helper.make_node(op, ["x", "w", "r", "", "", *states], ["y"], hidden_size=4),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["T", "N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["T", 1, "N", 4])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_a_state_of_zeros_is_not_made(op: str) -> None:
    simplified = check(recurrent(op, 0.0), {op: 1}, sizes={"T": 3, "N": 2}, special=False, tolerance=1e-6)
    assert len(simplified.graph.node[0].input) == 3


def test_another_state_stays() -> None:
    simplified = check(recurrent("GRU", 0.5), sizes={"T": 3, "N": 2}, special=False, tolerance=1e-6)
    assert simplified.graph.node[-1].input[5]

"""Loops of ONNX through an nn.Module and back: they are loops again, and not their iterations one by one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from models import floats, make_model, runtime_run
from onnx import TensorProto, helper, numpy_helper
from round_trip_checks import ops
from torch import nn

import tonnx

RNG = np.random.default_rng(5)
ROWS = 10


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def recurrent(backwards: bool, rows: int = ROWS) -> onnx.ModelProto:
    """A state that takes one row after the other; what comes out is the last one, and all of them."""
    index = [helper.make_node("Sub", ["last_row", "i"], ["at"])] if backwards else []
    body = helper.make_graph(
        [
            *index,
            helper.make_node("Gather", ["x", "at" if backwards else "i"], ["row"]),
            helper.make_node("MatMul", ["h", "w"], ["hw"]),
            helper.make_node("Add", ["row", "hw"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["h_next"]),
            helper.make_node("Mul", ["h_next", "h"], ["seen"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            floats("h", 2, 4),
        ],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []), floats("h_next", 2, 4), floats("seen", 2, 4)],
    )
    nodes = [
        helper.make_node("Shape", ["x"], ["rows"], start=0, end=1),
        helper.make_node("Squeeze", ["rows"], ["n"]),
        helper.make_node("Sub", ["n", "one"], ["last_row"]),
        helper.make_node("Loop", ["n", "", "h0"], ["last", "all"], body=body),
    ]
    constants = [numpy_helper.from_array(array(4, 4), "w"), numpy_helper.from_array(np.int64(1), "one")]
    outputs = [floats("last", 2, 4), floats("all", "rows", 2, 4)]
    return make_model(nodes, [floats("x", "rows", 2, 4), floats("h0", 2, 4)], outputs, constants)


def exported(model: nn.Module, *args: np.ndarray) -> onnx.ModelProto:
    tonnx.export(model, tuple(torch.from_numpy(a) for a in args), "back.onnx")
    back = onnx.load("back.onnx")
    onnx.checker.check_model(back, full_check=True)
    return back


@pytest.mark.parametrize("backwards", [False, True])
def test_a_loop_over_rows_comes_back_as_one(backwards: bool) -> None:
    model = recurrent(backwards)
    feeds = {"x": array(ROWS, 2, 4), "h0": array(2, 4)}
    back = exported(tonnx.convert(model), *feeds.values())
    assert ops(back.graph)["Tanh"] == 1
    names = [value.name for value in back.graph.input]
    found = runtime_run(back, dict(zip(names, feeds.values(), strict=True)))
    for a, b in zip(found, runtime_run(model, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_few_iterations_stay_written_out() -> None:
    feeds = {"x": array(3, 2, 4), "h0": array(2, 4)}
    back = exported(tonnx.convert(recurrent(False)), *feeds.values())
    assert ops(back.graph)["Tanh"] == 3


class Steps(nn.Module):
    """Iterations that a person wrote, which stay as they are."""

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        seen = []
        for row in x:
            h = torch.tanh(row + h)
            seen.append(h)
        return torch.stack(seen)


def test_loops_of_other_models_are_left_alone() -> None:
    back = exported(Steps(), array(ROWS, 2, 4), array(2, 4))
    assert ops(back.graph)["Tanh"] == ROWS


def test_iterations_that_differ_stay_written_out() -> None:
    """One of them has another function than the others."""
    nodes = []
    for i in range(ROWS):
        nodes.append(helper.make_node("Gather", ["x", f"i{i}"], [f"row{i}"]))
        nodes.append(helper.make_node("Add", [f"row{i}", f"h{i}" if i else "h0"], [f"s{i}"]))
        nodes.append(helper.make_node("Tanh" if i != 6 else "Sin", [f"s{i}"], [f"h{i + 1}"]))
    constants = [numpy_helper.from_array(np.int64(i), f"i{i}") for i in range(ROWS)]
    model = make_model(nodes, [floats("x", ROWS, 2), floats("h0", 2)], [floats(f"h{ROWS}", 2)], constants)
    feeds = {"x": array(ROWS, 2), "h0": array(2)}
    back = exported(tonnx.convert(model), *feeds.values())
    assert ops(back.graph)["Tanh"] == ROWS - 1
    names = [value.name for value in back.graph.input]
    (found,) = runtime_run(back, dict(zip(names, feeds.values(), strict=True)))
    np.testing.assert_allclose(found, runtime_run(model, feeds)[0], rtol=1e-4, atol=1e-5)

"""Axes that only the run tells: ONNX Runtime's values, also of a program that torch.export traced, for every axis."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
import torch
from models import floats, make_model, runtime_run
from onnx import TensorProto, helper

import tonnx

RNG = np.random.default_rng(2)
REDUCTIONS = ["Sum", "Mean", "Prod", "Max", "Min", "SumSquare", "L1", "L2", "LogSum", "LogSumExp"]


def along(op: str, shape: list[int], axes: list[int], result: list[int], **attributes: int) -> onnx.ModelProto:
    node = helper.make_node(op, ["x", "axes"], ["y"], **attributes)
    given = helper.make_tensor_value_info("axes", TensorProto.INT64, axes)
    opset = 26 if op == "CumProd" else 18
    return make_model([node], [floats("x", *shape), given], [floats("y", *result)], opset=opset)


def check(model: onnx.ModelProto, x: np.ndarray, runs: list[np.ndarray]) -> None:
    """One program, traced on the first axes, is right for all of them."""
    module = tonnx.convert(model)
    args = [torch.from_numpy(x), torch.from_numpy(runs[0])]
    traced = torch.export.export(module, tuple(args), strict=False).module()
    tonnx.export(module, tuple(args), "back.onnx")
    back = onnx.load("back.onnx")
    names = [value.name for value in back.graph.input]
    for axes in runs:
        (wanted,) = runtime_run(model, {"x": x, "axes": axes})
        given = torch.from_numpy(axes)
        for found in (module(args[0], given), traced(args[0], given)):
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)
        (again,) = runtime_run(back, dict(zip(names, (x, axes), strict=True)))
        np.testing.assert_allclose(again, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("flags", [{}, {"exclusive": 1}, {"reverse": 1}])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_running_sums(rank: int, flags: dict[str, int]) -> None:
    shape = [2, 3, 4][:rank]
    model = along("CumSum", shape, [], shape, **flags)
    check(model, RNG.standard_normal(shape).astype(np.float32), [np.array(a) for a in range(-rank, rank)])


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_to_one_shape(op: str) -> None:
    x = RNG.uniform(0.5, 2, (3, 2, 2)).astype(np.float32)
    model = along(f"Reduce{op}", [3, 2, 2], [1], [3, 2], keepdims=0)
    check(model, x, [np.array([a]) for a in (1, 2, -1, -2)])


SHAPED = ["Sum", "Mean", "Max", "Min", "SumSquare", "L1", "L2", "LogSum", "LogSumExp"]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", SHAPED)
def test_axes_that_decide_on_the_shape(op: str, keepdims: int) -> None:
    """What comes back is the reduction that it was, for other axes than those of the example too."""
    x = RNG.uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
    node = helper.make_node(f"Reduce{op}", ["x", "axes"], ["y"], keepdims=keepdims)
    given = helper.make_tensor_value_info("axes", TensorProto.INT64, [2])
    result = floats("y", *[None] * (3 if keepdims else 1))
    model = make_model([node], [floats("x", 2, 3, 4), given], [result])
    tonnx.export(tonnx.convert(model), (torch.from_numpy(x), torch.tensor([0, 1])), "back.onnx")
    back = onnx.load("back.onnx")
    names = [value.name for value in back.graph.input]
    for axes in ([0, 1], [2, 0], [-1, 1]):
        feeds = x, np.array(axes)
        (wanted,) = runtime_run(model, dict(zip(("x", "axes"), feeds, strict=True)))
        (found,) = runtime_run(back, dict(zip(names, feeds, strict=True)))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert len(back.graph.node) <= 2


def test_several_axes() -> None:
    x = RNG.standard_normal((2, 2, 2)).astype(np.float32)
    model = along("ReduceSum", [2, 2, 2], [2], [2], keepdims=0)
    check(model, x, [np.array(a) for a in itertools.permutations((0, 1, 2), 2)] + [np.array([-1, 0])])


def test_the_shape_of_what_is_computed_of_the_result_tells_the_axis() -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=1),
        helper.make_node("Exp", ["s"], ["e"]),
        helper.make_node("Cast", ["e"], ["y"], to=TensorProto.FLOAT),
    ]
    given = helper.make_tensor_value_info("axes", TensorProto.INT64, [1])
    model = make_model(nodes, [floats("x", 2, 3), given], [floats("y", 2, 1)])
    check(model, RNG.standard_normal((2, 3)).astype(np.float32), [np.array([1]), np.array([-1])])


def test_shapes_that_depend_on_the_axis_are_those_of_the_run() -> None:
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    given = helper.make_tensor_value_info("axes", TensorProto.INT64, [1])
    model = make_model([node], [floats("x", 2, 3), given], [floats("y", None)])
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    module = tonnx.convert(model)
    for axis in (0, 1, -1):
        axes = np.array([axis])
        found = module(torch.from_numpy(x), torch.from_numpy(axes))
        np.testing.assert_allclose(found.numpy(), runtime_run(model, {"x": x, "axes": axes})[0], rtol=1e-5)

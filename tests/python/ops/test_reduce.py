"""Reductions and arg-reductions: axes as attribute and as input, known and not, every type, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, one_node, source

import tonnx

X = np.random.default_rng(3).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
OPS = ["Sum", "Mean", "Max", "Min", "Prod", "SumSquare", "L1", "L2", "LogSum", "LogSumExp"]
NEWEST = {"Sum": 13, "Max": 20, "Min": 20}
NUMPY = {
    "Sum": lambda x: x.sum(1, keepdims=True),
    "Mean": lambda x: x.mean(1, keepdims=True),
    "Max": lambda x: x.max(1, keepdims=True),
    "Min": lambda x: x.min(1, keepdims=True),
    "Prod": lambda x: x.prod(1, keepdims=True),
    "SumSquare": lambda x: np.square(x).sum(1, keepdims=True),
    "L1": lambda x: np.abs(x).sum(1, keepdims=True),
    "L2": lambda x: np.sqrt(np.square(x).sum(1, keepdims=True)),
    "LogSum": lambda x: np.log(x.sum(1, keepdims=True)),
    "LogSumExp": lambda x: np.log(np.exp(x).sum(1, keepdims=True)),
}


def axes_input(axes: list[int] | None) -> dict:
    return {} if axes is None else {"axes": np.array(axes, np.int64)}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("keepdims", [None, 0])
@pytest.mark.parametrize("axes", [None, [1], [-1, 0], [0, 1, 2], []])
def test_axes_as_input(op: str, axes: list[int] | None, keepdims: int | None) -> None:
    options = {} if keepdims is None else {"keepdims": keepdims}
    for constant in (("axes",), ()):
        for dynamic in ((), ("data",)):
            check(
                f"Reduce{op}", {"data": X} | axes_input(axes), NEWEST.get(op, 18), constant, dynamic=dynamic, **options
            )


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("opset", [1, 11, 12])
def test_axes_as_attribute(op: str, opset: int) -> None:
    check(f"Reduce{op}", {"data": X}, opset)
    check(f"Reduce{op}", {"data": X}, opset, axes=[2, 0] if opset < 11 else [-1, 0], keepdims=0)
    if op != "Sum":
        check(f"Reduce{op}", {"data": X}, 13, axes=[1])


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("axes", [None, [], [1]])
def test_noop_with_empty_axes(op: str, axes: list[int] | None) -> None:
    step = {"SumSquare": np.square, "L1": np.abs, "L2": np.abs, "LogSum": np.log}.get(op, lambda x: x)
    values = None if axes else [step(X)]
    check(
        f"Reduce{op}",
        {"data": X} | axes_input(axes),
        NEWEST.get(op, 18),
        ("axes",),
        noop_with_empty_axes=1,
        values=values,
    )


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int64", "uint32", "uint64", "int8", "uint8", "bool"])
def test_types(op: str, dtype: str) -> None:
    if dtype in ("int8", "uint8", "bool") and op not in ("Max", "Min"):
        pytest.skip("not a type of this operator")
    x = np.array([[3, 4, 2, 1], [1, 2, 5, 2]], dtype)
    values = [NUMPY[op](x.astype("float64")).astype(dtype)]
    tolerance = 1e-2 if dtype == "float16" else 1e-5
    check(
        f"Reduce{op}",
        {"data": x, "axes": np.array([1])},
        NEWEST.get(op, 18),
        ("axes",),
        values=values,
        tolerance=tolerance,
    )


@pytest.mark.parametrize("op", OPS)
def test_scalar(op: str) -> None:
    check(f"Reduce{op}", {"data": np.array(1.5, np.float32)}, NEWEST.get(op, 18))
    check(f"Reduce{op}", {"data": np.array(1.5, np.float32)}, NEWEST.get(op, 18), keepdims=0)


@pytest.mark.parametrize("op", [op for op in OPS if op != "Mean"])
def test_of_nothing(op: str) -> None:
    empty = np.zeros((2, 0, 3), np.float32)
    for constant in (("axes",), ()):
        check(f"Reduce{op}", {"data": empty, "axes": np.array([1])}, NEWEST.get(op, 18), constant, reference=True)
        check(f"Reduce{op}", {"data": empty, "axes": np.array([2])}, NEWEST.get(op, 18), constant, reference=True)


@pytest.mark.parametrize(
    ("dtype", "least", "most"), [("int32", -(2**31), 2**31 - 1), ("uint8", 0, 255), ("bool", False, True)]
)
def test_extremes_of_nothing(dtype: str, least: int, most: int) -> None:
    empty = np.zeros((2, 0), dtype)
    for op, value in (("Max", least), ("Min", most)):
        check(
            f"Reduce{op}", {"data": empty, "axes": np.array([1])}, 20, ("axes",), values=[np.full((2, 1), value, dtype)]
        )


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("opset", [1, 11, 12, 13])
def test_arg(op: str, opset: int) -> None:
    check(op, {"data": X}, opset)
    check(op, {"data": X}, opset, axis=2, keepdims=0)
    check(op, {"data": X}, opset, dynamic=True, axis=1)
    if opset >= 11:
        check(op, {"data": X}, opset, axis=-2)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint8", "uint16", "uint64"])
def test_arg_of_equal_elements(op: str, dtype: str) -> None:
    x = np.array([[2, 7, 2, 7], [1, 1, 1, 1]], dtype)
    for last in (0, 1):
        for keepdims in (0, 1):
            check(op, {"data": x}, 13, axis=1, select_last_index=last, keepdims=keepdims, reference=True)
            check(op, {"data": x}, 13, axis=1, select_last_index=last, keepdims=keepdims, reference=True, dynamic=True)


@pytest.mark.parametrize(
    ("op", "options", "text"),
    [
        ("ReduceMean", {"keepdims": 1}, "data.mean([1, 2], keepdim=True)"),
        ("ReduceSum", {"keepdims": 0}, "data.sum([1, 2])"),
    ],
)
def test_reads_well(op: str, options: dict, text: str) -> None:
    assert text in source(op, {"data": X, "axes": np.array([-1, 1])}, 18, ("axes",), **options)


def test_exports_with_a_batch_that_varies() -> None:
    module = tonnx.convert(one_node("ReduceL2", {"data": X, "axes": np.array([1])}, 18, ("axes",), dynamic=True))
    program = torch.export.export(
        module, (torch.from_numpy(X),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)
    ).module()
    other = torch.rand(5, 3, 4)
    torch.testing.assert_close(program(other), module(other))


@pytest.mark.parametrize("axes", [[3], [-4]])
def test_refuses_an_axis_out_of_range(axes: list[int]) -> None:
    with pytest.raises(tonnx.Error, match="out of range"):
        tonnx.convert(one_node("ReduceSum", {"data": X, "axes": np.array(axes)}, 13, ("axes",)))
    with pytest.raises(tonnx.Error, match="out of range"):
        tonnx.convert(one_node("ArgMax", {"data": X}, 13, axis=axes[0]))

"""uint16, uint32 and uint64, which PyTorch stores but hardly computes with: every operator is exact up to the last value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import check

TYPES = ["uint16", "uint32", "uint64"]


def numbers(dtype: str, *shape: int, seed: int = 1) -> np.ndarray:
    """Numbers from the whole range, with both ends, small ones and equal ones."""
    rng = np.random.default_rng(seed)
    top = int(np.iinfo(dtype).max)
    edges = np.array([0, 1, 2, 3, top, top - 1, top // 2, top // 2 + 1, top // 2 + 2, 7, 7], dtype)
    drawn = rng.integers(0, top, 64, dtype=dtype, endpoint=True)
    pool = np.concatenate([edges, drawn])
    return rng.choice(pool, shape).astype(dtype)


def small(dtype: str, *shape: int, top: int = 5, low: int = 1) -> np.ndarray:
    return np.random.default_rng(2).integers(low, top, shape).astype(dtype)


A, B = "a", "b"


def case(op: str, opset: int, inputs: Any, name: str = "", **attributes: Any) -> Any:
    return pytest.param(op, opset, inputs, attributes, id=f"{op}{'-' if name else ''}{name}")


def pair(t: str) -> dict[str, np.ndarray]:
    return {A: numbers(t, 40), B: numbers(t, 40, seed=3)}


def divisors(t: str) -> dict[str, np.ndarray]:
    b = numbers(t, 200, seed=3)
    return {A: numbers(t, 200), B: np.where(b == 0, 1, b).astype(t)}


def index(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


X = lambda t: {A: numbers(t, 3, 4)}
ELEMENTWISE = [
    *[case(op, 14, pair) for op in ("Add", "Sub", "Mul")],
    *[case(op, 13, pair) for op in ("Max", "Min")],
    case("Max", 13, lambda t: pair(t) | {"c": numbers(t, 40, seed=5)}, "three"),
    case("Div", 14, divisors),
    case("Mod", 13, divisors),
    case("Mod", 13, divisors, "fmod", fmod=1),
    *[case(op, 13, pair) for op in ("Equal", "Greater", "Less")],
    *[case(op, 16, pair) for op in ("GreaterOrEqual", "LessOrEqual")],
    *[case(op, 18, pair) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")],
    case("BitwiseNot", 18, X),
    *[case("BitShift", 11, lambda t: {A: numbers(t, 40), B: small(t, 40, top=16, low=0)}, d, direction=d) for d in ("LEFT", "RIGHT")],
    case("Where", 16, lambda t: {"c": np.array([True, False] * 20)} | pair(t)),
    case("Clip", 13, lambda t: {A: numbers(t, 40), "low": np.array(3, t), "high": np.array(np.iinfo(t).max - 1, t)}),
    case("PRelu", 16, lambda t: {A: numbers(t, 40), B: numbers(t, 1)}),
    case("Abs", 13, X),
    case("Sign", 13, X),
    case("Shrink", 9, lambda t: {A: small(t, 3, 4, top=9, low=0)}, lambd=2.0, bias=1.0),
    case("Identity", 16, X),
    case("Pow", 15, lambda t: {A: small("int32", 40), "b": small(t, 40)}),
    case("Clip", 13, lambda t: {A: numbers(t, 40), "low": None, "high": np.array(np.iinfo(t).max // 2 + 1, t)}, "high"),
]  # fmt: skip
MOVES = [
    case("Concat", 13, pair, axis=0),
    case("Expand", 13, lambda t: {A: numbers(t, 3, 1), "shape": index(2, 3, 4)}),
    case("Tile", 13, lambda t: X(t) | {"repeats": index(2, 1)}),
    case("Slice", 13, lambda t: X(t) | {"starts": index(0, 3), "ends": index(3, 0), "axes": index(0, 1), "steps": index(2, -1)}),
    *[case("Pad", 19, lambda t: X(t) | {"pads": index(1, 2, 1, 1)}, m, mode=m) for m in ("constant", "reflect", "edge", "wrap")],
    case("Pad", 19, lambda t: X(t) | {"pads": index(1, 2, 0, 1), "value": np.array(np.iinfo(t).max, t)}, "value"),
    case("Transpose", 13, X),
    case("Split", 18, lambda t: X(t), num_outputs=1, axis=1),
    case("Gather", 13, lambda t: X(t) | {"i": index(2, 0)}),
    case("GatherElements", 13, lambda t: X(t) | {"i": index(0, 1, 2, -1).reshape(1, 4)}),
    case("GatherND", 13, lambda t: X(t) | {"i": index(0, 1, 2, 3).reshape(2, 2)}),
    *[case("ScatterElements", 18, lambda t: X(t) | {"i": index(0, 1, 2, 0).reshape(1, 4), "u": numbers(t, 1, 4, seed=9)}, r, reduction=r) for r in ("none", "add", "mul", "max", "min")],
    *[case("ScatterND", 18, lambda t: X(t) | {"i": index(0, 2).reshape(2, 1), "u": numbers(t, 2, 4, seed=9)}, r, reduction=r) for r in ("none", "add", "mul", "max", "min")],
    case("Compress", 11, lambda t: X(t) | {"c": np.array([True, False, True])}, axis=0),
    case("ReverseSequence", 10, lambda t: X(t) | {"lengths": index(1, 2, 3, 2)}),
    case("NonZero", 13, X),
    case("OneHot", 11, lambda t: {"i": small(t, 4, top=6, low=0), "depth": np.array(5), "values": np.array([0, np.iinfo(t).max], t)}),
    case("Trilu", 14, X),
    case("EyeLike", 22, X),
    case("DepthToSpace", 13, lambda t: {A: numbers(t, 1, 4, 2, 2)}, blocksize=2),
    case("SpaceToDepth", 13, lambda t: {A: numbers(t, 1, 1, 4, 4)}, blocksize=2),
    case("CenterCropPad", 18, lambda t: X(t) | {"shape": index(5, 2)}),
    case("Unique", 11, lambda t: {A: numbers(t, 30)}),
    case("Squeeze", 13, lambda t: {A: numbers(t, 3, 1), "axes": index(1)}),
]  # fmt: skip
REDUCTIONS = [
    *[case(op, 18, lambda t: {A: numbers(t, 3, 4), "axes": index(1)}) for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1")],
    *[case(op, 18, lambda t: {A: numbers(t, 3, 4)}, "all", keepdims=0) for op in ("ReduceSum", "ReduceMax", "ReduceMin")],
    case("CumProd", 26, lambda t: X(t) | {"axis": np.array(0)}),
    case("ReduceMean", 18, lambda t: {A: small(t, 3, 4, top=100) * 4, "axes": index(1)}),
    case("ReduceL2", 18, lambda t: {A: np.array([[3, 4], [6, 8]], t), "axes": index(1)}),
    *[case(op, 13, X, axis=1) for op in ("ArgMax", "ArgMin")],
    case("ArgMax", 13, X, "last", axis=1, select_last_index=1),
    case("CumSum", 14, lambda t: X(t) | {"axis": np.array(1)}),
    case("CumSum", 14, lambda t: X(t) | {"axis": np.array(1)}, "reverse", reverse=1, exclusive=1),
    case("MatMul", 13, lambda t: {A: numbers(t, 3, 4), B: numbers(t, 4, 2, seed=3)}),
    case("Einsum", 12, lambda t: {A: numbers(t, 3, 4), B: numbers(t, 4, 2, seed=3)}, equation="ij,jk->ik"),
]  # fmt: skip
NOT_OF_16_BITS = {
    "PRelu",
    "CumProd",
    "Pow",
    "ReduceSum",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceMean",
    "CumSum",
    "MatMul",
    "Gemm",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op, opset, inputs, attributes", ELEMENTWISE + MOVES + REDUCTIONS)
def test_exact(op: str, opset: int, inputs: Any, attributes: dict[str, Any], dtype: str) -> None:
    if dtype == "uint16" and op in NOT_OF_16_BITS:
        pytest.skip("the standard has it for 32 and 64 bits")
    given = inputs(dtype)
    integers = tuple(name for name, array in given.items() if array is not None and name not in (A, B, "c", "u"))
    check(op, given, opset, integers, reference=True, **attributes)
    check(op, given, opset, integers, reference=True, dynamic=(A, B), **attributes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", TYPES)
def test_what_the_reference_computes_in_floats(dtype: str) -> None:
    x = numbers(dtype, 1, 1, 2, 3)
    scales = np.array([1, 1, 2, 2], np.float32)
    options = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    check(
        "Resize",
        {"x": x, "roi": None, "scales": scales},
        19,
        ("scales",),
        values=[x.repeat(2, 2).repeat(2, 3)],
        **options,
    )
    if dtype == "uint16":
        return
    a, b, c = numbers(dtype, 3, 4), numbers(dtype, 4, 2, seed=3), numbers(dtype, 2, seed=5)
    check("Gemm", {"a": a, "b": b, "c": c}, 13, values=[a @ b + c])
    values = [(a * a).sum(1, keepdims=True, dtype=dtype)]
    check("ReduceSumSquare", {"a": a, "axes": np.array([1])}, 18, ("axes",), values=values)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_top_k(dtype: str, largest: int, k: int) -> None:
    x = numbers(dtype, 3, 9)
    order = np.argsort(x, axis=1, kind="stable")
    if largest:  # of equal ones the first comes first
        order = np.stack([sorted(range(9), key=lambda i: (-int(row[i]), i)) for row in x])
    values = [np.take_along_axis(x, order, 1)[:, :k], order[:, :k]]
    check("TopK", {"X": x, "K": np.array([k])}, 11, ("K",), outputs=2, largest=largest, values=values)


@pytest.mark.parametrize("to", ["float32", "float64", "int64", "int32", "uint8", "bool", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("dtype", TYPES)
def test_casts(dtype: str, to: str) -> None:
    x = numbers(dtype, 40)
    number = {
        "float32": 1,
        "uint8": 2,
        "uint16": 4,
        "int32": 6,
        "int64": 7,
        "bool": 9,
        "float64": 11,
        "uint32": 12,
        "uint64": 13,
    }[to]
    check("Cast", {"x": x}, 13, to=number, values=[x.astype(to)])


@pytest.mark.parametrize("dtype", TYPES)
def test_scalars_from_the_graph(dtype: str) -> None:
    x = numbers(dtype, 40)
    for value in (3, np.iinfo(dtype).max):
        y = np.array(value, dtype)
        for op in ("Add", "Mul", "Sub", "Div", "Mod", "Max", "Min", "Greater", "Less", "Equal"):
            check(op, {"x": x, "y": y}, 14, ("y",), reference=True)
            if op not in ("Div", "Mod"):
                check(op, {"y": y, "x": x}, 14, ("y",), reference=True)

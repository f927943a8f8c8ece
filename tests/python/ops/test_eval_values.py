"""Constant folding at the borders of types: every operator in every type at once, against numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tonnx

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
OPSET = 26


def borders(dtype: Any) -> np.ndarray:
    """Numbers at which a type is at its end, or rounds, or is odd in another way."""
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, info.max // 2 + 1, info.max - 1, info.max], dtype=dtype)
    info = ml_dtypes.finfo(dtype)
    tiny = [float(info.tiny), float(info.smallest_subnormal), float(info.max)]
    numbers = [0.0, -0.0, 1.0, 0.5, 1.5, 2.5, -0.5, 1 / 3, np.inf, np.nan, *tiny]
    return np.array(numbers + [-x for x in numbers], dtype=np.float64).astype(dtype)


def folded(nodes: Sequence[tuple[str, Sequence[np.ndarray | None], dict[str, Any]]]) -> list[np.ndarray]:
    """What simplify makes of nodes whose inputs are all constants."""
    graph = onnx.GraphProto(name="g")
    for i, (op, inputs, attributes) in enumerate(nodes):
        names = ["" if x is None else f"x{i}_{k}" for k, x in enumerate(inputs)]
        graph.initializer.extend(
            numpy_helper.from_array(x, name) for name, x in zip(names, inputs, strict=True) if x is not None
        )
        graph.node.append(helper.make_node(op, names, [f"y{i}"], **attributes))
        graph.output.append(helper.make_empty_tensor_value_info(f"y{i}"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    model.doc_string = " " * 10_000_000  # a file may grow by a hundredth of its size
    found = {node.output[0]: node for node in tonnx.simplify(model)[0].graph.node}
    left = {node.op_type for node in found.values()} - {"Constant"}
    assert not left, left
    return [numpy_helper.to_array(found[f"y{i}"].attribute[0].t) for i in range(len(nodes))]


def check(nodes: Sequence[Any], wanted: Sequence[np.ndarray], units: int = 0) -> None:
    """Equal in type, shape and every element; `units` in the last place may differ."""
    for node, got, want in zip(nodes, folded(nodes), wanted, strict=True):
        want = np.asarray(want)
        said = f"{node[0]} {node[1][0].dtype} {node[2]}: {got} instead of {want}"
        assert (got.dtype, got.shape) == (want.dtype, want.shape), said
        if want.dtype.kind in "biu":
            assert (got == want).all(), said
            continue
        a, b = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= units * float(ml_dtypes.finfo(want.dtype).eps) * np.abs(b)
        assert ((a == b) | (np.isnan(a) & np.isnan(b)) | near).all(), said


def quotients(a: np.ndarray, b: np.ndarray) -> list[int]:
    """Towards zero."""
    return [int(x) // int(y) if (x < 0) == (y < 0) else -(-int(x) // int(y)) for x, y in zip(a, b, strict=True)]


PAIRS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}


@pytest.mark.parametrize("op", PAIRS)
def test_pairs(op: str) -> None:
    nodes, wanted = [], []
    for dtype in FLOATS + INTS:
        x = borders(dtype)
        nodes.append((op, [x[:, None], x], {}))
        with np.errstate(all="ignore"):
            wanted.append(PAIRS[op](x[:, None], x))
    check(nodes, wanted)


def test_division() -> None:
    nodes, wanted = [], []
    for dtype in FLOATS + INTS:
        x = borders(dtype)
        a, b = (each.reshape(-1) for each in np.broadcast_arrays(x[:, None], x))
        if np.dtype(dtype).kind in "iu":
            a, b = a[b != 0], b[b != 0]
            wrapped = [q & (2 ** (8 * a.itemsize) - 1) for q in quotients(a, b)]
            wanted.append(np.array(wrapped, f"u{a.itemsize}").view(dtype))
        else:
            with np.errstate(all="ignore"):
                wanted.append(a / b)
        nodes.append(("Div", [a, b], {}))
    check(nodes, wanted)


@pytest.mark.parametrize(("op", "fmod"), [("mod", 0), ("fmod", 1)])
def test_remainder_of_integers(op: str, fmod: int) -> None:
    nodes, wanted = [], []
    for dtype in INTS:
        x = borders(dtype)
        divisors = x[x != 0]
        nodes.append(("Mod", [x[:, None], divisors], {"fmod": fmod}))
        with np.errstate(all="ignore"):
            wanted.append(getattr(np, op)(x[:, None], divisors))
    check(nodes, wanted)


ONE: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Sqrt": np.sqrt,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Sign": np.sign,
    "Exp": np.exp,
    "Log": np.log,
    "Tanh": np.tanh,
    "Sin": np.sin,
    "Atan": np.arctan,
    "Neg": np.negative,
    "IsNaN": np.isnan,
    "IsInf": np.isinf,
}


@pytest.mark.parametrize("op", ONE)
def test_one_input(op: str) -> None:
    nodes = [(op, [borders(dtype)], {}) for dtype in FLOATS]
    with np.errstate(all="ignore"):
        wanted = [ONE[op](inputs[0]) for _, inputs, _ in nodes]
    check(nodes, wanted, units=4 if op in ("Exp", "Log", "Tanh", "Sin", "Atan") else 0)


@pytest.mark.parametrize("source", FLOATS + INTS)
def test_cast(source: Any) -> None:
    nodes, wanted = [], []
    for target in [*FLOATS, *INTS, bool]:
        x = borders(source)
        if np.dtype(source).kind not in "iu" and np.dtype(target).kind in "iu":
            x = np.array([0.0, -0.0, 1.0, 1.9, 3.5, 100.25]).astype(source)  # others are left open by the spec
        nodes.append(("Cast", [x], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(target))}))
        with np.errstate(all="ignore"):
            # a float of 16 bits is rounded once, which numpy's way through float32 does not do for wide integers
            exact = x.astype(np.float64) if target in FLOATS[2:] and x.itemsize < 8 else x
            wanted.append(exact.astype(target))
    check(nodes, wanted, units=1)


def test_float_to_integer_out_of_range_is_left() -> None:
    for number in (np.nan, np.inf, 3e9, -1.0):
        graph = helper.make_graph(
            [helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.UINT8)],
            "g",
            [],
            [helper.make_empty_tensor_value_info("y")],
            [numpy_helper.from_array(np.array([number], dtype=np.float32), "x")],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
        assert [node.op_type for node in tonnx.simplify(model)[0].graph.node] == ["Cast"], number


def test_quantised_weights_stay() -> None:
    weights = {"w": np.ones((3, 2), np.int8), "s": np.array(0.5, np.float32), "z": np.array(1, np.int8)}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"]),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    y = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    left = [node.op_type for node in tonnx.simplify(model)[0].graph.node]
    assert left == ["DequantizeLinear", "MatMul"]


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("ReduceSum", 0.0),
        ("ReduceProd", 1.0),
        ("ReduceMax", -np.inf),
        ("ReduceMin", np.inf),
        ("ReduceL1", 0.0),
        ("ReduceL2", 0.0),
        ("ReduceSumSquare", 0.0),
        ("ReduceLogSum", -np.inf),
        ("ReduceLogSumExp", -np.inf),
    ],
)
def test_reduction_of_nothing(op: str, want: float) -> None:
    nodes = [(op, [np.zeros((2, 0), dtype), np.array([1])], {"keepdims": 0}) for dtype in FLOATS]
    check(nodes, [np.full(2, want, dtype) for dtype in FLOATS])


def test_large_tensors_are_cut_for_threads() -> None:
    x = np.arange(3_000_000, dtype=np.float32).reshape(3000, 1000) % 977
    row = np.linspace(-1, 1, 1000, dtype=np.float32)
    got = folded([("Mul", [x, row], {}), ("Less", [x, row * 500], {}), ("ReduceSum", [x, np.array([1])], {})])
    assert (got[0] == x * row).all()
    assert (got[1] == (x < row * 500)).all()
    assert (got[2] == x.astype(np.float64).sum(axis=1, keepdims=True).astype(np.float32)).all()

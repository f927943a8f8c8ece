"""Constant folding: what is computed of constants is what a runtime computes; layers behind it stay layers that train."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from checks import check_model, expected, forward_of, one_node, parsed
from limited_runs import run_limited
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import tonnx

RNG = np.random.default_rng(11)
TYPES = ["float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool"]
NUMBERS = TYPES[:-1]
FLOATS = ["float32", "float16", "float64"]
INTS = ["int64", "int32", "int8", "uint8"]


def array(shape: tuple[int, ...], dtype: str, low: float = -4, high: float = 5) -> np.ndarray:
    if dtype == "bool":
        return RNG.random(shape) < 0.5
    if dtype.startswith("u"):
        low = max(low, 0)
    values = RNG.uniform(low, high, shape)
    return (values if dtype.startswith("float") else np.floor(values)).astype(dtype)


def check_folded(
    op: str, inputs: dict[str, np.ndarray], opset: int = 18, folds: bool = True, outputs: int = 1, **attributes: Any
) -> None:
    """The model of constants gives what the model of inputs gives at run time, and has nothing left to compute."""
    values = None
    for reference in (False, True):
        try:
            values = expected(one_node(op, inputs, opset, outputs=outputs, **attributes), inputs, reference)
            break
        except Exception:  # ONNX Runtime has no kernel for the type
            continue
    assert values is not None
    model = one_node(op, inputs, opset, tuple(inputs), outputs=outputs, **attributes)
    given = tonnx.convert(model)()
    tolerance = 2e-3 if any(v.dtype == np.float16 for v in values) else 1e-5
    for got, want in zip(given if outputs > 1 else [given], values, strict=True):
        assert got.detach().numpy().dtype == want.dtype
        assert tuple(got.shape) == want.shape
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance)
    body = forward_of(model).splitlines()[1:]
    if folds:
        assert len(body) == 1 and re.fullmatch(r"return (self\.\w+(, )?)+", body[0].strip()), body


PAIRS = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((), (2, 3)),
    ((2, 3), ()),
    ((), ()),
    ((0, 3), (3,)),
    ((2, 0), (1, 1)),
]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_arithmetic(op: str, dtype: str) -> None:
    for a, b in PAIRS:
        x, y = array(a, dtype), array(b, dtype)
        check_folded(op, {"A": x, "B": np.where(y == 0, np.ones_like(y), y)})


@pytest.mark.parametrize("op", ["Max", "Min", "Sum"])
def test_of_many(op: str) -> None:
    check_folded(op, {"a": array((2, 3), "float32"), "b": array((3,), "float32"), "c": array((), "float32")})
    check_folded(op, {"a": array((2, 3), "float32")})
    nan = np.array([1, np.nan, 3], np.float32)
    check_folded(op, {"a": nan, "b": np.array([2, 2, np.nan], np.float32)})


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("fmod", [0, 1])
def test_mod(dtype: str, fmod: int) -> None:
    x, y = array((4, 5), dtype), array((5,), dtype)
    check_folded("Mod", {"A": x, "B": np.where(y == 0, np.ones_like(y), y)}, fmod=fmod)


def test_mod_of_floats() -> None:
    check_folded("Mod", {"A": array((4, 5), "float32"), "B": array((5,), "float32", 1)}, fmod=1)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_division_rounds_to_zero(dtype: str) -> None:
    x = np.array([7, -7, 7, -7] if dtype != "uint8" else [7, 200, 255, 0]).astype(dtype)
    y = np.array([2, 2, -2, -2] if dtype != "uint8" else [2, 7, 255, 3]).astype(dtype)
    check_folded("Div", {"A": x, "B": y})


def test_division_by_zero_is_left_to_the_run() -> None:
    model = one_node("Div", {"A": np.array([1, 2]), "B": np.array([1, 0])}, 18, ("A", "B"))
    assert "//" in forward_of(model) or "div" in forward_of(model)
    check_folded("Div", {"A": np.array([1.0, -2.0, 0.0], np.float32), "B": np.zeros(3, np.float32)})


@pytest.mark.parametrize("dtype", INTS)
def test_integers_wrap_around(dtype: str) -> None:
    edge = np.iinfo(dtype).max
    x = np.array([edge, edge - 1], dtype)
    for op in ("Add", "Mul"):
        check_folded(op, {"A": x, "B": np.array([3, 5], dtype)})
    check_folded("Sub", {"A": np.array([0, 1], dtype), "B": x})


@pytest.mark.parametrize(
    "base, power", [("float32", "float32"), ("float32", "int64"), ("float64", "float32"), ("float16", "float16")]
)
def test_pow(base: str, power: str) -> None:
    check_folded("Pow", {"X": array((2, 3), base, 0.5, 3), "Y": array((3,), power, 0, 4)})
    check_folded("Pow", {"X": array((2, 3), base), "Y": np.array(2, power)})


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "op",
    [
        "Abs",
        "Neg",
        "Exp",
        "Floor",
        "Ceil",
        "Sin",
        "Cos",
        "Tanh",
        "Sigmoid",
        "Relu",
        "Sign",
        "Round",
        "Erf",
        "Reciprocal",
        "Identity",
    ],
)
def test_one_float(op: str, dtype: str) -> None:
    name = "input" if op in ("Sin", "Cos", "Tanh", "Sign", "Erf", "Exp", "Identity") else "X"
    for shape in ((2, 3), (), (0, 2)):
        check_folded(op, {name: array(shape, dtype)})
    if op in ("Round", "Sign", "Abs", "Relu", "Floor"):
        edges = [0.5, 1.5, 2.5, -0.5, -1.5, np.inf, -np.inf, -0.0]
        edges += [] if op == "Sign" else [np.nan]  # of which ONNX Runtime has two opinions
        check_folded(op, {name: np.array(edges, dtype)})


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["Sqrt", "Log"])
def test_of_positive_numbers(op: str, dtype: str) -> None:
    check_folded(op, {"X" if op == "Sqrt" else "input": array((2, 3), dtype, 0.1)})
    check_folded(op, {"X" if op == "Sqrt" else "input": np.array([0, -1], dtype)})


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
@pytest.mark.parametrize("op", ["Abs", "Neg", "Sign"])
def test_one_integer(op: str, dtype: str) -> None:
    check_folded(op, {"input" if op == "Sign" else "X": array((2, 3), dtype)})


def test_relu_of_integers() -> None:
    check_folded("Relu", {"X": array((2, 3), "int32")})


def test_not() -> None:
    check_folded("Not", {"X": array((2, 3), "bool")})


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("op", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_comparisons(op: str, dtype: str) -> None:
    if dtype == "bool" and op != "Equal":
        return
    for a, b in PAIRS:
        check_folded(op, {"A": array(a, dtype, 0, 3), "B": array(b, dtype, 0, 3)})
    if dtype.startswith("float"):
        nan = np.array([np.nan, 1, np.inf], dtype)
        check_folded(op, {"A": nan, "B": np.array([np.nan, np.nan, np.inf], dtype)})


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic(op: str) -> None:
    for a, b in PAIRS:
        check_folded(op, {"A": array(a, "bool"), "B": array(b, "bool")})


@pytest.mark.parametrize("dtype", TYPES)
def test_where(dtype: str) -> None:
    for c, a, b in (((2, 3), (2, 3), (3,)), ((2, 1), (), (1, 3)), ((), (2,), (2,)), ((0, 3), (1, 3), ())):
        check_folded("Where", {"condition": array(c, "bool"), "X": array(a, dtype), "Y": array(b, dtype)})


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", [*TYPES, "uint16", "uint32", "uint64", "int16"])
def test_cast(source: str, target: str) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    low = 0 if target.startswith("u") else -4  # a negative float as an unsigned number is undefined
    for shape in ((2, 3), (), (0, 2)):
        check_folded("Cast", {"input": array(shape, source, low)}, to=to)


def test_cast_keeps_what_fits() -> None:
    check_folded("Cast", {"input": np.array([2**31 + 5, -1, 2**40 + 3], np.int64)}, to=TensorProto.INT32)
    check_folded(
        "Cast", {"input": np.array([1e-8, 65520.0, 1.00048828125, np.inf, np.nan], np.float32)}, to=TensorProto.FLOAT16
    )
    check_folded("Cast", {"input": np.array([0.4, -0.4, np.nan, 0.0], np.float32)}, to=TensorProto.BOOL)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "uint8"])
def test_clip(dtype: str) -> None:
    x = array((2, 5), dtype)
    check_folded("Clip", {"input": x, "min": np.array(1, dtype), "max": np.array(3, dtype)})
    check_folded("Clip", {"input": x, "min": np.array(3, dtype), "max": np.array(1, dtype)})
    check_folded("Clip", {"input": x, "min": np.array(1, dtype)})


REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int64", "int32"])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op: str, dtype: str) -> None:
    x = array((2, 3, 2), dtype, -3, 3)
    for axes in ([0], [-1], [0, 2], [1, -1], [0, 1, 2]):
        for keepdims in (0, 1):
            folds = not (op == "ReduceMean" and dtype.startswith("int"))
            check_folded(op, {"data": x, "axes": np.array(axes)}, keepdims=keepdims, folds=folds)
    folds = not (op == "ReduceMean" and dtype.startswith("int"))
    check_folded(op, {"data": x}, keepdims=0, folds=folds)
    check_folded(op, {"data": array((), dtype)}, keepdims=0, folds=folds)
    check_folded(op, {"data": x, "axes": np.zeros(0, np.int64)}, noop_with_empty_axes=1, folds=False)


def test_reductions_of_nothing_are_left_to_the_run() -> None:
    for axis in (0, 1):
        check_folded("ReduceSum", {"data": np.zeros((0, 3), np.float32), "axes": np.array([axis])}, folds=axis == 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_matmul(dtype: str) -> None:
    check_folded("MatMul", {"A": array((2, 3), dtype), "B": array((3, 4), dtype)})
    check_folded("MatMul", {"A": array((0, 3), dtype), "B": array((3, 4), dtype)})
    check_folded("MatMul", {"A": array((2, 0), dtype), "B": array((0, 4), dtype)})
    check_folded("MatMul", {"A": array((2, 2, 3), dtype), "B": array((3, 4), dtype)}, folds=False)


def test_matmul_of_vectors_is_left_to_the_run() -> None:
    check_folded("MatMul", {"A": array((3,), "float32"), "B": array((3, 4), "float32")}, folds=False)


# What only moves elements


@pytest.mark.parametrize("dtype", TYPES)
def test_moves(dtype: str) -> None:
    x = array((2, 3, 4), dtype)
    check_folded("Transpose", {"data": x})
    check_folded("Transpose", {"data": x}, perm=[1, 2, 0])
    check_folded("Transpose", {"data": array((), dtype)})
    check_folded("Reshape", {"data": x, "shape": np.array([4, -1])})
    check_folded("Reshape", {"data": x, "shape": np.array([0, 0, 2, 2])})
    check_folded("Flatten", {"input": x}, axis=-1)
    check_folded("Squeeze", {"data": x[:1], "axes": np.array([-3])})
    check_folded("Unsqueeze", {"data": x, "axes": np.array([-1, 0])})
    check_folded("Expand", {"input": x[:, :1], "shape": np.array([5, 1, 3, 1])})
    check_folded("Expand", {"input": array((), dtype), "shape": np.array([2, 2])})
    check_folded("Tile", {"input": x, "repeats": np.array([1, 2, 3])})
    check_folded("Tile", {"input": x, "repeats": np.array([1, 0, 3])})
    check_folded("Tile", {"input": x[:0], "repeats": np.array([2, 2, 3])})


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize(
    "starts, ends, axes, steps",
    [
        ([0], [2], [1], None),
        ([-2], [-1], [-1], None),
        ([1, 0], [100, 2], [2, 1], [1, 2]),
        ([-1], [-100], [2], [-1]),
        ([3], [0], [2], [-2]),
        ([2], [1], [1], None),
        ([-100], [100], [0], None),
        ([100], [-100], [2], [-3]),
        ([1, 1], [2, 2], None, None),
        ([0], [np.iinfo(np.int64).max], [1], None),
        ([-1], [np.iinfo(np.int64).min], [1], [-1]),
    ],
)
def test_slice(starts: list[int], ends: list[int], axes: list[int] | None, steps: list[int] | None, dtype: str) -> None:
    inputs = {"data": array((2, 3, 4), dtype), "starts": np.array(starts), "ends": np.array(ends)}
    if axes is not None:
        inputs["axes"] = np.array(axes)
    if steps is not None:
        inputs["steps"] = np.array(steps)
    check_folded("Slice", inputs)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
def test_parts(dtype: str) -> None:
    x = array((4, 3), dtype)
    check_folded("Split", {"input": x}, outputs=2, num_outputs=2)
    check_folded("Split", {"input": x, "split": np.array([1, 2])}, outputs=2, axis=-1)
    check_folded("Split", {"input": x, "split": np.array([0, 4])}, outputs=2)
    check_folded("Concat", {"a": x, "b": x[:1], "c": x[:0]}, axis=0)
    check_folded("Concat", {"a": x, "b": x[:, :1]}, axis=-1)
    check_folded("Gather", {"data": x, "indices": np.array([[0, -1], [2, 3]])})
    check_folded("Gather", {"data": x, "indices": np.array(-1, np.int32)}, axis=1)
    check_folded("Gather", {"data": x, "indices": np.zeros((0,), np.int64)}, axis=-1)
    check_folded("Gather", {"data": x[:, :0], "indices": np.array([1])})


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_pad(dtype: str) -> None:
    x = array((2, 3), dtype)
    check_folded("Pad", {"data": x, "pads": np.array([1, 0, 2, 3])})
    check_folded("Pad", {"data": x, "pads": np.array([0, 1, 0, 0]), "constant_value": np.array(7, dtype)})
    check_folded("Pad", {"data": x, "pads": np.array([0, 1, 0, 0])}, mode="edge", folds=False)
    check_folded("Pad", {"data": x, "pads": np.array([0, -1, 0, 0])}, folds=False)


@pytest.mark.parametrize("dtype", ["float32", "int64", "int32", "float64"])
def test_range(dtype: str) -> None:
    for start, limit, delta in ((0, 5, 1), (3, -4, -2), (2, 2, 1), (5, 0, 1)):
        inputs = {"start": np.array(start, dtype), "limit": np.array(limit, dtype), "delta": np.array(delta, dtype)}
        check_folded("Range", inputs)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
def test_constant_of_shape(dtype: str) -> None:
    for shape in ([2, 3], [0, 2], []):
        sizes = np.array(shape, np.int64)
        check_folded("ConstantOfShape", {"input": sizes}, value=numpy_helper.from_array(np.array([1], dtype)))
    check_folded("ConstantOfShape", {"input": np.array([2])})


# Layers


W = RNG.standard_normal((4, 3)).astype(np.float32)
HALF = W.astype(np.float16)
COMPUTED = {
    "constant": ("w = Constant <value = float[4, 3] {{{}}}> ()".format(", ".join(map(str, W.ravel()))), {}),
    "identity": ("w = Identity(p)", {"p": W}),
    "identities": ("a = Identity(p) b = Identity(a) w = Identity(b)", {"p": W}),
    "cast": ("w = Cast <to = 1> (p)", {"p": HALF}),
    "cast_twice": ("h = Cast <to = 10> (p) w = Cast <to = 1> (h)", {"p": W}),
    "add": ("w = Add(p, q)", {"p": W, "q": W * 2}),
    "mul": ("w = Mul(p, q)", {"p": W, "q": np.array(0.5, np.float32)}),
    "mul_by_a_column": ("w = Mul(p, q)", {"p": W, "q": W[:, :1]}),
    "transpose": ("w = Transpose <perm = [1, 0]> (p)", {"p": np.ascontiguousarray(W.T)}),
    "concat": ("w = Concat <axis = 0> (p, q)", {"p": W[:1], "q": W[1:]}),
    "slice": ("s = Constant <value_ints = [1]> () e = Constant <value_ints = [5]> () w = Slice(p, s, e)", {"p": np.tile(W, (2, 1))}),
    "split": ("k = Constant <value_ints = [4, 2]> () w, u = Split(p, k)", {"p": np.concatenate([W, W[:2]])}),
    "reshape": ("s = Constant <value_ints = [4, 3]> () w = Reshape(p, s)", {"p": W.ravel()}),
    "expand": ("s = Constant <value_ints = [4, 3]> () w = Expand(p, s)", {"p": W[:, :1]}),
    "constant_of_shape": ("s = Constant <value_ints = [4, 3]> () o = ConstantOfShape <value = float[1] {0.5}> (s) w = Mul(o, p)", {"p": W}),
    "dequantised": ("f = Cast <to = 1> (p) d = Sub(f, z) w = Mul(d, q)",
                    {"p": np.arange(12, dtype=np.int8).reshape(4, 3), "z": np.array(5, np.float32), "q": np.array(0.1, np.float32)}),
}  # fmt: skip
LAYERS = {
    "Gemm": (nn.Linear, "y = Gemm <transB = 1> (x, w)", (2, 3)),
    "MatMul": (nn.Linear, "t = Transpose <perm = [1, 0]> (w) y = MatMul(x, t)", (2, 3)),
    "Conv": (
        nn.Conv1d,
        "last = Constant <value_ints = [2]> () kernel = Unsqueeze(w, last) y = Conv(x, kernel)",
        (2, 3, 5),
    ),
    "ConvTranspose": (
        nn.ConvTranspose1d,
        "last = Constant <value_ints = [2]> () kernel = Unsqueeze(w, last) y = ConvTranspose(x, kernel)",
        (2, 4, 5),
    ),
}


def typed(name: str, value: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ascontiguousarray(value), name)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("how", COMPUTED)
def test_layer_behind_computed_weights(how: str, layer: str) -> None:
    nodes, weights = COMPUTED[how]
    kind, call, shape = LAYERS[layer]
    dims = ", ".join(["n", *map(str, shape[1:])])
    model = parsed(f"g (float[{dims}] x) => (float[] y) {{ {nodes} {call} }}")
    model.graph.initializer.extend(typed(name, value) for name, value in weights.items())
    module = check_model(model, {"x": RNG.standard_normal(shape).astype(np.float32)})
    layers = [m for m in module.modules() if isinstance(m, kind)]
    assert len(layers) == 1, forward_of(model)
    x = torch.randn(shape)
    module(x).square().sum().backward()
    weight = layers[0].weight
    if how != "dequantised":
        assert isinstance(weight, nn.Parameter) and weight.grad is not None
    assert len(list(module.state_dict())) == 1, "only the weight itself is kept"


def test_batch_norm_and_lstm_behind_casts() -> None:
    text = "g (float[n, 4, 5] x) => (float[n, 4, 5] y) { "
    text += " ".join(f"{n}f = Cast <to = 1> ({n})" for n in "abcd") + " y = BatchNormalization(x, af, bf, cf, df) }"
    model = parsed(text)
    model.graph.initializer.extend(typed(name, np.abs(HALF[:, 0]) + np.float16(0.5)) for name in "abcd")
    module = check_model(model, {"x": RNG.standard_normal((2, 4, 5)).astype(np.float32)})
    (norm,) = [m for m in module.modules() if isinstance(m, nn.BatchNorm1d)]
    assert isinstance(norm.weight, nn.Parameter)
    text = """g (float[s, b, 3] x) => (float[s, 1, b, 2] y) {
        wf = Cast <to = 1> (w) rt = Transpose <perm = [0, 2, 1]> (r) z = Concat <axis = 1> (p, q)
        y, h, c = LSTM <hidden_size = 2> (x, wf, rt, z) }"""
    model = parsed(text)
    shapes = {"w": (1, 8, 3), "r": (1, 2, 8), "p": (1, 8), "q": (1, 8)}
    for name, shape in shapes.items():
        model.graph.initializer.append(typed(name, array(shape, "float16" if name == "w" else "float32", -1, 1)))
    module = check_model(model, {"x": RNG.standard_normal((5, 2, 3)).astype(np.float32)})
    (lstm,) = [m for m in module.modules() if isinstance(m, nn.LSTM)]
    module(torch.randn(5, 2, 3)).sum().backward()
    assert all(p.grad is not None for p in lstm.parameters())


def test_a_weight_that_two_layers_share_through_identity() -> None:
    model = parsed(
        "g (float[n, 3] x) => (float[n, 4] y) { v = Identity(w) a = Gemm <transB = 1> (x, w) b = Gemm <transB = 1> (x, v) y = Add(a, b) }"
    )
    model.graph.initializer.append(typed("w", W))
    module = check_model(model, {"x": RNG.standard_normal((2, 3)).astype(np.float32)})
    assert len(list(module.parameters())) == 1


# Memory


HUGE = {
    "ConstantOfShape": "y = ConstantOfShape <value = float[1] {1.0}> (s)",
    "Expand": "one = Constant <value = float[1, 1] {1.0}> () y = Expand(one, s)",
    "Tile": "one = Constant <value = float[1, 1] {1.0}> () y = Tile(one, s)",
    "Range": "z = Constant <value_int = 0> () o = Constant <value_int = 1> () l = Constant <value_int = 10000000000> () y = Range(z, l, o)",
    "Pad": "one = Constant <value = float[1, 1] {1.0}> () p = Constant <value_ints = [0, 0, 100000, 100000]> () y = Pad(one, p)",
    "Add": "a = Constant <value = float[1, 1] {1.0}> () b = Expand(a, s) c = Expand(a, s) y = Add(b, c)",
    "MatMul": "i = Constant <value_ints = [100000, 1]> () j = Constant <value_ints = [1, 100000]> () a = ConstantOfShape(i) b = ConstantOfShape(j) y = MatMul(a, b)",
    "Where": "t = Constant <value = bool[100000, 1] {%s}> () f = Constant <value = float[1, 100000] {%s}> () y = Where(t, f, f)",
}
HUGE["Where"] %= (", ".join(["1"] * 100_000), ", ".join(["1.0"] * 100_000))


@pytest.mark.parametrize("op", HUGE)
def test_a_small_file_does_not_become_a_large_one(op: str) -> None:
    constant = "s = Constant <value_ints = [100000, 100000]> ()"
    onnx.save(
        parsed(f"g () => ({'int64' if op == 'Range' else 'float'}[] y) {{ {constant} {HUGE[op]} }}"), "model.onnx"
    )
    done = run_limited("convert", "model.onnx", "model.py")
    assert done.returncode == 0, done.stderr
    size = sum(p.stat().st_size for p in Path(".").glob("model.*") if p.suffix != ".onnx")
    assert size < 2_000_000


def test_many_small_steps_do_not_become_a_large_file() -> None:
    """Each step alone is small: together they stay within what folding may use."""
    nodes = ["s = Constant <value_ints = [500, 500]> ()"]
    nodes += [f"c{i} = ConstantOfShape <value = float[1] {{{i}.0}}> (s)" for i in range(2000)]
    nodes.append(f"y = Sum({', '.join(f'c{i}' for i in range(2000))})")
    onnx.save(parsed(f"g () => (float[] y) {{ {' '.join(nodes)} }}"), "model.onnx")
    done = run_limited("convert", "model.onnx", "model.py")
    assert done.returncode == 0, done.stderr

"""Quantisation, and what computes in eight bits, by ONNX and by ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import Block, Drawing, Pair, Unfit, Value
from onnx import TensorProto
from operators_layers import window
from table import axis_of, draws, make

FLOAT, INT8, UINT8 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8
BYTES = (INT8, UINT8)
RANKS = (0, 1, 2, 3, 4)
MICROSOFT = "com.microsoft"


def zero_point(d: Drawing, kind: int, shape: tuple[int, ...] = ()) -> Value:
    dtype = {INT8: np.int8, UINT8: np.uint8, TensorProto.INT16: np.int16, TensorProto.UINT16: np.uint16}[kind]
    return d.constant(d.numbers.integers(0 if dtype().dtype.kind == "u" else -3, 9, shape).astype(dtype))


def scales(d: Drawing, shape: tuple[int, ...] = ()) -> Value:
    return d.constant(np.array(d.numbers.choice([0.25, 0.1, 0.5, 0.03], shape or None), np.float32).reshape(shape))


def exact_scale(d: Drawing) -> Value:
    """A power of two, with which products of scales are the same in every order."""
    return d.constant(np.array(d.rng.choice([0.125, 0.25, 0.5, 1.0, 2.0]), np.float32))


def even_zero(d: Drawing, kind: int) -> Value:
    """A zero point with which halves are rounded to the same number before and after it is added."""
    return d.constant(np.array(d.rng.choice([0, 2, 4]), np.int8 if kind == INT8 else np.uint8))


def channels_of(d: Drawing, x: Value) -> tuple[int | None, tuple[int, ...]]:
    """An axis along which scales differ, and how many there are."""
    if d.opset < 13 or not x.rank or d.chance(0.6):
        return None, ()
    axis = axis_of(d, x)
    if x.shape[axis][0] != x.shape[axis][1]:
        raise Unfit("open channels")
    return axis, (x.shape[axis][0],)


def blocks_of(d: Drawing, x: Value) -> tuple[int, int, tuple[int, ...]]:
    """An axis, how long blocks are that share a scale, and the shape of the scales."""
    axis = axis_of(d, x)
    if any(a != b or a == 0 for a, b in x.shape):
        raise Unfit("open sizes")
    size = d.rng.randint(1, max(x.shape[axis][0], 2))
    shape = [a for a, _ in x.shape]
    shape[axis] = -(-shape[axis] // size)
    return axis, size, tuple(shape)


def finite(value: Value) -> bool:
    return all(np.isfinite(run).all() for run in value.runs)


@draws("QuantizeLinear", weight=1.5)
def quantize(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), RANKS, finite)
    wide = (TensorProto.INT16, TensorProto.UINT16) if d.opset >= 21 else ()
    kind = d.rng.choice([*BYTES, *BYTES, *wide])
    drawn: dict[str, Any] = {}
    if d.opset >= 21 and x.rank and d.chance(0.25):
        drawn["axis"], drawn["block_size"], shape = blocks_of(d, x)
    else:
        drawn["axis"], shape = channels_of(d, x)
    zero = zero_point(d, kind, shape) if d.chance(0.8) else None
    if d.opset >= 21 and d.chance(0.3):
        drawn["output_dtype"] = kind
    return make(d, op, [x, scales(d, shape), zero], **drawn)


@draws("DequantizeLinear", weight=1.5)
def dequantize(d: Drawing, op: str) -> Block:
    kinds = [*BYTES, TensorProto.INT32, *([TensorProto.INT16, TensorProto.UINT16] if d.opset >= 21 else [])]
    x = d.take(kinds, RANKS)
    drawn: dict[str, Any] = {}
    if d.opset >= 21 and x.rank and d.chance(0.25):
        drawn["axis"], drawn["block_size"], shape = blocks_of(d, x)
    else:
        drawn["axis"], shape = channels_of(d, x)
    has_zero = x.kind != TensorProto.INT32 and d.chance(0.8)
    return make(d, op, [x, scales(d, shape), zero_point(d, x.kind, shape) if has_zero else None], **drawn)


@draws("DynamicQuantizeLinear")
def dynamic_quantize(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), RANKS[1:], lambda v: all(r.size and np.isfinite(r).all() for r in v.runs))
    return make(d, op, [x], 3)


def second_of_product(d: Drawing, kind: int, x: Value) -> Value:
    """What a matrix, or a batch of them, is multiplied by."""
    n = d.sizes(d.dims(1))[0]
    batch = [pair if d.chance(0.7) else (1, 1) for pair in x.shape[:-2]] if d.chance(0.4) else []
    return d.fresh(kind, (*batch, x.shape[-1], n))


@draws("MatMulInteger")
def matmul_integer(d: Drawing, op: str) -> Block:
    x = d.take(BYTES, (2, 3, 4))
    y = second_of_product(d, d.rng.choice(BYTES), x)
    columns = y.shape[-1][0]
    of_columns = (columns,) if y.shape[-1][0] == y.shape[-1][1] and y.rank == 2 and d.chance(0.3) else ()
    zeros = [
        zero_point(d, x.kind) if d.chance(0.6) else None,
        zero_point(d, y.kind, of_columns) if d.chance(0.4) else None,
    ]
    return make(d, op, [x, y, *zeros])


@draws("MatMulIntegerToFloat", "DynamicQuantizeMatMul", weight=0.5)
def matmul_to_float(d: Drawing, op: str) -> Block:
    is_dynamic = op == "DynamicQuantizeMatMul"
    x = d.take((FLOAT,) if is_dynamic else BYTES, (2, 3), finite)
    y = second_of_product(d, d.rng.choice(BYTES), x)
    n = y.shape[-1]
    zeros = [None if is_dynamic else zero_point(d, x.kind), zero_point(d, y.kind) if d.chance(0.5) else None]
    bias = d.fresh(FLOAT, (n,)) if d.chance(0.5) else None
    if is_dynamic:
        return make(d, op, [x, y, scales(d), zeros[1], bias], domain=MICROSOFT)
    return make(d, op, [x, y, scales(d), scales(d), *zeros, bias], domain=MICROSOFT)


@draws("ConvInteger", weight=0.7)
def conv_integer(d: Drawing, op: str) -> Block:
    x = d.take([UINT8], (3, 4, 4))
    w, drawn = kernels(d, x, UINT8)
    return make(d, op, [x, w, zero_point(d, UINT8) if d.chance(0.6) else None], **drawn)


def kernels(d: Drawing, x: Value, kind: int) -> tuple[Value, dict[str, Any]]:
    """The weights of a convolution over x, and its attributes."""
    channels = x.shape[1]
    if channels[0] != channels[1] or not channels[0]:  # over no channels ONNX Runtime never ends
        raise Unfit("open channels")
    groups = d.rng.choice([g for g in (1, 1, 2, 3) if channels[0] % g == 0])
    kernel = [d.rng.randint(1, 3) for _ in x.shape[2:]]
    sizes = (groups * d.rng.randint(1, 2), channels[0] // groups, *kernel)
    w = d.fresh(kind, tuple((n, n) for n in sizes))
    return w, {"group": groups if groups > 1 else None, **window(d, len(kernel))}


@draws("QLinearMatMul", weight=0.7)
def qlinear_matmul(d: Drawing, op: str) -> Block:
    kind = d.rng.choice(BYTES)
    x = d.take([kind], (2, 3, 4))
    y = second_of_product(d, kind, x)
    parts = [x, exact_scale(d), zero_point(d, kind), y, exact_scale(d), zero_point(d, kind)]
    return make(d, op, [*parts, exact_scale(d), zero_point(d, kind)])


@draws("QLinearConv", weight=0.7)
def qlinear_conv(d: Drawing, op: str) -> Block:
    kind = d.rng.choice(BYTES)
    x = d.take([kind], (3, 4, 4))
    w, drawn = kernels(d, x, kind)
    out = w.shape[0][0]
    of_w = [exact_scale(d), zero_point(d, kind)]
    if d.chance(0.4):
        of_w[0] = d.constant(d.numbers.choice([0.25, 0.5, 1.0], out).astype(np.float32))
        of_w[1] = zero_point(d, kind, (out,)) if kind == UINT8 else d.constant(np.zeros(out, np.int8))
    parts: list[Value | None] = [x, exact_scale(d), zero_point(d, kind), w, *of_w, exact_scale(d), zero_point(d, kind)]
    if d.chance(0.4):
        parts.append(d.constant(d.numbers.integers(-20, 20, out).astype(np.int32)))
    return make(d, op, parts, **drawn)


@draws("QLinearAdd", "QLinearMul", weight=0.4)
def qlinear_binary(d: Drawing, op: str) -> Block:
    x = d.take(BYTES, RANKS[1:])
    y = d.like(x)
    parts = [part for value in (x, y) for part in (value, exact_scale(d), zero_point(d, x.kind))]
    return make(d, op, [*parts, exact_scale(d), even_zero(d, x.kind)], domain=MICROSOFT)


@draws("QLinearLeakyRelu", weight=0.3)
def qlinear_leaky(d: Drawing, op: str) -> Block:
    x = d.take(BYTES, RANKS)
    parts = [x, exact_scale(d), zero_point(d, x.kind), exact_scale(d), even_zero(d, x.kind)]
    return make(d, op, parts, domain=MICROSOFT, alpha=d.rng.choice([0.25, 0.5]))


@draws("QLinearWhere", weight=0.4)
def qlinear_where(d: Drawing, op: str) -> Block:
    x = d.take(BYTES, RANKS[1:])
    y = d.like(x)
    test = d.fresh(TensorProto.BOOL, x.shape)
    parts = [part for value in (x, y) for part in (value, exact_scale(d), zero_point(d, x.kind))]
    return make(d, op, [test, *parts, exact_scale(d), even_zero(d, x.kind)], domain=MICROSOFT)


@draws("QLinearConcat", weight=0.4)
def qlinear_concat(d: Drawing, op: str) -> Block:
    x = d.take(BYTES, RANKS[1:])
    axis = axis_of(d, x)
    parts: list[Value] = []
    for at in range(d.rng.randint(1, 3)):
        sizes: list[Pair] = list(x.shape)
        sizes[axis] = (n := d.rng.randint(1, 3), n)
        parts += [x if at == 0 else d.fresh(x.kind, sizes), exact_scale(d), zero_point(d, x.kind)]
    return make(d, op, [exact_scale(d), even_zero(d, x.kind), *parts], domain=MICROSOFT, axis=axis)


@draws("QLinearAveragePool", "QLinearGlobalAveragePool", weight=0.4)
def qlinear_pool(d: Drawing, op: str) -> Block:
    x = d.take(BYTES, (4,))
    last = d.rng.choice([0, 0, 1])
    parts = [x, exact_scale(d), zero_point(d, x.kind), exact_scale(d), even_zero(d, x.kind)]
    if op == "QLinearGlobalAveragePool":
        return make(d, op, parts, domain=MICROSOFT, channels_last=last)
    drawn = {k: v for k, v in window(d, 2).items() if k != "dilations"}
    kernel = [d.rng.choice([1, 2, 4]) for _ in range(2)]  # whose areas are powers of two
    counted = 1 if d.chance(0.5) else None
    return make(
        d, op, parts, domain=MICROSOFT, kernel_shape=kernel, channels_last=last, count_include_pad=counted, **drawn
    )


@draws("QGemm", weight=0.4)
def qgemm(d: Drawing, op: str) -> Block:
    x = d.take(BYTES, (2,))
    ta, tb = d.rng.choice([0, 1]), d.rng.choice([0, 1])
    k = x.shape[0] if ta else x.shape[1]
    n = (size := d.rng.randint(1, 4), size)
    y = d.fresh(x.kind, (n, k) if tb else (k, n))
    parts: list[Value | None] = [x, exact_scale(d), zero_point(d, x.kind), y, exact_scale(d), zero_point(d, x.kind)]
    bias = d.constant(d.numbers.integers(-20, 20, (size,)).astype(np.int32)) if d.chance(0.5) else None
    after = [exact_scale(d), even_zero(d, x.kind)] if d.chance(0.6) else []
    return make(d, op, [*parts, bias, *after], domain=MICROSOFT, transA=ta, transB=tb, alpha=d.rng.choice([1.0, 0.5]))


@draws("MatMulNBits", weight=0.5)
def matmul_bits(d: Drawing, op: str) -> Block:
    """Weights of four or eight bits in blocks, two of four bits in one byte."""
    x = d.take((FLOAT,), (2, 3), finite)
    if x.shape[-1][0] != x.shape[-1][1] or not x.shape[-1][0]:
        raise Unfit("open features")
    k, n, bits, block = x.shape[-1][0], d.rng.randint(1, 4), d.rng.choice([4, 8]), d.rng.choice([16, 32])
    blocks = -(-k // block)
    w = d.constant(d.numbers.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8))
    scale = d.constant((d.numbers.random((n, blocks)) * 0.2).astype(np.float32))
    zero = None
    if d.chance(0.5):
        zero = d.constant(d.numbers.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8))
    bias = d.fresh(FLOAT, ((n, n),)) if d.chance(0.3) else None
    return make(d, op, [x, w, scale, zero, None, bias], domain=MICROSOFT, K=k, N=n, bits=bits, block_size=block)

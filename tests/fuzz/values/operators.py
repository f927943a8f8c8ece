"""Element by element, reductions and the like: operators whose inputs need no particular shape."""

from __future__ import annotations

import numpy as np
from drawing import BOOL, FLOATS, PLAIN, Block, Drawing, Unfit, Value, broadcasts
from onnx import TensorProto
from table import axis_of, draws, has_input, kinds_of, make, number, some_axes

RANKS = (0, 1, 1, 2, 2, 3, 3, 4, 5)
FLOAT_ATTRIBUTES = {
    "Celu": {"alpha": (0.3, 2)}, "Elu": {"alpha": (-1, 2)}, "Selu": {"alpha": (0.5, 2), "gamma": (0.5, 2)},
    "LeakyRelu": {"alpha": (-1, 2)}, "ThresholdedRelu": {"alpha": (-1, 2)}, "HardSigmoid": {"alpha": (-1, 1), "beta": (-1, 1)},
    "Shrink": {"lambd": (-1, 2), "bias": (-1, 1)}, "Swish": {"alpha": (-1, 2)},
}  # fmt: skip
UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor HardSigmoid HardSwish Identity IsNaN "
    "LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh "
    "ThresholdedRelu"
).split()


@draws(*UNARY, weight=0.6)
def unary(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    drawn = {name: number(d, *span) for name, span in FLOAT_ATTRIBUTES.get(op, {}).items() if d.chance(0.7)}
    return make(d, op, [x], **drawn)


@draws("IsInf")
def is_inf(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    return make(d, op, [x], detect_negative=d.rng.choice([None, 0, 1]), detect_positive=d.rng.choice([None, 0, 1]))


@draws("Gelu")
def gelu(d: Drawing, op: str) -> Block:
    return make(d, op, [d.take(kinds_of(d, op), RANKS)], approximate=d.rng.choice([None, "none", "tanh"]))


BINARY = "Add Sub Mul Div Pow And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual BitwiseAnd BitwiseOr BitwiseXor".split()


def can_divide(x: Value, y: Value) -> bool:
    """Whether whole numbers divide: 0, and the lowest number by -1, end the process of ONNX Runtime."""
    if x.kind in FLOATS or x.is_float:
        return True
    for a, b in zip(x.runs, y.runs, strict=True):
        if (b == 0).any() or (b.dtype.kind == "i" and (b == -1).any() and (a == np.iinfo(a.dtype).min).any()):
            return False
    return True


@draws(*BINARY, weight=0.9)
def binary(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    y = d.like(x)
    if op == "Pow" and not x.is_float and any((np.abs(v.astype(float)) > 8).any() or (v < 0).any() for v in y.runs):
        raise Unfit("powers of whole numbers")
    if op != "Pow" and d.chance(0.3):
        x, y = y, x
    if op == "Div" and not can_divide(x, y):
        raise Unfit("no whole quotient")
    return make(d, op, [x, y])


@draws("PRelu")
def prelu(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    slope = d.like(x)
    if slope.rank > x.rank or any(
        b != (1, 1) and a != b for a, b in zip(x.shape[::-1], slope.shape[::-1], strict=False)
    ):
        raise Unfit("broadcasts one way only")
    return make(d, op, [x, slope])


@draws("Pow")
def power(d: Drawing, op: str) -> Block:
    if d.chance(0.5):
        return binary(d, op)
    x = d.take(FLOATS, RANKS)
    kind = d.rng.choice([*FLOATS, TensorProto.INT64, TensorProto.INT32])
    y = d.constant(
        np.array(d.rng.choice([-2, -1, -0.5, 0, 0.5, 1, 2, 3])).astype(x.dtype if kind in FLOATS else np.int64)
    )
    return make(d, op, [x, y])


@draws("Mod")
def mod(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    y = d.like(x)
    if not can_divide(x, y):
        raise Unfit("no whole quotient")
    return make(d, op, [x, y], fmod=1 if x.is_float else d.rng.choice([None, 0, 1]))


@draws("BitShift")
def bit_shift(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    y = d.fresh(x.kind, x.shape, lambda size: d.numbers.integers(0, 8, size).astype(x.dtype))
    return make(d, op, [x, y], direction=d.rng.choice(["LEFT", "RIGHT"]))


@draws("Max", "Min", "Mean", "Sum")
def variadic(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    parts = [x]
    for _ in range(d.rng.choice([0, 1, 1, 1, 2])):
        y = d.like(x)
        if all(broadcasts(y.shape, p.shape) for p in parts):
            parts.insert(d.rng.randint(0, len(parts)), y)
    return make(d, op, parts)


@draws("Where", weight=1.5)
def where(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op, 1), RANKS)
    y = d.like(x)
    try:
        test = d.pick([BOOL], lambda v: broadcasts(v.shape, x.shape) and broadcasts(v.shape, y.shape))
    except Unfit:
        test = d.fresh(BOOL, x.shape)
    return make(d, op, [test, *d.rng.sample([x, y], 2)])


@draws("Clip", weight=1.5)
def clip(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    low, high = sorted((d.rng.uniform(-3, 3), d.rng.uniform(-3, 3)))
    if x.dtype.kind == "u":
        low, high = 0, 4
    if not has_input(d, op, "min"):
        return make(d, op, [x], min=d.rng.choice([None, low]), max=d.rng.choice([None, high]))
    if x.kind not in PLAIN:
        raise Unfit("no constant of this type")
    if d.chance(0.1):  # where the least is above the most, it is the most that counts
        low, high = high, low
    bounds = [d.told(np.array(b).astype(x.dtype)) if d.chance(0.7) else None for b in (low, high)]
    return make(d, op, [x, *bounds])


REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split()


@draws(*REDUCTIONS, weight=0.5)
def reduction(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    keep = d.rng.choice([None, 0, 1])
    empty = d.rng.choice([None, 0, 1])
    axes = some_axes(d, x)
    if has_input(d, op, "axes"):
        given = None if d.chance(0.2) else d.told(np.array(axes, np.int64))
        return make(d, op, [x, given], keepdims=keep, noop_with_empty_axes=empty)
    return make(d, op, [x], axes=axes or None, keepdims=keep)


@draws("ArgMax", "ArgMin")
def arg_reduction(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS[1:])
    last = d.rng.choice([None, 0, 1])
    return make(d, op, [x], axis=axis_of(d, x), keepdims=d.rng.choice([None, 0, 1]), select_last_index=last)


@draws("Softmax", "LogSoftmax", "Hardmax", weight=0.7)
def softmax(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS[1:])
    return make(d, op, [x], axis=axis_of(d, x) if d.chance(0.8) else None)


@draws("LpNormalization")
def lp_normalization(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS[1:])
    return make(d, op, [x], axis=axis_of(d, x), p=d.rng.choice([None, 1, 2]))


@draws("CumSum", "CumProd")
def cumulative(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS[1:])
    axis = d.told(np.array(axis_of(d, x), d.rng.choice([np.int32, np.int64])))
    return make(d, op, [x, axis], exclusive=d.rng.choice([None, 0, 1]), reverse=d.rng.choice([None, 0, 1]))


@draws("TopK")
def top_k(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS[1:])
    axis = axis_of(d, x)
    most = min(x.shape[axis])
    # equal elements may come in any order, so that each value has to be there once
    for run in x.runs:
        if run.size and (np.isnan(run.astype(np.float64)).any() or np.unique(run.astype(np.float64)).size < run.size):
            raise Unfit("elements that are equal")
    if most == 0:
        raise Unfit("no elements")
    k = d.told(np.array([d.rng.randint(0 if d.chance(0.1) else 1, most)]))
    if not has_input(d, op, "K"):
        raise Unfit("an old form")
    return make(d, op, [x, k], 2, axis=axis, largest=d.rng.choice([None, 0, 1]), sorted=d.rng.choice([None, 1]))


def can_cast(x: Value, kind: int) -> bool:
    """Whether a cast is defined: floats that are no number, or out of range, become anything as whole numbers."""
    if not x.is_float or kind in FLOATS or kind == BOOL:
        return True
    return all(np.isfinite(v.astype(np.float64)).all() and (np.abs(v.astype(np.float64)) < 100).all() for v in x.runs)


def can_be_unsigned(x: Value) -> bool:
    return not x.is_float or all((v.astype(np.float64) > -1).all() for v in x.runs)


@draws("Cast", weight=3)
def cast(d: Drawing, op: str) -> Block:
    x = d.pick(PLAIN)
    kind = d.rng.choice([*PLAIN, TensorProto.FLOAT, TensorProto.BFLOAT16, TensorProto.INT64])
    if d.chance(0.3):
        x = d.pick(None)
    if not can_cast(x, kind) or (np.dtype(object) == x.dtype):
        raise Unfit("no defined value")
    if kind in (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64) and not can_be_unsigned(
        x
    ):
        raise Unfit("no defined value")
    return make(d, op, [x], to=kind)


@draws("CastLike")
def cast_like(d: Drawing, op: str) -> Block:
    x = d.pick(PLAIN)
    y = d.constant(d.numbers_of(d.rng.choice(PLAIN), (1,))) if d.chance(0.3) else d.pick(PLAIN)
    if not can_cast(x, y.kind) or (y.dtype.kind == "u" and not can_be_unsigned(x)):
        raise Unfit("no defined value")
    return make(d, op, [x, y])


@draws("Dropout", weight=0.5)
def dropout(d: Drawing, op: str) -> Block:
    x = d.take(FLOATS, RANKS)
    if has_input(d, op, "ratio"):
        ratio = d.constant(np.array(0.3, np.float32)) if d.chance(0.5) else None
        return make(d, op, [x, ratio], d.rng.choice([1, 2]))
    return make(d, op, [x], ratio=0.3)


@draws("MeanVarianceNormalization", weight=0.5)
def mean_variance(d: Drawing, op: str) -> Block:
    x = d.take(
        (TensorProto.FLOAT,), (4,)
    )  # of others ONNX Runtime has the body alone, which before opset 18 is of float
    axes = [a for a in range(4) if d.chance(0.6)]
    return make(d, op, [x], axes=axes or None)


@draws("Trilu")
def trilu(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, (2, 3, 4))
    k = d.told(np.array(d.rng.choice([-9, -3, -2, -1, 0, 1, 2, 3, 9]))) if d.chance(0.6) else None
    return make(d, op, [x, k], upper=d.rng.choice([None, 0, 1]))


@draws("EyeLike", weight=0.5)
def eye_like(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, (2,))
    return make(d, op, [x], k=d.rng.choice([None, -1, 0, 1, 2]), dtype=d.rng.choice([None, 1, 7, 9]))


@draws("NonZero")
def non_zero(d: Drawing, op: str) -> Block:
    return make(d, op, [d.take(PLAIN, RANKS[1:])])


@draws("Compress")
def compress(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS[1:])
    if d.chance(0.3):
        size = min(v.size for v in x.runs)
        axis = None
    else:
        axis = axis_of(d, x)
        size = min(x.shape[axis])
    chosen = d.constant(d.numbers.random(d.rng.randint(0, size)) < 0.5)
    return make(d, op, [x, chosen], axis=axis)


@draws("Unique")
def unique(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, (1, 1, 2, 3))
    if any(np.isnan(v.astype(np.float64)).any() for v in x.runs):
        raise Unfit("no order")
    axis = None if d.chance(0.4) else axis_of(d, x)
    return make(d, op, [x], d.rng.choice([1, 2, 3, 4]), axis=axis, sorted=d.rng.choice([None, 0, 1]))

"""Spectra, windows, and operators that few models have."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import FLOATS, PLAIN, Block, Drawing, Unfit
from onnx import TensorProto, helper
from table import axis_of, draws, has_input, make

FLOAT = TensorProto.FLOAT
RANKS = (1, 1, 2, 2, 3, 3, 4)


@draws("DFT", weight=0.8)
def dft(d: Drawing, op: str) -> Block:
    x = d.fresh(FLOAT, (*d.sizes(d.dims(d.rng.choice([2, 2, 3]))), d.rng.choice([(1, 1), (2, 2)])))
    one_sided = d.rng.choice([None, 0, 1]) if x.shape[-1] == (1, 1) else None
    inverse = None if one_sided else d.rng.choice([None, 0, 1])
    axis = d.rng.choice([1, 1, *range(x.rank - 1)])
    if d.chance(0.3):
        axis -= x.rank
    length = d.told(np.array(d.rng.randint(1, 7))) if d.chance(0.3) else None
    if has_input(d, op, "axis"):
        shown = None if axis == -2 and d.chance(0.5) else d.told(np.array(axis))
        return make(d, op, [x, length, shown], onesided=one_sided, inverse=inverse)
    return make(d, op, [x, length], axis=axis, onesided=one_sided, inverse=inverse)


@draws("STFT", weight=0.6)
def stft(d: Drawing, op: str) -> Block:
    batch, steps = d.sizes(d.dims(1))[0], d.rng.randint(4, 12)
    x = d.fresh(FLOAT, (batch, (steps, steps), (1, 1)))
    length = d.rng.randint(1, 4)
    # onesided is always said: ONNX infers shapes as if it were 0 where it is absent, and means 1
    window = d.constant(d.numbers.random(length).astype(np.float32)) if d.chance(0.6) else None
    shown = d.constant(np.array(length)) if window is None or d.chance(0.5) else None
    return make(d, op, [x, d.constant(np.array(d.rng.randint(1, 3))), window, shown], onesided=d.rng.randint(0, 1))


@draws("HannWindow", "HammingWindow", "BlackmanWindow", weight=0.2)
def signal_window(d: Drawing, op: str) -> Block:
    size = d.told(np.array(d.rng.randint(2, 9)), p=0.3)
    return make(d, op, [size], periodic=d.rng.choice([None, 0, 1]), output_datatype=d.rng.choice([None, 1, 11]))


@draws("MelWeightMatrix", weight=0.2)
def mel_weights(d: Drawing, op: str) -> Block:
    numbers = (d.rng.randint(1, 5), d.rng.choice([8, 16]), d.rng.choice([8000, 16000]))
    parts = [d.constant(np.array(n)) for n in numbers]
    edges = [d.constant(np.array(e, np.float32)) for e in (d.rng.choice([0.0, 100.0]), d.rng.choice([2000.0, 4000.0]))]
    return make(d, op, [*parts, *edges])


@draws("MaxUnpool", weight=0.5)
def max_unpool(d: Drawing, op: str) -> Block:
    """A pool whose maxima are put back where they were."""
    x = d.take((FLOAT,), (3, 4, 4), lambda v: all(np.isfinite(r).all() and r.size for r in v.runs))
    rank = x.rank - 2
    kernel, strides = [2] * rank, [2] * rank
    values, places, result = d.name(), d.name(), d.name()
    nodes = [
        helper.make_node("MaxPool", [x.name], [values, places], kernel_shape=kernel, strides=strides),
        helper.make_node("MaxUnpool", [values, places], [result], kernel_shape=kernel, strides=strides),
    ]
    return Block(nodes, [x], [values, result])


@draws("MaxRoiPool", weight=0.3)
def max_roi_pool(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (4,), lambda v: all(np.isfinite(r).all() and r.size for r in v.runs))
    count = d.rng.randint(1, 3)
    boxes = np.sort(d.numbers.integers(0, 6, (count, 4)), axis=1)[:, [0, 1, 2, 3]].astype(np.float32)
    first = d.numbers.integers(0, min(x.shape[0]), (count, 1)).astype(np.float32)
    rois = d.constant(np.concatenate([first, boxes], axis=1))
    return make(
        d, op, [x, rois], pooled_shape=[d.rng.randint(1, 3) for _ in range(2)], spatial_scale=d.rng.choice([None, 0.5])
    )


@draws("DeformConv", weight=0.5)
def deform_conv(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (4,), lambda v: all(np.isfinite(r).all() and r.size for r in v.runs))
    if any(a != b for a, b in x.shape[1:]):
        raise Unfit("open sizes")
    channels, sizes = x.shape[1][0], [a for a, _ in x.shape[2:]]
    kernel, pads = [d.rng.randint(1, 2) for _ in range(2)], [d.rng.randint(0, 1) for _ in range(4)]
    out = [sizes[i] + pads[i] + pads[i + 2] - kernel[i] + 1 for i in range(2)]
    if min(out) < 1:
        raise Unfit("no windows")
    taps = kernel[0] * kernel[1]
    w = d.fresh(FLOAT, tuple((n, n) for n in (2, channels, *kernel)))
    places = (*((n, n) for n in out),)
    offset = d.fresh(
        FLOAT, (x.shape[0], (2 * taps, 2 * taps), *places), lambda s: d.numbers.random(s).astype(np.float32)
    )
    bias = d.fresh(FLOAT, ((2, 2),)) if d.chance(0.4) else None
    mask = d.fresh(FLOAT, (x.shape[0], (taps, taps), *places)) if d.chance(0.4) else None
    return make(d, op, [x, w, offset, bias, mask], kernel_shape=kernel, pads=pads)


@draws("RotaryEmbedding", weight=0.6)
def rotary(d: Drawing, op: str) -> Block:
    b, s = d.sizes(d.dims(2))
    heads, half = d.rng.randint(1, 3), d.rng.randint(1, 3)
    size = 2 * half + 2 * d.rng.choice([0, 0, 1])
    is_flat = d.chance(0.4)
    x = d.fresh(FLOAT, (b, s, (heads * size,) * 2) if is_flat else (b, (heads, heads), s, (size, size)))
    drawn: dict[str, Any] = {"num_heads": heads if is_flat else None, "interleaved": d.rng.choice([None, 0, 1])}
    if size != 2 * half:
        drawn["rotary_embedding_dim"] = 2 * half
    if d.chance(0.5):
        tables = [d.fresh(FLOAT, (b, s, (half, half))) for _ in range(2)]
        return make(d, op, [x, *tables], **drawn)
    tables = [d.fresh(FLOAT, ((9, 9), (half, half))) for _ in range(2)]
    at = d.fresh(TensorProto.INT64, (b, s), lambda n: d.numbers.integers(0, 9, n).astype(np.int64))
    return make(d, op, [x, *tables, at], **drawn)


@draws("Scatter", weight=0.5)
def scatter(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    axis = axis_of(d, x) % x.rank
    size = min(x.shape[axis])
    if size < 1:
        raise Unfit("nothing to write to")
    place = d.rng.randrange(size)
    sizes = tuple((1, 1) if i == axis else pair for i, pair in enumerate(x.shape))
    chosen = d.fresh(TensorProto.INT64, sizes, lambda s: np.full(s, place, np.int64))
    return make(d, op, [x, chosen, d.fresh(x.kind, sizes)], axis=axis)


@draws("OptionalHasElement", weight=0.3)
def optional(d: Drawing, op: str) -> Block:
    """A value that is made optional, looked at, and taken out again."""
    if d.opset < 15:
        raise Unfit(op)
    x = d.take(PLAIN, RANKS)
    box, test, result = d.name("q"), d.name(), d.name()
    nodes = [
        helper.make_node("Optional", [x.name], [box]),
        helper.make_node("OptionalHasElement", [box], [test]),
        helper.make_node("OptionalGetElement", [box], [result]),
    ]
    return Block(nodes, [x], [test, result])


@draws("SequenceMap", weight=0.5)
def sequence_map(d: Drawing, op: str) -> Block:
    """The parts of a value, each through the same graph, joined again."""
    d.schema(op)
    x = d.take(FLOATS[:2], RANKS, lambda v: all(r.size for r in v.runs))
    axis, inner = axis_of(d, x), d.rng.choice(["Abs", "Neg", "Sqrt", "Identity"])
    parts, mapped, result, item, after = (d.name("q") for _ in range(5))
    body = helper.make_graph(
        [helper.make_node(inner, [item], [after])],
        "body",
        [helper.make_tensor_value_info(item, x.kind, None)],
        [helper.make_tensor_value_info(after, x.kind, None)],
    )
    nodes = [
        helper.make_node("SplitToSequence", [x.name], [parts], axis=axis),
        helper.make_node("SequenceMap", [parts], [mapped], body=body),
        helper.make_node("ConcatFromSequence", [mapped], [result], axis=axis),
    ]
    return Block(nodes, [x], [result])


@draws("SequenceEmpty", weight=0.3)
def sequence_empty(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    empty, one, result = d.name("q"), d.name("q"), d.name()
    nodes = [
        helper.make_node("SequenceEmpty", [], [empty], dtype=x.kind),
        helper.make_node("SequenceInsert", [empty, x.name], [one]),
        helper.make_node("ConcatFromSequence", [one], [result], axis=axis_of(d, x)),
    ]
    return Block(nodes, [x], [result])

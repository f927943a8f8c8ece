"""Operators that ONNX Runtime adds, in floats: those that its optimizer makes of others, and a few more."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import PLAIN, Block, Drawing, Unfit, Value
from onnx import TensorProto
from operators_layers import window
from table import draws, make, number

FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
RANKS = (1, 2, 2, 3, 3, 4)
DOMAIN = "com.microsoft"


@draws("QuickGelu", "FastGelu", weight=0.3)
def activation(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), RANKS)
    if op == "QuickGelu":
        return make(d, op, [x], domain=DOMAIN, alpha=d.rng.choice([None, 1.0, 0.5]))
    bias = d.fresh(FLOAT, x.shape[-1:]) if d.chance(0.5) else None
    return make(d, op, [x, bias], domain=DOMAIN)


@draws("BiasGelu", weight=0.3)
def bias_gelu(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), RANKS)
    return make(d, op, [x, d.fresh(FLOAT, x.shape[-1:])], domain=DOMAIN)


@draws("FusedMatMul", "TransposeMatMul", weight=0.6)
def fused_matmul(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (2, 2, 3, 4))
    ta, tb = d.rng.choice([None, 0, 1]), d.rng.choice([None, 0, 1])
    k = x.shape[-2] if ta else x.shape[-1]
    n = d.sizes(d.dims(1))[0]
    batch = list(x.shape[:-2]) if d.chance(0.6) else []
    y = d.fresh(FLOAT, (*batch, n, k) if tb else (*batch, k, n))
    alpha = number(d) if d.chance(0.4) else None
    return make(d, op, [x, y], domain=DOMAIN, transA=ta, transB=tb, alpha=alpha)


@draws("FusedGemm", weight=0.4)
def fused_gemm(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (2,))
    n = d.sizes(d.dims(1))[0]
    y = d.fresh(FLOAT, (x.shape[1], n))
    bias = d.fresh(FLOAT, d.rng.choice([(n,), (x.shape[0], n)])) if d.chance(0.7) else None
    return make(d, op, [x, y, bias], domain=DOMAIN, activation=d.rng.choice(["Relu", "Tanh", "Sigmoid"]))


@draws("FusedConv", weight=0.5)
def fused_conv(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (3, 4, 4))
    channels = x.shape[1]
    if channels[0] != channels[1] or not channels[0]:  # over no channels ONNX Runtime never ends
        raise Unfit("open channels")
    kernel, out = [d.rng.randint(1, 3) for _ in x.shape[2:]], d.rng.randint(1, 3)
    w = d.fresh(FLOAT, tuple((n, n) for n in (out, channels[0], *kernel)))
    bias = d.fresh(FLOAT, ((out, out),)) if d.chance(0.5) else None
    kind = d.rng.choice(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
    numbers = {"LeakyRelu": [0.2], "Clip": [-0.5, 0.7], "HardSigmoid": [0.3, 0.4]}.get(kind)
    return make(
        d, op, [x, w, bias], domain=DOMAIN, activation=kind, activation_params=numbers, **window(d, len(kernel))
    )


@draws("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", weight=0.5)
def skip_norm(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (3,), lambda v: all(r.size for r in v.runs))
    size = x.shape[-1]
    skip = d.fresh(FLOAT, x.shape)
    parts: list[Value | None] = [x, skip, d.fresh(FLOAT, (size,))]
    if op == "SkipLayerNormalization":
        parts.append(d.fresh(FLOAT, (size,)) if d.chance(0.6) else None)
    parts.append(d.fresh(FLOAT, (size,)) if d.chance(0.4) else None)
    block = make(d, op, parts, domain=DOMAIN, epsilon=d.rng.choice([None, 1e-3]))
    if d.chance(0.4):  # the sum before the norm
        block.nodes[0].output.extend(["", "", total := d.name()])
        block.outputs.append(total)
    return block


@draws("ExpandDims", weight=0.3)
def expand_dims(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    axis = d.constant(np.array(d.rng.randint(-x.rank - 1, x.rank), np.int32))
    return make(d, op, [x, axis], domain=DOMAIN)


@draws("Inverse", weight=0.2)
def inverse(d: Drawing, op: str) -> Block:
    n = d.rng.randint(1, 3)

    def array(size: tuple[int, ...]) -> np.ndarray:
        return (d.numbers.standard_normal(size) * 0.3 + 2 * np.eye(n)).astype(np.float32)

    return make(d, op, [d.fresh(FLOAT, (*d.sizes(d.dims(1)), (n, n), (n, n)), array)], domain=DOMAIN)


@draws("CDist", weight=0.3)
def distances(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (2,))
    y = d.fresh(FLOAT, (d.sizes(d.dims(1))[0], x.shape[1]))
    return make(d, op, [x, y], domain=DOMAIN, metric=d.rng.choice(["euclidean", "sqeuclidean"]))


@draws("CropAndResize", weight=0.3)
def crop_and_resize(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (4,), lambda v: all(r.size and np.isfinite(r).all() for r in v.runs))
    count = d.rng.randint(1, 3)
    boxes = d.constant(d.numbers.uniform(-0.2, 1.2, (count, 4)).astype(np.float32))
    at = d.constant(d.numbers.integers(0, min(x.shape[0]), count).astype(np.int32))
    size = d.constant(np.array([d.rng.randint(1, 4) for _ in range(2)], np.int32))
    drawn: dict[str, Any] = {
        "mode": d.rng.choice([None, "bilinear", "nearest"]),
        "extrapolation_value": d.rng.choice([None, 1.5]),
    }
    return make(d, op, [x, boxes, at, size], domain=DOMAIN, **drawn)


@draws("MultiHeadAttention", weight=0.6)
def multi_head(d: Drawing, op: str) -> Block:
    heads, size = d.rng.choice([1, 2, 3]), d.rng.randint(1, 3)
    b, q, k = d.sizes(d.dims(3))
    wide = (heads * size, heads * size)
    parts: list[Value | None] = [
        d.fresh(FLOAT, (b, q, wide)),
        d.fresh(FLOAT, (b, k, wide)),
        d.fresh(FLOAT, (b, k, wide)),
    ]
    parts.append(d.fresh(FLOAT, ((3 * heads * size,) * 2,)) if d.chance(0.4) else None)
    mask = None
    if d.chance(0.4):
        mask = d.fresh(INT32, (b, k), lambda s: (d.numbers.random(s) < 0.7).astype(np.int32))
    bias = d.fresh(FLOAT, (d.rng.choice([b, (1, 1)]), (heads, heads), q, k)) if d.chance(0.3) else None
    drawn = {"num_heads": heads, "unidirectional": d.rng.choice([None, 0, 1]), "scale": d.rng.choice([None, 0.3])}
    return make(d, op, [*parts, mask, bias], domain=DOMAIN, **drawn)


@draws("EmbedLayerNormalization", weight=0.3)
def embed_norm(d: Drawing, op: str) -> Block:
    b, s = (d.sizes(d.dims(1))[0], (n := d.rng.randint(1, 4), n))
    size = d.rng.randint(2, 5)

    def at(limit: int) -> Value:
        return d.fresh(INT32, (b, s), lambda shape: d.numbers.integers(0, limit, shape).astype(np.int32))

    def rows(count: int) -> Value:
        return d.constant(d.numbers.standard_normal((count, size)).astype(np.float32))

    has_segments = d.chance(0.6)
    vectors = [d.fresh(FLOAT, ((size, size),)) for _ in range(2)]
    parts = [at(6), at(2) if has_segments else None, rows(6), rows(8), rows(2) if has_segments else None, *vectors]
    return make(d, op, parts, 2, domain=DOMAIN)


@draws("GatedRMSNorm", weight=0.2)
def root_norm(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (2, 3), lambda v: all(r.size for r in v.runs))
    return make(d, op, [x, d.fresh(FLOAT, x.shape[-1:]), d.fresh(FLOAT, x.shape)], domain=DOMAIN)


@draws("NhwcMaxPool", weight=0.2)
def last_max_pool(d: Drawing, op: str) -> Block:
    x = d.take((TensorProto.UINT8, TensorProto.INT8), (4,))
    return make(d, op, [x], domain=DOMAIN, kernel_shape=[d.rng.randint(1, 3) for _ in range(2)], **window(d, 2))

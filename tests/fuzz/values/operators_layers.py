"""Convolutions, pools, products, norms, resizing, recurrent layers, losses and attention."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import FLOATS, Block, Drawing, Pair, Unfit, Value
from onnx import TensorProto
from table import axis_of, draws, has_input, kinds_of, make, number

FLOAT = TensorProto.FLOAT
SPATIAL = (3, 4, 4, 4, 5)


def window(d: Drawing, rank: int, *, auto: bool = True) -> dict[str, Any]:
    """Attributes of a window that slides over `rank` axes."""
    drawn: dict[str, Any] = {}
    if d.chance(0.6):
        drawn["strides"] = [d.rng.choice([1, 1, 2, 3]) for _ in range(rank)]
    if d.chance(0.4):
        drawn["dilations"] = [d.rng.choice([1, 1, 2, 3]) for _ in range(rank)]
    if auto and d.chance(0.3):
        drawn["auto_pad"] = d.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    elif d.chance(0.6):
        drawn["pads"] = [d.rng.choice([0, 0, 1, 1, 2]) for _ in range(2 * rank)]
    return drawn


def image(d: Drawing, kinds: tuple[int, ...] | list[int] = (FLOAT,)) -> Value:
    return d.take(kinds, SPATIAL)


@draws("Conv", weight=3)
def conv(d: Drawing, op: str) -> Block:
    x = image(d)
    channels = x.shape[1]
    if channels[0] != channels[1]:
        raise Unfit("open channels")
    groups = d.rng.choice([g for g in (1, 1, 2, 3, channels[0]) if g and channels[0] % g == 0])
    kernel = [d.rng.randint(1, 3) for _ in x.shape[2:]]
    per, out = channels[0] // groups, groups * d.rng.randint(1, 3)
    w = d.fresh(FLOAT, tuple((n, n) for n in (out, per, *kernel)))
    bias = d.fresh(FLOAT, ((out, out),)) if d.chance(0.5) else None
    shown = kernel if d.chance(0.6) else None
    return make(d, op, [x, w, bias], group=groups if groups > 1 else None, kernel_shape=shown, **window(d, len(kernel)))


@draws("ConvTranspose", weight=2)
def conv_transpose(d: Drawing, op: str) -> Block:
    x = image(d)
    channels = x.shape[1]
    if channels[0] != channels[1]:
        raise Unfit("open channels")
    groups = d.rng.choice([g for g in (1, 1, 2, 3) if channels[0] % g == 0])
    kernel = [d.rng.randint(1, 3) for _ in x.shape[2:]]
    out = d.rng.randint(1, 3)
    w = d.fresh(FLOAT, tuple((n, n) for n in (channels[0], out, *kernel)))
    bias = d.fresh(FLOAT, ((out * groups, out * groups),)) if d.chance(0.5) else None
    drawn = window(d, len(kernel))
    if "strides" in drawn and "auto_pad" not in drawn and d.chance(0.4):  # which one takes from the other is not said
        drawn["output_padding"] = [d.rng.randint(0, s - 1) for s in drawn["strides"]]
    return make(d, op, [x, w, bias], group=groups if groups > 1 else None, **drawn)


@draws("MaxPool", weight=2.5)
def max_pool(d: Drawing, op: str) -> Block:
    x = image(d, kinds_of(d, op))
    rank = x.rank - 2
    outputs = 2 if d.opset >= 8 and d.chance(0.25) else 1
    drawn = window(d, rank)
    if d.opset >= 10 and d.chance(0.3):
        drawn["ceil_mode"] = 1
    if outputs == 2 and d.chance(0.3):
        drawn["storage_order"] = 1
    kernel = [d.rng.randint(1, 4) for _ in range(rank)]
    return make(d, op, [x], outputs, kernel_shape=kernel, **drawn)


@draws("AveragePool", "LpPool", weight=2)
def average_pool(d: Drawing, op: str) -> Block:
    x = image(d, kinds_of(d, op))
    rank = x.rank - 2
    drawn = window(d, rank)
    if op == "AveragePool" and d.chance(0.5):
        drawn["count_include_pad"] = d.rng.randint(0, 1)
    if d.chance(0.3):
        drawn["ceil_mode"] = 1
    if op == "LpPool":
        drawn["p"] = d.rng.choice([1, 2, 3])
    return make(d, op, [x], kernel_shape=[d.rng.randint(1, 4) for _ in range(rank)], **drawn)


@draws("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", weight=0.5)
def global_pool(d: Drawing, op: str) -> Block:
    return make(d, op, [image(d)], p=d.rng.choice([1, 2]) if op == "GlobalLpPool" else None)


@draws("BatchNormalization", weight=1.5)
def batch_norm(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (2, 3, 4))
    c = x.shape[1]
    parts = [d.fresh(FLOAT, (c,)) for _ in range(3)]
    variance = d.fresh(FLOAT, (c,), lambda s: (d.numbers.random(s) + 0.5).astype(np.float32))
    drawn = {"epsilon": d.rng.choice([None, 1e-3, 0.1])}
    # ONNX Runtime dies of an InstanceNormalization of nothing, which it comes back as
    if d.opset >= 14 and d.chance(0.15) and all(run.size for run in x.runs):
        return make(d, op, [x, *parts, variance], 3, training_mode=1, momentum=d.rng.choice([None, 0.5]), **drawn)
    return make(d, op, [x, *parts, variance], **drawn)


@draws("InstanceNormalization")
def instance_norm(d: Drawing, op: str) -> Block:
    x = image(d)
    c = x.shape[1]
    return make(d, op, [x, d.fresh(FLOAT, (c,)), d.fresh(FLOAT, (c,))], epsilon=d.rng.choice([None, 1e-2]))


@draws("LayerNormalization", "RMSNormalization", weight=1)
def layer_norm(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT, TensorProto.DOUBLE), (1, 2, 3, 4))
    axis = axis_of(d, x)
    sizes = x.shape[axis % x.rank :]
    scale = d.fresh(x.kind, sizes)
    bias = [d.fresh(x.kind, sizes)] if op == "LayerNormalization" and d.chance(0.6) else []
    return make(d, op, [x, scale, *bias], axis=axis, epsilon=d.rng.choice([None, 1e-2]))


@draws("GroupNormalization")
def group_norm(d: Drawing, op: str) -> Block:
    x = image(d)
    c = x.shape[1]
    if c[0] != c[1] or c[0] < 1:
        raise Unfit("open channels")
    groups = d.rng.choice([g for g in (1, 2, 3, c[0]) if c[0] % g == 0])
    size = groups if d.opset < 21 else c[0]
    return make(d, op, [x, d.fresh(FLOAT, ((size, size),)), d.fresh(FLOAT, ((size, size),))], num_groups=groups)


@draws("LRN", weight=0.5)
def lrn(d: Drawing, op: str) -> Block:
    return make(
        d,
        op,
        [image(d)],
        size=d.rng.choice([1, 3, 5]),
        alpha=number(d, 0, 1),
        beta=0.75,
        bias=d.rng.choice([None, 2.0]),
    )


@draws("Gemm", weight=2)
def gemm(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT, FLOAT, TensorProto.DOUBLE), (2,))
    ta, tb = d.rng.choice([None, 0, 1]), d.rng.choice([None, 0, 1])
    m, k = x.shape[::-1] if ta else x.shape
    n = d.sizes(d.dims(1))[0]
    y = d.fresh(x.kind, (n, k) if tb else (k, n))
    bias = None
    if d.opset < 11 or d.chance(0.6):
        bias = d.fresh(x.kind, d.rng.choice([(m, n), (n,), ((1, 1), n), (), (m, (1, 1))]))
    drawn = {name: number(d) for name in ("alpha", "beta") if d.chance(0.3)}
    return make(d, op, [x, y, bias], transA=ta, transB=tb, **drawn)


@draws("MatMul", weight=4)
def matmul(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), (1, 2, 2, 3, 4, 5))
    k = x.shape[-1]
    n = d.sizes(d.dims(1))[0]
    batch = [d.sizes(d.dims(1))[0] if pair == (1, 1) else pair if d.chance(0.7) else (1, 1) for pair in x.shape[:-2]]
    batch = batch[d.rng.randint(0, len(batch)) if d.chance(0.4) else 0 :]
    sizes = [(k,), (k, n), (*batch, k, n), (*batch, k, n)][d.rng.randrange(4)]
    if d.chance(0.3):
        try:
            y = d.pick([x.kind], lambda v: v.rank > 1 and v.shape[-2] == k)
        except Unfit:
            y = d.fresh(x.kind, sizes)
    else:
        y = d.fresh(x.kind, sizes)
    return make(d, op, [x, y])


# resizing


@draws("Resize", weight=4)
def resize(d: Drawing, op: str) -> Block:
    mode = d.rng.choice(["nearest", "nearest", "linear", "linear", "cubic"])
    x = d.take(kinds_of(d, op) if mode == "nearest" else (FLOAT,), (1, 2, 3, 4, 4, 4, 5))
    axes = list(range(x.rank))
    if d.chance(0.5):  # the last two only, as images have it
        axes = axes[-2:]
    drawn: dict[str, Any] = {"mode": mode}
    by_scale = d.chance(0.5) or d.opset < 11
    scales = [d.rng.choice([1.0, 2.0, 0.5, 1.5, 0.7, 3.0]) if a in axes else 1.0 for a in range(x.rank)]
    sizes = [d.rng.randint(1, 7) if a in axes else p for a, p in enumerate(x.shape)]
    if d.opset < 11:
        return make(d, op, [x, d.constant(np.array(scales, np.float32))], mode=mode if mode != "cubic" else "linear")
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    modes += ["half_pixel_symmetric"] if d.opset >= 19 else []
    drawn["coordinate_transformation_mode"] = d.rng.choice([None, *modes])
    if mode == "nearest":
        drawn["nearest_mode"] = d.rng.choice([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        drawn["cubic_coeff_a"] = d.rng.choice([None, -0.5])
    if mode != "nearest":
        drawn["exclude_outside"] = d.rng.choice([None, 0, 1])
    if d.opset >= 18 and mode != "nearest" and d.chance(0.3):
        drawn["antialias"] = 1
    chosen = axes
    if d.opset >= 18 and d.chance(0.4):
        drawn["axes"] = axes
        if not by_scale and d.chance(0.3):
            drawn["keep_aspect_ratio_policy"] = d.rng.choice(["not_larger", "not_smaller"])
    else:
        chosen = list(range(x.rank))
    roi = d.constant(np.array([], np.float32)) if d.opset < 13 or d.chance(0.2) else None
    if by_scale:
        return make(d, op, [x, roi, d.constant(np.array([scales[a] for a in chosen], np.float32))], **drawn)
    wanted = [sizes[a] for a in chosen]
    none = d.constant(np.array([], np.float32)) if d.opset < 13 else None
    return with_sizes(d, op, x, [roi, none], wanted, drawn)


def with_sizes(
    d: Drawing, op: str, x: Value, between: list[Value | None], wanted: list[Any], drawn: dict[str, Any]
) -> Block:
    from operators_shape import computed_shape

    if all(isinstance(w, int) or w[0] == w[1] for w in wanted):
        sizes = d.ints(*(w if isinstance(w, int) else w[0] for w in wanted))
        return make(d, op, [x, *between, sizes], **drawn)
    nodes, inputs, name = computed_shape(d, x, wanted)
    block = make(d, op, [x, *between, x], **drawn)
    block.nodes[0].input[3] = name
    return Block([*nodes, *block.nodes], [*block.inputs, *inputs], block.outputs)


@draws("Upsample", weight=0.7)
def upsample(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (3, 4))
    mode = d.rng.choice(["nearest", "linear"]) if x.rank == 4 else "nearest"
    scales = [1.0 if a < 2 else d.rng.choice([1.0, 2.0, 1.5, 3.0]) for a in range(x.rank)]
    if has_input(d, op, "scales"):
        return make(d, op, [x, d.constant(np.array(scales, np.float32))], mode=mode)
    return make(d, op, [x], mode=mode, scales=scales)


@draws("GridSample")
def grid_sample(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (4, 4, 5) if d.opset >= 20 else (4,))
    rank = x.rank - 2
    grid = d.fresh(FLOAT, (x.shape[0], *(d.sizes(d.dims(rank))), (rank, rank)))
    if any(not np.isfinite(g).all() for g in grid.runs):
        raise Unfit("no place")
    modes = (
        ["linear", "nearest", *(["cubic"] if rank == 2 else [])]
        if d.opset >= 20
        else ["bilinear", "nearest", "bicubic"]
    )
    padding = d.rng.choice([None, "zeros", "border", "reflection"])
    return make(
        d, op, [x, grid], mode=d.rng.choice(modes), padding_mode=padding, align_corners=d.rng.choice([None, 0, 1])
    )


@draws("RoiAlign", weight=0.5)
def roi_align(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (4,))
    if min(x.shape[0]) < 1:
        raise Unfit("no images")
    n = d.sizes(d.dims(1))[0]
    boxes = d.fresh(FLOAT, (n, (4, 4)), lambda s: np.sort(d.numbers.random(s).astype(np.float32) * 6, axis=-1))
    at = d.fresh(TensorProto.INT64, (n,), lambda s: d.numbers.integers(0, min(x.shape[0]), s).astype(np.int64))
    mode = d.rng.choice([None, "avg", "max"])
    half = d.rng.choice([None, "half_pixel", "output_half_pixel"])
    return make(d, op, [x, boxes, at], mode=mode, output_height=d.rng.randint(1, 3), output_width=2, sampling_ratio=d.rng.choice([None, 2]),
                spatial_scale=d.rng.choice([None, 0.5]), coordinate_transformation_mode=half)  # fmt: skip


# recurrent layers

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


# activations that take numbers, and what is drawn of them
WITH_NUMBERS = {
    "LeakyRelu": (0.1, None), "ThresholdedRelu": (0.5, None), "ScaledTanh": (0.7, 1.3), "HardSigmoid": (0.3, 0.4),
    "Elu": (0.8, None), "Affine": (0.5, 0.2),
}  # fmt: skip


def some_activations(d: Drawing, op: str, ways: int) -> dict[str, Any]:
    names = [d.rng.choice(["Relu", "Sigmoid", "Tanh", "Softsign", "Softplus", *WITH_NUMBERS]) for _ in range(3)]
    names = names[: {"RNN": 1, "GRU": 2, "LSTM": 3}[op]] * ways
    if any(name in WITH_NUMBERS for name in names):
        # one list of numbers for all of them, in their order
        alphas = [WITH_NUMBERS[n][0] for n in names if n in WITH_NUMBERS]
        betas = [WITH_NUMBERS[n][1] for n in names if n in WITH_NUMBERS and WITH_NUMBERS[n][1] is not None]
        return {"activations": names, "activation_alpha": alphas, "activation_beta": betas}
    return {"activations": names}


@draws("RNN", "GRU", "LSTM", weight=1.2)
def recurrent(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (3,))
    time, batch, size = x.shape
    if size[0] != size[1] or size[0] < 1:
        raise Unfit("open features")
    if any(not run.size for run in x.runs):
        raise Unfit("ONNX Runtime dies of it")
    hidden, gates = d.rng.randint(1, 3), GATES[op]
    direction = d.rng.choice([None, "forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1

    def part(*sizes: int) -> Value:
        return d.told((d.numbers.standard_normal(sizes) * 0.6).astype(np.float32), p=0.05)

    layout = d.rng.choice([None, 0, 0, 1]) if d.opset >= 14 else None
    steps = batch if layout else time
    rows = time if layout else batch
    inputs: list[Value | None] = [x, part(ways, gates * hidden, size[0]), part(ways, gates * hidden, hidden)]
    inputs.append(part(ways, 2 * gates * hidden) if d.chance(0.6) else None)
    lengths = None
    if d.chance(0.3) and min(steps) > 0:
        shortest = d.rng.choice([0, 1, 1])
        lengths = d.fresh(
            TensorProto.INT32, (rows,), lambda s: d.numbers.integers(shortest, min(steps) + 1, s).astype(np.int32)
        )
    inputs.append(lengths)
    state: tuple[Pair, ...] = (
        (rows, (ways, ways), (hidden, hidden)) if layout else ((ways, ways), rows, (hidden, hidden))
    )
    inputs.append(d.fresh(FLOAT, state) if d.chance(0.4) else None)
    if op == "LSTM":
        inputs.append(d.fresh(FLOAT, state) if inputs[-1] and d.chance(0.7) else None)
        inputs.append(part(ways, 3 * hidden) if d.chance(0.2) else None)
    drawn: dict[str, Any] = {"direction": direction, "layout": layout}
    if d.chance(0.25):
        drawn["clip"] = d.rng.choice([0.3, 1.0, 5.0])
    if op == "GRU":
        drawn["linear_before_reset"] = d.rng.choice([None, 0, 1])
    if op == "LSTM" and d.chance(0.15):
        drawn["input_forget"] = 1
    if d.chance(0.25):
        drawn |= some_activations(d, op, ways)
    return make(d, op, inputs, 3 if op == "LSTM" else 2, hidden_size=hidden, **drawn)


# losses and attention


@draws("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", weight=0.6)
def loss(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (2, 3, 4))
    classes = min(x.shape[1])
    if classes < 1 or x.shape[1][0] != x.shape[1][1]:
        raise Unfit("no classes")
    shape = (x.shape[0], *x.shape[2:])
    target = d.fresh(TensorProto.INT64, shape, lambda s: d.numbers.integers(0, classes, s).astype(np.int64))
    weight = d.fresh(FLOAT, (x.shape[1],)) if d.chance(0.4) else None
    drawn = {"reduction": d.rng.choice([None, "none", "sum", "mean"]), "ignore_index": d.rng.choice([None, 0, 1, -100])}
    return make(d, op, [x, target, weight], d.rng.choice([1, 2]) if op.startswith("Soft") else 1, **drawn)


@draws("Attention")
def attention(d: Drawing, op: str) -> Block:
    heads, size = d.rng.choice([1, 2, 4]), d.rng.randint(1, 3)
    groups = d.rng.choice([heads, 1])
    b, q, k = d.sizes(d.dims(3))
    own = d.chance(0.5)
    drawn: dict[str, Any] = {"is_causal": d.rng.choice([None, 0, 1]), "scale": d.rng.choice([None, 0.3])}
    drawn["softcap"] = d.rng.choice([None, None, 2.0])
    if own:
        parts = [d.fresh(FLOAT, (b, (heads, heads), q, (size, size)))]
        parts += [d.fresh(FLOAT, (b, (groups, groups), k, (size, size))) for _ in range(2)]
    else:
        parts = [d.fresh(FLOAT, (b, q, (heads * size,) * 2))]
        parts += [d.fresh(FLOAT, (b, k, (groups * size,) * 2)) for _ in range(2)]
        drawn |= {"q_num_heads": heads, "kv_num_heads": groups}
    past: list[Value] = []
    if d.chance(0.3):
        before = d.sizes(d.dims(1))[0]
        past = [d.fresh(FLOAT, (b, (groups, groups), before, (size, size))) for _ in range(2)]
        k = (k[0] + before[0], k[1] + before[1])
    mask = None
    if d.chance(0.4):
        mask = (
            d.constant(d.numbers.random((q[0], k[0])) < 0.7)
            if d.chance(0.3) and q[0] == q[1] and k[0] == k[1]
            else None
        )
        if mask is None:
            sizes = d.rng.choice([(q, k), (b, (1, 1), q, k)])
            mask = d.fresh(d.rng.choice([FLOAT, TensorProto.BOOL]), sizes)
    if d.chance(0.2):
        drawn["qk_matmul_output_mode"] = d.rng.randint(0, 3)
    block = make(d, op, [*parts, mask, *past], 3 if past else 1, **drawn)
    if "qk_matmul_output_mode" in drawn:
        block.nodes[0].output.extend([*([] if past else ["", ""]), product := d.name()])
        block.outputs.append(product)
    return block


@draws("Det", weight=0.5)
def det(d: Drawing, op: str) -> Block:
    n = d.rng.randint(1, 4)
    return make(d, op, [d.fresh(FLOAT, (*d.sizes(d.dims(d.rng.choice([0, 1]))), (n, n), (n, n)))])


@draws("AffineGrid", weight=0.5)
def affine_grid(d: Drawing, op: str) -> Block:
    n, rank = d.rng.randint(1, 2), d.rng.choice([2, 3])
    theta = d.fresh(FLOAT, ((n, n), (rank, rank), (rank + 1, rank + 1)))
    return make(
        d,
        op,
        [theta, d.ints(n, 2, *(d.rng.randint(1, 4) for _ in range(rank)))],
        align_corners=d.rng.choice([None, 0, 1]),
    )


def plain_floats(value: Value) -> bool:
    return value.kind in FLOATS

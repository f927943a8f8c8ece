"""Operators that move, choose or count elements, with shapes that are constants or computed."""

from __future__ import annotations

import numpy as np
from drawing import FLOATS, PLAIN, Block, Drawing, Pair, Unfit, Value
from onnx import TensorProto, helper
from table import axis_of, draws, has_input, kinds_of, make

RANKS = (1, 1, 2, 2, 3, 3, 4, 4, 5)
INT64_MAX = 2**63 - 1


def product(sizes: list[int]) -> int:
    return int(np.prod(sizes, dtype=np.int64))


def computed_shape(d: Drawing, x: Value, wanted: list[Pair | int]) -> tuple[list, list[Value], str]:
    """Nodes that compute a shape from those of values: an open size is gathered from where it stands."""
    nodes, inputs, parts = [], [], []
    for entry in wanted:
        part = d.name("d")
        if isinstance(entry, int) or entry[0] == entry[1]:
            number = d.ints(entry if isinstance(entry, int) else entry[0])
            inputs.append(number)
            parts.append(number.name)
            continue
        source = d.pick(None, lambda v, entry=entry: entry in v.shape and not v.is_constant)
        shape, index = d.name("s"), d.ints(source.shape.index(entry))
        nodes.append(helper.make_node("Shape", [source.name], [shape]))
        nodes.append(helper.make_node("Gather", [shape, index.name], [part], axis=0))
        inputs += [source, index]
        parts.append(part)
    result = d.name("s")
    nodes.append(helper.make_node("Concat", parts, [result], axis=0))
    return nodes, inputs, result


def regrouped(d: Drawing, x: Value) -> list[Pair | int]:
    """A shape that has as many elements: neighbours joined, sizes split, ones put in."""
    sizes: list[Pair] = list(x.shape)
    for _ in range(d.rng.randint(1, 3)):
        step = d.rng.random()
        if step < 0.35 and len(sizes) > 1:
            at = d.rng.randrange(len(sizes) - 1)
            (a, b), (c, e) = sizes[at : at + 2]
            sizes[at : at + 2] = [(a * c, b * e)]
        elif step < 0.6 and sizes:
            at = d.rng.randrange(len(sizes))
            by = d.rng.choice([2, 3])
            if all(s % by == 0 for s in sizes[at]):
                rest = (sizes[at][0] // by, sizes[at][1] // by)
                sizes[at : at + 1] = d.rng.sample([rest, (by, by)], 2)
        elif step < 0.8:
            sizes.insert(d.rng.randint(0, len(sizes)), (1, 1))
        elif (1, 1) in sizes:
            sizes.remove((1, 1))
        else:
            d.rng.shuffle(sizes)
    return list(sizes)


@draws("Reshape", weight=5)
def reshape(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, (0, *RANKS))
    wanted = regrouped(d, x)
    allow_zero = d.rng.choice([None, None, 0, 1]) if "allowzero" in d.schema(op).attributes else None
    has_minus = False
    if wanted and d.chance(0.5):
        wanted[d.rng.randrange(len(wanted))] = -1
        has_minus = True
    for at, entry in enumerate(wanted):
        is_same = at < x.rank and not isinstance(entry, int) and entry == x.shape[at]
        if is_same and not allow_zero and d.chance(0.5):
            wanted[at] = 0
    if not has_minus:
        is_open = [at for at, e in enumerate(wanted) if not isinstance(e, int) and e[0] != e[1]]
        if len(is_open) == 1 and d.chance(0.5):
            wanted[is_open[0]] = -1
    if all(isinstance(e, int) or e[0] == e[1] for e in wanted):
        shape = d.told(np.array([e if isinstance(e, int) else e[0] for e in wanted], np.int64))
        return make(d, op, [x, shape], allowzero=allow_zero)
    if allow_zero and has_minus and any(e == 0 or (not isinstance(e, int) and 0 in e) for e in wanted):
        raise Unfit("ONNX forbids a 0 that is meant beside -1")
    if not allow_zero and any(not isinstance(e, int) and 0 in e for e in wanted):
        raise Unfit("a size that is 0 when the model runs means that of the input there, which nobody means")
    if d.chance(0.2):
        runs = [np.array([e if isinstance(e, int) else e[at] for e in wanted], np.int64) for at in (0, 1)]
        return make(d, op, [x, d.told(*runs)], allowzero=allow_zero)
    nodes, inputs, shape_name = computed_shape(d, x, wanted)
    block = make(d, op, [x], allowzero=allow_zero)
    block.nodes[0].input.append(shape_name)
    return Block([*nodes, *block.nodes], [x, *inputs], block.outputs)


@draws("Transpose", weight=3)
def transpose(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, (*RANKS, 0))
    return make(d, op, [x], perm=d.rng.sample(range(x.rank), x.rank) if d.chance(0.85) else None)


@draws("Squeeze", weight=2)
def squeeze(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS, lambda v: (1, 1) in v.shape or d.chance(0.2))
    ones = [a for a, pair in enumerate(x.shape) if pair == (1, 1) and d.chance(0.7)]
    axes = [a - x.rank if d.chance(0.3) else a for a in ones]
    return with_axes(d, op, x, None if d.chance(0.3) or not axes else axes)


@draws("Unsqueeze", weight=2)
def unsqueeze(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, (0, *RANKS[:-1]))
    more = d.rng.choice([1, 1, 2])
    rank = x.rank + more
    if rank > 5:
        raise Unfit("enough axes")
    axes = d.rng.sample(range(rank), more)
    return with_axes(d, op, x, [a - rank if d.chance(0.3) and d.opset >= 11 else a for a in axes])


def with_axes(d: Drawing, op: str, x: Value, axes: list[int] | None) -> Block:
    if has_input(d, op, "axes"):
        return make(d, op, [x, None if axes is None else d.told(np.array(axes, np.int64))])
    return make(d, op, [x], axes=axes)


@draws("Flatten")
def flatten(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    return make(d, op, [x], axis=d.rng.choice([None, d.rng.randint(-x.rank if d.opset >= 11 else 0, x.rank)]))


@draws("Expand", weight=2)
def expand(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, (0, *RANKS))
    wanted: list[Pair | int] = []
    for pair in x.shape:
        if pair == (1, 1):
            symbol = d.rng.choice(list(d.symbols.values()) or [(2, 2)])
            wanted.append(d.rng.choice([(1, 1), (3, 3), symbol]))
        else:
            wanted.append(d.rng.choice([pair, (1, 1)]))
    if d.chance(0.3):
        wanted.insert(0, d.rng.choice([(1, 1), (2, 2)]))
    if not wanted:
        wanted = [(2, 2)]
    if d.chance(0.15):
        runs = [np.array([e if isinstance(e, int) else e[at] for e in wanted], np.int64) for at in (0, 1)]
        return make(d, op, [x, d.told(*runs)])
    nodes, inputs, shape = computed_shape(d, x, wanted)
    block = make(d, op, [x])
    block.nodes[0].input.append(shape)
    return Block([*nodes, *block.nodes], [x, *inputs], block.outputs)


@draws("Tile")
def tile(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    counts = [[d.rng.choice([1, 1, 2, 3, 0 if d.chance(0.1) else 1]) for _ in range(x.rank)] for _ in range(2)]
    return make(d, op, [x, d.told(np.array(counts[0]), np.array(counts[d.rng.randrange(2)]))])


@draws("Concat", weight=3)
def concat(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    axis = axis_of(d, x)
    at = axis % x.rank

    def fits(v: Value) -> bool:
        return v.rank == x.rank and all(
            a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if i != at
        )

    parts = [x]
    for _ in range(d.rng.choice([0, 1, 1, 1, 2])):
        if d.chance(0.7):
            parts.append(d.pick([x.kind], fits))
        else:
            sizes = list(x.shape)
            sizes[at] = (n := d.rng.choice([1, 2, 0 if d.chance(0.2) else 3]), n)
            parts.append(d.fresh(x.kind, sizes))
    return make(d, op, parts, axis=axis)


@draws("Split", weight=2)
def split(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    axis = axis_of(d, x)
    a, b = x.shape[axis]
    if min(a, b) < 1:
        raise Unfit("ONNX Runtime splits nothing in no equal parts")
    schema = d.schema(op)
    count = d.rng.randint(1, 4)
    if "num_outputs" in schema.attributes and d.chance(0.5):
        return make(d, op, [x], count, axis=axis, num_outputs=count)
    if a != b or a < 1:
        if a % count or b % count or d.opset >= 18:
            raise Unfit("no equal parts")
        return make(d, op, [x], count, axis=axis)
    cuts = sorted(d.rng.randint(0, a) for _ in range(count - 1))
    sizes = [after - before for before, after in zip([0, *cuts], [*cuts, a], strict=True)]
    if has_input(d, op, "split"):
        return make(d, op, [x, d.told(np.array(sizes))], count, axis=axis)
    return make(d, op, [x], count, axis=axis, split=sizes)


@draws("Slice", weight=5)
def slice_(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    axes = d.rng.sample(range(x.rank), d.rng.randint(1, x.rank))
    starts, ends, steps = [], [], []
    for _ in axes:
        step = d.rng.choice([1, 1, 1, 2, 3, -1, -2]) if d.opset >= 10 else 1
        starts.append(d.rng.choice([0, 0, 1, 2, -1, -2, -3, 7, INT64_MAX, -INT64_MAX]))
        ends.append(d.rng.choice([1, 2, 3, -1, -2, INT64_MAX, INT64_MAX, -INT64_MAX, 0]))
        steps.append(step)
    shown = [a - x.rank if d.chance(0.3) and d.opset >= 10 else a for a in axes]
    if not has_input(d, op, "starts"):
        return make(d, op, [x], axes=shown, starts=starts, ends=ends)
    kind = d.rng.choice([TensorProto.INT64, TensorProto.INT64, TensorProto.INT32])
    if kind == TensorProto.INT32:
        starts, ends = ([max(min(n, 2**31 - 1), -(2**31)) for n in part] for part in (starts, ends))
    whole = np.int64 if kind == TensorProto.INT64 else np.int32
    parts: list[Value | None] = [d.told(np.array(part, whole)) for part in (starts, ends, shown)]
    if axes == list(range(x.rank)) and d.chance(0.3):
        parts[2] = None
    if any(s != 1 for s in steps) or d.chance(0.3):
        parts.append(d.told(np.array(steps, whole)))
    return make(d, op, [x, *parts])


@draws("Pad", weight=4)
def pad(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    modes = ["constant", "constant", "reflect", "edge", *(["wrap"] if d.opset >= 19 else [])]
    mode = d.rng.choice(modes)
    axes = sorted(d.rng.sample(range(x.rank), d.rng.randint(1, x.rank)))
    has_axes = has_input(d, op, "axes") and d.chance(0.5)
    count = len(axes) if has_axes else x.rank
    chosen = range(count) if has_axes else axes
    amounts = [0] * (2 * count)
    for at in chosen:
        for side in (0, 1):
            amounts[at + side * count] = d.rng.choice(
                [
                    0,
                    1,
                    2,
                    1,
                    d.rng.choice([-1, -1, -2]) if d.chance(0.3) else 0,
                    d.rng.choice([4, 7]) if d.chance(0.3) else 0,
                ]
            )
    if mode == "wrap" and any(0 in pair for pair in x.shape):
        raise Unfit("nothing to wrap around")
    if not has_input(d, op, "pads"):
        return make(d, op, [x], pads=amounts, mode=mode, value=0.5 if mode == "constant" else None)
    value = None
    if mode == "constant" and d.chance(0.6) and x.kind in PLAIN:
        value = d.told(np.array(1).astype(x.dtype))
    shown = d.ints(*(a - x.rank if d.chance(0.3) else a for a in axes)) if has_axes else None
    return make(
        d, op, [x, d.told(np.array(amounts)), value, shown], mode=None if mode == "constant" and d.chance(0.5) else mode
    )


def indices(d: Drawing, size: int, shape: tuple[Pair, ...], *, is_unique: bool = False) -> Value:
    """Positions on an axis that has at least this size, from the front and from the end."""
    if size < 1:
        raise Unfit("nothing to choose from")
    kind = d.rng.choice([TensorProto.INT64, TensorProto.INT64, TensorProto.INT32])
    low = -size if d.opset >= 11 and d.chance(0.5) and not is_unique else 0

    def array(wanted: tuple[int, ...]) -> np.ndarray:
        if is_unique:
            return d.numbers.permutation(size)[: product(list(wanted))].reshape(wanted).astype(np.int64)
        return d.numbers.integers(low, size, wanted).astype(np.int32 if kind == TensorProto.INT32 else np.int64)

    return d.fresh(TensorProto.INT64 if is_unique else kind, shape, array)


@draws("Gather", weight=3)
def gather(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    axis = axis_of(d, x)
    chosen = indices(d, min(x.shape[axis]), d.sizes(d.dims(d.rng.choice([0, 0, 1, 1, 2]))))
    return make(d, op, [x, chosen], axis=axis)


@draws("GatherElements")
def gather_elements(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    axis = axis_of(d, x)
    sizes = list(x.shape)
    sizes[axis] = d.rng.choice([(1, 1), (2, 2), (5, 5), x.shape[axis]])
    return make(d, op, [x, indices(d, min(x.shape[axis]), tuple(sizes))], axis=axis)


@draws("GatherND")
def gather_nd(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS[2:])
    batch = d.rng.choice([0, 0, 1]) if d.opset >= 12 else 0
    depth = d.rng.randint(1, x.rank - batch)
    smallest = min(min(pair) for pair in x.shape[batch : batch + depth])
    lead = d.sizes(d.dims(d.rng.choice([0, 1, 2])))
    chosen = indices(d, smallest, (*x.shape[:batch], *lead, (depth, depth)))
    if chosen.kind != TensorProto.INT64:
        raise Unfit("the type of the indices")
    return make(d, op, [x, chosen], batch_dims=batch or None)


def some_reduction(d: Drawing, op: str) -> str | None:
    names = [None, "none"]
    if "reduction" in d.schema(op).attributes:
        names += ["add", "mul"]
        if d.opset >= 18:
            names += ["max", "min"]
    return d.rng.choice(names)


@draws("ScatterElements", weight=1.5)
def scatter_elements(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    axis = axis_of(d, x)
    reduction = some_reduction(d, op)
    size = min(x.shape[axis])
    if reduction in (None, "none"):  # each place once: which of two values stays is nobody's promise
        place = d.rng.randrange(max(size, 1)) - (size if d.opset >= 11 and d.chance(0.3) else 0)
        sizes = tuple((1, 1) if i == axis % x.rank else pair for i, pair in enumerate(x.shape))
        chosen = d.fresh(TensorProto.INT64, sizes, lambda s: np.full(s, place, np.int64))
        if size < 1:
            raise Unfit("nothing to write to")
    else:
        sizes = list(x.shape)
        sizes[axis] = d.rng.choice([(1, 1), (2, 2), x.shape[axis]])
        chosen = indices(d, size, tuple(sizes))
    updates = d.fresh(x.kind, chosen.shape)
    return make(d, op, [x, chosen, updates], axis=axis, reduction=reduction)


@draws("ScatterND", weight=1.5)
def scatter_nd(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    reduction = some_reduction(d, op)
    depth = d.rng.randint(1, x.rank)
    smallest = min(min(pair) for pair in x.shape[:depth])
    count = 1 if reduction in (None, "none") else d.rng.randint(1, 4)
    chosen = indices(d, smallest, ((count, count), (depth, depth)))
    if chosen.kind != TensorProto.INT64:
        raise Unfit("the type of the indices")
    updates = d.fresh(x.kind, ((count, count), *x.shape[depth:]))
    return make(d, op, [x, chosen, updates], reduction=reduction)


@draws("DepthToSpace", "SpaceToDepth", weight=0.7)
def depth_and_space(d: Drawing, op: str) -> Block:
    by = d.rng.choice([1, 2, 3])
    if op == "DepthToSpace":
        x = d.take(kinds_of(d, op), (4,), lambda v: v.rank == 4 and all(n % (by * by) == 0 for n in v.shape[1]))
    else:
        x = d.take(kinds_of(d, op), (4,), lambda v: v.rank == 4 and all(n % by == 0 for p in v.shape[2:] for n in p))
    return make(d, op, [x], blocksize=by, mode=d.rng.choice([None, "DCR", "CRD"]))


@draws("Shape", weight=3)
def shape(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    return make(d, op, [x], start=d.rng.choice([None, 0, 1, -1, -2]), end=d.rng.choice([None, None, 2, -1, 9]))


@draws("Size")
def size(d: Drawing, op: str) -> Block:
    return make(d, op, [d.take(PLAIN, RANKS)])


@draws("ConstantOfShape")
def constant_of_shape(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS[:6])
    kind = d.rng.choice([1, 7, 9, 11, 6])
    value = helper.make_tensor("value", kind, [1], [d.rng.choice([0, 1])]) if d.chance(0.7) else None
    block = make(d, op, [], value=value)
    name = d.name("s")
    block.nodes[0].input.append(name)
    return Block([helper.make_node("Shape", [x.name], [name]), *block.nodes], [x], block.outputs)


@draws("Range")
def range_(d: Drawing, op: str) -> Block:
    kind = d.rng.choice(kinds_of(d, op))
    if d.chance(0.3):
        x = d.take(PLAIN, RANKS)
        size, first, one = d.name("s"), d.constant(np.array(0, np.int64)), d.constant(np.array(1, np.int64))
        nodes = [
            helper.make_node("Size", [x.name], [size]),
            helper.make_node("Range", [first.name, size, one.name], [size + "r"]),
        ]
        return Block(nodes, [x, first, one], [size + "r"])
    dtype = {TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64, TensorProto.INT32: np.int32}.get(
        kind, np.int64
    )
    step = (
        d.rng.choice([1, 2, -1, 0.3, 0.1, -0.7]) if dtype in (np.float32, np.float64) else d.rng.choice([1, 2, -1, -3])
    )
    start, stop = d.rng.choice([0, 1, -2, 5]), d.rng.choice([0, 3, 7, -4])
    parts = []
    for number in (start, stop, step):
        array = np.array(number, dtype)
        if d.chance(0.2):
            parts.append(
                d.input(
                    TensorProto.INT64 if dtype == np.int64 else {np.float32: 1, np.float64: 11, np.int32: 6}[dtype],
                    [],
                    lambda _, a=array: a,
                )
            )
        else:
            parts.append(d.constant(array))
    return make(d, op, parts)


@draws("OneHot")
def one_hot(d: Drawing, op: str) -> Block:
    chosen = indices(d, d.rng.randint(1, 6), d.sizes(d.dims(d.rng.choice([0, 1, 2]))))
    depth = d.told(np.array(d.rng.choice([3, 5]), np.int64) if d.chance(0.5) else np.array([4], np.int64))
    values = d.told(np.array([0, 1] if d.chance(0.5) else [2, -1], d.rng.choice([np.float32, np.int64])))
    rank = chosen.rank + 1
    return make(d, op, [chosen, depth, values], axis=d.rng.choice([None, -1, d.rng.randint(-rank, rank - 1)]))


@draws("CenterCropPad", weight=0.7)
def center_crop_pad(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS)
    axes = d.rng.sample(range(x.rank), d.rng.randint(1, x.rank))
    sizes = d.told(np.array([d.rng.randint(0 if d.chance(0.1) else 1, 6) for _ in axes]))
    return make(d, op, [x, sizes], axes=[a - x.rank if d.chance(0.3) else a for a in axes])


@draws("ReverseSequence")
def reverse_sequence(d: Drawing, op: str) -> Block:
    x = d.take(PLAIN, RANKS[2:])
    batch = d.rng.choice([0, 1])
    most = min(x.shape[1 - batch])
    if most < 1:
        raise Unfit("no steps")
    lengths = d.fresh(
        TensorProto.INT64, (x.shape[batch],), lambda s: d.numbers.integers(1, most + 1, s).astype(np.int64)
    )
    return make(d, op, [x, lengths], batch_axis=batch, time_axis=1 - batch)


@draws("Einsum", weight=2)
def einsum(d: Drawing, op: str) -> Block:
    letters = {c: d.sizes(d.dims(1))[0] for c in "abcd"}
    kind = d.rng.choice([TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64])
    terms = [
        "".join(d.rng.choice("abcd") for _ in range(d.rng.randint(0 if d.chance(0.1) else 1, 3)))
        for _ in range(d.rng.choice([1, 2, 2, 3]))
    ]
    if any(len(set(t)) < len(t) for t in terms) and d.chance(0.8):
        terms = ["".join(dict.fromkeys(t)) for t in terms]
    seen = sorted(set("".join(terms)))
    result = "".join(d.rng.sample(seen, d.rng.randint(0, len(seen))))
    shapes = [tuple(letters[c] for c in t) for t in terms]
    has_result = d.chance(0.9)
    if d.chance(0.25):  # axes without letters, in front or behind, that broadcast
        batch = d.sizes(d.dims(d.rng.choice([1, 1, 2])))
        for at in range(len(terms)):
            if d.chance(0.7):
                own = tuple((1, 1) if d.chance(0.3) else pair for pair in batch[d.rng.randrange(len(batch)) :])
                is_front = d.chance(0.7)
                terms[at] = f"...{terms[at]}" if is_front else f"{terms[at]}..."
                shapes[at] = (*own, *shapes[at]) if is_front else (*shapes[at], *own)
        if any("..." in t for t in terms):
            result = f"...{result}" if d.chance(0.7) else f"{result}..."
    values = [d.fresh(kind, size) for size in shapes]
    equation = ", ".join(terms) if d.chance(0.1) else ",".join(terms)
    return make(d, op, values, equation=equation + (f"->{result}" if has_result else ""))


@draws("Col2Im", weight=0.5)
def col2im(d: Drawing, op: str) -> Block:
    kernel = [d.rng.randint(1, 3) for _ in range(2)]
    image = [d.rng.randint(3, 6) for _ in range(2)]
    strides, dilations = [d.rng.randint(1, 2) for _ in range(2)], [d.rng.randint(1, 2) for _ in range(2)]
    pads = [d.rng.randint(0, 1) for _ in range(4)]
    blocks = 1
    for i in range(2):
        blocks *= (image[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
    rows = kernel[0] * kernel[1] * d.rng.randint(1, 2)
    x = d.fresh(TensorProto.FLOAT, (d.sizes(d.dims(1))[0], (rows, rows), (blocks, blocks)))
    return make(d, op, [x, d.ints(*image), d.ints(*kernel)], dilations=dilations, pads=pads, strides=strides)


@draws("TensorScatter", weight=0.5)
def tensor_scatter(d: Drawing, op: str) -> Block:
    past = d.take(FLOATS, (3, 4))
    axis = d.rng.choice([1, -2]) if past.rank == 3 else -2
    length = min(past.shape[axis])
    if length < 1:
        raise Unfit("no steps")
    sizes = list(past.shape)
    n = d.rng.randint(1, length)
    sizes[axis] = (n, n)
    update = d.fresh(past.kind, sizes)
    start = d.fresh(
        TensorProto.INT64, (past.shape[0],), lambda s: d.numbers.integers(0, length - n + 1, s).astype(np.int64)
    )
    return make(
        d,
        op,
        [past, update, start if d.chance(0.8) else None],
        axis=axis,
        mode=d.rng.choice([None, "linear", "circular"]),
    )


@draws("SequenceConstruct", weight=1.5)
def sequence(d: Drawing, op: str) -> Block:
    """A sequence that is made, changed and taken apart again."""
    x = d.take(PLAIN, RANKS[:6])
    parts = [x, *(d.like(x, x.shape) for _ in range(d.rng.randint(0, 2)))]
    parts = [p for p in parts if p.shape == x.shape]
    at = d.name("q")
    nodes = [helper.make_node("SequenceConstruct", [p.name for p in parts], [at])]
    count, inputs = len(parts), list(parts)
    for _ in range(d.rng.randint(0, 2)):
        after = d.name("q")
        if d.chance(0.5) or count < 2:
            more = d.like(x, x.shape)
            if more.shape != x.shape:
                raise Unfit("another shape")
            position = d.constant(np.array(d.rng.randint(-count, count), np.int64))
            nodes.append(helper.make_node("SequenceInsert", [at, more.name, position.name], [after]))
            inputs += [more, position]
            count += 1
        else:
            position = d.constant(np.array(d.rng.randint(-count, count - 1), np.int64))
            nodes.append(helper.make_node("SequenceErase", [at, position.name], [after]))
            inputs.append(position)
            count -= 1
        at = after
    result = d.name()
    if d.chance(0.3):
        position = d.constant(np.array(d.rng.randint(-count, count - 1), np.int64))
        nodes.append(helper.make_node("SequenceAt", [at, position.name], [result]))
        inputs.append(position)
    elif d.chance(0.2):
        nodes.append(helper.make_node("SequenceLength", [at], [result]))
    else:
        new = d.chance(0.3)
        axis = d.rng.randrange(x.rank + 1) if new else axis_of(d, x)
        nodes.append(helper.make_node("ConcatFromSequence", [at], [result], axis=axis, new_axis=int(new)))
    return Block(nodes, inputs, [result])


@draws("SplitToSequence", weight=0.7)
def split_to_sequence(d: Drawing, op: str) -> Block:
    x = d.take(kinds_of(d, op), RANKS)
    axis = axis_of(d, x)
    keep = d.rng.choice([None, 0, 1])
    sizes = None
    if d.chance(0.5) and min(x.shape[axis]) > 0:
        sizes, keep = (
            d.constant(np.array(d.rng.randint(1, 3), np.int64)),
            None,
        )  # which ONNX ignores, and its runtime not
    block = make(d, op, [x, sizes], axis=axis, keepdims=keep)
    position, result = d.constant(np.array(d.rng.choice([0, -1]), np.int64)), d.name()
    nodes = [*block.nodes, helper.make_node("SequenceAt", [block.outputs[0], position.name], [result])]
    return Block(nodes, [*block.inputs, position], [result])


@draws("NonMaxSuppression", weight=0.3)
def non_max_suppression(d: Drawing, op: str) -> Block:
    n, classes = d.sizes(d.dims(2))

    def boxes(size: tuple[int, ...]) -> np.ndarray:
        corners = d.numbers.random(size).astype(np.float32)
        corners[..., 2:] = corners[..., :2] + d.numbers.random(corners[..., 2:].shape).astype(np.float32)
        return corners

    given = d.fresh(TensorProto.FLOAT, ((1, 1), n, (4, 4)), boxes)
    scores = d.fresh(TensorProto.FLOAT, ((1, 1), classes, n), lambda s: d.numbers.random(s).astype(np.float32))
    limit, overlap = d.constant(np.array([3], np.int64)), d.constant(np.array([0.4], np.float32))
    lowest = d.constant(np.array([0.2], np.float32)) if d.chance(0.5) else None
    return make(d, op, [given, scores, limit, overlap, lowest], center_point_box=d.rng.choice([None, 0]))

"""If, Loop and Scan, whose bodies are drawn like graphs of their own."""

from __future__ import annotations

import numpy as np
import onnx
from drawing import BOOL, Block, Drawing, Unfit, Value
from onnx import TensorProto, helper
from table import OPERATORS, draws

BODY = 3  # how many blocks a body has at most


class Body(Drawing):
    """A graph inside a node: it sees the values around it, and has no inputs or initializers but those it is given."""


def body_of(d: Drawing, seen: list[Value], blocks: int) -> Body:
    body = Body(d.rng, d.opset, {}, d.numbers, values=list(seen), takes_inputs=False)
    body.count = d.count + 1000 * d.rng.randint(1, 500)  # names are not used twice
    outer = ("Loop", "Scan") if isinstance(d, Body) or d.chance(0.7) else ()
    names = [op for op in OPERATORS if op not in ("If", *outer) or (op == "If" and not isinstance(d, Body))]
    weights = [OPERATORS[op][1] for op in names]
    tries = 0
    while blocks and tries < 40:
        tries += 1
        op = d.rng.choices(names, weights)[0]
        try:
            body.add(OPERATORS[op][0](body, op))
            blocks -= 1
        except Unfit:
            body.pending.clear()
    if body.inputs:
        raise Unfit("a body takes only what is around it")
    return body


def made(body: Body, seen: list[Value]) -> list[Value]:
    known = {id(v) for v in seen}
    return [v for v in body.values if id(v) not in known and v.kind not in (TensorProto.BFLOAT16,)]


def info(value: Value, *, with_shape: bool = False, name: str = "") -> onnx.ValueInfoProto:
    shape = [a if a == b and with_shape else None for a, b in value.shape]
    return helper.make_tensor_value_info(name or value.name, value.kind, shape)


def names_in(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph says, and those inside it."""
    names = {o.name for o in graph.output} | {name for node in graph.node for name in node.input}
    inner = (a.g for node in graph.node for a in node.attribute if a.HasField("g"))
    return names.union(*(names_in(g) for g in inner))


def captured(graphs: list[onnx.GraphProto], seen: list[Value]) -> list[Value]:
    names = set().union(*(names_in(g) for g in graphs))
    return [v for v in seen if v.name in names]


def condition(d: Drawing) -> Block:
    """A truth value: of a size, of a value, or one that is given."""
    way = d.rng.random()
    if way < 0.4:
        x = d.pick(None, lambda v: v.rank > 0 and not v.is_constant)
        shape, size, result = d.name("s"), d.name("s"), d.name("t")
        at, limit = (
            d.constant(np.array(d.rng.randrange(x.rank), np.int64)),
            d.constant(np.array(d.rng.randint(0, 4), np.int64)),
        )
        nodes = [
            helper.make_node("Shape", [x.name], [shape]),
            helper.make_node("Gather", [shape, at.name], [size]),
            helper.make_node(d.rng.choice(["Equal", "Greater", "Less"]), [size, limit.name], [result]),
        ]
        return Block(nodes, [x, at, limit], [result])
    if way < 0.6:
        x = d.pick([TensorProto.FLOAT, TensorProto.INT64], lambda v: v.rank == 0)
        limit, result = d.constant(np.array(0, x.dtype)), d.name("t")
        return Block([helper.make_node("Less", [x.name, limit.name], [result])], [x, limit], [result])
    value = d.fresh(BOOL, ())
    return Block([], [value], [value.name])


@draws("If", weight=9)
def if_(d: Drawing, op: str) -> Block:
    test = condition(d)
    seen = [v for v in d.values if v.kind != TensorProto.BFLOAT16]
    bodies = [body_of(d, seen, d.rng.randint(1, BODY)) for _ in range(2)]
    first = d.rng.choice(made(bodies[0], seen) or [None])
    if first is None:
        raise Unfit("an empty branch")
    same_rank = d.chance(0.85)
    fits = [v for v in made(bodies[1], seen) if v.kind == first.kind and (v.rank == first.rank or not same_rank)]
    if not fits:
        raise Unfit("branches of two types")
    second = d.rng.choice(fits)
    graphs = []
    for body, result, name in zip(bodies, (first, second), ("then", "else"), strict=True):
        graphs.append(helper.make_graph(body.nodes, name, [], [info(result)], body.initializers))
    d.count = max(d.count, *(b.count for b in bodies))
    result = d.name()
    node = helper.make_node("If", [test.outputs[0]], [result], then_branch=graphs[0], else_branch=graphs[1])
    return Block([*test.nodes, node], [*test.inputs, *captured(graphs, seen)], [result])


@draws("Loop", weight=6)
def loop(d: Drawing, op: str) -> Block:
    """A loop over a number of steps that carries one value and stacks another."""
    seen = [v for v in d.values if v.kind != TensorProto.BFLOAT16]
    start = d.pick([TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT])
    inner = Value(d.name("l"), start.kind, start.runs)
    step = Value(d.name("i"), TensorProto.INT64, (np.array(1, np.int64), np.array(1, np.int64)))
    go = Value(d.name("g"), BOOL, (np.array(True), np.array(True)))
    given = [inner, step]
    body = body_of(d, [*seen, *given, inner, inner], d.rng.randint(1, BODY))
    new = made(body, [*seen, *given])
    fits = [v for v in new if v.kind == start.kind and v.shape == start.shape]
    if not fits:
        raise Unfit("no value to carry")
    carried = d.rng.choice(fits)
    count = d.rng.choice([0, 1, 2, 3])
    # what no iteration stacks has sizes of 0 in ONNX Runtime where it does not know them
    stacked = [d.rng.choice(new)] if count and d.chance(0.6) else []
    d.count = body.count
    still = d.name("g")
    ends_itself = count > 0 and d.chance(0.3)
    if ends_itself:  # before its number of steps is over
        last = d.constant(np.array(d.rng.randint(0, count), np.int64))
        nodes = [*body.nodes, helper.make_node("Less", [step.name, last.name], [still])]
    else:
        nodes = [*body.nodes, helper.make_node("Identity", [go.name], [still])]
    takes = [info(step), info(go), info(inner)]
    results, names = [], set()
    for v in [carried, *stacked]:
        name = v.name
        if name in names:
            name = d.name("o")
            nodes.append(helper.make_node("Identity", [v.name], [name]))
        names.add(name)
        results.append(info(v, name=name))
    graph = helper.make_graph(
        nodes, "body", takes, [helper.make_tensor_value_info(still, BOOL, []), *results], body.initializers
    )
    if d.chance(0.5):
        times = d.constant(np.array(count, np.int64))
        before: list[onnx.NodeProto] = []
        inputs = [times]
        times_name = times.name
    else:
        times = d.fresh(TensorProto.INT64, (), lambda _: np.array(count, np.int64))
        before, inputs, times_name = [], [times], times.name
    outputs = [d.name() for _ in results]
    first = d.constant(np.array(True)) if ends_itself else None
    if first:
        inputs += [first, last]
    if first and d.chance(0.4):
        inputs.remove(times)
        times_name = ""
    node = helper.make_node("Loop", [times_name, first.name if first else "", start.name], outputs, body=graph)
    return Block([*before, node], [*inputs, start, *captured([graph], seen)], outputs)


@draws("Scan", weight=4)
def scan(d: Drawing, op: str) -> Block:
    """A scan over the first axis of one value, with a state."""
    if d.opset < 9:
        raise Unfit("an old form")
    kinds = [TensorProto.FLOAT, TensorProto.INT64]
    x = d.pick(kinds, lambda v: v.rank > 0 and min(v.shape[0]) > 0)
    state = d.pick(kinds)
    seen: list[Value] = []
    row = Value(d.name("r"), x.kind, (x.runs[0][0], x.runs[1][0]))
    inner = Value(d.name("l"), state.kind, state.runs)
    body = body_of(d, [row, inner, inner], d.rng.randint(1, BODY))
    new = made(body, [row, inner])
    fits = [v for v in new if v.kind == state.kind and v.shape == state.shape]
    if not fits:
        raise Unfit("no value to carry")
    carried = d.rng.choice(fits)
    others = [v for v in new if v is not carried]
    if not others:
        raise Unfit("nothing to stack")
    stacked = d.rng.choice(others)
    d.count = body.count
    graph = helper.make_graph(
        body.nodes, "body", [info(inner), info(row)], [info(carried), info(stacked)], body.initializers
    )
    outputs = [d.name(), d.name()]
    way = {"scan_input_directions": [1]} if d.chance(0.3) else {}
    out = {"scan_output_directions": [1]} if d.chance(0.3) else {}
    node = helper.make_node("Scan", [state.name, x.name], outputs, body=graph, num_scan_inputs=1, **way, **out)
    return Block([node], [state, x, *captured([graph], seen)], outputs)

"""Random ONNX graphs, through every route out of ONNX, against ONNX Runtime at two sizes."""

from __future__ import annotations

import os
import random
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import operators
import operators_layers
import operators_microsoft
import operators_ml
import operators_quantize
import operators_rare
import operators_shape
import subgraphs
from drawing import BOOL, CARRIERS, FILL, OTHER_FILL, Drawing, Unfit, Value, fill_memory, opset_imports
from onnx import TensorProto, helper
from outcome import BAD, Announce, Outcome
from routes import ROUTES, Case, all_values, difference, reference, try_route
from shrink import shrunk
from table import OPERATORS

FAMILIES = (
    operators,
    operators_shape,
    operators_layers,
    operators_quantize,
    operators_rare,
    operators_ml,
    operators_microsoft,
    subgraphs,
)
OPSETS = (9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 18, 19, 20, 20, 21, 22, 23, 23, 24, 25, 26)
PER_CASE = 3  # routes that a case takes where none are asked for


def symbols(rng: random.Random) -> dict[str, tuple[int, int]]:
    """Names of open sizes, and what each is at the two times."""
    found = {}
    for name in rng.sample(["batch", "time", "n"], rng.choice([0, 1, 1, 2, 3])):
        found[name] = rng.choice([(2, 3), (3, 5), (1, 4), (4, 1), (2, 6), (3, 1), (0, 2), (2, 0), (5, 2)])
    return found


def draw(seed: int) -> Case:
    """The model of a case, and what its inputs are at the two sizes."""
    fill_memory(FILL)
    rng = random.Random(seed)
    d = Drawing(rng, rng.choice(OPSETS), symbols(rng), np.random.default_rng(seed))
    wanted = rng.choice([5, 5, 8, 12, 20, 30, 40])
    names = list(OPERATORS)
    weights = [OPERATORS[name][1] for name in names]
    focus = [name for name in os.environ.get("TONNX_FUZZ_OPERATORS", "").split(",") if name]
    if focus:
        weights = [w + 30 * (name in focus) for name, w in zip(names, weights, strict=True)]
    elif rng.random() < 0.5:  # a few operators often, in place of all of them at times
        chosen = set(rng.sample(names, 12))
        weights = [w if name in chosen else 0.1 * w for name, w in zip(names, weights, strict=True)]
    for _ in range(rng.randint(1, 2)):
        try:
            d.input(TensorProto.FLOAT, d.dims(rng.choice([2, 3, 4])))
        except Unfit:
            d.pending.clear()
    for act in d.pending:
        act()
    d.pending.clear()
    tries = 0
    while len(d.nodes) < wanted and tries < 12 * wanted:
        tries += 1
        op = rng.choices(names, weights)[0]
        try:
            d.add(OPERATORS[op][0](d, op))
        except Unfit:
            d.pending.clear()
    return finish(d)


def finish(d: Drawing) -> Case:
    """The model of what was drawn: its outputs are the values that nothing else takes, and a few more."""
    results = [v for v in [*d.values, *d.odd] if v.name not in d.inputs and not is_stored(d, v)]
    chosen = [v for v in results if v.name not in d.used or d.chance(0.1)]
    chosen = chosen[-8:]
    nodes, outputs = list(d.nodes), []
    for value in chosen:
        name = value.name
        if value.kind in CARRIERS:
            name = f"{value.name}_float"
            nodes.append(helper.make_node("Cast", [value.name], [name], to=TensorProto.FLOAT))
            value = Value(name, TensorProto.FLOAT, value.runs)
        outputs.append(helper.make_empty_tensor_value_info(name))
        outputs[-1].type.tensor_type.elem_type = value.kind
    graph = helper.make_graph(nodes, "graph", list(d.inputs.values()), outputs, d.initializers)
    model = helper.make_model(graph, opset_imports=opset_imports(d.opset), ir_version=8, producer_name="fuzz")
    declare(model, {v.name: v for v in chosen})
    feeds = tuple({v.name: v.runs[at] for v in d.values if v.name in d.inputs} for at in (0, 1))
    return Case(model, feeds)


def is_stored(d: Drawing, value: Value) -> bool:
    return any(t.name == value.name for t in d.initializers) or any(
        node.op_type == "Constant" and value.name in node.output for node in d.nodes
    )


def declare(model: onnx.ModelProto, values: dict[str, Value]) -> None:
    """Gives outputs the shapes that ONNX infers, or as many open sizes as they have axes."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=False, data_prop=True)
        known = {o.name: o for o in inferred.graph.output}
    except Exception:
        known = {}
    for output in model.graph.output:
        value = values.get(output.name.removesuffix("_float"))
        found = known.get(output.name)
        if found is not None and found.type.tensor_type.HasField("shape"):
            output.CopyFrom(found)
        elif value is not None and value.runs[0].ndim == value.runs[1].ndim:
            kind = output.type.tensor_type.elem_type
            output.CopyFrom(helper.make_tensor_value_info(output.name, kind, [None] * value.rank))


def run_case(seed: int, routes: tuple[str, ...], folder: Path, announce: Announce, shrink: bool) -> list[Outcome]:
    warnings.simplefilter("ignore")
    announce("draw")
    case = draw(seed)
    if not case.model.graph.node or not case.model.graph.output:
        return [Outcome("draw", "skipped", "nothing drawn")]
    want = reference(case)
    if isinstance(want, str):
        return [Outcome("draw", "skipped", want)]
    try:
        onnx.checker.check_model(case.model, full_check=True)
    except Exception:
        case.is_checked = False
    if any(node.domain == "ai.onnx.ml" for node in case.model.graph.node):
        case.is_checked = (
            False  # behind those that ONNX infers no shape of, its checker takes a Shape to have no elements
        )
    if any(a.name == "ceil_mode" and a.i for node in case.model.graph.node for a in node.attribute):
        case.is_checked = False  # ONNX also counts a last window that would start in the padding
    for output, arrays in zip(case.model.graph.output, zip(*want, strict=True), strict=True):
        sizes = [d.dim_value if d.HasField("dim_value") else -1 for d in output.type.tensor_type.shape.dim]
        has_rank = output.type.tensor_type.HasField("shape")
        if has_rank and any(
            len(sizes) != a.ndim or any(s not in (-1, n) for s, n in zip(sizes, a.shape, strict=True)) for a in arrays
        ):
            case.is_checked = False  # ONNX infers another shape than there is
    chosen = routes or tuple(random.Random(seed).sample(ROUTES, PER_CASE))
    outcomes = []
    for route in chosen:
        announce(route)
        with tempfile.TemporaryDirectory() as place:
            outcome = try_route(case, want, route, Path(place))
        if outcome.kind == "wrong" and not is_repeatable(case, want):
            outcome.kind = "skipped"
        if outcome.kind in BAD:
            small = case
            if shrink:
                announce(f"{route} (making the model smaller)")
                small, outcome = shrunk(case, outcome)
            if outcome.kind == "wrong" and is_deviation(small, route):
                outcome.kind = "deviates"
            outcome.reproduction = save(small, folder, f"{seed}-{route}")
        outcomes.append(outcome)
    return outcomes


def is_repeatable(case: Case, want: list[list[np.ndarray]]) -> bool:
    """Whether ONNX Runtime gives the same again where no value is kept in the memory of another, nor in memory as it was."""
    fill_memory(OTHER_FILL)
    try:
        again = all_values(case)
    except Exception:
        return True
    finally:
        fill_memory(FILL)
    names = [o.name for o in case.model.graph.output]
    pairs = [
        (values[n], a)
        for values, arrays in zip(again, want, strict=True)
        for n, a in zip(names, arrays, strict=True)
        if n in values
    ]
    return not any(difference(a, b) for a, b in pairs)


def is_deviation(case: Case, route: str) -> bool:
    """Whether ONNX's own evaluator gives what tonnx gives, and not what ONNX Runtime gives."""
    try:
        run = onnx.reference.ReferenceEvaluator(case.model)
        with np.errstate(all="ignore"):
            want = [[np.asarray(a) for a in run.run(None, feeds)] for feeds in case.feeds]
    except Exception:
        return False
    with tempfile.TemporaryDirectory() as place:
        return try_route(case, want, route, Path(place)).kind == "same"


def save(case: Case, folder: Path, name: str) -> str:
    """Writes a model and its inputs, and says what they are."""
    path = folder / f"{name}.onnx"
    onnx.save(case.model, path)
    for at, feeds in enumerate(case.feeds):
        np.savez(folder / f"{name}-{at}.npz", **feeds)
    sizes = [{k: list(v.shape) for k, v in feeds.items()} for feeds in case.feeds]
    return f"{path}, inputs {sizes[0]} and {sizes[1]}\n{onnx.printer.to_text(case.model.graph)}"


__all__ = ["BOOL", "ROUTES", "run_case"]

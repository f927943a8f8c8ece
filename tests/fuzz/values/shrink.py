"""Makes a model that fails smaller, as long as it fails in the same way."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
from noise import captured
from onnx import helper, numpy_helper
from outcome import Outcome
from routes import Case, all_values, reference, try_route


def with_outputs(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    """The part of a model that computes these values."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    wanted, kept = set(names), []
    for node in reversed(model.graph.node):
        if wanted & set(node.output):
            kept.append(node)
            wanted |= captured(node)
    del copy.graph.node[:], copy.graph.output[:], copy.graph.initializer[:], copy.graph.input[:]
    copy.graph.node.extend(reversed(kept))
    declared = {o.name: o for o in model.graph.output}
    copy.graph.output.extend(declared.get(n) or onnx.ValueInfoProto(name=n) for n in names)
    copy.graph.initializer.extend(t for t in model.graph.initializer if t.name in wanted)
    copy.graph.input.extend(i for i in model.graph.input if i.name in wanted)
    return copy


def cut(case: Case, values: list[dict[str, np.ndarray]], at: int) -> Case | None:
    """The model without one node, whose results are inputs with the values that it gave."""
    model = case.model
    node = model.graph.node[at]
    rest = [n for i, n in enumerate(model.graph.node) if i != at]
    used = set().union(*(captured(n) for n in rest)) if rest else set()
    results = [o for o in node.output if o in used]
    if any(o not in values[0] for o in results) or any(o.name in node.output for o in model.graph.output):
        return None
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(rest)
    for name in results:
        a, b = values[0][name], values[1][name]
        if a.ndim != b.ndim:
            return None
        kind = helper.np_dtype_to_tensor_dtype(a.dtype)
        if node.op_type == "Constant" or (a.shape == b.shape and a.dtype.kind == "i" and np.array_equal(a, b)):
            copy.graph.initializer.append(numpy_helper.from_array(a, name))
            continue
        dims = [p if p == q else f"d{p}_{q}" for p, q in zip(a.shape, b.shape, strict=True)]
        copy.graph.input.append(helper.make_tensor_value_info(name, kind, dims))
    return prune(
        Case(
            copy,
            tuple({**feeds, **{n: v[n] for n in results}} for feeds, v in zip(case.feeds, values, strict=True)),
            case.is_checked,
        )
    )


def prune(case: Case) -> Case:
    model = with_outputs(case.model, [o.name for o in case.model.graph.output])
    names = {i.name for i in model.graph.input}
    return Case(model, tuple({n: a for n, a in feeds.items() if n in names} for feeds in case.feeds), case.is_checked)


def fails(case: Case, like: Outcome) -> Outcome | None:
    """The outcome of a smaller case, where it fails as the first did."""
    want = reference(case)
    if isinstance(want, str):
        return None
    with tempfile.TemporaryDirectory() as place:
        outcome = try_route(case, want, like.route, Path(place))
    same = outcome.kind == like.kind and symptom(outcome.text) == symptom(like.text)
    return outcome if same else None


def symptom(text: str) -> str:
    """What two failures of one kind have in common."""
    if "the checker of ONNX" in text:
        return "checker"
    if "refuses the .pt2" in text:
        return "refused"
    if "does not run" in text:
        return "does not run"
    return ""


def shrunk(case: Case, outcome: Outcome) -> tuple[Case, Outcome]:
    """The smallest case found that fails in the same way, and how it fails."""
    best, last = case, outcome
    budget = 150

    def attempt(smaller: Case | None) -> bool:
        nonlocal best, last, budget
        if smaller is None or budget <= 0:
            return False
        budget -= 1
        try:
            found = fails(smaller, outcome)
        except Exception:
            return False
        if found:
            best, last = smaller, found
        return found is not None

    for output in [o.name for o in best.model.graph.output]:
        if len(best.model.graph.output) > 1 and attempt(
            prune(Case(with_outputs(best.model, [output]), best.feeds, best.is_checked))
        ):
            break
    try:
        values = all_values(best)
    except Exception:
        values = None
    at = 0
    while values and at < len(best.model.graph.node) and budget > 0:
        if not attempt(cut(best, values, at)):
            at += 1
    for only in (0, 1):  # the other size is not needed, where it fails at one alone
        if attempt(Case(best.model, (best.feeds[only], best.feeds[only]), best.is_checked)):
            break
    return best, last

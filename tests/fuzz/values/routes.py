"""The routes out of ONNX, and whether what comes out computes what the model computes."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from drawing import session
from noise import explained_by_rounding
from outcome import Outcome

import tonnx

Feeds = tuple[dict[str, np.ndarray], ...]
Run = Callable[[dict[str, np.ndarray]], list[Any]]


@dataclass
class Case:
    model: onnx.ModelProto
    feeds: Feeds
    is_checked: bool = True


def reference(case: Case) -> list[list[np.ndarray]] | str:
    """What ONNX Runtime gives at both sizes, or why it gives nothing."""
    try:
        run = session(case.model.SerializeToString())
        return [run.run(None, feeds) for feeds in case.feeds]
    except Exception as e:
        return str(e)


def all_values(case: Case) -> list[dict[str, np.ndarray]]:
    """Every value of the graph at both sizes, as far as numpy has their types."""
    names = [o for node in case.model.graph.node for o in node.output if o]
    copy = onnx.ModelProto()
    copy.CopyFrom(case.model)
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    run = session(copy.SerializeToString())
    plain = [
        o.name
        for o in run.get_outputs()
        if o.type.startswith("tensor") and not any(t in o.type for t in ("bfloat", "float8"))
    ]
    return [{**feeds, **dict(zip(plain, run.run(plain, feeds), strict=True))} for feeds in case.feeds]


def in_runtime(model: onnx.ModelProto | str) -> Run:
    data = model if isinstance(model, str) else model.SerializeToString()
    run = session(Path(data).read_bytes() if isinstance(data, str) else data)
    return lambda feeds: run.run(None, {i.name: feeds[i.name] for i in run.get_inputs()})


def in_torch(module: Any, names: list[str]) -> Run:
    def run(feeds: dict[str, np.ndarray]) -> list[Any]:
        with torch.no_grad():
            results = module(*(torch.from_numpy(feeds[name].astype(feeds[name].dtype.str)) for name in names))
        return list(results) if isinstance(results, (tuple, list)) else [results]

    return run


def input_names(case: Case) -> list[str]:
    return [i.name for i in case.model.graph.input]


def module_route(case: Case, place: Path) -> Run:
    return in_torch(tonnx.convert(case.model), input_names(case))


def code_route(case: Case, place: Path) -> Run:
    tonnx.convert(case.model, place / "fuzzed.py")
    spec = importlib.util.spec_from_file_location("fuzzed", place / "fuzzed.py")
    assert spec and spec.loader
    code = importlib.util.module_from_spec(spec)
    sys.modules["fuzzed"] = code
    spec.loader.exec_module(code)
    return in_torch(code.Model.load(), input_names(case))


def script_route(case: Case, place: Path) -> Run:
    tonnx.convert(case.model, place / "m.pt")
    return in_torch(torch.jit.load(str(place / "m.pt")), input_names(case))


def script_back_route(case: Case, place: Path) -> Run:
    tonnx.convert(case.model, place / "m.pt")
    inputs = case.model.graph.input
    types = {
        str(i): onnx.helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type).name for i, x in enumerate(inputs)
    }
    shapes = {
        str(i): [d.dim_value if d.HasField("dim_value") else -1 for d in x.type.tensor_type.shape.dim]
        for i, x in enumerate(inputs)
    }
    tonnx.convert(place / "m.pt", place / "back.onnx", input_shapes=shapes, input_types=types)
    return by_position(case, place / "back.onnx")


def by_position(case: Case, path: Path) -> Run:
    """A file that came back, whose inputs may have other names."""
    run = in_runtime(str(path))
    back = [i.name for i in onnx.load(path).graph.input]
    names = input_names(case)
    return lambda feeds: run(dict(zip(back, (feeds[n] for n in names), strict=True)))


def program_route(case: Case, place: Path) -> Run:
    tonnx.convert(case.model, place / "m.pt2")
    return in_torch(torch.export.load(place / "m.pt2").module(), input_names(case))


def program_back_route(case: Case, place: Path) -> Run:
    tonnx.convert(case.model, place / "m.pt2")
    try:
        tonnx.convert(place / "m.pt2", place / "back.onnx")
    except tonnx.Error as e:
        raise Broken(f"tonnx refuses the .pt2 that it wrote: {e}") from e
    check_file(case, place / "back.onnx")
    return by_position(case, place / "back.onnx")


def simplify_route(case: Case, place: Path) -> Run:
    simple, _ = tonnx.simplify(case.model)
    onnx.save(simple, place / "simple.onnx")
    check_file(case, place / "simple.onnx")
    return in_runtime(simple)


def opset_route(case: Case, place: Path) -> Run:
    now = case.model.opset_import[0].version
    other = [13, 15, 17, 18, 19, 20, 21, 22, 23]
    target = other[(len(case.model.graph.node) + now) % len(other)]
    tonnx.convert(case.model, place / "other.onnx", opset=target)
    check_file(case, place / "other.onnx")
    return in_runtime(str(place / "other.onnx"))


ROUTE_TABLE: dict[str, Callable[[Case, Path], Run]] = {
    "module": module_route, "py": code_route, "pt": script_route, "pt2": program_route, "pt2-back": program_back_route,
    "pt-back": script_back_route, "simplify": simplify_route, "opset": opset_route,
}  # fmt: skip
ROUTES = tuple(ROUTE_TABLE)
IN_ONNX = ("simplify", "opset")  # the routes that PyTorch has no part in


class Broken(Exception):
    """A file of ours that is not what it should be."""


class DoesNotRun(Exception):
    """What came out stops with an error at one of the sizes."""


def is_refused_by_pytorch(route: str, error: DoesNotRun, case: Case) -> bool:
    """Whether PyTorch has no result at a size where ONNX Runtime has one."""
    if route in IN_ONNX or "not implemented" in str(error):
        return False
    is_one = "Expected more than 1 value per channel" in str(error) or "Expected more than 1 spatial" in str(error)
    return is_one or has_empty(case)


def has_empty(case: Case) -> bool:
    """Whether a value of the model has no elements: PyTorch refuses such in more places than ONNX Runtime."""
    try:
        return any(array.size == 0 for values in all_values(case) for array in values.values())
    except Exception:
        return False


def check_file(case: Case, path: Path) -> None:
    """A file passes the full check of ONNX where its source did."""
    if not case.is_checked:
        return
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as e:
        raise Broken(f"the checker of ONNX: {e}") from e


TOLERANCES = {"float16": 2e-2, "float32": 2e-4, "float64": 1e-6}


def difference(got: Any, want: np.ndarray) -> str | None:
    """None where two outputs are the same in type, shape and values, but for rounding."""
    if isinstance(got, torch.Tensor):
        if got.dtype == torch.bfloat16:
            return "type bfloat16"
        got = got.detach().cpu().numpy()
    if not isinstance(got, np.ndarray):
        return f"{type(got).__name__} in place of a tensor"
    if got.shape != want.shape:
        return f"shape {list(got.shape)} in place of {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"type {got.dtype} in place of {want.dtype}"
    if want.dtype.kind != "f":
        bad = got != want
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        rtol = TOLERANCES[want.dtype.name]
        finite = np.abs(b[np.isfinite(b)])
        with np.errstate(all="ignore"):
            bad = ~np.isclose(
                a, b, rtol=rtol, atol=rtol * min(1.0, float(finite.max(initial=0))) + 1e-30, equal_nan=True
            )
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} elements, first at {list(at)}: {got[at]!r} in place of {want[at]!r}"


def compare(case: Case, want: list[list[np.ndarray]], run: Run) -> tuple[str, set[int]]:
    """What differs, as a text, and which outputs."""
    texts, outputs = [], set()
    for at, (feeds, wanted) in enumerate(zip(case.feeds, want, strict=True)):
        try:
            got = run(feeds)
        except Exception as e:
            raise DoesNotRun(f"it does not run at size {at}: {type(e).__name__}: {str(e)[:1500]}") from e
        if len(got) != len(wanted):
            raise Broken(f"{len(got)} outputs in place of {len(wanted)}")
        for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
            if why := difference(a, b):
                texts.append(f"size {at}, output {case.model.graph.output[i].name}: {why}")
                outputs.add(i)
    return "\n".join(texts), outputs


def try_route(case: Case, want: list[list[np.ndarray]], route: str, place: Path) -> Outcome:
    """Takes one route, and says how that ended."""
    try:
        run = ROUTE_TABLE[route](case, place)
        text, outputs = compare(case, want, run)
    except tonnx.Error as e:
        kind = {"unsupported": "refused"}.get(e.kind, "internal")
        return Outcome(route, kind, f"{e.kind}: {e}")
    except Broken as e:
        return Outcome(route, "invalid", str(e))
    except DoesNotRun as e:
        return Outcome(route, "empty" if is_refused_by_pytorch(route, e, case) else "invalid", str(e))
    except Exception as e:
        if "NOT_IMPLEMENTED" in str(e):
            return Outcome(route, "skipped", "ONNX Runtime does not have this version of an operator")
        return Outcome(route, "internal", traceback.format_exc()[-2500:])
    if not text:
        return Outcome(route, "same")
    if explained_by_rounding(case.model, case.feeds, want, outputs, difference):
        return Outcome(route, "unstable", text)
    return Outcome(route, "wrong", text)

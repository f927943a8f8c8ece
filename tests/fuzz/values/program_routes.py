"""The routes out of PyTorch, and whether what comes out computes what eager PyTorch computes."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from drawing import session
from outcome import Outcome
from program_noise import explained_by_rounding
from routes import Broken, DoesNotRun, difference

import tonnx

Arrays = list[np.ndarray]
Run = Callable[[list[torch.Tensor]], Arrays]

HEADER = """import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Program(nn.Module):
    def forward(self, {arguments}):
"""


@dataclass(frozen=True)
class Program:
    """Statements over some inputs, each of which has a tensor at either of two sizes."""

    names: list[str]
    dims: list[list[str | int]]  # of each input: the name of an open size, or a number
    feeds: tuple[list[torch.Tensor], ...]
    lines: list[str]
    results: list[str]

    def source(self) -> str:
        arguments = ", ".join(f"{name}: Tensor" for name in self.names)
        lines = [*self.lines, f"return ({', '.join(self.results)},)"]
        return HEADER.format(arguments=arguments) + "".join(textwrap.indent(line, "        ") + "\n" for line in lines)

    def described(self) -> str:
        return ", ".join(
            f"{name} {str(one.dtype).removeprefix('torch.')}{dims} at {list(one.shape)} and {list(two.shape)}"
            for name, dims, one, two in zip(self.names, self.dims, *self.feeds, strict=True)
        )

    def with_results(self, results: list[str]) -> Program:
        return replace(self, results=results)

    def without_line(self, at: int) -> Program:
        return replace(self, lines=self.lines[:at] + self.lines[at + 1 :])

    def dynamic_shapes(self) -> list[dict[int, str]] | None:
        shapes = [{i: d for i, d in enumerate(dims) if isinstance(d, str)} for dims in self.dims]
        return shapes if any(shapes) else None


def arrays_of(results: Any) -> Arrays:
    """Results as ONNX has them: numbers are tensors without dimensions."""
    found = results if isinstance(results, (tuple, list)) else [results]
    return [r.detach().numpy() if isinstance(r, torch.Tensor) else torch.tensor(r).numpy() for r in found]


def copies(feeds: list[torch.Tensor]) -> list[torch.Tensor]:
    return [t.clone() for t in feeds]


counter = itertools.count()


def module_of(program: Program, place: Path) -> torch.nn.Module:
    """The program as a module in a file, which torch.export and torch.jit.script read."""
    name = f"fuzzed_program_{next(counter)}"
    path = place / f"{name}.py"
    path.write_text(program.source())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    code = importlib.util.module_from_spec(spec)
    sys.modules[name] = code
    spec.loader.exec_module(code)
    del sys.modules[name]
    return code.Program().eval()


def reference(program: Program) -> list[Arrays] | str:
    """What PyTorch gives at both sizes, or why it gives nothing."""
    try:
        with tempfile.TemporaryDirectory() as place, torch.no_grad():
            module = module_of(program, Path(place))
            return [[a.copy() for a in arrays_of(module(*copies(feeds)))] for feeds in program.feeds]
    except Exception as e:
        return f"{type(e).__name__}: {e}"


class Skipped(Exception):
    """PyTorch itself does not go this way."""


class OtherSize(Exception):
    """The file fixes a size, as PyTorch did, at another number."""


def in_runtime(data: bytes) -> Run:
    onnx.checker.check_model(data, full_check=True)
    run = session(data)
    names = [i.name for i in run.get_inputs()]
    if len(set(names)) != len(names):
        raise Broken(f"inputs {names}")
    return lambda feeds: run.run(None, dict(zip(names, (t.numpy() for t in feeds), strict=True)))


def by_name(data: bytes, program: Program) -> Run:
    """A file that keeps the names of the inputs; one that nothing needs may be missing."""
    onnx.checker.check_model(data, full_check=True)
    run = session(data)
    sizes = {i.name: i.shape for i in run.get_inputs()}

    def call(feeds: list[torch.Tensor]) -> Arrays:
        given = {n: t.numpy() for n, t in zip(program.names, feeds, strict=True) if n in sizes}
        for name, array in given.items():
            if any(isinstance(s, int) and s != n for s, n in zip(sizes[name], array.shape, strict=True)):
                raise OtherSize
        return run.run(None, given)

    return call


def live_route(program: Program, place: Path) -> Run:
    shapes = program.dynamic_shapes()
    if shapes is None:
        raise Skipped("no size is open")
    model = tonnx.export(module_of(program, place), tuple(copies(program.feeds[0])), dynamic_shapes=shapes)
    return by_name(bytes(model), program)


def fixed_route(program: Program, place: Path) -> Run:
    model = tonnx.export(module_of(program, place), tuple(copies(program.feeds[0])))
    return by_name(bytes(model), program)


def exported(program: Program, place: Path) -> Path:
    """The .pt2 of torch.export, with the open sizes that PyTorch finds possible."""
    shapes = [{i: torch.export.Dim.AUTO for i in sizes} for sizes in program.dynamic_shapes() or []]
    try:
        with torch.no_grad():
            found = torch.export.export(
                module_of(program, place), tuple(copies(program.feeds[0])), dynamic_shapes=tuple(shapes) or None
            )
        want = reference(program)
        for feeds, wanted in zip(program.feeds, want, strict=True):
            got = arrays_of(found.module()(*copies(feeds)))
            if any(difference(a, b) for a, b in zip(got, wanted, strict=True)):
                raise Skipped("torch.export gives another program")
        torch.export.save(found, place / "m.pt2")
    except Exception as e:
        raise Skipped(f"torch.export: {type(e).__name__}: {e}") from e
    return place / "m.pt2"


def program_route(program: Program, place: Path) -> Run:
    tonnx.convert(exported(program, place), place / "m.onnx")
    return by_name((place / "m.onnx").read_bytes(), program)


def code_route(program: Program, place: Path) -> Run:
    tonnx.convert(exported(program, place), place / "code.py")
    spec = importlib.util.spec_from_file_location("fuzzed_code", place / "code.py")
    assert spec and spec.loader
    code = importlib.util.module_from_spec(spec)
    sys.modules["fuzzed_code"] = code
    spec.loader.exec_module(code)
    model = code.Model.load() if (place / "code.safetensors").exists() else code.Model()
    return lambda feeds: arrays_of(model.eval()(*feeds))


def script_route(program: Program, place: Path) -> Run:
    try:
        archive = torch.jit.script(module_of(program, place))
        for feeds, wanted in zip(program.feeds, reference(program), strict=True):
            got = arrays_of(archive(*copies(feeds)))
            if any(difference(a, b) for a, b in zip(got, wanted, strict=True)):
                raise Skipped("torch.jit.script gives another program")
        archive.save(str(place / "m.pt"))
    except Exception as e:
        raise Skipped(f"torch.jit.script: {type(e).__name__}") from e
    sizes = {str(i): [-1 if isinstance(d, str) else d for d in dims] for i, dims in enumerate(program.dims)}
    types = {str(i): str(t.dtype).removeprefix("torch.") for i, t in enumerate(program.feeds[0])}
    tonnx.convert(place / "m.pt", place / "m.onnx", input_shapes=sizes, input_types=types)
    return in_runtime((place / "m.onnx").read_bytes())


ROUTE_TABLE: dict[str, Callable[[Program, Path], Run]] = {
    "live": live_route, "fixed": fixed_route, "pt2": program_route, "pt2-py": code_route, "script": script_route,
}  # fmt: skip
ROUTES = tuple(ROUTE_TABLE)
AT_ONE_SIZE = ("fixed",)
FROM_TWO_ON = ("pt2", "pt2-py")  # torch.export takes sizes of 0 and 1 for others


def compare(program: Program, want: list[Arrays], run: Run, sizes: int) -> list[tuple[int, int, str]]:
    """Which outputs differ at which size, and how."""
    found = []
    for at in range(sizes):
        try:
            with torch.no_grad():
                got = run(copies(program.feeds[at]))
        except OtherSize:
            continue
        except Exception as e:
            raise DoesNotRun(f"it does not run at size {at}: {type(e).__name__}: {str(e)[:1500]}") from e
        if len(got) != len(want[at]):
            raise Broken(f"{len(got)} outputs in place of {len(want[at])}")
        for i, (a, b) in enumerate(zip(got, want[at], strict=True)):
            if why := difference(a, b):
                found.append((at, i, why))
    return found


def try_route(program: Program, want: list[Arrays], route: str) -> Outcome:
    """Takes one route, and says how that ended."""
    has_ones = any(
        isinstance(d, str) and n < 2
        for dims, t in zip(program.dims, program.feeds[1], strict=True)
        for d, n in zip(dims, t.shape, strict=True)
    )
    sizes = 1 if route in AT_ONE_SIZE or (route in FROM_TWO_ON and has_ones) else len(program.feeds)
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = ROUTE_TABLE[route](program, Path(folder))
            found = compare(program, want, run, sizes)
        except Skipped as e:
            return Outcome(route, "skipped", str(e))
        except tonnx.Error as e:
            return Outcome(route, "refused" if e.kind == "unsupported" else "internal", f"{e.kind}: {e}")
        except (Broken, DoesNotRun, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
            if "NOT_IMPLEMENTED" in str(e):
                return Outcome(route, "skipped", "ONNX Runtime does not have this type of an operator")
            return Outcome(route, "invalid", str(e))
        except Exception as e:
            if "NOT_IMPLEMENTED" in str(e):
                return Outcome(route, "skipped", "ONNX Runtime does not have this type of an operator")
            return Outcome(route, "internal", traceback.format_exc()[-2500:])
        if not found:
            return Outcome(route, "same")
        text = "\n".join(f"size {at}, {program.results[i]}: {why}" for at, i, why in found)
        module = module_of(program, Path(folder))
        if explained_by_rounding(module, program.feeds, {(at, i) for at, i, _ in found}, want, difference):
            return Outcome(route, "unstable", text)
        return Outcome(route, "wrong", text)

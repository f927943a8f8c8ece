"""`tonnx verify`: prints the report, or writes it as JSON or HTML."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tonnx import _core
from tonnx._command import DIFFERS, Parser, run_command
from tonnx._compare import parse_shapes
from tonnx._error import Error, translated
from tonnx._literal import visible
from tonnx._progress import bar_on_terminal
from tonnx._verify import CannotRun, ShapeUnknown, VerifyReport, verify


def _not_negative(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise ValueError
    return value


_not_negative.__name__ = "tolerance"


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="tonnx verify",
        description="Run two models on the same inputs, and say whether they compute the same, and where they part.",
        epilog="Exit codes: 0 the same, 1 bad input, 2 not supported, 3 they differ, 70 internal error.",
    )
    made.add_argument("a", help="the model to measure by: .onnx, .pt2, TorchScript .pt, or .py that tonnx wrote")
    made.add_argument("b", help="the model to compare; the code of a .py is run")
    made.add_argument("--inputs", metavar="data.npz", help="inputs by name, instead of random ones")
    made.add_argument("--shape", action="append", default=[], metavar="NAME:1,3", help="the shape of a random input")
    made.add_argument("--seed", type=int, default=0, help="of the random inputs (default: 0)")
    made.add_argument("--rtol", type=_not_negative, help="relative tolerance (default: what fits types and depth)")
    made.add_argument("--atol", type=_not_negative, help="absolute tolerance (default: what fits types and depth)")
    made.add_argument("--layers", action="store_true", help="compare all values inside, name the first that differs")
    made.add_argument("--outputs-only", action="store_true", help="one draw, and no look at what the outputs hide")
    made.add_argument(
        "--allow-op",
        action="append",
        default=[],
        metavar="LIB::OP",
        help="an operator of your own that a .pt2 may call",
    )
    made.add_argument("--html", metavar="report.html", help="write the report as a page that needs no other file")
    made.add_argument("--json", metavar="report.json", help="write the report as JSON")
    made.add_argument("--quiet", "-q", action="store_true", help="print nothing but errors")
    return made


def plain(value: Any) -> Any:
    """A value for JSON: NaN and infinities become null."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(report: VerifyReport) -> str:
    found = {key: value for key, value in dataclasses.asdict(report).items() if not key.startswith("_")}
    return json.dumps({"ok": report.ok, **plain(found)}, indent=1)


def write(path: str, text: str) -> None:
    """Writes the whole file, or nothing on an error."""
    with translated():
        _core.write_text(path, text)


def _run(arguments: argparse.Namespace) -> int:
    for path in dict.fromkeys((arguments.a, arguments.b)):
        if path.lower().endswith((".py", ".pt")) and not arguments.quiet:
            print(f"note: '{visible(path)}' is code, and is run", file=sys.stderr)
    with bar_on_terminal(arguments.quiet), _advice_as_options():
        report = verify(
            arguments.a,
            arguments.b,
            inputs=arguments.inputs,
            layers=arguments.layers,
            shapes=parse_shapes(arguments.shape),
            seed=arguments.seed,
            rtol=arguments.rtol,
            atol=arguments.atol,
            allow_ops=arguments.allow_op,
            outputs_only=arguments.outputs_only,
        )
    if not arguments.quiet:
        print(visible(str(report)))
    if arguments.json:
        write(arguments.json, as_json(report))
    if arguments.html:
        from tonnx._verify.html import page

        write(arguments.html, page(report))
    return 0 if report.ok else DIFFERS


@contextmanager
def _advice_as_options() -> Iterator[None]:
    """Inside, errors about missing inputs name the options that give them."""
    try:
        yield
    except ShapeUnknown as e:
        text = f"nothing says what shape input '{e.name}' has: give --shape {e.name}:1,3,224,224 or --inputs"
        raise Error(text, e.kind) from None
    except CannotRun as e:
        raise Error(f"{e}; --shape and --inputs say what it takes", e.kind) from None


def main(arguments: Sequence[str]) -> int:
    return run_command(parser(), _run, arguments)

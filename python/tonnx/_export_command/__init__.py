"""`tonnx export`: builds a model from Python code, loads its weights, and writes it as ONNX or in other formats."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence

from tonnx._command import Parser, run_command
from tonnx._error import Error
from tonnx._literal import visible

_TARGETS = (".onnx", ".py", ".pt2", ".pt")


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="tonnx export",
        description="Build a model of PyTorch code, load its weights, and write it as ONNX, as code, or as a program "
        "of PyTorch. The code is run.",
        epilog="Exit codes: 0 done, 1 bad input, 2 not supported, 3 outputs differ, 70 internal error.",
    )
    made.add_argument("model", help="my_net.py:Net or torchvision.models:resnet18: a class, a function, or a model")
    made.add_argument("target", help="model.onnx, model.py, model.pt2 or model.pt (TorchScript)")
    made.add_argument("--weights", metavar="net.pth", help="weights.pth or .safetensors; nothing of it is executed")
    made.add_argument(
        "--part", metavar="NAME", help="which dict of a checkpoint has the weights: model; . is all of it"
    )
    _add_list(made, "--arg", "width=64", "an argument of the class or the function")
    _add_list(made, "--input", "x:1,3,224,224", "the shape of an input, by name or in their order; -1 is an open size")
    _add_list(made, "--input-type", "x:int64", "the element type of an input; float32 where nothing is said")
    _add_list(made, "--dynamic", "x:0=batch", "a size of an input that is open, and its name")
    _add_list(made, "--output-name", "NAME", "the names of the outputs, in their order")
    made.add_argument("--opset", type=int, help="opset of the ONNX that is written")
    where = made.add_mutually_exclusive_group()
    where.add_argument("--external-data", action="store_true", default=None, help="weights in a file of their own")
    where.add_argument("--no-external-data", action="store_false", dest="external_data", help="weights in the file")
    made.add_argument("--no-source-lines", action="store_true", help="leave out which line each node comes from")
    made.add_argument(
        "--no-constant-folding",
        action="store_true",
        help="every weight as the model has it: no BatchNorm is merged into the layer before it",
    )
    made.add_argument("--quiet", "-q", action="store_true", help="print nothing but errors")
    made.add_argument("--verify", action="store_true", help="run the result in ONNX Runtime beside PyTorch")
    return made


def _add_list(made: argparse.ArgumentParser, option: str, form: str, text: str) -> None:
    made.add_argument(option, action="append", default=[], metavar=form, help=text)


def _run(arguments: argparse.Namespace) -> int:
    target = arguments.target
    if not target.endswith(_TARGETS):
        raise Error(f"cannot write '{visible(target)}': export writes {', '.join(_TARGETS)}", "unsupported")
    of_onnx = {
        "--opset": arguments.opset,
        "--external-data": arguments.external_data,
        "--no-constant-folding": arguments.no_constant_folding,
        "--verify": arguments.verify,
    }
    given = [option for option, value in of_onnx.items() if value not in (None, False)]
    if given and not target.endswith(".onnx"):
        raise Error(f"{given[0]} is for a target in ONNX, not for '{visible(target)}'", "invalid_model")
    if arguments.part is not None and arguments.weights is None:
        raise Error("--part says which part of a file has the weights, and --weights gives none", "invalid_model")
    try:
        import torch  # noqa: F401
    except ImportError:
        raise Error("export runs PyTorch, which is not installed: pip install tonnx[torch]", "unsupported") from None
    from tonnx._convert import convert
    from tonnx._export import export
    from tonnx._export_command.build import build_model
    from tonnx._export_command.generated_file import find_call
    from tonnx._export_command.inputs import make_example
    from tonnx._export_command.weights import load_weights

    start = time.perf_counter()
    if not arguments.quiet and not os.path.isdir(arguments.model):
        print(f"note: '{visible(arguments.model)}' is code, and is run", file=sys.stderr)
    built = build_model(arguments.model, arguments.arg, loads_weights=arguments.weights is None)
    model = built.model
    if arguments.weights is not None:
        load_weights(model, arguments.weights, arguments.part)
    is_said = bool(arguments.input or arguments.input_type or arguments.dynamic)
    call = None if is_said else find_call(model)
    example = call.example if call else make_example(model, arguments.input, arguments.input_type, arguments.dynamic)
    if built.is_random and arguments.weights is None and not arguments.quiet:
        print(
            f"warning: the weights of '{visible(arguments.model)}' are random, as its code loads none: "
            "--weights net.pth gives it those of a file",
            file=sys.stderr,
        )
    with contextlib.ExitStack() as stack:
        path = target
        if not target.endswith(".onnx"):
            path = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "model.onnx")
        export(
            model,
            example.args,
            path,
            kwargs=example.kwargs,
            dynamic_axes=example.dynamic_axes,
            input_names=call.input_names if call else None,
            output_names=arguments.output_name or (call.output_names if call else None) or None,
            opset_version=arguments.opset,
            external_data=arguments.external_data,
            source_lines=not arguments.no_source_lines,
            verify=arguments.verify,
            # other formats have every weight unchanged
            do_constant_folding=path == target and not arguments.no_constant_folding,
        )
        if path != target:
            convert(path, target)
    if not arguments.quiet and sys.stdout.isatty():
        size = os.path.getsize(target)
        print(f"wrote {visible(target)} ({size / 1e6:.1f} MB) in {time.perf_counter() - start:.1f} s")
    return 0


def main(arguments: Sequence[str]) -> int:
    return run_command(parser(), _run, _with_values_joined(arguments))


def source_of_code(arguments: Sequence[str]) -> str | None:
    """The first argument of `tonnx convert` if it is a .py file."""
    first = next((text for text in arguments if not text.startswith("-")), "")
    return first if first.lower().endswith(".py") else None


def convert_code(source: str, arguments: Sequence[str]) -> int:
    """`tonnx convert net.py net.onnx`, for a file that tonnx wrote."""
    others = list(arguments)
    others[others.index(source)] = f"{source}:Model"
    return main(others)


def _with_values_joined(arguments: Sequence[str]) -> list[str]:
    """`--input -1,3` as `--input=-1,3`, since argparse would take `-1,3` for an option."""
    result: list[str] = []
    for text in arguments:
        if result and result[-1] == "--input" and text[:2] == "-1":
            result[-1] = f"--input={text}"
        else:
            result.append(text)
    return result

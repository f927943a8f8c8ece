"""Modules and functions of torch.jit: saved, and read as TorchScript archives, so that loops stay loops."""

from __future__ import annotations

import inspect
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from tonnx import _core
from tonnx._error import Error, translated
from tonnx._export.interface.names import Interface, chosen_inputs, chosen_outputs
from tonnx._export.interface.onnx_program import OnnxProgram
from tonnx._export.interface.request import Request
from tonnx._export.program.decompose import unsupported_text
from tonnx._export.sizes.dynamic import DynamicShapes, require_outputs


def is_script(model: Any) -> bool:
    return isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction)


def scripted_whole(model: Any) -> Any:
    """The script of a module of Python that calls scripts, so that their loops stay loops; None for other models."""
    if not isinstance(model, nn.Module) or is_script(model) or not any(map(_calls_script, model.modules())):
        return None
    try:
        return torch.jit.script(model)
    except Exception:  # torch.jit does not support its code
        return None


def _calls_script(part: nn.Module) -> bool:
    try:
        used = inspect.getclosurevars(type(part).forward)
    except (TypeError, ValueError):  # not a Python function
        used = inspect.ClosureVars({}, {}, {}, set())
    return is_script(part) or any(
        map(is_script, [*vars(part).values(), *used.globals.values(), *used.nonlocals.values()])
    )


def _parameters_of(model: Any) -> list[Any]:
    if isinstance(model, torch.jit.ScriptFunction):
        schema: Any = model.schema
        return list(schema.arguments)
    if not hasattr(model, "forward"):
        raise Error("the scripted module has no method forward", "unsupported")
    return list(model.forward.schema.arguments[1:])


def signature_of(model: Any) -> Callable[..., Any]:
    """A function with the signature of a script; torch.jit.load returns objects without one."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    parameters = [
        inspect.Parameter(
            p.name,
            inspect.Parameter.KEYWORD_ONLY if p.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=p.default_value if p.has_default_value() else inspect.Parameter.empty,
        )
        for p in _parameters_of(model)
    ]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return forward


class TraceMayHelp(Error):
    """The reader does not support the script, but a trace would lose nothing: it has no loop or branch."""


def script_program(model: Any, request: Request) -> OnnxProgram:
    """The program of a script."""
    leaves = request.leaves(request.args, request.kwargs)
    tensors = [(name, value) for name, value in leaves if isinstance(value, torch.Tensor)]
    own = [name for name, _ in tensors]
    inputs = chosen_inputs(own, request.input_names)
    rows = [(chosen, *_type_of(name, value, request.shapes)) for chosen, (name, value) in zip(inputs, tensors)]
    places = {id(value): i for i, (_, value) in enumerate(tensors)}
    bound = inspect.signature(signature_of(model)).bind(*request.args, **request.kwargs).arguments
    types = {p.name: p.type for p in _parameters_of(model)}
    arguments = [(name, _argument(name, value, types[name], places)) for name, value in bound.items()]
    try:
        with translated():
            program = _read(model, rows, arguments)
            missing = program.unsupported(request.opset)
        if missing:
            raise Error(unsupported_text(missing, None, program, request.opset), "unsupported")
    except Error as failure:
        if failure.kind == "unsupported" and not _has_control_flow(model):
            raise TraceMayHelp(str(failure), failure.kind) from failure
        raise
    outputs = chosen_outputs(program.output_names(), request.output_names, inputs)
    require_outputs(request.shapes, inputs, outputs)
    program.set_output_names(outputs)
    return OnnxProgram(program, request.options, None, Interface(own, inputs, outputs), request.leaves)


def _read(
    model: Any,
    inputs: Sequence[tuple[str, str, Sequence[int | str]]],
    arguments: Sequence[tuple[str, _core.ScriptArgument]],
) -> _core.Program:
    with tempfile.TemporaryDirectory(prefix="tonnx-") as folder:
        path = os.path.join(folder, "model.pt")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit.save is deprecated
                torch.jit.save(model, path)
        except RuntimeError as failure:
            sentence = next((line for line in str(failure).splitlines() if line.strip()), "it cannot be saved")
            raise Error(f"torch.jit cannot save the model: {sentence.strip()}", "unsupported") from failure
        return _core.Program.read_script(path, inputs, arguments)  # the file stays mapped after it is removed


def _type_of(name: str, tensor: torch.Tensor, shapes: DynamicShapes) -> tuple[str, list[int | str]]:
    """The element type and the sizes of an input; open sizes are names."""
    sizes: list[int | str] = list(tensor.shape)
    for axis, asked in shapes.axes.get(name, {}).items():
        sizes[axis] = asked.label or f"{name}_{axis}"
    return str(tensor.dtype).removeprefix("torch."), sizes


def _argument(name: str, value: Any, type_: Any, places: Mapping[int, int]) -> _core.ScriptArgument:
    """An argument in the form of the core: tensors are inputs, other values are constants."""

    def items(values: Sequence[Any]) -> list[_core.ScriptArgument]:
        return [_argument(name, each, None, places) for each in values]

    if isinstance(value, torch.Tensor):
        return "input", places[id(value)]
    if value is None:
        return "none", None
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | float):
        is_float = isinstance(value, float) or str(type_) in ("float", "Optional[float]")
        return ("float", float(value)) if is_float else ("int", value)
    if isinstance(value, str):
        return "text", value
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return ("list" if str(type_).startswith("List[") else "tuple"), items(value)
    if isinstance(value, list):
        return "list", items(value)
    if isinstance(value, dict):
        return "dict", items([part for pair in value.items() for part in pair])
    raise Error(
        f"the argument '{name}' is a {type(value).__name__}: a scripted model takes tensors, numbers, texts, and "
        "tuples, lists and dicts of those",
        "unsupported",
    )


def _has_control_flow(model: Any) -> bool:
    """Whether the script has loops or branches, which a trace would lose."""
    graph = model.inlined_graph
    return any(graph.findAllNodes(kind, recurse=True) for kind in ("prim::If", "prim::Loop"))

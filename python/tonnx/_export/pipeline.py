"""A model of Python code as an ONNX program: traced, written for the core, decomposed where operators are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from tonnx import _core
from tonnx._error import Error, translated
from tonnx._export.capture.autograd_functions import FunctionCall, functions_kept
from tonnx._export.capture.model import as_module, mode_of
from tonnx._export.capture.tracer import capture
from tonnx._export.interface.exporting import exporting
from tonnx._export.interface.names import InterfaceNames
from tonnx._export.interface.onnx_program import OnnxProgram
from tonnx._export.interface.request import Request
from tonnx._export.program.decompose import decomposed, unsupported_text
from tonnx._export.program.program import ProgramOptions, program_json
from tonnx._export.sizes.dynamic import symbol_names
from tonnx._export.symbolic.call import Declined
from tonnx._export.symbolic.registry import PYTHON_OP, find_symbolic


class Tracing:
    """The model in the mode that it is exported in; the mode is restored at the end."""

    def __init__(self, model: Any, training: bool | None) -> None:
        self._model = model
        self._training = training
        self.functions: Mapping[Any, FunctionCall] = {}
        self.forward: Any = None
        self._declined: set[Any] = set()

    def __enter__(self) -> Tracing:
        self._stack = ExitStack()
        self._module: nn.Module | None = None
        self._method: Callable[..., Any] | None = None
        if not isinstance(self._model, torch.export.ExportedProgram):
            self._module, self._method = as_module(self._model)
            self.forward = self._method or self._module
            self._stack.enter_context(mode_of(self._module, self._training))
        self.is_training = bool(getattr(self._module, "training", self._training))
        self._stack.enter_context(torch.no_grad())
        return self

    def __exit__(self, *failure: Any) -> None:
        self._stack.close()

    def program(self, request: Request, rolls_loops: bool) -> OnnxProgram:
        """The model as ONNX. Functions that the symbolic "::prim_PythonOp" declines are traced like other code."""
        while True:
            exported = self._trace(request)
            try:
                with exporting(request.opset):  # symbolics may ask for the opset
                    return _program_of(exported, self.functions, request, rolls_loops)
            except Declined as declined:
                self._declined.add(declined.function)

    def _trace(self, request: Request) -> Any:
        if self._module is None:
            return self._model
        knows_all = find_symbolic(PYTHON_OP, request.opset) is not None
        with (
            exporting(request.opset),
            functions_kept(lambda f: knows_all and f not in self._declined) as functions,
        ):
            exported = capture(self._module, self._method, request.args, request.kwargs, request.shapes)
        self.functions = functions.calls
        self._library = functions.library  # keeps the operators registered
        return exported

    def reference(self) -> Callable[..., Any]:
        reference: Callable[..., Any] = self._model.module() if self._module is None else self.forward
        return reference


def _program_of(
    exported: torch.export.ExportedProgram, functions: Mapping[Any, FunctionCall], request: Request, rolls_loops: bool
) -> OnnxProgram:
    opset, options = request.opset, request.options
    names = InterfaceNames(exported, request.input_names, request.output_names)
    extra = {
        "input_names": names.input_leaves,
        "output_names": names.output_leaves,
        "symbols": symbol_names(exported, names, request.shapes),
    }

    def read(exported: torch.export.ExportedProgram, as_they_are: frozenset[str] = frozenset()) -> _core.Program:
        how = ProgramOptions(opset, functions, options.source_lines, names.weights, as_they_are, options.fallthrough)
        return _core.Program.read(*program_json(exported, extra, how), rolls_loops)

    with translated():
        program = read(exported)
        missing = program.unsupported(opset)
        tried: set[str] = set()
        while missing and not {row[0] for row in missing} <= tried:
            tried |= {row[0] for row in missing}
            simpler = decomposed(exported, [row[0] for row in missing])
            if simpler is None:
                break
            exported = simpler
            program = read(exported)
            missing = program.unsupported(opset)
        if missing and options.fallthrough:
            program = read(exported, frozenset(row[0] for row in missing))
            missing = program.unsupported(opset)
    if missing:
        raise Error(unsupported_text(missing, exported, program, opset), "unsupported")
    return OnnxProgram(program, options, exported, names.interface, request.leaves)

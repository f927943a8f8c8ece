"""tonnx.export: a PyTorch model in, an ONNX model out."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Annotated, Any, Literal

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tonnx import _core
from tonnx._arguments import checks_arguments
from tonnx._error import Error, nearest, translated
from tonnx._export.capture.autograd_functions import FunctionCall, functions_kept
from tonnx._export.capture.model import as_module, mode_of, what_exports
from tonnx._export.capture.tracer import capture
from tonnx._export.interface.exporting import exporting
from tonnx._export.interface.names import InterfaceNames
from tonnx._export.interface.old_arguments import takes_old_arguments
from tonnx._export.interface.onnx_program import Leaves, OnnxProgram, WritableFile, WriteOptions, save_verified
from tonnx._export.interface.silence import errors_alone, torch_logs_silent
from tonnx._export.interface.structures import register_structures
from tonnx._export.program.decompose import decomposed, unsupported_text
from tonnx._export.program.program import ProgramOptions, program_json
from tonnx._export.script import TraceMayHelp, is_script, script_program, scripted_whole, signature_of
from tonnx._export.sizes.dynamic import (
    DynamicShapes,
    as_tree,
    from_dynamic_axes,
    from_dynamic_shapes,
    from_program,
    leaves_of,
    symbol_names,
)
from tonnx._export.symbolic.call import Declined
from tonnx._export.symbolic.registry import PYTHON_OP, find_symbolic
from tonnx._generated import find_generated

_DEFAULT_OPSET: int = _core.default_opset

Model = Annotated[
    nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    "an nn.Module, an ExportedProgram or a function",
    what_exports,
]


@errors_alone
@takes_old_arguments
@checks_arguments
def export(
    model: Model,
    args: Any = (),
    path: str | os.PathLike[str] | WritableFile | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    external_data: bool | None = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool | None = False,
    custom_opsets: Mapping[str, int] | None = None,
    training: Any = None,
    verify: bool = False,
    verbose: bool | None = False,
    source_lines: bool = True,
    do_constant_folding: bool | None = True,
    fallthrough: bool | Literal["own", "aten"] | None = None,
    **others: Any,
) -> OnnxProgram:
    """Exports a PyTorch model to ONNX.

    The arguments have the names and the meanings of those of torch.onnx.export, in all its versions. `model` is a
    module, a function, an ExportedProgram, or a module or function of torch.jit, whose loops and branches stay what
    they are; `args` and `kwargs` are an example of its inputs: tensors become inputs of the ONNX model, all else is
    part of it. Structures are taken apart, and each tensor is named by its path, such as `batch.pair.0`. Names in
    `input_names` behind those of the inputs are for the weights, in the order of the state dict.

    `path` is where the model is written; None writes nothing. What comes back can be saved (`save`), read (`bytes`,
    `model_proto`, `text`) and called. `verify` runs it in ONNX Runtime beside PyTorch; where they differ it raises
    tonnx.Error, and nothing is written. `verbose` prints the graph. `source_lines=False` leaves out which line of the
    model each node comes from. `do_constant_folding=False` keeps every weight as the model has it: nothing is fused
    into another layer.
    `fallthrough=True` (`operator_export_type=ONNX_FALLTHROUGH`) writes an operator without a conversion as a node of
    its own domain, `library::operator`, and "aten" (`ONNX_ATEN_FALLBACK`) as `org.pytorch.aten::ATen`.

    The model is exported in eval mode unless `training` says otherwise (torch.onnx.TrainingMode), and has its own mode
    again afterwards. The dimensions in `dynamic_axes` or `dynamic_shapes` stay open: the first names inputs and
    outputs and numbers their axes, the second is what torch.export takes, with strings as well.

    An error is one sentence, with the line of the model that it is about. `verbose=True`, or TONNX_DEBUG=1 in the
    environment, shows what it came from.
    """
    args, kwargs = _arguments_of(model, args, kwargs)
    mode = _training_mode(training)
    with _Tracing(model, mode) as tracing, nullcontext() if verbose else torch_logs_silent():
        called = signature_of(model) if is_script(model) else tracing.forward
        args, kwargs, dynamic_shapes = _with_inputs_apart(called, args, kwargs, dynamic_shapes)
        shapes = _dynamic_shapes(called or model, args, kwargs, dynamic_axes, dynamic_shapes, input_names, output_names)
        options = WriteOptions(
            opset_version,
            external_data,
            export_params,
            bool(keep_initializers_as_inputs),
            custom_opsets or {},
            tracing.is_training,
            do_constant_folding is not False,
            source_lines,
            fallthrough="own" if fallthrough is True else fallthrough or "",
        )
        leaves = partial(leaves_of, called or model)
        program: OnnxProgram | None = None
        refused: Error | None = None  # why a script is not read as what it is
        if is_script(model):
            try:
                program = script_program(model, args, kwargs, shapes, input_names, output_names, options, leaves)
            except TraceMayHelp as failure:
                refused = Error(str(failure), failure.kind)
        if program is None:
            # the loops of a model that was made from ONNX were loops there
            rolls_loops = isinstance(model, nn.Module) and find_generated(model) is not None
            try:
                program = tracing.program(args, kwargs, shapes, input_names, output_names, options, leaves, rolls_loops)
            except Error:
                if refused is not None:
                    raise refused from None
                whole = scripted_whole(model)
                if whole is not None:
                    with suppress(Error):  # what the trace says is of the user's own code
                        program = script_program(
                            whole, args, kwargs, shapes, input_names, output_names, options, leaves
                        )
                if program is None:
                    raise
        if verbose:
            _say_constants(leaves, args, kwargs)
            print(program.text())
        if verify:
            save_verified(program, path, tracing.reference(), args, kwargs)
        elif path is not None:
            program.save(path)
    return program


def export_to_pretty_string(model: Any, args: Any = (), *positional: Any, **options: Any) -> str:
    """The ONNX graph that export would write, as text for a person; takes what export takes, and writes no file."""
    options.pop("verbose", None)
    options.pop("f", None)
    others = positional[1:] if positional and not isinstance(positional[0], bool) else positional  # a file, or not
    if len(others) > 1:
        others = (others[0], False, *others[2:])
    return export(model, args, None, *others, **options).text()


def select_model_mode_for_export(model: nn.Module, mode: Any) -> AbstractContextManager[None]:
    """The model in the mode of a torch.onnx.TrainingMode, inside a `with`; afterwards it has its own again."""
    return mode_of(model, _training_mode(mode))


def _say_constants(leaves: Leaves, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Numbers among the arguments are a part of the model, which not everybody expects."""
    numbers = [f"{name} = {value!r}" for name, value in leaves(args, kwargs) if isinstance(value, int | float | str)]
    if numbers:
        print(f"constants of the model, because they are no tensors: {', '.join(numbers)}")


def _arguments_of(model: Any, args: Any, kwargs: Mapping[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example as a call: one tensor alone, and a last dict that holds the keyword arguments, are accepted."""
    if not isinstance(args, tuple | list):
        args = (args,)
    args = tuple(args)
    if isinstance(model, torch.export.ExportedProgram):
        if not args and not kwargs and model.example_inputs is not None:
            args, kwargs = model.example_inputs
        return tuple(args), dict(kwargs or {})
    called = signature_of(model) if is_script(model) else model
    if not kwargs and args and isinstance(args[-1], dict) and _is_keywords(called, args):
        args, kwargs = args[:-1], args[-1]
    return args, dict(kwargs or {})


def _with_inputs_apart(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """The same example with a tensor of its own for each input: one that is given twice would be one input twice."""
    if model is None:
        return args, kwargs, dynamic_shapes
    _require_arguments(model, args, kwargs)
    register_structures((args, kwargs))
    dynamic_shapes = as_tree(model, args, kwargs, dynamic_shapes)
    values, structure = pytree.tree_flatten((args, kwargs))
    seen: set[int] = set()
    for i, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            values[i] = value.clone() if id(value) in seen else value
            seen.add(id(value))
    return *pytree.tree_unflatten(values, structure), dynamic_shapes


def _require_arguments(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """The example is a call that the model can be given."""
    try:
        signature = inspect.signature(model.forward if isinstance(model, nn.Module) else model)
    except ValueError:  # functions of torch do not tell
        return
    parameters = signature.parameters
    if all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        for name in kwargs:
            if name not in parameters:
                there = nearest(name, parameters)
                raise Error(f"kwargs names '{name}', but the arguments of the model are {there}", "unsupported")
    try:
        signature.bind(*args, **kwargs)
    except TypeError as failure:
        there = ", ".join(map(str, parameters.values())) or "none"
        raise Error(
            f"the model cannot be called with the example: {failure}; its arguments are: {there}", "unsupported"
        ) from None


def _is_keywords(model: Any, args: tuple[Any, ...]) -> bool:
    last = args[-1]
    try:
        signature = inspect.signature(model.forward if isinstance(model, nn.Module) else model)
        signature.bind(*args[:-1], **last)
    except (TypeError, ValueError):
        return False
    if last and all(k in signature.parameters for k in last):
        return True
    try:
        signature.bind(*args)
    except TypeError:
        return True
    return False


def _training_mode(training: Any) -> bool | None:
    """True and False set the mode, None preserves it."""
    modes = torch._C._onnx.TrainingMode
    names = {"eval": False, "train": True, "training": True, "preserve": None}
    if training is None or training is False or training == modes.EVAL:
        return False
    if training is True or training == modes.TRAINING:
        return True
    if training == modes.PRESERVE:
        return None
    if isinstance(training, str) and training.lower() in names:
        return names[training.lower()]
    raise ValueError(f"training is a torch.onnx.TrainingMode, not {training!r}")


def _dynamic_shapes(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_axes: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> DynamicShapes:
    if dynamic_axes and dynamic_shapes:
        raise ValueError("give dynamic_axes or dynamic_shapes, not both")
    if isinstance(model, torch.export.ExportedProgram):
        return from_program(model, dynamic_axes, dynamic_shapes, input_names)
    if dynamic_axes:
        return from_dynamic_axes(model, args, kwargs, dynamic_axes, input_names, output_names)
    return from_dynamic_shapes(model, args, kwargs, dynamic_shapes) if dynamic_shapes else DynamicShapes()


class _Tracing:
    """A model in the state in which it is traced, written and compared; all is put back at the end."""

    def __init__(self, model: Any, training: bool | None) -> None:
        self._model = model
        self._training = training
        self.functions: Mapping[Any, FunctionCall] = {}
        self.forward: Any = None
        self._declined: set[Any] = set()

    def __enter__(self) -> _Tracing:
        from contextlib import ExitStack

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

    def program(self, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: DynamicShapes, *more: Any) -> OnnxProgram:
        """The model as ONNX; Functions that the symbolic of all of them declines are traced like other code."""
        opset = more[2].opset or _DEFAULT_OPSET
        while True:
            exported = self._trace(args, kwargs, shapes, opset)
            try:
                with exporting(opset):  # symbolics may ask for it
                    return _program_of(exported, self.functions, shapes, *more)
            except Declined as declined:
                self._declined.add(declined.function)

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: DynamicShapes, opset: int) -> Any:
        if self._module is None:
            return self._model
        knows_all = find_symbolic(PYTHON_OP, opset) is not None
        with (
            exporting(opset),
            functions_kept(lambda f: knows_all and f not in self._declined) as functions,
        ):
            exported = capture(self._module, self._method, args, kwargs, shapes)
        self.functions = functions.calls
        self._library = functions.library  # the operators of the calls live as long as it does
        return exported

    def reference(self) -> Callable[..., Any]:
        reference: Callable[..., Any] = self._model.module() if self._module is None else self.forward
        return reference


def _program_of(
    exported: torch.export.ExportedProgram,
    functions: Mapping[Any, FunctionCall],
    shapes: DynamicShapes,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    options: WriteOptions,
    leaves: Leaves,
    rolls_loops: bool,
) -> OnnxProgram:
    opset = options.opset or _DEFAULT_OPSET
    names = InterfaceNames(exported, input_names, output_names)
    extra = {
        "input_names": names.input_leaves,
        "output_names": names.output_leaves,
        "symbols": symbol_names(exported, names, shapes),
    }

    def read(exported: torch.export.ExportedProgram, as_they_are: frozenset[str] = frozenset()) -> _core.Program:
        own = ProgramOptions(names.weights, as_they_are, options.fallthrough)
        source = program_json(exported, extra, opset, functions, options.source_lines, own)
        return _core.Program.read(*source, rolls_loops)

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
    return OnnxProgram(program, options, exported, names.interface, leaves)

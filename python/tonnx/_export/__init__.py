"""tonnx.export: exports a PyTorch model to ONNX."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Annotated, Any, Literal

import torch
from torch import nn

from tonnx._arguments import checks_arguments
from tonnx._error import Error
from tonnx._export.capture.model import mode_of, what_exports
from tonnx._export.interface.arguments import arguments_of, dynamic_sizes, training_mode, with_inputs_apart
from tonnx._export.interface.old_arguments import takes_old_arguments
from tonnx._export.interface.onnx_program import OnnxProgram, WritableFile, WriteOptions, save_verified
from tonnx._export.interface.request import Request
from tonnx._export.interface.silence import errors_alone, torch_logs_silent
from tonnx._export.pipeline import Tracing
from tonnx._export.script import TraceMayHelp, is_script, script_program, scripted_whole, signature_of
from tonnx._export.sizes.dynamic import leaves_of
from tonnx._generated import find_generated

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

    The arguments have the names and meanings of those of torch.onnx.export, in all its versions. `model` is a module, a
    function, an ExportedProgram, or a module or function of torch.jit, whose loops and branches are kept. `args` and
    `kwargs` are an example of its inputs: tensors become inputs of the ONNX model, other values become constants.
    Structures are flattened, and each tensor is named by its path, such as `batch.pair.0`. Names in `input_names` after
    those of the inputs are for the weights, in the order of the state dict.

    `path` is where the model is written; None writes nothing. The returned OnnxProgram can be saved (`save`), read
    (`bytes`, `model_proto`, `text`) and called. `verify` compares it with PyTorch in ONNX Runtime; if they differ it
    raises tonnx.Error, and writes nothing. `verbose` prints the graph. `source_lines=False` leaves out the line of the
    model that each node comes from. `do_constant_folding=False` keeps every weight unchanged: no layer is fused into
    another.
    `fallthrough=True` (`operator_export_type=ONNX_FALLTHROUGH`) writes an operator without a conversion as a node of
    its own domain, `library::operator`, and "aten" (`ONNX_ATEN_FALLBACK`) as `org.pytorch.aten::ATen`.

    The model is exported in eval mode unless `training` says otherwise (torch.onnx.TrainingMode); its own mode is
    restored afterwards. Dimensions in `dynamic_axes` or `dynamic_shapes` stay open: the first is a dict from names of
    inputs and outputs to axes, the second is that of torch.export, where strings are allowed too.

    An error is one sentence with the line of the model that it is about. `verbose=True`, or TONNX_DEBUG=1 in the
    environment, shows its causes.
    """
    args, kwargs = arguments_of(model, args, kwargs)
    with Tracing(model, training_mode(training)) as tracing, nullcontext() if verbose else torch_logs_silent():
        called = signature_of(model) if is_script(model) else tracing.forward
        args, kwargs, dynamic_shapes = with_inputs_apart(called, args, kwargs, dynamic_shapes)
        called = called or model
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
        shapes = dynamic_sizes(called, args, kwargs, dynamic_axes, dynamic_shapes, input_names, output_names)
        request = Request(args, kwargs, shapes, input_names, output_names, options, partial(leaves_of, called))
        program = _exported(model, tracing, request)
        if verbose:
            _print_constants(request)
            print(program.text())
        if verify:
            save_verified(program, path, tracing.reference(), args, kwargs)
        elif path is not None:
            program.save(path)
    return program


def _exported(model: Any, tracing: Tracing, request: Request) -> OnnxProgram:
    """Reads scripts as TorchScript archives and traces other models; where a trace fails, the model may be scripted."""
    refused: Error | None = None
    if is_script(model):
        try:
            return script_program(model, request)
        except TraceMayHelp as failure:
            refused = Error(str(failure), failure.kind)
    # loops of a model that was converted from ONNX become loops again
    rolls_loops = isinstance(model, nn.Module) and find_generated(model) is not None
    try:
        return tracing.program(request, rolls_loops)
    except Error:
        if refused is not None:
            raise refused from None
        whole = scripted_whole(model)
        if whole is not None:
            with suppress(Error):  # the error of the trace is about the user's code
                return script_program(whole, request)
        raise


def export_to_pretty_string(model: Any, args: Any = (), *positional: Any, **options: Any) -> str:
    """The ONNX graph that export would write, as text; takes the arguments of export, and writes no file."""
    options.pop("verbose", None)
    options.pop("f", None)
    others = positional[1:] if positional and not isinstance(positional[0], bool) else positional  # a file, or not
    if len(others) > 1:
        others = (others[0], False, *others[2:])
    return export(model, args, None, *others, **options).text()


def select_model_mode_for_export(model: nn.Module, mode: Any) -> AbstractContextManager[None]:
    """A context in which the model is in the mode of a torch.onnx.TrainingMode."""
    return mode_of(model, training_mode(mode))


def _print_constants(request: Request) -> None:
    """Says which arguments become constants of the model."""
    values = request.leaves(request.args, request.kwargs)
    numbers = [f"{name} = {value!r}" for name, value in values if isinstance(value, int | float | str)]
    if numbers:
        print(f"constants of the model, because they are not tensors: {', '.join(numbers)}")

"""A module as a torch.export.ExportedProgram: the ways to trace it, in the order in which they are tried."""

from __future__ import annotations

import functools
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import InputKind, TensorArgument

from tonnx._error import Error
from tonnx._export.capture.branches import failing_branches_left_out
from tonnx._export.capture.experts import experts_by_rows, grouped_products_of_any_type
from tonnx._export.capture.masks import masks_as_given
from tonnx._export.capture.quantised_layers import quantised_layers_opened
from tonnx._export.capture.quantised_tensor import Refusal
from tonnx._export.capture.recurrent import recurrent_layers_whole
from tonnx._export.capture.run_time_axes import axes_kept
from tonnx._export.capture.tensor_access import TensorAccessFollowed
from tonnx._export.capture.transforms import is_of_transforms, transforms_ended, without_transforms, written_out
from tonnx._export.interface.structures import NotCarried, register_structures, require_carried
from tonnx._export.sizes.data_sizes import is_question_on_data, sizes_assumed
from tonnx._export.sizes.dynamic import DynamicShapes, relaxed
from tonnx._export.sizes.open_capture import capture_open
from tonnx._export.sizes.open_sizes import Call
from tonnx._export.sizes.questions import is_own_file
from tonnx._replaced import replaced

Program = torch.export.ExportedProgram


def _register_torchvision_shapes() -> None:
    """torchvision does not register the shapes of its operators where it has no compiled kernels."""
    if "torchvision" not in sys.modules:
        return
    shapes = sys.modules.get("torchvision._meta_registrations")
    for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"):
        shape = getattr(shapes, f"meta_{name}", None)
        if shape is None or not hasattr(torch.ops.torchvision, name):
            continue
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"torchvision::{name}", "Meta"):
            torch.library.register_fake(f"torchvision::{name}", shape)


@contextmanager
def _layers_followed(module: nn.Module) -> Iterator[None]:
    """Inside, layers that torch.export cannot trace, or traces badly, compute the same in another way."""
    with (
        recurrent_layers_whole(),
        axes_kept(),
        grouped_products_of_any_type(),
        experts_by_rows(),
        masks_as_given(),
        transforms_ended(),
        quantised_layers_opened(module),
    ):
        yield


def capture(
    module: nn.Module,
    method: Callable[..., Any] | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    shapes: DynamicShapes,
) -> Program:
    """Traces the module, by other ways where the first one fails."""
    _register_torchvision_shapes()
    tracer = Tracer(module, method)
    with replaced(module, "forward", method) if method else nullcontext(), _layers_followed(module):
        try:
            if not any(shapes.axes.values()):
                return tracer.trace((tuple(args), dict(kwargs)), shapes, strict=True)
            return capture_open(tracer.trace, method or module, args, kwargs, shapes)
        except Refusal:
            raise
        except Error as failure:
            # a failed transform leaves tensors that would make this call fail too
            own = None if is_of_transforms(failure) else _failure_of_call(module, args, kwargs)
            if own is None:
                raise
            raise Error(own, "unsupported") from failure


def _failure_of_call(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """The error of the model itself, if it cannot be called with the example; its buffers are restored."""
    before = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        module(*args, **kwargs)
    except Exception as e:
        lines = [line.strip() for line in str(e).splitlines() if line.strip()]
        text = lines[0] if lines else type(e).__name__
        return f"the model cannot be run on the example{_place_in_model(e)}: {text}; try model(*args) first"
    finally:
        for buffer, value in before:
            buffer.copy_(value)
    return None


class Tracer:
    """The ways to trace a module."""

    def __init__(self, module: nn.Module, method: Callable[..., Any] | None) -> None:
        self._module = module
        self._method = method

    def trace(self, example: Call, shapes: DynamicShapes, strict: bool) -> Program:
        """The first way that succeeds; `strict` allows torch's slow analysis of the bytecode as the last one."""
        try:
            return self._traced(example, shapes)
        except Refusal as refusal:
            raise Refusal(f"{refusal}{_place_in_model(refusal)}", "unsupported") from refusal
        except Exception as first:
            for attempt in self._other_ways(first, example, shapes, strict):
                try:
                    return attempt()
                except NotCarried:
                    raise
                except Exception as e:
                    if is_question_on_data(first):  # `first` was answered; `e` is the next question
                        raise Error(_sentence(e), "unsupported") from e
            raise Error(_sentence(first), "unsupported") from first

    def _traced(self, example: Call, shapes: DynamicShapes, strict: bool = False) -> Program:
        args, kwargs = example
        with transforms_ended(), nullcontext() if strict else TensorAccessFollowed(), warnings.catch_warnings():
            # PyTorch's recurrent layers assign a list of their weights while they are traced
            warnings.filterwarnings("ignore", r"The tensor attributes? self\.(\w+\.)*_flat_weights\[")
            program = torch.export.export(self._module, args, kwargs, dynamic_shapes=shapes.shapes, strict=strict)
        return without_transforms(program)

    def _other_ways(
        self, failure: Exception, example: Call, shapes: DynamicShapes, strict: bool
    ) -> Iterator[Callable[[], Program]]:
        module = self._module
        if isinstance(module, torch.jit.ScriptModule):
            yield lambda: _traced_script(module, example)
            return
        if is_question_on_data(failure):
            yield lambda: self._traced_within(sizes_assumed(failure), example, shapes)
            return
        if "not a known type" in str(failure):
            yield lambda: self._traced_with_structures(example, shapes)
        if shapes.shapes is not None:
            looser = relaxed(shapes)
            if looser is not None:
                yield lambda: self._traced(example, looser)
        if not any(shapes.axes.values()):
            if is_of_transforms(failure):
                yield lambda: self._traced_with_gradients(example, shapes)
            yield lambda: self._traced_within(failing_branches_left_out(), example, shapes)
        if strict:
            yield lambda: self._traced(example, shapes, strict=True)

    def _traced_within(self, context: AbstractContextManager[None], example: Call, shapes: DynamicShapes) -> Program:
        with context:
            return self._traced(example, shapes)

    def _traced_with_gradients(self, example: Call, shapes: DynamicShapes) -> Program:
        run = written_out(self._module, *example)

        @functools.wraps(self._method or self._module.forward)
        def forward(*args: Any, **kwargs: Any) -> Any:
            return run(*args, **kwargs)

        return self._traced_within(replaced(self._module, "forward", forward), example, shapes)

    def _traced_with_structures(self, example: Call, shapes: DynamicShapes) -> Program:
        """Registers the type that the model returns when it returns it, since it is not known before."""
        original = self._method or self._module.forward

        @functools.wraps(original)
        def forward(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            register_structures(result)
            require_carried(result)
            return result

        return self._traced_within(replaced(self._module, "forward", forward), example, shapes)


def _traced_script(module: torch.jit.ScriptModule, example: Call) -> Program:
    from torch._export.converter import TS2EPConverter

    args, kwargs = example
    program = TS2EPConverter(module, args, kwargs).convert()
    schema: Any = module.forward.schema  # type: ignore[attr-defined]
    _give_names(program, [argument.name for argument in schema.arguments[1:]])
    return program


def _give_names(program: Program, names: list[str]) -> None:
    """Names the inputs after the arguments; PyTorch appends a number to names of Python builtins."""
    specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    nodes = {node.name: node for node in program.graph.nodes}
    if len(specs) != len(names) or not all(isinstance(spec.arg, TensorArgument) for spec in specs):
        return
    for spec, name in zip(specs, names):
        node = nodes.get(spec.arg.name)
        if node is not None and name not in nodes:
            node.name = node.target = spec.arg.name = name
    program.graph_module.recompile()
    call = program.module_call_graph[0].signature if program.module_call_graph else None
    if call is not None and call.forward_arg_names is not None and len(call.forward_arg_names) == len(names):
        call.forward_arg_names = names


_NOISE = re.compile(
    r"^(For more|For extended|For C\+\+|If you suspect|Caused by|consider using|The error above|Suggested fixes|"
    r"The following call|From user code|Set TORCH|You can suppress|To fix the error)"
)


def _sentence(failure: Exception) -> str:
    """The message of torch.export without advice on its own tools, and with the line of the model where it failed."""
    lines = []
    for line in str(failure).splitlines():
        if _NOISE.match(line.strip()):
            break
        if line.strip():
            lines.append(line.strip())
    text = " ".join(lines[:6]) or type(failure).__name__
    place = _place_in_model(failure)
    if is_question_on_data(failure):
        return (
            f"the Python code of the model decides on the values of tensors{place}; write the decision with torch.cond "
            f"or torch.where, a loop with torch.while_loop, and tell sizes apart with torch._check: {text}"
        )
    if is_of_transforms(failure):
        return (
            f"torch.export cannot trace what the model does with torch.func{place}; write it out in plain operators, "
            f"or export it at fixed sizes: {lines[0] if lines else text}"
        )
    return f"torch.export cannot trace the model{place}: {text}"


def _place_in_model(failure: Exception) -> str:
    """The innermost line of code that belongs neither to torch nor to tonnx."""
    place = ""
    for frame in traceback.extract_tb(failure.__traceback__):
        if not is_own_file(frame.filename):
            place = f" ({frame.filename}:{frame.lineno}, in {frame.name}: {frame.line})"
    return place

"""Layers that PyTorch quantised (torch.ao.quantization.convert, quantize_dynamic), while a model is traced.

Their weights are packed into C++ objects that torch.export cannot trace. During the trace the weights are integer
buffers of the layer, and the functions that the layer calls compute with them in floats (quantised_tensor.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.overrides import TorchFunctionMode

from tonnx._error import Error
from tonnx._export.capture.quantised_tensor import Quantised, Refusal, computed, quantize_per_tensor

_CLASSES = re.compile(r"__torch__\.torch\.classes\.(quantized|rnn)\.")
_CONVOLUTION = re.compile(r"Conv(\d)dPackedParamsBase")
_STEPS_OF_LAYER = re.compile(r"scale|zero_point")
_STEPS_OF_GRAPH = re.compile(r".*_(scale|zero_point)_\d+")


class Packed:
    """Stands for packed weights, whose tensors are buffers of a layer."""

    def __init__(self, owner: nn.Module, prefix: str, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self._owner, self._prefix = owner, prefix
        self._per_tensor = weight.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric)
        self._add("weight", weight.int_repr())
        if self._per_tensor:
            self._steps = (weight.q_scale(), weight.q_zero_point())
        else:
            self._axis = weight.q_per_channel_axis()
            self._add("weight_scale", weight.q_per_channel_scales().float())
            self._add("weight_zero_point", weight.q_per_channel_zero_points().long())
        if bias is not None:
            self._add("bias", bias.detach())
        self.geometry: dict[str, Any] = {}

    def _add(self, name: str, value: torch.Tensor) -> None:
        self._owner._buffers[self._prefix + name] = value

    def _buffer(self, name: str) -> Any:
        return self._owner._buffers.get(self._prefix + name)

    def weight(self) -> torch.Tensor:
        operators, integers = torch.ops.quantized_decomposed, self._buffer("weight")
        if self._per_tensor:
            return operators.dequantize_per_tensor(integers, *self._steps, -128, 127, torch.int8)  # type: ignore[no-any-return]
        scales, zeros = self._buffer("weight_scale"), self._buffer("weight_zero_point")
        return operators.dequantize_per_channel(integers, scales, zeros, self._axis, -128, 127, torch.int8)  # type: ignore[no-any-return]

    def bias(self) -> torch.Tensor | None:
        return self._buffer("bias")  # type: ignore[no-any-return]

    def convolution(self, x: torch.Tensor, dims: int, transposed: bool) -> torch.Tensor:
        """A 1-d convolution is packed as a 2-d one whose first size is 1."""
        weight, geometry = self.weight(), self.geometry
        if weight.dim() == dims + 3:
            weight = weight.squeeze(2)
        stride, padding, dilation = (geometry[key][-dims:] for key in ("stride", "padding", "dilation"))
        if not transposed:
            run: Any = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
            return run(x, weight, self.bias(), stride, padding, dilation, geometry["groups"])  # type: ignore[no-any-return]
        run = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]
        more = geometry["output_padding"][-dims:]
        return run(x, weight, self.bias(), stride, padding, more, geometry["groups"], dilation)  # type: ignore[no-any-return]

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(function, args, kwargs or {})


def _unpacked(owner: nn.Module, prefix: str, packed: Any, path: str) -> Packed:
    kind: str = _CLASSES.sub("", packed._type().qualified_name())
    operators: Any = torch.ops.quantized
    if kind == "LinearPackedParamsBase":
        weight, bias = operators.linear_unpack(packed)
        if weight.is_quantized:
            return Packed(owner, prefix, weight, bias)
    elif found := _CONVOLUTION.fullmatch(kind):
        name = f"conv{found[1]}d"
        result = Packed(owner, prefix, *getattr(operators, f"{name}_unpack")(packed))
        for key in ("stride", "padding", "dilation", "groups", "output_padding"):
            result.geometry[key] = getattr(operators, f"{name}_{key}")(packed)
        return result
    raise Error(
        f"the weights of '{path}' are packed as {kind}, which is not read; export the model as it was before it was "
        "quantised, and quantise the .onnx",
        "unsupported",
    )


def _is_packed(value: Any) -> bool:
    return isinstance(value, torch.ScriptObject) and bool(_CLASSES.match(value._type().qualified_name()))


def _is_quantised_layer(module: nn.Module) -> bool:
    return re.match(r"torch\.ao\.nn\.(intrinsic\.)?quantized\b", type(module).__module__) is not None


def _buffer_of(name: str, module: nn.Module) -> torch.Tensor | None:
    return module._buffers[name]


def _plain_class(module: nn.Module) -> type[nn.Module]:
    """A subclass whose state dict has the buffers, and whose buffers are not hidden by methods of the same name."""
    original: Any = type(module)
    members: dict[str, Any] = {
        "_save_to_state_dict": nn.Module._save_to_state_dict,
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
    }
    for name in module._buffers:
        if hasattr(original, name):
            members[name] = property(partial(_buffer_of, name))
    return type(original.__name__, (original,), members)


def _steps_as_numbers(module: nn.Module) -> Iterator[str]:
    """Makes numbers of scales and zero points that are buffers of one element, and yields their names."""
    if _is_quantised_layer(module):
        of_steps = _STEPS_OF_LAYER
    elif isinstance(module, torch.fx.GraphModule):
        of_steps = _STEPS_OF_GRAPH
    else:
        return
    for name, value in list(module._buffers.items()):
        if of_steps.fullmatch(name) and value is not None and value.numel() == 1:
            del module._buffers[name]
            module.__dict__[name] = value.item()
            yield name


@contextmanager
def _opened(module: nn.Module, owner: nn.Module, path: str) -> Iterator[None]:
    """Inside, the packed weights of a module are buffers of its owner, and its scales and zero points are numbers."""
    parts = {id(each): each for each in (module, owner)}.values()
    before = [(each, each.__class__, dict(each._buffers)) for each in parts]
    packed = {key: value for key, value in module.__dict__.items() if _is_packed(value)}
    numbers: list[str] = []
    try:
        for key, value in packed.items():
            prefix = "" if _is_quantised_layer(owner) else f"{key}_"
            module.__dict__[key] = _unpacked(owner, prefix, value, path)
        numbers += _steps_as_numbers(module)
        for each in parts:
            if _is_quantised_layer(each):
                each.__class__ = _plain_class(each)
        yield
    finally:
        for each, original, buffers in before:
            each.__class__ = original
            each._buffers.clear()
            each._buffers.update(buffers)
        for name in numbers:
            del module.__dict__[name]
        module.__dict__.update(packed)


class _Quantising(TorchFunctionMode):
    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.quantize_per_tensor:
            return quantize_per_tensor(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _refuse_quantised(module: nn.Module, args: Any, result: Any) -> None:
    if any(isinstance(each, Quantised) for each in torch.utils._pytree.tree_leaves(result)):
        raise Refusal(
            "a result of the model is quantised; torch.ao.quantization.DeQuantStub at its end makes it one of floats",
            "unsupported",
        )


@contextmanager
def quantised_layers_opened(module: nn.Module) -> Iterator[None]:
    if "torch.ao.nn.quantized" not in sys.modules or isinstance(module, torch.jit.ScriptModule):
        yield
        return
    parts = dict(module.named_modules())
    is_quantised = any(
        _is_quantised_layer(part) or any(map(_is_packed, part.__dict__.values())) for part in parts.values()
    )
    if not is_quantised:
        yield
        return
    import_module("torch.ao.quantization.fx._decomposed")  # defines the operators
    with ExitStack() as stack:
        for path, part in parts.items():
            parent = parts.get(path.rpartition(".")[0], module)
            is_inner = _is_quantised_layer(part) and type(part).__name__ == "LinearPackedParams"
            stack.enter_context(_opened(part, parent if is_inner else part, path))
        stack.enter_context(_Quantising())
        stack.callback(module.register_forward_hook(_refuse_quantised).remove)
        yield

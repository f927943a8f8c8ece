"""Tensors that PyTorch quantised (torch.ao.quantization), while a model is traced.

torch.export supports neither their types nor their operators. Here a tensor of floats stands for a quantised one; every
element is a multiple of the scale. Operators that only move or select elements keep that property. The results of all
others are rounded to multiples again, which ONNX writes as QuantizeLinear and DequantizeLinear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812

from tonnx._error import Error

_INTEGERS = {torch.quint8: (0, 255, torch.uint8), torch.qint8: (-128, 127, torch.int8)}


class Steps(NamedTuple):
    """Scale and zero point of a quantised tensor, and its type."""

    scale: float
    zero_point: int
    dtype: torch.dtype

    def integers(self) -> tuple[float, int, int, int, torch.dtype]:
        """The arguments of the operators of torch.ops.quantized_decomposed."""
        if self.dtype not in _INTEGERS:
            raise Refusal(f"tensors that are quantised to {self.dtype} are not exported", "unsupported")
        return (float(self.scale), int(self.zero_point), *_INTEGERS[self.dtype])


def on_steps(x: torch.Tensor, steps: Steps) -> Quantised:
    operators, integers = torch.ops.quantized_decomposed, steps.integers()
    return Quantised(
        operators.dequantize_per_tensor(operators.quantize_per_tensor(x, *integers), *integers),
        steps,
    )


def quantize_per_tensor(input: torch.Tensor, scale: Any, zero_point: Any, dtype: torch.dtype) -> Quantised:
    return on_steps(input, Steps(float(scale), int(zero_point), dtype))


class Quantised:
    """Stands for a quantised tensor."""

    def __init__(self, values: torch.Tensor, steps: Steps) -> None:
        self.values = values
        self.steps = steps

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(function, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        method = getattr(torch.Tensor, name)
        if name in _PROPERTIES:
            return getattr(self.values, name)
        if not callable(method):
            raise _unsupported(name)
        return lambda *args, **kwargs: computed(method, (self, *args), kwargs)

    def __getitem__(self, index: Any) -> Quantised:
        return Quantised(self.values[index], self.steps)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dtype(self) -> torch.dtype:
        return self.steps.dtype

    is_quantized = True


_PROPERTIES = {"shape", "ndim", "device", "requires_grad", "layout", "is_cuda", "is_sparse", "names"}
_TELLING = {"size", "dim", "numel", "stride", "is_contiguous", "is_floating_point", "get_device"}

# Functions that move or select elements.
_KEEPING = set(
    "view reshape flatten unflatten transpose permute movedim swapaxes contiguous clone detach chunk split "
    "tensor_split narrow select squeeze unsqueeze expand repeat tile unbind flip roll t index_select view_as "
    "reshape_as expand_as __getitem__ relu relu_ max_pool1d max_pool2d max_pool3d adaptive_max_pool1d "
    "adaptive_max_pool2d adaptive_max_pool3d amax amin pixel_shuffle pixel_unshuffle channel_shuffle "
    "cpu cuda".split()
)

# Functions whose results PyTorch rounds to the scale of the input.
_ROUNDING = set(
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d mean interpolate "
    "upsample pad hardtanh hardtanh_ relu6 clamp clamp_ clip leaky_relu leaky_relu_ dropout "
    "dropout2d feature_dropout".split()
)

# Functions with a fixed output scale: 1 / scale, and the zero point of uint8.
_FIXED = {"sigmoid": (256, 0), "hardsigmoid": (256, 0), "tanh": (128, 128)}


class Refusal(Error):
    """The model uses quantised tensors in a way that cannot be exported, however it is traced."""


def _unsupported(name: str) -> Refusal:
    return Refusal(
        f"the model calls '{name}' on tensors that PyTorch has quantised, which is not exported; export the model as "
        "it was before torch.ao.quantization.convert, and quantise the .onnx",
        "unsupported",
    )


def computed(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function of PyTorch on quantised tensors."""
    name: str = function.__name__
    if getattr(function, "_qualified_op_name", "").startswith("quantized::"):
        if name not in LAYERS:
            raise _unsupported(f"quantized::{name}")
        return LAYERS[name](**_by_name(function, args, kwargs))
    first = args[0] if args else kwargs.get("input")
    if name == "cat":
        return _cat(*args, **kwargs)
    if not isinstance(first, Quantised):
        raise _unsupported(name)
    rest, steps = args[1:] if args else (), first.steps
    named = {key: value for key, value in kwargs.items() if key != "input"}
    if name in _TELLING:
        return function(first.values, *rest, **named)
    if name == "dequantize":
        return first.values
    if name in ("q_scale", "q_zero_point"):
        return steps.scale if name == "q_scale" else steps.zero_point
    if name in _KEEPING:
        return _with_steps(function(first.values, *rest, **named), steps)
    if name in _ROUNDING:
        return _rounded(first, function(first.values, *rest, **named))
    if name in _FIXED and not rest:
        count, zero = _FIXED[name]
        return on_steps(
            function(first.values), Steps(1 / count, zero - 128 * (steps.dtype == torch.qint8), steps.dtype)
        )
    raise _unsupported(name)


def _with_steps(result: Any, steps: Steps) -> Any:
    if isinstance(result, tuple | list):
        return type(result)(_with_steps(each, steps) for each in result)
    return Quantised(result, steps) if result.is_floating_point() else result  # indices of max_pool


def _rounded(x: Quantised, result: torch.Tensor) -> Quantised:
    made = on_steps(result, x.steps)
    if result is not x.values:
        return made
    x.values = made.values  # in place
    return x


def _cat(tensors: Any, dim: int = 0, scale: float | None = None, zero_point: int | None = None) -> Quantised:
    if not all(isinstance(each, Quantised) for each in tensors):
        raise _unsupported("cat")
    first: Steps = tensors[0].steps
    wanted = first if scale is None or zero_point is None else Steps(scale, zero_point, first.dtype)
    joined = torch.cat([each.values for each in tensors], dim)
    return on_steps(joined, wanted) if any(each.steps != wanted for each in tensors) else Quantised(joined, wanted)


def _by_name(packet: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments of the operator by name, with defaults filled in."""
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema.arguments
        given = {**dict(zip([each.name for each in schema], args)), **kwargs}
        names = {each.name for each in schema}
        if len(args) <= len(schema) and names >= given.keys():
            missing = [each for each in schema if each.name not in given]
            if all(each.has_default_value() for each in missing):
                return {each.name: given.get(each.name, each.default_value) for each in schema}
    raise _unsupported(packet._qualified_op_name)


_STEPS = (("output_scale", "output_zero_point"), ("Y_scale_i", "Y_zero_point_i"), ("scale", "zero_point"))


def _layer(function: Callable[..., torch.Tensor], relu: bool = False) -> Callable[..., Quantised]:
    """An operator that takes the scale and zero point of its result; the function takes its other arguments."""

    def run(**given: Any) -> Quantised:
        scale, zero_point = next(names for names in _STEPS if given.keys() >= set(names))
        steps = float(given.pop(scale)), int(given.pop(zero_point))
        first = next(each for each in given.values() if isinstance(each, Quantised))
        result = function(*(each.values if isinstance(each, Quantised) else each for each in given.values()))
        return on_steps(F.relu(result) if relu else result, Steps(*steps, first.steps.dtype))

    return run


def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> Any:
    return F.batch_norm(x, mean, variance, weight, bias, False, 0.0, eps)


def _elu(x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    if (scale, input_scale) != (1, 1):
        raise _unsupported("quantized::elu")
    return F.elu(x, alpha)


def _scaled(qa: Quantised, b: float) -> Quantised:
    """Multiplication by a number changes the scale, and not the integers."""
    if not b > 0:
        raise _unsupported("quantized::mul_scalar")
    return Quantised(qa.values * b, qa.steps._replace(scale=qa.steps.scale * b))


def _convolution(dims: int, transposed: bool = False) -> Callable[..., torch.Tensor]:
    return lambda x, packed: packed.convolution(x, dims, transposed)


def _linear(x: torch.Tensor, packed: Any) -> torch.Tensor:
    return F.linear(x, packed.weight(), packed.bias())


def _linear_dynamic(X: torch.Tensor, W_prepack: Any, reduce_range: bool) -> torch.Tensor:  # noqa: N803  the schema's
    """The scale follows from the smallest and the largest element of the input."""
    x = X
    most = 127.0 if reduce_range else 255.0
    low, high = x.amin().clamp(max=0.0), x.amax().clamp(min=0.0)
    scale = (high - low) / most
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero_point = (-low / scale).round()
    integers = ((x / scale).round() + zero_point).clamp(0.0, most)
    return _linear((integers - zero_point) * scale, W_prepack)


def _both(name: str, function: Callable[..., torch.Tensor]) -> dict[str, Callable[..., Any]]:
    return {name: _layer(function), f"{name}_relu": _layer(function, relu=True)}


LAYERS: dict[str, Callable[..., Any]] = {
    **{key: run for dims in (1, 2, 3) for key, run in _both(f"conv{dims}d", _convolution(dims)).items()},
    **{f"conv_transpose{dims}d": _layer(_convolution(dims, True)) for dims in (1, 2, 3)},
    **_both("linear", _linear),
    **_both("add", torch.add),
    **_both("mul", torch.mul),
    **_both("batch_norm2d", _batch_norm),
    **_both("batch_norm3d", _batch_norm),
    "matmul": _layer(torch.matmul),
    "layer_norm": _layer(F.layer_norm),
    "group_norm": _layer(F.group_norm),
    "instance_norm": _layer(lambda x, weight, bias, eps: F.instance_norm(x, weight=weight, bias=bias, eps=eps)),
    "hardswish": _layer(F.hardswish),
    "elu": _layer(_elu),
    "leaky_relu": _layer(lambda x, slope, inplace: F.leaky_relu(x, slope)),
    "sigmoid": _layer(torch.sigmoid),
    "softmax": _layer(torch.softmax),
    "relu6": lambda qx, inplace: on_steps(F.relu6(qx.values), qx.steps),
    "cat": lambda qx, dim, scale, zero_point: _cat(qx, dim, scale, zero_point),
    "mul_scalar": _scaled,
    "linear_dynamic": _linear_dynamic,
    "linear_relu_dynamic": lambda **given: F.relu(_linear_dynamic(**given)),
}

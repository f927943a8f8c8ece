"""Modules of registered converters that say themselves which operator of ONNX they are, as those for onnx2torch do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch.autograd import Function


class OnnxToTorchModule:
    """Marks a module that stands for an operator of ONNX."""


class OnnxToTorchModuleWithCustomExport(OnnxToTorchModule):
    """Marks a module that is exported as an operator of its own choice: its forward calls DefaultExportToOnnx."""

    def _onnx_attrs(self, opset_version: int) -> dict[str, Any]:
        """The attributes of the operator, each with the letter of its type: `axis_i`, `mode_s`."""
        raise NotImplementedError


class CustomExportToOnnx(Function):
    """Runs a function as one call, which the static method `symbolic` of a subclass writes."""

    @classmethod
    def export(cls, forward_function: Callable[[], Any], *args: Any) -> Any:
        """What the function gives; in an export, the node that `symbolic` makes of these arguments."""
        return cls.apply(_Forward(forward_function), *args)  # type: ignore[no-untyped-call]

    @staticmethod
    def forward(ctx: Any, forward_function: Callable[[], Any], *args: Any) -> Any:
        return forward_function()


class DefaultExportToOnnx(CustomExportToOnnx):
    """Writes `export(forward, "ScatterND", *tensors, {"reduction_s": "none"})` as that operator."""

    @staticmethod
    def symbolic(g: Any, forward_function: _Forward, *args: Any) -> Any:
        operation, *inputs = args
        attributes = inputs.pop() if inputs and isinstance(inputs[-1], Mapping) else {}
        return g.op(operation, *inputs, **attributes, outputs=forward_function.outputs)


class _Forward:
    """The function, and how many values it gave."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self.outputs = 1

    def __call__(self) -> Any:
        result = self._function()
        self.outputs = len(result) if isinstance(result, list | tuple) else 1
        return result

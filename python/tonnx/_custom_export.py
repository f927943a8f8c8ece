"""Modules of registered converters that define their own export to ONNX, as modules for onnx2torch do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch.autograd import Function


class OnnxToTorchModule:
    """Marks a module that implements an operator of ONNX."""


class OnnxToTorchModuleWithCustomExport(OnnxToTorchModule):
    """Marks a module that chooses the operator that it is exported as: its forward calls DefaultExportToOnnx."""

    def _onnx_attrs(self, opset_version: int) -> dict[str, Any]:
        """The attributes of the operator, with the letters of their types: `axis_i`, `mode_s`."""
        raise NotImplementedError


class CustomExportToOnnx(Function):
    """Runs a function as one call, which is exported by the static method `symbolic` of a subclass."""

    @classmethod
    def export(cls, forward_function: Callable[[], Any], *args: Any) -> Any:
        """The result of the function; in an export, the node that `symbolic` returns for these arguments."""
        return cls.apply(_Forward(forward_function), *args)  # type: ignore[no-untyped-call]

    @staticmethod
    def forward(ctx: Any, forward_function: Callable[[], Any], *args: Any) -> Any:
        return forward_function()


class DefaultExportToOnnx(CustomExportToOnnx):
    """Exports `export(forward, "ScatterND", *tensors, {"reduction_s": "none"})` as that operator."""

    @staticmethod
    def symbolic(g: Any, forward_function: _Forward, *args: Any) -> Any:
        operation, *inputs = args
        attributes = inputs.pop() if inputs and isinstance(inputs[-1], Mapping) else {}
        return g.op(operation, *inputs, **attributes, outputs=forward_function.outputs)


class _Forward:
    """The function, and the number of values that it returned."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self.outputs = 1

    def __call__(self) -> Any:
        result = self._function()
        self.outputs = len(result) if isinstance(result, list | tuple) else 1
        return result

"""tonnx carries neural networks between ONNX and PyTorch."""

from typing import TYPE_CHECKING, Any

from tonnx._convert import Unsupported, check, convert
from tonnx._core import __version__
from tonnx._error import Error
from tonnx._registry import (
    OnnxGraph,
    OnnxMapping,
    OnnxNode,
    OnnxTensor,
    OperationConverterResult,
    add_converter,
    onnx_mapping_from_node,
)
from tonnx._simplify import SimplifyReport, infer, simplify

if TYPE_CHECKING:
    from tonnx._batch import BatchReport, BatchResult, run
    from tonnx._export import export, export_to_pretty_string
    from tonnx._export.onnx_program import OnnxProgram
    from tonnx._export.symbolic import register_custom_op_symbolic, unregister_custom_op_symbolic
    from tonnx._save import save
    from tonnx._verify import Coverage, LayerComparison, OutputComparison, VerifyReport, verify

__all__ = [
    "BatchReport",
    "BatchResult",
    "Coverage",
    "Error",
    "LayerComparison",
    "OnnxGraph",
    "OnnxMapping",
    "OnnxNode",
    "OnnxProgram",
    "OnnxTensor",
    "OperationConverterResult",
    "OutputComparison",
    "SimplifyReport",
    "Unsupported",
    "VerifyReport",
    "__version__",
    "add_converter",
    "check",
    "convert",
    "export",
    "export_to_pretty_string",
    "infer",
    "onnx_mapping_from_node",
    "register_custom_op_symbolic",
    "run",
    "save",
    "simplify",
    "unregister_custom_op_symbolic",
    "verify",
]

_LATER = {
    "BatchReport": "tonnx._batch",
    "BatchResult": "tonnx._batch",
    "Coverage": "tonnx._verify",
    "LayerComparison": "tonnx._verify",
    "OnnxProgram": "tonnx._export.onnx_program",
    "OutputComparison": "tonnx._verify",
    "VerifyReport": "tonnx._verify",
    "export": "tonnx._export",
    "export_to_pretty_string": "tonnx._export",
    "register_custom_op_symbolic": "tonnx._export.symbolic",
    "run": "tonnx._batch",
    "save": "tonnx._save",
    "unregister_custom_op_symbolic": "tonnx._export.symbolic",
    "verify": "tonnx._verify",
}


def __getattr__(name: str) -> Any:
    """What not everybody needs, and what needs PyTorch, is imported when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module 'tonnx' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value

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
    from tonnx._custom_export import (
        CustomExportToOnnx,
        DefaultExportToOnnx,
        OnnxToTorchModule,
        OnnxToTorchModuleWithCustomExport,
    )
    from tonnx._export import export, export_to_pretty_string, select_model_mode_for_export
    from tonnx._export.interface.exporting import get_onnx_version, is_in_onnx_export
    from tonnx._export.interface.onnx_program import OnnxProgram
    from tonnx._export.symbolic.registry import register_custom_op_symbolic, unregister_custom_op_symbolic
    from tonnx._save import save
    from tonnx._verify import Coverage, LayerComparison, OutputComparison, VerifyReport, verify

__all__ = [
    "BatchReport",
    "BatchResult",
    "Coverage",
    "CustomExportToOnnx",
    "DefaultExportToOnnx",
    "Error",
    "LayerComparison",
    "OnnxGraph",
    "OnnxMapping",
    "OnnxNode",
    "OnnxProgram",
    "OnnxTensor",
    "OnnxToTorchModule",
    "OnnxToTorchModuleWithCustomExport",
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
    "get_onnx_version",
    "infer",
    "is_in_onnx_export",
    "onnx_mapping_from_node",
    "register_custom_op_symbolic",
    "run",
    "save",
    "select_model_mode_for_export",
    "simplify",
    "unregister_custom_op_symbolic",
    "verify",
]

_LATER = {
    "BatchReport": "tonnx._batch",
    "BatchResult": "tonnx._batch",
    "Coverage": "tonnx._verify",
    "CustomExportToOnnx": "tonnx._custom_export",
    "DefaultExportToOnnx": "tonnx._custom_export",
    "LayerComparison": "tonnx._verify",
    "OnnxProgram": "tonnx._export.interface.onnx_program",
    "OnnxToTorchModule": "tonnx._custom_export",
    "OnnxToTorchModuleWithCustomExport": "tonnx._custom_export",
    "OutputComparison": "tonnx._verify",
    "VerifyReport": "tonnx._verify",
    "export": "tonnx._export",
    "export_to_pretty_string": "tonnx._export",
    "get_onnx_version": "tonnx._export.interface.exporting",
    "is_in_onnx_export": "tonnx._export.interface.exporting",
    "register_custom_op_symbolic": "tonnx._export.symbolic.registry",
    "run": "tonnx._batch",
    "save": "tonnx._save",
    "select_model_mode_for_export": "tonnx._export",
    "unregister_custom_op_symbolic": "tonnx._export.symbolic.registry",
    "verify": "tonnx._verify",
}


# what other converters call what is called otherwise here
_INSTEAD = {
    "ConvertModel": "tonnx.convert(onnx_model), which gives the module; tonnx.check(onnx_model) lists what it cannot",
    "safe_shape_inference": "tonnx.infer(onnx_model)",
    "dynamo_export": "tonnx.export(model, args, path)",
}


def __getattr__(name: str) -> Any:
    """What not everybody needs, and what needs PyTorch, is imported when it is first asked for."""
    if name not in _LATER:
        instead = f": write {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise AttributeError(f"module 'tonnx' has no attribute '{name}'{instead}")
    import importlib

    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What completion offers: all that is public, imported already or not."""
    return sorted(__all__)

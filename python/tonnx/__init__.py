"""tonnx converts neural networks between ONNX and PyTorch."""

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
    "tonnx._batch": ("BatchReport", "BatchResult", "run"),
    "tonnx._custom_export": (
        "CustomExportToOnnx",
        "DefaultExportToOnnx",
        "OnnxToTorchModule",
        "OnnxToTorchModuleWithCustomExport",
    ),
    "tonnx._export": ("export", "export_to_pretty_string", "select_model_mode_for_export"),
    "tonnx._export.interface.exporting": ("get_onnx_version", "is_in_onnx_export"),
    "tonnx._export.interface.onnx_program": ("OnnxProgram",),
    "tonnx._export.symbolic.registry": ("register_custom_op_symbolic", "unregister_custom_op_symbolic"),
    "tonnx._save": ("save",),
    "tonnx._verify": ("Coverage", "LayerComparison", "OutputComparison", "VerifyReport", "verify"),
}
_MODULES = {name: module for module, names in _LATER.items() for name in names}


# names of other converters, and what to call instead
_INSTEAD = {
    "ConvertModel": "tonnx.convert(onnx_model), which gives the module; tonnx.check(onnx_model) lists what it cannot",
    "safe_shape_inference": "tonnx.infer(onnx_model)",
    "dynamo_export": "tonnx.export(model, args, path)",
}


def __getattr__(name: str) -> Any:
    """Imports the parts that need PyTorch, or that few programs use, when they are first used."""
    if name not in _MODULES:
        instead = f": write {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise AttributeError(f"module 'tonnx' has no attribute '{name}'{instead}")
    import importlib

    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, also those that are not imported yet."""
    return sorted(__all__)

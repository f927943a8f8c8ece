"""tonnx carries neural networks between ONNX and PyTorch."""

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

__all__ = [
    "Error",
    "OnnxGraph",
    "OnnxMapping",
    "OnnxNode",
    "OnnxTensor",
    "OperationConverterResult",
    "Unsupported",
    "__version__",
    "add_converter",
    "check",
    "convert",
    "onnx_mapping_from_node",
]

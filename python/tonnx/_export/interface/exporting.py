"""What the code of a model can ask: whether it is being exported, and to which opset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tonnx import _core
from tonnx._replaced import replaced

_opsets: list[int] = []  # of the exports that are running, the innermost last


def is_in_onnx_export() -> bool:
    """Whether a model is being exported."""
    return torch.onnx.is_in_onnx_export()


def get_onnx_version() -> int:
    """The opset of the export that is running; outside an export, the default opset."""
    return _opsets[-1] if _opsets else _core.default_opset


@contextmanager
def exporting(opset: int) -> Iterator[None]:
    """Inside, torch.onnx.is_in_onnx_export() is true and get_onnx_version() is this opset."""
    try:
        from torch.onnx._internal.exporter import _flags as flags

        name = "_is_onnx_exporting"
        getattr(flags, name)
    except (ImportError, AttributeError):  # before torch 2.7
        from torch.onnx._globals import GLOBALS as flags  # type: ignore

        name = "in_onnx_export"
    _opsets.append(opset)
    try:
        with replaced(flags, name, True):
            yield
    finally:
        _opsets.pop()

"""What code of a model may ask while it is exported: whether it is, and to which opset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tonnx import _core
from tonnx._replaced import replaced

_opsets: list[int] = []  # of the exports that are under way, the innermost last


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: for code that does something else then."""
    return torch.onnx.is_in_onnx_export()


def get_onnx_version() -> int:
    """The opset that is being written; outside of an export the one that is written where nobody asks for another."""
    return _opsets[-1] if _opsets else _core.default_opset


@contextmanager
def exporting(opset: int) -> Iterator[None]:
    """torch.onnx.is_in_onnx_export() is true inside, and the opset is known."""
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

"""What one call of tonnx.export asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tonnx import _core
from tonnx._export.interface.onnx_program import Leaves, WriteOptions
from tonnx._export.sizes.dynamic import DynamicShapes


@dataclass(frozen=True)
class Request:
    """The example, the sizes in it that stay open, names, and how the program is written."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shapes: DynamicShapes
    input_names: Sequence[str] | None
    output_names: Sequence[str] | None
    options: WriteOptions
    leaves: Leaves

    @property
    def opset(self) -> int:
        return self.options.opset or _core.default_opset

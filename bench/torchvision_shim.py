"""Lets torchvision's Python code load where its compiled operators cannot: beside a PyTorch build without CUDA.

Two of the other converters import torchvision only for operators such as roi_align, which no model here uses; so each
compiled operator is declared, and has no implementation.
"""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import torch

_library = torch.library.Library("torchvision", "DEF")


def _operator_names() -> set[str]:
    """Every name that torchvision's sources look up in torch.ops.torchvision, or register something for."""
    spec = find_spec("torchvision")
    assert spec is not None and spec.origin is not None
    names = {"nms"}
    for path in Path(spec.origin).parent.rglob("*.py"):
        text = path.read_text(errors="replace")
        names.update(re.findall(r"ops\.torchvision\.(\w+)", text))
        names.update(re.findall(r"[\"']torchvision::(\w+)[\"']", text))
        names.update(re.findall(r"@register_meta\([\"'](\w+)[\"']", text))
    return names


for _name in sorted(_operator_names()):
    _library.define(f"{_name}(Tensor[] inputs) -> Tensor")


for _module in list(sys.modules.values()):
    if getattr(_module, "__name__", "").startswith("torchvision") and hasattr(_module, "_assert_has_ops"):
        _module._assert_has_ops = lambda: None

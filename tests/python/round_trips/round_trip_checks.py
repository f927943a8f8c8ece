"""ONNX through a .pt2 file and back: what comes back computes what the first model computes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
from models import runtime_run

import tonnx


def there_and_back(model: onnx.ModelProto) -> onnx.ModelProto:
    tonnx.convert(model, "there.pt2")
    tonnx.convert("there.pt2", "back.onnx")
    back = onnx.load("back.onnx")
    onnx.checker.check_model(back, full_check=True)
    return back


def check(model: onnx.ModelProto, *runs: dict[str, np.ndarray], atol: float = 1e-5) -> onnx.ModelProto:
    """The model that comes back, once its values are those of the first for all these inputs."""
    back = there_and_back(model)
    assert runs
    for feeds in runs:
        for a, b in zip(runtime_run(back, feeds), runtime_run(model, feeds), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=atol)
    return back


def ops(graph: onnx.GraphProto) -> Counter[str]:
    """How often each operator is there, those of graphs inside nodes included."""
    found = Counter(node.op_type for node in graph.node if node.op_type != "Constant")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += ops(attribute.g)
    return found

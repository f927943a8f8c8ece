"""Converters as they are written for onnx2torch: the modules export themselves as the operators that they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import tonnx
from examples import example
from tonnx import (
    DefaultExportToOnnx,
    OnnxGraph,
    OnnxNode,
    OnnxToTorchModuleWithCustomExport,
    OperationConverterResult,
    _registry,
    add_converter,
    get_onnx_version,
    onnx_mapping_from_node,
)


class Reduction(Enum):
    NONE = "none"
    ADD = "add"


class Scatter(nn.Module, OnnxToTorchModuleWithCustomExport):
    def __init__(self, reduction: Reduction) -> None:
        super().__init__()
        self._reduction = reduction

    def _onnx_attrs(self, opset_version: int) -> dict[str, Any]:
        if opset_version >= 16:
            return {"reduction_s": self._reduction.value}
        if self._reduction is not Reduction.NONE:
            raise ValueError(f"opset {opset_version} has no reduction")
        return {}

    def forward(self, data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        def _forward() -> torch.Tensor:
            return data.index_put(tuple(indices.unbind(-1)), updates, accumulate=self._reduction is Reduction.ADD)

        if torch.onnx.is_in_onnx_export():
            attributes = self._onnx_attrs(opset_version=get_onnx_version())
            return DefaultExportToOnnx.export(_forward, "ScatterND", data, indices, updates, attributes)
        return _forward()


class Split(nn.Module, OnnxToTorchModuleWithCustomExport):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if torch.onnx.is_in_onnx_export():
            return DefaultExportToOnnx.export(lambda: x.chunk(2, 1), "my.domain::Halves", x, {"axis_i": 1})
        return x.chunk(2, 1)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_registry, "_converters", {})

    @add_converter(operation_type="ScatterND", version=11)
    @add_converter(operation_type="ScatterND", version=13)
    @add_converter(operation_type="ScatterND", version=16)
    def _(node: OnnxNode, graph: OnnxGraph) -> OperationConverterResult:
        reduction = Reduction(node.attributes.get("reduction", "none"))
        return OperationConverterResult(torch_module=Scatter(reduction), onnx_mapping=onnx_mapping_from_node(node=node))

    yield


def model_of(reduction: str) -> onnx.ModelProto:
    kinds = {"d": (TensorProto.FLOAT, [5, 2]), "i": (TensorProto.INT64, [2, 1]), "u": (TensorProto.FLOAT, [2, 2])}
    graph = helper.make_graph(
        [
            helper.make_node("ScatterND", ["d", "i", "u"], ["y"], reduction=reduction),
            helper.make_node("Relu", ["y"], ["z"]),
        ],
        "g",
        [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [5, 2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)


def arguments() -> tuple[torch.Tensor, ...]:
    return torch.rand(5, 2), torch.tensor([[1], [3]]), torch.rand(2, 2)


@example("onnx2torch: OnnxToTorchModuleWithCustomExport for ScatterND")
@pytest.mark.parametrize(("reduction", "opset"), [("add", 18), ("none", 13), ("none", 20)])
def test_there_and_back_through_the_operator_that_the_module_names(reduction: str, opset: int) -> None:
    source, args = model_of(reduction), arguments()
    module = tonnx.convert(source)
    session = ort.InferenceSession(source.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, dict(zip("diu", (a.numpy() for a in args), strict=True)))
    assert torch.equal(module(*args), torch.tensor(expected))
    program = tonnx.export(module, args, opset_version=opset)
    nodes = program.model_proto.graph.node
    assert [n.op_type for n in nodes] == ["ScatterND", "Relu"]
    assert [a.s.decode() for a in nodes[0].attribute] == ([reduction] if opset >= 16 else [])
    assert torch.equal(program(*args)[0], torch.tensor(expected))


def test_the_code_makes_it_anew_with_its_enumeration(tmp_path: Path) -> None:
    tonnx.convert(model_of("add"), tmp_path / "m.py")
    code = (tmp_path / "m.py").read_text()
    assert 'self.custom = Scatter(reduction=Reduction("add"))' in code
    assert "import Scatter\n" in code and "import Reduction\n" in code


def test_several_results_and_a_domain_of_ones_own() -> None:
    program = tonnx.export(Split(), torch.rand(2, 4)).model_proto
    (node,) = program.graph.node
    assert (node.domain, node.op_type, len(node.output), node.attribute[0].i) == ("my.domain", "Halves", 2, 1)


def test_outside_of_an_export_the_version_is_the_usual_one() -> None:
    assert get_onnx_version() == tonnx.export(nn.ReLU(), torch.rand(2)).model_proto.opset_import[0].version

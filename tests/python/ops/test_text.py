"""Operators that PyTorch has no tensors for are named before any work is done, with the reason."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

import tonnx


@pytest.mark.parametrize(
    "domain, op, inputs, reason",
    [
        ("", "StringConcat", 2, "no tensors of strings"),
        ("", "StringSplit", 1, "no tensors of strings"),
        ("", "StringNormalizer", 1, "no tensors of strings"),
        ("", "RegexFullMatch", 1, "no tensors of strings"),
        ("", "ImageDecoder", 1, "decodes no images"),
        ("ai.onnx.ml", "CategoryMapper", 1, "no tensors of strings"),
        ("ai.onnx.ml", "DictVectorizer", 1, "no maps"),
    ],
)
def test_reasons(domain: str, op: str, inputs: int, reason: str) -> None:
    names = [f"x{i}" for i in range(inputs)]
    declared = [helper.make_tensor_value_info(name, onnx.TensorProto.STRING, [2]) for name in names]
    nodes = [helper.make_node(op, names, [f"y{i}"], name=f"node{i}", domain=domain) for i in range(2)]
    outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(2)]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(helper.make_graph(nodes, "text", declared, outputs), opset_imports=opsets)
    with pytest.raises(tonnx.Error, match=f"{op}-.*: 2 nodes, 'node0' and others: .*{reason}"):
        tonnx.convert(model)


def test_inputs_of_strings() -> None:
    declared = [helper.make_tensor_value_info(name, onnx.TensorProto.STRING, [2]) for name in ("a", "b")]
    node = helper.make_node("Equal", ["a", "b"], ["y"])
    graph = helper.make_graph([node], "text", declared, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    with pytest.raises(tonnx.Error, match="input: 2 inputs, 'a', 'b': PyTorch has no tensors of strings"):
        tonnx.convert(model)

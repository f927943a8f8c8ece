"""Names as converters of other frameworks give them: layers are called as their authors called them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import tonnx

NET = "StatefulPartitionedCall/net"
KERAS = {  # nodes of two layers with their weights and biases, and the keys that these have
    "tf2onnx": (
        [f"{NET}/dense/MatMul", f"{NET}/dense_1/Tensordot/MatMul__31"],
        [f"{NET}/dense/MatMul/ReadVariableOp:0", "const_fold_opt__12"],
        [f"{NET}/dense/BiasAdd/ReadVariableOp:0", f"{NET}/dense_1/BiasAdd/ReadVariableOp:0"],
        ["dense.weight", "dense.bias", "dense_1.weight", "dense_1.bias"],
    ),
    "tflite": (
        ["net/dense/MatMul;net/dense/Relu;net/dense/BiasAdd__28", "net/dense_1/MatMul;net/dense_1/BiasAdd"],
        ["const_fold_opt__4", "const_fold_opt__5"],
        ["const_fold_opt__6", "const_fold_opt__7"],
        ["dense.weight", "dense.bias", "dense_1.weight", "dense_1.bias"],
    ),
    "functions": (
        [f"{NET}/dense/MatMul", f"{NET}/dense_1/MatMul"],
        ["Func/StatefulPartitionedCall/net/dense/PartitionedCall/input/_3:0", "Func/net/dense_1/input/_4:0"],
        ["Add__3", "Add__4"],
        ["dense.weight", "dense.bias", "dense_1.weight", "dense_1.bias"],
    ),
    "inlined": (
        ["If_0_then_branch__Inline_0__/enc/0/MatMul", "If_0_then_branch__Inline_0__/enc/1/MatMul"],
        ["If_0_then_branch__Inline_0__enc.0.weight", "If_0_then_branch__Inline_0__enc.1.weight"],
        ["If_0_then_branch__Inline_0__enc.0.bias", "If_0_then_branch__Inline_0__enc.1.bias"],
        ["enc.0.weight", "enc.0.bias", "enc.1.weight", "enc.1.bias"],
    ),
    "both_branches": (
        ["F0::If_0_then_branch__Inline_0__/enc/MatMul", "F1::If_0_else_branch__Inline_0__/enc/MatMul"],
        ["F0::If_0_then_branch__Inline_0__enc.weight", "F1::If_0_else_branch__Inline_0__enc.weight"],
        ["F0::If_0_then_branch__Inline_0__enc.bias", "F1::If_0_else_branch__Inline_0__enc.bias"],
        ["then_branch.enc.weight", "then_branch.enc.bias", "else_branch.enc.weight", "else_branch.enc.bias"],
    ),
}


@pytest.mark.parametrize("kind", KERAS)
def test_layers_are_called_as_their_author_called_them(kind: str) -> None:
    names, matrices, biases, keys = KERAS[kind]
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for i, (name, matrix, bias) in enumerate(zip(names, matrices, biases, strict=True)):
        weights.append(numpy_helper.from_array(random.random((4, 4), np.float32), matrix))
        weights.append(numpy_helper.from_array(random.random(4, np.float32), bias))
        nodes.append(helper.make_node("Gemm", [last, matrix, bias], [f"y{i}"], name=name))
        nodes.append(helper.make_node("Tanh", [f"y{i}"], [f"z{i}"], name=f"Tanh__{i}"))
        last = f"z{i}"
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 4]) for n in ("x", last)]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    x = random.random((2, 4), np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    onnx.save(model, "m.onnx")
    module = tonnx.convert("m.onnx")
    np.testing.assert_allclose(module(torch.from_numpy(x)).detach(), want, rtol=1e-5, atol=1e-6)
    assert sorted(module.state_dict()) == sorted(keys)

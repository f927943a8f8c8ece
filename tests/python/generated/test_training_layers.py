"""What only training sees: dropout and the momentum of batch norms are kept on the way, and change nothing in eval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import floats, make_model, random_tensor, runtime_run
from onnx import helper, numpy_helper
from torch import nn

import tonnx


def dropout(opset: int, inputs: str, output: str, ratio: float = 0.4, *more: str) -> onnx.NodeProto:
    """In the form of that opset; its ratio is an input called r from opset 12 on."""
    if opset >= 12:
        return helper.make_node("Dropout", [inputs, "r", *more], [output], name=f"/{output}/Dropout")
    options: dict[str, Any] = {"consumed_inputs": [0]} if opset < 6 else {}
    return helper.make_node("Dropout", [inputs], [output], name=f"/{output}/Dropout", ratio=ratio, **options)


def classifier(opset: int, *training: str) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    nodes = [
        dropout(opset, "x", "d", 0.4, *training),
        helper.make_node("Gemm", ["d", "fc1.weight", "fc1.bias"], ["h"], name="/fc1/Gemm", transB=1),
        helper.make_node("Relu", ["h"], ["a"], name="/act/Relu"),
        dropout(opset, "a", "e", 0.4, *training),
        helper.make_node("Gemm", ["e", "fc2.weight", "fc2.bias"], ["y"], name="/fc2/Gemm", transB=1),
    ]
    weights = [
        random_tensor(rng, "fc1.weight", 8, 6),
        random_tensor(rng, "fc1.bias", 8),
        random_tensor(rng, "fc2.weight", 3, 8),
        random_tensor(rng, "fc2.bias", 3),
    ]
    if opset >= 12:
        weights.append(numpy_helper.from_array(np.array(0.4, np.float32), "r"))
    weights += [numpy_helper.from_array(np.array(name == "on"), name) for name in training]
    return make_model(nodes, [floats("x", 2, 6)], [floats("y", 2, 3)], weights, opset=opset)


def dropouts(module: nn.Module) -> list[float]:
    return [each.p for each in module.modules() if isinstance(each, nn.Dropout)]


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 17, 22])
def test_dropout_of_every_opset_is_a_module(opset: int) -> None:
    model = classifier(opset, *(["off"] if opset == 13 else []))
    module = tonnx.convert(model)
    assert dropouts(module) == pytest.approx([0.4, 0.4])
    x = torch.rand(2, 6)
    wanted = runtime_run(model, {"x": x.numpy()})[0]
    np.testing.assert_allclose(module(x).detach(), wanted, rtol=1e-5, atol=1e-6)
    module.train()
    torch.manual_seed(0)
    results = torch.stack([module(x).detach() for _ in range(20)])
    assert results.std(0).min() > 0
    for each in module.modules():
        if isinstance(each, nn.Dropout):
            each.p = 0.0
    np.testing.assert_allclose(module(x).detach(), wanted, rtol=1e-5, atol=1e-6)


def test_dropout_that_a_file_has_in_training_mode_drops_in_any_mode() -> None:
    """As the standard says: training_mode is the node's own."""
    module = tonnx.convert(classifier(17, "on"))
    assert dropouts(module) == []
    x = torch.rand(2, 6)
    assert torch.stack([module(x).detach() for _ in range(20)]).std(0).min() > 0


def test_dropout_of_nothing_goes_away() -> None:
    model = classifier(9)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "ratio":
                attribute.f = 0
    assert dropouts(tonnx.convert(model)) == []


def test_dropout_in_files(tmp_path: Path) -> None:
    model = classifier(9)
    onnx.save(model, tmp_path / "m.onnx")
    x = torch.rand(2, 6)
    wanted = torch.from_numpy(runtime_run(model, {"x": x.numpy()})[0])
    for name in ("m.py", "m.pt2", "m.pt"):
        tonnx.convert(tmp_path / "m.onnx", tmp_path / name)
    assert (tmp_path / "m.py").read_text().count("nn.Dropout(0.4)") == 2
    program = torch.export.load(tmp_path / "m.pt2")
    assert str(program.graph).count("dropout") >= 2
    torch.testing.assert_close(program.module()(x), wanted)
    script = torch.jit.load(tmp_path / "m.pt")  # type: ignore[no-untyped-call]
    torch.testing.assert_close(script(x), wanted)
    assert dropouts(tonnx.convert(tmp_path / "m.pt2")) == pytest.approx([0.4, 0.4])
    tonnx.simplify(tmp_path / "m.onnx", tmp_path / "simple.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "simple.onnx").graph.node] == ["Gemm", "Relu", "Gemm"]


def attention(opset: int) -> onnx.ModelProto:
    """Dropout of the probabilities, as BERT has it."""
    rng = np.random.default_rng(0)
    nodes = []
    for name in ("query", "key", "value"):
        nodes += [
            helper.make_node("MatMul", ["x", f"{name}.weight"], [f"{name}_m"], name=f"/self/{name}/MatMul"),
            helper.make_node("Add", [f"{name}_m", f"{name}.bias"], [f"{name}_a"], name=f"/self/{name}/Add"),
            helper.make_node("Reshape", [f"{name}_a", "heads"], [f"{name}_r"], name=f"/self/{name}_Reshape"),
        ]
        perm = [0, 2, 3, 1] if name == "key" else [0, 2, 1, 3]
        nodes.append(helper.make_node("Transpose", [f"{name}_r"], [name], name=f"/self/{name}_Transpose", perm=perm))
    nodes += [
        helper.make_node("MatMul", ["query", "key"], ["qk"], name="/self/MatMul"),
        helper.make_node("Div", ["qk", "root"], ["scores"], name="/self/Div"),
        helper.make_node("Softmax", ["scores"], ["probs"], name="/self/Softmax", axis=3),
        dropout(opset, "probs", "dropped", 0.1),
        helper.make_node("MatMul", ["dropped", "value"], ["context"], name="/self/MatMul_1"),
        helper.make_node("Transpose", ["context"], ["c"], name="/self/Transpose_3", perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["c", "whole"], ["y"], name="/self/Reshape_3"),
    ]
    weights = [
        tensor
        for name in ("query", "key", "value")
        for tensor in (random_tensor(rng, f"{name}.weight", 8, 8), random_tensor(rng, f"{name}.bias", 8))
    ]
    weights += [
        numpy_helper.from_array(np.array([0, 0, 2, 4]), "heads"),
        numpy_helper.from_array(np.array([0, 0, 8]), "whole"),
        numpy_helper.from_array(np.array(2, np.float32), "root"),
    ]
    return make_model(nodes, [floats("x", 2, 5, 8)], [floats("y", 2, 5, 8)], weights, opset=opset)


def test_dropout_of_attention_is_kept() -> None:
    model = attention(11)
    module = tonnx.convert(model)
    assert dropouts(module) == pytest.approx([0.1])
    x = torch.rand(2, 5, 8)
    wanted = runtime_run(model, {"x": x.numpy()})[0]
    np.testing.assert_allclose(module(x).detach(), wanted, rtol=1e-4, atol=1e-5)
    module.train()
    assert torch.stack([module(x).detach() for _ in range(20)]).std(0).max() > 0


def test_momentum_and_epsilon_of_batch_norms_are_kept(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, eps=0.01, momentum=0.25), nn.ReLU())
    options: dict[str, Any] = {"do_constant_folding": False}
    tonnx.export(net.eval(), (torch.rand(2, 3, 8, 8),), tmp_path / "m.onnx", **options)
    [norm] = [node for node in onnx.load(tmp_path / "m.onnx").graph.node if node.op_type == "BatchNormalization"]
    assert {a.name: pytest.approx(a.f) for a in norm.attribute} == {"epsilon": 0.01, "momentum": 0.75}
    module = tonnx.convert(tmp_path / "m.onnx")
    [made] = [each for each in module.modules() if isinstance(each, nn.BatchNorm2d)]
    assert (made.eps, made.momentum) == (0.01, 0.25)
    x = torch.rand(4, 3, 8, 8)
    torch.testing.assert_close(module.train()(x), net.train()(x))
    torch.testing.assert_close(made.running_mean, net[1].running_mean)
    torch.testing.assert_close(made.running_var, net[1].running_var)


def test_a_mask_is_no_weight() -> None:
    """Minus infinity hides an element from a softmax: no training gives it, and none may change it."""
    mask = np.triu(np.full((4, 4), -np.inf, np.float32), 1)
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["s"], name="/Mul"),
        helper.make_node("Add", ["s", "mask"], ["m"], name="/Add"),
        helper.make_node("Softmax", ["m"], ["y"], name="/Softmax", axis=-1),
    ]
    scale = np.array([0.5, 1.5, 2.5, 3.5], np.float32)
    weights = [numpy_helper.from_array(mask, "mask"), numpy_helper.from_array(scale, "scale")]
    module = tonnx.convert(make_model(nodes, [floats("x", 4, 4)], [floats("y", 4, 4)], weights))
    assert [name for name, _ in module.named_parameters()] == ["scale"]
    assert [name for name, _ in module.named_buffers()] == ["mask"]

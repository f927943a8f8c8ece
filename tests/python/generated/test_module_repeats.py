"""Files whose names say nothing: parts of the graph that repeat are classes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from allowed_code import check_python
from generated_code import load
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import tonnx


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2, self.conv3 = (nn.Conv2d(width, width, k, padding=k // 2) for k in (1, 3, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv3(torch.relu(self.conv2(torch.relu(self.conv1(x)))))
        return torch.relu(x + y)


class Gated(nn.Module):
    """A block with a block inside it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2, self.conv3 = (nn.Conv2d(width, width, k, padding=k // 2) for k in (3, 3, 1))
        self.squeeze, self.excite = nn.Conv2d(width, 2, 1), nn.Conv2d(2, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv2(torch.relu(self.conv1(x)))
        gate = torch.relu(self.squeeze(y.mean((2, 3), keepdim=True)))
        return x + self.conv3(y * torch.sigmoid(self.excite(gate)))


class Network(nn.Module):
    def __init__(self, block: type[nn.Module]) -> None:
        super().__init__()
        self.stem, self.down, self.head = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 10, 3, 2), nn.Linear(10, 4)
        self.first = nn.Sequential(*(block(6) for _ in range(3)))
        self.second = nn.Sequential(*(block(10) for _ in range(4)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.down(self.first(torch.relu(self.stem(x)))))
        return self.head(x.mean((2, 3)))


def without_names(path: str, keep: tuple[str, ...] = ()) -> onnx.ModelProto:
    """The same model with numbers for names."""
    model = onnx.load(path)
    graph = model.graph
    names = {t.name: str(i + 100) for i, t in enumerate(graph.initializer) if not t.name.startswith(keep or "-")}
    for node in graph.node:
        node.name = ""
        del node.metadata_props[:]
        for output in node.output:
            names.setdefault(output, str(len(names) + 500))
    for output in graph.output:
        names[output.name] = output.name
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    del graph.value_info[:]
    del model.metadata_props[:]
    del graph.metadata_props[:]
    return model


IMAGES = torch.rand(2, 3, 20, 20)


def converted_without_names(block: type[nn.Module], keep: tuple[str, ...] = ()) -> str:
    torch.manual_seed(0)
    tonnx.export(Network(block).eval(), (IMAGES,), "named.onnx")
    onnx.save(without_names("named.onnx", keep), "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    code = Path("m.py").read_text()
    check_python(code)
    module = load(Path("m.py"))
    want = onnxruntime.InferenceSession("m.onnx").run(None, {"x": IMAGES.numpy()})[0]
    np.testing.assert_allclose(module(IMAGES).detach(), want, rtol=1e-4, atol=1e-5)
    assert tonnx.convert("m.onnx").state_dict().keys() == module.state_dict().keys()
    tonnx.convert("m.onnx", "m.pt2")
    assert torch.export.load("m.pt2").state_dict.keys() == module.state_dict().keys()
    return code


def classes_of(code: str) -> list[str]:
    return re.findall(r"^class (\w+)", code, re.MULTILINE)


def test_blocks_that_repeat_are_a_class() -> None:
    code = converted_without_names(Residual)
    assert classes_of(code) == ["Block", "Model"]
    assert re.search(r"self\.stage1 = nn\.Sequential\(\*\(Block\(6\) for _ in range\(3\)\)\)", code)
    assert re.search(r"self\.stage2 = nn\.Sequential\(\*\(Block\(10\) for _ in range\(4\)\)\)", code)
    flat = tonnx.convert("m.onnx", flat=True)
    assert all(key.count(".") <= 1 for key in flat.state_dict())


def test_a_block_inside_another_that_is_there_once_is_no_class() -> None:
    assert classes_of(converted_without_names(Gated)) == ["Block", "Model"]


def test_layers_with_names_are_not_moved() -> None:
    code = converted_without_names(Residual, keep=("first.1.conv2.", "head."))
    assert "first.1.conv2.weight" in load(Path("m.py")).state_dict()
    assert "head.weight" in load(Path("m.py")).state_dict()
    assert "class Block" in code


@pytest.mark.parametrize("count", [1, 2])
def test_little_that_repeats_is_no_class(count: int) -> None:
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for i in range(count):
        weights += [numpy_helper.from_array(random.random((4, 4), np.float32), f"{i}{k}") for k in "ab"]
        nodes += [
            helper.make_node("MatMul", [last, f"{i}a"], [f"p{i}"]),
            helper.make_node("Relu", [f"p{i}"], [f"q{i}"]),
            helper.make_node("MatMul", [f"q{i}", f"{i}b"], [f"r{i}"]),
            helper.make_node("Add", [f"r{i}", last], [f"s{i}"]),
        ]
        last = f"s{i}"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    assert classes_of(Path("m.py").read_text()) == ["Model"]


def test_words_with_numbers_are_modules() -> None:
    """Names as MXNet and Caffe2 give them; one word that no other name begins with, and numbers alone, are none."""
    random = np.random.default_rng(0)
    names = ["net0_stage1_unit0_fc0", "net0_stage1_unit0_fc1", "net0_stage1_unit1_fc0", "net0_stage1_unit1_fc1"]
    names += ["net0_res2_0_branch2a", "net0_res2_0_branch2b", "net0_other3_fc0", "net0_conv1_1", "net0_conv1_2"]
    nodes, weights, last = [], [], "x"
    for i, name in enumerate(names):
        weights.append(numpy_helper.from_array(random.random((4, 4), np.float32), f"{name}_weight"))
        nodes.append(helper.make_node("MatMul", [last, f"{name}_weight"], [f"{name}_y"], name=f"{name}_fwd"))
        nodes.append(
            helper.make_node("Tanh", [f"{name}_y"], [f"{name}_z"], name=f"{name.rpartition('_')[0]}_tanh{i}_fwd")
        )
        last = f"{name}_z"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    module = load(Path("m.py"))
    assert {key.removesuffix(".weight") for key in module.state_dict()} == {
        *(f"stage1.unit{i}.fc{k}" for i in (0, 1) for k in (0, 1)),
        *("res2_0.branch2a", "res2_0.branch2b", "other3_fc0", "conv1_1", "conv1_2"),
    }
    x = torch.rand(2, 4)
    want = onnxruntime.InferenceSession("m.onnx").run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(module(x).detach(), want, rtol=1e-5)


def test_tables_keep_their_rows() -> None:
    """What a file looks up in a weight with constant indices is looked up by the module, which can be trained."""
    random = np.random.default_rng(0)
    tables = {
        "embed.position.weight": ([8, 3], [[0, 1, 2], [2, 3, 7]]),
        "attn.bias_table": ([5, 3], [0, 0, 4]),
        "rnn.weight_ih": ([3, 3], [2, 0, 1]),
    }
    nodes, weights, last = [], [], "x"
    for i, (name, (dims, rows)) in enumerate(tables.items()):
        weights += [
            numpy_helper.from_array(random.random(dims, np.float32), name),
            numpy_helper.from_array(np.array(rows, np.int64), f"rows{i}"),
        ]
        nodes += [
            helper.make_node("Gather", [name, f"rows{i}"], [f"g{i}"], axis=0),
            helper.make_node("Add", [last, f"g{i}"], [f"s{i}"]),
        ]
        last = f"s{i}"
    weights += [numpy_helper.from_array(random.random((1, 1, 3), np.float32), "vit.token")]
    weights += [numpy_helper.from_array(np.array([2, 3, 3], np.int64), "shape")]
    nodes += [helper.make_node("Expand", ["vit.token", "shape"], ["e"]), helper.make_node("Mul", [last, "e"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3, 3]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "m.onnx")
    module = tonnx.convert("m.onnx")
    state = module.state_dict()
    for name in ("embed.position.weight", "attn.bias_table", "vit.token"):
        want = next(numpy_helper.to_array(w) for w in weights if w.name == name)
        np.testing.assert_array_equal(state[name], want)
        assert name in dict(module.named_parameters())
    x = torch.rand(2, 3, 3)
    want = onnxruntime.InferenceSession("m.onnx").run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(module(x).detach(), want, rtol=1e-6)


def test_what_a_file_holds_once_for_many_modules_is_each_modules_own() -> None:
    random = np.random.default_rng(0)
    weights = [numpy_helper.from_array(random.random((4, 4), np.float32), "layers.0.fc.weight")]
    weights.append(numpy_helper.from_array(np.array([[3, 1], [0, 0]], np.int64), "layers.0.rows"))
    nodes, last = [], "x"
    for i in range(3):
        weights.append(numpy_helper.from_array(random.random((5, 4), np.float32), f"layers.{i}.table"))
        if i > 0:
            nodes.append(
                helper.make_node("Identity", ["layers.0.fc.weight"], [f"layers.{i}.fc.weight"], name=f"Identity_{i}")
            )
        nodes += [
            helper.make_node("MatMul", [last, f"layers.{i}.fc.weight"], [f"y{i}"], name=f"/layers.{i}/fc/MatMul"),
            helper.make_node("Gather", [f"layers.{i}.table", "layers.0.rows"], [f"g{i}"], name=f"/layers.{i}/Gather"),
            helper.make_node("Add", [f"g{i}", f"y{i}"], [f"c{i}"], name=f"/layers.{i}/Add"),
        ]
        last = f"c{i}"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2, 4]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "m.onnx")
    module = tonnx.convert("m.onnx")
    assert {f"layers.{i}.{name}" for i in range(3) for name in ("fc.weight", "rows", "table")} == set(
        module.state_dict()
    )
    x = torch.rand(2, 2, 4)
    want = onnxruntime.InferenceSession("m.onnx").run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(module(x).detach(), want, rtol=1e-5)


def test_arguments_are_in_one_order_whatever_the_file_computes_first() -> None:
    random = np.random.default_rng(0)
    weights, nodes, last = [], [], "x"
    inputs = ["x", "table", *(f"cache{i}" for i in range(4))]
    for i in range(4):
        own, path = f"layers.{i}", f"/layers.{i}"
        for name, dims in (("fc1.weight", (5, 5)), ("fc1.bias", (5,)), ("fc2.weight", (5, 5)), ("fc2.bias", (5,))):
            weights.append(numpy_helper.from_array(random.random(dims, np.float32), f"{own}.{name}"))
        of_cache = helper.make_node("Sin", [f"cache{i}"], [f"c{i}"], name=f"{path}/Sin")
        of_table = helper.make_node("Exp", ["table"], [f"t{i}"], name=f"{path}/Exp")
        nodes += [
            helper.make_node(
                "Gemm", [last, f"{own}.fc1.weight", f"{own}.fc1.bias"], [f"a{i}"], name=f"{path}/fc1/Gemm", transB=1
            ),
            *((of_cache, of_table) if i == 0 else (of_table, of_cache)),
            helper.make_node("Sub", [f"c{i}", f"t{i}"], [f"d{i}"], name=f"{path}/Sub"),
            helper.make_node("Mul", [f"a{i}", f"d{i}"], [f"m{i}"], name=f"{path}/Mul"),
            helper.make_node(
                "Gemm", [f"m{i}", f"{own}.fc2.weight", f"{own}.fc2.bias"], [f"y{i}"], name=f"{path}/fc2/Gemm", transB=1
            ),
        ]
        last = f"y{i}"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 5]) for name in (*inputs, last)]
    graph = helper.make_graph(nodes, "g", values[:-1], values[-1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    assert classes_of(Path("m.py").read_text()) == ["Layers", "Model"]
    given = {name: random.random((3, 5), np.float32) for name in inputs}
    want = onnxruntime.InferenceSession("m.onnx").run(None, given)[0]
    got = tonnx.convert("m.onnx")(*map(torch.from_numpy, given.values()))
    np.testing.assert_allclose(got.detach(), want, rtol=1e-4)

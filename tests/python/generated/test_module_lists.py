"""Loops over layers that take and give values of their own: caches, skips, outputs of every layer."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from generated_code import load
from onnx import TensorProto, helper, numpy_helper
from test_module_classes import check_format, classes_of
from torch import Tensor, nn

import tonnx

LAYERS, WIDTH = 5, 8


class CachedLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.norm(x)
        key, value = torch.cat([key, self.k(y)], 1), torch.cat([value, self.v(y)], 1)
        return x + self.out(nn.functional.scaled_dot_product_attention(self.q(y), key, value)), key, value


class Cached(nn.Module):
    """A decoder that is given the keys and values of each layer, and gives them back."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.layers = nn.ModuleList(CachedLayer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 3)
        self.dtype = dtype

    def forward(self, x: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        present = []
        for i, layer in enumerate(self.layers):
            x, key, value = layer(x, past[2 * i], past[2 * i + 1])
            present += [key.to(self.dtype), value.to(self.dtype)]
        return self.head(x), *present


class Skips(nn.Module):
    """What each layer of the first half gives goes to its partner in the second one, the last first."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(Down() for _ in range(LAYERS))
        self.up = nn.ModuleList(Up() for _ in range(LAYERS))

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for down in self.down:
            x = down(x)
            kept.append(x)
        x = torch.relu(x)
        for up, skip in zip(self.up, reversed(kept), strict=True):
            x = up(x, skip)
        return x


class Down(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(torch.tanh(self.first(x)))


class Up(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        return torch.sigmoid(self.first(x)) * self.second(skip)


class EveryLayer(nn.Module):
    """The outputs are those of all layers, and something that is made of the last."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Down() for _ in range(LAYERS))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        states = []
        for layer in self.layers:
            x = layer(x)
            states.append(x)
        return x.mean(-1), *states


def convert(model: nn.Module, inputs: tuple[Tensor, ...], **options: object) -> str:
    """The code; its outputs are those of the model, and of ONNX Runtime."""
    torch.onnx.export(model.eval(), inputs, "m.onnx", dynamo=False, **options)
    tonnx.convert("m.onnx", "m.py")
    want = model(*inputs)
    got = load(Path("m.py"))(*inputs)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    session = onnxruntime.InferenceSession("m.onnx")
    names = [each.name for each in session.get_inputs()]
    outputs = session.run(None, {name: x.numpy() for name, x in zip(names, inputs, strict=True)})
    for ours, theirs in zip(got if isinstance(got, tuple) else (got,), outputs, strict=True):
        torch.testing.assert_close(ours, torch.from_numpy(theirs), rtol=1e-4, atol=1e-5)
    check_format()
    return Path("m.py").read_text()


def cached(dtype: torch.dtype = torch.float32) -> tuple[str, Cached, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    model = Cached(dtype)
    inputs = (torch.randn(2, 3, WIDTH), *(torch.randn(2, 4, WIDTH) for _ in range(2 * LAYERS)))
    pairs = [(i, word) for i in range(LAYERS) for word in ("key", "value")]
    names = {
        "input_names": ["x", *(f"past_key_values.{i}.{word}" for i, word in pairs)],
        "output_names": ["logits", *(f"present.{i}.{word}" for i, word in pairs)],
    }
    return convert(model, inputs, **names), model, inputs


def test_caches_are_lists() -> None:
    code, model, inputs = cached()
    assert classes_of(code) == ["Layers", "Model"]
    assert "past_key_values = [" in code and "(past_key_values_0_key, past_key_values_0_value)," in code
    assert "for layer, (key, value) in zip(self.layers, past_key_values):" in code
    assert "present += [key2, value2]" in code and re.search(r"return self\.head\(\w\), \*present", code)
    module = load(Path("m.py"))
    assert module.state_dict().keys() == model.state_dict().keys()
    program = torch.export.export(module, inputs)
    torch.testing.assert_close(program.module()(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)


def test_what_is_done_with_each_result_is_done_in_the_loop() -> None:
    code, _, _ = cached(torch.float16)
    assert "present += [key2.to(torch.float16), value2.to(torch.float16)]" in code


def test_what_one_loop_kept_another_takes_in_reverse() -> None:
    torch.manual_seed(0)
    code = convert(Skips(), (torch.randn(2, WIDTH),))
    assert re.search(r"(\w+) = \[\]\n +for down in self\.down:\n +(\w) = down\(\2\)\n +\1\.append\(\2\)", code)
    assert re.search(r"for block, (\w+) in zip\(self\.up, reversed\((\w+)\)\):", code)


def test_outputs_of_every_layer() -> None:
    torch.manual_seed(0)
    code = convert(EveryLayer(), (torch.randn(2, WIDTH),))
    assert code.count("layer(") == 1 and re.search(r"return .*, \*\w+", code)


@pytest.mark.parametrize("taken", [True, False])
def test_an_empty_output_of_a_branch_is_no_weight(taken: bool) -> None:
    empty = helper.make_tensor("present.0.key", TensorProto.FLOAT, [0, 8], b"", raw=True)
    shape = helper.make_tensor_value_info("present.0.key", TensorProto.FLOAT, None)
    then = helper.make_graph([helper.make_node("Constant", [], ["present.0.key"], value=empty)], "then", [], [shape])
    other = helper.make_tensor_value_info("other", TensorProto.FLOAT, None)
    orelse = helper.make_graph([helper.make_node("Add", ["x", "x"], ["other"])], "else", [], [other])
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=orelse)],
        "g",
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), "m.onnx")
    inputs = {"c": np.array(taken), "x": np.ones((3, 8), np.float32)}
    want = onnxruntime.InferenceSession("m.onnx").run(None, inputs)[0]
    module = tonnx.convert("m.onnx")
    assert not module.state_dict()
    got = module(*(torch.from_numpy(x) for x in inputs.values()))
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_between_the_layers_may_give_what_one_of_them_gave(taken: bool) -> None:
    """Without the Identity it is the output of the branch as it is."""
    random, nodes, weights, x = np.random.default_rng(0), [], [], "x"
    for i in range(LAYERS):
        path, y = f"/layers.{i}", f"y{i}"
        for fc in ("first", "second"):
            matrix = random.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 4
            weights.append(numpy_helper.from_array(matrix, f"layers.{i}.{fc}.weight"))
        nodes += [
            helper.make_node("Gemm", [x, f"layers.{i}.first.weight"], [f"a{i}"], f"{path}/first/Gemm", transB=1),
            helper.make_node("Tanh", [f"a{i}"], [f"b{i}"], f"{path}/Tanh"),
            helper.make_node(
                "Gemm", [f"b{i}", f"layers.{i}.second.weight"], [f"c{i}"], f"{path}/second/Gemm", transB=1
            ),
            helper.make_node("Add", [x, f"c{i}"], [y], f"{path}/Add"),
        ]
        if i == 1:
            bodies = {}
            for branch, outputs, inside in (
                ("then_branch", "same", [helper.make_node("Identity", ["y1"], ["same"])]),
                ("else_branch", "negated", [helper.make_node("Neg", ["x"], ["negated"])]),
            ):
                value = helper.make_tensor_value_info(outputs, TensorProto.FLOAT, ["n", WIDTH])
                bodies[branch] = helper.make_graph(inside, branch, [], [value])
            nodes.append(helper.make_node("If", ["c"], ["chosen"], "choice", **bodies))
        x = y
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH]) for name in ("x", x, "chosen")]
    graph = helper.make_graph(nodes, "g", [flag, ends[0]], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), "m.onnx")
    inputs = {"c": np.array(taken), "x": random.standard_normal((3, WIDTH)).astype(np.float32)}
    want = onnxruntime.InferenceSession("m.onnx").run(None, inputs)
    got = tonnx.convert("m.onnx")(*(torch.from_numpy(each) for each in inputs.values()))
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours.detach(), theirs, rtol=1e-5, atol=1e-6)

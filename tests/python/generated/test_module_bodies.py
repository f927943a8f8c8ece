"""Modules that branches and loops call: their classes, their methods, their values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import tonnx

WIDTH, LAYERS = 6, 3


def layer(i: int, x: str, y: str, scale: str, body: str, weights: str = "") -> list[onnx.NodeProto]:
    """A residual block of two linear layers, as PyTorch's exporter names it; `scale` is multiplied with what it adds."""
    path, own = f"/decoder/layers.{i}", f"decoder.layers.{i}"
    v = f"{body}{i}"
    nodes = [
        helper.make_node("MatMul", [x, f"{own}.fc1.matrix"], [f"{v}a"], name=f"{path}/fc1/MatMul"),
        helper.make_node("Add", [f"{v}a", f"{own}.fc1.bias{weights}"], [f"{v}b"], name=f"{path}/fc1/Add"),
        helper.make_node("Relu", [f"{v}b"], [f"{v}c"], name=f"{path}/act/Relu"),
        helper.make_node("MatMul", [f"{v}c", f"{own}.fc2.matrix"], [f"{v}d"], name=f"{path}/fc2/MatMul"),
        helper.make_node("Add", [f"{v}d", f"{own}.fc2.bias{weights}"], [f"{v}e"], name=f"{path}/fc2/Add"),
    ]
    if scale:
        nodes.append(helper.make_node("Mul", [f"{v}e", scale], [f"{v}f"], name=f"{path}/Mul"))
    return [*nodes, helper.make_node("Add", [x, f"{v}f" if scale else f"{v}e"], [y], name=f"{path}/Add")]


def initializers(suffix: str = "") -> list[onnx.TensorProto]:
    random = np.random.default_rng(0)
    return [
        numpy_helper.from_array(random.standard_normal(dims).astype(np.float32) / 2, f"decoder.layers.{i}.{name}")
        for i in range(LAYERS)
        for fc in ("fc1", "fc2")
        for name, dims in ((f"{fc}.matrix", (WIDTH, WIDTH)), (f"{fc}.bias{suffix}", (WIDTH,)))
    ]


def graph_of(body: str, scaled: bool, suffix: str) -> onnx.GraphProto:
    nodes = []
    for i in range(LAYERS):
        x, y = ("x" if i == 0 else f"{body}x{i}"), f"{body}x{i + 1}"
        nodes += layer(i, x, y, "scale" if scaled else "", body, suffix)
    outputs = [helper.make_tensor_value_info(f"{body}x{LAYERS}", TensorProto.FLOAT, ["n", WIDTH])]
    return helper.make_graph(nodes, body, [], outputs)


def save(nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], weights: list[onnx.TensorProto]) -> None:
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", WIDTH])
    graph = helper.make_graph(nodes, "g", inputs, [output], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, "m.onnx")


def save_branches(scaled: tuple[bool, bool], suffix: str = "") -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])
    scale = helper.make_tensor_value_info("scale", TensorProto.FLOAT, [1])
    use_cache = helper.make_tensor_value_info("use_cache", TensorProto.BOOL, [1])
    bodies = {f"{word}_branch": graph_of(word, scaled[i], suffix) for i, word in enumerate(("then", "else"))}
    save(
        [helper.make_node("If", ["use_cache"], ["y"], name="merged_if", **bodies)],
        [x, scale, use_cache],
        initializers(suffix),
    )


def code_and_values(inputs: dict[str, np.ndarray]) -> tuple[str, torch.nn.Module]:
    tonnx.convert("m.onnx", "m.py")
    module = tonnx.convert("m.onnx")
    want = onnxruntime.InferenceSession("m.onnx").run(None, inputs)[0]
    got = module(*(torch.from_numpy(x) for x in inputs.values()))
    np.testing.assert_allclose(got.detach(), want, rtol=1e-5, atol=1e-6)
    return Path("m.py").read_text(), module


def branch_inputs(use_cache: bool) -> dict[str, np.ndarray]:
    x = np.random.default_rng(1).standard_normal((4, WIDTH)).astype(np.float32)
    return {"x": x, "scale": np.float32([0.5]), "use_cache": np.array([use_cache])}


@pytest.mark.parametrize("use_cache", [True, False])
def test_both_branches_call_the_same_modules(use_cache: bool) -> None:
    save_branches((True, False))
    code, module = code_and_values(branch_inputs(use_cache))
    assert code.count("class ") == 3  # one for the layers, one around them
    assert code.count("def forward(self") == 3
    assert code.count("def forward_else(self") == 1
    assert code.count("self.fc1(") == 2  # once in each method
    assert {"decoder.layers.0.fc1.weight", "decoder.layers.2.fc2.bias"} <= set(module.state_dict())
    assert len(module.state_dict()) == 4 * LAYERS


def test_what_both_branches_do_is_one_method() -> None:
    save_branches((False, False))
    code, _ = code_and_values(branch_inputs(True))
    assert "forward_" not in code
    assert code.count("self.fc1(") == 1


def test_weights_that_a_tool_made_common_keep_their_names() -> None:
    save_branches((True, False), "_merged_0")
    code, module = code_and_values(branch_inputs(False))
    assert "merged" not in code.split('"""')[2]
    assert "decoder.layers.1.fc1.bias" in module.state_dict()


def test_branches_are_exported_and_compiled() -> None:
    save_branches((True, False))
    _, module = code_and_values(branch_inputs(True))
    for use_cache in (True, False):
        inputs = branch_inputs(use_cache)
        tensors = tuple(torch.from_numpy(x) for x in inputs.values())
        program = torch.export.export(module, tensors)
        want = onnxruntime.InferenceSession("m.onnx").run(None, inputs)[0]
        np.testing.assert_allclose(program.module()(*tensors).detach(), want, rtol=1e-5, atol=1e-6)


def test_a_loop_calls_modules() -> None:
    weights = initializers()
    body_nodes = [n for i in range(LAYERS) for n in layer(i, "c0" if i == 0 else f"c{i}", f"c{i + 1}", "", "b")]
    body_nodes.append(helper.make_node("Identity", ["keep"], ["keep_out"]))
    state = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH]) for name in ("c0", f"c{LAYERS}")]
    flags = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("keep", "keep_out")]
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    body = helper.make_graph(body_nodes, "body", [count, flags[0], state[0]], [flags[1], state[1]])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])
    steps = helper.make_tensor_value_info("steps", TensorProto.INT64, [])
    save([helper.make_node("Loop", ["steps", "", "x"], ["y"], body=body)], [x, steps], weights)
    inputs = {"x": branch_inputs(True)["x"], "steps": np.array(3)}
    code, module = code_and_values(inputs)
    assert code.count("self.fc1(") == 1
    assert "decoder.layers.1.fc1.weight" in module.state_dict()


def test_quantised_weights_that_are_equal_are_stored_once() -> None:
    weight = np.random.default_rng(2).integers(0, 255, (32, 32)).astype(np.uint8)
    weights = [numpy_helper.from_array(weight, name) for name in ("first_quantized", "second_quantized")]
    weights += [
        numpy_helper.from_array(np.float32(0.1), "scale_of_both"),
        numpy_helper.from_array(np.uint8(120), "zero_of_both"),
    ]
    nodes, last = [], "x"
    for i, name in enumerate(("first", "second")):
        nodes += [
            helper.make_node("DequantizeLinear", [f"{name}_quantized", "scale_of_both", "zero_of_both"], [f"w{i}"]),
            helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]),
        ]
        last = f"m{i}"
    nodes.append(helper.make_node("Tanh", [last], ["y"]))
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 32]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), "m.onnx")
    x = np.random.default_rng(3).standard_normal((2, 32)).astype(np.float32) / 100
    _, module = code_and_values({"x": x})
    assert sum(tensor.numel() == weight.size for tensor in module.state_dict().values()) == 1


def test_names_of_functions_that_were_written_out_are_paths() -> None:
    nodes, weights = [], initializers()
    for call in ("first", "second"):
        inside = [n for i in range(LAYERS) for n in layer(i, "x" if i == 0 else f"l{i}", f"l{i + 1}", "", "b")]
        for node in inside:
            node.name = f"{call}__Inline_0__{node.name}"
            for values in (node.input, node.output):
                values[:] = [v if v == "x" else f"{call}__Inline_0__{v}" for v in values]
        nodes += inside
    own = [
        numpy_helper.from_array(numpy_helper.to_array(w), f"{c}__Inline_0__{w.name}")
        for c in ("first", "second")
        for w in weights
    ]
    ends = [f"{call}__Inline_0__l{LAYERS}" for call in ("first", "second")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])
    save([*nodes, helper.make_node("Mul", ends, ["y"])], [x], own)
    code, module = code_and_values({"x": branch_inputs(True)["x"]})
    assert "Inline" not in code
    assert code.count("self.fc1(") == 1
    assert "second.decoder.layers.1.fc2.bias" in module.state_dict()

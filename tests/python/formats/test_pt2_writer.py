"""Written .pt2 files: PyTorch loads and runs them, ONNX Runtime gives the values."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from models import floats, make_model, random_tensor
from onnx import TensorProto, helper, numpy_helper
from pt2_files import load, wrong_types

import tonnx

RNG = np.random.default_rng(7)


def wanted(model: onnx.ModelProto, *inputs: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)})


def check(model: onnx.ModelProto, *runs: Sequence[np.ndarray], **options: Any) -> torch.export.ExportedProgram:
    """The program, once its values and types are right for all these inputs."""
    tonnx.convert(model, "model.pt2", **options)
    program = load("model.pt2")
    for inputs in runs:
        args = tuple(torch.from_numpy(x) for x in inputs)
        with torch.no_grad():
            got = program.module()(*args)
        for a, b in zip(got if isinstance(got, tuple) else (got,), wanted(model, *inputs), strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)
        assert wrong_types(program, args) == []
    return program


def array(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def conv_net() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "conv1.weight", "conv1.bias"], ["a"], "/conv1/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "bn.weight", "bn.bias", "mean", "var"], ["b"], "/bn/BatchNorm"),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("MatMul", ["e", "fc.weight"], ["f"], "/fc/MatMul"),
        helper.make_node("Add", ["f", "fc.bias"], ["y"], "/fc/Add"),
    ]
    weights = [
        random_tensor(RNG, "conv1.weight", 4, 3, 3, 3),
        random_tensor(RNG, "conv1.bias", 4),
        *(random_tensor(RNG, name, 4) for name in ("bn.weight", "bn.bias", "mean")),
        numpy_helper.from_array(np.full(4, 1.5, np.float32), "var"),
        random_tensor(RNG, "fc.weight", 4, 5),
        random_tensor(RNG, "fc.bias", 5),
    ]
    return make_model(nodes, [floats("x", "batch", 3, 8, 8)], [floats("y", "batch", 5)], weights)


def test_conv_net_at_any_batch() -> None:
    network = conv_net()
    program = check(network, [array(2, 3, 8, 8)], [array(1, 3, 8, 8)], [array(5, 3, 8, 8)])
    model = tonnx.convert(network)
    assert sorted(program.state_dict) == sorted(set(model.state_dict()) - {"bn.num_batches_tracked"})
    assert {n for n, _ in program.named_parameters()} == {n for n, _ in model.named_parameters()}
    for name, tensor in program.state_dict.items():
        assert torch.equal(tensor, model.state_dict()[name])


def test_weights_are_trained() -> None:
    program = check(conv_net(), [array(2, 3, 8, 8)])
    module = program.module()
    module(torch.randn(2, 3, 8, 8)).sum().backward()
    gradients = {name: p.grad for name, p in module.named_parameters()}
    assert gradients and all(g is not None for g in gradients.values())


def test_what_pytorch_does_with_programs() -> None:
    program = check(conv_net(), [array(3, 3, 8, 8)])
    x = torch.from_numpy(array(3, 3, 8, 8))
    with torch.no_grad():
        y = program.module()(x)
        compiled = torch.compile(program.module(), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), y)
        tree = torch.export.unflatten(program)
        torch.testing.assert_close(tree(x), y)
        assert {"conv1", "bn", "fc"} <= {name for name, _ in tree.named_children()}
        torch.export.save(program, "again.pt2")
        torch.testing.assert_close(torch.export.load("again.pt2").module()(x), y)
        torch.testing.assert_close(program.run_decompositions().module()(x), y)


def test_sample_inputs_fit() -> None:
    program = check(conv_net(), [array(2, 3, 8, 8)])
    (x,), keywords = program.example_inputs
    assert keywords == {} and x.shape == (2, 3, 8, 8) and x.dtype == torch.float32
    program.module()(x)


@pytest.mark.parametrize("size, fits", [(1, True), (4, True), (5, False)])
def test_dynamic_range(size: int, fits: bool) -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], [floats("x", 2, 3)], [floats("y", None, None)])
    tonnx.convert(model, "model.pt2", dynamic={"x": {0: ("batch", 1, 4)}})
    program = load("model.pt2")
    assert [(r.lower, r.upper) for r in program.range_constraints.values()] == [(1, 4)]
    x = torch.randn(size, 3)
    if fits:
        assert torch.equal(program.module()(x), x.relu())
    else:
        with pytest.raises(Exception, match="[Gg]uard|range|<= 4"):
            program.module()(x)


@pytest.mark.parametrize(
    "text, why",
    [("x", "form"), ("x:0", "form"), ("x:0=", "form"), ("x:a=b", "number"), ("x:0=b:3", "range"), ("z:0=b", "no input"),
     ("x:5=b", "dimensions"), ("x:0=b:4..2", "none")],
)  # fmt: skip
def test_bad_dynamic_option(text: str, why: str, cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], [floats("x", 2, 3)], [floats("y", 2, 3)])
    onnx.save(model, "model.onnx")
    result = cli("convert", "model.onnx", "model.pt2", "--dynamic", text)
    assert result.returncode == 1 and why in result.stderr


def test_names_are_kept(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    nodes = [helper.make_node("Add", ["input.1", "class"], ["out/put"])]
    inputs = [floats("input.1", "n", 3), floats("class", "n", 3)]
    onnx.save(make_model(nodes, inputs, [floats("out/put", "n", 3)]), "model.onnx")
    assert cli("convert", "model.onnx", "model.pt2").returncode == 0
    files = {"tonnx.json": ""}
    program = torch.export.load("model.pt2", extra_files=files)
    names = json.loads(files["tonnx.json"])
    assert names["input_names"] == ["input.1", "class"] and names["output_names"] == ["out/put"]
    assert names["symbols"] == {"s0": "n"}
    x = torch.randn(2, 3)
    assert names["arguments"] == list(program.graph_signature.user_inputs) == ["input_1", "class_"]
    assert torch.equal(program.module()(x, x), x + x)


def test_archive_can_be_mapped() -> None:
    tonnx.convert(conv_net(), "model.pt2")
    with zipfile.ZipFile("model.pt2") as archive:
        assert archive.testzip() is None
        for entry in archive.infolist():
            archive.fp.seek(entry.header_offset + 26)
            name, extra = np.frombuffer(archive.fp.read(4), np.uint16)
            assert (entry.header_offset + 30 + int(name) + int(extra)) % 64 == 0


def test_shared_weight_is_stored_once() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "/one/MatMul"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["c"], "/two/MatMul"),
        helper.make_node("Mul", ["c", "w"], ["y"]),
    ]
    weight = random_tensor(RNG, "w", 4, 4)
    program = check(make_model(nodes, [floats("x", 4, 4)], [floats("y", 4, 4)], [weight]), [array(4, 4)])
    assert len(program.state_dict) == 1
    x = torch.randn(4, 4)
    torch.testing.assert_close(torch.export.unflatten(program)(x), program.module()(x))


def test_sizes_are_arithmetic() -> None:
    shape = numpy_helper.from_array(np.array([0, -1], np.int64), "shape")
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "i"], ["n"], axis=0),
        helper.make_node("Range", ["zero", "n", "one"], ["r"]),
        helper.make_node("Cast", ["r"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["x", "x"], ["d"], axis=1),
        helper.make_node("Reshape", ["d", "shape"], ["e"]),
        helper.make_node("Unsqueeze", ["f", "axis"], ["g"]),
        helper.make_node("Mul", ["e", "g"], ["y"]),
    ]
    ints = [
        numpy_helper.from_array(np.array(v, np.int64), name)
        for name, v in (("i", 0), ("zero", 0), ("one", 1), ("axis", [1]))
    ]
    model = make_model(nodes, [floats("x", "n", "m", 2)], [floats("y", None, None)], [shape, *ints])
    program = check(model, [array(3, 4, 2)], [array(1, 2, 2)])
    assert any("sym_size" in str(node.target) for node in program.graph.nodes)


def test_data_dependent_sizes() -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Transpose", ["i"], ["y"])]
    model = make_model(
        nodes, [floats("x", "n", 3)], [helper.make_tensor_value_info("y", TensorProto.INT64, [None, None])]
    )
    check(model, [np.array([[0, 1, 2], [3, 0, 0]], np.float32)], [np.zeros((1, 3), np.float32)])


def test_if_is_cond() -> None:
    def branch(name: str, op: str) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node(op, ["x"], [name])], name, [], [floats(name, "n", 3)])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "Relu"), else_branch=branch("b", "Neg")),
    ]
    zero = numpy_helper.from_array(np.float32(0), "zero")
    model = make_model(nodes, [floats("x", "n", 3)], [floats("y", "n", 3)], [zero])
    program = check(model, [np.ones((2, 3), np.float32)], [-np.ones((4, 3), np.float32)])
    assert any("cond" in str(node.target) for node in program.graph.nodes)
    x = torch.ones(2, 3)
    compiled = torch.compile(program.module(), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), x)


@pytest.mark.parametrize("fixed", [True, False])
def test_loop_is_unrolled_or_while(fixed: bool) -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "w"], ["v_out"]), helper.make_node("Identity", ["k"], ["k_out"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("k", TensorProto.BOOL, []), floats("v", 2)],
        [helper.make_tensor_value_info("k_out", TensorProto.BOOL, []), floats("v_out", 2)],
    )  # fmt: skip
    nodes = [helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)]
    count = helper.make_tensor_value_info("m", TensorProto.INT64, [])
    weights = [random_tensor(RNG, "w", 2)]
    inputs = [floats("x", 2)]
    if fixed:
        weights.append(numpy_helper.from_array(np.int64(3), "m"))
    else:
        inputs.append(count)
    model = make_model(nodes, inputs, [floats("y", 2)], weights)
    runs = [[array(2)]] if fixed else [[array(2), np.array(n, np.int64)] for n in (0, 1, 4)]
    program = check(model, *runs)
    assert any("while_loop" in str(node.target) for node in program.graph.nodes) is not fixed


def test_recurrent_layer_without_a_state() -> None:
    weights = [random_tensor(RNG, "w", 1, 12, 4), random_tensor(RNG, "r", 1, 12, 3)]
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], "/lstm/LSTM", hidden_size=3)]
    check(make_model(nodes, [floats("x", "t", "n", 4)], [floats("y", None, None, None, None)], weights),
          [array(5, 2, 4)], [array(3, 1, 4)])  # fmt: skip


def test_lists_among_the_outputs() -> None:
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"])]
    output = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    tonnx.convert(make_model(nodes, [floats("x", 2)], [output]), "model.pt2")
    x = torch.randn(2)
    got = load("model.pt2").module()(x)
    assert isinstance(got, list) and len(got) == 2 and all(torch.equal(g, x) for g in got)


def test_own_reader_takes_it() -> None:
    model = conv_net()
    tonnx.convert(model, "model.pt2")
    x = array(2, 3, 8, 8)
    with torch.no_grad():
        got = tonnx.convert("model.pt2")(torch.from_numpy(x))
    np.testing.assert_allclose(got.numpy(), wanted(model, x)[0], rtol=1e-4, atol=1e-5)
    tonnx.convert("model.pt2", "again.onnx")
    again = onnx.load("again.onnx")
    assert [i.name for i in again.graph.input] == ["x"]
    np.testing.assert_allclose(wanted(again, x)[0], wanted(model, x)[0], rtol=1e-4, atol=1e-5)


def test_input_without_a_shape_is_refused(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    onnx.save(make_model([helper.make_node("Relu", ["x"], ["y"])], [x], [y]), "model.onnx")
    result = cli("convert", "model.onnx", "model.pt2")
    assert result.returncode == 2 and "--input-shape" in result.stderr
    assert cli("convert", "model.onnx", "model.pt2", "--input-shape", "x:2,?").returncode == 0
    assert torch.equal(load("model.pt2").module()(torch.ones(2, 5)), torch.ones(2, 5))

"""Code and commands for onnx2torch, a fork of it, onnx2nn and onnxsim, with only the import or the program's name changed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from conftest import REPOSITORY
from onnx import TensorProto, helper, numpy_helper, version_converter
from torch import nn

import tonnx
from examples import example, titles
from tonnx import (
    OnnxGraph,
    OnnxNode,
    OperationConverterResult,
    _compare,
    _core,
    _registry,
    add_converter,
    convert,
    onnx_mapping_from_node,
    simplify,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_registry, "_converters", {})
    yield


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Callable[[str], int]:
    """Runs a command line in this process."""

    def run(text: str) -> int:
        name, *arguments = shlex.split(text)
        assert name == "tonnx"
        return int(_core.run_cli(["tonnx", *arguments], _compare.compare_for_cli))

    return run


def write_network(path: str, shape: Any = (1, 3, 8, 8), opset: int = 13) -> None:
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "scale": random.random(4).astype(np.float32) + 0.5,
        "bias": random.random(4).astype(np.float32),
        "mean": random.random(4).astype(np.float32),
        "var": random.random(4).astype(np.float32) + 0.5,
    }
    nodes = [
        helper.make_node("Conv", ["input", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["b"]),
        helper.make_node("Relu", ["b"], ["output"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7), path)


def one_node(op: str, shape: tuple[int, ...], weights: dict[str, np.ndarray] | None = None, **attributes: Any) -> Any:
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *(weights or {})], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def assert_same(model: Any, module: nn.Module, x: torch.Tensor) -> None:
    data = model if isinstance(model, str) else model.SerializeToString()
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert np.mean((expected - module(x).detach().numpy()) ** 2) < 1e-7  # onnx2nn's own measure


@example("onnx2torch: convert of a path, and of an onnx.ModelProto")
def test_convert() -> None:
    write_network("mobile_net_v2.onnx")
    torch_model_1 = convert("mobile_net_v2.onnx")
    torch_model_2 = convert(onnx.load("mobile_net_v2.onnx"))
    x = torch.ones((1, 3, 8, 8))
    assert torch.equal(torch_model_1(x), torch_model_2(x))


@example("onnx2torch: the result beside that of ONNX Runtime")
def test_execute() -> None:
    write_network("m.onnx")
    x = torch.ones((1, 3, 8, 8))
    out_torch = convert("m.onnx")(x)
    outputs_ort = ort.InferenceSession("m.onnx").run(None, {"input": x.numpy()})
    assert torch.max(torch.abs(torch.tensor(outputs_ort[0]) - out_torch.detach())) < 1e-5
    assert np.allclose(outputs_ort[0], out_torch.detach().numpy(), atol=1.0e-5)


@example("onnx2torch's fork: run.py --cfg with input_shapes by path")
def test_run_cfg(command: Callable[[str], int]) -> None:
    Path("data/onnx").mkdir(parents=True)
    Path("cfg").mkdir()
    write_network("data/onnx/model_without_shapes.onnx", None)
    Path("cfg/example.yml").write_text(
        "defaults: {simplify: true}\n"
        "models: [{source: ../data/onnx/*.onnx, target: '../out/{stem}.pt2'}]\n"
        "input_shapes:\n  data/onnx/model_without_shapes.onnx:\n    input: [1, 3, 8, 8]\n"
    )
    assert command("tonnx run --cfg cfg/example.yml -q") == 0
    program = torch.export.load("out/model_without_shapes.pt2")
    assert_same("data/onnx/model_without_shapes.onnx", program.module(), torch.rand(1, 3, 8, 8))


@example("onnx2torch's fork: a model without shapes that the file says nothing of")
def test_run_cfg_names_what_lacks(command: Callable[[str], int], capfd: pytest.CaptureFixture[str]) -> None:
    write_network("a.onnx", None)
    Path("b.yml").write_text("defaults: {simplify: true}\nmodels: [{source: a.onnx, target: a.pt2}]\n")
    assert command("tonnx run --cfg b.yml") == 1
    assert "input 'input' of 'a.onnx' has no shape" in capfd.readouterr().err and not Path("a.pt2").exists()


@example("onnx2torch: add_converter for Relu of several opsets")
def test_relu_converter() -> None:
    @add_converter(operation_type="Relu", version=6)
    @add_converter(operation_type="Relu", version=13)
    @add_converter(operation_type="Relu", version=14)
    def _(node: OnnxNode, graph: OnnxGraph) -> OperationConverterResult:
        return OperationConverterResult(torch_module=nn.ReLU(), onnx_mapping=onnx_mapping_from_node(node=node))

    write_network("m.onnx")
    module = convert("m.onnx")
    assert any(isinstance(part, nn.ReLU) for part in module.modules())
    assert_same("m.onnx", module, torch.rand(1, 3, 8, 8))


@example("onnx2torch: version_converter before, torch.save of the module after")
def test_version_and_save() -> None:
    write_network("model.onnx", opset=9)
    model = onnx.load("model.onnx")
    torch_model = convert(version_converter.convert_version(model, 13))
    torch.save(torch_model, "model.pt")
    loaded = torch.load("model.pt", weights_only=False)
    assert_same("model.onnx", loaded, torch.rand(1, 3, 8, 8))
    assert_same("model.onnx", convert("model.onnx"), torch.rand(1, 3, 8, 8))  # the detour is not needed


@example("onnx2nn: --onnx_path, --simplify_path, --pytorch_path and --input_shape")
def test_onnx2nn(command: Callable[[str], int]) -> None:
    write_network("mobilenetv2-7.onnx", ("n", 3, 8, 8))
    line = (
        "tonnx --onnx_path mobilenetv2-7.onnx --simplify_path simple.onnx --pytorch_path {} --input_shape input:1,3,8,8"
    )
    assert command(line.format("mobilenetv2.pth")) == 0 and command(line.format("mobilenetv2.py")) == 0
    assert [n.op_type for n in onnx.load("simple.onnx").graph.node] == ["Conv", "Relu"]
    assert set(torch.load("mobilenetv2.pth", weights_only=True)) and Path("mobilenetv2.safetensors").exists()


@example("onnx2nn: a mean squared error below 1e-7")
def test_mean_squared_error() -> None:
    write_network("m.onnx")
    convert("m.onnx", "m.py")
    report = tonnx.verify("m.onnx", "m.py")
    assert report.outputs[0].mse < 1e-7 and "mse " in str(report)


@example("onnx2pytorch: ConvertModel(onnx_model, debug=False)")
def test_convert_model() -> None:
    with pytest.raises(AttributeError, match=r"write tonnx.convert\(onnx_model\), which gives the module; tonnx.check"):
        tonnx.ConvertModel  # noqa: B018


@example("onnx2pytorch: convolutions and pools that are padded on one side only")
def test_asymmetric_padding() -> None:
    x = torch.rand(1, 2, 7, 7)
    weight = {"w": np.random.default_rng(0).random((3, 2, 3, 3), np.float32)}
    for model in (
        one_node("Conv", (1, 2, 7, 7), weight, pads=[0, 0, 1, 1]),
        one_node("MaxPool", (1, 2, 7, 7), kernel_shape=[3, 3], pads=[0, 1, 1, 0], strides=[2, 2]),
    ):
        assert_same(model, convert(model), x)


@example("onnx2pytorch: AveragePool that leaves its padding out of the count")
def test_count_include_pad() -> None:
    x = torch.rand(1, 2, 7, 7)
    for include in (0, 1):
        model = one_node("AveragePool", (1, 2, 7, 7), kernel_shape=[3, 3], pads=[0, 0, 1, 1], count_include_pad=include)
        assert_same(model, convert(model), x)


@example("onnx2pytorch: LRN, whose bias is PyTorch's k")
def test_lrn() -> None:
    model = one_node("LRN", (1, 6, 4, 4), size=3, bias=2.0, alpha=0.01, beta=0.6)
    assert_same(model, convert(model), torch.rand(1, 6, 4, 4))


@example("onnxsim: model, check = simplify(model)")
def test_simplify() -> None:
    write_network("m.onnx")
    model_simp, check = simplify(onnx.load("m.onnx"), check_n=2)
    assert check and [n.op_type for n in model_simp.graph.node] == ["Conv", "Relu"]
    assert simplify("m.onnx", 1)[1]


@example("onnxsim: skip_fuse_bn, skipped_optimizers, skip_shape_inference, perform_optimization")
def test_simplify_switches() -> None:
    write_network("m.onnx")
    for options in (
        {"skip_fuse_bn": True},
        {"skipped_optimizers": ["fuse_bn_into_conv"]},
        {"perform_optimization": False},
    ):
        model, ok = simplify("m.onnx", 1, **options)
        assert ok and "BatchNormalization" in [n.op_type for n in model.graph.node], options
    assert not simplify("m.onnx", skip_shape_inference=True)[0].graph.value_info


@example("onnxsim: input_shapes, alone and with dynamic_input_shape")
def test_simplify_shapes() -> None:
    write_network("m.onnx", ("n", 3, "h", "w"))

    def sizes(**options: Any) -> list[int]:
        model, ok = simplify("m.onnx", 1, input_shapes={"input": [2, 3, 8, 8]}, **options)
        assert ok
        return [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]

    assert sizes() == [2, 3, 8, 8] and sizes(dynamic_input_shape=True) == [0, 3, 0, 0]


@example("onnxsim: input_data, and input_data of an unknown name")
def test_simplify_data() -> None:
    write_network("m.onnx")
    data = np.ones((1, 3, 8, 8), np.float32)
    assert simplify("m.onnx", 1, input_data={"input": data})[1]
    with pytest.raises(tonnx.Error, match="input_data: the model has no input 'imput'; it has: input"):
        simplify("m.onnx", 1, input_data={"imput": data})


@example("onnxsim: custom_lib")
def test_simplify_library() -> None:
    write_network("m.onnx")
    with pytest.raises(tonnx.Error, match="ONNX Runtime cannot load the operators of 'ops.so'"):
        simplify("m.onnx", 1, custom_lib="ops.so")


@example("onnxsim: the order of arguments before 0.4")
def test_simplify_old_order() -> None:
    write_network("m.onnx", ("n", 3, 8, 8))
    data = {"input": np.ones((1, 3, 8, 8), np.float32)}
    model, ok = simplify("m.onnx", 1, True, False, {"input": [1, 3, 8, 8]}, ["fuse_bn_into_conv"], True, data, False)
    assert ok and "BatchNormalization" in [n.op_type for n in model.graph.node] and not model.graph.value_info
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1


@example("onnxsim: the command with a number in the place of the target")
def test_simplify_command(command: Callable[[str], int], capfd: pytest.CaptureFixture[str]) -> None:
    write_network("m.onnx")
    assert command("tonnx simplify m.onnx simple.onnx 3 --input-shape input:1,3,8,8") == 0
    capfd.readouterr()
    assert command("tonnx simplify m.onnx 3") == 1
    assert "tonnx simplify m.onnx simple.onnx 3 makes 3 checks" in capfd.readouterr().err


def test_every_example_has_a_row_and_every_row_a_test() -> None:
    import test_custom_export  # noqa: F401
    import test_from_torch_onnx  # noqa: F401

    page = (REPOSITORY / "docs/coming_from.md").read_text()
    rows = [
        line.split(" | ")[0].removeprefix("| ").replace("`", "")
        for line in page.splitlines()
        if "| runs" in line or "| refused" in line
    ]
    assert sorted(rows) == sorted(titles)

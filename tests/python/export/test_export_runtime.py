"""Exports as a user makes them, judged by ONNX Runtime and onnx.checker."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import tonnx


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(4, 2)

    def forward(self, image):
        return self.head(torch.flatten(self.pool(self.features(image)), 1))


def run(model: Any, **feeds: torch.Tensor) -> list[Any]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {k: v.numpy() for k, v in feeds.items()})


def test_a_file_that_the_checker_and_the_runtime_take() -> None:
    net, image = Net().eval(), torch.rand(1, 3, 8, 8)
    tonnx.export(net, image, "net.onnx", dynamic_axes={"image": {0: "batch"}}, verify=True)
    model = onnx.load("net.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [i.name for i in model.graph.input] == ["image"]
    assert [o.name for o in model.graph.output] == ["output"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert model.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert {i.name for i in model.graph.initializer} >= {"features.0.weight", "head.weight", "head.bias"}
    more = torch.rand(5, 3, 8, 8)
    torch.testing.assert_close(torch.tensor(run("net.onnx", image=more)[0]), net(more).detach())


def test_ways_to_have_the_model() -> None:
    net, image = Net().eval(), torch.rand(2, 3, 8, 8)
    program = tonnx.export(net, image)
    buffer = io.BytesIO()
    tonnx.export(net, image, f=buffer)
    program.save("saved.onnx")
    expected = net(image).detach()
    for model in (bytes(program), program.model_proto.SerializeToString(), buffer.getvalue(), "saved.onnx"):
        torch.testing.assert_close(torch.tensor(run(model, image=image)[0]), expected)
    torch.testing.assert_close(program(image)[0], expected)
    module = tonnx.convert(program)
    torch.testing.assert_close(module(image), expected)


def test_weights_outside_the_file() -> None:
    net, image = nn.Linear(64, 64).eval(), torch.rand(2, 64)
    tonnx.export(net, image, "net.onnx", external_data=True)
    assert Path("net.onnx").stat().st_size < 4096
    assert len(list(Path().iterdir())) == 2
    torch.testing.assert_close(torch.tensor(run("net.onnx", input=image)[0]), net(image).detach())


@pytest.mark.parametrize("opset", [11, 13, 18, 21])
def test_opsets(opset: int) -> None:
    tonnx.export(Net(), torch.rand(2, 3, 8, 8), "net.onnx", opset_version=opset, verify=True)
    model = onnx.load("net.onnx")
    assert {o.domain: o.version for o in model.opset_import}[""] == opset


def test_parameters_left_out_and_as_inputs() -> None:
    left_out = tonnx.export(nn.Linear(3, 2), torch.rand(2, 3), export_params=False).model_proto
    assert not left_out.graph.initializer
    assert {i.name for i in left_out.graph.input} == {"input", "weight", "bias"}
    both = tonnx.export(nn.Linear(3, 2), torch.rand(2, 3), keep_initializers_as_inputs=True).model_proto
    assert {i.name for i in both.graph.initializer} == {"weight", "bias"}
    assert {i.name for i in both.graph.input} == {"input", "weight", "bias"}


@torch.library.custom_op("tonnx_runtime::gelu", mutates_args=())
def own_gelu(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.gelu(x)


@own_gelu.register_fake
def _(x):
    return torch.empty_like(x)


def test_a_symbolic_in_the_runtime() -> None:
    def symbolic(g, x):
        return g.op("Add", g.op("com.microsoft::Gelu", x), g.op("Constant", value_t=torch.tensor(0.0)))

    tonnx.register_custom_op_symbolic("tonnx_runtime::gelu", symbolic, opset_version=9)
    try:
        program = tonnx.export(
            lambda x: torch.ops.tonnx_runtime.gelu(x) + x,
            torch.randn(7),
            custom_opsets={"com.microsoft": 1},
            verify=True,
        )
    finally:
        tonnx.unregister_custom_op_symbolic("tonnx_runtime::gelu", 9)
    model = program.model_proto
    assert "Gelu" in [n.op_type for n in model.graph.node if n.domain == "com.microsoft"]
    assert {o.domain: o.version for o in model.opset_import}["com.microsoft"] == 1


def test_an_operator_without_any_conversion_is_listed() -> None:
    class Block(nn.Module):
        def forward(self, x):
            return torch.ops.tonnx_runtime.gelu(torch.ops.tonnx_runtime.gelu(x))

    with pytest.raises(tonnx.Error) as caught:
        tonnx.export(nn.Sequential(nn.ReLU(), Block()), torch.rand(2), "net.onnx")
    assert "tonnx_runtime::gelu: 2 times, in 1" in str(caught.value)
    assert not Path("net.onnx").exists()


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        return nn.functional.leaky_relu(x, slope)

    @staticmethod
    def symbolic(g, x, slope):
        return g.op("LeakyRelu", x, alpha_f=slope)


def test_an_autograd_function_in_the_runtime() -> None:
    program = tonnx.export(lambda x: Function.apply(x, 0.25) + 1, torch.randn(7), verify=True)
    assert "LeakyRelu" in [n.op_type for n in program.model_proto.graph.node]


def test_running_statistics_by_default() -> None:
    net = nn.BatchNorm1d(3).train()
    program = tonnx.export(net, torch.rand(4, 3), verify=True)
    (node,) = program.model_proto.graph.node
    assert node.op_type == "BatchNormalization"
    assert len(node.output) == 1
    assert net.training


def test_verification_names_the_largest_difference(tmp_path: Path) -> None:
    class Liar(nn.Module):
        def forward(self, x):
            return {"right": x + 1, "wrong": x + (2 if torch.onnx.is_in_onnx_export() else 5)}

    for external_data in (False, True):
        with pytest.raises(tonnx.Error) as caught:
            tonnx.export(Liar(), torch.zeros(3), tmp_path / "liar.onnx", verify=True, external_data=external_data)
        assert str(caught.value) == "output 'wrong' of ONNX Runtime differs from PyTorch by up to 3"
        assert caught.value.kind == "verification"
        assert not list(tmp_path.iterdir())


def test_a_file_replaces_another_once_it_is_verified(tmp_path: Path) -> None:
    target = tmp_path / "net.onnx"
    target.write_bytes(b"older")
    net = nn.Linear(300, 200)
    x = torch.rand(2, 300)
    tonnx.export(net, x, target, verify=True, external_data=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(y), net(x).detach())


def test_what_onnx_runtime_cannot_load_is_said_in_one_line(tmp_path: Path) -> None:
    net = nn.Conv2d(3, 4, 3).bfloat16()  # ONNX Runtime has no such kernel on the CPU
    with pytest.raises(tonnx.Error, match="ONNX Runtime cannot run the model") as caught:
        tonnx.export(net, torch.rand(1, 3, 8, 8).bfloat16(), tmp_path / "net.onnx", verify=True, opset_version=22)
    assert caught.value.kind == "unsupported" and "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_verbose_and_pretty_string(capsys: pytest.CaptureFixture[str]) -> None:
    tonnx.export(Net(), torch.rand(2, 3, 8, 8), verbose=True)
    printed = capsys.readouterr().out
    assert "Conv(" in printed
    assert "features.0" in printed
    assert "float32[2, 4, 6, 6]" in printed
    assert "Conv(" in tonnx.export_to_pretty_string(Net(), torch.rand(2, 3, 8, 8))


def test_an_opset_without_a_type_names_the_one_that_has_it() -> None:
    net, x = nn.Conv2d(3, 4, 3).bfloat16(), torch.rand(1, 3, 8, 8).bfloat16()
    with pytest.raises(tonnx.Error) as caught:
        tonnx.export(net, x, opset_version=18)
    assert str(caught.value).splitlines() == [
        "the model cannot be written with opset 18:",
        "  Conv: once, in Conv: opset 21 does not take bfloat16",
        "  opset_version=22 has what it takes",
    ]
    tonnx.export(net, x, opset_version=22)

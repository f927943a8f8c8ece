"""Code for torch.onnx, with only the name of the module changed: the documentation of 1.9, and a guide for .pth files."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.onnx import symbolic_helper
from torch.onnx.symbolic_helper import _scalar, parse_args

import tonnx
from examples import example
from tonnx import register_custom_op_symbolic, unregister_custom_op_symbolic


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    yield


def run(path: str, *arrays: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, map(np.asarray, arrays), strict=True)))


def agrees(path: str, expected: torch.Tensor, *inputs: torch.Tensor) -> bool:
    return np.allclose(run(path, *inputs)[0], expected.detach().numpy(), atol=1e-5)


class Alex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        parts = [(3, 6), (6, 8), (8, 8), (8, 8), (8, 4)]
        self.features = nn.Sequential(*[m for a, b in parts for m in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU())])
        self.classifier = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.features(x), 1))


def export_alex(capsys: pytest.CaptureFixture[str]) -> tuple[nn.Module, str]:
    model = Alex()
    names = ["actual_input_1"] + [f"learned_{i}" for i in range(16)]
    tonnx.export(
        model, torch.randn(10, 3, 4, 4), "alexnet.onnx", verbose=True, input_names=names, output_names=["output1"]
    )
    return model, capsys.readouterr().out


@example("AlexNet with 17 input_names and verbose=True")
def test_alexnet(capsys: pytest.CaptureFixture[str]) -> None:
    _, printed = export_alex(capsys)
    assert all(f"%{name}" in printed for name in ("actual_input_1", "learned_0", "learned_15", "output1"))


@example("onnx.load, onnx.checker and onnx.helper.printable_graph on the result")
def test_load_and_print(capsys: pytest.CaptureFixture[str]) -> None:
    export_alex(capsys)
    model = onnx.load("alexnet.onnx")
    onnx.checker.check_model(model)
    text = onnx.helper.printable_graph(model.graph)
    assert "%learned_15" in text and text.count("Conv[") == 5


@example("InferenceSession on the result, fed by the name of the input")
def test_run_with_onnxruntime(capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = export_alex(capsys)
    session = onnxruntime.InferenceSession("alexnet.onnx")
    x = np.random.randn(10, 3, 4, 4).astype(np.float32)
    (got,) = session.run(None, {"actual_input_1": x})
    assert np.allclose(got, model(torch.tensor(x)).detach().numpy(), atol=1e-5)


@example("a ScriptModule with example_outputs")
def test_scripting() -> None:
    class Loops(nn.Module):
        def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
            for i in range(int(n)):
                x = x + i
            return x

    scripted = torch.jit.script(Loops())
    x, n = torch.ones(2), torch.tensor(3)
    tonnx.export(scripted, (x, n), "loop.onnx", example_outputs=scripted(x, n))
    assert agrees("loop.onnx", torch.full((2,), 11.0), x, torch.tensor(5))  # the loop is a loop


@example("numpy arrays inside forward, and torch.cat instead")
def test_numpy_is_constant() -> None:
    class Uses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.from_numpy(np.concatenate((np.ones((1, 2)), np.zeros((1, 2))), axis=1)).float()
            return torch.cat((x, y), dim=1)

    x = torch.randn(1, 2)
    tonnx.export(Uses(), x, "cat.onnx")
    assert agrees("cat.onnx", Uses()(x), x)


@example("x.reshape(y.item(), -1)")
def test_item() -> None:
    class Reshapes(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.reshape(y.item(), -1)

    x = torch.randn(6, 2)
    tonnx.export(Reshapes(), (x, torch.tensor(3)), "item.onnx")
    assert agrees("item.onnx", x.reshape(4, -1), x, torch.tensor(4))  # and y is still an input


@example("x.reshape(y, -1) with a tensor y")
def test_implicit_index() -> None:
    class Reshapes(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.reshape(y, -1)

    x = torch.randn(6, 2)
    tonnx.export(Reshapes(), (x, torch.tensor(3)), "reshape.onnx")
    assert agrees("reshape.onnx", x.reshape(4, -1), x, torch.tensor(4))


@example("Tensor.data")
def test_data() -> None:
    class Uses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x.data
            return y * 2 + x

    x = torch.randn(3)
    tonnx.export(Uses(), x, "data.onnx")
    assert agrees("data.onnx", 3 * x, x)


@example("dicts and strings among inputs, a dict as output")
def test_dicts_and_strings() -> None:
    class Takes(nn.Module):
        def forward(self, x: dict[str, torch.Tensor], mode: str) -> dict[str, torch.Tensor]:
            return {"foo": x["a"] + x["b"], "bar": x["a"] if mode == "a" else x["b"]}

    a, b = torch.rand(2), torch.rand(2)
    program = tonnx.export(Takes(), ({"a": a, "b": b}, "b"), "dict.onnx")
    assert program.input_names == ["x.a", "x.b"] and program.output_names == ["foo", "bar"]
    got = run("dict.onnx", a, b)
    assert np.allclose(got[0], a + b) and np.allclose(got[1], b)


@example("reads with negative tensors of indices")
def test_negative_reads() -> None:
    class Reads(nn.Module):
        def forward(self, data: torch.Tensor) -> torch.Tensor:
            return data[torch.tensor([[1, 2], [2, -3]]), torch.tensor([-2, 3])]

    x = torch.randn(4, 5, 2)
    tonnx.export(Reads(), x, "read.onnx")
    assert agrees("read.onnx", Reads()(x), x)


WRITES = {
    "rank": (torch.tensor([[1, 2], [2, 3]]), torch.tensor([2, 3])),
    "apart": (torch.tensor([2, 3]), slice(None), torch.tensor([1, 2])),
    "negative": (torch.tensor([1, -2]), torch.tensor([-2, 3])),
}


@example("writes through tensors of indices: of rank 2, not consecutive, negative")
def test_writes() -> None:
    for name, index in WRITES.items():
        x = torch.randn(4, 5, 6)
        new = torch.randn_like(x[index])

        def write(data: torch.Tensor, new_data: torch.Tensor) -> torch.Tensor:
            data = data.clone()
            data[index] = new_data  # noqa: B023
            return data

        tonnx.export(write, (x, new), f"{name}.onnx")
        assert agrees(f"{name}.onnx", write(x, new), x, new), name


@torch.library.custom_op("custom_ops::foo_forward", mutates_args=())
def foo_forward(input1: torch.Tensor, input2: torch.Tensor, attr1: float, attr2: int) -> torch.Tensor:
    return input1 * attr1 + input2 * attr2


@foo_forward.register_fake
def _(input1, input2, attr1, attr2):
    return torch.empty_like(input1)


class FooModel(nn.Module):
    def __init__(self, attr1: float, attr2: int) -> None:
        super().__init__()
        self.attr1, self.attr2 = attr1, attr2

    def forward(self, input1: torch.Tensor, input2: torch.Tensor) -> torch.Tensor:
        return torch.ops.custom_ops.foo_forward(input1, input2, self.attr1, self.attr2)


@example("an operator without a conversion")
def test_unsupported() -> None:
    with pytest.raises(tonnx.Error, match="custom_ops::foo_forward: once") as failure:
        tonnx.export(FooModel(0.5, 2), (torch.rand(2), torch.rand(2)), "model.onnx")
    assert 'tonnx.register_custom_op_symbolic("custom_ops::foo_forward", lambda g, ' in str(failure.value)


@example("a symbolic for aten::elu with symbolic_helper._scalar")
def test_elu() -> None:
    def elu(g: Any, x: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
        return g.op("Elu", x, alpha_f=symbolic_helper._scalar(alpha))

    def shorter(g: Any, input: Any, alpha: Any, inplace: bool = False) -> Any:
        return g.op("Elu", input, alpha_f=_scalar(alpha))

    x = torch.randn(3)
    for symbolic in (elu, shorter):
        register_custom_op_symbolic("::elu", symbolic, 9)
        try:
            tonnx.export(nn.ELU(0.7), x, "elu.onnx")
        finally:
            unregister_custom_op_symbolic("::elu", 9)
        assert [n.op_type for n in onnx.load("elu.onnx").graph.node] == ["Elu"]
        assert agrees("elu.onnx", nn.ELU(0.7)(x), x)


@example("an autograd.Function with a static symbolic")
def test_static_symbolic() -> None:
    class MyRelu(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, input: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(input)
            return input.clamp(min=0)

        @staticmethod
        def symbolic(g: Any, input: Any) -> Any:
            return g.op("Clip", input, g.op("Constant", value_t=torch.tensor(0, dtype=torch.float)))

    class Uses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return MyRelu.apply(x)

    x = torch.randn(4)
    tonnx.export(Uses(), x, "relu.onnx")
    assert [n.op_type for n in onnx.load("relu.onnx").graph.node] == ["Clip"] and agrees("relu.onnx", x.relu(), x)


class MyClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, min: float) -> torch.Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=min)


@example('register_custom_op_symbolic("::prim_PythonOp", ...)')
def test_python_op() -> None:
    def symbolic_pythonop(g: Any, n: Any, *args: Any, **kwargs: Any) -> Any:
        assert str(n) and all(out.requiresGrad() in (True, False, None) for out in n.outputs())
        assert symbolic_helper._is_value(args[0]) and not symbolic_helper._is_value(args[1])
        if kwargs["name"] == "MyClip":
            return g.op("Clip", args[0], min_f=args[1])
        return symbolic_helper._unimplemented("prim::PythonOp", "unknown node kind: " + kwargs["name"])

    class Uses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return MyClip.apply(x, -0.5)

    x = torch.randn(4)
    register_custom_op_symbolic("::prim_PythonOp", symbolic_pythonop, 1)
    try:
        tonnx.export(Uses(), x, "clip.onnx")
    finally:
        unregister_custom_op_symbolic("::prim_PythonOp", 1)
    assert [n.op_type for n in onnx.load("clip.onnx").graph.node] == ["Clip"]
    assert agrees("clip.onnx", x.clamp(min=-0.5), x)


@example("a custom operator with parse_args and custom_opsets")
def test_custom_operator() -> None:
    @parse_args("v", "v", "f", "i")
    def symbolic_foo_forward(g: Any, input1: Any, input2: Any, attr1: float, attr2: int) -> Any:
        return g.op("custom_domain::Foo", input1, input2, attr1_f=attr1, attr2_i=attr2)

    register_custom_op_symbolic("custom_ops::foo_forward", symbolic_foo_forward, 9)
    try:
        example_input = torch.rand(2)
        tonnx.export(FooModel(0.5, 2), (example_input, example_input), "model.onnx", custom_opsets={"custom_domain": 2})
    finally:
        unregister_custom_op_symbolic("custom_ops::foo_forward", 9)
    model = onnx.load("model.onnx")
    (node,) = model.graph.node
    assert (node.domain, node.op_type, len(node.input)) == ("custom_domain", "Foo", 2)
    assert {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} == {"attr1": 0.5, "attr2": 2}
    assert {o.domain: o.version for o in model.opset_import}["custom_domain"] == 2


@example("an LSTM whose input size is fixed, and dynamic_axes")
def test_lstm() -> None:
    model = nn.LSTM(3, 4)
    x = torch.randn(5, 1, 3)
    tonnx.export(model, x, "fixed.onnx", input_names=["x"])
    shape = onnx.load("fixed.onnx").graph.input[0].type.tensor_type.shape
    assert [d.dim_value for d in shape.dim] == [5, 1, 3]
    tonnx.export(model, x, "open.onnx", input_names=["x"], dynamic_axes={"x": {0: "sequence", 1: "batch"}})
    y = torch.randn(7, 2, 3)
    assert agrees("open.onnx", model(y)[0], y)


@example("int and float arguments")
def test_numbers() -> None:
    class Scales(nn.Module):
        def forward(self, x: torch.Tensor, times: int, shift: float) -> torch.Tensor:
            return x * times + shift

    x = torch.rand(2)
    program = tonnx.export(Scales(), (x, 3, 0.5), "numbers.onnx")
    assert program.input_names == ["x"] and agrees("numbers.onnx", 3 * x + 0.5, x)


@example("ImplicitCastType: scalars in a script")
def test_implicit_cast() -> None:
    class ImplicitCastType(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):  # noqa: ANN001, ANN202
            y = x + 2
            return y + 3

    x = torch.tensor([1.0], dtype=torch.float32)
    tonnx.export(ImplicitCastType(), x, "implicit_cast.onnx", example_outputs=ImplicitCastType()(x))
    (got,) = run("implicit_cast.onnx", x)
    assert got.dtype == np.float32 and got[0] == 6.0


@example("lists of tensors as inputs and outputs")
def test_lists() -> None:
    class Takes(nn.Module):
        def forward(self, xs: list[torch.Tensor]) -> list[torch.Tensor]:
            return [x * 2 for x in xs]

    a, b = torch.rand(2), torch.rand(3)
    tonnx.export(Takes(), ([a, b],), "list.onnx")
    got = run("list.onnx", a, b)
    assert np.allclose(got[0], 2 * a) and np.allclose(got[1], 2 * b)


@example("export_to_pretty_string, select_model_mode_for_export, is_in_onnx_export")
def test_other_functions() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    assert "Gemm" in tonnx.export_to_pretty_string(model, torch.rand(1, 2), "ignored.onnx")
    with tonnx.select_model_mode_for_export(model, torch.onnx.TrainingMode.EVAL):
        assert not model.training
    assert model.training and not tonnx.is_in_onnx_export()


@example("positional arguments after the file")
def test_positional() -> None:
    model, x = nn.Linear(2, 3), torch.rand(1, 2)
    tonnx.export(model, x, "m.onnx", True, False)
    assert agrees("m.onnx", model(x), x)


@example("arguments that torch has dropped: aten, export_raw_ir, enable_onnx_checker and so on")
def test_dropped_arguments() -> None:
    model, x = nn.Linear(2, 3), torch.rand(1, 2)
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        tonnx.export(
            model,
            x,
            "m.onnx",
            export_raw_ir=True,
            enable_onnx_checker=True,
            strip_doc_string=True,
            use_external_data_format=True,
            do_constant_folding=True,
            example_outputs=model(x),
        )
    assert len(noted) == 1 and "export_raw_ir=True has no effect" in str(noted[0].message)
    assert agrees("m.onnx", model(x), x) and Path("m.onnx.data").exists()


@example("ONNX_FALLTHROUGH and ONNX_ATEN_FALLBACK")
def test_fallthrough() -> None:
    kinds = operator.attrgetter("_C._onnx.OperatorExportTypes")(torch)
    for kind, name in ((kinds.ONNX_FALLTHROUGH, "foo_forward"), (kinds.ONNX_ATEN_FALLBACK, "ATen")):
        args = torch.rand(2), torch.rand(2)
        program = tonnx.export(FooModel(0.5, 2), args, operator_export_type=kind)
        assert name in [n.op_type for n in program.model_proto.graph.node]


class SimpleCNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, kernel_size=3, padding=1)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.fc = nn.Linear(32 * 7 * 7, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc(x.view(-1, 32 * 7 * 7))


@example("SimpleCNN with verbose=True and opset_version=13")
def test_simple_cnn(capsys: pytest.CaptureFixture[str]) -> None:
    model, dummy = SimpleCNN(), torch.randn(1, 3, 28, 28)
    tonnx.export(model, dummy, "simple_cnn.onnx", verbose=True, opset_version=13)
    assert "MaxPool" in capsys.readouterr().out and onnx.load("simple_cnn.onnx").opset_import[0].version == 13
    assert agrees("simple_cnn.onnx", model(dummy), dummy)


@example("a dynamic batch with input_names, output_names and dynamic_axes")
def test_dynamic_batch() -> None:
    model = nn.Linear(256, 128)
    tonnx.export(
        model,
        torch.randn(1, 256),
        "dynamic_input.onnx",
        verbose=False,
        input_names=["input"],
        output_names=["output"],
        dynamic_axes={"input": {0: "batch_size"}, "output": {0: "batch_size"}},
        opset_version=13,
    )
    x = torch.randn(7, 256)
    assert agrees("dynamic_input.onnx", model(x), x)
    assert onnx.load("dynamic_input.onnx").graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch_size"


def square(x: torch.Tensor) -> torch.Tensor:
    return x * x


@example("a function of your own inside forward")
def test_custom_function() -> None:
    class CustomOpModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(16, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return square(self.linear(x))

    model, x = CustomOpModel(), torch.randn(1, 16)
    tonnx.export(model, x, "custom_op_model.onnx", opset_version=13)  # the guide says that it fails
    assert agrees("custom_op_model.onnx", model(x), x)


@example("a .pth file given to the converter")
def test_pth() -> None:
    torch.save(SimpleCNN().state_dict(), "cnn.pth")
    with pytest.raises(tonnx.Error, match="tonnx export my_net.py:Net --weights cnn.pth --input 1,3,224,224 cnn.onnx"):
        tonnx.convert("cnn.pth", "cnn.onnx")


@example("weights of a .pth into the class, and that to ONNX")
def test_pth_to_onnx() -> None:
    model, dummy = SimpleCNN(), torch.randn(1, 3, 28, 28)
    torch.save(model.state_dict(), "cnn.pth")
    loaded = SimpleCNN()
    loaded.load_state_dict(torch.load("cnn.pth"))
    with torch.no_grad():
        tonnx.export(loaded.eval(), dummy, "cnn.onnx")
    assert agrees("cnn.onnx", model(dummy), dummy)

"""Weights of a converted module, changed, go back into the file that it came from, whatever became of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.torch
import torch
from models import floats, make_model
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import tonnx

Cli = Callable[..., Any]


class Folded(nn.Module):
    """The exporter folds its BatchNorm, and turns and renames the weights of its linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 5, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(x)).relu().flatten(2).transpose(1, 2)
        result: torch.Tensor = self.second(self.first(x).relu())
        return result


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.body = nn.Linear(6, 6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.body(self.embed(ids)).tanh())
        return result


class Recurrent(nn.Module):
    def __init__(self, layer: Callable[..., nn.Module], **options: Any) -> None:
        super().__init__()
        self.rnn = layer(3, 4, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.rnn(x)[0]
        return result


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        return result


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.rand(1, 1, 8))
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layers(torch.cat([self.token.expand(2, -1, -1), x], 1))
        return result


def image() -> torch.Tensor:
    return torch.rand(2, 3, 6, 6)


def sequence() -> torch.Tensor:
    return torch.rand(2, 5, 8)


NETS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "folded batch norm": (Folded, image),
    "tied": (Tied, lambda: torch.tensor([[1, 4, 10], [0, 3, 3]])),
    "lstm": (lambda: Recurrent(nn.LSTM, bidirectional=True, num_layers=2), lambda: torch.rand(5, 2, 3)),
    "gru": (lambda: Recurrent(nn.GRU, batch_first=True), lambda: torch.rand(2, 5, 3)),
    "rnn": (lambda: Recurrent(nn.RNN, bias=False), lambda: torch.rand(5, 2, 3)),
    "attention": (Attention, sequence),
    "encoder": (Encoder, sequence),
    "transposed": (lambda: nn.Sequential(nn.ConvTranspose2d(3, 4, 3), nn.PReLU(4), nn.GroupNorm(2, 4)), image),
}


def trained(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Every float weight changed, those of one dimension and the statistics too."""
    return {k: v * (1 + 0.3 * torch.rand_like(v)) if v.is_floating_point() else v for k, v in state.items()}


def results(path: str | Path, *inputs: torch.Tensor) -> list[Any]:
    session = onnxruntime.InferenceSession(path)
    names = [given.name for given in session.get_inputs()]
    return list(session.run(None, {name: x.numpy() for name, x in zip(names, inputs, strict=True)}))


def assert_back(cli: Cli, source: str, *inputs: torch.Tensor, tolerance: float = 1e-4) -> onnx.ModelProto:
    """`new.onnx` has the layout of the source, and computes what its module computes with changed weights."""
    assert cli("convert", source, "net.py").returncode == 0
    state = trained(safetensors.torch.load_file("net.safetensors"))
    safetensors.torch.save_file(state, "net.safetensors")
    done = cli("convert", source, "new.onnx", "--weights", "net.safetensors")
    assert done.returncode == 0, done.stderr
    module = module_in(Path("net.py"))
    with torch.no_grad():
        wanted = module(*inputs)
    for got, want in zip(results("new.onnx", *inputs), [wanted], strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=tolerance, atol=tolerance)
    return onnx.load("new.onnx")


def module_in(path: Path) -> nn.Module:
    names: dict[str, Any] = {"__file__": str(path.resolve()), "__name__": "net"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    module: nn.Module = names["Model"].load()
    return module


def layout(model: onnx.ModelProto) -> list[Any]:
    weights = [(x.name, x.data_type, tuple(x.dims)) for x in model.graph.initializer]
    return [weights, [(x.op_type, tuple(x.input), tuple(x.output)) for x in model.graph.node]]


@pytest.mark.parametrize("name", NETS)
def test_changed_weights_go_back(name: str, cli: Cli) -> None:
    make, example = NETS[name]
    net, x = make().eval(), example()
    torch.onnx.export(net, (x,), "net.onnx", dynamo=False)
    before = onnx.load("net.onnx")
    after = assert_back(cli, "net.onnx", x)
    if name == "encoder":  # its layers begin with equal weights, of which the exporter wrote one
        names = [weight.name for weight in after.graph.initializer]
        assert len(names) > len(before.graph.initializer) and "layers.layers.1.norm1.bias" in names
        return
    assert layout(after) == layout(before)
    assert any(
        not np.array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b))
        for a, b in zip(after.graph.initializer, before.graph.initializer, strict=True)
    )


@pytest.mark.parametrize("name", NETS)
def test_unchanged_weights_change_nothing(name: str, cli: Cli) -> None:
    make, example = NETS[name]
    torch.onnx.export(make().eval(), (example(),), "net.onnx", dynamo=False)
    assert cli("convert", "net.onnx", "w.safetensors").returncode == 0
    assert cli("convert", "net.onnx", "plain.onnx").returncode == 0
    done = cli("convert", "net.onnx", "new.onnx", "--weights", "w.safetensors")
    assert done.returncode == 0, done.stderr
    assert Path("new.onnx").read_bytes() == Path("plain.onnx").read_bytes()


def test_the_state_dict_of_a_module_in_memory_goes_back(cli: Cli) -> None:
    """All names of a weight that layers share are in it."""
    torch.onnx.export(Tied().eval(), (torch.tensor([[1, 2]]),), "net.onnx", dynamo=False)
    module = tonnx.convert("net.onnx")
    with torch.no_grad():
        for weight in module.parameters():
            weight.mul_(1.5)
    torch.save(module.state_dict(), "w.pth")
    assert cli("convert", "net.onnx", "new.onnx", "--weights", "w.pth").returncode == 0
    ids = torch.tensor([[3, 10]])
    np.testing.assert_allclose(results("new.onnx", ids)[0], module(ids).detach(), rtol=1e-5, atol=1e-5)


def test_weights_of_a_program_go_back(cli: Cli) -> None:
    x = image()
    torch.export.save(torch.export.export(Folded().eval(), (x,)), "net.pt2")
    assert cli("convert", "net.pt2", "plain.onnx").returncode == 0
    assert_back(cli, "net.pt2", x)


def graph(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray]) -> onnx.ModelProto:
    weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    return make_model(nodes, [floats("x", 2, 4)], [floats("y", None, None)], weights)


def numbers(*shape: int) -> np.ndarray:
    return (np.random.default_rng(len(shape)).standard_normal(shape) + 2).astype(np.float32)


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], name="/" + output, **attributes)


COMPUTED: dict[str, tuple[list[onnx.NodeProto], dict[str, np.ndarray]]] = {
    "square": ([node("MatMul", "x fc.weight", "y")], {"fc.weight": numbers(4, 4)}),
    "transposed": (
        [node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "x t", "m"), node("Add", "m b", "y")],
        {"w": numbers(5, 4), "b": numbers(5)},
    ),
    "scaled": (
        [node("Mul", "w s", "v"), node("MatMul", "x v", "y")],
        {"w": numbers(4, 3), "s": numbers(3)},
    ),
    "both of a folded norm": (
        [
            node("Add", "var eps", "v"),
            node("Sqrt", "v", "d"),
            node("Div", "gamma d", "scale"),
            node("Mul", "mean scale", "m"),
            node("Sub", "beta m", "shift"),
            node("Mul", "x scale", "p"),
            node("Add", "p shift", "y"),
        ],
        {name: numbers(4) + i for i, name in enumerate(["var", "gamma", "mean", "beta"])}
        | {"eps": np.array(1e-3, np.float32)},
    ),
    "joined": (
        [node("Concat", "a b", "w", axis=0), node("MatMul", "x w", "y")],
        {"a": numbers(1, 3), "b": numbers(3, 3)},
    ),
    "parts of one": (
        [
            helper.make_node("Split", ["w"], ["a", "b"], name="/split", axis=1, num_outputs=2),
            node("MatMul", "x a", "p"),
            node("MatMul", "x b", "q"),
            node("Mul", "p q", "y"),
        ],
        {"w": numbers(4, 6)},
    ),
    "used twice": (
        [node("MatMul", "x w", "h"), node("Relu", "h", "r"), node("MatMul", "r w", "y")],
        {"w": numbers(4, 4)},
    ),
    "in half": (
        [node("Cast", "w", "f", to=TensorProto.FLOAT), node("MatMul", "x f", "y")],
        {"w": numbers(4, 3).astype(np.float16)},
    ),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_values_that_something_was_computed_of_are_found(name: str, cli: Cli) -> None:
    model = graph(*COMPUTED[name])
    onnx.save(model, "net.onnx")
    tolerance = 2e-3 if name == "in half" else 1e-4
    assert layout(assert_back(cli, "net.onnx", torch.rand(2, 4), tolerance=tolerance)) == layout(model)


def test_what_no_constant_gives_becomes_a_constant(cli: Cli) -> None:
    """Integers cannot be the new weights, and neither is there a factor of a product of matrices."""
    nodes = [
        node("Cast", "q", "f", to=TensorProto.FLOAT),
        node("Mul", "f s", "w"),
        node("MatMul", "x w", "h"),
        node("MatMul", "a b", "m"),
        node("MatMul", "h m", "y"),
    ]
    constants = {
        "q": np.arange(12, dtype=np.int8).reshape(4, 3),
        "s": np.array(0.1, np.float32),
        "a": numbers(3, 2),
        "b": numbers(2, 3),
    }
    onnx.save(graph(nodes, constants), "net.onnx")
    after = assert_back(cli, "net.onnx", torch.rand(2, 4))
    assert {x.name for x in after.graph.initializer} == {"w", "m"}
    onnx.checker.check_model(after, full_check=True)


def test_constants_of_nodes_and_functions_are_weights_too(cli: Cli) -> None:
    weight = node("Constant", "", "w", value=numpy_helper.from_array(numbers(4, 3)))
    del weight.input[:]
    model = graph([weight, node("MatMul", "x w", "y")], {})
    onnx.save(model, "net.onnx")
    after = assert_back(cli, "net.onnx", torch.rand(2, 4))
    assert [x.op_type for x in after.graph.node] == ["Constant", "MatMul"]


def test_constants_of_the_code_need_not_be_in_the_file(cli: Cli) -> None:
    scales = "/model.10/Constant_output_0"
    resize = helper.make_node("Resize", ["h", "", scales], ["y"], mode="nearest")
    constants = {"w": numbers(4, 3), scales: np.array([1, 2], np.float32)}
    onnx.save(graph([node("MatMul", "x w", "h"), resize], constants), "net.onnx")
    assert cli("convert", "net.onnx", "w.safetensors").returncode == 0
    [name] = [k for k, v in safetensors.torch.load_file("w.safetensors").items() if v.shape == (3, 4)]
    for weight in ({"w": torch.ones(4, 3)}, {name: torch.ones(3, 4)}):
        safetensors.torch.save_file(weight, "w.safetensors")
        done = cli("convert", "net.onnx", "new.onnx", "--weights", "w.safetensors")
        assert done.returncode == 0, done.stderr
        x = torch.rand(2, 4)
        np.testing.assert_allclose(results("new.onnx", x)[0], x.sum(1, keepdim=True).expand(2, 6), rtol=1e-5)


def test_names_of_neither_are_refused(cli: Cli) -> None:
    torch.onnx.export(Folded().eval(), (image(),), "net.onnx", dynamo=False)
    assert cli("convert", "net.onnx", "w.safetensors").returncode == 0
    state = safetensors.torch.load_file("w.safetensors")
    state["head.weight"] = state.pop("second.weight")
    safetensors.torch.save_file(state, "w.safetensors")
    done = cli("convert", "net.onnx", "new.onnx", "--weights", "w.safetensors")
    assert done.returncode == 1 and not Path("new.onnx").exists()
    assert "the file lacks second.weight; the model has no head.weight" in done.stderr


def test_one_weight_cannot_be_two(cli: Cli) -> None:
    torch.onnx.export(Tied().eval(), (torch.tensor([[1, 2]]),), "net.onnx", dynamo=False)
    state = tonnx.convert("net.onnx").state_dict()
    state["head.weight"] = state["head.weight"] + 1
    torch.save(state, "w.pth")
    done = cli("convert", "net.onnx", "new.onnx", "--weights", "w.pth")
    assert done.returncode == 1 and not Path("new.onnx").exists()
    assert "head.weight (it and embed.weight are one weight in the file, and differ)" in done.stderr


def test_a_module_that_is_one_class_has_other_names(cli: Cli) -> None:
    x = image()
    torch.onnx.export(Folded().eval(), (x,), "net.onnx", dynamo=False)
    assert cli("convert", "net.onnx", "flat.py", "--flat").returncode == 0
    state = trained(safetensors.torch.load_file("flat.safetensors"))
    safetensors.torch.save_file(state, "flat.safetensors")
    assert cli("convert", "net.onnx", "new.onnx", "--weights", "flat.safetensors").returncode == 0
    with torch.no_grad():
        wanted = module_in(Path("flat.py"))(x)
    np.testing.assert_allclose(results("new.onnx", x)[0], wanted.numpy(), rtol=1e-4, atol=1e-4)

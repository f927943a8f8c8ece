"""Generated code has the modules of the model that the file was made of: their names, their weights, their values."""

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
from torch import nn

import tonnx


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv2(torch.relu(self.conv1(x))) + self.shortcut(x))


class Convolutional(nn.Module):
    """Numbered blocks of several widths in sequences, and layers without weights between others."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 1))
        self.stage1 = nn.Sequential(Residual(8, 8, 1), Residual(8, 8, 1))
        self.stage2 = nn.Sequential(Residual(8, 16, 2), Residual(16, 16, 1), Residual(16, 16, 1))
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stage2(self.stage1(self.stem(x)))
        return self.head(x.mean((2, 3)))


class Mixing(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.gamma = nn.Parameter(torch.rand(width))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        weights = torch.softmax(self.query(y) @ self.key(y).transpose(1, 2) + mask, -1)
        return x + self.gamma * self.out(weights @ self.value(y))


class Stacked(nn.Module):
    """Layers that take a second value along, and a mask that is computed once."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layers = nn.ModuleList(Mixing(8) for _ in range(4))
        self.norm = nn.LayerNorm(8)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x, bias = self.embed(ids), (1.0 - mask.to(torch.float32))[:, None] * -100.0
        for layer in self.layers:
            x = layer(x, bias)
        return self.norm(x)


class Interleaved(nn.Module):
    """The second part is called between two calls of layers of the first: neither can be one step."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Module(), nn.Module()
        for part in (self.a, self.b):
            part.first, part.second, part.third = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.b.first(self.a.first(x)).tanh()
        x = self.b.second(self.a.second(x)).tanh()
        return self.a.third(x) - self.b.third(x)


class Shared(nn.Module):
    """One block, called three times, and a weight that another layer has too."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.block = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 6))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for _ in range(3):
            x = x + self.block(x)
        return x @ self.embed.weight.t()


class Flattening(nn.Module):
    """Layers without weights whose arguments are not those of the functions: nn.Flatten() keeps the first dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4), nn.Flatten(), nn.Linear(12, 4))
        self.b = nn.Sequential(nn.Linear(4, 4), nn.Flatten(0), nn.LayerNorm(24))
        self.c = nn.Sequential(nn.Linear(4, 4), nn.Flatten(0, 1), nn.Linear(4, 4))
        self.d = nn.Sequential(
            nn.Linear(4, 4), nn.LeakyReLU(0.3), nn.Softmax(1), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.a(x), self.b(x), self.c(x), self.d(x)


IMAGES = (torch.rand(2, 3, 16, 16),)
IDS = torch.randint(0, 11, (2, 5))
NETWORKS: dict[str, tuple[type[nn.Module], tuple[torch.Tensor, ...]]] = {
    "convolutional": (Convolutional, IMAGES),
    "stacked": (Stacked, (IDS, torch.ones(2, 5, dtype=torch.int64))),
    "interleaved": (Interleaved, (torch.rand(3, 4),)),
    "shared": (Shared, (IDS,)),
    "flattening": (Flattening, (torch.rand(2, 3, 4),)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_state_dict_is_the_originals(name: str) -> None:
    make, args = NETWORKS[name]
    original = make().eval()
    tonnx.export(original, args, "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    converted = load(Path("m.py"))
    torch.testing.assert_close(converted(*args), original(*args))
    state = converted.state_dict()
    for key, tensor in original.state_dict().items():
        assert torch.equal(state[key], tensor), key
    fresh = make().eval()
    fresh.load_state_dict(state, strict=name != "shared")  # its embedding is there twice, as it is and turned
    torch.testing.assert_close(fresh(*args), original(*args))
    in_memory = tonnx.convert("m.onnx")
    assert in_memory.state_dict().keys() == state.keys()


@pytest.mark.parametrize("name", NETWORKS)
def test_flat_code_has_no_modules_inside_modules(name: str) -> None:
    make, args = NETWORKS[name]
    original = make().eval()
    tonnx.export(original, args, "m.onnx")
    flat = tonnx.convert("m.onnx", flat=True)
    assert all(key.count(".") <= 1 for key in flat.state_dict())
    torch.testing.assert_close(flat(*args), original(*args))


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
        )
        self.scale = nn.Parameter(torch.rand(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x).mean((2, 3)) * self.scale


def test_every_weight_is_kept_where_nothing_is_folded() -> None:
    original, x = Normalised().eval(), torch.rand(2, 3, 8, 8)
    for module in original.body:
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    tonnx.export(original, (x,), "m.onnx", do_constant_folding=False)
    converted = tonnx.convert("m.onnx")
    state = {key: tensor for key, tensor in original.state_dict().items() if "num_batches" not in key}
    assert {key for key in state if not torch.equal(converted.state_dict()[key], state[key])} == set()
    torch.testing.assert_close(converted(x), original(x))
    want = onnxruntime.InferenceSession("m.onnx").run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(original(x).detach(), want, rtol=1e-4, atol=1e-5)


def code_of(name: str) -> str:
    make, args = NETWORKS[name]
    tonnx.export(make().eval(), args, "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    return Path("m.py").read_text()


def test_blocks_that_are_alike_are_one_class() -> None:
    code = code_of("convolutional")
    assert re.findall(r"^class (\w+)", code, re.MULTILINE) == ["Residual", "Model"]
    assert len(re.findall(r"= nn\.Sequential\(", code)) == 3
    assert "nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 1)" in code
    code = code_of("stacked")
    assert re.findall(r"^class (\w+)", code, re.MULTILINE) == ["Mixing", "Model"]
    assert "self.layers = nn.ModuleList(Mixing() for _ in range(4))" in code
    assert "for layer in self.layers:" in code


def dotted_model(names: list[str]) -> onnx.ModelProto:
    """Linear layers one behind the other, with weights of those names."""
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for i, name in enumerate(names):
        weights.append(numpy_helper.from_array(random.random((4, 4), np.float32), name))
        nodes.append(helper.make_node("Gemm", [last, name], [f"y{i}"], transB=1, name=f"node_{i}"))
        nodes.append(helper.make_node("Tanh", [f"y{i}"], [f"z{i}"], name=f"tanh_{i}"))
        last = f"z{i}"
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 4]) for n in ("x", last)]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.parametrize(
    "names",
    [
        ["a.weight", "a.b.weight", "a.b.c.weight"],  # a layer, and a place for others
        ["0.weight", "1.weight", "7.weight"],
        ["m.0.weight", "m.x.weight", "m.1.weight"],
        ["class.weight", "lambda.def.weight", "self.weight", "self.self.weight"],
        ["forward.weight", "type.to.weight", "state_dict.half.weight"],
        ["__import__.weight", "a.__class__.weight", "é.ü.weight"],
        ["x.1000000000.weight", "x.00.weight", "x.-1.weight"],
        ["a.b-0.weight", "a.b-1.weight", "c.w-0.weight", "c.weight", "a.b-0-c.d.weight"],
        ["m.5000.weight", "m.999999.weight", "s.0.weight", "s.70.weight"],  # numbers with nothing between them
        ["m.keys.weight", "m.values.weight", "m.pop.weight", "n.items.weight", "n.update.x.weight"],
        [".".join(["deep"] * 300) + ".weight", ".".join(["deep"] * 299) + ".weight"],
        ["Model.weight", "nn.weight", "torch.nn.weight", "F.weight", "Path.a.weight"],
        ["...weight", "..weight", "a..b.weight", "weight"],
    ],
)
def test_names_of_any_kind(names: list[str]) -> None:
    model = dotted_model(names)
    x = np.random.default_rng(1).random((2, 4), np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    onnx.save(model, "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    for module in (tonnx.convert(model), load(Path("m.py"))):
        np.testing.assert_allclose(module(torch.from_numpy(x)).detach(), want, rtol=1e-5, atol=1e-6)
        assert len(module.state_dict()) == len(names)


def test_numbered_layers_keep_their_numbers() -> None:
    module = tonnx.convert(dotted_model(["m.2.weight", "m.5.weight", "m.6.weight"]))
    assert list(module.state_dict()) == ["m.2.weight", "m.5.weight", "m.6.weight"]


def test_modules_that_exporters_note_are_used() -> None:
    make, args = NETWORKS["stacked"]
    tonnx.export(make().eval(), args, "m.onnx")
    model = onnx.load("m.onnx")
    for node in model.graph.node:  # the newer exporter of PyTorch names nodes so, and notes the rest
        notes = {note.key: note.value for note in node.metadata_props}
        del node.metadata_props[:]
        path = notes.get("torch.module", "")
        scopes = ["", *(".".join(path.split(".")[: i + 1]) for i in range(path.count(".") + 1)), "op"]
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=str(scopes))
        node.name = f"node_{node.output[0]}"
    tonnx.convert(model, "m.py")
    code = Path("m.py").read_text()
    assert "for layer in self.layers:" in code and len(re.findall(r"^class ", code, re.MULTILINE)) == 2


@pytest.mark.parametrize(
    "word", ["super", "range", "list", "classmethod", "load_file", "itertools", "nn", "a b", "__x__"]
)
def test_a_class_that_a_file_names_hides_nothing(word: str) -> None:
    """Generated code says these words itself; so it does those of an input."""
    make, args = NETWORKS["stacked"]
    original = make().eval()
    tonnx.export(original, args, "m.onnx", input_names=[word.strip("_"), "mask"])
    model = onnx.load("m.onnx")
    for node in model.graph.node:
        for note in node.metadata_props:
            if note.key == "torch.class":
                note.value = f"package.{word}"
    tonnx.convert(model, "m.py")
    names = re.findall(r"^class (\w+)|def forward\(self, (\w+)", Path("m.py").read_text(), re.MULTILINE)
    assert word not in {name for pair in names for name in pair}
    torch.testing.assert_close(load(Path("m.py"))(*args), original(*args))


def test_an_option_for_code_alone() -> None:
    onnx.save(dotted_model(["a.weight"]), "m.onnx")
    with pytest.raises(tonnx.Error, match="asked of code"):
        tonnx.convert("m.onnx", "m.pt2", flat=True)


def test_what_an_exporter_computed_is_no_parameter() -> None:
    random = np.random.default_rng(0)
    names = ("masked_fill_1", "full_like", "layer.gamma", "mean", "scale_1")
    weights = [numpy_helper.from_array(random.random((2, 3), np.float32), name) for name in names]
    nodes, last = [], "x"
    for i, name in enumerate(names):
        nodes.append(helper.make_node("Mul" if i % 2 else "Add", [last, name], [f"y{i}"]))
        last = f"y{i}"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "m.onnx")
    module = tonnx.convert("m.onnx")
    assert set(dict(module.named_buffers())) == {"masked_fill_1", "full_like"}
    assert set(dict(module.named_parameters())) == {"layer.gamma", "mean", "scale_1"}

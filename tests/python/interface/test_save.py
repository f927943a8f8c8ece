"""tonnx.save: the code of a module in memory, with the weights that it has now."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import safetensors.torch
import torch
from models import dynamic_flatten_net, feeds_of, floats, make_model, residual_net
from onnx import helper, numpy_helper
from torch import nn

import tonnx


def load_code(path: Path, **options: Any) -> nn.Module:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model: nn.Module = module.Model.load(**options)
    return model


def trained(source: onnx.ModelProto) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A module after a step of training: all its parameters, and the statistics of its normalisations, have changed."""
    model = tonnx.convert(source)
    inputs = tuple(map(torch.from_numpy, feeds_of(source).values()))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (model(*inputs) ** 2).sum().backward()
    optimizer.step()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.01  # the gradient of a bias in front of a normalisation is nothing but rounding
    assert all(not torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    return model.eval(), inputs


@pytest.mark.parametrize("source", [residual_net(), dynamic_flatten_net()], ids=["residual", "flatten"])
def test_the_code_has_the_weights_of_now(source: onnx.ModelProto) -> None:
    model, inputs = trained(source)
    want = model(*inputs)
    tonnx.save(model, "net.py")
    torch.testing.assert_close(load_code(Path("net.py"))(*inputs), want)
    Path("converted").mkdir()
    tonnx.convert(source, "converted/net.py")
    lines = Path("net.py").read_text().splitlines()
    others = Path("converted/net.py").read_text().splitlines()
    # what counts the weights counts the batch counters too, which no model file has
    assert [line for line in lines if "Weights" not in line] == [line for line in others if "Weights" not in line]
    assert any(line.startswith("Weights  net.safetensors: ") for line in lines)


def test_weights_alone_go_where_the_ending_says() -> None:
    model, _ = trained(residual_net())
    tonnx.save(model, Path("w.safetensors"))
    tonnx.save(model, "w.pth")
    assert sorted(p.name for p in Path().iterdir()) == ["w.pth", "w.safetensors"]
    for found in (safetensors.torch.load_file("w.safetensors"), torch.load("w.pth")):
        torch.testing.assert_close(dict(found), dict(model.state_dict()))


def test_copies_of_other_types_are_saved() -> None:
    model, inputs = trained(residual_net())
    half = pickle.loads(pickle.dumps(model)).to(torch.bfloat16)
    tonnx.save(half, "half.py")
    loaded = load_code(Path("half.py"))
    assert next(loaded.parameters()).dtype == torch.bfloat16
    inputs = tuple(x.to(torch.bfloat16) for x in inputs)
    torch.testing.assert_close(loaded(*inputs), half(*inputs))


def test_weights_in_any_order_of_memory() -> None:
    model, inputs = trained(residual_net())
    strided = copy.deepcopy(model).to(memory_format=torch.channels_last)
    strided.fc.weight = nn.Parameter(strided.fc.weight.detach().t().contiguous().t())
    tonnx.save(strided, "net.py")
    torch.testing.assert_close(load_code(Path("net.py"))(*inputs), model(*inputs))


def test_a_file_that_is_being_used_is_replaced() -> None:
    """The loaded module does not depend on its file either."""
    model, inputs = trained(residual_net())
    tonnx.save(model, "net.py")
    loaded = load_code(Path("net.py"))
    want = loaded(*inputs)
    size = Path("net.safetensors").stat().st_size
    Path("net.safetensors").write_bytes(b"\0" * (size // 2))
    torch.testing.assert_close(loaded(*inputs), want)
    tonnx.save(model, "net.py")
    torch.testing.assert_close(load_code(Path("net.py"))(*inputs), want)


def test_a_model_without_weights() -> None:
    model = tonnx.convert(make_model([helper.make_node("Neg", ["x"], ["y"])], [floats("x", 2)], [floats("y", 2)]))
    tonnx.save(model, "net.py")
    assert torch.equal(load_code(Path("net.py"))(torch.ones(2)), -torch.ones(2))
    assert not Path("net.safetensors").exists()


def replaced(name: str, layer: nn.Module) -> nn.Module:
    model = tonnx.convert(residual_net())
    model.set_submodule(name, layer)
    return model.eval()


LAYERS: list[tuple[str, Callable[[], nn.Module], str]] = [
    ("fc", lambda: nn.Linear(8, 7), "self.fc = nn.Linear(8, 7)"),
    ("fc", lambda: nn.Linear(8, 7, bias=False), "self.fc = nn.Linear(8, 7, bias=False)"),
    (
        "fc",
        lambda: nn.Sequential(nn.Dropout(0.3), nn.Linear(8, 6), nn.GELU(approximate="tanh"), nn.Linear(6, 2)),
        'nn.Sequential(nn.Dropout(0.3), nn.Linear(8, 6), nn.GELU(approximate="tanh"), nn.Linear(6, 2))',
    ),
    ("fc", nn.Identity, "self.fc = nn.Identity()"),
    ("bn1", lambda: nn.BatchNorm2d(8, eps=1e-5, momentum=0.2), "nn.BatchNorm2d(8, momentum=0.2)"),
    ("bn1", lambda: nn.GroupNorm(2, 8), "nn.GroupNorm(2, 8)"),
    ("bn1", lambda: nn.InstanceNorm2d(8, affine=True), "nn.InstanceNorm2d(8, affine=True)"),
    ("bn1", lambda: nn.Conv2d(8, 8, (3, 1), padding="same", bias=False), 'nn.Conv2d(8, 8, (3, 1), padding="same"'),
    ("bn1", lambda: nn.PReLU(8), "nn.PReLU(8)"),
    ("bn1", lambda: nn.LeakyReLU(0.2, inplace=True), "nn.LeakyReLU(0.2, inplace=True)"),
]


@pytest.mark.parametrize(("name", "make", "text"), LAYERS, ids=[f"{row[0]}: {row[2]}" for row in LAYERS])
def test_another_layer_is_written_into_the_code(name: str, make: Callable[[], nn.Module], text: str) -> None:
    model = replaced(name, make().eval())
    inputs = tuple(map(torch.from_numpy, feeds_of(residual_net()).values()))
    tonnx.save(model, "net.py")
    code = Path("net.py").read_text()
    assert text in code and f"\nChanged  {name}: sizes of outputs may be others\n" in code
    loaded = load_code(Path("net.py"))
    torch.testing.assert_close(loaded(*inputs), model(*inputs))
    assert repr(loaded) == repr(model)
    assert code.count("nn.Linear(8, 5)") == (0 if name == "fc" else 1)  # nothing is made in vain


def test_layers_inside_of_others_are_written_too() -> None:
    """In the list of a Sequential they take the place of the old one; in classes they are set behind everything."""
    model = tonnx.convert(residual_net())
    changed = [name for name, part in model.named_modules() if isinstance(part, nn.Conv2d) and "." in name]
    assert len(changed) > 1
    for name in changed:
        old = model.get_submodule(name)
        assert isinstance(old, nn.Conv2d)
        model.set_submodule(
            name, nn.Conv2d(old.in_channels, old.out_channels, old.kernel_size, old.stride, old.padding, bias=True)
        )
    inputs = tuple(map(torch.from_numpy, feeds_of(residual_net()).values()))
    tonnx.save(model, "net.py")
    torch.testing.assert_close(load_code(Path("net.py"))(*inputs), model(*inputs))


def test_a_saved_change_is_converted_and_exported() -> None:
    model = replaced("fc", nn.Linear(8, 2))
    inputs = tuple(map(torch.from_numpy, feeds_of(residual_net()).values()))
    tonnx.save(model, "net.py")
    tonnx.export(load_code(Path("net.py")), inputs, "net.onnx")
    torch.testing.assert_close(tonnx.convert("net.onnx")(*inputs), model(*inputs))


def test_changes_that_no_code_says_are_errors() -> None:
    class Linear(nn.Linear):
        pass

    normed = nn.utils.parametrizations.weight_norm(nn.Linear(8, 5))
    hooked = nn.Linear(8, 4)
    hooked.register_forward_hook(lambda *_: None)
    encoder = nn.TransformerEncoderLayer(8, 2)
    for layer in (Linear(8, 5), normed, hooked, encoder, nn.Sequential(Linear(8, 5))):
        with pytest.raises(tonnx.Error, match="'fc' is .*, and the code makes it Linear.*whose arguments can be read"):
            tonnx.save(replaced("fc", layer), "net.py")
    extended = tonnx.convert(residual_net())
    extended.more = nn.Parameter(torch.ones(2))
    with pytest.raises(tonnx.Error, match=r"more.*tensor of \[2\]"):
        tonnx.save(extended, "net.py")
    assert not list(Path().iterdir())


def test_weights_alone_are_those_of_any_layers() -> None:
    model = replaced("fc", nn.utils.parametrizations.weight_norm(nn.Linear(8, 5)))
    tonnx.save(model, "w.safetensors")
    torch.testing.assert_close(safetensors.torch.load_file("w.safetensors"), dict(model.state_dict()))


def test_what_is_not_converted_is_an_error() -> None:
    model = tonnx.convert(residual_net())
    base: Any = type(model)

    class Mine(base):
        pass

    for other in (nn.Linear(2, 2), Mine(), torch.fx.symbolic_trace(model)):
        with pytest.raises(tonnx.Error, match="modules that tonnx.convert returned"):
            tonnx.save(other, "net.py")
    with pytest.raises(tonnx.Error, match=r"net\.onnx.*writes \.py, \.safetensors and \.pth"):
        tonnx.save(model, "net.onnx")


def test_weights_without_values_are_an_error() -> None:
    model = tonnx.convert(residual_net())
    sparse = copy.deepcopy(model)
    sparse.fc.weight = nn.Parameter(sparse.fc.weight.detach().to_sparse())
    for each in (model.to("meta"), sparse):
        with pytest.raises(tonnx.Error, match="is not a plain tensor"):
            tonnx.save(each, "net.py")
    assert not list(Path().iterdir())


# A layer of the user's own, with weights, in a module that other processes can import.
USER_MODULE = """
import torch
from torch import nn

import tonnx


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.weight


@tonnx.add_converter(operation_type="Scale", version=1, domain="my.domain")
def _(node, graph):
    module = Scale(node.attributes["size"])
    return tonnx.OperationConverterResult(module, tonnx.onnx_mapping_from_node(node))
"""
CONVERTED = """
import copy, torch, tonnx, user_layers
model = tonnx.convert("model.onnx")
with torch.no_grad():
    for parameter in model.parameters():
        parameter.fill_(3)
torch.save(model, "model.pt")
tonnx.save(copy.deepcopy(model), "net.py")
try:
    type(model)()
except tonnx.Error as error:
    assert "copy.deepcopy" in str(error)
else:
    raise AssertionError
"""
USED = """
import torch
x = torch.tensor([1.0, -2.0])
want = [-3.0, 6.0]
model = torch.load("model.pt", weights_only=False)
assert model(x).tolist() == want
import tonnx
tonnx.save(model, "again.py")
import net, again
for code in (net, again):
    assert code.Model.load()(x).tolist() == want
"""


def test_layers_of_the_users_own_go_along() -> None:
    nodes = [
        helper.make_node("Scale", ["x"], ["a"], "/scale/Scale", domain="my.domain", size=2),
        helper.make_node("Neg", ["a"], ["y"], "/neg/Neg"),
    ]
    onnx.save(make_model(nodes, [floats("x", 2)], [floats("y", 2)], domains=[("my.domain", 1)]), "model.onnx")
    Path("user_layers.py").write_text(USER_MODULE)
    for code in (CONVERTED, USED):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "from user_layers import Scale" in Path("net.py").read_text()


def test_layers_that_no_code_can_make_are_an_error() -> None:
    class Local(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    tonnx.add_converter("Local", 1, "test.save")(
        lambda node, graph: tonnx.OperationConverterResult(Local(), tonnx.onnx_mapping_from_node(node))
    )
    node = helper.make_node("Local", ["x"], ["y"], domain="test.save")
    model = tonnx.convert(make_model([node], [floats("x", 2)], [floats("y", 2)], domains=[("test.save", 1)]))
    assert torch.equal(copy.deepcopy(model)(torch.ones(2)), 2 * torch.ones(2))
    with pytest.raises(tonnx.Error, match="Local cannot be imported by generated code"):
        tonnx.save(model, "net.py")


def test_integers_and_other_constants_are_kept() -> None:
    table = numpy_helper.from_array(np.arange(12, dtype=np.int64).reshape(4, 3), "table")
    node = helper.make_node("Gather", ["table", "i"], ["y"], "/table/Gather")
    index = helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [2])
    found = helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [2, 3])
    model = tonnx.convert(make_model([node], [index], [found], [table]))
    tonnx.save(model, "net.py")
    assert load_code(Path("net.py"))(torch.tensor([3, 0])).tolist() == [[9, 10, 11], [0, 1, 2]]

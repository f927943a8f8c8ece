"""tonnx.add_converter: a user's own module for an operator, found by type, domain and version."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import feeds_of, floats, make_model, random_tensor
from onnx import helper
from torch import nn

import tonnx

# A converter as a user's own package has it: an importable module, which generated code can import its class from.
USER_MODULE = """
import torch
from torch import nn

import tonnx


class Affine(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale = scale
        self.shift = shift

    def forward(self, x):
        return x * self.scale + self.shift


@tonnx.add_converter(operation_type="Affine", version=1, domain="my.domain")
def _(node: tonnx.OnnxNode, graph: tonnx.OnnxGraph) -> tonnx.OperationConverterResult:
    module = Affine(node.attributes["scale"], node.attributes.get("shift", 0.0))
    return tonnx.OperationConverterResult(
        torch_module=module,
        onnx_mapping=tonnx.OnnxMapping(inputs=node.input_values, outputs=node.output_values),
    )
"""


@pytest.fixture
def fresh_domain(request: pytest.FixtureRequest) -> Iterator[str]:
    """A domain of this test's own, as registrations last as long as the process."""
    yield f"test.{request.node.name}"


def affine_model(domain: str, version: int = 1) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "/relu/Relu"),
        helper.make_node("Affine", ["a"], ["b"], "/affine/Affine", domain=domain, scale=2.0, shift=-1.0),
        helper.make_node("Neg", ["b"], ["y"], "/neg/Neg"),
    ]
    return make_model(nodes, [floats("x", "batch", 3)], [floats("y", "batch", 3)], domains=[(domain, version)])


class Affine(nn.Module):
    def __init__(self, scale: float, shift: float) -> None:
        super().__init__()
        self.scale, self.shift = scale, shift

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale + self.shift


def result(
    module: nn.Module, node: tonnx.OnnxNode, inputs: tuple[str, ...] | None = None
) -> tonnx.OperationConverterResult:
    mapping = tonnx.OnnxMapping(inputs=node.input_values if inputs is None else inputs, outputs=node.output_values)
    return tonnx.OperationConverterResult(torch_module=module, onnx_mapping=mapping)


def test_the_module_runs_in_its_place(fresh_domain: str) -> None:
    seen: list[tonnx.OnnxNode] = []

    @tonnx.add_converter(operation_type="Affine", version=1, domain=fresh_domain)
    def convert_affine(node: tonnx.OnnxNode, graph: tonnx.OnnxGraph) -> tonnx.OperationConverterResult:
        seen.append(node)
        return result(Affine(node.attributes["scale"], node.attributes["shift"]), node)

    model = tonnx.convert(affine_model(fresh_domain))
    assert any(isinstance(m, Affine) for m in model.modules())
    x = torch.from_numpy(feeds_of(affine_model(fresh_domain))["x"])
    torch.testing.assert_close(model(x), -(x.relu() * 2 - 1))
    (node,) = seen
    assert (node.name, node.operation_type, node.domain) == ("/affine/Affine", "Affine", fresh_domain)
    assert (tuple(node.input_values), tuple(node.output_values)) == (("a",), ("b",))
    assert dict(node.attributes) == {"scale": 2.0, "shift": -1.0}


def test_the_decorator_returns_the_function(fresh_domain: str) -> None:
    def converter(node: Any, graph: Any) -> Any: ...

    assert tonnx.add_converter(operation_type="Anything", version=1, domain=fresh_domain)(converter) is converter


def test_registering_twice_is_an_error(fresh_domain: str) -> None:
    tonnx.add_converter(operation_type="Twice", version=1, domain=fresh_domain)(lambda node, graph: None)
    with pytest.raises(ValueError, match="already registered"):
        tonnx.add_converter(operation_type="Twice", version=1, domain=fresh_domain)(lambda node, graph: None)


def test_another_version_is_another_operator(fresh_domain: str) -> None:
    tonnx.add_converter(operation_type="Affine", version=2, domain=fresh_domain)(
        lambda node, graph: result(Affine(1, 1), node)
    )
    with pytest.raises(tonnx.Error) as caught:
        tonnx.convert(affine_model(fresh_domain, version=1))
    assert caught.value.kind == "unsupported"
    assert "Affine" in str(caught.value)
    tonnx.convert(affine_model(fresh_domain, version=2))


def test_the_graph_gives_constants(fresh_domain: str) -> None:
    """A converter may take a weight out of the graph into its module, and leave it out of the inputs."""

    class Scale(nn.Module):
        def __init__(self, weight: torch.Tensor) -> None:
            super().__init__()
            self.weight = nn.Parameter(weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    @tonnx.add_converter(operation_type="Scale", version=1, domain=fresh_domain)
    def convert_scale(node: tonnx.OnnxNode, graph: tonnx.OnnxGraph) -> tonnx.OperationConverterResult:
        assert tuple(graph.input_values) == ("x",) and tuple(graph.output_values) == ("y",)
        weight = graph.initializers[node.input_values[1]].to_torch()
        return result(Scale(weight), node, inputs=node.input_values[:1])

    weight = random_tensor(np.random.default_rng(0), "w", 3)
    node = helper.make_node("Scale", ["x", "w"], ["y"], "/scale/Scale", domain=fresh_domain)
    source = make_model([node], [floats("x", 2, 3)], [floats("y", 2, 3)], [weight], domains=[(fresh_domain, 1)])
    model = tonnx.convert(source)
    assert [tuple(p.shape) for p in model.parameters()] == [(3,)]
    x = torch.ones(2, 3)
    torch.testing.assert_close(model(x), torch.from_numpy(onnx.numpy_helper.to_array(weight)).expand(2, 3))


def test_several_outputs_and_a_left_out_input(fresh_domain: str) -> None:
    class Parts(nn.Module):
        def forward(self, x: torch.Tensor, low: Any = None, high: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
            assert low is None
            return x.clamp(max=high), x

    tonnx.add_converter(operation_type="Parts", version=1, domain=fresh_domain)(lambda n, g: result(Parts(), n))
    nodes = [
        helper.make_node("Parts", ["x", "", "h"], ["a", "b"], "parts", domain=fresh_domain),
        helper.make_node("Sub", ["b", "a"], ["y"]),
    ]
    source = make_model(nodes, [floats("x", 3), floats("h", 3)], [floats("y", 3)], domains=[(fresh_domain, 1)])
    x, high = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 2.0, 2.0])
    torch.testing.assert_close(tonnx.convert(source)(x, high), torch.tensor([0.0, 0.0, 1.0]))


def test_an_error_in_a_converter_reaches_the_caller(fresh_domain: str) -> None:
    @tonnx.add_converter(operation_type="Affine", version=1, domain=fresh_domain)
    def fails(node: tonnx.OnnxNode, graph: tonnx.OnnxGraph) -> tonnx.OperationConverterResult:
        raise NotImplementedError("only a scale of one")

    with pytest.raises(Exception, match="only a scale of one"):
        tonnx.convert(affine_model(fresh_domain))


def test_generated_code_imports_the_class_from_where_it_lives(tmp_path: Path) -> None:
    (tmp_path / "user_ops.py").write_text(USER_MODULE)
    onnx.save(affine_model("my.domain"), tmp_path / "model.onnx")
    convert = "import user_ops, tonnx; tonnx.convert('model.onnx', 'model.py')"
    done = subprocess.run([sys.executable, "-c", convert], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "from user_ops import Affine" in (tmp_path / "model.py").read_text()
    x = torch.tensor([[1.0, -2.0, 3.0]])
    run = "import torch; from model import Model; print(Model.load()(torch.tensor([[1.0, -2.0, 3.0]])).tolist())"
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str((-(x.relu() * 2 - 1)).tolist())


def test_override_replaces_a_converter(fresh_domain: str) -> None:
    register = {"operation_type": "Affine", "version": 1, "domain": fresh_domain}
    tonnx.add_converter(**register)(lambda node, graph: result(Affine(1, 1), node))
    tonnx.add_converter(**register, override=True)(lambda node, graph: result(Affine(3, 0), node))
    x = torch.tensor([[1.0, -2.0, 3.0]])
    torch.testing.assert_close(tonnx.convert(affine_model(fresh_domain))(x), -(x.relu() * 3))


def test_a_cell_that_runs_again_replaces_its_converter(fresh_domain: str) -> None:
    x = torch.tensor([[1.0, -2.0, 3.0]])
    for scale in (1.0, 5.0):

        @tonnx.add_converter(operation_type="Affine", version=1, domain=fresh_domain)
        def convert_affine(
            node: tonnx.OnnxNode, graph: tonnx.OnnxGraph, scale: float = scale
        ) -> tonnx.OperationConverterResult:
            return result(Affine(scale, 0), node)

        torch.testing.assert_close(tonnx.convert(affine_model(fresh_domain))(x), -(x.relu() * scale))


MAIN = (
    USER_MODULE.replace("x * self.scale + self.shift", "twice(x) * HALF * self.scale + math.floor(self.shift)").replace(
        "class Affine", "HALF = 0.5\n\n\ndef twice(x):\n    return x * 2\n\n\nclass Affine"
    )
    + "\ntonnx.convert('model.onnx', 'model.py')\n"
)


def test_generated_code_has_the_classes_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import math\n" + MAIN)
    onnx.save(affine_model("my.domain"), tmp_path / "model.onnx")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (tmp_path / "script.py").unlink()
    run = "import torch; from model import Model; print(Model.load()(torch.tensor([[1.0, -2.0, 3.0]])).tolist())"
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    x = torch.tensor([[1.0, -2.0, 3.0]])
    assert done.stdout.strip() == str((-(x.relu() * 2 - 1)).tolist())


def test_what_generated_code_cannot_say_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import math\n" + MAIN.replace("HALF = 0.5", "HALF = torch.tensor(0.5)"))
    onnx.save(affine_model("my.domain"), tmp_path / "model.onnx")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "'HALF' of __main__ cannot be written into generated code" in done.stderr
    assert not (tmp_path / "model.py").exists()


@pytest.mark.parametrize("ending", ["pt2", "pt"])
def test_programs_have_the_layers_of_converters(fresh_domain: str, tmp_path: Path, ending: str) -> None:
    tonnx.add_converter(operation_type="Affine", version=1, domain=fresh_domain)(
        lambda node, graph: result(Affine(node.attributes["scale"], node.attributes["shift"]), node)
    )
    target = tmp_path / f"model.{ending}"
    tonnx.convert(affine_model(fresh_domain), target)
    model = torch.export.load(target).module() if ending == "pt2" else torch.jit.load(target)
    for rows in (1, 2, 5):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(model(x), -(x.relu() * 2 - 1))


LOCAL_NAMES = """
import torch

x = torch.ones(3)  # what a notebook has lying about
i = object()
scale = shift = part = total = inner = y = bias = found = key = open("/dev/null")
OFFSET = 1.0


def applied(x, *, bias=OFFSET, **key):
    def inner(y):
        nonlocal total
        total = y + 0
        return total

    total = 0
    found = [i * 1 for i in [inner(x)]]
    with torch.no_grad() as part:
        return (lambda y: y)(found[0]) * 1 + bias - bias
"""


def test_names_of_a_function_are_not_those_of_the_script(tmp_path: Path) -> None:
    script = LOCAL_NAMES + USER_MODULE.replace("x * self.scale", "applied(x) * self.scale")
    (tmp_path / "script.py").write_text(script + "\ntonnx.convert('model.onnx', 'model.py')\n")
    onnx.save(affine_model("my.domain"), tmp_path / "model.onnx")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "model.py").read_text()
    assert "\nOFFSET = 1.0\n" in text
    assert not re.search(r"^(x|i|scale|shift|part|total|inner|y|bias|found|key) = ", text, re.MULTILINE)
    run = "import torch; from model import Model; print(Model.load()(torch.tensor([[1.0, -2.0, 3.0]])).tolist())"
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, capture_output=True, text=True)
    x = torch.tensor([[1.0, -2.0, 3.0]])
    assert done.stdout.strip() == str((-(x.relu() * 2 - 1)).tolist()), done.stderr

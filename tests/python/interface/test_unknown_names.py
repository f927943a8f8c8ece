"""Names that nobody has: every option that takes a name says that it does not know it, and which names there are."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import floats, make_model, random_tensor
from onnx import helper
from recorded_program import outcome
from torch import nn

import tonnx

COUNT = 30
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def old_model() -> None:
    """A file of IR version 3, which lists its weights among its inputs; the one input that it has is `input`."""
    names = [f"weight{i}" for i in range(COUNT)]
    values = ["input", *(f"hidden{i}" for i in range(COUNT))]
    nodes = [helper.make_node("MatMul", [values[i], names[i]], [values[i + 1]]) for i in range(COUNT)]
    inputs = [floats("input", "n", 3), *(floats(name, 3, 3) for name in names)]
    outputs = [floats(values[-1], "n", 3), floats("hidden3", "n", 3)]
    model = make_model(nodes, inputs, outputs, [random_tensor(RNG, name, 3, 3) for name in names])
    model.ir_version = 3
    onnx.save(model, "old.onnx")
    np.savez("images.npz", images=np.ones((1, 3), np.float32))
    np.savez("more.npz", input=np.ones((1, 3), np.float32), more=np.ones(1, np.float32))


NO_IMAGES = "the model has no input 'images'; it has: input"
ON_FILES: dict[str, tuple[Callable[[], Any], str]] = {
    "input_shapes of convert": (lambda: tonnx.convert("old.onnx", input_shapes={"images": [1, 3]}), NO_IMAGES),
    "a weight is no input": (
        lambda: tonnx.convert("old.onnx", "o.onnx", input_shapes={"weight3": [3, 3]}),
        "the model has no input 'weight3'; it has: input",
    ),
    "dynamic": (lambda: tonnx.convert("old.onnx", "o.pt2", dynamic={"images": {0: "n"}}), NO_IMAGES),
    "limits": (
        lambda: tonnx.convert("old.onnx", limits={"memori": "1G"}),
        "there is no limit 'memori'; there are: memory, text, steps, nodes",
    ),
    "input_shapes of simplify": (lambda: tonnx.simplify("old.onnx", input_shapes={"images": [1, 3]}), NO_IMAGES),
    "overwrite_input_shapes": (
        lambda: tonnx.simplify("old.onnx", overwrite_input_shapes={"images": [1, 3]}),
        NO_IMAGES,
    ),
    "test_input_shapes": (
        lambda: tonnx.simplify("old.onnx", check_n=1, test_input_shapes={"images": [1, 3]}),
        NO_IMAGES,
    ),
    "input_data": (
        lambda: tonnx.simplify("old.onnx", check_n=1, input_data={"images": np.ones((1, 3), np.float32)}),
        NO_IMAGES,
    ),
    "input_fill": (
        lambda: tonnx.simplify("old.onnx", check_n=1, input_fill="one"),
        "there is no input_fill 'one'; there are: ones, ",
    ),
    "unused_output": (
        lambda: tonnx.simplify("old.onnx", unused_output=["hidden30"]),
        "the model has no output 'hidden30'; it has: hidden3, hidden29",
    ),
    "skip": (
        lambda: tonnx.simplify("old.onnx", skip=["fold_constant"]),
        "there is no pass 'fold_constant'; there are: fold_constants, ",
    ),
    "skipped_optimizers": (
        lambda: tonnx.simplify("old.onnx", skipped_optimizers=["fold"]),
        "there is no pass 'fold'; there are: fold_constants, ",
    ),
    "only": (lambda: tonnx.simplify("old.onnx", only=["fold"]), "there is no pass 'fold'; there are: fold_constants, "),
    "enable": (
        lambda: tonnx.simplify("old.onnx", enable=["fold"]),
        "there is no pass 'fold'; there are: fold_constants, ",
    ),
    "input_shapes of infer": (lambda: tonnx.infer("old.onnx", input_shapes={"images": [1, 3]}), NO_IMAGES),
    "inputs of verify": (
        lambda: tonnx.verify("old.onnx", "old.onnx", {"images": np.ones((1, 3), np.float32)}),
        NO_IMAGES,
    ),
    "shapes of verify": (
        lambda: tonnx.verify("old.onnx", "old.onnx", shapes={"images": [1, 3]}),
        NO_IMAGES,
    ),
}


@pytest.mark.parametrize("name", ON_FILES)
def test_of_files(name: str) -> None:
    call, text = ON_FILES[name]
    assert text in outcome(call)


COMMANDS = {
    "convert old.onnx o.py --input-shape images:1,3": NO_IMAGES,
    "convert old.onnx o.pt2 --dynamic images:0=n": NO_IMAGES,
    "simplify old.onnx o.onnx --input-shape images:1,3": NO_IMAGES,
    "simplify old.onnx o.onnx --unused-output hidden30": "the model has no output 'hidden30'; it has: hidden3, hidden29",
    "simplify old.onnx o.onnx --only fold": "there is no pass 'fold'; there are: fold_constants, ",
    "infer old.onnx o.onnx --input-shape images:1,3": NO_IMAGES,
    "convert old.onnx o.py --limit memori=1G": "there is no limit 'memori'; there are: memory, text, steps, nodes",
    "convert old.onnx o.onnx --input-shape input:1,3 --input-shape input:2,3": "input 'input' is given two shapes",
    "convertt old.onnx o.onnx": "there is no command 'convertt'; did you mean 'convert'?",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_of_the_command_line(cli: Callable[..., subprocess.CompletedProcess[str]], command: str) -> None:
    result = cli(*command.split())
    assert result.returncode == 1
    assert COMMANDS[command] in result.stderr


def test_of_data_for_the_command_line() -> None:
    from tonnx._compare import compare_for_cli

    for data, shapes, text in [
        ("images.npz", [], NO_IMAGES),
        ("more.npz", [], "the model has no input 'more'; it has: input"),
        ("", ["images:1,3"], NO_IMAGES),
        ("", ["input:1,3", "input:2,3"], "input 'input' is given two shapes"),
    ]:
        assert outcome(lambda: compare_for_cli("old.onnx", "old.onnx", 1, shapes, data, 1e-4, 1e-5)) == text


class Net(nn.Module):
    def forward(self, pixels, mask, *, scale=None):
        return pixels * mask if scale is None else pixels * mask * scale


EXAMPLE = (torch.rand(2, 3), torch.rand(2, 3))
IN_EXPORT: dict[str, tuple[dict[str, Any], str]] = {
    "dynamic_axes": (
        {"dynamic_axes": {"images": {0: "n"}, "mask": {0: "n"}}},
        "dynamic_axes names 'images', but the inputs and outputs are mask, pixels, output",
    ),
    "dynamic_axes and chosen names": (
        {"dynamic_axes": {"image": {0: "n"}}, "input_names": ["images", "m"], "output_names": ["o"]},
        "dynamic_axes names 'image', but the inputs and outputs are images, m, o",
    ),
    "axis of an output": (
        {"dynamic_axes": {"pixels": [0], "mask": [0], "output": [4]}},
        "axis 4 of output 'output' is out of range for rank 2",
    ),
    "dynamic_shapes": (
        {"dynamic_shapes": {"pixel": {0: "n"}}},
        "dynamic_shapes names 'pixel', but the arguments of the model are pixels, mask",
    ),
    "form of dynamic_shapes": ({"dynamic_shapes": ({0: "n"},)}, "dynamic_shapes is not of the form of the example: "),
    "kwargs": (
        {"kwargs": {"scales": torch.rand(3)}},
        "kwargs names 'scales', but the arguments of the model are scale, pixels, mask",
    ),
    "input_names": (
        {"input_names": ["a", "b", "c"]},
        "input_names has 3 names, but the model has 2 inputs that are tensors and 0 weights: pixels, mask",
    ),
    "input_names twice": ({"input_names": ["a", "a"]}, "input_names has 'a' twice"),
    "output_names": (
        {"output_names": ["a", "b"]},
        "output_names has 2 names, but 1 outputs of the model are tensors or numbers: output",
    ),
    "output_names as an input": ({"output_names": ["mask"]}, "output_names has 'mask', which is the name of an input"),
    "custom_opsets": (
        {"custom_opsets": {"com.microsoft": 1}},
        "custom_opsets names the domain 'com.microsoft', and the domains of the model's operators are: none",
    ),
    "custom_opsets of ONNX": (
        {"custom_opsets": {"": 13}},
        "custom_opsets is for other domains than that of ONNX itself",
    ),
}


@pytest.mark.parametrize("name", IN_EXPORT)
def test_of_an_export(name: str) -> None:
    options, text = IN_EXPORT[name]
    assert outcome(lambda: tonnx.export(Net(), EXAMPLE, "o.onnx", **options)).startswith(text)


def test_of_an_argument_of_export() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'opset'; there are: opset_version, "):
        tonnx.export(Net(), EXAMPLE, opset=17)


def test_arguments_that_do_not_fit() -> None:
    text = outcome(lambda: tonnx.export(Net(), EXAMPLE[0]))
    assert text.startswith("the model cannot be called with the example: missing a required argument: 'mask'")


def test_an_output_that_is_always_of_one_size() -> None:
    with pytest.warns(UserWarning, match="axis 1 of output 'output' to be dynamic, and it is always 3"):
        tonnx.export(Net(), EXAMPLE, dynamic_axes={"pixels": [0], "mask": [0], "output": [0, 1]})


def test_of_an_exported_program() -> None:
    n = torch.export.Dim("n")
    exported = torch.export.export(Net(), EXAMPLE, dynamic_shapes={"pixels": {0: n}, "mask": {0: n}})
    program = tonnx.export(exported, dynamic_axes={"pixels": {0: "rows"}})
    assert program.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "rows"
    for options, text in [
        (
            {"dynamic_axes": {"images": {0: "n"}}},
            "dynamic_axes names 'images', but the inputs and outputs are mask, pixels, output",
        ),
        ({"dynamic_axes": {"pixels": {1: "n"}}}, "the model fixes the size of axis 1 of input 'pixels'"),
        ({"dynamic_shapes": {"pixels": {0: "n"}}}, "dynamic_shapes is for a model that is traced now"),
    ]:
        assert outcome(lambda: tonnx.export(exported, **options)).startswith(text)


def test_a_program_is_called_by_name() -> None:
    class Order(nn.Module):
        def forward(self, a, b):
            return a * 10 + b

    a, b = torch.rand(3), torch.rand(3)
    program = tonnx.export(Order(), (), kwargs={"b": b, "a": a}, input_names=["second", "first"], verify=True)
    for call in (lambda: program(a=a, b=b), lambda: program(b=b, a=a), lambda: program(a, b), lambda: program(a, b=b)):
        torch.testing.assert_close(call()[0], a * 10 + b)
    assert outcome(lambda: program(a=a, bb=b)) == "the model has no input 'bb'; it has: b, a"
    assert outcome(lambda: program(a)) == "there is no tensor for b"


def test_of_operators() -> None:
    with pytest.raises(ValueError, match="there is no operator aten::reluu; there are: relu, "):
        tonnx.register_custom_op_symbolic("aten::reluu", lambda g, x: x, 9)
    with pytest.raises(ValueError, match="Relu was not defined in opset 7; it was in: 1, 6, 13, 14"):
        tonnx.add_converter("Relu", 7)

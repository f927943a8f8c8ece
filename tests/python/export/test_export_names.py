"""Names and modes of an export: inputs and outputs by path, train and eval put back, what the arguments accept."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import pytest
import torch
from recorded_program import RecordedProgram, outcome, recorded  # noqa: F401
from torch import nn

import tonnx

pytestmark = pytest.mark.usefixtures("recorded")
Point = collections.namedtuple("Point", "x y")


class Structured(nn.Module):
    def forward(self, batch):
        a, b = batch["pair"]
        return {"sum": a + b, "parts": (a * batch["scale"], [b.mean(-1), b.amax(-1)])}


def batch() -> dict[str, Any]:
    return {"pair": [torch.rand(2, 5), torch.rand(2, 5)], "scale": torch.rand(5)}


def test_nested_inputs_and_outputs_are_named_by_path() -> None:
    program = tonnx.export(Structured(), (batch(),))
    assert program.input_names == ["batch.pair.0", "batch.pair.1", "batch.scale"]
    assert program.output_names == ["sum", "parts.0", "parts.1.0", "parts.1.1"]


@dataclasses.dataclass
class Result:
    logits: torch.Tensor
    hidden: list[Any]


RESULTS = {
    "one tensor": (lambda x: x + 1, ["output"]),
    "tuple": (lambda x: (x + 1, x * 2), ["output.0", "output.1"]),
    "list in tuple": (lambda x: (x + 1, [x * 2, x * 3]), ["output.0", "output.1.0", "output.1.1"]),
    "dict": (lambda x: {"b": x + 1, "a": x * 2}, ["b", "a"]),
    "numbered dict": (lambda x: {0: x + 1, 5: x * 2}, ["0", "5"]),
    "namedtuple": (lambda x: Point(x + 1, x * 2), ["output.x", "y"]),
    "dataclass": (lambda x: Result(x + 1, [x * 2, None]), ["logits", "hidden.0"]),
    "dataclass in dict": (lambda x: {"r": Result(x + 1, [x * 2])}, ["r.logits", "r.hidden.0"]),
    "none and numbers": (lambda x: (None, x + 1, 3), ["output.1", "output.2"]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_names_of_results(name: str) -> None:
    function, names = RESULTS[name]
    assert tonnx.export(function, torch.rand(2)).output_names == names


class Arguments(nn.Module):
    def forward(self, x, y=None, *, scale=2, **others):
        return x * scale + (0 if y is None else y) + sum(others.values(), 0)


CALLS: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "one tensor": (torch.rand(2), {}, ["x"]),
    "tuple": ((torch.rand(2), torch.rand(2)), {}, ["x", "y"]),
    "list": ([torch.rand(2), torch.rand(2)], {}, ["x", "y"]),
    "last dict is keywords": ((torch.rand(2), {"y": torch.rand(2)}), {}, ["x", "y"]),
    "empty last dict": ((torch.rand(2), torch.rand(2), {}), {}, ["x", "y"]),
    "keywords": ((torch.rand(2),), {"y": torch.rand(2), "scale": torch.rand(2)}, ["x", "y", "scale"]),
    "keywords of any name": ((torch.rand(2),), {"z": torch.rand(2)}, ["x", "z"]),
    "constants are no inputs": ((torch.rand(2),), {"scale": 3}, ["x"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_ways_to_give_the_example(name: str) -> None:
    args, kwargs, names = CALLS[name]
    assert tonnx.export(Arguments(), args, kwargs=kwargs).input_names == names


def test_a_last_dict_that_is_an_argument_stays_one() -> None:
    assert tonnx.export(Structured(), (batch(), {})).input_names == ["batch.pair.0", "batch.pair.1", "batch.scale"]


def test_chosen_names_come_first_and_the_others_keep_theirs() -> None:
    program = tonnx.export(Structured(), (batch(),), input_names=["left", "right"], output_names=["total"])
    assert program.input_names == ["left", "right", "batch.scale"]
    assert program.output_names == ["total", "parts.0", "parts.1.0", "parts.1.1"]


def test_too_many_names_are_refused() -> None:
    text = outcome(lambda: tonnx.export(Arguments(), torch.rand(2), input_names=["a", "b"]))
    assert text == "input_names has 2 names, but the model has 1 inputs that are tensors and 0 weights: x"


def test_the_core_gets_a_name_for_each_leaf(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    tonnx.export(Arguments(), (torch.rand(2),), kwargs={"y": None, "scale": 3, "z": torch.rand(2)}, input_names=["a"])
    assert recorded.last.program["tonnx"]["input_names"] == ["a", "y", "scale", "z"]


def test_a_result_that_is_called_as_an_input() -> None:
    program = tonnx.export(lambda x: {"x": x + 1, "y": x}, torch.rand(2))
    assert program.output_names == ["output.x", "y"]


class Mode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout()

    def forward(self, x):
        assert torch.onnx.is_in_onnx_export()
        assert not torch.is_grad_enabled()
        return self.drop(self.norm(x))


@pytest.mark.parametrize(
    ("training", "expected"),
    [(None, False), (torch.onnx.TrainingMode.EVAL, False), (torch.onnx.TrainingMode.TRAINING, True)],
)
def test_mode_is_set_and_put_back(recorded: type[RecordedProgram], training: Any, expected: bool) -> None:  # noqa: F811
    net = Mode().train()
    net.norm.eval()
    tonnx.export(net, torch.rand(2, 3), training=training)
    assert (net.training, net.norm.training, net.drop.training) == (True, False, True)
    assert not torch.onnx.is_in_onnx_export()
    assert torch.is_grad_enabled()
    assert recorded.last.calls("torch.ops.aten.batch_norm.default")[0]["training"] is expected


def test_preserved_mode(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    net = Mode().train()
    net.norm.eval()
    tonnx.export(net, torch.rand(2, 3), training=torch.onnx.TrainingMode.PRESERVE)
    assert recorded.last.calls("torch.ops.aten.batch_norm.default")[0]["training"] is False
    assert recorded.last.calls("torch.ops.aten.dropout.default")[0]["train"] is True


def test_mode_is_put_back_after_an_error() -> None:
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("no such luck")

    net = Broken().train()
    text = outcome(lambda: tonnx.export(net, torch.rand(2)))
    assert "no such luck" in text
    assert "in forward" in text
    assert net.training
    assert not torch.onnx.is_in_onnx_export()


def test_decisions_on_values_are_explained() -> None:
    def decide(x):
        return x if x.sum() > 0 else -x

    text = outcome(lambda: tonnx.export(decide, torch.rand(2)))
    assert text.startswith("the Python code of the model decides on the values of tensors")
    assert "torch.cond" in text
    assert "in decide: return x if x.sum() > 0 else -x" in text


def test_functions_own_the_weights_that_they_use(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    linear = nn.Linear(3, 3)
    tonnx.export(lambda x: linear(x), torch.rand(2, 3))
    assert sorted(recorded.last.program["weights"]) == ["linear.bias", "linear.weight"]


def test_a_method_is_exported_with_the_names_of_its_module(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def encode(self, image):
            return self.linear(image)

    net = Model()
    assert tonnx.export(net.encode, torch.rand(2, 3)).input_names == ["image"]
    assert sorted(recorded.last.program["weights"]) == ["linear.bias", "linear.weight"]
    assert "forward" not in vars(net)


def test_an_exported_program_is_taken_as_it_is() -> None:
    exported = torch.export.export(Structured(), (batch(),))
    assert tonnx.export(exported).input_names == ["batch.pair.0", "batch.pair.1", "batch.scale"]


def test_unknown_arguments_are_errors_and_those_without_effect_are_noted() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        tonnx.export(nn.ReLU(), torch.rand(2), nonsense=1)
    tonnx.export(nn.ReLU(), torch.rand(2), f=None, dynamo=True, do_constant_folding=True, optimize=True, report=False)
    with pytest.warns(UserWarning, match="report=True has no effect"):
        tonnx.export(nn.ReLU(), torch.rand(2), report=True)
    with pytest.raises(TypeError, match="model takes an nn.Module"):
        tonnx.export(3, torch.rand(2))  # type: ignore[arg-type]

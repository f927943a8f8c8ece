"""Every output of a module is an output of its file: tensors, numbers and lists, in structures, from each source."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple  # noqa: UP035 - torch.jit reads these

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.onnx import operators
from torch.utils import _pytree as pytree

import tonnx

warnings.filterwarnings("ignore", category=DeprecationWarning)

X = torch.arange(6.0).reshape(3, 2)
OTHER = torch.arange(10.0).reshape(5, 2)


class Returns(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


@dataclass
class Fields:
    values: Tensor
    count: int


class Pair(NamedTuple):
    first: Tensor
    second: float


CASES: dict[str, Callable[[Tensor], Any]] = {
    "a size beside a tensor": lambda x: (x * 2, x.shape[0]),
    "a shape": lambda x: x.shape,
    "a size alone": lambda x: x.shape[0] * 2,
    "a shape inside": lambda x: (x, x.size(), tuple(x.shape)),
    "the number of elements": lambda x: x.numel(),
    "a float of sizes": lambda x: (x, x.shape[0] / 2),
    "a bool of sizes": lambda x: (x, x.shape[0] > 1),
    "numbers that never change": lambda x: (x, 3, 2.5, True, False, -1),
    "numbers alone": lambda x: {"a": 7, "b": [1.5, True]},
    "numbers of elements": lambda x: (x.sum().item(), x.long().sum().item()),
    "one size twice": lambda x: (x.shape[0], x.shape[0]),
    "dicts and lists": lambda x: {"a": x, "b": {"c": x.shape[0], "d": [x + 1, 2]}},
    "a dataclass": lambda x: Fields(x + 1, x.shape[0]),
    "a named tuple": lambda x: (Pair(x, 0.5), x.shape[1]),
    "the input itself": lambda x: (x, x, 4),
    "None among them": lambda x: (x, None, x.shape[0], None),
    "a tensor for the shape": lambda x: operators.shape_as_tensor(x),
    "a shape as a tensor that is used": lambda x: (
        x,
        operators.shape_as_tensor(x) * 2,
        operators.shape_as_tensor(x.sum()),
    ),
    "a shape out of a tensor": lambda x: operators.reshape_from_tensor_shape(x, operators.shape_as_tensor(x.t())),
    "a shape with -1": lambda x: operators.reshape_from_tensor_shape(
        x, torch.cat([operators.shape_as_tensor(x)[1:], torch.tensor([-1])])
    ),
}


def run(model: bytes, x: Tensor) -> list[Any]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return list(session.run(None, {i.name: x.numpy() for i in session.get_inputs()}))


def expected_of(result: Any) -> list[np.ndarray[Any, Any]]:
    leaves = []
    for leaf in pytree.tree_leaves(result):
        leaves += [vars(leaf)[name] for name in vars(leaf)] if isinstance(leaf, Fields) else [leaf]
    types = {int: np.int64, float: np.float32, bool: np.bool_}
    return [
        leaf.numpy() if isinstance(leaf, Tensor) else np.array(leaf, types[type(leaf)])
        for leaf in leaves
        if leaf is not None
    ]


def require_same(got: list[Any], expected: list[np.ndarray[Any, Any]]) -> None:
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("is_open", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("name", CASES)
def test_each_output_of_a_module(name: str, is_open: bool) -> None:
    model = Returns(CASES[name])
    program = tonnx.export(model, X, dynamic_shapes=[{0: "n"}] if is_open else None, verify=True)
    for x in [X, OTHER] if is_open else [X]:
        require_same(run(bytes(program), x), expected_of(model(x)))


@pytest.mark.parametrize("name", ["a size beside a tensor", "a shape", "numbers that never change", "None among them"])
def test_each_output_of_a_saved_program(name: str, tmp_path: Path) -> None:
    model = Returns(CASES[name])
    exported = torch.export.export(model, (X,), dynamic_shapes=[{0: torch.export.Dim("n")}])
    torch.export.save(exported, tmp_path / "m.pt2")
    tonnx.convert(tmp_path / "m.pt2", tmp_path / "m.onnx")
    require_same(run((tmp_path / "m.onnx").read_bytes(), OTHER), expected_of(model(OTHER)))
    module = tonnx.convert(tmp_path / "m.pt2")
    got = [np.asarray(leaf) for leaf in pytree.tree_leaves(module(OTHER))]
    assert [leaf.tolist() for leaf in got] == [leaf.tolist() for leaf in expected_of(model(OTHER))]


def test_output_names_are_for_numbers_too() -> None:
    program = tonnx.export(Returns(lambda x: (x, 3, x.shape[0])), X, output_names=["a", "b", "c"])
    assert program.output_names == [o.name for o in program.model_proto.graph.output] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "value", ["a text", 1j, torch.float32, torch.device("cpu"), object()], ids=lambda v: type(v).__name__
)
def test_what_no_output_can_be_is_named(value: Any) -> None:
    with pytest.raises(tonnx.Error, match=r"the output 'output\.1\.k' is .*: return only tensors, numbers") as failure:
        tonnx.export(Returns(lambda x: (x, {"k": value})), X)
    assert failure.value.kind == "unsupported"


def numbers_and_lists(x: Tensor) -> Tuple[Tensor, int, float, bool, List[int], Dict[str, int]]:  # noqa: UP006
    return x * 2, x.size(0), x.size(0) / 2, x.size(0) > 4, x.size(), {"a": 3}


def rows(x: Tensor) -> List[Tensor]:  # noqa: UP006
    return x.unbind(0)


def columns(x: Tensor) -> Tuple[List[Tensor], int]:  # noqa: UP006
    return x.t().unbind(1), x.size(0)


def collected(x: Tensor) -> List[Tensor]:  # noqa: UP006
    steps = [x[0]]
    for i in range(x.size(0)):
        steps.append(x[i] * i)
    return steps


@pytest.mark.parametrize("is_archive", [False, True], ids=["live", "archive"])
def test_numbers_of_a_script(is_archive: bool, tmp_path: Path) -> None:
    script = torch.jit.script(numbers_and_lists)
    if is_archive:
        torch.jit.save(script, str(tmp_path / "m.pt"))
        tonnx.convert(tmp_path / "m.pt", tmp_path / "m.onnx", input_shapes={"x": [-1, 2]})
        model = (tmp_path / "m.onnx").read_bytes()
    else:
        model = bytes(tonnx.export(script, X, dynamic_shapes={"x": {0: "n"}}, verify=True))
    require_same(run(model, OTHER), expected_of(script(OTHER)))


@pytest.mark.parametrize("function", [rows, columns, collected])
def test_lists_of_open_length_are_sequences(function: Any, tmp_path: Path) -> None:
    script = torch.jit.script(function)
    program = tonnx.export(script, X, dynamic_shapes={"x": {0: "n"}}, verify=True)
    assert program.model_proto.graph.output[0].type.HasField("sequence_type")
    expected = script(OTHER)
    results = expected if isinstance(expected[-1], int) else (expected,)
    for ours, theirs in zip(run(bytes(program), OTHER), results, strict=True):
        if isinstance(theirs, int):
            assert ours.tolist() == theirs
        else:
            require_same(ours, expected_of(theirs))
    buffer = io.BytesIO()
    program.save(buffer)
    assert buffer.getvalue() == bytes(program)


def given_or_not(x: Tensor) -> List[Tensor]:  # noqa: UP006
    found: List[Tensor] = []  # noqa: UP006
    if bool(x.sum() > 3):
        found.append(x)
    return found


def with_text(x: Tensor) -> Tuple[Tensor, str]:  # noqa: UP006
    return x, "a text"


@pytest.mark.parametrize(("function", "name"), [(given_or_not, "output"), (with_text, "output.1")])
def test_what_a_script_cannot_give_is_named(function: Any, name: str) -> None:
    for shapes in [None, {"x": {0: "n"}}]:
        with pytest.raises(tonnx.Error, match=f"the output '{name}' ") as failure:
            tonnx.export(torch.jit.script(function), X, dynamic_shapes=shapes)
        assert failure.value.kind == "unsupported"

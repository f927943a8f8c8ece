"""dynamic_axes and dynamic_shapes: which sizes stay open, what they are called, what is said where one cannot."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from recorded_program import RecordedProgram, outcome, recorded  # noqa: F401
from torch import nn
from torch.export import Dim

import tonnx

pytestmark = pytest.mark.usefixtures("recorded")


def add(x, y=None):
    return x * 2 if y is None else torch.cat([x, y])


def shape_of(program: type[RecordedProgram], name: str) -> list[Any]:
    """Sizes of a value, with the user's names for the symbols."""
    result = []
    for size in program.last.graph["tensor_values"][name]["sizes"]:
        symbol = size["as_expr"]["expr_str"].split("'")[1] if "as_expr" in size else None
        result.append(program.last.symbols.get(symbol, "?") if symbol else size["as_int"])
    return result


EXAMPLES: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "axes by parameter": ({"dynamic_axes": {"x": {0: "n"}, "y": {0: "m"}}}, ["n", 3], ["m", 3]),
    "axes as list": ({"dynamic_axes": {"x": [0]}}, ["x_dynamic_axes_1", 3], [4, 3]),
    "negative axis": ({"dynamic_axes": {"x": {-2: "n"}}}, ["n", 3], [4, 3]),
    "axes by chosen name": (
        {"dynamic_axes": {"a": {0: "n"}, "b": {0: "m"}}, "input_names": ["a", "b"]},
        ["n", 3],
        ["m", 3],
    ),
    "one name twice": ({"dynamic_axes": {"x": {0: "n"}, "y": {0: "n"}}}, ["n", 3], ["n", 3]),
    "strings": ({"dynamic_shapes": {"x": {0: "n"}, "y": {0: "m"}}}, ["n", 3], ["m", 3]),
    "strings by place": ({"dynamic_shapes": ({0: "n"}, {0: "m"})}, ["n", 3], ["m", 3]),
    "left out": ({"dynamic_shapes": {"x": {0: "n"}}}, ["n", 3], [4, 3]),
    "as list": ({"dynamic_shapes": {"x": ["n", None], "y": None}}, ["n", 3], [4, 3]),
    "Dim": ({"dynamic_shapes": {"x": {0: Dim("n")}, "y": {0: Dim("m")}}}, ["n", 3], ["m", 3]),
    "one Dim twice": ({"dynamic_shapes": {"x": {1: Dim("k")}, "y": {1: Dim("k")}}}, [2, "k"], [4, "k"]),
    "hints": ({"dynamic_shapes": {"x": {0: Dim.AUTO}, "y": {0: Dim.DYNAMIC}}}, ["?", 3], ["?", 3]),
    "mixed": ({"dynamic_shapes": {"x": {0: "n"}, "y": {0: Dim.DYNAMIC}}}, ["n", 3], ["?", 3]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_sizes_that_stay_open(recorded: type[RecordedProgram], name: str) -> None:  # noqa: F811
    options, x, y = EXAMPLES[name]
    tonnx.export(add, (torch.rand(2, 3), torch.rand(4, 3)), **options)
    assert shape_of(recorded, "x") == x
    assert shape_of(recorded, "y") == y


def test_an_example_of_size_one_fixes_nothing(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 2))
    for options in ({"dynamic_axes": {"input": {0: "batch"}}}, {"dynamic_shapes": ({0: Dim("batch")},)}):
        tonnx.export(net, torch.rand(1, 3, 8, 8), **options)
        assert shape_of(recorded, "input") == ["batch", 3, 8, 8]


def test_nested_inputs(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    def total(batch):
        return batch["pair"][0].sum(0) + batch["pair"][1].sum(0)

    example = ({"pair": (torch.rand(2, 3), torch.rand(4, 3))},)
    tonnx.export(total, example, dynamic_axes={"batch.pair.1": {0: "n"}})
    assert shape_of(recorded, "batch_pair_0") == [2, 3]
    assert shape_of(recorded, "batch_pair_1") == ["n", 3]
    tonnx.export(total, example, dynamic_shapes={"batch": {"pair": ({0: "m"}, None)}})
    assert shape_of(recorded, "batch_pair_0") == ["m", 3]


def test_names_of_sizes_that_come_from_data(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    tonnx.export(torch.nonzero, torch.rand(3), output_names=["found"], dynamic_axes={"found": {0: "count"}})
    assert list(recorded.last.symbols.values()) == ["count"]


def test_a_dim_that_the_model_restricts_is_dynamic_all_the_same(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    tonnx.export(lambda x: x.view(2, -1, 3), torch.rand(4, 3), dynamic_shapes=({0: Dim("n")},))
    assert shape_of(recorded, "x") == ["n", 3]


@pytest.mark.parametrize("how", ["dynamic_axes", "dynamic_shapes"])
@pytest.mark.parametrize("dim", ["n", Dim("n"), Dim.DYNAMIC])
def test_a_size_that_the_model_fixes_is_named(how: str, dim: Any) -> None:
    if how == "dynamic_axes" and dim != "n":
        pytest.skip("dynamic_axes takes names")
    text = outcome(lambda: tonnx.export(nn.Linear(4, 2), torch.rand(3, 4), **{how: {"input": {1: dim}}}))
    assert text.startswith("the model fixes the size of axis 1 of input 'input' in 'return F.linear(")
    assert text.endswith(
        f"but {how} asks for it to be dynamic: take this axis out of {how}, or change the part of the model that needs "
        "this size"
    )


def test_auto_may_fix_a_size(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    tonnx.export(nn.Linear(4, 2), torch.rand(3, 4), dynamic_shapes={"input": {0: Dim.AUTO, 1: Dim.AUTO}})
    assert shape_of(recorded, "input")[1] == 4


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "axis": ({"dynamic_axes": {"x": [5]}}, "axis 5 of input 'x' is out of range for rank 2"),
    "axis of a shape": ({"dynamic_shapes": {"x": {3: "n"}}}, "axis 3 of input 'x' is out of range for rank 2"),
    "name": (
        {"dynamic_axes": {"z": [0]}, "output_names": ["sum"]},
        "dynamic_axes names 'z', but the inputs and outputs are x, sum",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_named(name: str) -> None:
    options, text = WRONG[name]
    assert outcome(lambda: tonnx.export(add, torch.rand(2, 3), **options)) == text


def test_both_forms_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="dynamic_axes or dynamic_shapes, not both"):
        tonnx.export(add, torch.rand(2, 3), dynamic_axes={"x": [0]}, dynamic_shapes={"x": {0: "n"}})


def detect(x):
    found = x[x > 0.5]
    if found.numel() == 0 or len(found) > 1000:
        return found
    scale = 2 if len(found) != 7 else 3
    return found.new_zeros(len(found)) + found * scale


def test_questions_about_sizes_from_data_get_the_usual_answer(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    with pytest.warns(UserWarning, match="sizes that depend on data, .*found.numel.* == 0.* is False"):
        tonnx.export(detect, torch.rand(10))
    assert len(recorded.last.calls("torch.ops.aten.new_zeros.default")) == 1
    assert recorded.last.calls("torch.ops.aten.mul.Tensor")[0]["other"] == 2
    assert "len" not in globals()


def test_questions_about_values_stay_errors() -> None:
    def decide(x):
        found = x[x > 0.5]
        return found if found.numel() == 0 or x[0] > 0 else found * 2

    text = outcome(lambda: tonnx.export(decide, torch.rand(10)))
    assert text.startswith("the Python code of the model decides on the values of tensors")


def test_loops_over_sizes_from_data_are_named() -> None:
    def loop(x):
        return torch.stack([row * 2 for row in torch.nonzero(x)])

    text = outcome(lambda: tonnx.export(loop, torch.rand(10)))
    assert "for row in torch.nonzero(x)" in text

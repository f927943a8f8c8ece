"""Operators of the user's own: registered symbolics, those of torch.onnx, autograd.Function, and what has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from recorded_program import RecordedProgram, outcome, recorded  # noqa: F401
from torch import nn
from torch.onnx import symbolic_helper

import tonnx

pytestmark = pytest.mark.usefixtures("recorded")


@torch.library.custom_op("tonnx_test::affine", mutates_args=())
def affine(
    x: torch.Tensor,
    scale: float,
    shifts: list[int],
    mode: str = "a",
    weight: torch.Tensor | None = None,
    count: int = 3,
) -> torch.Tensor:
    return x * scale + sum(shifts)


@affine.register_fake
def _(x, scale, shifts, mode="a", weight=None, count=3):
    return torch.empty_like(x)


@torch.library.custom_op("tonnx_test::pair", mutates_args=())
def pair(x: torch.Tensor, others: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    return x * 2, x + 1


@pair.register_fake
def _(x, others):
    return torch.empty_like(x), torch.empty_like(x)


@pytest.fixture
def registered() -> Iterator[Any]:
    names = set()

    def register(name: str, symbolic: Any, opset: int = 9) -> None:
        tonnx.register_custom_op_symbolic(name, symbolic, opset_version=opset)
        names.add((name, opset))

    yield register
    for name, opset in names:
        tonnx.unregister_custom_op_symbolic(name, opset)


def names_of(program: type[RecordedProgram]) -> list[str]:
    return [call["op"] for call in program.last.calls()]


def test_a_symbolic_with_parse_args(recorded: type[RecordedProgram], registered: Any) -> None:  # noqa: F811
    @symbolic_helper.parse_args("v", "f", "is", "s", "v", "i")
    def symbolic(g, x, scale, shifts, mode, weight, count):
        assert symbolic_helper._is_none(weight)
        assert x.type().sizes() == [2, 3]
        assert x.type().scalarType() == "Float"
        return g.op("my.domain::Affine", x, scale_f=scale, shifts_i=shifts, mode_s=mode, count_i=count)

    registered("tonnx_test::affine", symbolic)
    tonnx.export(lambda x: torch.ops.tonnx_test.affine(x, 0.5, [1, 2]), torch.rand(2, 3))
    (call,) = recorded.last.calls()
    assert call["op"] == "my.domain::Affine"
    assert call["inputs"] == [{"as_tensor": {"name": "x"}}]
    assert call["attributes"] == {
        "scale": {"kind": "f", "value": 0.5},
        "shifts": {"kind": "is", "value": [1, 2]},
        "mode": {"kind": "s", "value": "a"},
        "count": {"kind": "i", "value": 3},
    }


def test_a_symbolic_of_several_nodes(recorded: type[RecordedProgram], registered: Any) -> None:  # noqa: F811
    def symbolic(g, x, scale, shifts, mode, weight, count):
        constant = g.op("Constant", value_t=torch.tensor([1.5, 2.5, 3.5]))
        scaled = g.op("Mul", x, constant).setType(x.type())
        absent = symbolic_helper._optional_input_placeholder_tensor(g)
        return g.op("Where", scaled, absent, torch.tensor(2.0), unset_i=None, table_t=torch.ones(2))

    registered("tonnx_test::affine", symbolic)
    tonnx.export(lambda x: torch.ops.tonnx_test.affine(x, 0.5, []) + 1, torch.rand(2, 3))
    assert names_of(recorded) == ["Constant", "Mul", "Constant", "Where"]
    last = recorded.last.calls()[-1]
    assert last["inputs"][1] == {"as_none": True}
    assert list(last["attributes"]) == ["table"]
    constant = recorded.last.program["constants"][recorded.last.calls()[0]["attributes"]["value"]["value"]]
    assert constant["tensor_meta"]["sizes"] == [{"as_int": 3}]
    add = recorded.last.calls("torch.ops.aten.add.Tensor")[0]
    assert recorded.last.graph["nodes"][-2]["outputs"] == [{"as_tensor": add["self"]}]


def test_several_results_and_lists(recorded: type[RecordedProgram], registered: Any) -> None:  # noqa: F811
    def symbolic(g, x, others):
        first, _ = g.op("my.domain::Pair", x, *symbolic_helper._unpack_list(others), outputs=2)
        return first, x

    registered("tonnx_test::pair", symbolic)
    tonnx.export(lambda x, y: torch.ops.tonnx_test.pair(x, [x, y]), (torch.rand(2), torch.rand(2)))
    assert names_of(recorded) == ["my.domain::Pair", "Identity"]
    assert [i["as_tensor"]["name"] for i in recorded.last.calls()[0]["inputs"]] == ["x", "x", "y"]
    tonnx.export(lambda x: torch.ops.tonnx_test.pair(x, []), torch.rand(2))
    assert len(recorded.last.calls()[0]["inputs"]) == 1


def test_sizes_are_passed_as_tensors(recorded: type[RecordedProgram], registered: Any) -> None:  # noqa: F811
    registered("tonnx_test::affine", lambda g, x, *others: g.op("my.domain::Affine", x, others[-1]))
    tonnx.export(
        lambda x: torch.ops.tonnx_test.affine(x, 0.5, [1], count=x.size(0)), torch.rand(2), dynamic_axes={"x": [0]}
    )
    (scalar,) = recorded.last.calls("torch.ops.aten.scalar_tensor.default")
    assert scalar["s"]["as_name"].startswith("sym_size")
    assert len(recorded.last.calls()[0]["inputs"]) == 2


def test_operators_of_torch_can_be_replaced(recorded: type[RecordedProgram], registered: Any) -> None:  # noqa: F811
    registered("aten::gelu", lambda g, x, approximate: g.op("com.microsoft::Gelu", x))
    tonnx.export(nn.GELU(), torch.rand(2))
    assert names_of(recorded) == ["com.microsoft::Gelu"]


def test_the_newest_symbolic_that_the_opset_allows(recorded: type[RecordedProgram], registered: Any) -> None:  # noqa: F811
    for version in (9, 13, 17):
        registered("aten::gelu", lambda g, x, a, version=version: g.op(f"test::Gelu{version}", x), version)
    for opset, op in ((12, "Gelu9"), (13, "Gelu13"), (16, "Gelu13"), (18, "Gelu17")):
        tonnx.export(nn.GELU(), torch.rand(2), opset_version=opset)
        assert names_of(recorded) == [f"test::{op}"]


def test_symbolics_registered_with_torch_are_used(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    torch.onnx.register_custom_op_symbolic("tonnx_test::affine", lambda g, x, *others: g.op("my::Affine", x), 9)
    try:
        tonnx.export(lambda x: torch.ops.tonnx_test.affine(x, 0.5, []), torch.rand(2))
    finally:
        torch.onnx.unregister_custom_op_symbolic("tonnx_test::affine", 9)
    assert names_of(recorded) == ["my::Affine"]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, factor, unused=None):
        ctx.save_for_backward(x)
        return torch.relu(x) * factor + weight, x * 2

    @staticmethod
    def symbolic(g, x, weight, factor, unused):
        assert unused is None
        return g.op("my::Doubled", x, weight, factor_i=factor, outputs=2)


class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3


class UsesFunctions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        first, second = Doubled.apply(x, self.weight, 4, None)
        return first - Plain.apply(second)


def test_functions_with_a_symbolic_stay_one_call(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    tonnx.export(UsesFunctions(), torch.rand(2, 3), dynamic_axes={"x": {0: "n"}})
    (call,) = recorded.last.calls()
    assert call["op"] == "my::Doubled"
    assert [i["as_tensor"]["name"] for i in call["inputs"]] == ["x", "p_weight"]
    assert call["attributes"] == {"factor": {"kind": "i", "value": 4}}
    assert len(recorded.last.calls("torch.ops.aten.mul.Tensor")) == 1
    x = torch.rand(2, 3, requires_grad=True)
    assert Plain.apply(x).grad_fn is not None


def test_a_symbolic_that_fails_says_which() -> None:
    def broken(g, x, *others):
        raise ValueError("oops")

    tonnx.register_custom_op_symbolic("tonnx_test::affine", broken, 9)
    try:
        text = outcome(lambda: tonnx.export(lambda x: torch.ops.tonnx_test.affine(x, 0.5, []), torch.rand(2)))
    finally:
        tonnx.unregister_custom_op_symbolic("tonnx_test::affine", 9)
    assert text == "the symbolic of tonnx_test::affine failed: ValueError: oops"


def test_a_symbolic_of_the_wrong_arity(registered: Any) -> None:
    registered("tonnx_test::pair", lambda g, x, others: x)
    text = outcome(lambda: tonnx.export(lambda x: torch.ops.tonnx_test.pair(x, []), torch.rand(2)))
    assert text == "the symbolic of tonnx_test::pair gives 1 values, but the operator returns 2"


def test_names_are_checked() -> None:
    with pytest.raises(ValueError, match="namespace::operator"):
        tonnx.register_custom_op_symbolic("affine", lambda g: None, 9)
    with pytest.raises(ValueError, match="no symbolic of a::b is registered for opset 9"):
        tonnx.unregister_custom_op_symbolic("a::b", 9)


def lacks(*names: str) -> Any:
    """The core reports operators that write to their arguments as those that return their results."""

    def missing(program: RecordedProgram) -> list[tuple[str, int, list[str], str]]:
        parts = [n["target"].split(".") for n in program.graph["nodes"]]
        found = [f"{p[2]}::{p[3].rstrip('_')}.{p[4]}" for p in parts if p[3].rstrip("_") in names]
        found = [name.removesuffix(".default") for name in found]
        return [(t, found.count(t), ["block.0"], "") for t in sorted(set(found))]

    return missing


def targets_of(program: type[RecordedProgram]) -> list[str]:
    return [n["target"].split(".")[3] for n in program.last.graph["nodes"]]


def test_only_what_is_lacking_is_decomposed(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    recorded.missing = lacks("silu")  # type: ignore[assignment]
    net = nn.Sequential(nn.Linear(3, 3), nn.SiLU(), nn.BatchNorm1d(3))
    tonnx.export(net, torch.rand(3, 3), dynamic_axes={"input": {0: "n"}})
    targets = targets_of(recorded)
    assert "silu" not in targets
    assert {"linear", "sigmoid", "mul", "batch_norm"} <= set(targets)
    stacks = {n["metadata"]["nn_module_stack"] for n in recorded.last.graph["nodes"] if ".sigmoid." in n["target"]}
    assert [s.split(";")[-1].split(",")[1] for s in stacks] == ["1"]


def test_parts_of_a_decomposed_operator_say_so(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    recorded.missing = lacks("silu", "sigmoid")  # type: ignore[assignment]
    text = outcome(lambda: tonnx.export(nn.SiLU(), torch.rand(3)))
    assert "aten::sigmoid (of aten::silu): once, in block.0" in text


def test_the_users_program_is_not_changed(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    recorded.missing = lacks("silu")  # type: ignore[assignment]
    exported = torch.export.export(nn.SiLU(), (torch.rand(3),))
    before = str(exported.graph)
    tonnx.export(exported)
    assert "silu" not in targets_of(recorded)
    assert str(exported.graph) == before


def test_operators_that_write_to_their_argument_are_decomposed(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    recorded.missing = lacks("addcmul")  # type: ignore[assignment]
    tonnx.export(lambda x: x.clone().addcmul_(x, x), torch.rand(3))
    targets = targets_of(recorded)
    assert "addcmul_" not in targets
    assert {"mul", "copy_"} <= set(targets)


def test_operators_of_several_results_are_decomposed(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    recorded.missing = lacks("aminmax", "split")  # type: ignore[assignment]
    tonnx.export(lambda x: (*torch.aminmax(x, dim=0), *torch.split(x, 2)), torch.rand(4, 3))
    assert set(targets_of(recorded)) >= {"amin", "amax", "split_with_sizes"}
    assert len(recorded.last.graph["outputs"]) == 4


def test_what_is_left_is_listed(recorded: type[RecordedProgram]) -> None:  # noqa: F811
    recorded.missing = lacks("affine", "pair")  # type: ignore[assignment]

    def use(x):
        y = torch.ops.tonnx_test.affine(torch.ops.tonnx_test.affine(x, 1.0, []), 1.0, [])
        return torch.ops.tonnx_test.pair(y, [])

    assert outcome(lambda: tonnx.export(use, torch.rand(3))) == (
        "2 operators have no conversion to ONNX:\n"
        "  tonnx_test::affine: 2 times, in block.0\n"
        "  tonnx_test::pair: once, in block.0\n"
        '  tonnx.register_custom_op_symbolic("tonnx_test::affine", lambda g, x, scale, shifts, mode, weight, count: '
        'g.op("tonnx_test::affine", x, weight), 9)  # or export(..., fallthrough=True)'
    )


def elu_without_scales(g: Any, input: Any, alpha: Any, inplace: bool = False) -> Any:
    return g.op("Elu", input, alpha_f=symbolic_helper._scalar(alpha))


def test_the_last_arguments_may_be_left_out_at_their_defaults(registered: Any, recorded: Any) -> None:  # noqa: F811
    registered("aten::elu", elu_without_scales)
    tonnx.export(nn.ELU(0.25), torch.rand(2))
    (call,) = recorded.last.calls()
    assert (call["op"], call["attributes"]["alpha"]["value"]) == ("Elu", 0.25)
    with pytest.raises(tonnx.Error, match=r"has no parameter for 'input_scale', which is 3.0 here; the arguments"):
        tonnx.export(lambda x: torch.ops.aten.elu(x, 1.0, 2.0, 3.0), torch.rand(2))
    # nothing else than a scale would have become `inplace`
    with pytest.raises(tonnx.Error, match=r"does not read 'scale', which is 2.0 here and 1 by default"):
        tonnx.export(lambda x: torch.ops.aten.elu(x, 1.0, 2.0), torch.rand(2))


@symbolic_helper.parse_args("v", "f", "is", "s", "v", "i")
def reads_all(g: Any, x: Any, scale: float, shifts: list[int], mode: str, weight: Any, count: int) -> Any:
    inputs = [x] if symbolic_helper._is_none(weight) else [x, weight]
    return g.op("my::Affine", *inputs, scale_f=scale, shifts_i=shifts, mode_s=mode, count_i=count)


def reads_none(g: Any, x: Any, *others: Any) -> Any:
    return g.op("my::Affine", x)


def ignores_on_purpose(g: Any, x: Any, scale: Any, shifts: Any, _mode: Any, _weight: Any, _count: Any) -> Any:
    return g.op("my::Affine", x)


@pytest.mark.parametrize(
    ("arguments", "unread"),
    [
        ({}, None),
        ({"mode": "a"}, None),
        ({"mode": "b"}, "'mode', which is 'b' here and 'a' by default"),
        ({"count": 4}, "'count', which is 4 here and 3 by default"),
        ({"weight": True}, "'weight', which is an input and None by default"),
    ],
)
def test_an_argument_that_is_not_read_is_an_error(registered: Any, arguments: Any, unread: str | None) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        given = {**arguments, "weight": x.sum()} if "weight" in arguments else arguments
        return torch.ops.tonnx_test.affine(x, 0.5, [1], **given)

    for symbolic in (reads_all, ignores_on_purpose, reads_none):
        registered("tonnx_test::affine", symbolic)
        if symbolic is reads_none and unread:
            with pytest.raises(tonnx.Error, match=f"the symbolic of tonnx_test::affine does not read {unread}"):
                tonnx.export(model, torch.rand(2))
        else:
            tonnx.export(model, torch.rand(2))

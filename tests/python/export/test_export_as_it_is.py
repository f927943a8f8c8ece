"""Operators without a conversion that are written all the same, and symbolics for every autograd.Function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
import pytest
import torch
from torch import nn
from torch.autograd import Function

import tonnx

Kinds = torch._C._onnx.OperatorExportTypes


@torch.library.custom_op("cc::foo", mutates_args=())
def foo(
    x: torch.Tensor, scale: float, count: int, sizes: list[int], others: list[torch.Tensor], mode: str, b: bool = True
) -> torch.Tensor:
    return x * scale


@foo.register_fake
def _(x, scale, count, sizes, others, mode, b=True):
    return torch.empty_like(x)


@torch.library.custom_op("cc::two", mutates_args=())
def two(x: torch.Tensor, y: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    return x + 1, x + 2


@two.register_fake
def _(x, y=None):
    return torch.empty_like(x), torch.empty_like(x)


class Uses(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.ops.cc.foo(x.relu(), 1.5, 2, [3, 4], [x, x], "fast")
        first, second = torch.ops.cc.two(y)
        return first + second


def nodes_of(**options: Any) -> dict[str, onnx.NodeProto]:
    written = tonnx.export(Uses(), torch.rand(2, 3), **options).model_proto
    onnx.checker.check_model(written)
    return {f"{n.domain}::{n.op_type}": n for n in written.graph.node}


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


@pytest.mark.parametrize("options", [{"fallthrough": True}, {"operator_export_type": Kinds.ONNX_FALLTHROUGH}])
def test_an_operator_falls_through_as_a_node_of_its_own_domain(options: dict[str, Any]) -> None:
    nodes = nodes_of(**options)
    assert set(nodes) == {"::Relu", "cc::foo", "cc::two", "::Add"}
    assert len(nodes["cc::foo"].input) == 3 and len(nodes["cc::two"].output) == 2
    expected = {"scale": 1.5, "count": 2, "sizes": [3, 4], "mode": b"fast", "b": 1}
    assert attributes_of(nodes["cc::foo"]) == expected


def test_the_version_of_the_domain_is_the_users() -> None:
    written = tonnx.export(Uses(), torch.rand(2, 3), fallthrough=True, custom_opsets={"cc": 4}).model_proto
    assert {o.domain: o.version for o in written.opset_import}["cc"] == 4


def test_aten_fallback_writes_the_node_of_torch_onnx() -> None:
    nodes = nodes_of(operator_export_type=Kinds.ONNX_ATEN_FALLBACK)
    assert set(nodes) == {"::Relu", "::Constant", "org.pytorch.aten::ATen", "::Add"}
    assert attributes_of(nodes["org.pytorch.aten::ATen"])["operator"] in (b"cc::foo", b"cc::two")


def test_an_operator_of_pytorch_itself_falls_through() -> None:
    written = tonnx.export(lambda x: torch.linalg.eigvalsh(x), torch.eye(3), fallthrough=True).model_proto
    assert [n.domain for n in written.graph.node] == ["aten"]
    written = tonnx.export(lambda x: torch.linalg.eigvalsh(x), torch.eye(3), fallthrough="aten").model_proto
    (node,) = (n for n in written.graph.node if n.op_type == "ATen")
    assert attributes_of(node)["operator"].startswith(b"_linalg_eig")


def test_what_has_a_conversion_does_not_fall_through() -> None:
    written = tonnx.export(nn.Linear(2, 3), torch.rand(1, 2), fallthrough=True).model_proto
    assert {n.domain for n in written.graph.node} == {""}


def test_without_it_the_error_has_a_line_to_copy() -> None:
    with pytest.raises(tonnx.Error) as failure:
        tonnx.export(lambda x: torch.ops.cc.two(x)[0], torch.rand(2))
    lines = str(failure.value).splitlines()
    assert lines[0] == "an operator has no conversion to ONNX:" and len(lines) == 3
    line = 'tonnx.register_custom_op_symbolic("cc::two", lambda g, x, y: g.op("cc::two", x, y), 9)'
    assert lines[2] == f"  {line}  # or export(..., fallthrough=True)"
    compile(line, "line", "eval")


def test_a_symbolic_without_parse_args_is_told_of_it() -> None:
    tonnx.register_custom_op_symbolic("cc::foo", lambda g, x, scale, *others: g.op("my::Foo", x, scale_f=scale), 9)
    try:
        with pytest.raises(tonnx.Error) as failure:
            tonnx.export(lambda x: torch.ops.cc.foo(x, 1.0, 2, [3], [x], "a"), torch.rand(2))
    finally:
        tonnx.unregister_custom_op_symbolic("cc::foo", 9)
    assert str(failure.value) == (
        "the symbolic of cc::foo gives a value of the graph where an attribute wants a number: put "
        '@torch.onnx.symbolic_helper.parse_args("v", "f", "i", "is", "v", "s", "b") above it'
    )


class MyClip(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, low: float) -> torch.Tensor:
        return x.clamp(min=low)


class MyRelu(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0)


class Other(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Functions(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Other.apply(MyRelu.apply(MyClip.apply(x, -1.0)))


seen: list[Any] = []


def symbolic_pythonop(g: Any, node: Any, *args: Any, **kwargs: Any) -> Any:
    seen.append((kwargs["name"], str(node), len(list(node.outputs())), [a.requiresGrad() for a in node.inputs()]))
    if kwargs["name"] == "MyClip":
        return g.op("Clip", args[0], g.op("Constant", value_t=torch.tensor(args[1])))
    return g.op("Relu", args[0]) if kwargs["name"] == "MyRelu" else None


@pytest.fixture(params=["::prim_PythonOp", "prim::PythonOp"])
def python_op(request: pytest.FixtureRequest) -> Iterator[None]:
    tonnx.register_custom_op_symbolic(request.param, symbolic_pythonop, 1)
    yield
    tonnx.unregister_custom_op_symbolic(request.param, 1)


def test_one_symbolic_for_all_functions(python_op: None) -> None:
    seen.clear()
    x = torch.tensor([-2.0, 3.0])
    program = tonnx.export(Functions(), x)
    assert [n.op_type for n in program.model_proto.graph.node] == ["Clip", "Relu", "Mul"]  # Other is traced
    assert torch.equal(program(x)[0], Functions()(x))
    assert {name for name, *_ in seen} == {"MyClip", "MyRelu", "Other"}
    assert all(outputs == 1 and name in text for name, text, outputs, _ in seen)


OLDER = {
    "Clip": (lambda x: x.clamp(-0.5, 0.5), lambda g, x: g.op("Clip", x, min_f=-0.5, max_f=0.5)),
    "Clip, one end": (lambda x: x.clamp(max=0.5), lambda g, x: g.op("Clip", x, max_f=0.5)),
    "Unsqueeze": (lambda x: x.unsqueeze(1), lambda g, x: g.op("Unsqueeze", x, axes_i=[1])),
    "ReduceSum": (lambda x: x.sum(1), lambda g, x: g.op("ReduceSum", x, axes_i=[1], keepdims_i=0)),
    "Pad": (lambda x: nn.functional.pad(x, (1, 2)), lambda g, x: g.op("Pad", x, pads_i=[0, 1, 0, 2], value_f=0.0)),
    "Slice": (lambda x: x[:, 1:3], lambda g, x: g.op("Slice", x, axes_i=[1], starts_i=[1], ends_i=[3])),
    "TopK": (lambda x: x.topk(2)[0], lambda g, x: g.op("TopK", x, k_i=2, outputs=2)[0]),
}


@pytest.mark.parametrize("name", OLDER)
@pytest.mark.parametrize("opset", [11, 20])
def test_symbolics_may_write_nodes_as_older_opsets_had_them(name: str, opset: int) -> None:
    forward, symbolic = OLDER[name]

    class Older(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return forward(x)

    class Uses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Older.apply(x)

    Older.symbolic = staticmethod(symbolic)  # type: ignore[attr-defined]
    x = torch.randn(3, 4)
    program = tonnx.export(Uses(), x, opset_version=opset)
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert torch.allclose(program(x)[0], forward(x), atol=1e-6)


def test_without_it_functions_are_traced() -> None:
    program = tonnx.export(Functions(), torch.tensor([-2.0, 3.0]))
    assert torch.equal(program(torch.tensor([-2.0, 3.0]))[0], torch.tensor([0.0, 6.0]))


def test_a_form_that_has_no_conversion_is_named_with_its_operator() -> None:
    class Signal(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.complex(x, x)
            window = torch.ones(6, dtype=torch.complex64)
            return torch.istft(x, 6, window=window, onesided=False, return_complex=True).abs()

    with pytest.raises(tonnx.Error) as caught:
        tonnx.export(Signal(), (torch.rand(6, 5),), "m.onnx")
    assert str(caught.value) == "a window of complex numbers\n  while converting aten::istft"

"""verify --layers: the layer that was changed is the one that is named."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from verify_models import residual_network, variant

import tonnx
from tonnx._verify import runners
from tonnx._verify.onnx_runner import OnnxRunner

KINDS = ["onnx", "py", "pt2", "pt", "simplified", "shuffled", "misnamed", "simplified and shuffled"]


def named(report: tonnx.VerifyReport) -> tuple[str, ...]:
    assert report.first_difference is not None
    return report.first_difference.weights


@pytest.mark.parametrize("kind", KINDS)
def test_equal_models_have_no_layer_that_differs(kind: str) -> None:
    source = residual_network("net.onnx")
    report = tonnx.verify(source, variant(kind, source), layers=True)
    assert report and report.first_difference is None
    assert [layer for layer in report.layers if not layer.ok] == []
    assert len(report.layers) >= (90 if "simplified" in kind else 165)
    assert [layer.index for layer in report.layers] == sorted(layer.index for layer in report.layers)


@pytest.mark.parametrize("factor", [1.01, 3.0, -1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_changed_layer_is_named(kind: str, factor: float) -> None:
    changed = residual_network("changed.onnx", changed=25, factor=factor)
    other = variant(kind, residual_network("net.onnx"))
    report = tonnx.verify(changed, other, layers=True)
    assert not report
    assert "net/layer25_w" in named(report)
    assert not any("layer24" in name or "layer26" in name for name in named(report))
    assert "net/layer25_w" in str(report)


@pytest.mark.parametrize("layer", [0, 1, 13, 27, 28, 49])
def test_any_layer_is_named(layer: int) -> None:
    other = variant("py", residual_network("net.onnx"))
    report = tonnx.verify(residual_network("changed.onnx", changed=layer), other, layers=True)
    assert f"net/layer{layer}_w" in named(report)


@pytest.mark.parametrize("kind", ["py", "pt2", "pt", "simplified"])
def test_the_changed_model_may_be_the_second(kind: str) -> None:
    other = variant(kind, residual_network("changed.onnx", changed=25))
    report = tonnx.verify(residual_network("net.onnx"), other, layers=True)
    assert "net/layer25_w" in named(report)


def test_programs_are_compared_with_modules_and_scripts() -> None:
    source, changed = residual_network("net.onnx"), residual_network("changed.onnx", changed=25)
    program, module, script = variant("pt2", source), variant("py", changed), variant("pt", changed)
    for a, b in [(program, module), (module, program), (program, script), (script, program)]:
        report = tonnx.verify(a, b, layers=True)
        assert any("layer25" in name for name in named(report)), (a, b)


def test_memory_is_bounded_by_running_again(monkeypatch: pytest.MonkeyPatch) -> None:
    changed, program = residual_network("changed.onnx", changed=25), variant("py", residual_network("net.onnx"))
    fetched: list[int] = []
    original = OnnxRunner.fetch

    def watched(self: OnnxRunner, feeds: object, wanted: object) -> object:
        values = original(self, feeds, list(wanted))  # type: ignore[arg-type, call-overload]
        fetched.append(sum(value.array.nbytes for value in values.values()))
        return values

    monkeypatch.setattr(OnnxRunner, "fetch", watched)
    whole = tonnx.verify(changed, program, layers=True)
    at_once = fetched[:]
    fetched.clear()
    monkeypatch.setattr(runners, "CHUNK_BYTES", 100_000)
    parts = tonnx.verify(changed, program, layers=True)
    assert len(fetched) > len(at_once) + 10
    assert sum(size > 200_000 for size in fetched) < sum(size > 200_000 for size in at_once)
    assert parts.layers == whole.layers


def test_a_difference_that_is_gone_again_is_no_cause() -> None:
    """One model computes (x + 1) - 1 under a name that is a + b in the other; the true difference comes later."""

    def model(path: str, middle: float, last: float) -> str:
        text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y)
        <float k = {{{middle}}}, float l = {{{-middle}}}, float m = {{{last}}}>
        {{ h = Add(x, k)  i = Add(h, l)  j = Tanh(i)  n = Exp(j)  y = Mul(n, m) }}"""
        onnx.save(onnx.parser.parse_model(text), path)
        return path

    report = tonnx.verify(model("a.onnx", 1.0, 2.0), model("b.onnx", 0.5, 2.1), layers=True)
    assert report.first_difference is not None and report.first_difference.name == "y"
    same = tonnx.verify("a.onnx", model("c.onnx", 0.5, 2.0), layers=True)
    assert same


def test_control_flow_counts_as_one_layer() -> None:
    branches = [
        helper.make_graph([helper.make_node(op, ["x"], ["o"])], op, [], [helper.make_tensor_value_info("o", 1, None)])
        for op in ("Exp", "Neg")
    ]
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["i"], name="choice", then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Tanh", ["i"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, 1, [4]) for name in "xy")
    zero = onnx.numpy_helper.from_array(np.float32(0), "zero")
    graph = helper.make_graph(nodes, "g", [x], [y], [zero])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "if.onnx")
    tonnx.convert("if.onnx", "if.py")
    report = tonnx.verify("if.onnx", "if.py", layers=True)
    assert report and report.first_difference is None


def test_the_module_of_a_node_is_kept_from_its_metadata() -> None:
    for name, factor in (("a", 1.0), ("b", 1.01)):
        text = f"""<ir_version: 10, opset_import: ["" : 17]> g (float[4] x) => (float[4] y)
        <float k = {{{factor}}}> {{ h = Exp(x)  i = Mul(h, k)  y = Tanh(i) }}"""
        model = onnx.parser.parse_model(text)
        scopes = model.graph.node[1].metadata_props.add()
        scopes.key, scopes.value = "pkg.torch.onnx.name_scopes", "['', 'block.2', 'block.2.scale', 'mul']"
        onnx.save(model, f"{name}.onnx")
    report = tonnx.verify("a.onnx", "b.onnx", layers=True)
    assert report.first_difference is not None and report.first_difference.module == "block.2.scale"
    assert "in block.2.scale" in str(report)

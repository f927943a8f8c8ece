"""TorchScript archives: every ONNX node test through torch.jit.load, modules and names, control flow, training, sizes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest
import torch
from allowed_code import check_archive
from conftest import CONFORMANCE, KNOWN_FAILURES
from known_failures import judge, read
from node_tests import from_torch, node_tests, numpy_value, outputs_difference, to_torch

import tonnx

# What fails in generated code fails here in the same way; the second list has what fails here only.
KNOWN = read(KNOWN_FAILURES) | read(CONFORMANCE / "torchscript_failures.txt")


@pytest.fixture(autouse=True)
def without_deprecations() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def load(model: onnx.ModelProto | str | Path) -> torch.jit.ScriptModule:
    tonnx.convert(model, "model.pt")
    check_archive("model.pt")
    return torch.jit.load("model.pt")


def parsed(text: str, weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """`__` in the name of an input of a node stands for a dot."""
    model = onnx.parser.parse_model(text)
    for node in model.graph.node:
        node.input[:] = [name.replace("__", ".") for name in node.input]
    for name, value in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    onnx.checker.check_model(model)
    return model


def reference(model: onnx.ModelProto, *inputs: np.ndarray) -> list[np.ndarray]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)})


def agree(module: Any, model: onnx.ModelProto, *inputs: np.ndarray) -> None:
    with torch.no_grad():
        got = module(*(torch.from_numpy(x) for x in inputs))
    got = got if isinstance(got, tuple) else (got,)
    for mine, theirs in zip(got, reference(model, *inputs), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs, rtol=1e-4, atol=1e-5)


def why_it_fails(case: Any) -> str | None:
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            module = load(case.model)
            for inputs, outputs in case.data_sets:
                got = module(*(to_torch(numpy_value(x)) for x in inputs))
                got = tuple(map(from_torch, got)) if isinstance(got, tuple) else from_torch(got)
                why = outputs_difference(got, [numpy_value(x) for x in outputs], case.rtol, case.atol)
                if why:
                    return why
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:2000]
    return None


@pytest.mark.parametrize("name", sorted(node_tests()))
def test_node(name: str) -> None:
    why = why_it_fails(node_tests()[name])
    judge(why, KNOWN.get(name))


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def network() -> onnx.ModelProto:
    return parsed(
        """<ir_version: 8, opset_import: ["": 18]>
        net (float[batch, 3, 8, 8] image) => (float[batch, 5] scores) {
            c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (image, conv__weight, conv__bias)
            n = BatchNormalization (c, norm__weight, norm__bias, norm__running_mean, norm__running_var)
            r = Relu (n)
            p = GlobalAveragePool (r)
            f = Flatten (p)
            s = Gemm <transB = 0> (f, head__weight, head__bias)
            scores = Mul (s, scale)
        }""",
        {
            "conv.weight": random(4, 3, 3, 3),
            "conv.bias": random(4),
            "norm.weight": random(4),
            "norm.bias": random(4),
            "norm.running_mean": random(4),
            "norm.running_var": random(4) ** 2 + 1,
            "head.weight": random(4, 5),
            "head.bias": random(5),
            "scale": random(1),
        },
    )


def test_modules_are_named_as_in_generated_code() -> None:
    model = network()
    script, python = load(model), tonnx.convert(model)
    state = python.state_dict()
    assert script.state_dict().keys() == {name for name in state if not name.endswith("num_batches_tracked")}
    for name, tensor in script.state_dict().items():
        assert torch.equal(tensor, state[name]), name
    assert {name for name, _ in script.named_parameters()} == {name for name, _ in python.named_parameters()}
    assert [m.original_name for m in script.children()] == ["Conv2d", "BatchNorm2d", "Linear"]


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_batch_of_any_size(batch: int) -> None:
    agree(load(network()), network(), random(batch, 3, 8, 8))


def test_it_trains() -> None:
    script = load(network()).train()
    before = {name: tensor.clone() for name, tensor in script.state_dict().items()}
    script(torch.from_numpy(random(4, 3, 8, 8))).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for n, p in script.named_parameters() if n != "conv.bias")
    assert not torch.equal(before["norm.running_mean"], script.state_dict()["norm.running_mean"])


@pytest.mark.parametrize("change", [torch.jit.freeze, lambda m: torch.jit.optimize_for_inference(torch.jit.freeze(m))])
def test_freezing_changes_nothing(change: Callable[[Any], Any]) -> None:
    module = change(load(network()).eval())
    for _ in range(3):  # the executor specialises itself in the first runs
        agree(module, network(), random(2, 3, 8, 8))


def test_saved_again() -> None:
    torch.jit.save(load(network()), "again.pt")
    agree(torch.jit.load("again.pt"), network(), random(2, 3, 8, 8))


def test_names_of_the_model() -> None:
    tonnx.convert(network(), "model.pt")
    extra = {"tonnx.json": ""}
    torch.jit.load("model.pt", _extra_files=extra)
    assert json.loads(extra["tonnx.json"]) == {
        "input_names": ["image"],
        "arguments": ["image"],
        "output_names": ["scores"],
    }


@pytest.mark.parametrize("name", ["list", "inf", "range", "code", "graph", "training", "forward", "1", "a b", "Tensor"])
def test_names_that_mean_something_else(name: str) -> None:
    node = onnx.helper.make_node("Mul", ["input", name], ["out"])
    last = onnx.helper.make_node("Relu", ["out"], ["self"])
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node, last],
        "g",
        [value("input", 1, [3])],
        [value("self", 1, [3])],
        [onnx.numpy_helper.from_array(random(3), name)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    agree(load(model), model, random(3))
    graph.input[0].name = graph.node[0].input[0] = name
    graph.node[0].input[1] = graph.initializer[0].name = "w"
    agree(load(model), model, random(3))


BRANCH = """<ir_version: 8, opset_import: ["": 18]>
    net (float[n] x, float threshold) => (float[m] y, float[k] z) {
        total = ReduceSum <keepdims = 0> (x)
        is_large = Greater (total, threshold)
        twice = Add (x, x)
        y, z = If (is_large) <
            then_branch = yes () => (float[a] y1, float[b] z1) { y1 = Neg (twice) z1 = Concat <axis = 0> (x, w) },
            else_branch = no () => (float[c] y2, float[d] z2) { y2 = Identity (x) z2 = Exp (w) }
        >
    }"""


@pytest.mark.parametrize("threshold", [-100.0, 100.0])
def test_branches(threshold: float) -> None:
    model = parsed(BRANCH, {"w": random(2)})
    agree(load(model), model, random(4), np.array(threshold, np.float32))


def test_large_branches() -> None:
    """They are methods of their own, which get what they use as arguments."""
    steps = "".join(f"s{i + 1} = Sin (s{i}) " for i in range(60))
    inner = "t = Add (x, twice) r = If (is_large) < then_branch = p () => (float[a] u) { u = Mul (t, w) }, "
    inner += "else_branch = q () => (float[b] v) { v = ConstantOfShape (size) } > s0 = Add (r, x)"
    model = parsed(
        BRANCH.replace("y1 = Neg (twice)", f"{inner} {steps} y1 = Neg (s60)").replace(
            "twice =", "size = Shape (x) twice ="
        ),
        {"w": random(1)},
    )
    module = load(model)
    assert "(self).branch(" in module.code
    for threshold in (-100.0, 100.0):
        agree(module, model, random(4), np.array(threshold, np.float32))


WHILE = """<ir_version: 8, opset_import: ["": 18]>
    net (float[n] x, int64 count, float limit) => (float[m] y, float[k, l] all) {
        start = Constant <value = bool {1}> ()
        y, all = Loop (count, start, x) <
            body = step (int64 i, bool go, float[n] before) => (bool more, float[n] after, float[n] seen) {
                number = Cast <to = 1> (i)
                seen = Add (before, number)
                after = Mul (seen, w)
                size = ReduceSum <keepdims = 0> (after)
                more = Less (size, limit)
            }
        >
    }"""


@pytest.mark.parametrize("count, limit", [(0, 1e9), (1, 1e9), (5, 1e9), (50, 100.0), (50, -1e9)])
def test_loops(count: int, limit: float) -> None:
    model = parsed(WHILE, {"w": np.array([1.5], np.float32)})
    agree(load(model), model, random(3), np.array(count), np.array(limit, np.float32))


def test_a_program_of_torch_export() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 6)
            self.lstm = torch.nn.LSTM(6, 5, batch_first=True)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y, _ = self.lstm(self.linear(x))
            return torch.cond(x.sum() > 0, lambda y: (y + 1, y * 2), lambda y: (y - 1, y * 3), (y,))

    model, x = Model().eval(), torch.ones(2, 3, 4)
    torch.export.save(torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("b")},)), "model.pt2")
    tonnx.convert("model.pt2", "model.pt")
    script = torch.jit.load("model.pt")
    assert script.state_dict().keys() == model.state_dict().keys()
    for batch in (x, -x, torch.ones(5, 3, 4)):
        for mine, theirs in zip(script(batch), model(batch), strict=True):
            torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "int8", "uint16", "uint64", "bool", "float8_e4m3fn"]
)
def test_types_of_weights(dtype: str) -> None:
    names = {"float64": "DOUBLE", "float8_e4m3fn": "FLOAT8E4M3FN"}
    number = onnx.TensorProto.DataType.Value(names.get(dtype, dtype.upper()))
    weight = onnx.helper.make_tensor("w", number, [3], [0, 1, 1])
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["w"], ["y"]), onnx.helper.make_node("Relu", ["x"], ["r"])],
        "g",
        [value("x", 1, [1])],
        [value("r", 1, [1]), value("y", number, [3])],
        [weight],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    _, y = load(model)(torch.zeros(1))
    assert y.dtype is getattr(torch, dtype)
    assert y.to(torch.float64).tolist() == [0, 1, 1]


def test_command_line(cli: Callable[..., Any]) -> None:
    onnx.save(network(), "net.onnx")
    result = cli("convert", "net.onnx", "net.pt")
    assert result.returncode == 0, result.stderr
    agree(torch.jit.load("net.pt"), network(), random(2, 3, 8, 8))


def test_a_failure_leaves_no_file() -> None:
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("StringNormalizer", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [value("x", 8, [2])], [value("y", 8, [2])])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(tonnx.Error):
        tonnx.convert(model, "model.pt")
    assert list(Path().iterdir()) == []

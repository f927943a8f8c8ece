"""There and back again: ONNX to PyTorch to ONNX, and PyTorch to ONNX to PyTorch, with the values that the first had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import dynamic_flatten_net, feeds_of, residual_net, runtime_run, shared_weight_net, two_in_two_out_net
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.utils import _pytree as pytree

import tonnx


def floats(name: str, shape: list[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def weights(*named: tuple[str, tuple[int, ...]]) -> list[onnx.TensorProto]:
    rng = np.random.default_rng(0)
    return [numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name) for name, shape in named]


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], initializers: Any = ()) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model


def lstm_net() -> onnx.ModelProto:
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], hidden_size=5, direction="bidirectional"),
        helper.make_node("ReduceMean", ["y"], ["m"], keepdims=0, noop_with_empty_axes=0),
        helper.make_node("Add", ["h", "m"], ["out"]),
    ]
    held = weights(("w", (2, 20, 4)), ("r", (2, 20, 5)), ("b", (2, 40)))
    return model_of(nodes, [floats("x", [6, 3, 4])], [floats("out", [2, 3, 5]), floats("c", [2, 3, 5])], held)


def branch_net() -> onnx.ModelProto:
    def branch(op: str) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node(op, ["x", "s"], [op])], op, [], [floats(op, [3, 4])])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Mul"), else_branch=branch("Sub")),
    ]
    zero = numpy_helper.from_array(np.float32(0), "zero")
    return model_of(nodes, [floats("x", [3, 4])], [floats("y", [3, 4])], [zero])


def loop_net() -> onnx.ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["a", "w"], ["a_next"]),
            helper.make_node("ReduceMax", ["a_next"], ["m"], keepdims=0),
            helper.make_node("Less", ["m", "limit"], ["go_on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            floats("a", [3]),
        ],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), floats("a_next", [3])],
    )
    constants = [
        numpy_helper.from_array(np.int64(9), "n"),
        numpy_helper.from_array(np.array(True), "yes"),
        numpy_helper.from_array(np.array([1.5, 2, 0.5], np.float32), "w"),
        numpy_helper.from_array(np.float32(40), "limit"),
    ]
    return model_of(
        [helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)],
        [floats("x", [3])],
        [floats("y", [3])],
        constants,
    )


def encoder_net() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"]),
        helper.make_node("MatMul", ["e", "q"], ["eq"]),
        helper.make_node("Transpose", ["e"], ["et"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["eq", "et"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "e"], ["a"]),
        helper.make_node("Add", ["a", "e"], ["r"]),
        helper.make_node("LayerNormalization", ["r", "g", "b"], ["n"]),
        helper.make_node("Gelu", ["n"], ["y"]),
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", 7])
    held = weights(("table", (11, 8)), ("q", (8, 8)), ("g", (8,)), ("b", (8,)))
    return model_of(nodes, [ids], [floats("y", ["batch", 7, 8])], held)


ONNX_MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "residual": residual_net,
    "shared_weight": shared_weight_net,
    "dynamic_flatten": dynamic_flatten_net,
    "two_in_two_out": two_in_two_out_net,
    "encoder": encoder_net,
    "lstm": lstm_net,
    "branch": branch_net,
    "loop": loop_net,
}


@pytest.mark.parametrize("name", ONNX_MODELS)
def test_from_onnx_to_onnx(name: str) -> None:
    model = ONNX_MODELS[name]()
    feeds = {"ids": np.arange(14).reshape(2, 7) % 11} if name == "encoder" else feeds_of(model)
    wanted = runtime_run(model, feeds)
    module = tonnx.convert(model)
    args = tuple(torch.from_numpy(np.asarray(value)) for value in feeds.values())
    tonnx.export(module, args, "again.onnx")
    again = onnx.load("again.onnx")
    onnx.checker.check_model(again, full_check=True)
    names = [value.name for value in again.graph.input]
    for sign in (1, -1) if name == "branch" else (1,):
        turned = {key: value * sign for key, value in feeds.items()}
        wanted = runtime_run(model, turned)
        found = runtime_run(again, dict(zip(names, turned.values(), strict=True)))
        for a, b in zip(found, wanted, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: x - 3, (x,))


class Counts(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        i = torch.zeros((), dtype=torch.int64)
        return torch.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5 - 1), (i, x))[1]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(4, 6, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.rnn(x)


def small_cnn() -> nn.Module:
    features = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*features, nn.Flatten(), nn.Linear(8 * 16, 5), nn.Dropout())


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], bool]] = {
    "cnn": (small_cnn, (2, 3, 8, 8), True),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8), True),
    "lstm": (Recurrent, (2, 5, 4), True),
    "branches": (Branches, (3, 4), False),
    "loop": (Counts, (3, 4), False),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_from_a_program_to_onnx_to_python(name: str) -> None:
    make, shape, is_dynamic = NETWORKS[name]
    torch.manual_seed(0)
    module, x = make().eval(), torch.rand(shape)
    dynamic = ({0: torch.export.Dim("batch")},) if is_dynamic else None
    torch.export.save(torch.export.export(module, (x,), dynamic_shapes=dynamic), "model.pt2")
    tonnx.convert("model.pt2", "model.onnx")
    again = tonnx.convert("model.onnx")
    for case in (x, torch.cat([x, -x, x])) if is_dynamic else (x, -x):
        with torch.no_grad():
            found, wanted = pytree.tree_leaves(again(case)), pytree.tree_leaves(module(case))
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

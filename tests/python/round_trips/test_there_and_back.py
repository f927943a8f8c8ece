"""There and back: ONNX through a module, a .pt2 or a .pt, and a program through ONNX, with the values of the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import (
    dynamic_flatten_net,
    feeds_of,
    floats,
    make_model,
    random_tensor,
    residual_net,
    runtime_run,
    shared_weight_net,
    two_in_two_out_net,
)
from onnx import TensorProto, helper, numpy_helper
from round_trip_checks import check, ops, there_and_back
from torch import nn
from torch.utils import _pytree as pytree

import tonnx

RNG = np.random.default_rng(3)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def ints(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


@pytest.mark.parametrize(("axes", "sizes"), [((1,), [(5, 1), (3, 1)]), ((0, 1), [(1, 1)])])
def test_squeeze_of_open_sizes(axes: tuple[int, ...], sizes: list[tuple[int, int]]) -> None:
    nodes = [helper.make_node("Squeeze", ["x", "axes"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    result = floats("y", *[None] * (3 - len(axes)))
    model = make_model(nodes, [floats("x", "a", "b", 12)], [result], [ints("axes", *axes)])
    check(model, *({"x": array(*size, 12)} for size in sizes))


def test_squeeze_without_axes_leaves_open_sizes() -> None:
    nodes = [helper.make_node("Squeeze", ["x"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=-1)]
    model = make_model(nodes, [floats("x", "a", 1, 12)], [floats("y", "a", 12)])
    check(model, {"x": array(5, 1, 12)}, {"x": array(3, 1, 12)})


def squeeze_where_one(x: str, axis: int, y: str) -> list[onnx.NodeProto]:
    """`x.squeeze(axis)` as exporters write it for a size that they do not know."""
    squeeze = [helper.make_node("Squeeze", [x, "axis"], [f"{y}.then"])]
    same = [helper.make_node("Identity", [x], [f"{y}.else"])]

    def branch(nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        name = nodes[0].output[0]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])

    return [
        helper.make_node("Shape", [x], [f"{y}.shape"], start=axis, end=axis + 1),
        helper.make_node("Equal", [f"{y}.shape", "one"], [f"{y}.is_one"]),
        helper.make_node("If", [f"{y}.is_one"], [y], then_branch=branch(squeeze), else_branch=branch(same)),
    ]


def test_squeeze_in_a_branch() -> None:
    nodes = [
        *squeeze_where_one("x", 2, "s"),
        helper.make_node("Shape", ["s"], ["shape"]),
        helper.make_node("Size", ["shape"], ["rank"]),
        helper.make_node("Equal", ["rank", "two"], ["is_flat"]),
        helper.make_node(
            "If",
            ["is_flat"],
            ["t"],
            then_branch=helper.make_graph(
                [helper.make_node("Unsqueeze", ["s", "zero"], ["t.then"])],
                "then",
                [],
                [helper.make_tensor_value_info("t.then", TensorProto.FLOAT, None)],
            ),
            else_branch=helper.make_graph(
                [helper.make_node("Identity", ["s"], ["t.else"])],
                "else",
                [],
                [helper.make_tensor_value_info("t.else", TensorProto.FLOAT, None)],
            ),
        ),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
    ]
    w = numpy_helper.from_array(array(8, 3), "w")
    two = numpy_helper.from_array(np.int64(2), "two")
    constants = [w, two, ints("axis", 2), ints("one", 1), ints("zero", 0)]
    model = make_model(nodes, [floats("x", "batch", 8, "k")], [floats("y", 1, "batch", 3)], constants)
    back = check(model, {"x": array(5, 8, 1)})
    assert "If" not in ops(back.graph)


def test_branches_of_different_ranks() -> None:
    def branch(op: str, *inputs: str, **attributes: Any) -> onnx.GraphProto:
        node = helper.make_node(op, ["x", *inputs], [op], **attributes)
        return helper.make_graph([node], op, [], [helper.make_tensor_value_info(op, TensorProto.FLOAT, None)])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["u"], then_branch=branch("Flatten"), else_branch=branch("Neg")),
        helper.make_node("Mul", ["u", "u"], ["y"]),
    ]
    zero = numpy_helper.from_array(np.float32(0), "zero")
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = make_model(nodes, [floats("x", 2, 3, 4)], [out], [zero])
    x = np.abs(array(2, 3, 4))
    check(model, {"x": x}, {"x": -x})


def collecting_loop() -> onnx.ModelProto:
    """A Loop that stacks what it computes in each turn; how many turns, and how wide, the run tells."""
    body = helper.make_graph(
        [helper.make_node("Mul", ["a", "half"], ["a_next"]), helper.make_node("Add", ["a_next", "bias"], ["row"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            floats("a", "batch", 4),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            floats("a_next", "batch", 4),
            floats("row", "batch", 4),
        ],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["last", "rows"], body=body)]
    n = helper.make_tensor_value_info("n", TensorProto.INT64, [])
    constants = [
        numpy_helper.from_array(np.float32(0.5), "half"),
        numpy_helper.from_array(np.arange(4, dtype=np.float32), "bias"),
    ]
    outputs = [floats("last", "batch", 4), floats("rows", "turns", "batch", 4)]
    return make_model(nodes, [n, floats("x", "batch", 4)], outputs, constants)


def test_a_loop_stacks_its_rows() -> None:
    model = collecting_loop()
    back = check(model, *({"n": np.array(turns), "x": array(3, 4)} for turns in (1, 5)))
    (loop,) = [node for node in back.graph.node if node.op_type == "Loop"]
    body = loop.attribute[0].g
    assert "Concat" not in ops(body)  # ONNX Runtime dies of one with an empty list
    assert len(body.output) > len(body.input) - 1  # there are rows besides what is carried


def test_padding_that_follows_from_an_open_size() -> None:
    """Half of it, rounded down: what is divided is negative at some sizes (case 31000039)."""
    pool = helper.make_node("AveragePool", ["x"], ["y"], auto_pad="SAME_LOWER", kernel_shape=[4, 4], strides=[3, 1])
    model = make_model([pool], [floats("x", 1, 2, "height", 5)], [floats("y", 1, 2, None, None)], opset=19)
    check(model, *({"x": array(1, 2, height, 5)} for height in (4, 5, 6, 7)))


@pytest.mark.parametrize("start", [-3, -1, 0, 2, 7])
@pytest.mark.parametrize("end", [-2, 3])
def test_slice_from_where_the_run_says(start: int, end: int) -> None:
    """Case 31000148: a number out of a tensor may count from the end, as no size does."""
    nodes = [
        helper.make_node("Slice", ["x", "start", "end", "axis"], ["part"]),
        helper.make_node("Relu", ["part"], ["y"]),
    ]
    given = helper.make_tensor_value_info("start", TensorProto.INT64, [1])
    constants = [ints("end", end), ints("axis", 1)]
    model = make_model(nodes, [floats("x", 0, 5), given], [floats("y", 0, None)], constants)
    check(model, {"x": array(0, 5), "start": np.array([start])})  # what has no elements is made by its shape alone


REDUCTIONS = ["Sum", "Mean", "Prod", "Max", "Min", "SumSquare", "L1", "L2", "LogSum", "LogSumExp"]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_axes_that_the_run_says(op: str, keepdims: int) -> None:
    """Cases 31000138, 37000172 and 38000213: PyTorch runs such programs, though it exports none."""
    given = helper.make_tensor_value_info("axes", TensorProto.INT64, [2])
    node = helper.make_node(f"Reduce{op}", ["x", "axes"], ["y"], keepdims=keepdims)
    model = make_model([node], [floats("x", 2, 3, 4), given], [floats("y", *[None] * (1 + 2 * keepdims))])
    x = RNG.uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
    runs = [{"x": x, "axes": np.array(axes)} for axes in ((0, -1), (1, 2), (1, 0))]
    check(model, *runs)
    program = torch.export.load("there.pt2").module()
    for feeds in runs:
        got = program(*(torch.from_numpy(feeds[name]) for name in ("x", "axes")))
        np.testing.assert_allclose(got.numpy(), runtime_run(model, feeds)[0], rtol=1e-4)


@pytest.mark.parametrize("size", [1, 4])
def test_squeeze_of_nothing_of_an_open_size(size: int) -> None:
    """Case 31000340: which axes go away does not follow from the type that PyTorch gives the result."""
    model = make_model([helper.make_node("Squeeze", ["x"], ["y"])], [floats("x", 0, 1, "n")], [floats("y")])
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.zeros((0, 1, size), np.float32)
    (got,) = runtime_run(there_and_back(model), {"x": x})
    assert got.shape == runtime_run(model, {"x": x})[0].shape


def test_window_whose_length_the_run_says() -> None:
    """Case 31000096: a script computes the length, and what reads it says that there is no number."""
    given = helper.make_tensor_value_info("size", TensorProto.INT64, [])
    model = make_model([helper.make_node("HannWindow", ["size"], ["y"])], [given], [floats("y", None)], opset=17)
    tonnx.convert(model, "there.pt")
    got = torch.jit.load("there.pt")(torch.tensor(7))
    np.testing.assert_allclose(got.numpy(), runtime_run(model, {"size": np.array(7)})[0], atol=1e-6)
    with pytest.raises(tonnx.Error, match="'window_length' of hann_window follows from"):
        tonnx.convert("there.pt", "back.onnx", input_types={"0": "int64"}, input_shapes={"0": []})


def script_and_back(model: onnx.ModelProto, *feeds: np.ndarray) -> None:
    """Through a .pt file, where the sizes of floats are open, and back."""
    tonnx.convert(model, "there.pt")
    shapes = {str(i): [-1] * x.ndim if x.dtype.kind == "f" else list(x.shape) for i, x in enumerate(feeds)}
    tonnx.convert(
        "there.pt", "back.onnx", input_shapes=shapes, input_types={str(i): x.dtype.name for i, x in enumerate(feeds)}
    )
    names = [i.name for i in model.graph.input]
    want = runtime_run(model, dict(zip(names, feeds, strict=True)))[0]
    back = onnx.load("back.onnx")
    got = runtime_run(back, dict(zip((i.name for i in back.graph.input), feeds, strict=True)))[0]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(("part", "whole"), [(1, 5), (5, 1), (3, 3)])
def test_sum_with_a_size_that_the_run_says(part: int, whole: int) -> None:
    """Case 37000016: which of the two is the 1 that is repeated, nobody knows beforehand."""
    nodes = [
        helper.make_node("Slice", ["x", "zero", "end", "one"], ["slice"]),
        helper.make_node("Add", ["slice", "z"], ["sum"]),
        helper.make_node("Shape", ["sum"], ["y"]),
    ]
    given = helper.make_tensor_value_info("end", TensorProto.INT64, [1])
    result = helper.make_tensor_value_info("y", TensorProto.INT64, [2])
    model = make_model(
        nodes, [floats("x", 2, "n"), given, floats("z", 2, "m")], [result], [ints("zero", 0), ints("one", 1)]
    )
    script_and_back(model, array(2, 6), np.array([part]), array(2, whole))


def test_reshape_to_what_the_run_says() -> None:
    """Case 35000070: a size that is read out of a tensor may be -1."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["s"]), helper.make_node("Shape", ["s"], ["y"])]
    given = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    result = helper.make_tensor_value_info("y", TensorProto.INT64, [2])
    model = make_model(nodes, [floats("x", "n", 4), given], [result])
    for sizes in ([-1, 3], [8, 3], [2, -1]):
        script_and_back(model, array(6, 4), np.array(sizes))
    model = make_model(nodes, [floats("x", 6, 4), given], [result])
    check(model, *({"x": array(6, 4), "shape": np.array(sizes)} for sizes in ([-1, 3], [8, 3], [2, -1])))


def test_range_down_to_what_the_run_says() -> None:
    """Case 31000156: the count is by a number that may be negative, and no size."""
    nodes = [helper.make_node("Range", ["zero", "end", "step"], ["r"]), helper.make_node("Shape", ["r"], ["y"])]
    given = helper.make_tensor_value_info("end", TensorProto.INT64, [])
    result = helper.make_tensor_value_info("y", TensorProto.INT64, [1])
    constants = [numpy_helper.from_array(np.array(n), name) for name, n in (("zero", 0), ("step", -1))]
    model = make_model(nodes, [given], [result], constants)
    check(model, *({"end": np.array(end)} for end in (-4, 0, 3)))
    script_and_back(model, np.array(-4))


def test_windows_over_what_the_run_pads() -> None:
    """Case 69000156: how many windows there are follows from a size that no other tensor has."""
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["p"], mode="edge"),
        helper.make_node("LpPool", ["p"], ["y"], kernel_shape=[3, 1], dilations=[2, 1], strides=[2, 1], p=2),
    ]
    pads = helper.make_tensor_value_info("pads", TensorProto.INT64, [8])
    model = make_model(nodes, [floats("x", 2, "n", 3, 2), pads], [floats("y", None, None, None, None)])
    check(
        model,
        *(
            {"x": array(2, n, 3, 2), "pads": np.array([0, 0, 2, 1, 0, 1, behind, 0])}
            for n, behind in ((2, 0), (3, 4), (1, 1))
        ),
    )


def weights(*named: tuple[str, tuple[int, ...]]) -> list[onnx.TensorProto]:
    rng = np.random.default_rng(0)
    return [random_tensor(rng, name, *shape) for name, shape in named]


def checked_model(*parts: Any) -> onnx.ModelProto:
    model = make_model(*parts, opset=20)
    onnx.checker.check_model(model, full_check=True)
    return model


def lstm_net() -> onnx.ModelProto:
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], hidden_size=5, direction="bidirectional"),
        helper.make_node("ReduceMean", ["y"], ["m"], keepdims=0, noop_with_empty_axes=0),
        helper.make_node("Add", ["h", "m"], ["out"]),
    ]
    held = weights(("w", (2, 20, 4)), ("r", (2, 20, 5)), ("b", (2, 40)))
    return checked_model(nodes, [floats("x", 6, 3, 4)], [floats("out", 2, 3, 5), floats("c", 2, 3, 5)], held)


def branch_net() -> onnx.ModelProto:
    def branch(op: str) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node(op, ["x", "s"], [op])], op, [], [floats(op, 3, 4)])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Mul"), else_branch=branch("Sub")),
    ]
    zero = numpy_helper.from_array(np.float32(0), "zero")
    return checked_model(nodes, [floats("x", 3, 4)], [floats("y", 3, 4)], [zero])


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
            floats("a", 3),
        ],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), floats("a_next", 3)],
    )
    constants = [
        numpy_helper.from_array(np.int64(9), "n"),
        numpy_helper.from_array(np.array(True), "yes"),
        numpy_helper.from_array(np.array([1.5, 2, 0.5], np.float32), "w"),
        numpy_helper.from_array(np.float32(40), "limit"),
    ]
    return checked_model(
        [helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)],
        [floats("x", 3)],
        [floats("y", 3)],
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
    return checked_model(nodes, [ids], [floats("y", "batch", 7, 8)], held)


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

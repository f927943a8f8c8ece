"""Inputs of which the file gives no rank: other inputs tell it, or the code asks at run time. The standard's own values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from conftest import KNOWN_FAILURES
from known_failures import read
from models import runtime_run
from node_tests import from_torch, node_tests, numpy_value, outputs_difference, sample, to_torch
from onnx import TensorProto, helper, numpy_helper

import tonnx

# by operator: which inputs are constants
ASKED_AT_RUN_TIME: dict[str, tuple[int, ...]] = {
    "Attention": (),
    "DFT": (1, 2),
    "LayerNormalization": (),
    "RMSNormalization": (),
    "STFT": (1, 2, 3),
    "GatherElements": (),
    "GatherND": (),
    "ScatterElements": (),
    "ScatterND": (),
    "Flatten": (),
    "GlobalAveragePool": (),
    "GlobalMaxPool": (),
    "Transpose": (),
    "ReduceSum": (1,),
    "ReduceMax": (1,),
    "ReduceMean": (1,),
    "ReduceL1": (1,),
}
TOLD_BY_OTHERS: dict[str, tuple[int, ...]] = {
    "AveragePool": (),
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "DeformConv": (1, 3, 4),
    "Gemm": (),
    "GridSample": (1,),
    "LSTM": (1, 2, 3),
    "MaxPool": (),
    "Pad": (1, 2, 3),
    "Resize": (1, 2, 3),
    "Tile": (1,),
}
# ranks that matter in a way that nothing tells
LEFT_OUT = {
    **{
        f"test_attention_{how}": "16 bits, which PyTorch rounds elsewhere"
        for how in ("3d_causal_bf16", "4d_attn_mask_causal_bf16", "4d_causal_bf16", "4d_causal_fp16", "4d_fp16")
        + ("4d_causal_padded_kv_bf16", "4d_padded_kv_bf16")
    },
    **{f"test_reduce_max_empty_set{of}": "PyTorch has no largest element of nothing" for of in ("", "_bool")},
}


def cases() -> list[Any]:
    operators = ASKED_AT_RUN_TIME | TOLD_BY_OTHERS
    found = []
    for name, case in sorted(node_tests().items()):
        nodes = case.model.graph.node
        if len(nodes) == 1 and nodes[0].op_type in operators and name not in LEFT_OUT:
            is_unnamed = not any(a.name == "axes" for a in nodes[0].attribute)  # axes leave the rank open
            if is_unnamed or nodes[0].op_type != "Resize":
                found.append(pytest.param(case, operators[nodes[0].op_type], id=name))
    return found


def without_ranks(case: Any, constants: tuple[int, ...]) -> tuple[onnx.ModelProto, list[Any]]:
    """The model, some of whose inputs are constants and the others have no shape; and what is left to give it."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    given = [numpy_value(x) for x in case.data_sets[0][0]]
    fixed = {graph.node[0].input[i] for i in constants if i < len(graph.node[0].input)}
    kept = []
    for value, array in zip(list(graph.input), given, strict=True):
        if value.name in fixed:
            graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
            graph.input.remove(value)
        else:
            kept.append(array)
    for value in [*graph.input, *graph.output]:
        value.type.tensor_type.ClearField("shape")
    return model, kept


@pytest.mark.parametrize(("case", "constants"), cases())
def test_node_without_ranks(case: Any, constants: tuple[int, ...]) -> None:
    model, inputs = without_ranks(case, constants)
    got = tonnx.convert(model)(*map(to_torch, inputs))
    got = tuple(map(from_torch, got)) if isinstance(got, tuple) else from_torch(got)
    wanted = [numpy_value(x) for x in case.data_sets[0][1]]
    assert outputs_difference(got, wanted, case.rtol, max(case.atol, 1e-6)) is None


def test_a_rank_that_a_branch_wants_is_not_that_of_the_value() -> None:
    """Outside of the branch the value may have another."""
    images = helper.make_node("MaxPool", ["x"], ["pooled"], kernel_shape=[2, 2])
    other = helper.make_node("Identity", ["x"], ["same"])
    branches = {
        "then_branch": helper.make_graph(
            [images], "images", [], [helper.make_tensor_value_info("pooled", TensorProto.FLOAT, None)]
        ),
        "else_branch": helper.make_graph(
            [other], "other", [], [helper.make_tensor_value_info("same", TensorProto.FLOAT, None)]
        ),
    }
    nodes = [
        helper.make_node("If", ["is_image"], ["y"], **branches),
        helper.make_node("Transpose", ["x"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("is_image", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "z")],
    )
    module = tonnx.convert(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    x = torch.randn(2, 3)
    y, z = module(x, torch.tensor(False))
    assert torch.equal(y, x) and torch.equal(z, x.T)
    image = torch.randn(1, 2, 4, 4)
    y, z = module(image, torch.tensor(True))
    assert y.shape == (1, 2, 3, 3) and z.shape == (4, 4, 2, 1)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("axes", [[1, 3], [-1, 0]])
def test_pads_of_axes_where_the_rank_is_unknown(mode: str, axes: list[int]) -> None:
    node = helper.make_node("Pad", ["x", "pads", "", "axes"], ["y"], mode=mode)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.array([2, -1, 0, 3]), "pads"),
            numpy_helper.from_array(np.array(axes), "axes"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
    x = np.random.default_rng(0).standard_normal((5, 5, 2, 6)).astype(np.float32)
    (want,) = runtime_run(model, {"x": x})
    np.testing.assert_array_equal(tonnx.convert(model)(torch.from_numpy(x)).numpy(), want)


def test_batches_of_indices_where_the_rank_is_unknown() -> None:
    """Two dimensions of batches, and indices of one, two and three dimensions in each."""
    node = helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=2)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("i", TensorProto.INT64, None),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    module = tonnx.convert(model)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 4, 5, 6)).astype(np.float32)
    for shape in ((2, 3, 1), (2, 3, 7, 2), (2, 3, 2, 2, 3)):
        indices = rng.integers(-4, 4, shape)
        (want,) = runtime_run(model, {"x": x, "i": indices})
        np.testing.assert_array_equal(module(torch.from_numpy(x), torch.from_numpy(indices)).numpy(), want)


# operators whose sizes, and not only whose ranks, decide on what they are in PyTorch
NEED_SIZES = {
    "CausalConvWithState": "as many groups as the weight has channels",
    "FlexAttention": "each head of K serves so many of Q",
}
KNOWN = (
    read(KNOWN_FAILURES)
    | LEFT_OUT
    | {
        "test_reduce_min_empty_set": "PyTorch has no least element of nothing",
        "test_resize_downsample_sizes_linear_pytorch_half_pixel": "one element, where PyTorch has no exception for it",
        "test_basic_deform_conv_with_padding": "differs in the last digit, and the test takes none of it",
    }
)


def strip(type_proto: onnx.TypeProto) -> None:
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type":
        type_proto.tensor_type.ClearField("shape")
    elif kind in ("sequence_type", "optional_type"):
        strip(getattr(type_proto, kind).elem_type)


@pytest.mark.parametrize("name", [name for name in sample() if name not in KNOWN])
def test_node_whose_inputs_are_all_of_unknown_shape(name: str) -> None:
    """Not even the length of a list of axes or sizes is known, and no input is a constant."""
    case = node_tests()[name]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        strip(value.type)
    operator = model.graph.node[0].op_type
    if operator in NEED_SIZES:
        with pytest.raises(tonnx.Error, match="not known"):
            tonnx.convert(model)
        return
    module = tonnx.convert(model)
    for inputs, outputs in case.data_sets:
        got = module(*(to_torch(numpy_value(x)) for x in inputs))
        got = tuple(map(from_torch, got)) if isinstance(got, tuple) else from_torch(got)
        assert outputs_difference(got, [numpy_value(x) for x in outputs], case.rtol, max(case.atol, 1e-6)) is None


def unknown(name: str, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, None)


def check_all(nodes: list[onnx.NodeProto], names: list[str], runs: list[list[np.ndarray]], opset: int = 18) -> None:
    """One module, for inputs of several ranks, beside ONNX Runtime."""
    inputs = [unknown(name, helper.np_dtype_to_tensor_dtype(x.dtype)) for name, x in zip(names, runs[0], strict=True)]
    shaped = onnx.ModelProto()
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")])
    shaped.CopyFrom(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10))
    module = tonnx.convert(shaped)
    for run in runs:
        (want,) = runtime_run(shaped, dict(zip(names, run, strict=True)))
        got = from_torch(module(*map(to_torch, run)))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        assert got.dtype == want.dtype and got.shape == want.shape


RNG = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_of_several_ranks(mode: str) -> None:
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode, axes=[-1])
    runs = [[normal(*shape), np.array([size])] for shape, size in (((2, 3, 4), 7), ((2, 3, 5, 6), 9), ((3, 8), 5))]
    check_all([node], ["x", "sizes"], runs)


def test_dequantise_by_one_scale_or_by_a_row() -> None:
    node = helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["y"])
    runs = []
    for shape, channels in (((2, 3), 3), ((2, 5, 4), 5), ((2, 2, 3, 4), 2), ((6,), None), ((2, 3, 4, 2, 2), None)):
        scale = RNG.uniform(0.1, 2, () if channels is None else channels).astype(np.float32)
        zero = RNG.integers(0, 255, scale.shape).astype(np.uint8)
        runs.append([RNG.integers(0, 255, shape).astype(np.uint8), np.asarray(scale), np.asarray(zero)])
    check_all([node], ["x", "scale", "zero"], runs, opset=19)


def test_samples_of_lines_images_and_volumes() -> None:
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode="nearest")
    runs = []
    for rank in (2, 3):
        grid = RNG.uniform(-1, 1, (2, *[5] * rank, rank)).astype(np.float32)
        runs.append([normal(2, 3, *[4] * rank), grid])
    check_all([node], ["x", "grid"], runs, opset=20)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_products_along_axes_of_unknown_number(keepdims: int) -> None:
    node = helper.make_node("ReduceProd", ["x", "axes"], ["y"], keepdims=keepdims)
    runs = [[normal(2, 3, 4), np.array(axes, np.int64)] for axes in ([1], [0, 2], [-1, -2, 0], [])]
    runs.append([normal(3, 2, 2, 2), np.array([3, 1])])
    check_all([node], ["x", "axes"], runs)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceProd", "ReduceMax"])
def test_no_axes_may_mean_that_nothing_is_reduced(op: str) -> None:
    node = helper.make_node(op, ["x", "axes"], ["y"], noop_with_empty_axes=1)
    check_all([node], ["x", "axes"], [[normal(2, 3, 4), np.array(axes, np.int64)] for axes in ([], [1], [0, -1])])


def test_slices_of_so_many_axes_as_there_are_starts() -> None:
    node = helper.make_node("Slice", ["x", "starts", "ends"], ["y"])
    runs = [
        [normal(*shape), np.array(starts), np.array(ends)]
        for shape, starts, ends in (
            ((4, 5, 6), [1], [3]),
            ((4, 5), [0, -2], [2, 9]),
            ((4, 5, 6), [1, 1, 1], [-1, 3, 9]),
        )
    ]
    check_all([node], ["x", "starts", "ends"], runs)


def test_axes_put_in_and_taken_out_as_the_run_says() -> None:
    put = helper.make_node("Unsqueeze", ["x", "axes"], ["y"])
    runs = [[normal(*shape), np.array(axes)] for shape, axes in (((2, 3), [0]), ((2, 3), [-1, 1]), ((4,), [0, 2, 3]))]
    check_all([put], ["x", "axes"], runs)
    out = helper.make_node("Squeeze", ["x", "axes"], ["y"])
    runs = [[normal(*shape), np.array(axes)] for shape, axes in (((2, 1, 3), [1]), ((1, 2, 1), [0, -1]))]
    check_all([out], ["x", "axes"], runs)


def test_a_rank_beyond_all_that_were_written_out_is_an_error() -> None:
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], axes=[-1])
    graph = helper.make_graph([node], "g", [unknown("x"), unknown("sizes", TensorProto.INT64)], [unknown("y")])
    module = tonnx.convert(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    assert module(torch.ones(1, 2, 3, 4), torch.tensor([8])).shape == (1, 2, 3, 8)
    with pytest.raises(RuntimeError, match="expand"):
        module(torch.ones(1, 1, 1, 1, 2, 3, 4), torch.tensor([8]))


def test_the_rank_is_asked_twice() -> None:
    """Two nodes that give the sizes of the same tensor are one, and so are the numbers that follow from them."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Shape", ["x"], ["t"]),
        helper.make_node("Size", ["t"], ["n"]),
        helper.make_node("Gather", ["s", "i"], ["size"]),
        helper.make_node("Mul", ["n", "size"], ["y"]),
    ]
    check_all(nodes, ["x", "i"], [[normal(2, 3), np.array(1)], [normal(4, 5, 6), np.array([0, 2])]])


# 64000184: nothing tells which size is open where there are no elements
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 0, 4), (0, 3, 0)])
@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 3])
def test_flatten_where_the_rank_is_unknown(axis: int, shape: tuple[int, ...]) -> None:
    node = helper.make_node("Flatten", ["x"], ["y"], axis=axis)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    graph = helper.make_graph([node], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    given = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(
        tonnx.convert(model)(torch.from_numpy(given)).numpy(), runtime_run(model, {"x": given})[0]
    )

"""Inputs of which the file gives no rank: other inputs tell it, or the code asks at run time. The standard's own values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import runtime_run
from node_tests import from_torch, node_tests, numpy_value, outputs_difference, to_torch
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

"""Inputs of which the file gives no rank: other inputs tell it, or the code asks at run time. The standard's own values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from node_tests import from_torch, node_tests, numpy_value, outputs_difference, to_torch
from onnx import TensorProto, helper, numpy_helper

import tonnx

# by operator: which inputs are constants
ASKED_AT_RUN_TIME: dict[str, tuple[int, ...]] = {
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
    "Pad": (1, 2),
    "Resize": (1, 2, 3),
    "Tile": (1,),
}
# ranks that matter in a way that nothing tells
LEFT_OUT = {
    "test_gathernd_example_int32_batch_dim1": "batches of indices whose rank is not known",
    "test_constant_pad_axes": "axes that count from the front",
    "test_constant_pad_negative_axes": "the same, from the back",
    **{f"test_reduce_max_empty_set{of}": "PyTorch has no largest element of nothing" for of in ("", "_bool")},
    **{
        f"test_scatternd_{how}": "is computed with flat indices"
        for how in ("max", "max_with_element_indices", "min", "min_with_element_indices", "multiply")
    },
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

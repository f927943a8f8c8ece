"""ONNX's node tests through a TorchScript archive and back: what ONNX Runtime computes is what the test expects."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import KNOWN_FAILURES
from known_failures import first_line, judge, read
from node_tests import node_tests, numpy_value, outputs_difference, widened
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import tonnx
from tonnx._runtime import open_session

KNOWN_BACK = Path(__file__).with_name("known_failures_pt.txt")
KNOWN = read(KNOWN_BACK)
# what PyTorch does not compute as the test expects need not come back; what does, must
WRITTEN = (
    node_tests().keys()
    - read(KNOWN_FAILURES).keys()
    - read(Path(__file__).with_name("torchscript_failures.txt")).keys()
)


def is_of_numpy(array: np.ndarray) -> bool:
    return array.dtype.type.__module__ == "numpy"  # a dtype out of a pickle is no builtin one


def with_casts(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with float32 in place of inputs and outputs whose types numpy does not have."""
    graph, before, after = model.graph, [], []
    plain = {*range(1, 16)}
    for value in graph.input:
        kind = value.type.tensor_type.elem_type
        if value.type.HasField("tensor_type") and kind not in plain:
            before.append(helper.make_node("Cast", [value.name + "_wide"], [value.name], to=kind))
            value.name, value.type.tensor_type.elem_type = value.name + "_wide", TensorProto.FLOAT
    for value in graph.output:
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type not in plain:
            after.append(helper.make_node("Cast", [value.name], [value.name + "_wide"], to=TensorProto.FLOAT))
            value.name, value.type.tensor_type.elem_type = value.name + "_wide", TensorProto.FLOAT
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def outputs_of(model: onnx.ModelProto, inputs: list[np.ndarray]) -> list[Any]:
    """What ONNX Runtime computes; ONNX's own evaluator where that has no kernel."""
    model = with_casts(model)
    feeds = {
        value.name: array if is_of_numpy(array) else array.astype(np.float32)
        for value, array in zip(model.graph.input, inputs, strict=True)
    }
    try:
        return list(open_session(model.SerializeToString()).run(None, feeds))
    except Exception as error:
        if not any(text in str(error) for text in ("NOT_IMPLEMENTED", "INVALID_GRAPH", "ValidateOpset")):
            raise
        return list(ReferenceEvaluator(model).run(None, feeds))


def like(got: Any, want: Any) -> Any:
    """A value that was widened for numpy, in the type that the test expects."""
    if isinstance(want, np.ndarray) and isinstance(got, np.ndarray) and not is_of_numpy(want):
        return got.astype(want.dtype)
    return got


def flat(values: list[Any]) -> list[Any]:
    """Elements of lists are inputs and outputs of their own."""
    return [each for value in values for each in (flat(value) if isinstance(value, list) else [value])]


def arrays_by_path(inputs: list[Any]) -> dict[str, np.ndarray]:
    """The arrays, by the places of the arguments: `1.0` is the first element of the second."""
    found: dict[str, np.ndarray] = {}
    for i, value in enumerate(map(numpy_value, inputs)):
        if isinstance(value, list):
            found |= {f"{i}.{place}": array for place, array in arrays_by_path(value).items()}
        elif value is not None:
            found[str(i)] = widened(np.asarray(value))
    return found


def convert_back(arrays: dict[str, np.ndarray], model: onnx.ModelProto) -> None:
    shapes = {path: list(array.shape) for path, array in arrays.items()}
    types = {path: array.dtype.name for path, array in arrays.items()}
    try:
        tonnx.convert("model.pt", "back.onnx", input_shapes=shapes, input_types=types)
    except tonnx.Error as error:
        if "cannot be brought from opset" not in str(error):
            raise
        opset = next(i.version for i in model.opset_import if i.domain == "")
        tonnx.convert("model.pt", "back.onnx", opset=opset, input_shapes=shapes, input_types=types)


def why_it_fails(case: Any) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tonnx.convert(case.model, "model.pt")
            for inputs, outputs in case.data_sets:
                arrays = arrays_by_path(inputs)
                convert_back(arrays, case.model)
                want = flat([numpy_value(x) for x in outputs])
                got = outputs_of(onnx.load("back.onnx"), list(arrays.values()))
                got = [like(g, w) for g, w in zip(got, want, strict=True)]
                if why := outputs_difference(tuple(got), want, case.rtol, case.atol):
                    return why
    except Exception as error:
        return first_line(error)
    return None


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_node(name: str) -> None:
    why = why_it_fails(node_tests()[name])
    judge(why, KNOWN.get(name))


def test_list_names_only_tests_that_exist() -> None:
    assert sorted(KNOWN.keys() - WRITTEN) == []

"""Constant folding: every ONNX backend node test with its inputs as initializers, through tonnx.simplify.

An output that became a constant must be the expected one. Tests that are not folded whole are in not_folded.txt, with
the operators that are left; one that is listed and folds is a failure, so that the list says what is true.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conftest import FOLDED_TEST, NOT_FOLDED
from known_failures import read
from node_tests import difference, node_tests, numpy_value
from onnx import numpy_helper

import tonnx

LISTED = read(NOT_FOLDED)
MOST_LEFT = 6  # operators that a reason names
GROWTH = 100  # a file may grow by a hundredth of its size


def is_tensor(value: Any) -> bool:
    return isinstance(value, onnx.TensorProto | np.ndarray | np.generic)


def tensor_of(value: Any, name: str) -> onnx.TensorProto:
    tensor = onnx.TensorProto()
    tensor.CopyFrom(value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value)))
    tensor.name = name
    return tensor


def with_initializers(case: Any) -> onnx.ModelProto:
    """The model with the inputs of its first data set as weights."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    inputs, outputs = case.data_sets[0]
    model.graph.initializer.extend(tensor_of(x, value.name) for x, value in zip(inputs, model.graph.input, strict=True))
    del model.graph.input[:]
    model.doc_string = " " * GROWTH * sum(np.asarray(numpy_value(y)).nbytes for y in outputs if is_tensor(y))
    return model


def constants(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].name == "value":
            found[node.output[0]] = node.attribute[0].t
    return {name: numpy_helper.to_array(tensor) for name, tensor in found.items()}


def exact_difference(got: np.ndarray, want: np.ndarray, rtol: float, atol: float) -> str | None:
    """Types of fewer than 16 bits, which `difference` widens, must agree in every bit."""
    want = np.asarray(want)
    if want.dtype.kind not in "OSU":
        if got.dtype != want.dtype:
            return f"type {got.dtype} instead of {want.dtype}"
        if want.dtype.name.startswith(("float8_", "float6_", "float4_")) and got.shape == want.shape:
            return None if (got.view(np.uint8) == want.view(np.uint8)).all() else f"{got} instead of {want}"
    return difference(got, want, rtol, atol)


def folded(case: Any) -> tuple[str | None, str | None]:
    """(what is wrong, what was not folded)."""
    try:
        graph = tonnx.simplify(with_initializers(case))[0].graph
    except tonnx.Error as error:
        return None, str(error).splitlines()[0].removeprefix("error: ")[:120]
    found = constants(graph)
    for value, want in zip(graph.output, case.data_sets[0][1], strict=True):
        if value.name not in found:
            continue
        if not is_tensor(want):
            return f"{value.name}: a tensor instead of {type(want).__name__}", None
        if why := exact_difference(found[value.name], numpy_value(want), case.rtol, case.atol):
            return f"{value.name}: {why}", None
    left = sorted({node.op_type for node in graph.node if node.output[0] not in found})
    if not left:
        return None, None
    return None, "left: " + ", ".join(left[:MOST_LEFT]) + (", ..." if len(left) > MOST_LEFT else "")


TESTS = sorted(name for name, case in node_tests().items() if all(map(is_tensor, case.data_sets[0][0])))


@pytest.mark.parametrize("name", TESTS)
def test_folded(name: str, record_property: Any, request: pytest.FixtureRequest) -> None:
    wrong, left = folded(node_tests()[name])
    assert wrong is None, wrong
    record_property(FOLDED_TEST, (name, left))
    if request.config.getoption("--update-not-folded"):
        return
    if name not in LISTED:
        assert left is None, f"is not folded: {left}"
    elif left is None:
        pytest.fail("is folded now: remove it from not_folded.txt (pytest --update-not-folded)")


def test_list_names_only_tests_that_exist() -> None:
    assert sorted(LISTED.keys() - set(TESTS)) == []

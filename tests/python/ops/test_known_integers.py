"""Arithmetic on shapes: integers in the code where they are certain, tensors where not, the same values in both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import tonnx

X = np.zeros((3, 5), np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def model_of(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Nodes that turn `s`, the shape of an input with open sizes, into `y`."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length"])]
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    nodes = [helper.make_node("Shape", ["x"], ["s"]), *nodes]
    graph = helper.make_graph(nodes, "shapes", inputs, [onnx.ValueInfoProto(name="y")], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def node(op: str, *names: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, names[:-1], names[-1:], **attributes)


NEGATED = node("Neg", "s", "n")
EQUAL = node("Equal", "s", "c", "e")
CHOSEN = node("Where", "e", "d", "s", "y")
TO_INT32 = {"to": TensorProto.INT32}

# nodes, constants, text that the code has
CASES = [
    ([node("Add", "s", "c", "y")], {"c": ints(2, 3)}, "x.size(0) + 2, x.size(1) + 3"),
    ([node("Mul", "s", "c", "a"), node("Sub", "a", "d", "y")], {"c": ints(2), "d": np.array(1)}, "x.size(0) * 2 - 1"),
    ([node("Div", "s", "c", "y")], {"c": ints(2)}, "x.size(0) // 2"),
    ([NEGATED, node("Div", "n", "c", "y")], {"c": ints(2)}, 'rounding_mode="trunc"'),
    ([node("Mod", "s", "c", "y")], {"c": ints(2)}, "x.size(0) % 2"),
    ([NEGATED, node("Mod", "n", "c", "y")], {"c": ints(2)}, "% 2"),
    ([NEGATED, node("Mod", "n", "c", "y", fmod=1)], {"c": ints(2)}, "torch.fmod"),
    ([node("Max", "s", "c", "y")], {"c": ints(4)}, "torch.sym_max(4, x.size(0))"),
    ([node("Min", "s", "c", "d", "y")], {"c": ints(4), "d": ints(9, 1)}, "torch.sym_min"),
    ([EQUAL, CHOSEN], {"c": ints(-1), "d": ints(1, 1)}, "[x.size(0), x.size(1)]"),
    ([EQUAL, CHOSEN], {"c": ints(3), "d": ints(1, 1)}, "torch.where"),
    ([node("Greater", "s", "c", "g"), node("Not", "g", "f"), node("Or", "f", "g", "o"),
      node("Cast", "o", "y", **TO_INT32)], {"c": ints(-1)}, "return self."),
    ([node("Cast", "s", "y", **TO_INT32)], {}, "dtype=torch.int32"),
    ([node("Cast", "s", "f", to=TensorProto.FLOAT), node("Mul", "f", "h", "y")], {"h": np.array(0.5, np.float32)},
     "dtype=torch.float32"),
    ([node("Identity", "s", "i"), node("Abs", "i", "y")], {}, "[x.size(0), x.size(1)]"),
    ([node("Add", "s", "c", "y")], {"c": ints(2**63 - 1)}, "device=x.device) + 9223372036854775807"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "constants", "text"), CASES)
def test_values_and_code(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], text: str) -> None:
    model = model_of(nodes, constants)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": X})
    got = tonnx.convert(model)(torch.from_numpy(X)).numpy()
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    tonnx.convert(model, "model.py")
    assert text in Path("model.py").read_text()


def test_expressions_do_not_explode() -> None:
    squares = [node("Mul", "s", "s", "a0"), *(node("Mul", f"a{i}", f"a{i}", f"a{i + 1}") for i in range(60))]
    tonnx.convert(model_of([*squares, node("Identity", "a60", "y")], {}))
    nested = [node("Identity", "s", "a0")]
    for i in range(60):
        nested += [node("Add", f"a{i}", "c", f"b{i}"), node("Mul", f"a{i}", "d", f"c{i}")]
        nested += [node("Max", f"b{i}", f"c{i}", f"a{i + 1}")]
    tonnx.convert(model_of([*nested, node("Identity", "a60", "y")], {"c": ints(7), "d": ints(3)}))


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [("Div", 7, 0), ("Mod", 7, 0), ("Div", -(2**63), -1), ("Mod", -(2**63), -1), ("Sub", -(2**63), 1)],
)
def test_numbers_that_trap(op: str, left: int, right: int) -> None:
    nodes = [node("Sub", "s", "s", "z"), node("Add", "z", "a", "l"), node(op, "a", "b", "y")]
    tonnx.convert(model_of(nodes, {"a": ints(left), "b": ints(right)}))


def test_numbers_are_folded() -> None:
    """The scale of attention, 1 / sqrt(size), is one number in the code."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])]
    one = helper.make_node("Constant", [], ["one"], value_float=1.0)
    nodes = [
        one,
        node("Shape", "x", "s", start=1),
        node("Cast", "s", "f", to=TensorProto.FLOAT),
        node("Sqrt", "f", "r"),
    ]
    nodes += [node("Div", "one", "r", "d"), node("Mul", "x", "d", "y")]
    graph = helper.make_graph(nodes, "scale", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    tonnx.convert(model, "model.py")
    assert "return x * 0.25" in Path("model.py").read_text()


def test_a_weight_that_nodes_make_of_another_stays_a_weight_of_that_name() -> None:
    weights = {"w": np.array([4.0, 9.0], np.float32)}
    nodes = [node("Sqrt", "w", "r"), node("Mul", "x", "r", "y")]
    module = tonnx.convert(model_of(nodes, weights))
    assert [name for name, _ in module.named_parameters()] == ["w"]

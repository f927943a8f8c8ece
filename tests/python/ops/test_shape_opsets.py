"""The families of shapes, slices, pads and joins from one opset to another: up and down give the same, or a clear refusal."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from checks import check_opset, refuses_opset

import tonnx

X = np.random.default_rng(9).standard_normal((1, 3, 4)).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


LISTS = [  # the list is an attribute below the opset, an input from it on
    ("Squeeze", 13, "axes", (0,), {}),
    ("Squeeze", 13, "axes", (-3,), {}),
    ("Unsqueeze", 13, "axes", (0, -1), {}),
    ("Split", 13, "split", (1, 2), {"axis": 1, "outputs": 2}),
    ("Pad", 11, "pads", (0, 1, 0, 0, 0, 2), {}),
]


@pytest.mark.parametrize(("op", "step", "name", "values", "options"), LISTS)
def test_list_becomes_an_input(op: str, step: int, name: str, values: tuple[int, ...], options: dict[str, int]) -> None:
    old = check_opset(op, {"x": X, name: ints(*values)}, 18 if op != "Split" else 13, step - 1, (name,), **options)
    assert [attribute.name for attribute in old.graph.node[-1].attribute if attribute.name == name] == [name]
    new = check_opset(op, {"x": X}, step - 1, 21, **options, **{name: list(values)})
    assert len(new.graph.node[-1].input) == 2
    assert "not constant" in refuses_opset(
        op, {"x": X, name: ints(*values)}, 18 if op != "Split" else 13, step - 1, **options
    )


def test_slice() -> None:
    lists = {"starts": ints(1), "ends": ints(3), "axes": ints(2)}
    old = check_opset("Slice", {"x": X, **lists}, 13, 9, tuple(lists))
    assert sorted(attribute.name for attribute in old.graph.node[0].attribute) == ["axes", "ends", "starts"]
    check_opset("Slice", {"x": X, **lists, "steps": ints(1)}, 13, 9, (*lists, "steps"))
    check_opset("Slice", {"x": X}, 9, 18, starts=[1], ends=[3], axes=[2])
    assert "no steps" in refuses_opset("Slice", {"x": X, **lists, "steps": ints(2)}, 13, 9, constant=(*lists, "steps"))


def test_pad() -> None:
    feeds = {"x": X, "pads": ints(0, 1, 0, 0, 0, 2), "value": np.array(2.5, np.float32)}
    check_opset("Pad", feeds, 18, 10, ("pads", "value"))
    check_opset("Pad", {"x": X}, 10, 18, pads=[0, 1, 0, 0, 0, 2], value=2.5)
    axes = {"x": X, "pads": ints(1, 2), "value": None, "axes": ints(-1)}
    check_opset("Pad", axes, 18, 13, ("pads", "axes"))
    check_opset("Pad", axes, 18, 10, ("pads", "axes"))
    wraps = refuses_opset("Pad", {"x": X, "pads": ints(*[0] * 6)}, 19, 18, constant=("pads",), mode="wrap")
    assert "no mode 'wrap'" in wraps


def test_split_in_parts() -> None:
    check_opset("Split", {"x": X}, 18, 17, axis=2, num_outputs=2, outputs=2)
    check_opset("Split", {"x": X}, 18, 11, axis=2, num_outputs=2, outputs=2)
    check_opset("Split", {"x": X}, 13, 18, axis=2, outputs=2)
    uneven = check_opset("Split", {"x": X}, 18, 13, axis=2, num_outputs=3, outputs=3, reference=True)
    assert len(uneven.graph.node[0].input) == 2


@pytest.mark.parametrize(
    ("op", "options"), [("Flatten", {"axis": -1}), ("Concat", {"axis": -2}), ("Split", {"axis": -1, "outputs": 2})]
)
def test_axes_count_from_the_front(op: str, options: dict[str, int]) -> None:
    old = check_opset(op, {"x": X}, 11, 10, **options)
    axis = [attribute.i for attribute in old.graph.node[0].attribute if attribute.name == "axis"]
    assert axis == [options["axis"] + 3]
    assert "rank is not known" in without_rank(op, options)


def without_rank(op: str, options: dict[str, int]) -> str:
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [
                onnx.helper.make_node(
                    op, ["x"], [f"y{i}" for i in range(options.get("outputs", 1))], axis=options["axis"]
                )
            ],
            "g",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)],
            [onnx.helper.make_tensor_value_info("y0", onnx.TensorProto.FLOAT, None)],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 11)],
    )
    with pytest.raises(tonnx.Error) as error:
        tonnx.convert(model, "changed.onnx", opset=10)
    return str(error.value)


@pytest.mark.parametrize(
    "options", [{"value_ints": [1, 4, 3]}, {"value": onnx.numpy_helper.from_array(ints(1, 4, 3))}], ids=str
)
def test_lists_of_constant_nodes(options: dict[str, object]) -> None:
    """Exporters write axes and shapes as nodes, and not as initializers."""
    constant = onnx.helper.make_node("Constant", [], ["axes"], value_ints=[0])
    shape = onnx.helper.make_node("Constant", [], ["shape"], **options)
    nodes = [
        constant,
        shape,
        onnx.helper.make_node("Reshape", ["x", "shape"], ["z"]),
        onnx.helper.make_node("Squeeze", ["z", "axes"], ["y"]),
    ]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "g", [value("x", 1, [1, 3, 4])], [value("y", 1, [4, 3])])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    tonnx.convert(model, "changed.onnx", opset=11)
    changed = onnx.load("changed.onnx")
    onnx.checker.check_model(changed)
    session = onnxruntime.InferenceSession("changed.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X.reshape(4, 3))


def test_what_older_opsets_do_not_have() -> None:
    check_opset("Shape", {"x": X}, 15, 13, start=1)
    check_opset("Shape", {"x": X}, 15, 13, end=1)
    check_opset("Shape", {"x": X}, 15, 13, start=-2, end=-1)
    shape = {"x": X, "shape": ints(1, 12)}
    assert "allowzero" in refuses_opset("Reshape", shape, 14, 13, allowzero=1)
    check_opset("Reshape", shape, 14, 13, ("shape",), allowzero=1)
    check_opset("Reshape", shape, 14, 13, ("shape",), allowzero=0)
    check_opset("Shape", {"x": X}, 15, 13, start=0)


def test_types_that_came_later() -> None:
    low = {"x": X.astype(np.int32)}
    assert "does not take int32" in refuses_opset("Flatten", low, 11, 8)
    assert "does not take int32" in refuses_opset("Pad", low | {"pads": ints(*[0] * 6)}, 13, 10, constant=("pads",))
    check_opset("Flatten", {"x": X}, 13, 8)


def test_opset_1() -> None:
    tiles = refuses_opset("Tile", {"x": X, "repeats": ints(2, 2, 1)}, 6, 5, constant=("repeats",))
    assert "Tile" in tiles and "opset 6 to 5" in tiles

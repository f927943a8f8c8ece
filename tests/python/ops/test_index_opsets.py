"""Gather, Scatter, Reduce, TopK and Resize brought from one opset to another, and what cannot be."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from checks import check_opset, one_node, refuses_opset

import tonnx

X = np.random.default_rng(12).uniform(0.5, 2, (1, 2, 3, 4)).astype(np.float32)
AXES = np.array([-1, 1])
SCALES = np.array([1, 1, 2, 3], np.float32)
EMPTY = np.zeros(0, np.float32)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod", "SumSquare", "L1", "L2", "LogSum", "LogSumExp"])
def test_reduce(op: str) -> None:
    newest = 13 if op == "Sum" else 18
    for to in (12, 11, 10, 7):
        check_opset(f"Reduce{op}", {"data": X, "axes": AXES}, newest, to, ("axes",), keepdims=0)
        check_opset(f"Reduce{op}", {"data": X}, newest, to)
        check_opset(f"Reduce{op}", {"data": X}, to, newest, axes=[1, 3])
    assert "not constant" in refuses_opset(f"Reduce{op}", {"data": X, "axes": AXES}, newest, 11)
    assert "always reduces" in refuses_opset(f"Reduce{op}", {"data": X}, newest, 11, noop_with_empty_axes=1)


@pytest.mark.parametrize("op", ["ReduceLogSum", "ReduceLogSumExp"])
def test_logarithms_lost_the_integers(op: str) -> None:
    tonnx.convert(one_node(op, {"data": np.array([[2, 3]])}, 18), "changed.onnx", opset=28)
    assert [node.op_type for node in onnx.load("changed.onnx").graph.node] == ["Cast", op, "Cast"]


def test_arg_max() -> None:
    for to in (12, 11, 10, 7):
        check_opset("ArgMax", {"data": X}, 13, to, axis=-1, select_last_index=0)
        check_opset("ArgMin", {"data": X}, to, 13, axis=2)
    assert "select_last_index" in refuses_opset("ArgMax", {"data": X}, 13, 11, select_last_index=1)


def test_top_k() -> None:
    k = {"X": X, "K": np.array([2])}
    for to in (10, 9, 7):
        check_opset("TopK", k, 11, to, ("K",), outputs=2, largest=1, sorted=1)
    check_opset("TopK", {"X": X}, 9, 11, outputs=2, k=2)
    assert "largest" in refuses_opset("TopK", k, 11, 10, constant=("K",), outputs=2, largest=0)
    assert "not constant" in refuses_opset("TopK", k, 11, 9, outputs=2)
    assert "int32" in refuses_opset("TopK", k | {"X": X.astype(np.int32)}, 11, 10, outputs=2)


def test_gather() -> None:
    check_opset("Gather", {"data": X, "indices": np.array([0])}, 13, 7)
    assert "negative" in refuses_opset("Gather", {"data": X, "indices": np.array([-1])}, 13, 10, constant=("indices",))
    check_opset("GatherND", {"data": X, "indices": np.array([[0, 1]])}, 13, 11, batch_dims=0)
    assert "batch_dims" in refuses_opset("GatherND", {"data": X, "indices": np.array([[1]])}, 13, 11, batch_dims=1)


def test_scatter() -> None:
    inputs = {"data": X[0, 0], "indices": np.array([[0, 2, 1]]), "updates": np.float32([[7, 8, 9]])}
    changed = check_opset("Scatter", inputs, 9, 18, axis=1)
    assert changed.graph.node[0].op_type == "ScatterElements"
    check_opset("ScatterElements", inputs, 18, 13, axis=1, reduction="none")
    check_opset("ScatterElements", inputs, 18, 16, axis=1, reduction="add")
    assert "'max'" in refuses_opset("ScatterElements", inputs, 18, 16, reduction="max")
    assert "'add'" in refuses_opset("ScatterElements", inputs, 18, 15, reduction="add")


def test_one_hot() -> None:
    inputs = {"indices": np.array([0, 2]), "depth": np.array(3), "values": np.float32([0, 1])}
    check_opset("OneHot", inputs, 11, 9)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(mode: str) -> None:
    for to in (10, 11, 13, 19):
        changed = check_opset("Upsample", {"X": X, "scales": SCALES}, 9, to, ("scales",), mode=mode)
        assert changed.graph.node[0].op_type == "Resize"
        check_opset("Upsample", {"X": X}, 7, to, scales=SCALES.tolist(), mode=mode)
    check_opset("Upsample", {"X": X, "scales": SCALES}, 9, 7, ("scales",), mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[1, 1, 2, 3], [1, 1, 0.6, 0.5], [1, 1, 2, 0.5]], ids=str)
def test_resize_from_10(scales: list[float], mode: str) -> None:
    for to in (11, 13, 19):
        check_opset("Resize", {"X": X, "scales": np.float32(scales)}, 10, to, ("scales",), mode=mode)


def test_resize_down() -> None:
    inputs = {"X": X, "roi": None, "scales": SCALES}
    for to in (18, 17, 13, 11):
        check_opset("Resize", inputs, 19, to, ("scales",), mode="cubic")
        check_opset(
            "Resize", {"X": X, "roi": None, "scales": None, "sizes": np.array([1, 2, 5, 5])}, 19, to, ("sizes",)
        )
    options = {"coordinate_transformation_mode": "asymmetric", "constant": ("scales",)}
    check_opset("Resize", inputs, 19, 10, nearest_mode="floor", **options)
    check_opset("Resize", {"X": X, "roi": EMPTY, "scales": SCALES}, 11, 10, ("roi", "scales"), mode="linear",
                coordinate_transformation_mode="asymmetric")  # fmt: skip
    assert "cubic" in refuses_opset("Resize", inputs, 19, 10, mode="cubic", **options)
    assert "in another way" in refuses_opset("Resize", inputs, 19, 10, **options)
    assert "but asymmetric" in refuses_opset("Resize", inputs, 19, 10)
    symmetric = {"coordinate_transformation_mode": "half_pixel_symmetric"}
    assert "half_pixel_symmetric" in refuses_opset("Resize", inputs, 19, 18, **symmetric)
    assert "antialias" in refuses_opset("Resize", inputs, 19, 17, mode="linear", antialias=1)
    assert "axes" in refuses_opset("Resize", inputs | {"scales": SCALES[2:]}, 19, 17, axes=[2, 3])

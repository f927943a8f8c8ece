"""NonMaxSuppression: the boxes that ONNX Runtime selects, in its order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, expected, one_node

import tonnx

RNG = np.random.default_rng(7)


def boxes(batch: int, count: int, centred: bool = False) -> np.ndarray:
    first, size = RNG.random((batch, count, 2)), RNG.random((batch, count, 2)) * 0.4
    if not centred:
        size = np.where(RNG.random((batch, count, 2)) < 0.5, first + size, first - size)
    return np.concatenate([first, size], 2).astype(np.float32)


def inputs(batch: int, classes: int, count: int, most: int = 5, centred: bool = False) -> dict[str, np.ndarray]:
    return {
        "boxes": boxes(batch, count, centred),
        "scores": np.round(RNG.random((batch, classes, count)), 1).astype(np.float32),
        "most": np.array([most]),
        "overlap": np.array([0.3], np.float32),
        "least": np.array([0.35], np.float32),
    }


@pytest.mark.parametrize("opset", [10, 11])
@pytest.mark.parametrize("constant", [("most", "overlap", "least"), ()])
@pytest.mark.parametrize("dynamic", [(), ("boxes", "scores")])
@pytest.mark.parametrize("centred", [0, 1])
def test_selected(centred: int, dynamic: tuple[str, ...], constant: tuple[str, ...], opset: int) -> None:
    given = inputs(2, 3, 20, centred=bool(centred))
    check("NonMaxSuppression", given, opset, constant, dynamic=dynamic, center_point_box=centred)
    check("NonMaxSuppression", given | {"least": None}, opset, constant, dynamic=dynamic, center_point_box=centred)


@pytest.mark.parametrize("most", [0, 1, 1000])
def test_limits(most: int) -> None:
    given = inputs(1, 2, 30, most)
    for constant in (("most",), ()):
        check("NonMaxSuppression", given, 11, constant)
    check("NonMaxSuppression", given | {"overlap": None, "least": None}, 11, ("most",))
    only = {"boxes": given["boxes"], "scores": given["scores"]}
    check("NonMaxSuppression", only, 11, values=[np.zeros((0, 3), np.int64)])


def test_many_boxes() -> None:
    check("NonMaxSuppression", inputs(1, 2, 600, 400), 11, ("most", "overlap", "least"))


def test_no_boxes() -> None:
    check("NonMaxSuppression", inputs(1, 2, 0), 11, ("most",), values=[np.zeros((0, 3), np.int64)])


def test_shapes_that_are_not_known() -> None:
    given = inputs(2, 3, 20)
    constant = ("most", "overlap", "least")
    model = one_node("NonMaxSuppression", given, 11, constant)
    for declared in model.graph.input:
        declared.type.tensor_type.ClearField("shape")
    feeds = {name: given[name] for name in ("boxes", "scores")}
    selected = tonnx.convert(model)(*(torch.tensor(array) for array in feeds.values()))
    np.testing.assert_array_equal(selected.numpy(), expected(model, feeds, False)[0])


def test_exports() -> None:
    given = inputs(1, 2, 12)
    module = tonnx.convert(one_node("NonMaxSuppression", given, 11, ("most", "overlap", "least")))
    tensors = tuple(torch.tensor(given[name]) for name in ("boxes", "scores"))
    program = torch.export.export(module, tensors)
    assert torch.equal(program.module()(*tensors), module(*tensors))

"""GridSample, AffineGrid and DeformConv: every mode, padding and number of dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, check_opset, expected, one_node, refuses_opset, source

import tonnx

RNG = np.random.default_rng(3)
IMAGE = RNG.standard_normal((2, 3, 5, 4)).astype(np.float32)
GRID = (RNG.random((2, 3, 6, 2)) * 3 - 1.5).astype(np.float32)
VOLUME = RNG.standard_normal((2, 2, 3, 4, 5)).astype(np.float32)
PLACES = (RNG.random((2, 2, 3, 2, 3)) * 3 - 1.5).astype(np.float32)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_images(mode: str, padding: str, align: int) -> None:
    options = {"mode": mode, "padding_mode": padding, "align_corners": align}
    check("GridSample", {"X": IMAGE, "grid": GRID}, 20, **options)
    old = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    check("GridSample", {"X": IMAGE, "grid": GRID}, 16, **(options | {"mode": old}), dynamic=True)


def test_defaults_and_types() -> None:
    for opset in (16, 20):
        check("GridSample", {"X": IMAGE, "grid": GRID}, opset)
    double = {"X": IMAGE.astype(np.float64), "grid": GRID.astype(np.float64)}
    check("GridSample", double, 20)
    half = {"X": IMAGE.astype(np.float16), "grid": GRID.astype(np.float16)}
    values = [check_values(IMAGE, GRID).astype(np.float16)]
    check("GridSample", half, 20, values=values, tolerance=2e-2)
    integers = (IMAGE * 10).astype(np.int32)
    check("GridSample", {"X": integers, "grid": GRID}, 20, reference=True, mode="nearest")
    empty = {"X": IMAGE[:0], "grid": GRID[:0]}
    check("GridSample", empty, 20, values=[np.zeros((0, 3, 3, 6), np.float32)])


def check_values(image: np.ndarray, grid: np.ndarray) -> np.ndarray:
    return expected(one_node("GridSample", {"X": image, "grid": grid}, 20), {"X": image, "grid": grid}, False)[0]


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_other_ranks(mode: str, padding: str, align: int) -> None:
    options = {"mode": mode, "padding_mode": padding, "align_corners": align, "tolerance": 1e-4}
    line = {"X": IMAGE[:, :, 0], "grid": GRID[:, 0, :, :1]}
    if (mode, padding) == ("cubic", "border"):  # the reference moves what is outside inside, unlike ONNX Runtime
        places = np.concatenate([GRID[:, :1, :, :1], np.zeros((2, 1, 6, 1), np.float32)], 3)
        flat = {"X": IMAGE[:, :, :1], "grid": places}
        options.pop("tolerance")
        values = expected(one_node("GridSample", flat, 20, **options), flat, False)[0][:, :, 0]
        check("GridSample", line, 20, values=[values], **options)
        return
    check("GridSample", {"X": VOLUME, "grid": PLACES}, 20, reference=mode == "cubic", **options)
    check("GridSample", line, 20, reference=True, dynamic=True, **options)


def test_grid_sample_text() -> None:
    text = source("GridSample", {"X": IMAGE, "grid": GRID}, 20, mode="cubic", padding_mode="border")
    assert 'F.grid_sample(X, grid, mode="bicubic", padding_mode="border", align_corners=False)' in text


def test_grid_sample_opsets() -> None:
    changed = check_opset("GridSample", {"X": IMAGE, "grid": GRID}, 20, 19, mode="cubic")
    assert changed.graph.node[0].attribute[0].s == b"bicubic"
    changed = check_opset("GridSample", {"X": IMAGE, "grid": GRID}, 16, 20, mode="bilinear")
    assert changed.graph.node[0].attribute[0].s == b"linear"
    assert "images only" in refuses_opset("GridSample", {"X": VOLUME, "grid": PLACES}, 20, 19)


def test_refuses_grids_that_do_not_fit() -> None:
    with pytest.raises(tonnx.Error, match="the grid has 3 coordinates for 2 dimensions"):
        tonnx.convert(one_node("GridSample", {"X": IMAGE, "grid": np.zeros((2, 3, 6, 3), np.float32)}, 20))
    with pytest.raises(tonnx.Error, match="the mode is 'bicubic'"):
        tonnx.convert(one_node("GridSample", {"X": IMAGE, "grid": GRID}, 20, mode="bicubic"))


@pytest.mark.parametrize("align", [None, 0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 3, 4, 5)])
def test_affine_grid(size: tuple[int, ...], align: int | None) -> None:
    rank = len(size) - 2
    theta = RNG.standard_normal((2, rank, rank + 1)).astype(np.float32)
    options = {} if align is None else {"align_corners": align}
    for constant in (("size",), ()):
        check("AffineGrid", {"theta": theta, "size": np.array(size)}, 20, constant, **options)


@pytest.mark.parametrize("group, offset_group", [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("options", [{}, {"pads": [1, 0, 1, 1], "strides": [2, 1]}, {"dilations": [1, 2]}])
def test_deform_conv(options: dict[str, list[int]], group: int, offset_group: int) -> None:
    x = RNG.standard_normal((2, 4, 6, 7)).astype(np.float32)
    weight = RNG.standard_normal((4, 4 // group, 2, 3)).astype(np.float32)
    pads, strides = options.get("pads", [0] * 4), options.get("strides", [1, 1])
    spans = [2, 5] if "dilations" in options else [2, 3]
    out = [(x.shape[i + 2] + pads[i] + pads[i + 2] - spans[i]) // strides[i] + 1 for i in range(2)]
    inputs = {
        "X": x,
        "W": weight,
        "offset": RNG.standard_normal((2, offset_group * 12, *out)).astype(np.float32),
        "B": RNG.standard_normal(4).astype(np.float32),
        "mask": RNG.random((2, offset_group * 6, *out)).astype(np.float32),
    }
    options = options | {"group": group, "offset_group": offset_group, "tolerance": 1e-4}
    check("DeformConv", inputs, 19, ("W", "B"), **options)
    check("DeformConv", inputs | {"B": None, "mask": None}, 19, dynamic=("X", "offset"), **options)

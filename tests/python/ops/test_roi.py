"""RoiAlign and MaxRoiPool."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, check_opset, refuses_opset

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 3, 9, 11)).astype(np.float32)
ROIS = np.array([[0, 0, 9, 9], [1.5, 2.5, 8.25, 4], [-3, -2, 30, 5], [4, 4, 4.5, 4.5], [7, 8, 2, 3]], np.float32)
BATCH = np.array([0, 1, 1, 0, 0])
INPUTS = {"X": X, "rois": ROIS, "batch_indices": BATCH}


@pytest.mark.parametrize("ratio", [None, 1, 2])
@pytest.mark.parametrize("mode", [None, "avg", "max"])
@pytest.mark.parametrize("transform", [None, "half_pixel", "output_half_pixel"])
def test_roi_align(transform: str | None, mode: str | None, ratio: int | None) -> None:
    options = {"output_height": 3, "output_width": 2, "spatial_scale": 0.75, "tolerance": 1e-4}
    options |= {} if ratio is None else {"sampling_ratio": ratio}
    options |= {} if mode is None else {"mode": mode}
    # ONNX Runtime's own max differs from the standard where a region has negative sizes
    inputs = INPUTS if transform == "output_half_pixel" else INPUTS | {"rois": ROIS[:4], "batch_indices": BATCH[:4]}
    check("RoiAlign", INPUTS, 10, reference=False, **options)
    options |= {} if transform is None else {"coordinate_transformation_mode": transform}
    check("RoiAlign", inputs, 16, **options)
    check("RoiAlign", inputs, 16, dynamic=True, **options)


def test_roi_align_defaults() -> None:
    for opset in (10, 16):
        check("RoiAlign", INPUTS | {"rois": ROIS[:4], "batch_indices": BATCH[:4]}, opset, tolerance=1e-4)
    none = INPUTS | {"rois": ROIS[:0], "batch_indices": BATCH[:0]}
    check("RoiAlign", none, 16, output_height=2, output_width=2, values=[np.zeros((0, 3, 2, 2), np.float32)])


def test_roi_align_opsets() -> None:
    changed = check_opset("RoiAlign", INPUTS, 10, 16, output_height=2)
    assert any(a.name == "coordinate_transformation_mode" for a in changed.graph.node[0].attribute)
    check_opset("RoiAlign", INPUTS, 16, 15, coordinate_transformation_mode="output_half_pixel")
    assert "half pixels" in refuses_opset("RoiAlign", INPUTS, 16, 15)


@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (6, 6)])
def test_max_roi_pool(shape: tuple[int, int], scale: float | None) -> None:
    rois = np.concatenate([BATCH[:, None].astype(np.float32), ROIS], 1)[:4]
    options = {"pooled_shape": shape} | ({} if scale is None else {"spatial_scale": scale})
    check("MaxRoiPool", {"X": X, "rois": rois}, 1, **options)
    check("MaxRoiPool", {"X": X, "rois": rois}, 1, dynamic=True, **options)

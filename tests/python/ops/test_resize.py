"""Resize of every opset, and Upsample: every mode and transform, with sizes and scales that are known and not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, one_node, source

import tonnx

X = np.random.default_rng(1).standard_normal((2, 3, 5, 7)).astype(np.float32)
TRANSFORMS = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
]
ROI = np.array([0, 0, 0.1, 0.2, 1, 1, 0.7, 1.1], np.float32)


def resize(
    x: np.ndarray = X, roi: np.ndarray | None = None, scales=None, sizes=None, opset: int = 19, **options
) -> object:
    inputs = {
        "X": x,
        "roi": roi,
        "scales": None if scales is None else np.array(scales, np.float32),
        "sizes": None if sizes is None else np.array(sizes, np.int64),
    }
    while inputs[list(inputs)[-1]] is None:
        inputs.popitem()
    options["dynamic"] = ("X",) if options.get("dynamic") else ()
    options.setdefault("constant", tuple(name for name, array in inputs.items() if name != "X" and array is not None))
    return check("Resize", inputs, opset, tolerance=1e-4, **options)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("target", [{"scales": [1, 1, 2, 3]}, {"sizes": [2, 3, 4, 9]}, {"sizes": [2, 3, 1, 5]}])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_mode_and_transform(transform: str, mode: str, target: dict, dynamic: bool) -> None:
    roi = ROI if transform == "tf_crop_and_resize" else None
    resize(
        roi=roi, **target, dynamic=dynamic, mode=mode, coordinate_transformation_mode=transform, extrapolation_value=5.0
    )


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("transform", ["half_pixel", "asymmetric", "pytorch_half_pixel"])
def test_scale_that_gives_no_whole_size(transform: str, mode: str, dynamic: bool) -> None:
    resize(scales=[1, 1, 0.6, 1.7], dynamic=dynamic, mode=mode, coordinate_transformation_mode=transform)


def test_align_corners_with_a_scale_that_gives_no_whole_size() -> None:
    """The standard's reference divides by the length that the scale gives, ONNX Runtime by the whole size."""
    options = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    resize(scales=[1, 1, 0.6, 1.7], reference=True, **options)
    resize(scales=[1, 1, 0.6, 1.7], reference=True, dynamic=True, **options)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("target", [{"scales": [1, 1, 0.5, 2]}, {"scales": [1, 1, 2, 3]}, {"sizes": [2, 3, 4, 9]}])
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("transform", ["half_pixel", "asymmetric", "align_corners"])
def test_nearest_mode(transform: str, rounding: str, target: dict, dynamic: bool) -> None:
    reference = transform == "align_corners" and "scales" in target
    resize(
        **target, dynamic=dynamic, reference=reference, coordinate_transformation_mode=transform, nearest_mode=rounding
    )


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("exclude_outside", [0, 1])
@pytest.mark.parametrize("target", [{"scales": [1, 1, 0.6, 0.8]}, {"sizes": [2, 3, 3, 9]}])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias(mode: str, target: dict, exclude_outside: int, dynamic: bool) -> None:
    resize(**target, dynamic=dynamic, mode=mode, antialias=1, exclude_outside=exclude_outside, reference=True)


@pytest.mark.parametrize("a", [-0.5, -0.75])
@pytest.mark.parametrize("exclude_outside", [0, 1])
def test_cubic(a: float, exclude_outside: int) -> None:
    for dynamic in (False, True):
        resize(scales=[1, 1, 1.5, 0.5], dynamic=dynamic, mode="cubic", cubic_coeff_a=a, exclude_outside=exclude_outside)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_keep_aspect_ratio(mode: str, policy: str, dynamic: bool) -> None:
    options = {"mode": mode, "keep_aspect_ratio_policy": policy, "axes": [2, 3]}
    resize(sizes=[9, 8], dynamic=dynamic, **options)
    resize(sizes=[9, 8], dynamic=dynamic, constant=(), **options)


# 67000420: the scale of the one axis gives the other no whole number of elements
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_keep_aspect_ratio_from_the_middle(mode: str, policy: str, dynamic: bool) -> None:
    options = {"mode": mode, "keep_aspect_ratio_policy": policy, "axes": [2, 3]}
    for sizes in ([9, 8], [1, 7], [3, 2]):
        resize(sizes=sizes, dynamic=dynamic, opset=19, coordinate_transformation_mode="half_pixel_symmetric", **options)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("target", [{"scales": [2, 0.5]}, {"sizes": [9, 3]}])
def test_axes(mode: str, target: dict) -> None:
    resize(**target, mode=mode, axes=[3, -2])
    resize(**target, mode=mode, axes=[1, 2], reference=True)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_rank(rank: int, mode: str) -> None:
    x = np.random.default_rng(2).standard_normal((2, 3, 4, 5, 3)[:rank]).astype(np.float32)
    last = [1] * (rank - 1) + [2]
    resize(x, scales=last, mode=mode, reference=True)
    resize(
        x,
        scales=[2] * rank,
        mode=mode,
        reference=True,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    resize(x, scales=[1.5] * rank, mode=mode, reference=True, dynamic=True)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("target", [{"scales": [1, 1, 2, 0.5]}, {"sizes": [2, 3, 4, 9]}])
def test_at_run_time(target: dict, transform: str, mode: str) -> None:
    """Scales, sizes and region are inputs of the graph."""
    roi = ROI if transform == "tf_crop_and_resize" else None
    reference = transform == "align_corners" and "scales" in target
    options = {"mode": mode, "coordinate_transformation_mode": transform, "constant": (), "reference": reference}
    for dynamic in (False, True):
        resize(roi=roi, **target, dynamic=dynamic, **options)


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int8", "int32", "int64", "uint16", "uint64"])
def test_nearest_types(dtype: str) -> None:
    x = (np.arange(24).reshape(1, 1, 4, 6) % 7).astype(dtype)
    resize(x, scales=[1, 1, 2, 0.5], reference=True)


def test_nearest_bool() -> None:
    x = np.arange(12).reshape(1, 1, 3, 4) % 3 == 0
    resize(x, scales=[1, 1, 2, 1], values=[np.repeat(x, 2, 2)])


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int32"])
def test_linear_types(dtype: str) -> None:
    x = (np.arange(24).reshape(1, 1, 4, 6) * 8).astype(dtype)
    resize(x, scales=[1, 1, 2, 0.5], mode="linear", reference=True)


@pytest.mark.parametrize("scales", [[1, 1, 2, 2], [1, 1, 0.6, 0.6], [1, 1, 2, 0.6]])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_opset_10(mode: str, scales: list[float]) -> None:
    check("Resize", {"X": X, "scales": np.array(scales, np.float32)}, 10, ("scales",), mode=mode, tolerance=1e-4)


@pytest.mark.parametrize("opset", [11, 12])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_opset_11_has_empty_inputs(opset: int, mode: str) -> None:
    empty = np.zeros(0, np.float32)
    inputs = {"X": X, "roi": empty, "scales": empty, "sizes": np.array([2, 3, 8, 9])}
    check("Resize", inputs, opset, ("roi", "scales", "sizes"), mode=mode, tolerance=1e-4)
    check(
        "Resize",
        inputs | {"sizes": None, "scales": np.float32([1, 1, 2, 2])},
        opset,
        ("roi", "scales"),
        mode=mode,
        tolerance=1e-4,
    )


@pytest.mark.parametrize("opset", [13, 17, 18])
def test_opset_between(opset: int) -> None:
    resize(scales=[1, 1, 2, 2], opset=opset, mode="linear")


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(mode: str) -> None:
    scales = np.array([1, 1, 2, 3], np.float32)
    check("Upsample", {"X": X, "scales": scales}, 9, ("scales",), mode=mode, tolerance=1e-4)
    check("Upsample", {"X": X, "scales": scales}, 9, mode=mode, tolerance=1e-4)
    check("Upsample", {"X": X}, 7, mode=mode, scales=[1.0, 1.0, 2.0, 3.0], tolerance=1e-4)
    want = np.repeat(np.repeat(X, 2, 2), 3, 3)
    if mode == "nearest":
        check("Upsample", {"X": X}, 1, values=[want], mode=mode, height_scale=2.0, width_scale=3.0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"scales": [1, 1, 2, 2]}, "F.interpolate(X, scale_factor=2)"),
        ({"scales": [1, 1, 2, 2], "mode": "linear"}, 'F.interpolate(X, scale_factor=2, mode="bilinear")'),
        ({"scales": [1, 1, 2, 1.5], "mode": "linear"}, 'F.interpolate(X, scale_factor=(2, 1.5), mode="bilinear")'),
        (
            {"sizes": [2, 3, 8, 9], "mode": "linear", "coordinate_transformation_mode": "align_corners"},
            'F.interpolate(X, size=(8, 9), mode="bilinear", align_corners=True)',
        ),
        ({"sizes": [2, 3, 8, 9], "mode": "cubic"}, 'F.interpolate(X, size=(8, 9), mode="bicubic")'),
        (
            {"scales": [1, 2, 2, 1]},
            "F.interpolate(X.permute(0, 3, 1, 2), scale_factor=2).permute(0, 2, 3, 1)",
        ),
        ({"scales": [1, 1, 1, 1]}, "return X"),
        (
            {"sizes": [2, 3, 2, 3], "mode": "linear", "antialias": 1, "exclude_outside": 1},
            'F.interpolate(X, size=(2, 3), mode="bilinear", antialias=True)',
        ),
    ],
)
def test_is_one_interpolate(options: dict, text: str) -> None:
    options = dict(options)
    inputs = {"X": X, "roi": None, "scales": None, "sizes": None}
    for name, dtype in (("scales", np.float32), ("sizes", np.int64)):
        if name in options:
            inputs[name] = np.array(options.pop(name), dtype)
    constant = tuple(name for name in ("scales", "sizes") if inputs[name] is not None)
    assert text in source("Resize", inputs, 19, constant, **options)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_exports_with_sizes_that_vary(mode: str) -> None:
    model = one_node(
        "Resize",
        {"X": X, "roi": None, "scales": np.float32([1, 1, 1.5, 0.5])},
        19,
        ("scales",),
        dynamic=True,
        mode=mode,
        coordinate_transformation_mode="asymmetric",
    )
    module = tonnx.convert(model)
    dynamic = torch.export.Dim.DYNAMIC
    program = torch.export.export(module, (torch.from_numpy(X),), dynamic_shapes=({2: dynamic, 3: dynamic},)).module()
    other = torch.rand(2, 3, 8, 12)
    torch.testing.assert_close(program(other), module(other))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": [1, 1, -2, 2]}, "scale"),
        ({"scales": [1, 1, float("nan"), 2]}, "scale"),
        ({"scales": [1, 2]}, "2 scales for 4 axes"),
        ({"sizes": [2, 3, -1, 4]}, "size of -1"),
        ({"scales": [1, 1, 1e30, 2]}, "elements along one axis"),
        ({}, "neither"),
        ({"scales": [1, 1], "axes": [2, 2]}, "twice"),
        ({"scales": [1, 1], "axes": [2, 7]}, "out of range"),
        ({"scales": [1, 1, 2, 2], "mode": "best"}, "mode"),
    ],
)
def test_refuses(options: dict, message: str) -> None:
    options = dict(options)
    inputs = {"X": X, "roi": None, "scales": None, "sizes": None}
    for name, dtype in (("scales", np.float32), ("sizes", np.int64)):
        if name in options:
            inputs[name] = np.array(options.pop(name), dtype)
    constant = tuple(name for name in ("scales", "sizes") if inputs[name] is not None)
    with pytest.raises(tonnx.Error, match=message):
        tonnx.convert(one_node("Resize", inputs, 19, constant, **options))

"""torchvision's operators, which the tests do not install: their schemas, and what they compute written out in loops."""

import math
from pathlib import Path

import pytest
import torch
from export_checks import check

import tonnx

torch.manual_seed(4)
VISION = torch.library.Library("torchvision", "FRAGMENT")
ROI = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"


def operator(schema, fake):
    """Defines the operator, and implements it by the function that follows."""

    def define(function):
        name = schema.partition("(")[0]
        assert not hasattr(torch.ops.torchvision, name), "torchvision is there: compare with it"
        VISION.define(schema)
        VISION.impl(name, function, "CPU")
        torch.library.register_fake(f"torchvision::{name}", fake, lib=VISION)
        return function

    return define


def fake_nms(dets, scores, iou_threshold):
    return dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


@operator("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", fake_nms)
def nms(dets, scores, iou_threshold):
    """Boxes from the best to the worst; each removes those that it overlaps with too much."""
    kept = []
    for i in scores.argsort(descending=True).tolist():
        a = dets[i]
        overlaps = []
        for j in kept:
            b = dets[j]
            width = (min(a[2], b[2]) - max(a[0], b[0])).clamp(min=0)
            height = (min(a[3], b[3]) - max(a[1], b[1])).clamp(min=0)
            areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
            overlaps.append(float(width * height / (areas[0] + areas[1] - width * height)))
        if all(overlap <= iou_threshold for overlap in overlaps):
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def at(image, y, x):
    """Between four pixels; nothing beyond the image, and its edge up to a pixel outside of it."""
    height, width = image.shape[-2:]
    if y < -1 or y > height or x < -1 or x > width:
        return torch.zeros(image.shape[0])
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    down, right = y - top, x - left
    below, beside = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = image[:, top, left] * (1 - right) + image[:, top, beside] * right
    lower = image[:, below, left] * (1 - right) + image[:, below, beside] * right
    return upper * (1 - down) + lower * down


def fake_roi(input, rois, spatial_scale, pooled_height, pooled_width, *_):
    return input.new_empty(rois.shape[0], input.shape[1], pooled_height, pooled_width)


@operator(f"roi_align({ROI}, int sampling_ratio, bool aligned) -> Tensor", fake_roi)
def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """The mean of points that lie in a grid over each bin of a region."""
    result = torch.zeros(len(rois), input.shape[1], pooled_height, pooled_width)
    for n, (batch, *corners) in enumerate(rois.tolist()):
        left, top, right, bottom = (corner * spatial_scale - (0.5 if aligned else 0) for corner in corners)
        smallest = 0 if aligned else 1
        width, height = max(right - left, smallest), max(bottom - top, smallest)
        rows = sampling_ratio if sampling_ratio > 0 else math.ceil(height / pooled_height)
        columns = sampling_ratio if sampling_ratio > 0 else math.ceil(width / pooled_width)
        for i in range(pooled_height):
            for j in range(pooled_width):
                points = [
                    at(
                        input[int(batch)],
                        top + (i + (row + 0.5) / rows) * height / pooled_height,
                        left + (j + (column + 0.5) / columns) * width / pooled_width,
                    )
                    for row in range(rows)
                    for column in range(columns)
                ]
                result[n, :, i, j] = torch.stack(points).mean(0)
    return result


def fake_roi_pool(*args):
    return fake_roi(*args), fake_roi(*args).to(torch.int32)


@operator(f"roi_pool({ROI}) -> (Tensor, Tensor)", fake_roi_pool)
def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """The largest pixel of each bin of a region that is rounded to whole pixels."""
    result = torch.zeros(len(rois), input.shape[1], pooled_height, pooled_width)
    for n, (batch, *corners) in enumerate(rois.tolist()):
        left, top, right, bottom = (math.floor(corner * spatial_scale + 0.5) for corner in corners)
        width, height = max(right - left + 1, 1) / pooled_width, max(bottom - top + 1, 1) / pooled_height
        for i in range(pooled_height):
            for j in range(pooled_width):
                rows = range(
                    max(math.floor(i * height) + top, 0), min(math.ceil((i + 1) * height) + top, input.shape[2])
                )
                columns = range(
                    max(math.floor(j * width) + left, 0), min(math.ceil((j + 1) * width) + left, input.shape[3])
                )
                if len(rows) and len(columns):
                    part = input[int(batch), :, rows.start : rows.stop, columns.start : columns.stop]
                    result[n, :, i, j] = part.amax((1, 2))
    return result, torch.zeros_like(result, dtype=torch.int32)


def fake_deform_conv2d(input, weight, offset, *_):
    return input.new_empty(input.shape[0], weight.shape[0], *offset.shape[2:])


def bilinear(image, y, x):
    """Between four pixels, with zeros around the image."""
    top, left = math.floor(y), math.floor(x)
    total = torch.zeros(image.shape[0])
    for i, row in ((top, 1 - (y - top)), (top + 1, y - top)):
        for j, column in ((left, 1 - (x - left)), (left + 1, x - left)):
            if 0 <= i < image.shape[1] and 0 <= j < image.shape[2]:
                total = total + image[:, i, j] * row * column
    return total


@operator(
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt "
    "stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
    "bool use_mask) -> Tensor",
    fake_deform_conv2d,
)
def deform_conv2d(input, weight, offset, mask, bias, sh, sw, ph, pw, dh, dw, groups, offset_groups, use_mask):
    """A convolution whose points are moved, and weighed, at each place."""
    batch, channels = input.shape[:2]
    out, depth, kh, kw = weight.shape
    height, width = offset.shape[2:]
    columns = torch.zeros(batch, channels, kh, kw, height, width)
    share = channels // offset_groups
    for n in range(batch):
        for g in range(offset_groups):
            part = input[n, g * share : (g + 1) * share]
            for k in range(kh * kw):
                for y in range(height):
                    for x in range(width):
                        moves = offset[n, (g * kh * kw + k) * 2 : (g * kh * kw + k) * 2 + 2, y, x].tolist()
                        row = y * sh - ph + (k // kw) * dh + moves[0]
                        column = x * sw - pw + (k % kw) * dw + moves[1]
                        factor = mask[n, g * kh * kw + k, y, x] if use_mask else 1
                        columns[n, g * share : (g + 1) * share, k // kw, k % kw, y, x] = (
                            bilinear(part, row, column) * factor
                        )
    columns = columns.reshape(batch, groups, channels // groups, kh, kw, height, width)
    weight = weight.reshape(groups, out // groups, depth, kh, kw)
    return (
        torch.einsum("ngcklyx,gockl->ngoyx", columns, weight).reshape(batch, out, height, width) + bias[:, None, None]
    )


BOXES = torch.rand(30, 4) * 10
BOXES[:, 2:] += BOXES[:, :2] + 1
REGIONS = torch.cat(
    [
        torch.tensor([[0.0], [1], [1], [0]]),
        torch.tensor([[1.0, 2, 9, 11], [0, 0, 4, 5], [3.3, 2.2, 6.1, 9.7], [5, 5, 5.5, 5.4]]),
    ],
    1,
)
IMAGE = torch.randn(2, 4, 8, 9)


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 0.99])
def test_nms(threshold):
    count = torch.export.Dim("count", min=2, max=64)
    function = lambda boxes, scores: torch.ops.torchvision.nms(boxes, scores, threshold)
    also = [(BOXES[:7], torch.rand(7))]
    check(function, BOXES, torch.rand(30), dynamic=[{0: count}, {0: count}], also=also)


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [-1, 0, 1, 2])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_align(scale, ratio, aligned):
    check(lambda x, rois: torch.ops.torchvision.roi_align(x, rois, scale, 3, 2, ratio, aligned), IMAGE, REGIONS)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_pool(scale):
    check(lambda x, rois: torch.ops.torchvision.roi_pool(x, rois, scale, 3, 2)[0], IMAGE, REGIONS)


@pytest.mark.parametrize("offset_groups", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("use_mask", [True, False])
def test_deform_conv2d(use_mask, groups, offset_groups):
    weight, bias = torch.randn(6, 4 // groups, 3, 2), torch.randn(6)
    points = 3 * 2 * offset_groups
    offset, mask = torch.randn(2, 2 * points, 4, 9), torch.rand(2, points, 4, 9)

    def function(x, offset, mask):
        options = (2, 1, 1, 1, 1, 2, groups, offset_groups, use_mask)
        return torch.ops.torchvision.deform_conv2d(x, weight, offset, mask, bias, *options)

    check(function, IMAGE, offset, mask)


def test_code_imports_what_makes_the_operators_known() -> None:
    class Kept(torch.nn.Module):
        def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            return torch.ops.torchvision.nms(boxes, scores, 0.5)  # type: ignore[no-any-return]

    torch.export.save(torch.export.export(Kept(), (torch.rand(5, 4), torch.rand(5))), "m.pt2")
    tonnx.convert("m.pt2", "m.py")
    code = Path("m.py").read_text()
    assert "\nimport torchvision  # noqa: F401\n" in code and "torch.ops.torchvision.nms(boxes, scores, 0.5)" in code

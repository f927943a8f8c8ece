"""Adaptive pools that a file has as gathers of their windows are adaptive pools again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import tonnx

POOLS = {
    "one element in each window": (nn.AdaptiveAvgPool2d(6), (2, 3, 2, 2), "F.adaptive_avg_pool2d(x, 6)"),
    "windows of two sizes": (nn.AdaptiveAvgPool2d(7), (2, 3, 3, 3), "F.adaptive_avg_pool2d(x, 7)"),
    "overlapping": (nn.AdaptiveAvgPool2d((5, 3)), (2, 3, 8, 7), "F.adaptive_avg_pool2d(x, (5, 3))"),
    "one size": (nn.AdaptiveAvgPool2d((3, 2)), (1, 4, 5, 3), "F.adaptive_avg_pool2d(x, (3, 2))"),
    "a line": (nn.AdaptiveAvgPool1d(3), (2, 3, 7), "F.adaptive_avg_pool1d(x, 3)"),
    "a longer line": (nn.AdaptiveAvgPool1d(6), (2, 3, 2), "F.adaptive_avg_pool1d(x, 6)"),
    "a space": (nn.AdaptiveAvgPool3d(3), (2, 3, 5, 4, 5), "F.adaptive_avg_pool3d(x, [3, 3, 3])"),
}


def code_of(source: object, folder: Path) -> str:
    tonnx.convert(source, folder / "net.py")
    return (folder / "net.py").read_text()


@pytest.mark.parametrize("name", POOLS)
def test_exported(name: str, tmp_path: Path) -> None:
    pool, shape, call = POOLS[name]
    x = torch.randn(shape)
    tonnx.export(pool, (x,), tmp_path / "net.onnx", do_constant_folding=False)
    text = code_of(tmp_path / "net.onnx", tmp_path)
    assert call in text.replace("(input", "(x")
    converted = tonnx.convert(tmp_path / "net.onnx")
    assert not converted.state_dict()
    torch.testing.assert_close(converted(x), pool(x))


def windows(size: int, count: int) -> list[range]:
    return [range(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def gathered(size: int, count: int, shift: int = 0) -> onnx.ModelProto:
    """As other exporters have it: planes first, rows and columns of each window, and a sum of all that are its own."""
    spans = windows(size, count)
    longest = max(len(span) for span in spans)
    places = np.array([[min(span.start + i + shift, size - 1) for i in range(longest)] for span in spans])
    outside = np.array([[i >= len(span) for i in range(longest)] for span in spans])
    grid = (count, longest, count, longest)
    index = np.stack([np.broadcast_to(places[:, :, None, None], grid), np.broadcast_to(places, grid)], -1)
    lengths = np.array([len(span) for span in spans], np.float32)
    nodes = """p = Transpose<perm = [2, 3, 0, 1]>(x) g = GatherND(p, index) w = Transpose<perm = [4, 5, 0, 1, 2, 3]>(g)
        a = Where(rows, zero, w) b = Where(columns, zero, a) s = ReduceSum<keepdims = 0>(b, axes) y = Div(s, counts)"""
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> g (float[n, 3, {size}, {size}] x) => (float[n, 3, {count}, {count}] y)'
        f" {{ {nodes} }}"
    )
    constants = {
        "index": index,
        "rows": outside[:, :, None, None],
        "columns": outside,
        "zero": np.float32(0),
        "axes": np.array([3, 5]),
        "counts": lengths[:, None] * lengths,
    }
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items())
    return model


@pytest.mark.parametrize("size, count", [(3, 7), (5, 3), (8, 5), (7, 2)])
def test_gathered(size: int, count: int, tmp_path: Path) -> None:
    model = gathered(size, count)
    assert f"return F.adaptive_avg_pool2d(x, {count})" in code_of(model, tmp_path)
    x = np.random.default_rng(0).normal(size=(2, 3, size, size)).astype(np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(tonnx.convert(model)(torch.from_numpy(x)).numpy(), want, rtol=1e-5, atol=1e-6)


def test_other_windows_stay(tmp_path: Path) -> None:
    model = gathered(8, 5, shift=1)
    assert "adaptive_avg_pool" not in code_of(model, tmp_path)
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(tonnx.convert(model)(torch.from_numpy(x)).detach().numpy(), want, rtol=1e-5, atol=1e-6)

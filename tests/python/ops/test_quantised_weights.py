"""Products of quantised integers are exact, whatever the number of weights in a row, and of zero points."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper

import tonnx

WEIGHTS = {"small": (-3, 4), "large": (-128, 128)}


def exact(text: str, x: np.ndarray, **constants: np.ndarray) -> None:
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 18]>' + text)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_array_equal(tonnx.convert(model)(torch.from_numpy(x)).numpy(), want)


@pytest.mark.parametrize("sizes", ["small", "large"])
@pytest.mark.parametrize("columns", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("each", [False, True], ids=["one", "each"])
def test_matrices(columns: int, each: bool, sizes: str) -> None:
    rng = np.random.default_rng(columns)
    rows = 2311
    x = rng.integers(0, 256, (3, rows)).astype(np.uint8)
    weights = rng.integers(*WEIGHTS[sizes], (rows, columns)).astype(np.int8)
    zeros = rng.integers(-2, 3, columns if each else ()).astype(np.int8)
    exact(
        f"g (uint8[3, {rows}] x) => (int32[3, {columns}] y) {{ y = MatMulInteger(x, w, a, b) }}",
        x,
        w=weights,
        a=np.array(3, np.uint8),
        b=zeros,
    )


@pytest.mark.parametrize("sizes", ["small", "large"])
@pytest.mark.parametrize("channels", [1, 2, 5, 130])
def test_convolutions(channels: int, sizes: str) -> None:
    rng = np.random.default_rng(channels)
    x = rng.integers(0, 256, (1, channels, 7, 7)).astype(np.uint8)
    low, high = WEIGHTS[sizes]
    weights = (rng.integers(low, high, (4, channels, 3, 3)) + 128).astype(np.uint8)
    exact(
        f"g (uint8[1, {channels}, 7, 7] x) => (int32[1, 4, 5, 5] y) {{ y = ConvInteger(x, w, a, b) }}",
        x,
        w=weights,
        a=np.array(7, np.uint8),
        b=np.array(128, np.uint8),
    )


@pytest.mark.parametrize(
    ("heavy", "weight"), [(518, 127), (519, 127), (515, -128), (1029, 64)], ids=["just", "more", "negative", "half"]
)
def test_where_float32_ends(heavy: int, weight: int) -> None:
    """Sums of 2^24 and more are not exact in float32: one odd product more would be lost."""
    x = np.full((1, heavy + 1), 255, np.uint8)
    x[0, -1] = 1
    weights = np.full((heavy + 1, 2), weight, np.int8)
    weights[-1] = [1, -1]
    exact(
        f"g (uint8[1, {heavy + 1}] x) => (int32[1, 2] y) {{ y = MatMulInteger(x, w) }}",
        x,
        w=weights,
    )

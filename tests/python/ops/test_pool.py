"""Pools: pads of all kinds, rounding up, dilations, what counts, indices, sizes known and not, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, check_opset, expected, one_node, source

import tonnx

RANDOM = np.random.default_rng(5)


def array(*sizes: int) -> np.ndarray:
    return RANDOM.standard_normal(sizes).astype(np.float32)


X = {1: array(2, 3, 11), 2: array(2, 3, 9, 8), 3: array(1, 2, 6, 5, 7)}
WINDOWS = [
    (1, {"kernel_shape": [3]}),
    (1, {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    (1, {"kernel_shape": [3], "strides": [2], "pads": [0, 2], "ceil_mode": 1}),
    (2, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    (2, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    (2, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]}),
    (2, {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [0, 1, 1, 0]}),
    (2, {"kernel_shape": [3, 3], "strides": [2, 3], "ceil_mode": 1}),
    (2, {"kernel_shape": [3, 3], "strides": [2, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}),
    (2, {"kernel_shape": [3, 3], "strides": [2, 3], "pads": [0, 1, 2, 0], "ceil_mode": 1}),
    (2, {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1}),
    (2, {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    (2, {"kernel_shape": [2, 4], "auto_pad": "SAME_LOWER"}),
    (2, {"kernel_shape": [3, 2], "auto_pad": "VALID", "strides": [2, 2]}),
    (3, {"kernel_shape": [2, 2, 3], "strides": [2, 1, 2], "pads": [1, 0, 1, 1, 0, 1]}),
    (3, {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2], "pads": [0, 0, 0, 0, 1, 0], "ceil_mode": 1}),
]
DILATED = [
    (1, {"kernel_shape": [3], "dilations": [2], "pads": [1, 2]}),
    (2, {"kernel_shape": [2, 3], "dilations": [2, 2], "strides": [2, 1]}),
    (2, {"kernel_shape": [3, 2], "dilations": [2, 1], "pads": [1, 0, 1, 0], "strides": [3, 2], "ceil_mode": 1}),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("rank", "attributes"), WINDOWS + DILATED)
def test_max_pool(rank: int, attributes: dict, dynamic: bool) -> None:
    check("MaxPool", {"X": X[rank]}, 12, dynamic=dynamic, **attributes)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("include", [None, 1])
@pytest.mark.parametrize(("rank", "attributes"), WINDOWS + DILATED)
def test_average_pool(rank: int, attributes: dict, include: int | None, dynamic: bool) -> None:
    options = attributes if include is None else attributes | {"count_include_pad": include}
    check("AveragePool", {"X": X[rank]}, 19, dynamic=dynamic, **options)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("p", [None, 1, 3])
@pytest.mark.parametrize(("rank", "attributes"), WINDOWS + DILATED)
def test_lp_pool(rank: int, attributes: dict, p: int | None, dynamic: bool) -> None:
    if attributes.get("ceil_mode"):
        pytest.skip("ONNX Runtime rounds down")
    options = attributes if p is None else attributes | {"p": p}
    check("LpPool", {"X": X[rank]}, 18, dynamic=dynamic, tolerance=1e-4, **options)


@pytest.mark.parametrize("order", [None, 1])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("rank", "attributes"), WINDOWS + DILATED)
def test_indices(rank: int, attributes: dict, order: int | None, dynamic: bool) -> None:
    options = attributes if order is None else attributes | {"storage_order": order}
    check("MaxPool", {"X": X[rank]}, 12, dynamic=dynamic, outputs=2, **options)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_integers(rank: int, dtype: type) -> None:
    x = RANDOM.integers(0, 100, X[rank].shape).astype(dtype) - dtype(100 if dtype is np.int8 else 0)
    check("MaxPool", {"X": x}, 12, kernel_shape=[3] * rank, pads=[0] * rank + [2] * rank)
    check("MaxPool", {"X": x}, 12, kernel_shape=[3] * rank, pads=[1] * 2 * rank)


def test_integers_that_lie_channels_last() -> None:
    x = RANDOM.integers(0, 255, (1, 20, 18, 3)).astype(np.uint8)
    module = tonnx.convert(one_node("MaxPool", {"X": x.transpose(0, 3, 1, 2)}, 12, kernel_shape=[2, 2]))
    y = module(torch.from_numpy(x).permute(0, 3, 1, 2))
    assert y.dtype is torch.uint8
    window = np.stack([x[:, i : i + 19, j : j + 17] for i in range(2) for j in range(2)])
    np.testing.assert_array_equal(y.permute(0, 2, 3, 1).numpy(), window.max(0))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_half_precision(op: str, rank: int) -> None:
    attributes = {"kernel_shape": [3] * rank, "pads": [0, 1] * rank}
    values = expected(one_node(op, {"X": X[rank]}, 18, **attributes), {"X": X[rank]}, False)
    half = [value.astype(np.float16) for value in values]
    check(op, {"X": X[rank].astype(np.float16)}, 22, values=half, tolerance=1e-2, **attributes)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_four_dimensions(op: str) -> None:
    x = np.abs(array(1, 2, 4, 4, 4, 4))
    module = tonnx.convert(one_node(op, {"X": x}, 22, kernel_shape=[2] * 4, strides=[2] * 4, dilations=[1] * 4))
    blocks = x.reshape(1, 2, 2, 2, 2, 2, 2, 2, 2, 2)
    reduce = {"MaxPool": np.max, "AveragePool": np.mean, "LpPool": lambda b, axis: np.sqrt((b * b).sum(axis))}[op]
    np.testing.assert_allclose(module(torch.from_numpy(x)), reduce(blocks, axis=(3, 5, 7, 9)), rtol=1e-5)


@pytest.mark.parametrize("opset", [7, 8, 10, 11])
def test_older_opsets(opset: int) -> None:
    for op in ("MaxPool", "AveragePool"):
        check(op, {"X": X[2]}, opset, kernel_shape=[2, 3], pads=[1, 1, 0, 1])


@pytest.mark.parametrize("opset", [2, 11])
def test_older_lp_pool(opset: int) -> None:
    check("LpPool", {"X": X[2]}, opset, kernel_shape=[2, 3], p=3, tolerance=1e-4)


def test_order_was_a_float() -> None:
    x = torch.from_numpy(X[2])
    new = tonnx.convert(one_node("LpPool", {"X": X[2]}, 2, kernel_shape=[2, 3], p=3))
    old = tonnx.convert(one_node("LpPool", {"X": X[2]}, 1, kernel_shape=[2, 3], p=3.0))
    torch.testing.assert_close(old(x), new(x))
    new = tonnx.convert(one_node("GlobalLpPool", {"X": X[2]}, 2, p=1))
    old = tonnx.convert(one_node("GlobalLpPool", {"X": X[2]}, 1, p=1.0))
    torch.testing.assert_close(old(x), new(x))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_global_pools(rank: int, dynamic: bool) -> None:
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        check(op, {"X": X[rank]}, 2, dynamic=dynamic)
    check("GlobalLpPool", {"X": X[rank]}, 2, dynamic=dynamic, p=3)


def test_steps_down(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_opset("MaxPool", {"X": X[2]}, 22, 7, kernel_shape=[2, 2], storage_order=0, ceil_mode=0, dilations=[1, 1])
    check_opset("AveragePool", {"X": X[2]}, 22, 7, kernel_shape=[2, 2], ceil_mode=0, dilations=[1, 1])
    check_opset("LpPool", {"X": X[2]}, 22, 2, kernel_shape=[2, 2], p=1)
    for attributes in ({"ceil_mode": 1}, {"dilations": [2, 2]}):
        with pytest.raises(tonnx.Error, match="the older opset has no"):
            tonnx.convert(one_node("MaxPool", {"X": X[2]}, 22, kernel_shape=[2, 2], **attributes), "x.onnx", opset=8)


def test_code(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    image = {"image": X[2]}
    text = source("MaxPool", image, 12, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1])
    assert "return F.max_pool2d(image, 3, stride=2, ceil_mode=True)" in text
    text = source("AveragePool", image, 19, kernel_shape=[2, 4], strides=[2, 4])
    assert "return F.avg_pool2d(image, (2, 4))" in text
    assert "return F.adaptive_avg_pool2d(image, 1)" in source("GlobalAveragePool", image, 1)


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [0, 1]},
        {"kernel_shape": [-1, 1]},
        {"kernel_shape": [1 << 62, 1]},
        {"kernel_shape": [2]},
        {"kernel_shape": [20, 2]},
        {"kernel_shape": [2, 2], "strides": [0, 0]},
        {"kernel_shape": [2, 2], "pads": [0, 0, -1, 0]},
        {"kernel_shape": [2, 2], "auto_pad": "SAME"},
    ],
)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_contradictions(op: str, attributes: dict) -> None:
    with pytest.raises(tonnx.Error) as error:
        tonnx.convert(one_node(op, {"X": X[2]}, 22, **attributes))
    assert error.value.kind == "invalid_model"


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_window_that_does_not_fit_gives_nothing(operator: str, stride: int) -> None:
    options = {"kernel_shape": [3, 3], "strides": [stride, 1]}
    check(operator, {"X": array(2, 3, 3 - stride, 5)}, 18, **options)
    with pytest.raises(tonnx.Error, match="a window of 3 does not fit"):
        tonnx.convert(one_node(operator, {"X": array(1, 3, 3 - 2 * stride if stride == 1 else 2, 5)}, 18, **options))


def test_nothing_has_no_indices() -> None:
    x = array(1, 2, 2, 5)
    model = one_node("MaxPool", {"X": x}, 12, outputs=2, kernel_shape=[3, 3])
    values, indices = tonnx.convert(model)(torch.from_numpy(x))
    assert values.shape == indices.shape == (1, 2, 0, 3) and indices.dtype == torch.int64

"""Pad of every mode and opset, and CenterCropPad: crops, ranks, types, run-time pads, axes and values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, one_node, source

import tonnx

X = np.random.default_rng(3).standard_normal((2, 3, 4, 5)).astype(np.float32)
MODES = ["constant", "reflect", "edge", "wrap"]
TYPES = ["float16", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def padded(x: np.ndarray, pads: list[int], mode: str, **options) -> np.ndarray:
    """What the standard says, by numpy: negative pads cut off, before the others put on."""
    pairs = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
    x = x[tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape, pairs, strict=True))]
    return np.pad(x, [(max(b, 0), max(a, 0)) for b, a in pairs], mode=mode, **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "pads",
    [
        [0, 0, 1, 2, 0, 0, 2, 1],
        [0, 0, 0, 1, 0, 0, 0, 0],
        [1, 2, 3, 0, 0, 0, 3, 4],
        [0, 0, -1, 2, 0, 0, 2, -2],
        [0] * 8,
        [0, 0, -1, 0, 0, 0, 0, -1],
    ],
    ids=str,
)
def test_pad(mode: str, pads: list[int]) -> None:
    if mode == "reflect":
        pads = [min(p, n - 1) for p, n in zip(pads, X.shape * 2, strict=True)]
    for dynamic in (False, ("data",)):
        check(
            "Pad",
            {"data": X, "pads": ints(*pads)},
            19,
            ("pads",),
            values=[padded(X, pads, mode)],
            mode=mode,
            dynamic=dynamic,
        )
        if min(pads) >= 0 or mode == "constant":
            check(
                "Pad", {"data": X, "pads": ints(*pads)}, 19, values=[padded(X, pads, mode)], mode=mode, dynamic=dynamic
            )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(6,), (3, 4), (3, 4, 5), (2, 3, 2, 4, 5), (2, 1, 3, 2, 2, 3)], ids=str)
def test_pad_of_any_rank(mode: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for pads in ([0] * (len(shape) - 1) + [1] + [0] * (len(shape) - 1) + [2], [min(1, n - 1) for n in shape * 2]):
        check("Pad", {"data": x, "pads": ints(*pads)}, 19, ("pads",), values=[padded(x, pads, mode)], mode=mode)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pad_around_an_open_size_more_than_once(size: int) -> None:
    """Case 34000075: F.pad refuses to go around twice, and nobody knows beforehand whether it has to."""
    x = np.arange(2 * size, dtype=np.float32).reshape(2, size)
    pads = [0, 3, 0, 1]
    check(
        "Pad",
        {"data": x, "pads": ints(*pads)},
        19,
        ("pads",),
        values=[padded(x, pads, "wrap")],
        mode="wrap",
        dynamic=("data",),
    )


@pytest.mark.parametrize("mode", MODES[1:])
def test_pad_by_more_than_there_is(mode: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(
        "Pad", {"data": x, "pads": ints(5, 0, 0, 7)}, 19, ("pads",), values=[padded(x, [5, 0, 0, 7], mode)], mode=mode
    )
    x = x[:1]
    check(
        "Pad", {"data": x, "pads": ints(2, 0, 1, 0)}, 19, ("pads",), values=[padded(x, [2, 0, 1, 0], mode)], mode=mode
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", TYPES)
def test_pad_of_any_type(mode: str, dtype: str) -> None:
    x = np.array([[3, 0, 1], [2, 1, 7]]).astype(dtype)
    want = [padded(x, [1, 1, 0, 2], mode)]
    for constant in (("pads",), ()):
        check("Pad", {"data": x, "pads": ints(1, 1, 0, 2)}, 19, constant, values=want, mode=mode)
    if mode == "constant":
        value = np.array(1, dtype)
        want = [padded(x, [1, 1, 0, 2], mode, constant_values=value)]
        for constant in (("pads", "value"), ("pads",), ()):
            check("Pad", {"data": x, "pads": ints(1, 1, 0, 2), "value": value}, 19, constant, values=want)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_value(opset: int) -> None:
    feeds = {"data": X, "pads": ints(0, 0, 1, 2, 0, 0, 2, 1), "value": np.array(1.5, np.float32)}
    for constant in (("pads", "value"), ("pads",), ("value",), ()):
        check("Pad", feeds, opset, constant)


def test_axes() -> None:
    for mode in MODES[:3]:
        for axes in (ints(-1, 1), ints(2, 3).astype(np.int32)):
            feeds = {"data": X, "pads": ints(1, 0, 2, 1), "value": None, "axes": axes}
            for constant in (("pads", "axes"), ("axes",), ()):
                check("Pad", feeds, 18, constant, mode=mode, reference=axes.dtype == np.int32)


def test_attributes_of_old_opsets() -> None:
    pads = [0, 0, 1, 2, 0, 0, 2, 1]
    check("Pad", {"data": X}, 2, pads=pads)
    check("Pad", {"data": X}, 2, pads=pads, value=2.5)
    check("Pad", {"data": X}, 2, pads=pads, mode="reflect")
    check("Pad", {"data": X}, 1, values=[padded(X, pads, "constant", constant_values=1)], paddings=pads, value=1.0)
    check("Pad", {"data": X}, 1, values=[padded(X, pads, "edge")], paddings=pads, mode="edge")


@pytest.mark.parametrize(
    ("mode", "pads", "text"),
    [
        ("constant", [0, 0, 1, 2, 0, 0, 3, 4], "return F.pad(data, (2, 4, 1, 3))"),
        ("reflect", [0, 0, 0, 1, 0, 0, 0, 1], 'return F.pad(data, (1, 1, 0, 0), mode="reflect")'),
        ("edge", [0, 0, -1, 0, 0, 0, 0, -1], "return data[..., 1:, :-1]"),
        ("constant", [0] * 8, "return data"),
    ],
)
def test_reads_well(mode: str, pads: list[int], text: str) -> None:
    assert source("Pad", {"data": X, "pads": ints(*pads)}, 19, ("pads",), dynamic=True, mode=mode).endswith(text)


@pytest.mark.parametrize(
    ("pads", "options"), [([1, 1], {}), ([0] * 7 + [-9], {}), ([0] * 8, {"mode": "sideways"}), ([1] * 9, {})], ids=str
)
def test_contradictions(pads: list[int], options: dict[str, str]) -> None:
    with pytest.raises(tonnx.Error) as error:
        tonnx.convert(one_node("Pad", {"data": X, "pads": ints(*pads)}, 19, ("pads",), **options))
    assert error.value.kind == "invalid_model"


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 1, 7, 2), (5, 6, 1, 8)], ids=str)
def test_center_crop_pad(shape: tuple[int, ...]) -> None:
    for constant in (("shape",), ()):
        for dynamic in (False, ("input_data",)):
            check(
                "CenterCropPad", {"input_data": X, "shape": ints(*shape)}, 18, constant, reference=True, dynamic=dynamic
            )
            two = {"input_data": X, "shape": ints(*shape[2:])}
            check("CenterCropPad", two, 18, constant, reference=True, dynamic=dynamic, axes=[-2, 3])


def test_pads_are_trained_through() -> None:
    module = tonnx.convert(
        one_node("Pad", {"data": X, "pads": ints(0, 0, 1, 1, 0, 0, 1, 1)}, 19, ("pads",), mode="reflect")
    )
    x = torch.from_numpy(X.copy()).requires_grad_()
    module(x).sum().backward()
    assert x.grad.shape == x.shape

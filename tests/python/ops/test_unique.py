"""Unique: all outputs, sorted or in order of occurrence, along an axis or of all elements; and Det."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check

NUMBERS = np.array([2, 1, 1, 3, 4, 3, -1], np.float32)
ROWS = np.array([[[1, 1], [0, 1], [2, 1], [0, 1]], [[1, 1], [0, 1], [2, 1], [0, 1]]], np.float32)


@pytest.mark.parametrize("is_sorted", [None, 0, 1])
@pytest.mark.parametrize("outputs", [1, 2, 3, 4])
def test_outputs(outputs: int, is_sorted: int | None) -> None:
    options = {"outputs": outputs} | ({} if is_sorted is None else {"sorted": is_sorted})
    for dynamic in (False, True):
        check("Unique", {"X": NUMBERS}, 11, dynamic=dynamic, **options)
        check("Unique", {"X": ROWS}, 11, dynamic=dynamic, **options)
        for axis in (0, 1, -1):
            check("Unique", {"X": ROWS}, 11, dynamic=dynamic, axis=axis, **options)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64", "uint16", "uint64"])
def test_types(dtype: str) -> None:
    array = np.abs(NUMBERS).astype(dtype)
    for axis in ({}, {"axis": 0}):
        check("Unique", {"X": array}, 11, reference=True, outputs=4, **axis)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_det(dtype: str) -> None:
    x = np.random.default_rng(1).standard_normal((2, 4, 3, 3)).astype(dtype)
    check("Det", {"X": x}, 11, reference=True)
    check("Det", {"X": x[0, 0]}, 11, reference=True, dynamic=True)
    check("Det", {"X": x[:0]}, 11, reference=True)


def test_det_of_sixteen_bits() -> None:
    x = np.array([[2, 1], [1, 3]], np.float16)
    check("Det", {"X": x}, 11, values=[np.float16(5)], tolerance=1e-2)

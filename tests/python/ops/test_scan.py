"""CumSum and CumProd: forwards, backwards, exclusive, along an axis that is known or not."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check

X = np.random.default_rng(4).standard_normal((2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("exclusive", [None, 1])
@pytest.mark.parametrize("reverse", [None, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cum_sum(axis: int, reverse: int | None, exclusive: int | None) -> None:
    options = {name: value for name, value in (("reverse", reverse), ("exclusive", exclusive)) if value is not None}
    for opset in (11, 14):
        for constant in (("axis",), ()):
            for dynamic in ((), ("x",)):
                check("CumSum", {"x": X, "axis": np.array(axis)}, opset, constant, dynamic=dynamic, **options)
        check("CumSum", {"x": X, "axis": np.array([axis], np.int32)}, opset, ("axis",), **options)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cum_prod(reverse: int, exclusive: int) -> None:
    for constant in (("axis",), ()):
        check(
            "CumProd", {"x": X, "axis": np.array(1)}, 26, constant, reference=True, reverse=reverse, exclusive=exclusive
        )


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint32", "uint64"])
def test_types(op: str, dtype: str) -> None:
    x = np.array([[3, 1, 2], [4, 5, 6]], dtype)
    check(op, {"x": x, "axis": np.array(1)}, 14 if op == "CumSum" else 26, ("axis",), reference=True, exclusive=1)


def test_infinity_is_not_subtracted() -> None:
    x = np.array([1, np.inf, 2], np.float32)
    check("CumSum", {"x": x, "axis": np.array(0)}, 14, ("axis",), exclusive=1, values=[np.float32([0, 1, np.inf])])


def test_empty() -> None:
    x = np.zeros((2, 0), np.float32)
    for exclusive in (0, 1):
        check("CumSum", {"x": x, "axis": np.array(1)}, 14, ("axis",), exclusive=exclusive, values=[x])

"""TopK of every opset: the order of equal elements, both ends, every type, k known and not."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, one_node

import tonnx

X = np.random.default_rng(5).standard_normal((2, 3, 6)).astype(np.float32)
TIES = np.array([[2, 7, 2, 7, 1], [1, 1, 1, 1, 1]])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("k", [1, 2])
def test_opsets(k: int, axis: int | None) -> None:
    options = {"outputs": 2} | ({} if axis is None else {"axis": axis})
    if axis is None or axis >= 0:
        check("TopK", {"X": X}, 1, k=k, **options)
    for opset in (10, 11):
        for constant in (("K",), ()):
            for dynamic in ((), ("X",)):
                check("TopK", {"X": X, "K": np.array([k])}, opset, constant, dynamic=dynamic, **options)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_equal_elements_come_by_index(dtype: str, k: int, largest: int) -> None:
    order = np.argsort(-TIES if largest else TIES, axis=1, kind="stable")[:, :k]
    values = [np.take_along_axis(TIES, order, 1).astype(dtype), order]
    check("TopK", {"X": TIES.astype(dtype), "K": np.array([k])}, 11, ("K",), outputs=2, largest=largest, values=values)


def test_not_sorted() -> None:
    check("TopK", {"X": X, "K": np.array([1])}, 11, ("K",), outputs=2, sorted=0)


def test_none() -> None:
    values = [np.zeros((2, 3, 0), np.float32), np.zeros((2, 3, 0), np.int64)]
    check("TopK", {"X": X, "K": np.array([0])}, 11, ("K",), outputs=2, values=values)


@pytest.mark.parametrize("k", [-1, 7])
def test_refuses_too_many(k: int) -> None:
    with pytest.raises(tonnx.Error, match="elements are asked for"):
        tonnx.convert(one_node("TopK", {"X": X, "K": np.array([k])}, 11, ("K",), outputs=2))

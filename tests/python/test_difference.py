"""The one comparison of elements: what counts as the same, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from tonnx._difference import apart, difference

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "pair", [(1, 1), (1, 2), (NAN, NAN), (NAN, 1), (1, NAN), (INF, INF), (INF, -INF), (INF, 1), (1, INF)]
)
def test_elements_are_judged_as_numpy_does(pair: tuple[float, float], dtype: str) -> None:
    wanted, got = (np.array([value, 3], dtype) for value in pair)
    is_same = np.isclose(got, wanted, equal_nan=True).all()
    assert (difference(got, wanted, 1e-5, 1e-8) is None) == is_same
    assert (difference(got[0], wanted[0], 1e-5, 1e-8) is None) == is_same  # numbers, not arrays
    error, wrong = apart(wanted, got, 1e-5, 1e-8)
    assert wrong.tolist() == [not is_same, False]
    assert error[0] == (0 if is_same else 1 if pair == (1, 2) else INF)


def test_imaginary_parts_count() -> None:
    wanted = np.array([1 + 1j], np.complex64)
    assert difference(wanted.conj(), wanted, 1e-4, 1e-5) == "1 of 1 elements differ, by up to 2"


def test_tolerances_are_relative_to_what_is_wanted() -> None:
    large, small = np.array([1000.0]), np.array([1.0])
    assert not apart(large, large + 1, 1e-2, 0)[1].any()
    assert apart(small, large, 1e-2, 0)[1].all()


@pytest.mark.parametrize(
    ("got", "wanted", "text"),
    [
        (np.ones(2, np.int64), np.array([1, 2]), "1 of 2 elements differ"),
        (np.ones(2, np.float32), np.ones(2), "float32[2] where float64[2] is expected"),
        (np.ones(2), np.ones(3), "float64[2] where float64[3] is expected"),
        ([np.ones(2)], [np.ones(2)] * 2, "sequences of different lengths"),
        ([np.ones(2), np.ones(2)], [np.ones(2), np.zeros(2)], "2 of 2 elements differ, by up to 1"),
        ({1: 2.0}, {1: 3.0}, "{1: 2.0} where {1: 3.0} is expected"),
        ({1: 2.0}, {1: 2.0}, None),
    ],
)
def test_what_is_said(got: object, wanted: object, text: str | None) -> None:
    assert difference(got, wanted, 1e-4, 1e-5) == text

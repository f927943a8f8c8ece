"""Slice of every opset, Compress and ReverseSequence."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, one_node, source

import tonnx

X = np.random.default_rng(2).standard_normal((4, 5, 6)).astype(np.float32)
FAR = np.iinfo(np.int64).max
NEAR = np.iinfo(np.int32).max


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CASES = [  # starts, ends, axes, steps
    ([1], [3], None, None),
    ([0, 0, 0], [9, 9, 9], None, None),
    ([1, -3], [FAR, -1], [0, 2], None),
    ([-9], [NEAR], [1], None),
    ([3], [2], [1], None),
    ([7], [9], [1], None),
    ([0], [5], [-1], [2]),
    ([-1], [-FAR], [1], [-1]),
    ([4], [0], [1], [-2]),
    ([FAR], [-FAR - 1], [0], [-1]),
    ([-2], [-FAR], [2], [-3]),
    ([1], [3], [2], [-1]),
    ([1, 0], [FAR, 4], [2, 1], [3, FAR]),
    ([0, -1], [2, 0], [2, 0], [1, -1]),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), CASES)
@pytest.mark.parametrize("opset", [10, 11, 13])
def test_slice(starts, ends, axes, steps, opset: int) -> None:
    lists = {"starts": ints(*starts), "ends": ints(*ends)}
    lists["axes"] = None if axes is None else ints(*axes)
    lists["steps"] = None if steps is None else ints(*steps)
    if axes is None and steps is None:
        del lists["axes"], lists["steps"]
    given = [name for name, value in lists.items() if value is not None]
    for constant in (given, [n for n in given if n in ("axes", "steps")], [n for n in given if n == "axes"], []):
        for dynamic in (False, ("data",)):
            check("Slice", {"data": X, **lists}, opset, tuple(constant), dynamic=dynamic)


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), [c for c in CASES if c[3] is None])
def test_slice_of_opset_1(starts, ends, axes, steps) -> None:
    options = {"starts": starts, "ends": ends, **({} if axes is None else {"axes": axes})}
    want = check(
        "Slice",
        {"data": X, "starts": ints(*starts), "ends": ints(*ends)} | ({} if axes is None else {"axes": ints(*axes)}),
        13,
    )
    del want
    taken = [slice(None)] * 3
    for axis, start, end in zip(axes if axes is not None else range(len(starts)), starts, ends, strict=True):
        taken[axis] = slice(start, end)
    check("Slice", {"data": X}, 1, values=[X[tuple(taken)]], **options)


def test_slice_takes_int32() -> None:
    lists = {
        name: ints(*values).astype(np.int32)
        for name, values in [("starts", [-1]), ("ends", [-9]), ("axes", [1]), ("steps", [-2])]
    }
    check("Slice", {"data": X, **lists}, 13, tuple(lists))
    check("Slice", {"data": X, **lists}, 13)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "text"),
    [
        ([1, 0], [FAR, FAR], [0, 2], [1, 2], "return data[1:, :, ::2]"),
        ([0, 1, 2], [-1, 3, 4], [0, 1, 2], [1, 1, 1], "return data[:-1, 1:3, 2:4]"),
        ([-1], [-FAR], [1], [-1], "return data.flip(1)"),
        ([0], [FAR], [1], [1], "return data"),
    ],
)
def test_reads_well(starts, ends, axes, steps, text: str) -> None:
    lists = {"starts": ints(*starts), "ends": ints(*ends), "axes": ints(*axes), "steps": ints(*steps)}
    assert source("Slice", {"data": X, **lists}, 13, tuple(lists), dynamic=True).endswith(text)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([0], [1], [3], [1]),
        ([0, 0], [1, 1], [1, -2], [1, 1]),
        ([0], [1], [0], [0]),
        ([0], [1, 2], [0], [1]),
        ([0], [1], [0, 1], [1]),
    ],
)
def test_contradictions(starts, ends, axes, steps) -> None:
    lists = {"starts": ints(*starts), "ends": ints(*ends), "axes": ints(*axes), "steps": ints(*steps)}
    with pytest.raises(tonnx.Error) as error:
        tonnx.convert(one_node("Slice", {"data": X, **lists}, 13, tuple(lists)))
    assert error.value.kind == "invalid_model"


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("condition", [[True, False, True, True], [False, True], [False, False]], ids=str)
@pytest.mark.parametrize("opset", [9, 11])
def test_compress(axis: int | None, condition: list[bool], opset: int) -> None:
    if axis == -1 and opset < 11:
        pytest.skip("axes count from the front only")
    options = {} if axis is None else {"axis": axis}
    for constant in ((), ("condition",)):
        for dynamic in (False, True):
            check(
                "Compress", {"input": X, "condition": np.array(condition)}, opset, constant, dynamic=dynamic, **options
            )


@pytest.mark.parametrize("batch_axis", [0, 1])
def test_reverse_sequence(batch_axis: int) -> None:
    lengths = ints(1, 4, 5, 2) if batch_axis == 0 else ints(1, 4, 3, 2, 4)
    options = {"batch_axis": 0, "time_axis": 1} if batch_axis == 0 else {}
    for constant in ((), ("sequence_lens",)):
        for dynamic in (False, True):
            check("ReverseSequence", {"input": X, "sequence_lens": lengths}, 10, constant, dynamic=dynamic, **options)

"""Concat and Split of every opset, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, one_node, source

import tonnx

X = np.random.default_rng(4).standard_normal((2, 6, 4)).astype(np.float32)
TYPES = ["float16", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("opset", [4, 11, 13])
def test_concat(axis: int, opset: int) -> None:
    if axis < 0 and opset < 11:
        pytest.skip("axes count from the front only")
    for dynamic in (False, True):
        check("Concat", {"a": X, "b": X * 2, "c": X}, opset, dynamic=dynamic, axis=axis)
        check("Concat", {"a": X, "b": X * 2}, opset, ("b",), dynamic=dynamic, axis=axis)
        check("Concat", {"a": X}, opset, dynamic=dynamic, axis=axis)
    check("Concat", {"a": X, "b": np.zeros((2, 0, 4), np.float32)}, opset, axis=1)


def test_concat_of_opset_1() -> None:
    check("Concat", {"a": X, "b": X}, 1, values=[np.concatenate([X, X], 1)])


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype: str) -> None:
    x = np.array([[3, 0, 1], [2, 1, 7]]).astype(dtype)
    check("Concat", {"a": x, "b": x}, 13, reference=True, axis=0)
    check("Split", {"input": x}, 13, reference=True, values=[x[:1], x[1:]], outputs=2)


@pytest.mark.parametrize("split", [(2, 2, 2), (1, 2, 3), (0, 6, 0), (6, 0, 0)], ids=str)
@pytest.mark.parametrize("opset", [2, 11, 13, 18])
def test_split(split: tuple[int, ...], opset: int) -> None:
    at = np.cumsum(split)[:-1]
    want = np.split(X, at, axis=1)
    for dynamic in (False, ("input",)):
        if opset < 13:
            check("Split", {"input": X}, opset, values=want, dynamic=dynamic, outputs=3, axis=1, split=split)
        else:
            for constant in (("split",), ()):
                feeds = {"input": X, "split": ints(*split)}
                check("Split", feeds, opset, constant, values=want, dynamic=dynamic, outputs=3, axis=-2)


@pytest.mark.parametrize("opset", [2, 13, 18])
def test_even_split(opset: int) -> None:
    options = {"num_outputs": 2} if opset >= 18 else {}
    for dynamic in (False, True):
        check("Split", {"input": X}, opset, values=[X[:1], X[1:]], dynamic=dynamic, outputs=2, **options)
        check(
            "Split", {"input": X}, opset, values=[X[..., :2], X[..., 2:]], dynamic=dynamic, outputs=2, axis=2, **options
        )


@pytest.mark.parametrize("parts", [1, 4, 5])
def test_last_part_is_smaller(parts: int) -> None:
    x = np.arange(9, dtype=np.float32)
    each = -(-9 // parts)
    want = np.split(x, [each * i for i in range(1, parts)])
    for dynamic in (False,) if len(want[-1]) == 0 else (False, True):
        check("Split", {"input": x}, 18, values=want, dynamic=dynamic, outputs=parts, num_outputs=parts)


def test_split_of_opset_1() -> None:
    sizes = np.array([4, 2], np.float32)
    check("Split", {"input": X, "split": sizes}, 1, ("split",), values=[X[:, :4], X[:, 4:]], outputs=2, axis=1)
    check("Split", {"input": X}, 1, values=[X[:, :4], X[:, 4:]], outputs=2, axis=1, split=[4, 2])


@pytest.mark.parametrize(
    ("split", "text"),
    [([2, 2, 2], "x, y, z = input.chunk(3, 1)"), ([1, 2, 3], "x, y, z = torch.split(input, [1, 2, 3], 1)")],
)
def test_reads_well(split: list[int], text: str) -> None:
    assert text in source("Split", {"input": X, "split": ints(*split)}, 18, ("split",), dynamic=True, outputs=3, axis=1)


@pytest.mark.parametrize(
    ("op", "feeds", "options"),
    [
        ("Concat", {"a": X, "b": X}, {"axis": 3}),
        ("Concat", {"a": X, "b": X[0]}, {"axis": 0}),
        ("Concat", {"a": X, "b": X[:, :2]}, {"axis": 0}),
        ("Split", {"a": X, "b": ints(1, 2)}, {"axis": 1, "outputs": 2}),
        ("Split", {"a": X, "b": ints(7, -1)}, {"axis": 1, "outputs": 2}),
        ("Split", {"a": X, "b": ints(6)}, {"axis": 1, "outputs": 2}),
        ("Split", {"a": X}, {"axis": 5, "outputs": 2, "num_outputs": 2}),
        ("Split", {"a": X}, {"outputs": 3, "num_outputs": 2}),
    ],
)
def test_contradictions(op: str, feeds: dict[str, np.ndarray], options: dict[str, int]) -> None:
    with pytest.raises(tonnx.Error) as error:
        tonnx.convert(one_node(op, feeds, 18, ("b",) if op == "Split" else (), **options))
    assert error.value.kind == "invalid_model"

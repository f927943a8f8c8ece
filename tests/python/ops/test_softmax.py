"""Softmax, LogSoftmax and Hardmax of both kinds: along one axis, and over all that is behind it."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, check_opset, one_node, source

import tonnx

X = np.random.default_rng(2).standard_normal((2, 3, 4, 5)).astype(np.float32)
OPS = ["Softmax", "LogSoftmax", "Hardmax"]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("opset", [1, 11, 13])
@pytest.mark.parametrize("attributes", [{}, {"axis": 0}, {"axis": 2}, {"axis": 3}, {"axis": -1}, {"axis": -3}])
@pytest.mark.parametrize("op", OPS)
def test_axes(op: str, attributes: dict, opset: int, dynamic: bool) -> None:
    if opset == 1 and attributes.get("axis", 0) < 0:
        pytest.skip("opset 1 counts axes from the front")
    check(op, {"input": X}, opset, dynamic=dynamic, **attributes)


def test_first_of_equal_elements() -> None:
    check("Hardmax", {"input": np.array([[1, 3, 3, 2], [0, 0, 0, 0]], np.float32)}, 13)


@pytest.mark.parametrize("op", OPS)
def test_empty(op: str) -> None:
    check(op, {"input": np.zeros((0, 3), np.float32)}, 13)


def test_code(tmp_path, monkeypatch) -> None:
    """What is behind the axis has one element, so that nothing has to be flattened."""
    monkeypatch.chdir(tmp_path)
    assert "return F.softmax(x, dim=1)" in source("Softmax", {"x": X[:, :, :1, :1]}, 7)
    assert "return F.softmax(x, dim=-1)" in source("Softmax", {"x": X[0, 0]}, 7)


@pytest.mark.parametrize("op", OPS)
def test_steps_down(op: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_opset(op, {"input": X}, 13, 12)
    check_opset(op, {"input": X}, 13, 9, axis=1)
    check_opset(op, {"input": X}, 11, 8, axis=-2)


@pytest.mark.parametrize("opset", [11, 13])
def test_axis_out_of_range(opset: int) -> None:
    with pytest.raises(tonnx.Error, match="axis 7 is out of range for rank 4"):
        tonnx.convert(one_node("Softmax", {"input": X}, opset, axis=7))

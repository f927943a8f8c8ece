"""DepthToSpace and SpaceToDepth: both orders, sizes known and not."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, check_opset, one_node, source

import tonnx

X = np.arange(2 * 8 * 6 * 4, dtype=np.float32).reshape(2, 8, 6, 4)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("attributes", [{}, {"mode": "DCR"}, {"mode": "CRD"}])
def test_both_ways(attributes: dict, dynamic: bool) -> None:
    check("DepthToSpace", {"input": X}, 13, dynamic=dynamic, blocksize=2, **attributes)
    check("SpaceToDepth", {"input": X}, 28, dynamic=dynamic, blocksize=2, reference=True, **attributes)


@pytest.mark.parametrize("opset", [1, 13])
def test_older_opsets(opset: int) -> None:
    check("DepthToSpace", {"input": X}, opset, blocksize=2)
    check("SpaceToDepth", {"input": X}, opset, blocksize=2)


@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
def test_contradictions(op: str) -> None:
    for attributes in ({"blocksize": 0}, {"blocksize": 3}, {"blocksize": -2}, {"blocksize": 1 << 40}):
        with pytest.raises(tonnx.Error) as error:
            tonnx.convert(one_node(op, {"input": X[:, :, :, :2]}, 13, **attributes))
        assert error.value.kind == "invalid_model"


def test_steps_down(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_opset("DepthToSpace", {"input": X}, 13, 9, blocksize=2, mode="DCR")
    with pytest.raises(tonnx.Error, match="the older opset has no mode 'CRD'"):
        tonnx.convert(one_node("DepthToSpace", {"input": X}, 13, blocksize=2, mode="CRD"), "x.onnx", opset=9)


def test_code(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "F.pixel_shuffle(x, 2)" in source("DepthToSpace", {"x": X}, 13, blocksize=2, mode="CRD")

"""The losses of classifiers: weights, ignored classes, reductions, and the second output."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, check_opset, one_node, refuses_opset, source

import tonnx

RNG = np.random.default_rng(5)
SCORES = RNG.standard_normal((4, 5, 3, 2)).astype(np.float32)
LABELS = RNG.integers(0, 5, (4, 3, 2))
WEIGHTS = RNG.random(5, dtype=np.float32)
NLL, CROSS = "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("ignored", [{}, {"ignore_index": 2}, {"ignore_index": -1}])
@pytest.mark.parametrize("reduction", [{}, {"reduction": "none"}, {"reduction": "sum"}])
@pytest.mark.parametrize("op", [NLL, CROSS])
def test_attributes(op: str, reduction: dict, ignored: dict, weights: np.ndarray | None, dynamic: bool) -> None:
    labels = LABELS if ignored.get("ignore_index") != -1 else np.where(LABELS == 2, -1, LABELS)
    check(op, {"x": SCORES, "y": labels, "w": weights}, 13, dynamic=dynamic, **reduction, **ignored)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("opset", [12, 13])
@pytest.mark.parametrize("rank", [2, 3, 4])
def test_log_probabilities(rank: int, opset: int, outputs: int) -> None:
    scores, labels = SCORES[(...,) + (0,) * (4 - rank)], LABELS[(...,) + (0,) * (4 - rank)]
    check(CROSS, {"x": scores, "y": labels.astype(np.int32), "w": WEIGHTS}, opset, outputs=outputs)


@pytest.mark.parametrize("opset", [12, 13, 22])
def test_versions(opset: int) -> None:
    inputs = {"x": SCORES, "y": LABELS.astype(np.int32), "w": WEIGHTS}
    check(NLL, inputs, opset, reference=True, constant=("w",), ignore_index=0)
    check(NLL, {"x": SCORES.astype(np.float16), "y": LABELS}, opset, reference=True, tolerance=1e-3, reduction="none")


def test_empty() -> None:
    inputs = {"x": np.zeros((0, 3), np.float32), "y": np.zeros(0, np.int64)}
    check(NLL, inputs, 13, reduction="none", values=[np.zeros(0, np.float32)])
    check(CROSS, inputs, 13, reduction="sum", values=[np.zeros((), np.float32)])


def test_code(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = source(CROSS, {"x": SCORES, "y": LABELS, "w": WEIGHTS}, 13, ignore_index=2, reduction="sum")
    assert 'return F.cross_entropy(x, y, weight=w, ignore_index=2, reduction="sum")' in text


def test_steps_down(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_opset(NLL, {"x": SCORES, "y": LABELS}, 22, 12, reference=True)
    check_opset(CROSS, {"x": SCORES, "y": LABELS}, 13, 12)
    assert "float64" not in refuses_opset(NLL, {"x": SCORES, "y": LABELS}, 13, 11)


def test_reduction_that_does_not_exist() -> None:
    with pytest.raises(tonnx.Error, match="the reduction is 'max'"):
        tonnx.convert(one_node(NLL, {"x": SCORES, "y": LABELS}, 13, reduction="max"))

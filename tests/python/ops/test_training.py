"""One step of an optimiser: the values of the reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, expected, one_node

import tonnx

DOMAIN = "ai.onnx.preview.training::"
RNG = np.random.default_rng(3)
MOMENTUM = {"alpha": 0.9, "beta": 0.8, "norm_coefficient": 0.1, "mode": "standard"}


def tensors(groups: int, weights: int, step: int) -> dict[str, np.ndarray]:
    inputs = {"r": np.array(0.1, np.float32), "t": np.array(step, np.int64)}
    for group in range(groups):
        for weight in range(weights):
            inputs[f"x{group}{weight}"] = RNG.random((2, 3 + weight), dtype=np.float32)
    return inputs


@pytest.mark.parametrize("weights", [1, 2])
@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize(
    ("op", "groups", "attributes"),
    [
        ("Adagrad", 3, {}),
        ("Adagrad", 3, {"norm_coefficient": 0.01, "decay_factor": 0.1, "epsilon": 1e-3}),
        ("Adam", 4, {}),
        (
            "Adam",
            4,
            {"alpha": 0.8, "beta": 0.7, "epsilon": 1e-2, "norm_coefficient": 0.1, "norm_coefficient_post": 0.2},
        ),
        ("Momentum", 3, MOMENTUM),
        ("Momentum", 3, {**MOMENTUM, "mode": "nesterov", "norm_coefficient": 0.0}),
    ],
)
def test_step(op: str, groups: int, attributes: dict, step: int, weights: int) -> None:
    inputs = tensors(groups, weights, step)
    outputs = (groups - 1) * weights
    values = expected(one_node(DOMAIN + op, inputs, 20, outputs=outputs, **attributes), inputs, reference=True)
    values = [value.astype(np.float32) for value in values]  # numpy makes float64 of a number beside an array
    check(DOMAIN + op, inputs, 20, values=values, outputs=outputs, **attributes)


def test_refused() -> None:
    with pytest.raises(tonnx.Error, match="4 tensors do not divide into 3 groups"):
        tonnx.convert(one_node(DOMAIN + "Adagrad", tensors(2, 2, 1), 20, outputs=2))
    with pytest.raises(tonnx.Error, match="Gradient"):
        tonnx.convert(one_node(DOMAIN + "Gradient", tensors(1, 1, 0), 20, xs=["x00"], y="y"))

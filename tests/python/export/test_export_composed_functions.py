"""Functions of PyTorch that ask for values while they are traced, PyTorch -> ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tonnx
from tonnx._runtime import open_session

CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "cov": lambda x: torch.cov(x.t()),
    "cov of the whole": lambda x: torch.cov(x.t(), correction=0),
    "cov of one": lambda x: x[:, 0].cov(),
    "cov by frequencies": lambda x: torch.cov(x.t(), fweights=torch.arange(x.shape[0]) + 1),
    "cov by importance": lambda x: torch.cov(x.t(), aweights=x[:, 1].abs() + 0.5),
    "corrcoef": lambda x: torch.corrcoef(x.t()),
    "corrcoef of one": lambda x: x[:, 0].corrcoef(),
    "combinations": lambda x: torch.combinations(x[:, 0]),
    "combinations of three": lambda x: torch.combinations(x[:, 0], 3, with_replacement=True),
    "combinations of a fixed size": lambda x: torch.combinations(x[0], 2) * 2,
}


@pytest.mark.parametrize("name", CASES)
def test_at_every_size(name: str) -> None:
    function: Any = CASES[name]
    session = open_session(bytes(tonnx.export(function, torch.randn(6, 4), dynamic_axes={"x": {0: "rows"}})))
    for rows in (6, 9, 2, 3):
        x = torch.randn(rows, 4)
        (got,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.as_tensor(got), function(x), rtol=1e-4, atol=1e-5)

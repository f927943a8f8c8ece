"""eliminate_identity: nodes that give what they are given go away, and others do not."""

from __future__ import annotations

import pytest
from simplify_checks import check, check_unchanged, model

ONLY = ["eliminate_identity"]


@pytest.mark.parametrize("opset", [1, 13, 25])
def test_identity(opset):
    check(
        model("g (float[N,3] x) => (float[N,3] y) { a = Identity(x) y = Relu(a) }", opset=max(opset, 7)),
        {"Relu": 1},
        ONLY,
    )


def test_input_as_output():
    check_unchanged(model("g (float[N,3] x) => (float[N,3] y) { y = Identity(x) }"), ONLY)

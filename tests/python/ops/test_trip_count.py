"""Loops whose condition only counts, as exporters write `while i < n`: for loops, with the counter known inside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest
import torch
from checks import expected

import tonnx

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[n, 3] x, bool flag) => (float[3] y, int64 last) {{
  zero = Constant <value = int64 {{0}}> ()
  start = Constant <value = int64 {{{start}}}> ()
  shape = Shape (x)
  size = Gather (shape, zero)
  limit = Cast <to = {type}> (size)
  first = Cast <to = {type}> (start)
  goes = {condition} (first, limit)
  before = {before}
  column = ReduceSum <keepdims = 0> (x, axes)
  y, last = Loop ({most}, before, column, start) <body = step (int64 i, bool go, float[3] s, int64 k) => (bool on, float[3] t, int64 next) {{
    one = Constant <value = int64 {{1}}> ()
    next = Add (k, one)
    element = Cast <to = 1> (k)
    t = Add (s, element)
    a = Cast <to = {type}> (next)
    less = {condition} (a, limit)
    on = {on}
  }}>
}}
"""


def model(**parts: object) -> onnx.ModelProto:
    filled = {
        "start": 0,
        "type": 7,
        "condition": "Less",
        "before": "Identity (goes)",
        "most": "",
        "on": "Identity (less)",
    }
    built = onnx.parser.parse_model(MODEL.format(**filled | parts))
    built.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    return built


CASES = {
    "less": {},
    "as floats": {"type": 1},
    "or equal": {"condition": "LessOrEqual"},
    "from two on": {"start": 2},
    "twice the same": {"on": "And (less, less)"},
    "a condition of its own": {"before": "Identity (flag)"},
    "at most as often": {"most": "size"},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("flag", [False, True])
def test_values(name: str, size: int, flag: bool) -> None:
    feeds = {"x": np.random.default_rng(0).standard_normal((size, 3), np.float32), "flag": np.array(flag)}
    built = model(**CASES[name])
    y, last = tonnx.convert(built)(*(torch.from_numpy(array) for array in feeds.values()))
    for got, want in zip((y, last), expected(built, feeds, reference=False), strict=True):
        assert got.dtype == torch.from_numpy(np.asarray(want)).dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if name != "a condition of its own"])
def test_source(name: str) -> None:
    tonnx.convert(model(**CASES[name]), "model.py")
    source = Path("model.py").read_text()
    assert "for i in range(" in source
    assert "while" not in source and "break" not in source


def test_export() -> None:
    module = tonnx.convert(model())
    program = torch.export.export(module, (torch.ones(4, 3), torch.tensor(True)))
    x = torch.randn(4, 3)
    torch.testing.assert_close(program.module()(x, torch.tensor(True)), module(x, torch.tensor(True)))

"""ONNX Runtime in a process of its own: what crashes it is an error that names the model, and later models run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
import torch

import tonnx
from tonnx import _runtime
from tonnx._runtime import RuntimeCrash, RuntimeFailure, open_session
from tonnx._verify.cli import main

# the processor traps where the smallest integer is divided by -1
CRASHES = """(int32[3] x) => (int32[3] y) <int32 smallest = {-2147483648}, int32 minus_one = {-1}> {
    zeros = Sub(x, x)
    smallests = Add(zeros, smallest)
    y = Div(smallests, minus_one)
}"""


def model(body: str) -> bytes:
    text = f'<ir_version: 8, opset_import: ["": 17]> g {body}'
    data: bytes = onnx.parser.parse_model(text).SerializeToString()
    return data


def test_values_are_those_of_the_runtime() -> None:
    session = open_session(
        model("(float[N, 2] x, int64[1] k) => (float[N, 2] y, int64[1] m) { y = Exp(x) m = Add(k, k) }")
    )
    assert [(i.name, i.type, i.shape) for i in session.get_inputs()] == [
        ("x", "tensor(float)", ["N", 2]),
        ("k", "tensor(int64)", [1]),
    ]
    assert [o.name for o in session.get_outputs()] == ["y", "m"]
    x = np.arange(12, dtype=np.float32).reshape(2, 6).T[::3]  # elements that do not lie side by side
    y, m = session.run(None, {"x": x, "k": np.array([3])})
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
    assert m == [6] and y.flags.writeable
    assert [value.shape for value in session.run(["m"], {"x": x, "k": np.array([3])})] == [(1,)]


def test_texts_sequences_and_empty_tensors_come_through() -> None:
    session = open_session(
        model(
            "(string[N] s, float[N] x) => (string[N] t, seq(float[M]) q) { t = Identity(s) q = SequenceConstruct(x, x) }"
        )
    )
    t, q = session.run(None, {"s": np.array(["a", "ü"], object), "x": np.zeros(0, np.float32)})
    assert list(t) == ["a", "ü"]
    assert [part.shape for part in q] == [(0,), (0,)]


def test_what_the_runtime_refuses_is_said() -> None:
    with pytest.raises(RuntimeFailure, match="No Op registered for Nothing"):
        open_session(model("(float[N] x) => (float[N] y) { y = Nothing(x) }"))
    session = open_session(model("(float[3] x) => (float[3] y) { y = Exp(x) }"))
    with pytest.raises(RuntimeFailure, match="Got invalid dimensions"):
        session.run(None, {"x": np.ones(4, np.float32)})


def test_a_crash_is_an_error_and_other_sessions_go_on() -> None:
    good = open_session(model("(float[N] x) => (float[N] y) { y = Exp(x) }"))
    bad = open_session(model(CRASHES))
    with pytest.raises(RuntimeCrash, match="it died of SIGFPE"):
        bad.run(None, {"x": np.ones(3, np.int32)})
    assert good.run(None, {"x": np.zeros(2, np.float32)})[0].tolist() == [1, 1]
    with pytest.raises(RuntimeCrash):
        bad.run(None, {"x": np.ones(3, np.int32)})


def test_an_interrupted_question_leaves_no_answer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(model("(float[N] x) => (float[N] y) { y = Exp(x) }"))
    receive = _runtime._runtime_process.receive

    def interrupted(stream: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(_runtime._runtime_process, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.run(None, {"x": np.ones(2, np.float32)})
    monkeypatch.setattr(_runtime._runtime_process, "receive", receive)
    assert session.run(None, {"x": np.zeros(1, np.float32)})[0].tolist() == [1]


@pytest.mark.parametrize("arguments", [["bad.onnx", "bad.onnx"], ["good.onnx", "bad.onnx"]])
def test_verify_names_the_model_that_crashed(
    arguments: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.onnx").write_bytes(model("(int32[3] x) => (int32[3] y) { y = Abs(x) }"))
    Path("bad.onnx").write_bytes(model(CRASHES))
    assert main(arguments) == 1
    assert "ONNX Runtime cannot run 'bad.onnx': it died of SIGFPE" in capsys.readouterr().err


def test_an_export_that_crashes_the_runtime_is_not_written(tmp_path: Path) -> None:
    def divides(x: torch.Tensor) -> torch.Tensor:
        y = x - x - 2**31
        return torch.div(y, x - x - 1, rounding_mode="trunc") if torch.onnx.is_in_onnx_export() else y

    with pytest.raises(tonnx.Error, match="ONNX Runtime cannot run the model: it died of SIGFPE"):
        tonnx.export(divides, torch.ones(3, dtype=torch.int32), tmp_path / "m.onnx", verify=True)
    assert not list(tmp_path.iterdir())


def test_no_process_is_left() -> None:
    script = """
import numpy as np, onnx.parser
from tonnx import _runtime
model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y) { y = Exp(x) }')
session = _runtime.open_session(model.SerializeToString())
session.run(None, {"x": np.ones(2, np.float32)})
print(_runtime._process.child.pid)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), signal.SIG_DFL)

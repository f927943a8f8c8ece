"""What commands say to a person at a terminal, and that they say nothing of it into a pipe."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import TIMEOUT, cli_command
from onnx import TensorProto, helper, numpy_helper, save


def write_model(path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64])],
        [numpy_helper.from_array(np.ones((64, 64), np.float32), "w")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def on_terminal(command: list[str], folder: Path) -> str:
    """What a command shows where its output is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        assert process.wait(TIMEOUT) == 0, shown
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def test_a_conversion_says_what_it_wrote(tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx")
    said = on_terminal([*cli_command(), "convert", "m.onnx", "m.py"], tmp_path)
    size = (tmp_path / "m.safetensors").stat().st_size
    sizes = rf"m\.py \(\d+ B\) and m\.safetensors \({size / 1000:.1f} kB\)"
    assert re.fullmatch(rf"wrote {sizes} in \d+ ms\n", said)
    said = on_terminal([*cli_command(), "convert", "m.onnx", "m.pth"], tmp_path)
    assert said.endswith(
        "note: that is the weights alone; tonnx convert m.onnx m.py writes the code that they belong to\n"
    )


@pytest.mark.parametrize("command", [["convert", "m.onnx", "m.py"], ["infer", "m.onnx", "t.onnx"]])
def test_quiet_is_quiet_and_a_pipe_gets_nothing_extra(tmp_path: Path, command: list[str]) -> None:
    write_model(tmp_path / "m.onnx")
    assert on_terminal([*cli_command(), *command, "-q"], tmp_path) == ""
    done = subprocess.run([*cli_command(), *command], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_checks_that_passed_are_said(tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx")
    said = on_terminal([sys.executable, "-m", "tonnx", "simplify", "m.onnx", "s.onnx", "3"], tmp_path)
    assert "3 checks passed: the outputs are the same\nwrote s.onnx (" in said


PROGRAMS = {"program": cli_command(), "package": [sys.executable, "-m", "tonnx"]}
COMMANDS = [
    ["ops"],
    ["ops", "--markdown"],
    ["print", "m.onnx"],
    ["check", "m.onnx"],
    ["simplify", "m.onnx", "s.onnx"],
    ["simplify", "--list-passes"],
    ["opt", "--list"],
    ["opt", "--passes", "merge_casts", "m.onnx"],
    ["simplify", "--help"],
    ["--help"],
    ["--version"],
]


OF_PACKAGE = [["verify", "m.onnx", "m.onnx"], ["export", "--help"]]
CASES = [(name, command) for name in PROGRAMS for command in COMMANDS] + [("package", c) for c in OF_PACKAGE]


@pytest.mark.parametrize(
    ("program", "command"), CASES, ids=lambda part: part if isinstance(part, str) else " ".join(part)
)
@pytest.mark.parametrize("is_ignored", [False, True], ids=["", "signal ignored"])
def test_a_pipe_that_nobody_reads_is_no_error(
    tmp_path: Path, program: str, command: list[str], is_ignored: bool
) -> None:
    write_model(tmp_path / "m.onnx")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAMS[program], *command], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT,
        restore_signals=not is_ignored,
    )  # fmt: skip
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode in (0, 141, -signal.SIGPIPE)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("command", [["ops"], ["print", "m.onnx"]], ids=" ".join)
def test_output_that_finds_no_room_is_an_error(tmp_path: Path, program: str, command: list[str]) -> None:
    write_model(tmp_path / "m.onnx")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAMS[program], *command],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT,
        )
    assert (done.returncode, done.stderr) == (1, "error: cannot write the output: No space left on device\n")

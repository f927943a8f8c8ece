"""tonnx opt: passes one by one, on files and on graphs that are written as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import onnx
import pytest
import torch
from torch import nn

Cli = Callable[..., "CompletedProcess[str]"]

CASTS = """opset 21
graph g {
  input %x: float16[n]
  const %one: float32[]{1.0}
  %a = Cast(%x) {to=1}
  %b = Mul(%a, %one)
  %y = Cast(%b) {to=11}
  output %y
}
"""
LINEAR = """graph g {
  input %x: float32[n, 2]
  param %t: float32[2, 3]{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
  param %b: float32[3]{0.5, 1.5, 2.5}
  %m: float32[n, 3] = aten::matmul(self=%x, other=%t)
  %y: float32[n, 3] = aten::add.Tensor(self=%m, other=%b)
  output %y
}
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("casts.txt").write_text(CASTS)
    Path("linear.txt").write_text(LINEAR)
    return tmp_path


def passed(done: CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_passes_run_in_the_order_that_they_are_named_in(graph: Path, cli: Cli) -> None:
    first = passed(cli("opt", "--passes", "eliminate_identity,merge_casts", "casts.txt"))
    assert first.count("Cast(") == 1
    assert "Mul" not in first
    second = passed(cli("opt", "casts.txt", "--passes", "merge_casts", "--passes", "eliminate_identity"))
    assert second.count("Cast(") == 2
    assert "Mul" not in second


def test_print_after_shows_the_passes_that_changed_something(graph: Path, cli: Cli) -> None:
    text = passed(cli("opt", "--passes", "merge_pads,eliminate_identity,merge_casts", "--print-after", "casts.txt"))
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# after eliminate_identity",
        "# after merge_casts",
    ]
    assert text.count("graph g {") == 2


def test_result_goes_where_it_is_told(graph: Path, cli: Cli) -> None:
    assert passed(cli("opt", "--passes", "eliminate_identity", "casts.txt", "out.onnx")) == ""
    assert [node.op_type for node in onnx.load("out.onnx").graph.node] == ["Cast", "Cast"]
    assert passed(cli("opt", "--passes", "merge_casts", "out.onnx", "out.txt")) == ""
    assert Path("out.txt").read_text() == passed(cli("opt", "--passes", "merge_casts", "out.onnx"))


def test_text_of_aten(graph: Path, cli: Cli) -> None:
    assert "aten::linear(input=%x" in passed(cli("opt", "--passes", "recognise_linear", "linear.txt"))
    passed(cli("opt", "--passes", "recognise_linear", "linear.txt", "out.py"))
    assert "nn.Linear" in Path("out.py").read_text()
    done = cli("opt", "--passes", "merge_casts", "linear.txt")
    assert done.returncode == 2
    assert "the pass merge_casts is for models of ONNX" in done.stderr


def test_onnx_becomes_code_for_a_pass_of_code(graph: Path, cli: Cli) -> None:
    text = passed(cli("opt", "--passes", "merge_casts,remove_dead_code", "casts.txt"))
    assert "aten::" in text
    assert "Cast(" not in text


def test_programs_of_pytorch(graph: Path, cli: Cli) -> None:
    program = torch.export.export(nn.Sequential(nn.Linear(4, 3), nn.SiLU()), (torch.ones(2, 4),))
    torch.export.save(program, "m.pt2")
    assert "aten::silu" in passed(cli("opt", "--passes", "recognise_aten_activations,remove_dead_code", "m.pt2"))
    passed(cli("opt", "--passes", "remove_dead_code", "m.pt2", "out.py"))
    assert "nn.Linear" in Path("out.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--passes", "merge_cast", "casts.txt"], "there is no pass 'merge_cast'; there are: merge_casts"),
        (["--passes", "merge_casts"], "opt needs a model"),
        (["casts.txt"], "opt needs the names of passes"),
        (["--passes", "merge_casts", "missing.onnx"], "missing.onnx"),
        (["--passes", "merge_casts", "broken.txt"], "line 1"),
        (["--passes", "recognise_linear", "mixed.txt"], "nodes of ONNX among those of aten"),
        (["--passes", "recognise_linear", "wrong.txt"], "other"),
        (["--passes", "merge_casts", "casts.txt", "out.docx"], "out.docx"),
    ],
)
def test_errors(graph: Path, cli: Cli, arguments: list[str], message: str) -> None:
    Path("broken.txt").write_text("graph {{")
    Path("mixed.txt").write_text(LINEAR.replace("aten::add.Tensor(self=%m, other=%b)", "Relu(%m)"))
    Path("wrong.txt").write_text(LINEAR.replace("other=%t", "another=%t"))
    done = cli("opt", *arguments)
    assert done.returncode in (1, 2), done
    assert message in done.stderr


def test_list_says_what_each_pass_does(cli: Cli) -> None:
    lines = passed(cli("opt", "--list")).splitlines()
    assert any(line.startswith("merge_casts ") and line.endswith("(onnx, simplify)") for line in lines)
    assert any(line.startswith("recognise_linear ") and line.endswith("(code, code)") for line in lines)
    assert any("; on request (onnx, simplify)" in line for line in lines)

"""Advice in messages: every command, option and keyword that one names is there, and does what the message says."""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import REPOSITORY
from torch import nn

import tonnx
from tonnx import _core, _export_command
from tonnx.__main__ import run
from tonnx._cluster import cli as cluster_cli
from tonnx._verify import cli as verify_cli

COMMANDS = ("convert", "export", "verify", "simplify", "infer", "opt", "run", "check", "print", "ops")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
COMMAND = re.compile(
    r"(?<![\w.])tonnx (?!reads|writes|knows)([a-z]+)(?= (?:\S*\.(?:onnx|py|pt2?|pth|yml|safetensors)\b|\{\d?\}|--))"
)
KEYWORD = re.compile(r"\b([a-z]\w+)=(?:True|False|\.\.\.|\")")
CALL = re.compile(r"\btonnx\.([a-z_]+)\(")
# options of other programs
FOREIGN = {"--output", "--keras", "--tflite", "--saved-model", "--onnx-path"}


def literals_of_cpp(text: str) -> Iterator[str]:
    for line in re.sub(r'"\s*\n\s*"', "", text).splitlines():
        yield from re.findall(r'"((?:[^"\\]|\\.)*)"', line)


def literals_of_python(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {
        id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, documented) and isinstance(n.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def messages() -> Iterator[tuple[str, str]]:
    """Texts with at least a few words, and where they are."""
    for folder, ending, literals in (("src", "cpp", literals_of_cpp), ("python", "py", literals_of_python)):
        for path in sorted((REPOSITORY / folder).rglob(f"*.{ending}")):
            for text in literals(path.read_text()):
                if " " in text and not any(other in text for other in ("::", "<", "{ --")):
                    yield str(path.relative_to(REPOSITORY)), text


def said_by(main: Callable[[], Any], capfd: pytest.CaptureFixture[str]) -> str:
    try:
        main()
    except SystemExit:
        pass
    return capfd.readouterr().out


@pytest.fixture
def options(capfd: pytest.CaptureFixture[str]) -> dict[str, set[str]]:
    """The options of each command, of the program's and of the package's."""
    found = {}
    others: dict[str, Any] = {"export": _export_command, "verify": verify_cli, "run": cluster_cli}
    for name in COMMANDS:
        text = said_by(lambda name=name: _core.run_cli(["tonnx", name, "--help"], None), capfd)  # type: ignore[misc]
        if name in others:
            text += others[name].parser().format_help()
        found[name] = set(OPTION.findall(text))
        assert "--help" in found[name], name
    return found


def test_options_and_commands_of_messages_are_there(options: dict[str, set[str]]) -> None:
    known = set().union(*options.values()) | FOREIGN | {"--version"}
    seen = 0
    for place, text in messages():
        command = None
        for found in re.finditer(f"{COMMAND.pattern}|{OPTION.pattern}", text):
            if found[1] is not None:
                command = found[1]
                assert command in COMMANDS, f"{place}: {text}"
                continue
            allowed = options[command] | FOREIGN if command is not None else known
            assert found[0] in allowed, f"{place}: {text}"
            seen += 1
    assert seen > 50


@cache
def keywords() -> set[str]:
    functions = [getattr(tonnx, name) for name in tonnx.__all__ if callable(getattr(tonnx, name))]
    functions += [torch.load, torch.save]
    found = set()
    for function in functions:
        found |= set(inspect.signature(function).parameters)
    return found


def test_functions_and_keywords_of_messages_are_there() -> None:
    seen = 0
    for place, text in messages():
        is_generated = place.startswith(("src/ops/", "src/formats/", "python/tonnx/_verify/html"))
        for name in CALL.findall(text):
            assert hasattr(tonnx, name), f"{place}: {text}"
            seen += 1
        for name in [] if is_generated else KEYWORD.findall(text):
            assert name in keywords(), f"{place}: {text}"
            seen += 1
    assert seen > 10


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.norm(self.conv(x))
        return result


def test_weights_of_a_merged_norm_go_in_after_the_advice_was_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "import torch\nfrom torch import nn\n\n\n" + inspect.getsource(Normed)
    Path("my_net.py").write_text(code)
    model = Normed().eval()
    nn.init.uniform_(model.norm.running_var, 0.5, 2)
    torch.save(model.state_dict(), "w.pth")
    inputs = ["--input", "1,3,8,8", "--quiet"]
    assert run(["export", "my_net.py:Normed", "model.onnx", *inputs]) == 0
    assert run(["convert", "model.onnx", "tuned.onnx", "--weights", "w.pth"]) == 1
    said = capfd.readouterr().err
    command = "tonnx export my_net.py:Net --no-constant-folding model.onnx"
    assert f"the model's BatchNorm was merged into other layers: {command} keeps it" in said
    assert run([*command.replace("Net ", "Normed ").split()[1:], *inputs]) == 0
    assert run(["convert", "model.onnx", "tuned.onnx", "--weights", "w.pth"]) == 0
    x = torch.rand(1, 3, 8, 8)
    torch.testing.assert_close(tonnx.convert("tuned.onnx")(x), model(x))
    assert os.path.getsize("tuned.onnx") > 0

"""Options that mean nothing for a source and a target are refused, in the package, on the command line and in a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import tonnx

MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
)


@pytest.fixture(autouse=True)
def model() -> None:
    onnx.save(MODEL, "a.onnx")


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        (None, {"opset": 13}, "an opset is given"),
        ("b.py", {"opset": 13}, "an opset is given"),
        ("b.pt2", {"external_data": True}, "external data is for a target in ONNX"),
        ("b.py", {"dynamic": {"x": {0: "n"}}}, "convert to .onnx with them first"),
        (None, {"allow_ops": ["a::b"]}, "for a .pt2 source"),
        ("b.txt", {}, "cannot write 'b.txt'"),
    ],
)
def test_the_package_refuses(target: str | None, options: dict[str, Any], said: str) -> None:
    with pytest.raises(tonnx.Error, match=said):
        tonnx.convert("a.onnx", target, **options)  # type: ignore[call-overload]
    assert [path.name for path in Path().iterdir()] == ["a.onnx"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["convert", "a.onnx", "b.py", "--opset", "13"], "an opset is given"),
        (["convert", "a.onnx", "b.py", "--dynamic", "x:0=n"], "convert to .onnx with them first"),
        (["convert", "a.onnx", "b.pt", "--external-data"], "external data is for a target in ONNX"),
        (["convert", "a.onnx", "b.py", "--allow-op", "a::b"], "for a .pt2 source"),
        (["check", "a.onnx", "--opset", "13"], "an opset is given"),
    ],
)
def test_the_command_line_refuses(cli: Any, arguments: list[str], said: str) -> None:
    done = cli(*arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert [path.name for path in Path().iterdir()] == ["a.onnx"]


def test_a_program_refuses_what_was_fixed_when_it_was_exported(cli: Any) -> None:
    tonnx.convert("a.onnx", "a.pt2")
    for option in (["--dynamic", "x:0=n"], ["--input-shape", "x:3"]):
        done = cli("convert", "a.pt2", "b.onnx", *option)
        assert done.returncode == 1
        assert "fixed when it is exported" in done.stderr


def test_a_size_that_is_opened_in_onnx_is_open_in_code() -> None:
    tonnx.convert("a.onnx", "open.onnx", dynamic={"x": {0: "n"}})
    assert onnx.load("open.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_a_batch_refuses_an_option_that_no_target_takes(cli: Any) -> None:
    Path("both.yml").write_text("models:\n  - {source: a.onnx, targets: [b.py, c.onnx], opset: 18}\n")
    assert cli("run", "both.yml").returncode == 0
    assert onnx.load("c.onnx").opset_import[0].version == 18
    Path("none.yml").write_text("models:\n  - {source: a.onnx, target: d.py, opset: 18}\n")
    done = cli("run", "none.yml")
    assert done.returncode == 1
    assert "'opset' is for a target in ONNX, and the model has none" in done.stderr
    Path("default.yml").write_text("defaults: {opset: 18}\nmodels:\n  - {source: a.onnx, target: e.py}\n")
    assert cli("run", "default.yml").returncode == 0

"""Arguments of wrong types: a TypeError that names the argument and says what it takes, never a signature of C++."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tonnx
from tonnx._arguments import require_type

FUNCTIONS = (tonnx.convert, tonnx.simplify, tonnx.infer, tonnx.check, tonnx.verify, tonnx.save, tonnx.run, tonnx.export)
# these take values of types that are not ours, and other code says what is wrong with them
ANY = {
    *(("export", name) for name in ("args", "model", "dynamic_shapes", "training")),
    *(("verify", name) for name in ("a", "b")),
    ("run", "client"),
}


def parameters() -> list[tuple[Callable[..., Any], str]]:
    found = []
    for function in FUNCTIONS:
        for name, one in inspect.signature(function).parameters.items():
            if one.kind is not one.VAR_KEYWORD and (function.__name__, name) not in ANY:
                found.append((function, name))
    assert len(found) > 60
    return found


@pytest.mark.parametrize(("function", "name"), parameters(), ids=lambda value: getattr(value, "__name__", value))
def test_a_value_of_no_use_is_refused_by_name(function: Callable[..., Any], name: str) -> None:
    signature = inspect.signature(function)
    needed = [n for n, one in signature.parameters.items() if one.default is one.empty and one.kind.name[:3] != "VAR"]
    good = {n: torch.nn.ReLU() if function in (tonnx.export, tonnx.save) else "m.onnx" for n in needed}
    with pytest.raises(TypeError) as e:
        function(**{**good, name: object()})
    text = str(e.value)
    assert text.startswith(f"{name} takes ") and text.endswith(", not an object")
    assert "nanobind" not in text and "::" not in text and "std" not in text


MESSAGES: dict[str, tuple[Callable[[], Any], str]] = {
    "an opset as text": (
        lambda: tonnx.export(torch.nn.ReLU(), (torch.ones(2),), "m.onnx", opset_version="13"),  # type: ignore[arg-type]
        "opset_version takes an integer or None, not '13' (str)",
    ),
    "a shape as text": (
        lambda: tonnx.convert("m.onnx", "n.onnx", input_shapes={"x": "1,3"}),
        "input_shapes takes a dict such as {\"x\": [1, 3, 224, 224]} or None, not {'x': '1,3'} (dict)",
    ),
    "one name for a list": (
        lambda: tonnx.convert("m.onnx", "n.pt2", allow_ops="lib::op"),
        "allow_ops takes a list of strings, not 'lib::op' (str)",
    ),
    "a number for a path": (
        lambda: tonnx.convert("m.onnx", 3),  # type: ignore[call-overload]
        "target takes a path or None, not 3 (int)",
    ),
    "a list for a dict": (
        lambda: tonnx.convert("m.onnx", "n.onnx", dynamic={"x": ["batch"]}),  # type: ignore[dict-item]
        'dynamic takes a dict such as {"x": {0: "batch"}}, "auto" or None, not {\'x\': [\'batch\']} (dict)',
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_say_what_an_argument_takes(name: str) -> None:
    call, text = MESSAGES[name]
    with pytest.raises(TypeError) as e:
        call()
    assert str(e.value) == text


def test_numbers_of_numpy_and_pytorch_are_numbers(tmp_path: Path) -> None:
    module, x = torch.nn.ReLU(), torch.ones(2, 3)
    program = tonnx.export(module, (x,), tmp_path / "m.onnx", opset_version=np.int64(17), verify=np.bool_(True))
    assert program.model_proto.opset_import[0].version == 17
    tonnx.convert(tmp_path / "m.onnx", str(tmp_path / "n.onnx"), input_shapes={"input": x.shape})


def test_completion_shows_what_is_public() -> None:
    script = "import tonnx; print(*dir(tonnx))"
    names = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert {"convert", "export", "verify", "save", "run", "simplify", "check", "Error"} <= set(names)
    assert "Any" not in names and names == sorted(tonnx.__all__)


def test_a_mapping_is_described_by_what_it_holds() -> None:
    with pytest.raises(TypeError, match="given takes a dict from strings to integers, not"):
        require_type("given", {"x": "y"}, dict[str, int])

"""Every input of the fuzzers, as code: whatever the file, the .py parses and says only what it may, and so does the .pt."""

from __future__ import annotations

from pathlib import Path

import pytest
from allowed_code import check_archive, check_python
from conftest import REPOSITORY

import tonnx

FUZZ = REPOSITORY / "tests/fuzz"
MODELS = [p for kind in ("corpus", "found") for p in sorted((FUZZ / kind / "onnx_routes").glob("*"))]
ARCHIVES = [p for kind in ("corpus", "found") for p in sorted((FUZZ / kind / "pt2").glob("*"))]


def check_routes(source: Path) -> int:
    """How many of the two forms of code could be written."""
    written = 0
    for ending, check in ((".py", lambda path: check_python(path.read_text())), (".pt", check_archive)):
        target = Path(f"model{ending}")
        try:
            tonnx.convert(source, target)
        except tonnx.Error as e:
            assert e.kind != "internal", e
            continue
        check(target)
        written += 1
    return written


def test_models() -> None:
    written = 0
    for path in MODELS:
        source = Path("model.onnx")
        source.write_bytes(path.read_bytes())
        written += check_routes(source)
    assert written > len(MODELS)


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_archives(path: Path) -> None:
    source = Path("model.pt2")
    source.write_bytes(path.read_bytes())
    assert check_routes(source) == 2 or path.parent.parent.name == "found"

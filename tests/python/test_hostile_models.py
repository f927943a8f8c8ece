"""Models that mean harm, on every route: no crash, no internal error, no memory or time out of proportion, no code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hostile_models as models
import pytest
from allowed_code import check_archive, check_python
from hostile_worker import ROUTES

MEGABYTES = 2048
SECONDS = 15  # of the processor; a file that costs more than it should costs minutes
FINE = {"done", "bad_file", "invalid_model", "unsupported"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for kind in ("small", "large"):
        made[kind] = tmp_path_factory.mktemp(kind)
        for name, maker in models.all_models(is_large=kind == "large"):
            content = maker()
            whole = content if isinstance(content, bytes) else content.SerializeToString()
            (made[kind] / f"{name}.onnx").write_bytes(whole)
    made["texts"] = tmp_path_factory.mktemp("texts")
    for place in models.PLACES:
        for name, text in models.TEXTS.items():
            path = made["texts"] / f"{place} with {name}.onnx".replace(" ", "_")
            path.write_bytes(models.with_text(place, text))
    return made


def outcomes(route: str, folder: Path) -> dict[str, str]:
    """What became of each file; the worker's death is the outcome of the last one."""
    worker = Path(__file__).with_name("hostile_worker.py")
    command = [sys.executable, str(worker), route, str(folder), str(MEGABYTES), str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    result = {}
    for line in done.stdout.splitlines():
        name, _, rest = line.partition(" ")
        result[name] = rest or f"died with {done.returncode}: {done.stderr[-300:]}"
    return result


def check_code(route: str, folder: Path) -> None:
    checks: dict[str, Callable[[Path], None]] = {
        "py": lambda path: check_python(path.read_bytes().decode()),
        "pt": check_archive,
    }
    if route in checks:
        paths = sorted((folder / route).glob(f"*.{route}"))
        assert paths, "no file of them is converted"
        for path in paths:
            try:
                checks[route](path)
            except Exception as e:
                raise AssertionError(f"{path.name}: {e}") from e


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", ["small", "large", "texts"])
def test_route(kind: str, route: str, folders: dict[str, Path]) -> None:
    found = outcomes(route, folders[kind])
    bad = {name: text for name, text in found.items() if text.split(" ")[0] not in FINE}
    assert not bad
    assert len(found) == len(list(folders[kind].glob("*.onnx")))
    assert list(folders[kind].rglob("executed")) == []
    if kind != "large":  # the same models as the small ones, with more of everything
        check_code(route, folders[kind])

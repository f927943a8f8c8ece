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


@pytest.fixture(scope="module", params=["small", pytest.param("large", marks=pytest.mark.heavy), "texts"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a kind; the large ones are the small ones with more of everything."""
    kind: str = request.param
    made = tmp_path_factory.mktemp(kind)
    if kind == "texts":
        for place in models.PLACES:
            for name, text in models.TEXTS.items():
                path = made / f"{place} with {name}.onnx".replace(" ", "_")
                path.write_bytes(models.with_text(place, text))
        return made
    for name, maker in models.all_models(is_large=kind == "large"):
        content = maker()
        whole = content if isinstance(content, bytes) else content.SerializeToString()
        (made / f"{name}.onnx").write_bytes(whole)
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
def test_route(route: str, folder: Path) -> None:
    found = outcomes(route, folder)
    bad = {name: text for name, text in found.items() if text.split(" ")[0] not in FINE}
    assert not bad
    assert len(found) == len(list(folder.glob("*.onnx")))
    assert list(folder.rglob("executed")) == []
    check_code(route, folder)

"""The command line on bad files: with little memory and little time, and what it must say and leave behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from conftest import TIMEOUT, cli_command

MEMORY_KB = 1_500_000  # address space, not resident: a reader that believes a declared size does not fit in here
CPU_SECONDS = 60
SANITIZED = "TONNX_SANITIZED" in os.environ  # the sanitizers reserve terabytes of addresses


def run_limited(*args: object, preexec_fn: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    limits = f"ulimit -c 0; ulimit -t {CPU_SECONDS}; " + ("" if SANITIZED else f"ulimit -v {MEMORY_KB}; ")
    command = ["sh", "-c", limits + 'exec "$@"', "sh", *cli_command(), *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT, errors="replace", preexec_fn=preexec_fn
    )


def files_in(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


def assert_refused(done: subprocess.CompletedProcess[str], codes: tuple[int, ...] = (1, 2)) -> None:
    assert done.returncode in codes, f"exit code {done.returncode}\n{done.stderr[-2000:]}"
    lines = done.stderr.rstrip("\n").splitlines()
    assert lines and lines[0].startswith("error: ") and len(lines[0]) > len("error: "), done.stderr[-2000:]
    assert sum(line.startswith("error: ") for line in lines) == 1, done.stderr[-2000:]
    assert all(line.startswith("  ") for line in lines[1:]), done.stderr[-2000:]
    assert len(done.stderr) < 20_000, "an error is for reading"


def assert_refused_everywhere(source: Path, folder: Path, codes: tuple[int, ...] = (1, 2)) -> None:
    """Neither way of converting takes the file, and neither leaves a trace."""
    out = folder / "out"
    out.mkdir()
    for target in ("model.py", "model.onnx"):
        before = files_in(folder)
        assert_refused(run_limited("convert", source, out / target), codes)
        assert files_in(folder) == before, "left files behind"

"""tonnx.run: runs the conversions that a YAML file lists."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from tonnx import _compare, _core
from tonnx._arguments import checks_arguments
from tonnx._error import translated
from tonnx._limits import Limits, numbers_of


@dataclass(frozen=True)
class BatchResult:
    """The result for one source and one target."""

    source: str
    target: str
    status: str  # "done", "unchanged", "failed", or "waiting" if it was not run
    seconds: float = 0.0
    bytes: int = 0  # of the target and the files beside it
    verified: bool = False
    not_judged: str = ""  # why it could not be verified
    steps: str = ""  # such as "simplify, opset 18"
    nodes: dict[str, int] | None = None  # "before" and "after" simplification
    kind: str = ""  # of the error, as in tonnx.Error
    error: str = ""


@dataclass
class BatchReport:
    """The results of all conversions. True if none failed."""

    results: list[BatchResult]
    seconds: float
    table: str = ""

    @property
    def failed(self) -> list[BatchResult]:
        return [result for result in self.results if result.status == "failed"]

    def __bool__(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        return self.table


@checks_arguments
def run(
    config: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    resume: bool = False,
    dry_run: bool = False,
    verify: bool = True,
    report: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    client: Any = None,
) -> BatchReport:
    """Converts the models that a YAML file lists, several at a time.

    Raises tonnx.Error with all mistakes in the file, and their lines, before anything is converted. A conversion that
    fails does not stop the others; the report lists it.

    `jobs` is the number of conversions at a time (default: the number of cores). `resume` skips what is done and
    unchanged. `dry_run` checks the file and lists what would be done. `verify=False` compares nothing, whatever the
    file says. `report` is a file for the report as JSON. `limits` is what each conversion may use, unless the file says
    otherwise: `{"memory": "1G"}`. `client` is a distributed.Client: the workers of its cluster convert files that they
    see under the same paths, or URLs of fsspec.
    """
    if jobs is not None and jobs < 1:
        raise ValueError("jobs is 1 or more")
    with translated():
        if client is not None:
            from tonnx._cluster import run_on

            text, table = run_on(client, os.fspath(config), resume, dry_run, verify, numbers_of(limits))
        else:
            text, table = _core.run_batch(
                os.fspath(config), jobs or 0, resume, dry_run, verify, numbers_of(limits), _compare.compare_for_cli
            )
        if report is not None:
            _core.write_text(os.fspath(report), text)
    found = json.loads(text)
    return BatchReport([BatchResult(**result) for result in found["models"]], found["seconds"], table)

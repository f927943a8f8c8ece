"""tonnx.run: many conversions, as a YAML file lists them."""

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
    """What became of one source and one target."""

    source: str
    target: str
    status: str  # "done", "unchanged", "failed", or "waiting" where nothing was done
    seconds: float = 0.0
    bytes: int = 0  # of the target, with what lies beside it
    verified: bool = False
    not_judged: str = ""  # why it was not compared, though that was asked for
    steps: str = ""  # what is done on the way
    nodes: dict[str, int] | None = None  # "before" and "after" simplification
    kind: str = ""  # of the error, as in tonnx.Error
    error: str = ""


@dataclass
class BatchReport:
    """What became of all of them. True where nothing failed."""

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
    """Converts the models that a YAML file lists, some at a time.

    Raises tonnx.Error with every mistake of the file, and its line, before anything is done. A conversion that fails
    does not keep the others from being done: it is in the report that comes back.

    `jobs` is how many are done at a time (one for each core). `resume` leaves alone what is done and unchanged,
    `dry_run` only checks the file and says what would be done, `verify=False` compares nothing, whatever the file says,
    and `report` is a file that the report is written to as JSON. `limits` is what each conversion may use where the
    file does not say: `{"memory": "1G"}`. `client` is a distributed.Client: the workers of its cluster do the work, on
    files that they see under the same paths, or that are URLs of fsspec.
    """
    if jobs is not None and jobs < 1:
        raise ValueError("jobs is a number from 1 on")
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

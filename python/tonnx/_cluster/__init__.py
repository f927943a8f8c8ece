"""Runs a batch on the workers of a Dask cluster."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

from tonnx import _core
from tonnx._cluster.jobs import digest_of, run_job
from tonnx._cluster.staged import StagedJob, run_staged, staged_jobs
from tonnx._error import Error
from tonnx._progress import tell

_Task = tuple[Callable[..., str], tuple[Any, ...]]


def run_on(
    client: Any, config: str, resumes: bool, is_dry: bool, verifies: bool, limits: dict[str, int]
) -> tuple[str, str]:
    """The report of the batch, as JSON and as a table, in the order of the file."""
    start = time.perf_counter()
    staged = staged_jobs(config)
    if staged is not None:
        if resumes:
            raise Error("--resume is for files: what lies at URLs is done again", "unsupported")
        plan = _core.BatchPlan(config, [(job.source, job.target) for job in staged])
    else:
        plan = _core.BatchPlan(config, verifies, resumes, "")
    if not is_dry:
        # results are recorded beside the file, so that a job that is scheduled twice runs once
        records = _folder_beside(os.path.abspath(config))
        try:
            _gather(client, plan, _tasks(plan, config, staged, verifies, limits, records))
        finally:
            shutil.rmtree(records, ignore_errors=True)
    return plan.report(time.perf_counter() - start)


def _folder_beside(config: str) -> str:
    try:
        return tempfile.mkdtemp(prefix=f".{os.path.basename(config)}.", dir=os.path.dirname(config))
    except OSError:  # that folder is read-only
        return tempfile.mkdtemp(prefix="tonnx-")


def _tasks(
    plan: _core.BatchPlan,
    config: str,
    staged: list[StagedJob] | None,
    verifies: bool,
    limits: dict[str, int],
    records: str,
) -> list[tuple[int, _Task]]:
    digest, whole = digest_of(config), os.path.abspath(config)
    tasks: list[tuple[int, _Task]] = []
    for index in plan.waiting():
        record = os.path.join(records, f"{index}.json")
        if staged is not None:
            tasks.append((index, (run_staged, (staged[index], verifies, limits, record))))
        else:
            tasks.append((index, (run_job, (whole, os.getcwd(), digest, index, verifies, limits, record))))
    return tasks


def _gather(client: Any, plan: _core.BatchPlan, tasks: Iterable[tuple[int, _Task]]) -> None:
    from distributed import as_completed

    places: dict[str, int] = {}
    futures = []
    for index, (function, arguments) in tasks:
        future = client.submit(function, *arguments, pure=False)
        places[future.key] = index
        futures.append(future)
    for count, future in enumerate(as_completed(futures)):
        tell("models", count, len(futures))
        _note(plan, places[future.key], future)
        future.release()


def _note(plan: _core.BatchPlan, index: int, future: Any) -> None:
    failure = future.exception()
    if failure is not None:
        text = f"no worker could do it: {type(failure).__name__}: {next(iter(str(failure).splitlines()), '')}"
        plan.note(index, False, 0.0, 0, False, "", None, "internal", text)
        return
    (found,) = json.loads(future.result())["models"]
    nodes = found.get("nodes")
    plan.note(
        index,
        found["status"] == "done",
        found["seconds"],
        found["bytes"],
        found["verified"],
        found.get("not_judged", ""),
        (nodes["before"], nodes["after"]) if nodes else None,
        found.get("kind", ""),
        found.get("error", ""),
    )

"""One job of a batch on a worker that can read the file."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from tonnx import _compare, _core
from tonnx._error import Error, translated

_plans: dict[tuple[str, str, str, bool], _core.BatchPlan] = {}  # read once in each process
_reading = threading.Lock()


def digest_of(config: str) -> str:
    """A hash of the file."""
    try:
        return hashlib.sha256(Path(config).read_bytes()).hexdigest()
    except OSError as e:
        raise Error(f"cannot open '{config}': {e.strerror}", "bad_file") from None


def once(record: str, work: Callable[[], str]) -> str:
    """Runs the work and records its result, or returns the record of a worker that died after the work."""
    try:
        return Path(record).read_text()
    except OSError:
        pass
    text = work()
    try:
        with translated():
            _core.write_text(record, text)
    except Error:  # no shared folder: the job may run twice
        pass
    return text


def run_job(
    config: str, here: str, digest: str, index: int, verifies: bool, limits: dict[str, int], record: str
) -> str:
    """The report of one job as JSON, including failures. `here` is the folder where the command was run."""

    def work() -> str:
        if not os.path.exists(config):
            raise Error(f"this worker does not see '{config}': the files lie where all workers see them", "bad_file")
        with translated():
            return _plan_of(config, here, digest, verifies).run(index, limits, _compare.compare_for_cli)

    return once(record, work)


def _plan_of(config: str, here: str, digest: str, verifies: bool) -> _core.BatchPlan:
    with _reading:
        key = config, here, digest, verifies
        if key not in _plans:
            if digest_of(config) != digest:
                raise Error(f"this worker sees another '{config}' than the one that was sent", "bad_file")
            _plans.clear()
            _plans[key] = _core.BatchPlan(config, verifies, False, here)
        return _plans[key]

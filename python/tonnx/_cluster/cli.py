"""`tonnx run models.yml --on dask`: the arguments of `tonnx run`, for a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from tonnx._batch import BatchReport, run
from tonnx._command import BAD_INPUT, DIFFERS, INTERNAL, UNSUPPORTED, Parser, run_command
from tonnx._error import Error
from tonnx._literal import visible
from tonnx._progress import bar_on_terminal

_PATIENCE = "10s"  # timeout for the scheduler

# the exit code is that of the worst failure
_CODES = {"internal": INTERNAL, "verification": DIFFERS, "unsupported": UNSUPPORTED}


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="tonnx run",
        description="Convert the models that a YAML file lists, on the workers of a Dask cluster.",
        epilog="Exit codes: 0 done, 1 bad input, 2 not supported, 3 outputs differ, 70 internal error.",
    )
    made.add_argument("config", nargs="?", help="config.yml: defaults and models")
    made.add_argument("--cfg", help="the same")
    made.add_argument("--on", required=True, metavar="ADDRESS", help="dask: a cluster here; or tcp://scheduler:8786")
    made.add_argument("-j", "--jobs", type=int, help="with --on dask: how many workers")
    made.add_argument("--resume", action="store_true", help="leave alone what is done and unchanged")
    made.add_argument("--dry-run", action="store_true", help="check the file, and do nothing")
    made.add_argument("--report", metavar="report.json", help="what was done, for programs")
    made.add_argument("--no-verify", action="store_true", help="compare nothing, whatever the file says")
    made.add_argument("--quiet", "-q", action="store_true", help="print failures only")
    made.add_argument("--limit", action="append", default=[], metavar="memory=1G", help="what a conversion may use")
    return made


def _client(stack: ExitStack, address: str, jobs: int | None) -> Any:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise Error("--on needs Dask: pip install tonnx[dask]", "unsupported") from None
    if address == "dask":
        cluster = LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
        return stack.enter_context(Client(stack.enter_context(cluster)))
    try:
        return stack.enter_context(Client(address, timeout=_PATIENCE))
    except (OSError, ValueError, TimeoutError) as e:
        raise Error(f"there is no scheduler at '{address}': {str(e).splitlines()[0]}", "bad_file") from None


def _run(arguments: argparse.Namespace) -> int:
    config = arguments.config or arguments.cfg
    if not config:
        raise Error("run needs a file: tonnx run models.yml --on dask", "invalid_model")
    limits = dict(text.partition("=")[::2] for text in arguments.limit)
    with ExitStack() as stack:
        client = None if arguments.dry_run else _client(stack, arguments.on, arguments.jobs)
        stack.enter_context(bar_on_terminal(arguments.quiet))
        report = run(
            config,
            resume=arguments.resume,
            dry_run=arguments.dry_run,
            verify=not arguments.no_verify,
            report=arguments.report,
            limits=limits,
            client=client,
        )
    if not arguments.quiet:
        print(visible(str(report)), end="")
    return _exit_code(report)


def _exit_code(report: BatchReport) -> int:
    if report:
        return 0
    print(f"error: {len(report.failed)} of {len(report.results)} conversions failed", file=sys.stderr)
    kinds = {result.kind for result in report.failed}
    return next((code for kind, code in _CODES.items() if kind in kinds), BAD_INPUT)


def main(arguments: Sequence[str]) -> int:
    return run_command(parser(), _run, arguments)

"""What all Python tests share: the command line under test, a folder for each test, the list of known failures."""

from __future__ import annotations

import functools
import itertools
import os
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    import torch

REPOSITORY = Path(__file__).resolve().parents[2]
CONFORMANCE = Path(__file__).with_name("conformance")  # with the lists of ONNX node tests that do not pass yet
KNOWN_FAILURES = CONFORMANCE / "known_failures.txt"
NOT_FOLDED = CONFORMANCE / "not_folded.txt"
NODE_TEST = "node_test"  # the report property that carries (name, why) of one ONNX node test
FOLDED_TEST = "folded_test"  # the same, of one that is folded
EXPORTED_ROWS = "exported_rows"  # (test, the aten operators that it exports)
TIMEOUT = 600  # seconds after which something hangs; no test says how long a thing may take


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-known-failures",
        action="store_true",
        help="rewrite known_failures.txt for the node tests of this run: new failures in, passing tests out",
    )
    parser.addoption(
        "--update-not-folded",
        action="store_true",
        help="rewrite not_folded.txt for the node tests of this run",
    )
    parser.addoption(
        "--list-untested-rows",
        action="store_true",
        help="say which aten operators that go to ONNX no test of this run saves in a program",
    )


def cli_command() -> list[str]:
    """TONNX_CLI, or the release build's binary, or the installed package's own command line."""
    if "TONNX_CLI" in os.environ:
        return [os.environ["TONNX_CLI"]]
    binary = REPOSITORY / "build/release/tonnx"
    return [str(binary)] if binary.exists() else [sys.executable, "-m", "tonnx"]


@pytest.fixture(scope="session")
def cli() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line with the given arguments and returns what it said."""

    def run(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [*cli_command(), *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, **options)  # type: ignore[call-overload]

    return run


NUMBERS = itertools.count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A new folder. Pytest's own fixture looks through the folders of all tests before for a free number."""
    folder = tmp_path_factory.getbasetemp() / f"{next(NUMBERS)}-{re.sub(r'[^A-Za-z0-9]', '_', request.node.name)[:30]}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test works in an empty folder of its own, so that a stray output is seen and harms nobody."""
    monkeypatch.chdir(tmp_path)
    yield


GENERATORS: list[tuple[np.random.Generator, Mapping[str, Any]]] = []  # of the tests' modules, as they were at first


def pytest_collection_finish(session: pytest.Session) -> None:
    here = str(Path(__file__).parent)
    for module in list(sys.modules.values()):
        if (getattr(module, "__file__", None) or "").startswith(here):
            found = [value for value in vars(module).values() if isinstance(value, np.random.Generator)]
            GENERATORS.extend((generator, generator.bit_generator.state) for generator in found)


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """A test draws the same numbers, whichever tests ran before it in the same process."""
    import torch

    torch.default_generator.manual_seed(0)  # torch.manual_seed keeps a trace of the stack for each kind of device
    for generator, state in GENERATORS:
        generator.bit_generator.state = state


def load_programs_quickly() -> None:
    """PyTorch asks for the annotations of a class at each object of a .pt2: asked once, it loads in half the time."""
    from torch._export.serde import schema

    original = typing.get_type_hints
    known = functools.cache(lambda cls: original(cls, globalns=vars(schema)))

    def get_type_hints(of: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        is_part = isinstance(of, type) and of.__module__ == schema.__name__
        return dict(known(of)) if is_part else original(of, *args, **kwargs)

    typing.get_type_hints = get_type_hints


def run_sessions_in_one_thread() -> None:
    """A session of ONNX Runtime starts a thread for each core, which waits busily, beside tests that have the cores."""
    import onnxruntime

    original = onnxruntime.InferenceSession.__init__

    def __init__(self: Any, model: Any, sess_options: Any = None, *args: Any, **kwargs: Any) -> None:
        options = sess_options or onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        original(self, model, options, *args, **kwargs)

    onnxruntime.InferenceSession.__init__ = __init__


def pytest_configure(config: pytest.Config) -> None:
    import torch

    torch.set_num_threads(1)
    run_sessions_in_one_thread()
    load_programs_quickly()
    check_all_code()
    if config.getoption("--list-untested-rows"):
        from untested_rows import note_all_programs

        note_all_programs()


@pytest.fixture(autouse=True)
def exported_rows(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if request.config.getoption("--list-untested-rows"):
        from untested_rows import EXPORTED

        request.node.user_properties.append((EXPORTED_ROWS, (request.node.nodeid, sorted(EXPORTED))))
        EXPORTED.clear()


def check_all_code() -> None:
    """Whatever any test converts in memory, its code says only what it may."""
    from allowed_code import check_python

    import tonnx._build

    build = tonnx._build.build

    def checked(source: str, *args: Any) -> torch.nn.Module:
        check_python(source)
        return build(source, *args)

    tonnx._build.build = checked


def results_of(terminalreporter: pytest.TerminalReporter, wanted: str) -> dict[str, Any]:
    """{name: why} of all tests that recorded such a property."""
    results: dict[str, Any] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            results.update(value for key, value in getattr(report, "user_properties", ()) if key == wanted)
    return results


def rewrite(terminalreporter: pytest.TerminalReporter, path: Path, head: str, results: dict[str, str | None]) -> None:
    from known_failures import read, update, write

    before = read(path)
    after = update(before, results)
    write(path, after, head)
    added, removed = len(after.keys() - before.keys()), len(before.keys() - after.keys())
    terminalreporter.write_line(f"{path.name}: {len(after)} listed, {added} added, {removed} removed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # only the process that sees every report may judge and write
        return
    if results := results_of(terminalreporter, NODE_TEST):
        passed = sum(why is None for why in results.values())
        terminalreporter.write_line(f"ONNX node tests: {passed} of {len(results)} pass")
        if config.getoption("--update-known-failures"):
            head = "ONNX node tests that do not pass yet, and why: name<TAB>reason. Update: pytest --update-known-failures."
            rewrite(terminalreporter, KNOWN_FAILURES, head, results)
    if results := results_of(terminalreporter, FOLDED_TEST):
        passed = sum(why is None for why in results.values())
        terminalreporter.write_line(f"ONNX node tests with constant inputs: {passed} of {len(results)} are folded")
        if config.getoption("--update-not-folded"):
            head = "ONNX node tests that constant folding leaves nodes of: name<TAB>reason. Update: pytest --update-not-folded."
            rewrite(terminalreporter, NOT_FOLDED, head, results)
    if config.getoption("--list-untested-rows"):
        from untested_rows import rows_that_go_to_onnx

        seen = set().union(*results_of(terminalreporter, EXPORTED_ROWS).values())
        rows = list(rows_that_go_to_onnx(cli_command()))
        missing = [row for row in rows if row not in seen]
        terminalreporter.write_line(
            f"{len(missing)} of {len(rows)} aten operators are in no program: {' '.join(missing)}"
        )

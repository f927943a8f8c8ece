"""tonnx run on a Dask cluster: the same bytes and the same report as here, whatever becomes of its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import TIMEOUT
from onnx import TensorProto, helper, numpy_helper, save

import tonnx
from tonnx._cluster import cli, jobs, staged

distributed = pytest.importorskip("distributed", reason="needs the package distributed")


def write_model(path: Path, number: int) -> None:
    weight = np.full((2, 3), number, np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(weight, "w")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_batch(folder: Path, count: int, target: str, defaults: str = "{simplify: true}") -> str:
    (folder / "models").mkdir(exist_ok=True)
    for number in range(count):
        write_model(folder / f"models/m{number:03}.onnx", number)
    path = folder / f"{target}.yml"
    path.write_text(
        f"defaults: {defaults}\nmodels:\n  - source: models/*.onnx\n    targets: ['{target}/{{stem}}.py', '{target}/{{stem}}.pt2']\n"
    )
    return str(path)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".tonnx-")}


def rows(report: tonnx.BatchReport, target: str) -> list[tuple[str, str, str, int]]:
    return [(r.source, r.target.replace(f"/{target}/", "/"), r.status, r.bytes) for r in report.results]


@pytest.fixture
def client() -> Iterator[Any]:
    """A cluster in this process."""
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def test_the_same_bytes_and_the_same_report_as_here(client: Any, tmp_path: Path) -> None:
    here = tonnx.run(write_batch(tmp_path, 6, "here"))
    there = tonnx.run(write_batch(tmp_path, 6, "there"), client=client, report=tmp_path / "report.json")
    assert here and there and rows(here, "here") == rows(there, "there")
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert "12 done, 0 unchanged, 0 failed" in str(there)
    assert [m["target"] for m in json.loads((tmp_path / "report.json").read_text())["models"]] == [
        r.target for r in there.results
    ]
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]  # nothing of the work is left


def test_paths_are_those_of_the_command(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_batch(tmp_path, 1, "out")
    with Path("out.yml").open("a") as file:
        file.write("input_shapes: {models/m000.onnx: {x: [1, 2]}}\n")
    report = tonnx.run("out.yml", client=client)
    assert report and report.results[0].source == "models/m000.onnx"
    # a worker elsewhere finds the same by the folder that the command was run in
    digest = jobs.digest_of("out.yml")
    monkeypatch.chdir("/")
    arguments = (str(tmp_path / "out.yml"), str(tmp_path), digest, 0, False, {}, str(tmp_path / "record"))
    assert json.loads(jobs.run_job(*arguments))["models"][0]["status"] == "done"


def test_what_is_done_is_left_alone_where_that_is_asked_for(client: Any, tmp_path: Path) -> None:
    config = write_batch(tmp_path, 3, "out")
    assert tonnx.run(config, client=client)
    write_model(tmp_path / "models/m001.onnx", 7)
    again = tonnx.run(config, client=client, resume=True)
    assert [r.status for r in again.results] == ["unchanged"] * 2 + ["done"] * 2 + ["unchanged"] * 2


def test_mistakes_come_before_any_work_and_failures_in_the_report(client: Any, tmp_path: Path) -> None:
    config = write_batch(tmp_path, 2, "out")
    (tmp_path / "models/m001.onnx").write_bytes(b"no model")
    report = tonnx.run(config, client=client)
    assert [r.status for r in report.results] == ["done", "done", "failed", "failed"]
    assert report.results[2].kind == "bad_file" and "m001.onnx" in report.results[2].error
    Path(config).write_text("models: [{source: none.onnx, target: a.py}]")
    with pytest.raises(tonnx.Error, match="line 1: there is no file 'none.onnx'"):
        tonnx.run(config, client=client)


def test_results_are_verified_there_too(client: Any, tmp_path: Path) -> None:
    report = tonnx.run(write_batch(tmp_path, 1, "out", "{verify: true}"), client=client)
    assert report and all(r.verified for r in report.results)


def test_files_at_urls(client: Any, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    config = write_batch(tmp_path, 2, "here")
    assert tonnx.run(config)
    memory = fsspec.filesystem("memory")
    for path in (tmp_path / "models").iterdir():
        memory.put_file(str(path), f"/bucket/{path.name}")
    staged = tmp_path / "urls.yml"
    staged.write_text(
        "defaults: {simplify: true}\nmodels:\n"
        "  - {source: 'memory://bucket/*.onnx', targets: ['memory://out/{stem}.py', 'memory://out/{stem}.pt2']}\n"
        f"  - {{source: 'memory://bucket/m000.onnx', target: 'file://{tmp_path}/disk/{{stem}}.py'}}\n"
    )
    report = tonnx.run(staged, client=client)
    assert report, str(report)
    assert [r.target for r in report.results][:2] == ["memory://out/m000.py", "memory://out/m000.pt2"]
    there = {Path(name).name: memory.cat_file(name) for name in memory.find("/out")}
    assert there == contents(tmp_path / "here")
    assert set(contents(tmp_path / "disk")) == {"m000.py", "m000.safetensors"}
    assert (tmp_path / "disk/m000.py").read_bytes() == there["m000.py"]
    memory.rm("/bucket", recursive=True)
    memory.rm("/out", recursive=True)


def test_readers_of_one_url_wait_for_each_other(tmp_path: Path) -> None:
    """fsspec's memory has one position for all readers of a file."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/bucket/big.onnx", bytes(range(256)) * 4096)
    memory.blocksize, before = 64, memory.blocksize  # a thousand places to be interrupted at
    try:
        paths = [tmp_path / f"{i}.onnx" for i in range(8)]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda path: staged._bring(fsspec, "memory://bucket/big.onnx", path), paths))
    finally:
        memory.blocksize = before
    assert all(path.read_bytes() == bytes(range(256)) * 4096 for path in paths)
    memory.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("models: [{source: 'memory://none/a.onnx', target: 'memory://b.py'}]", "there is no file 'memory://none/a"),
        ("models: 'memory://x'", "has no list 'models'"),
        ("models: []  # memory://", "has no model with a source and a target"),
    ],
)
def test_mistakes_of_urls(client: Any, tmp_path: Path, text: str, error: str) -> None:
    pytest.importorskip("fsspec")
    (tmp_path / "u.yml").write_text(text)
    with pytest.raises(tonnx.Error, match=error):
        tonnx.run(tmp_path / "u.yml", client=client)


def test_a_record_stands_for_work_that_was_done(tmp_path: Path) -> None:
    done = []
    for _ in range(2):
        jobs.once(str(tmp_path / "0.json"), lambda: done.append(1) or "result")
    assert done == [1]


def test_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_PATIENCE", "0.1s")
    config = write_batch(tmp_path, 1, "out")
    assert cli.main([config, "--on", "dask", "--dry-run"]) == 0
    assert cli.main([config, "--on", "tcp://127.0.0.1:9"]) == 1
    assert "there is no scheduler at 'tcp://127.0.0.1:9'" in capfd.readouterr().err
    assert cli.main(["--on", "dask"]) == 1


_KILL_AFTER = 60  # jobs of the worker that dies


def _logged(log: str, dies: bool, count: list[int]) -> Callable[[str, Callable[[], str]], str]:
    """`once` that notes which work is really done, and after some of it ends the process where its record is written."""
    original = jobs.once

    def once(record: str, work: Callable[[], str]) -> str:
        def noted() -> str:
            text = work()
            with open(log, "a") as file:
                file.write(f"{Path(record).stem}\n")
            return text

        text = original(record, noted)
        count[0] += 1
        if dies and count[0] == _KILL_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)
        return text

    return once


def _patch(log: str, dies: bool) -> None:
    jobs.once = _logged(log, dies, [0])


@pytest.mark.heavy
def test_five_hundred_models_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    here = tonnx.run(write_batch(tmp_path, 500, "here"))
    config = write_batch(tmp_path, 500, "there")
    log = tmp_path / "log"
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        first, second = client.scheduler_info()["workers"]
        client.run(_patch, str(log), True, workers=[first])
        client.run(_patch, str(log), False, workers=[second])
        before = set(client.run(os.getpid).values())
        there = tonnx.run(config, client=client)
        after = set(client.run(os.getpid).values())
    assert before != after  # one died, and its nanny began another
    assert there and rows(here, "here") == rows(there, "there") and len(there.results) == 1000
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    done = log.read_text().split()
    assert len(done) == len(set(done))  # nothing was written twice


@pytest.mark.heavy
def test_a_cluster_of_its_own(tmp_path: Path) -> None:
    config = write_batch(tmp_path, 3, "out")
    done = subprocess.run(
        [sys.executable, "-m", "tonnx", "run", config, "--on", "dask", "-j", "2"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0 and "6 done, 0 unchanged, 0 failed" in done.stdout, done.stderr

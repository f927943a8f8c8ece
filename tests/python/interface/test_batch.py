"""tonnx run: many conversions out of one YAML file, in the command line and in Python."""

from __future__ import annotations

import errno
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import torch
from conftest import TIMEOUT, cli_command
from onnx import numpy_helper
from safetensors.torch import load_file

import tonnx

MODEL = """<ir_version: 8, opset_import: ["" : 17]> g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> {
  a = Identity(x)
  y = Mul(a, w)
}"""
UNKNOWN = '<ir_version: 8, opset_import: ["" : 17, "my.ops" : 1]> g (float[2] x) => (float[2] y) { y = my.ops.Foo(x) }'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    for name in "ab":
        onnx.save(onnx.parser.parse_model(MODEL), tmp_path / f"models/{name}.onnx")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yml"
    path.write_text(text)
    return path


def module_cli(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tonnx", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)


def test_all_formats_and_a_report(cli: Any, folder: Path) -> None:
    targets = ["pt2", "py", "onnx", "pth"]
    text = f"""
defaults: {{simplify: true}}
models:
  - source: models/*.onnx
    targets: [{", ".join(f"'out/{{stem}}.{ending}'" for ending in targets)}]
    dynamic: {{x: {{0: "batch:1..64"}}}}
"""
    # from another folder: paths are those of the file
    (folder / "elsewhere").mkdir()
    done = cli("run", write(folder, text), "--report", "report.json", "-j", 2, cwd=folder / "elsewhere")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(": done (") == 8 and "8 done, 0 unchanged, 0 failed" in done.stdout
    report = json.loads((folder / "elsewhere/report.json").read_text())
    assert report["done"] == 8 and all(row["nodes"] == {"before": 2, "after": 1} for row in report["models"])
    x = np.random.default_rng(0).random((5, 3), dtype=np.float32)
    wanted = x * np.array([1, 2, 3], np.float32)
    module = torch.export.load(folder / "out/a.pt2").module()
    np.testing.assert_array_equal(module(torch.from_numpy(x)).detach(), wanted)
    session = onnxruntime.InferenceSession(folder / "out/b.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], wanted)
    assert session.get_inputs()[0].shape[0] == "batch"
    assert list(torch.load(folder / "out/a.pth", weights_only=True)) == ["w"]


@pytest.mark.parametrize("target", ["m.py", "m.pth", "m.pt2", "m.pt"])
def test_large_weights_that_are_scaled_and_transposed(cli: Any, tmp_path: Path, target: str) -> None:
    random = np.random.default_rng(0)
    weight, scale = random.standard_normal((256, 200)).astype(np.float32), random.uniform(2, 3, 200).astype(np.float32)
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[N, 256] x) => (float[N, 200] y)
    { h = MatMul(x, w) y = Mul(h, s) }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend([numpy_helper.from_array(weight, "w"), numpy_helper.from_array(scale, "s")])
    onnx.save(model, tmp_path / "m.onnx")
    done = cli("run", write(tmp_path, f"models: [{{source: m.onnx, target: {target}, simplify: true}}]"))
    assert done.returncode == 0, done.stderr
    if target.endswith(".pt2"):
        state = torch.export.load(tmp_path / target).state_dict
    elif target.endswith(".pt"):
        state = torch.jit.load(tmp_path / target).state_dict()
    elif target.endswith(".pth"):
        state = torch.load(tmp_path / target, weights_only=True)
    else:
        state = load_file(tmp_path / "m.safetensors")
    (got,) = state.values()
    assert torch.allclose(got, torch.from_numpy((weight * scale).T), rtol=1e-6)


@pytest.mark.parametrize(
    "others, code",
    [
        (["broken"], 1),
        (["unknown"], 2),
        (["broken", "unknown"], 2),
    ],
)
def test_it_goes_on_after_a_failure(cli: Any, folder: Path, others: list[str], code: int) -> None:
    (folder / "broken.onnx").write_bytes(b"\x08\x0a\x3a\xff\xff")
    onnx.save(onnx.parser.parse_model(UNKNOWN), folder / "unknown.onnx")
    sources = [f"{name}.onnx" for name in others] + ["models/a.onnx"]
    config = write(folder, f"models:\n- source: [{', '.join(sources)}]\n  target: 'o/{{stem}}.py'\n")
    done = cli("run", config, "--report", folder / "r.json")
    assert done.returncode == code
    assert f"{len(others)} of {len(sources)} conversions failed" in done.stderr
    assert (folder / "o/a.py").exists() and not (folder / "o/broken.py").exists()
    rows = json.loads((folder / "r.json").read_text())["models"]
    kinds = {"broken": "bad_file", "unknown": "unsupported"}
    assert [row.get("kind") for row in rows] == [*(kinds[name] for name in others), None]
    assert all("while converting" in row["error"] for row in rows[:-1])


def test_mistakes_come_before_any_work(cli: Any, folder: Path) -> None:
    config = write(folder, "models:\n- {source: models/a.onnx, target: a.py}\n- source: nope.onnx\n  taget: b.py\n")
    done = cli("run", config)
    assert done.returncode == 1
    for part in ("3 mistakes in", "line 3: there is no file 'nope.onnx'", "line 4: unknown key 'taget'", "'target'?"):
        assert part in done.stderr
    assert not (folder / "a.py").exists()
    with pytest.raises(tonnx.Error, match="line 4: unknown key") as raised:
        tonnx.run(config)
    assert raised.value.kind == "invalid_model"
    assert cli("run", folder / "absent.yml").returncode == 1


def test_resume_and_dry_run(cli: Any, folder: Path) -> None:
    config = write(folder, "models:\n- {source: models/*.onnx, target: 'o/{stem}.pt2'}\n")
    plan = cli("run", config, "--dry-run")
    assert plan.returncode == 0 and "2 to be done, 0 unchanged" in plan.stdout
    assert not (folder / "o").exists() and not (folder / "config.yml.state").exists()
    assert cli("run", config).returncode == 0
    before = (folder / "o/a.pt2").stat().st_mtime_ns
    assert "0 done, 2 unchanged" in cli("run", config, "--resume").stdout
    os.utime(folder / "models/b.onnx", ns=(1, 1))
    assert "1 to be done, 1 unchanged" in cli("run", config, "--resume", "--dry-run").stdout
    assert "1 done, 1 unchanged" in cli("run", config, "--resume").stdout
    assert (folder / "o/a.pt2").stat().st_mtime_ns == before
    write(folder, "models:\n- {source: models/*.onnx, target: 'o/{stem}.pt2', simplify: true}\n")
    assert "2 done, 0 unchanged" in cli("run", config, "--resume").stdout
    (folder / "o/a.pt2").unlink()
    assert "1 done, 1 unchanged" in cli("run", config, "--resume").stdout


def test_weights_in_a_file_of_their_own_count_too(cli: Any, folder: Path) -> None:
    model = onnx.parser.parse_model(MODEL)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    onnx.save(model, folder / "e.onnx", save_as_external_data=True, location="e.bin", size_threshold=0)
    config = write(folder, "models:\n- {source: e.onnx, target: e.pth}\n")
    assert cli("run", config).returncode == 0
    assert "1 unchanged" in cli("run", config, "--resume").stdout
    os.utime(folder / "e.bin", ns=(1, 1))
    assert "1 done" in cli("run", config, "--resume").stdout


def test_the_binary_cannot_verify(folder: Path) -> None:
    binary, *rest = cli_command()
    if rest:  # nobody built the binary: the package's own command line is tested
        pytest.skip("no binary that stands alone")
    config = write(folder, "defaults:\n  verify: true\nmodels: [{source: models/a.onnx, target: a.py}]\n")
    done = subprocess.run([binary, "run", config], capture_output=True, text=True)
    assert done.returncode == 1 and "line 2: 'verify' needs ONNX Runtime" in done.stderr
    assert not (folder / "a.py").exists()
    assert subprocess.run([binary, "run", config, "--no-verify"], capture_output=True).returncode == 0


@pytest.mark.parametrize("verify", ["true", "{times: 2, rtol: 1e-5, input_shapes: {x: [4, 3]}}"])
def test_verification(folder: Path, verify: str) -> None:
    targets = "['o/{stem}.py', 'o/{stem}.pt2', 'o/{stem}.onnx', 'o/{stem}.pth']"
    config = write(
        folder, f"models:\n- source: models/*.onnx\n  targets: {targets}\n  simplify: true\n  verify: {verify}\n"
    )
    report = tonnx.run(config, jobs=3)
    assert report and len(report.results) == 8, report
    assert [result.verified for result in report.results] == [True, True, True, False] * 2
    done = module_cli("run", config, "--resume")
    assert done.returncode == 0 and "8 unchanged" in done.stdout, done.stderr
    done = module_cli("run", config)
    assert done.returncode == 0 and done.stdout.count("done, verified") == 6, done.stderr


def test_outputs_that_differ(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write(folder, "models: [{source: models/*.onnx, target: 'o/{stem}.onnx', verify: true}]")
    answers = {"a.onnx": "", "b.onnx": "output 'y' is off"}
    monkeypatch.setattr("tonnx._compare.compare_for_cli", lambda source, *_: answers[Path(source).name])
    report = tonnx.run(config, report=folder / "r.json")
    (failed,) = report.failed
    assert not report and failed.kind == "verification" and "output 'y' is off" in failed.error
    assert (folder / "o/a.onnx").exists() and not (folder / "o/b.onnx").exists()
    assert json.loads((folder / "r.json").read_text())["failed"] == 1
    assert "1 done, 0 unchanged, 1 failed" in str(report)


def test_a_judge_that_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write(folder, "models: [{source: models/*.onnx, target: 'o/{stem}.onnx', verify: true}]")

    def judge(source: str, *_: object) -> str:
        raise tonnx.Error("no such runtime", "bad_file") if source.endswith("a.onnx") else ValueError("odd")

    monkeypatch.setattr("tonnx._compare.compare_for_cli", judge)
    a, b = tonnx.run(config).results
    assert a.kind == "bad_file" and "no such runtime" in a.error
    assert b.kind == "unsupported" and "odd" in b.error
    assert tonnx.run(config, verify=False)


def test_programs_are_sources_too(folder: Path) -> None:
    linear = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval()
    torch.export.save(torch.export.export(linear, (torch.rand(4, 3),)), folder / "p.pt2")
    config = write(
        folder, "defaults: {simplify: true, verify: true}\nmodels: [{source: p.pt2, targets: [p.onnx, p.py, p.pth]}]"
    )
    report = tonnx.run(config)
    assert report, report
    assert [result.verified for result in report.results] == [True, True, False]
    write(folder, "models: [{source: p.pt2, target: q.pt2}]")
    with pytest.raises(tonnx.Error, match="cannot write 'q.pt2'|cannot write '.*q.pt2'"):
        tonnx.run(config)


class Lookup(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(7, 3)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        x = self.table(ids)
        if mask is not None:
            x = x * mask
        while bool(x.abs().max() > 1):
            x = x * 0.5
        return x


def test_scripts_are_sources_too(folder: Path) -> None:
    torch.jit.save(torch.jit.script(Lookup()), folder / "s.pt")
    model = "source: s.pt, targets: [s.onnx, s.py, s.pt2], input_shapes: {0: [-1, 4], mask: [3]}"
    config = write(folder, f"defaults: {{verify: true}}\nmodels: [{{{model}, input_types: {{ids: int64}}}}]")
    report = tonnx.run(config)
    assert [result.status for result in report.results] == ["done"] * 3
    assert all(result.verified for result in report.results)
    ids, mask = torch.randint(0, 7, (5, 4)), torch.randn(3) * 9
    session = onnxruntime.InferenceSession(folder / "s.onnx", providers=["CPUExecutionProvider"])
    expected = torch.jit.load(folder / "s.pt")(ids, mask).detach().numpy()
    np.testing.assert_allclose(
        session.run(None, {"ids": ids.numpy(), "mask": mask.numpy()})[0], expected, rtol=1e-5, atol=1e-6
    )
    assert {result.status for result in tonnx.run(config, resume=True).results} == {"unchanged"}
    write(folder, f"defaults: {{verify: true}}\nmodels: [{{{model}, input_types: {{ids: int32}}}}]")
    assert {result.status for result in tonnx.run(config, resume=True).results} == {"done"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("source: s.pt, target: s.onnx, input_types: {ids: int65}", "ids"),
        ("source: s.pt, target: s.onnx, input_types: [int64]", "a map from inputs to types such as int64"),
        ("source: s.pt, target: s.onnx, dynamic: {ids: {0: batch}}", "sizes that are -1 in 'input_shapes' are open"),
        ("source: models/a.onnx, target: a.py, input_types: {x: int64}", "'input_types' is for a TorchScript source"),
    ],
)
def test_mistakes_about_scripts(folder: Path, options: str, text: str) -> None:
    torch.jit.save(torch.jit.script(Lookup()), folder / "s.pt")
    with pytest.raises(tonnx.Error, match=text) as failure:
        tonnx.run(write(folder, f"models: [{{{options}}}]"))
    assert "mistake" in str(failure.value)


def test_dry_run_in_python(folder: Path) -> None:
    config = write(folder, "models: [{source: models/*.onnx, target: 'o/{stem}.onnx', opset: 18, simplify: true}]")
    report = tonnx.run(config, dry_run=True)
    assert [result.status for result in report.results] == ["waiting"] * 2
    assert report.results[0].steps == "simplify, opset 18"
    assert not (folder / "o").exists()
    with pytest.raises(ValueError, match="jobs"):
        tonnx.run(config, jobs=0)


def test_an_interrupt_ends_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conversion that is under way is finished, and no other begins."""
    config = write(folder, "models: [{source: models/*.onnx, target: 'o/{stem}.onnx', verify: true}]")
    seen = threading.Event()
    judged = []

    def interrupt(*_: object) -> None:
        seen.set()
        raise KeyboardInterrupt

    def judge(source: str, *_: object) -> str:
        signal.pthread_kill(listener, signal.SIGINT)  # to the thread that runs it, not to whoever is free
        judged.append((Path(source).name, seen.wait(TIMEOUT)))  # what comes next cannot depend on who is quicker
        return ""

    monkeypatch.setattr("tonnx._compare.compare_for_cli", judge)
    listener = threading.main_thread().ident
    assert listener == threading.get_ident(), "Python gives signals to its first thread only"
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            tonnx.run(config, jobs=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert judged == [("a.onnx", True)]
    assert (folder / "o/a.onnx").exists() and not (folder / "o/b.onnx").exists()


def read_to_the_end(terminal: int) -> str:
    """What was written to a terminal that nobody else has open any more."""
    parts = []
    while True:
        try:
            parts.append(os.read(terminal, 65536))
        except OSError as error:  # so a terminal says that its other end is closed
            assert error.errno == errno.EIO
            return b"".join(parts).decode()


def test_a_bar_on_a_terminal(folder: Path) -> None:
    config = write(folder, "models: [{source: models/*.onnx, target: 'o/{stem}.onnx'}]")
    master, slave = pty.openpty()
    process = subprocess.Popen([*cli_command(), "run", str(config)], stderr=slave, stdout=subprocess.PIPE, text=True)
    os.close(slave)
    shown = read_to_the_end(master)
    os.close(master)
    out, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0 and "2 done" in out
    assert "] 2/2 " in shown and shown.endswith("\r\033[K") and ": done (" not in shown

"""What becomes of files: targets that were there before, links, pipes, permissions, signals, files that are cut short."""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import TIMEOUT, cli_command
from onnx import TensorProto, helper, numpy_helper

import tonnx

SMALL = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'


def save_large(path: Path, count: int = 4) -> None:
    """A chain of products with weights of 1 MB, more than a pipe holds."""
    size = 512
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(count)]
    weights = [numpy_helper.from_array(np.full((size, size), i, np.float32), f"w{i}") for i in range(count)]
    ends = [helper.make_tensor_value_info(f"v{i}", TensorProto.FLOAT, [1, size]) for i in (0, count)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(SMALL), tmp_path / "m.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x0a\x3a\xff\xff")
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("command", ["convert", "list", "run", "simplify", "infer"])
def test_a_failure_leaves_the_target_alone(cli: Any, folder: Path, command: str) -> None:
    target = folder / ("train.py" if command in ("convert", "list", "run") else "train.onnx")
    target.write_text("somebody's own")
    (folder / "train.safetensors").write_text("somebody's own too")
    target.chmod(0o600)
    (folder / "list.tsv").write_text(f"{folder / 'broken.onnx'}\t{target}\n")
    (folder / "config.yml").write_text("models: [{source: broken.onnx, target: train.py}]")
    arguments = {
        "convert": ("convert", folder / "broken.onnx", target),
        "list": ("convert", "--list", folder / "list.tsv"),
        "run": ("run", folder / "config.yml"),
        "simplify": ("simplify", folder / "broken.onnx", target),
        "infer": ("infer", folder / "broken.onnx", target),
    }[command]
    before = target.stat()
    assert cli(*arguments).returncode == 1
    after = target.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (before.st_ino, before.st_mtime_ns, before.st_mode)
    assert target.read_text() == "somebody's own"
    assert (folder / "train.safetensors").read_text() == "somebody's own too"


def test_permissions_are_kept_and_new_files_follow_the_umask(cli: Any, folder: Path) -> None:
    (folder / "old.py").write_text("old")
    (folder / "old.py").chmod(0o600)
    before = os.umask(0o007)
    try:
        assert cli("convert", folder / "m.onnx", folder / "old.py").returncode == 0
        assert cli("convert", folder / "m.onnx", folder / "new.py").returncode == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "old.py").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "new.py").stat().st_mode) == 0o660


def test_links_are_replaced_and_not_followed(cli: Any, folder: Path) -> None:
    (folder / "precious").write_text("precious")
    (folder / "soft.py").symlink_to(folder / "precious")
    (folder / "hard.py").hardlink_to(folder / "precious")
    (folder / "dangling.py").symlink_to(folder / "nowhere")
    for name in ("soft.py", "hard.py", "dangling.py"):
        assert cli("convert", folder / "m.onnx", folder / name).returncode == 0
        assert (folder / name).is_file() and not (folder / name).is_symlink()
    assert (folder / "precious").read_text() == "precious" and not (folder / "nowhere").exists()


def test_what_stale_files_are_called_does_not_matter(cli: Any, folder: Path) -> None:
    """As in a container, where every process has the number 1."""
    for number in range(3):
        (folder / f"s.py.{number}-0.tmp").write_text("stale")
    assert cli("convert", folder / "m.onnx", folder / "s.py").returncode == 0
    assert len([name for name in names(folder) if name.endswith(".tmp")]) == 3


def test_reports_may_go_to_devices(cli: Any, folder: Path) -> None:
    done = cli("simplify", folder / "m.onnx", folder / "s.onnx", "--report", "/dev/stdout", "-q")
    assert done.returncode == 0 and done.stdout.startswith("{"), done.stderr
    done = cli("simplify", folder / "m.onnx", folder / "s.onnx", "--report", "/dev/null", "-q")
    assert done.returncode == 0 and stat.S_ISCHR(os.stat("/dev/null").st_mode), done.stderr


def test_a_pipe_that_nobody_reads(cli: Any, folder: Path) -> None:
    os.mkfifo(folder / "out.py")
    os.mkfifo(folder / "in.onnx")
    done = cli("convert", folder / "m.onnx", folder / "out.py")
    assert done.returncode == 1 and "out.py" in done.stderr
    done = cli("convert", folder / "in.onnx", folder / "o.py")
    assert done.returncode == 1 and "not a regular file" in done.stderr


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def heed_signals() -> None:
    """What nohup, or a shell for what it runs behind, made this process ignore, the next program must not."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


class UnderWay:
    """A conversion that is in the middle of writing: its weights go to a pipe, of which one byte was read."""

    def __init__(self, folder: Path, target: str, pipe: str, *, prefix: tuple[str, ...] = ()) -> None:
        save_large(folder / "large.onnx")
        os.mkfifo(folder / pipe)
        self.reader = os.open(folder / pipe, os.O_RDONLY | os.O_NONBLOCK)
        command = [*prefix, *cli_command(), "convert", str(folder / "large.onnx"), str(folder / target)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals)
        self.wait_for_a_byte()
        os.set_blocking(self.reader, True)
        assert os.read(self.reader, 1)

    def wait_for_a_byte(self) -> None:
        end = os.pidfd_open(self.process.pid)
        ready, _, _ = select.select([self.reader, end], [], [], TIMEOUT)
        os.close(end)
        assert ready == [self.reader], (self.process.poll(), self.process.stderr)

    def read_on(self) -> None:
        while os.read(self.reader, 1 << 20):
            pass

    def wait(self) -> tuple[int, str]:
        try:
            _, err = self.process.communicate(timeout=TIMEOUT)
        finally:
            self.process.kill()
            os.close(self.reader)
        return self.process.returncode, err


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("has_proc", [True, False])
def test_a_signal_leaves_nothing_behind(folder: Path, number: signal.Signals, has_proc: bool) -> None:
    """Whether files without names can be had (they need /proc) or not."""
    prefix: tuple[str, ...] = ()
    if not has_proc:
        prefix = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"')
        if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            pytest.skip("this system lets nobody hide /proc")
    (folder / "large.py").write_text("somebody's own")
    under_way = UnderWay(folder, "large.py", "large.safetensors", prefix=prefix)
    hidden = {name for name in names(folder) if name.startswith(".tonnx-")}
    assert len(hidden) == (0 if has_proc else 1)
    under_way.process.send_signal(number)
    code, _ = under_way.wait()
    assert code == -number
    assert (folder / "large.py").read_text() == "somebody's own"
    assert names(folder) == {"m.onnx", "broken.onnx", "large.onnx", "large.py", "large.safetensors"}


def test_a_limit_on_the_size_of_files(folder: Path) -> None:
    save_large(folder / "large.onnx")
    command = [*cli_command(), "convert", str(folder / "large.onnx"), str(folder / "l.pt2")]
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # noqa: E731
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 1 and "File too large" in done.stderr
    assert names(folder) == {"m.onnx", "broken.onnx", "large.onnx"}


@pytest.mark.parametrize("target, pipe", [("large.pt2", "large.pt2"), ("large.py", "large.safetensors")])
def test_a_file_that_is_cut_short_while_it_is_read(folder: Path, target: str, pipe: str) -> None:
    under_way = UnderWay(folder, target, pipe)
    os.truncate(folder / "large.onnx", 0)
    under_way.read_on()
    code, err = under_way.wait()
    assert code == 1 and "became shorter" in err and len(err.splitlines()) <= 4, (code, err)
    assert names(folder) == {"m.onnx", "broken.onnx", "large.onnx", pipe}


def save_external(folder: Path, location: str) -> Path:
    """A model whose weight, of 12 bytes, lies in another file."""
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) <float[3] w> { y = Mul(x, w) }'
    model = onnx.parser.parse_model(text)
    weight = model.graph.initializer.add()
    weight.name, weight.data_type, weight.data_location = "w", TensorProto.FLOAT, TensorProto.EXTERNAL
    weight.dims.append(3)
    weight.external_data.add(key="location", value=location)
    path = folder / "external.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    "location", ["/etc/passwd", "../secret", "inside/../../secret", "soft", "folder/secret", "/dev/zero", "zero"]
)
def test_external_data_outside_of_the_folder(cli: Any, tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    (folder / "inside").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(bytes(12))
    (folder / "soft").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "zero").symlink_to("/dev/zero")
    done = cli("convert", save_external(folder, location), folder / "o.pth")
    assert done.returncode == 1 and ("outside the folder" in done.stderr or "absolute path" in done.stderr)
    assert not (folder / "o.pth").exists()


def test_external_data_that_is_no_file(cli: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "sub").mkdir()
    for location in ("pipe", "sub", "missing"):
        done = cli("convert", save_external(tmp_path, location), tmp_path / "o.pth")
        assert done.returncode == 1 and location in done.stderr
    (tmp_path / "data").write_bytes(bytes(12))
    (tmp_path / "hard").hardlink_to(tmp_path / "data")
    (tmp_path / "soft").symlink_to("data")
    for location in ("data", "hard", "soft"):  # files of the folder, whatever their names
        done = cli("convert", save_external(tmp_path, location), tmp_path / "o.pth")
        assert done.returncode == 0, done.stderr


def test_one_target_by_two_paths(cli: Any, folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "linked").symlink_to(folder / "out")
    (folder / "n.onnx").write_bytes((folder / "m.onnx").read_bytes())
    lines = ["models:", "- {source: m.onnx, target: out/a.py}", "- {source: n.onnx, target: linked/a.py}"]
    (folder / "config.yml").write_text("\n".join(lines))
    done = cli("run", folder / "config.yml")
    assert done.returncode == 1 and "is written from" in done.stderr
    assert names(folder / "out") == set()


def test_a_comparison_leaves_only_its_result(folder: Path) -> None:
    """The results lie in a folder of their own until they are compared; nothing of it stays, whatever comes out."""
    targets = "[o/m.py, o/m.pt2, o/m.pt, o/m.onnx]"
    (folder / "config.yml").write_text(f"models: [{{source: m.onnx, targets: {targets}, verify: true}}]")
    report = tonnx.run(folder / "config.yml", jobs=2)
    assert report and all(result.verified for result in report.results), report
    assert names(folder / "o") == {"m.py", "m.pt2", "m.pt", "m.onnx"}

"""Names out of .pt2 files: targets and arguments are names of operators or are refused, and none of them becomes code."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from limited_runs import files_in, run_limited

import tonnx

Change = Callable[[dict[str, Any]], None]

RUN = "__import__('pathlib').Path('executed').touch()"
TARGETS = {
    "a newline": f"torch.ops.aten.relu.default(x)\n{RUN}\nx = torch.ops.aten.relu.default",
    "a call": f"torch.ops.aten.relu.default({RUN}) or torch.ops.aten.relu.default",
    "a semicolon": f"torch.ops.mine.f.default; {RUN}; torch.ops.mine.f",
    "no operator": f"{RUN}.f",
    "no library": f"torch.ops.{RUN}.f",
    "a library to load": "torch.ops.load_library.__call__.__call__",
    "an attribute of torch.ops": "torch.ops.load_library.__call__",
    "double underscores": "torch.ops.mine.__class__.default",
    "double underscores in the middle": "torch.ops.mine.a__b.default",
    "an overload that is none": "torch.ops.mine.f.__call__",
    "four parts": "torch.ops.mine.a.b.default",
    "an empty part": "torch.ops.mine..default",
    "a space": "torch.ops.mine.f .default",
    "a quote": 'torch.ops.mine.f".default',
    "a keyword": "torch.ops.mine.import.default",
    "letters beyond ASCII": "torch.ops.mine.ｆ.default",
    "a function of Python": "os.system",
    "a builtin": "builtins.eval",
    "a function of torch": "torch.load",
    "a method of an operator": "_operator.methodcaller.x",
    "our own loop": "torch.ops.tonnx.loop.default",
    "our own cond": "torch.ops.tonnx.cond.default",
    "our own list": "torch.ops.tonnx.list.default",
    "our own call": "torch.ops.tonnx.call_operator.default",
    "a node of ONNX": "tonnx.onnx_op",
    "our own numbers": "tonnx.int_tensor",
    "a function of a package": "torch.ops.tonnx_function.f.default",
    "a file": "torch.ops.aten.from_file.default",
    "a file, out of place": "torch.ops.aten.from_file.out",
    "something unknown": "torch.ops.mine.f.default",
    "an unknown graph": "torch.ops.higher_order.run_const_graph",
}
ARGUMENTS = {
    "a call": f"alpha={RUN}, other",
    "a space": "oth er",
    "a newline": "other\n",
    "double underscores": "__class__",
    "empty parentheses": "other()",
    "one that the operator does not have": "alpha_",
}


@pytest.fixture(scope="module")
def parts() -> dict[str, bytes]:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.add(torch.relu(x), x, alpha=2)

    buffer = io.BytesIO()
    torch.export.save(torch.export.export(Net(), (torch.zeros(2, 3),)), buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def write(parts: dict[str, bytes], path: Path, change: Change) -> Path:
    """The archive, its first two nodes (relu and add) as `change` leaves them."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            if name.endswith("models/model.json"):
                program = json.loads(content)
                change(program["graph_module"]["graph"])
                content = json.dumps(program).encode()
            archive.writestr(name, content)
    return path


def assert_refused_on_all_routes(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    before = files_in(folder)
    errors = ""
    for ending in (".py", ".pt", ".onnx", ".safetensors", ".pth"):
        done = run_limited("convert", source, folder / f"model{ending}")
        assert done.returncode in (1, 2), f"{ending}: {done.stderr}"
        errors += done.stderr
    with pytest.raises(tonnx.Error):
        tonnx.convert(source)
    assert files_in(folder) == before
    return errors


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_the_name_of_an_operator(
    name: str, parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(parts, tmp_path / "m.pt2", lambda graph: graph["nodes"][0].update(target=TARGETS[name]))
    errors = assert_refused_on_all_routes(source, tmp_path, monkeypatch)
    assert "\n" not in TARGETS[name] or RUN + "\n" not in errors.replace("\\x0a", "")


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("target", ["torch.ops.aten.add.Tensor", "torch.ops.mine.f.default"])
def test_an_argument_is_a_name(
    name: str, target: str, parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(graph: dict[str, Any]) -> None:
        graph["nodes"][1]["target"] = target
        graph["nodes"][1]["inputs"][-1]["name"] = ARGUMENTS[name]

    assert_refused_on_all_routes(write(parts, tmp_path / "m.pt2", change), tmp_path, monkeypatch)
    if name != "one that the operator does not have":  # a name, which an operator that nobody knows may have
        with pytest.raises(tonnx.Error):
            tonnx.convert(tmp_path / "m.pt2", allow_ops=["mine::f"])
    assert not (tmp_path / "executed").exists()


def test_the_archive_is_good_otherwise(parts: dict[str, bytes], tmp_path: Path) -> None:
    source = write(parts, tmp_path / "m.pt2", lambda graph: None)
    x = torch.randn(2, 3)
    torch.testing.assert_close(tonnx.convert(source)(x), torch.relu(x) + 2 * x)


def test_an_operator_that_is_not_known_is_named_with_the_option(parts: dict[str, bytes], tmp_path: Path) -> None:
    source = write(parts, tmp_path / "m.pt2", lambda g: g["nodes"][0].update(target="torch.ops.mine.f.default"))
    done = run_limited("convert", source, tmp_path / "m.py")
    assert done.returncode == 2 and "--allow-op mine::f" in done.stderr
    done = run_limited("convert", source, tmp_path / "m.py", "--allow-op", "mine::f")
    assert done.returncode == 0, done.stderr
    assert "torch.ops.mine.f.default(x)" in (tmp_path / "m.py").read_text()
    done = run_limited("convert", source, tmp_path / "m.pt", "--allow-op", "mine::f.default")
    assert done.returncode == 0, done.stderr
    done = run_limited("convert", source, tmp_path / "n.py", "--allow-op", "mine::f.other")
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("f", "no operator"),
        ("a::b::c", "no operator"),
        ("a::b(", "no operator"),
        ("a::__b__", "no operator"),
        ("a::b.c.d", "no operator"),
        ("", "no operator"),
        ("aten::from_file", "files"),
        ("image::read_file", "files"),
        ("image::decode_jpeg", "files"),
        ("load_library::x", "files"),
        ("prim::Print", "files"),
        ("mine::save", "files"),
        ("tonnx::loop", "files"),
    ],
)
def test_what_cannot_be_allowed(name: str, error: str, parts: dict[str, bytes], tmp_path: Path) -> None:
    source = write(parts, tmp_path / "m.pt2", lambda g: g["nodes"][0].update(target="torch.ops.mine.f.default"))
    with pytest.raises(tonnx.Error, match=error):
        tonnx.convert(source, allow_ops=["mine::f", name])


def test_a_device_is_a_name(parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(graph: dict[str, Any]) -> None:
        graph["nodes"][0]["target"] = "torch.ops.aten.zeros_like.default"
        argument = {"name": "device", "arg": {"as_device": {"type": f"cpu'){RUN}", "index": None}}, "kind": 2}
        graph["nodes"][0]["inputs"].append(argument)

    assert_refused_on_all_routes(write(parts, tmp_path / "m.pt2", change), tmp_path, monkeypatch)


def test_a_batch_allows_operators(parts: dict[str, bytes], tmp_path: Path) -> None:
    write(parts, tmp_path / "m.pt2", lambda g: g["nodes"][0].update(target="torch.ops.mine.f.default"))
    config = tmp_path / "models.yml"
    config.write_text("models: [{source: m.pt2, target: m.py, allow_ops: ['mine::f']}]")
    done = run_limited("run", config)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "torch.ops.mine.f.default(x)" in (tmp_path / "m.py").read_text()
    config.write_text("models: [{source: m.pt2, target: n.py, allow_ops: ['aten::from_file']}]")
    done = run_limited("run", config)
    assert done.returncode == 1 and "line 1: 'aten::from_file' cannot be allowed" in done.stderr


def test_verify_runs_operators_that_are_allowed(parts: dict[str, bytes], tmp_path: Path) -> None:
    source = write(parts, tmp_path / "m.pt2", lambda g: g["nodes"][0].update(target="torch.ops.mine.f.default"))
    with torch.library._scoped_library("mine", "DEF") as library:
        library.define("f(Tensor self) -> Tensor")
        library.impl("f", torch.relu, "CompositeExplicitAutograd")
        tonnx.convert(source, tmp_path / "m.py", allow_ops=["mine::f"])
        with pytest.raises(tonnx.Error, match="none that is run out of a file"):
            tonnx.verify(source, tmp_path / "m.py")
        assert tonnx.verify(source, tmp_path / "m.py", allow_ops=["mine::f"])

"""Lines of the model in ONNX: where a node comes from, without the folders of the machine that it was exported on."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

import tonnx

CODE = """from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x).relu()
"""


def net_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """A model in a package in this folder, which modules are imported from."""
    (folder / "my_package").mkdir(parents=True)
    (folder / "my_package/__init__.py").touch()
    (folder / "my_package/net.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(folder))
    for name in ("my_package", "my_package.net"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("my_package.net").Net()


def lines_of(model: onnx.ModelProto) -> list[str]:
    return [p.value for node in model.graph.node for p in node.metadata_props if p.key == "torch.source"]


@pytest.mark.parametrize("folder", ["env/lib/python3/site-packages", "checkout/src"])
def test_paths_are_those_of_the_packages(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    program = tonnx.export(net_in(tmp_path / folder, monkeypatch), torch.rand(1, 3))
    assert lines_of(program.model_proto) == ["my_package/net.py:9"] * 2
    assert str(tmp_path).encode() not in bytes(program)


def test_paths_are_behind_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = net_in(tmp_path / "models", monkeypatch)
    assert lines_of(tonnx.export(net, torch.rand(1, 3)).model_proto) == ["models/my_package/net.py:9"] * 2


def test_they_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tonnx.export(net_in(tmp_path, monkeypatch), torch.rand(1, 3), source_lines=False).model_proto
    keys = {p.key for node in model.graph.node for p in node.metadata_props}
    assert keys == {"torch.module", "torch.class"}


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program whose stack traces have absolute paths, as torch saves them."""
    torch.export.save(torch.export.export(net_in(tmp_path / "home/me", monkeypatch), (torch.rand(1, 3),)), "net.pt2")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "net.pt2"


def test_programs_in_files(saved: Path, cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert cli("convert", saved, "net.onnx").returncode == 0
    assert lines_of(onnx.load("net.onnx")) == ["net.py:9"] * 2
    assert cli("convert", saved, "bare.onnx", "--no-source-lines").returncode == 0
    assert lines_of(onnx.load("bare.onnx")) == []
    tonnx.convert(saved, "again.onnx", source_lines=False)
    assert lines_of(onnx.load("again.onnx")) == []
    Path("config.yml").write_text(f"models: [{{source: {saved}, target: batch.onnx, source_lines: false}}]")
    assert tonnx.run("config.yml", verify=False)
    assert lines_of(onnx.load("batch.onnx")) == []


@pytest.mark.parametrize("target", ["net.onnx", "net.py", "net.pt", "net.safetensors"])
def test_nothing_that_is_written_has_the_folder(saved: Path, target: str) -> None:
    tonnx.convert(saved, target)
    written = list(Path().iterdir())
    assert written
    for path in written:
        assert str(saved.parent).encode() not in path.read_bytes()


def test_the_option_is_for_what_has_lines(saved: Path) -> None:
    with pytest.raises(tonnx.Error, match="lines of the model's code are in ONNX that is made of a .pt2"):
        tonnx.convert(saved, "net.py", source_lines=False)

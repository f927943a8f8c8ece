"""tonnx convert --list: many files in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
import torch

MODEL = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(MODEL), str(tmp_path / "relu.onnx"))
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x0a\x3a\xff\xff")
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.rand(2),)), tmp_path / "relu.pt2")
    return tmp_path


def test_failures_are_noted_and_the_others_converted(cli: Any, folder: Path) -> None:
    rows = [("relu.onnx", "a.py"), ("broken.onnx", "b.py"), ("relu.pt2", "c.onnx"), ("absent.pt2", "d.onnx")]
    (folder / "d.onnx").write_text("somebody's own")
    text = "".join(f"{folder / source}\t{folder / target}\n" for source, target in rows)
    (folder / "pairs.tsv").write_text(text + "\n")
    done = cli("convert", "--list", folder / "pairs.tsv")
    assert done.returncode == 1
    assert "2 of 4 conversions failed" in done.stderr
    assert (folder / "a.py").exists() and not (folder / "a.py.err").exists()
    onnx.checker.check_model(str(folder / "c.onnx"), full_check=True)
    assert "broken.onnx" in (folder / "b.py.err").read_text()
    assert "absent.pt2" in (folder / "d.onnx.err").read_text()
    assert not (folder / "b.py").exists() and (folder / "d.onnx").read_text() == "somebody's own"


def test_all_well(cli: Any, folder: Path) -> None:
    (folder / "a.py.err").write_text("of an earlier run")
    (folder / "pairs.tsv").write_text(f"{folder / 'relu.onnx'}\t{folder / 'a.py'}\r\n")
    assert cli("convert", "--list", folder / "pairs.tsv").returncode == 0
    assert not (folder / "a.py.err").exists()


def test_what_is_no_list(cli: Any, folder: Path) -> None:
    (folder / "pairs.tsv").write_text("no tab here\n")
    done = cli("convert", "--list", folder / "pairs.tsv")
    assert done.returncode == 1 and "line 1" in done.stderr
    assert cli("convert", "--list", folder / "absent.tsv").returncode == 1
    assert "needs a source and a target" in cli("convert").stderr

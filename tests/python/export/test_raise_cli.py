"""The command line writes the file that the package writes, and says why where it cannot."""

from pathlib import Path

import torch
from export_checks import save_program

import tonnx


def test_the_same_file(cli):
    save_program("model.pt2", lambda x: torch.softmax(x @ x.T, -1), torch.randn(3, 3))
    for name, options, opset in (("newest", [], None), ("old", ["--opset", 13], 13)):
        done = cli("convert", "model.pt2", f"{name}.onnx", *options)
        assert done.returncode == 0, done.stderr
        tonnx.convert("model.pt2", "model.onnx", opset=opset)
        assert Path(f"{name}.onnx").read_bytes() == Path("model.onnx").read_bytes()


def test_a_refusal(cli):
    save_program("model.pt2", lambda x: tuple(torch.linalg.svd(x)), torch.randn(3, 3))
    done = cli("convert", "model.pt2", "model.onnx")
    assert done.returncode == 2 and "linalg_svd, 1 time: ONNX has no operator for it" in done.stderr
    assert not Path("model.onnx").exists()

"""tonnx verify: inputs, verdicts, exit codes, and what it writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from verify_models import residual_network, variant

import tonnx
from tonnx._verify.cli import main


def save(path: str, text: str, opset: int = 17) -> str:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')
    onnx.save(model, path)
    return path


@pytest.fixture
def pair() -> tuple[str, str]:
    """Two models that differ by one thousandth in one output."""
    body = "(float[N, 3] x) => (float[N, 3] y, float[N, 3] z) <float k = {{{}}}> {{ y = Exp(x) z = Mul(x, k) }}"
    return save("a.onnx", body.format(2.0)), save("b.onnx", body.format(2.002))


@pytest.mark.parametrize("kind", ["onnx", "py", "pt2", "pt", "simplified"])
def test_formats_agree(kind: str) -> None:
    source = residual_network("net.onnx")
    report = tonnx.verify(source, variant(kind, source))
    assert report and isinstance(report, tonnx.VerifyReport)
    (output,) = report.outputs
    assert output.name == "scores" and output.shape == (1, 10) and output.dtype == "float32"
    assert output.max_abs < 1e-4 and output.cosine > 0.999999 and report.layers == []


def test_errors_are_those_of_numpy(pair: tuple[str, str]) -> None:
    x = np.array([[1.0, -2.0, 4.0]], np.float32)
    report = tonnx.verify(*pair, inputs={"x": x})
    y, z = report.outputs
    assert y and y.max_abs == 0 and y.cosine == pytest.approx(1)
    assert not z and not report and z.wrong == 3
    assert z.max_abs == pytest.approx(0.008, rel=1e-3) and z.max_rel == pytest.approx(0.001, rel=1e-3)
    assert "DIFFERS in 3 of 3" in str(z) and str(report).endswith("DIFFERENT")


@pytest.mark.parametrize(
    "arguments, same",
    [
        ([], False),
        (["--rtol", "0.002"], True),
        (["--atol", "0.1"], True),
        (["--rtol", "1e-4", "--atol", "1e-6"], False),
    ],
)
def test_tolerances_can_be_given(pair: tuple[str, str], arguments: Sequence[str], same: bool) -> None:
    assert main([*pair, "--quiet", *arguments]) == (0 if same else 3)


def test_inputs_come_from_a_file(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("named.npz", x=np.zeros((5, 3), np.float32))
    np.savez("unnamed.npz", np.ones((2, 3), np.float64))
    assert main([*pair, "--inputs", "named.npz"]) == 0  # nothing differs at zero
    assert "x float32[5, 3]" in capsys.readouterr().out
    assert main([*pair, "--inputs", "unnamed.npz"]) == 3
    assert "x float32[2, 3]" in capsys.readouterr().out


def test_seed_and_shape(pair: tuple[str, str]) -> None:
    reports = [tonnx.verify(*pair, seed=seed, shapes={"x": [7, 3]}) for seed in (0, 0, 1)]
    errors = [report.outputs[1].max_abs for report in reports]
    assert errors[0] == errors[1] != errors[2]
    assert reports[0].outputs[0].shape == (7, 3) and reports[0].inputs == {"x": "float32[7, 3]"}


def test_sizes_of_one_name_are_equal_and_indices_lie_in_their_table() -> None:
    text = """(int64[B, S] ids, float[B, S] mask, bool[B] keep) => (float[B, S, 2] y)
    <float[3, 2] table = {1, 2, 3, 4, 5, 6}, int64[1] two = {2}, int64[2] ends = {1, 2}>
    { e = Gather(table, ids) m = Unsqueeze(mask, two) h = Mul(e, m) k = Unsqueeze(keep, ends) y = Where(k, h, m) }"""
    source = save("a.onnx", text)
    for kind in ("py", "pt2"):
        assert tonnx.verify(source, variant(kind, source), layers=True, seed=4)


@pytest.mark.parametrize(
    "dtype, scale, same",
    [("float16", 1.001, True), ("float16", 1.1, False), ("float", 1.001, False), ("double", 1 + 1e-8, False)],
)
def test_the_tolerance_fits_the_type(dtype: str, scale: float, same: bool) -> None:
    number = onnx.TensorProto.DataType.Value(dtype.upper())
    texts = [
        f"({dtype}[4] x) => ({dtype}[4] y) <double k = {{{k}}}> {{ c = Cast <to = {number}> (k) y = Mul(x, c) }}"
        for k in (1.0, scale)
    ]
    assert bool(tonnx.verify(*(save(f"{i}.onnx", text) for i, text in enumerate(texts)))) == same


def test_integers_must_be_equal() -> None:
    for name, op in (("a", "ArgMax"), ("b", "ArgMin")):
        save(f"{name}.onnx", f"(float[2, 5] x) => (int64[2, 1] y) {{ y = {op} <axis = 1> (x) }}")
    assert not tonnx.verify("a.onnx", "b.onnx") and tonnx.verify("a.onnx", "a.onnx")


def test_nan_and_infinity_are_equal_to_themselves() -> None:
    save("a.onnx", "(float[3] x) => (float[3] y) { y = Log(x) }")
    x = np.array([-1, 0, 1], np.float32)
    assert tonnx.verify("a.onnx", "a.onnx", inputs=[x])
    save("b.onnx", "(float[3] x) => (float[3] y) { z = Abs(x) y = Log(z) }")
    report = tonnx.verify("a.onnx", "b.onnx", inputs=[x])
    assert report.outputs[0].wrong == 1 and report.outputs[0].max_abs == np.inf


def test_outputs_are_found_by_name_and_missing_ones_are_named() -> None:
    save("a.onnx", "(float[3] x) => (float[3] y, float[3] z) { y = Exp(x) z = Neg(x) }")
    save("b.onnx", "(float[3] x) => (float[3] z, float[3] y) { z = Neg(x) y = Exp(x) }")
    save("c.onnx", "(float[3] x) => (float[3] y) { y = Exp(x) }")
    assert tonnx.verify("a.onnx", "b.onnx")
    report = tonnx.verify("a.onnx", "c.onnx")
    assert not report and report.missing == ["z  only in the first model"]


def test_shapes_that_differ_are_said() -> None:
    save("a.onnx", "(float[3] x) => (float[M, N] y) <int64[2] s = {1, 3}> { y = Reshape(x, s) }")
    save("b.onnx", "(float[3] x) => (float[M, N] y) <int64[2] s = {3, 1}> { y = Reshape(x, s) }")
    assert "is float32[3, 1] in the second model" in str(tonnx.verify("a.onnx", "b.onnx"))


def test_programs_of_pytorch_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open sizes with ranges, arguments by name, a dictionary of outputs."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor, *, y: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"sum": self.linear(x) + y, "both": torch.cat([x, x], 1)}

    batch = torch.export.Dim("batch", min=3, max=9)
    kwargs = {"y": torch.ones(4, 2)}
    shapes = {"x": {0: batch}, "y": {0: batch}}
    program = torch.export.export(Model(), (torch.ones(4, 4),), kwargs, dynamic_shapes=shapes)
    torch.export.save(program, "m.pt2")
    report = tonnx.verify("m.pt2", "m.pt2", layers=True)
    assert report and len(report.layers) == 3 and report.inputs["x"] == "float32[3, 4]"
    tonnx.convert("m.pt2", "m.onnx")
    assert tonnx.verify("m.pt2", "m.onnx", layers=True)


WRONG = {
    "no such file": (["none.onnx", "a.onnx"], 1, "there is no such file"),
    "unknown ending": (["a.onnx", "a.txt"], 2, "is not one of .onnx"),
    "no model": (["bad.onnx", "a.onnx"], 1, "cannot load 'bad.onnx'"),
    "no program": (["bad.pt2", "a.onnx"], 1, "cannot load 'bad.pt2'"),
    "no script": (["a.onnx", "bad.pt"], 1, "cannot load 'bad.pt'"),
    "no class": (["a.onnx", "empty.py"], 1, "cannot load 'empty.py'"),
    "code that fails": (["a.onnx", "bad.py"], 1, "SyntaxError"),
    "no data": (["a.onnx", "a.onnx", "--inputs", "none.npz"], 1, "none.npz"),
    "unknown input": (["a.onnx", "a.onnx", "--inputs", "other.npz"], 1, "no input 'w'; it has: x"),
    "wrong shape": (["a.onnx", "a.onnx", "--inputs", "shape.npz"], 1, "of shape [2] where [N, 3] is expected"),
    "shape of nothing": (["a.onnx", "a.onnx", "--shape", "w:1,3"], 1, "the model has no input 'w'; it has: x"),
    "shape that is none": (["a.onnx", "a.onnx", "--shape", "x=1"], 1, "not of the form"),
    "negative size": (["a.onnx", "a.onnx", "--shape", "x:-1,3"], 1, "cannot be of shape"),
    "too large": (["a.onnx", "a.onnx", "--shape", "x:999999999999,3"], 1, "cannot be of shape"),
    "shape that cannot be": (["a.onnx", "a.onnx", "--shape", "x:1,4"], 1, "cannot run 'a.onnx'"),
    "script of unknown shape": (["script.pt", "script.pt"], 1, "--shape input:"),
    "other inputs": (["a.onnx", "two.onnx"], 1, "input 'w' of 'two.onnx' has no counterpart"),
    "no output in common": (["a.onnx", "c.onnx"], 3, ""),
    "bad option": (["a.onnx", "a.onnx", "--nonsense"], 1, "--nonsense"),
    "bad tolerance": (["a.onnx", "a.onnx", "--rtol", "-1"], 1, "invalid tolerance"),
    "one model": (["a.onnx"], 1, "required: b"),
    "unwritable": (["a.onnx", "a.onnx", "--json", "no/folder/r.json"], 1, "cannot write 'no/folder/r.json'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    save("a.onnx", "(float[N, 3] x) => (float[N, 3] y) { y = Exp(x) }")
    save("two.onnx", "(float[N, 3] x, float[N, 3] w) => (float[N, 3] y) { y = Add(x, w) }")
    save("c.onnx", "(float[N, 3] x) => (float[N, 3] y, float[N, 3] z) { y = Exp(x) z = Exp(x) }")
    for ending in ("onnx", "pt2", "pt", "py", "txt"):
        Path(f"bad.{ending}").write_bytes(b"\x08no model (")
    Path("a.txt").touch()
    Path("empty.py").touch()
    np.savez("other.npz", w=np.ones(3))
    np.savez("shape.npz", x=np.ones(2))
    torch.jit.trace(torch.nn.Linear(3, 3), torch.ones(1, 3)).save("script.pt")
    arguments, code, text = WRONG[name]
    assert main(arguments) == code
    said = capsys.readouterr().err
    assert text in said and "Traceback" not in said
    assert sum(line.startswith("error: ") for line in said.splitlines()) == (1 if text else 0)


def test_the_page_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    source, changed = residual_network("<net>&.onnx"), residual_network("changed.onnx", changed=25)
    assert main([changed, variant("simplified", source), "--layers", "--html", "r.html", "--json", "r.json"]) == 3
    said = capsys.readouterr().out
    assert "first layer that differs" in said and "net/layer25_w" in said
    page = Path("r.html").read_text()
    assert "<net>" not in page and "&lt;net&gt;&amp;" in page
    assert not re.search(r"src\s*=|href=\"[^#]|https?:|@import|url\(", page)
    assert "Worst first" in page and page.index("First layer that differs") < page.index("<h2>Outputs")
    found = json.loads(Path("r.json").read_text())
    assert page.count('id="layer-') == page.count('<a href="#layer-') == len(found["layers"]) > 90
    assert found["ok"] is False and "net/layer25_w" in found["first_difference"]["weights"]
    assert {"max_abs", "mse", "max_rel", "cosine", "ok", "name"} <= found["outputs"][0].keys()


def test_without_layers_the_page_has_none(pair: tuple[str, str]) -> None:
    assert main([*pair, "--html", "r.html", "-q"]) == 3
    assert "<h2>Layers" not in Path("r.html").read_text()


def test_the_command_line_of_the_package(pair: tuple[str, str]) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(Path(tonnx.__file__).parents[1])}
        command = [sys.executable, "-m", "tonnx", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    assert "verify" in run("--help").stdout
    assert "--layers" in run("verify", "--help").stdout
    done = run("verify", *pair)
    assert done.returncode == 3 and done.stdout.endswith("DIFFERENT\n")


def test_the_program_says_that_it_needs_the_package(cli) -> None:  # type: ignore[no-untyped-def]
    done = cli("verify", "a.onnx", "b.onnx", "--layers")
    if done.returncode != 1:  # the package's own command line looks for the files
        assert done.returncode == 2 and "needs the Python package" in done.stderr

"""The Python package as its user meets it: kinds of source, kinds of error, type hints, the command line."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from conftest import REPOSITORY
from models import dynamic_flatten_net, feeds_of, floats, make_model, residual_net, runtime_run
from onnx import helper

import tonnx

TYPED = """
from pathlib import Path

import torch
from torch import nn

import tonnx

module: nn.Module = tonnx.convert("model.onnx")
same: nn.Module = tonnx.convert(Path("model.onnx"))
also: nn.Module = tonnx.convert(b"bytes")
views: nn.Module = tonnx.convert("model.onnx", mmap=True)
tonnx.save(views, Path("model.py"))
tonnx.convert("model.onnx", "model.py")
tonnx.convert(Path("model.onnx"), Path("other.onnx"))
program: tonnx.OnnxProgram = tonnx.export(module, (torch.rand(2),), "model.onnx", dynamic_axes={"x": {0: "n"}})
text: str = tonnx.export_to_pretty_string(module, torch.rand(2))
tonnx.register_custom_op_symbolic("my::op", lambda g, x: g.op("my.domain::Op", x), opset_version=9)


@tonnx.add_converter(operation_type="MyOp", version=1, domain="my.domain")
def my_op(node: tonnx.OnnxNode, graph: tonnx.OnnxGraph) -> tonnx.OperationConverterResult:
    mapping = tonnx.OnnxMapping(inputs=node.input_values, outputs=node.output_values)
    return tonnx.OperationConverterResult(torch_module=nn.Identity(), onnx_mapping=mapping)


try:
    tonnx.convert("model.onnx")
except tonnx.Error as error:
    kind: str = error.kind
"""
MISTYPED = """
import tonnx

tonnx.convert(17)
tonnx.convert("model.onnx", opzet=17)
"""
STUBS = {  # in place of PyTorch: all of it takes a checker longer than anything else here
    "mypy.ini": "[mypy]\nstrict = True\n[mypy-torch.*]\nfollow_imports = skip\n",
    "torch/__init__.pyi": "from . import nn as nn\nclass Tensor: ...\ndef rand(*size: int) -> Tensor: ...\n",
    "torch/nn/__init__.pyi": "class Module: ...\nclass Identity(Module): ...\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(dynamic_flatten_net(), path)
    return path


@pytest.mark.parametrize("kind", ["str", "path", "bytes", "proto"])
def test_every_kind_of_source(kind: str, source: Path, tmp_path: Path) -> None:
    model: Any = {
        "str": str(source),
        "path": source,
        "bytes": source.read_bytes(),
        "proto": onnx.load(source),
    }[kind]
    feeds = feeds_of(dynamic_flatten_net())
    want = torch.from_numpy(runtime_run(source, feeds)[0])
    with torch.no_grad():
        torch.testing.assert_close(tonnx.convert(model)(torch.from_numpy(feeds["x"])), want)
    tonnx.convert(model, tmp_path / "out.py")
    tonnx.convert(model, str(tmp_path / "out.onnx"))
    assert {"out.py", "out.safetensors", "out.onnx"} <= {p.name for p in tmp_path.iterdir()}


def test_a_proto_is_not_changed() -> None:
    model = residual_net()
    before = model.SerializeToString()
    tonnx.convert(model)
    assert model.SerializeToString() == before


def test_nodes_in_any_order() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 17]>
        g (float[2] x, bool c) => (float[2] y) {
            a = Neg(b)
            y = If(c)<then_branch = t () => (float[2] u) { u = Neg(b) }, else_branch = e () => (float[2] v) { v = Abs(a) }>
            b = Exp(x)
        }""")
    module, x = tonnx.convert(model), torch.tensor([1.0, -2.0])
    assert torch.equal(module(x, torch.tensor(True)), -x.exp())
    assert torch.equal(module(x, torch.tensor(False)), x.exp())


def test_the_module_outlives_its_source(source: Path) -> None:
    feeds = feeds_of(dynamic_flatten_net())
    want = torch.from_numpy(runtime_run(source, feeds)[0])
    content = bytearray(source.read_bytes())
    model = tonnx.convert(bytes(content))
    from_file = tonnx.convert(source)
    source.unlink()
    with torch.no_grad():
        torch.testing.assert_close(model(torch.from_numpy(feeds["x"])), want)
        torch.testing.assert_close(from_file(torch.from_numpy(feeds["x"])), want)


def unsupported() -> onnx.ModelProto:
    node = helper.make_node("Mystery", ["x"], ["y"], "the_node", domain="odd")
    return make_model([node], [floats("x", 2)], [floats("y", 2)], domains=[("odd", 1)])


def invalid() -> onnx.ModelProto:
    return make_model([helper.make_node("Relu", ["ghost"], ["y"], "the_node")], [floats("x", 2)], [floats("y", 2)])


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        ("nowhere.onnx", "bad_file", "nowhere.onnx"),
        (b"\xff\xff\xff\xff", "bad_file", ""),
        (invalid().SerializeToString(), "invalid_model", "ghost"),
        (unsupported().SerializeToString(), "unsupported", "Mystery"),
    ],
    ids=["missing", "garbage", "invalid", "unsupported"],
)
def test_errors_say_who_must_act(model: Any, kind: str, said: str) -> None:
    with pytest.raises(tonnx.Error) as caught:
        tonnx.convert(model)
    assert caught.value.kind == kind
    assert said in str(caught.value)
    assert isinstance(caught.value, Exception)


def test_a_target_of_an_unknown_kind_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises((tonnx.Error, ValueError)):
        tonnx.convert(source, tmp_path / "model.xyz")
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_a_source_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(TypeError):
        tonnx.convert(17)  # type: ignore[arg-type,call-overload]


def test_importing_does_not_import_pytorch_or_onnx() -> None:
    """The command line and the conversion of files need neither."""
    code = "import sys, tonnx; print([m for m in ('torch', 'onnx', 'onnxruntime') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_type_hints(tmp_path: Path) -> None:
    assert files("tonnx").joinpath("py.typed").is_file()
    for path, stub in STUBS.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(stub)
    (tmp_path / "typed.py").write_text(TYPED)
    (tmp_path / "mistyped.py").write_text(MISTYPED)
    mypy = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--config-file=mypy.ini"]
    good = subprocess.run([*mypy, "typed.py"], capture_output=True, text=True, cwd=tmp_path)
    assert good.returncode == 0, good.stdout + good.stderr
    bad = subprocess.run([*mypy, "mistyped.py"], capture_output=True, text=True, cwd=tmp_path)
    lines = {line.split(":")[1] for line in bad.stdout.splitlines() if ": error:" in line}
    assert bad.returncode == 1 and lines == {"4", "5"}, bad.stdout + bad.stderr


def run_module(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tonnx", *map(str, args)], capture_output=True, text=True)


def test_versions_agree(cli: Any) -> None:
    assert tonnx.__version__ == version("tonnx")
    assert version("tonnx") in cli("--version").stdout
    assert version("tonnx") in run_module("--version").stdout


def test_module_has_the_same_command_line(source: Path, tmp_path: Path) -> None:
    done = run_module("convert", source, tmp_path / "out.py")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.py").exists() and (tmp_path / "out.safetensors").exists()
    failed = run_module("convert", "nowhere.onnx", "out2.py")
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: ")


def test_print_shows_one_line_a_node(source: Path, cli: Any) -> None:
    done = cli("print", source)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for node in onnx.load(source).graph.node:
        assert sum(node.op_type in line for line in lines) >= 1, node.op_type


def test_operators_page_is_up_to_date(cli: Any) -> None:
    done = cli("ops", "--markdown")
    assert done.returncode == 0, done.stderr
    page = REPOSITORY / "docs/operators.md"
    assert page.read_text() == done.stdout, "docs/operators.md is stale: make docs"


def test_input_shape_is_used(cli: Any, tmp_path: Path) -> None:
    onnx.save(residual_net(), tmp_path / "model.onnx")
    done = cli("convert", "model.onnx", "model.py", "--input-shape", "image:1,3,16,16", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    docstring = (tmp_path / "model.py").read_text().split('"""')[1]
    assert "[1, 3, 16, 16]" in docstring
    wrong = cli("convert", "model.onnx", "wrong.py", "--input-shape", "image:1,4,16,16", cwd=tmp_path)
    assert wrong.returncode == 1 and wrong.stderr.startswith("error: ")
    unknown = cli("convert", "model.onnx", "wrong.py", "--input-shape", "picture:1,3,16,16", cwd=tmp_path)
    assert unknown.returncode == 1 and "picture" in unknown.stderr
    assert not (tmp_path / "wrong.py").exists()

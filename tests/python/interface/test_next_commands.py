"""Errors that end in the next command: what the file is, what was meant, what to write; at most three lines each."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from safetensors.torch import save_file
from torch import nn

import tonnx
from tonnx import _compare, _core, _registry
from tonnx._verify import cli as verify_cli

Told = Callable[..., tuple[int, str]]


@pytest.fixture
def told(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Told:
    """What a command says, run in this process, in a folder of its own; and its exit code."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        code = _core.run_cli(["tonnx", *arguments], _compare.compare_for_cli)
        text = capfd.readouterr().err
        assert len(text.splitlines()) <= 3, text
        return code, text

    return run


def linear(path: str = "m.onnx", inputs: str = "x", shape: Any = (1, 2)) -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", [inputs], ["y"])],
        "g",
        [helper.make_tensor_value_info(inputs, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_kinds() -> None:
    model = nn.Linear(2, 3)
    torch.save(model.state_dict(), "sd.pth")
    shutil.copy("sd.pth", "sd.ckpt")
    shutil.copy("sd.pth", "sd.onnx")
    torch.save({"ema": model.state_dict(), "epoch": 3}, "check.pth")
    torch.save(model, "module.pth")
    torch.save(model.state_dict(), "old.pth", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(model), "script.pth")
    torch.export.save(torch.export.export(model, (torch.rand(1, 2),)), "program.pt2")
    shutil.copy("program.pt2", "program.pt")
    save_file(model.state_dict(), "w.safetensors")
    shutil.copy("w.safetensors", "w.bin")
    Path("net.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    Path("net.tflite").write_bytes(b"\x1c\0\0\0TFL3" + bytes(64))
    with zipfile.ZipFile("net.keras", "w") as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("metadata.json", "{}")
    Path("saved").mkdir()
    Path("saved/saved_model.pb").write_bytes(b"\x08\x01")
    linear("net.model")


KINDS = {
    "sd.pth": "'sd.pth' holds weights, and no program: tonnx export my_net.py:Net --weights sd.pth --input 1,3,224,224 "
    "o.onnx takes it from its class, and tonnx convert old.onnx o.onnx --weights sd.pth from a model",
    "check.pth": "'check.pth' is a checkpoint with weights, and no program: tonnx export my_net.py:Net --weights "
    "check.pth --part ema --input 1,3,224,224 o.onnx takes it from its class, and tonnx convert old.onnx o.onnx "
    "--weights check.pth --part ema from a model",
    "module.pth": "'module.pth' is a pickled module of torch.nn.modules.linear.Linear, whose code is not in it; in "
    'Python, where you trust it: tonnx.export(torch.load("module.pth", weights_only=False), args, "o.onnx")',
    "old.pth": "'old.pth' is of torch.save from before PyTorch 1.6; in Python: "
    'torch.save(torch.load("old.pth"), "old.new.pth")',
    "w.safetensors": "'w.safetensors' holds weights, and no program: tonnx export my_net.py:Net --weights "
    "w.safetensors --input 1,3,224,224 o.onnx takes it",
    "sd.ckpt": "'sd.ckpt' is a file of weights, and its name does not say so: mv sd.ckpt sd.pth",
    "sd.onnx": "'sd.onnx' is a file of weights, and its name does not say so: mv sd.onnx sd.pth",
    "w.bin": "'w.bin' is a file of weights, and its name does not say so: mv w.bin w.safetensors",
    "script.pth": "'script.pth' is a TorchScript archive, and its name does not say so: mv script.pth script.pt",
    "program.pt": "'program.pt' is a program of torch.export, and its name does not say so: mv program.pt program.pt2",
    "net.model": "'net.model' is an ONNX model, and its name does not say so: mv net.model net.onnx",
    "net.h5": "'net.h5' is a model of Keras, which another program makes ONNX of: python -m tf2onnx.convert --keras "
    "net.h5 --output net.onnx",
    "net.keras": "python -m tf2onnx.convert --keras net.keras --output net.onnx",
    "net.tflite": "python -m tf2onnx.convert --tflite net.tflite --output net.onnx",
    "saved": "python -m tf2onnx.convert --saved-model saved --output saved.onnx",
    "missing.model": "cannot open 'missing.model': there is no such file",
}


def test_files_are_told_by_their_content(told: Told) -> None:
    write_kinds()
    for name, text in KINDS.items():
        code, said = told("convert", name, "o.onnx")
        assert code in (1, 2) and text in said, said
        with pytest.raises(tonnx.Error) as failure:
            tonnx.convert(name, "o.onnx")
        assert text in str(failure.value)
    assert not Path("o.onnx").exists()


def test_the_command_is_whole_however_long_the_path_is(told: Told) -> None:
    folder = Path("a" * 100, "b" * 100)
    folder.mkdir(parents=True)
    torch.save({"w": torch.rand(2)}, folder / "sd.pth")
    code, said = told("convert", str(folder / "sd.pth"), "o.onnx")
    assert code == 2 and said.count(str(folder / "sd.pth")) >= 3 and "from a model\n" in said


def test_verify_and_simplify_tell_them_too(told: Told) -> None:
    write_kinds()
    assert "mv sd.onnx sd.pth" in told("simplify", "sd.onnx", "o.onnx")[1]
    assert "tf2onnx.convert --keras net.h5" in told("simplify", "net.h5", "o.onnx")[1]
    with pytest.raises(tonnx.Error, match="tf2onnx.convert --tflite net.tflite"):
        tonnx.verify("net.tflite", "net.tflite")


def test_an_empty_file_is_no_model(told: Told) -> None:
    Path("empty.pth").touch()
    code, said = told("convert", "empty.pth", "o.safetensors")
    assert code == 1 and said.startswith("error: ")


def test_what_is_given_in_place_of_a_model(told: Told) -> None:
    model, x = nn.Linear(2, 3), torch.rand(1, 2)
    with pytest.raises(
        TypeError,
        match=r"not a torch.nn.modules.linear.Linear: tonnx.export\(model, args, path\) writes a module as ONNX",
    ):
        tonnx.convert(model, "m.onnx")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"not 'm.onnx' \(str\): tonnx.convert\(\"m.onnx\", target\) converts files"):
        tonnx.export("m.onnx", x)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match="not a collections.OrderedDict: weights have no program; model.load_state_dict"
    ):
        tonnx.export(model.state_dict(), x)  # type: ignore[arg-type]
    write_kinds()
    for call in (tonnx.simplify, tonnx.check, tonnx.infer):
        with pytest.raises(tonnx.Error, match="'sd.pth' holds weights, and no program: tonnx export"):
            call("sd.pth")


def test_endings_in_capitals(told: Told) -> None:
    linear("M.ONNX")
    assert told("convert", "M.ONNX", "OUT.PY") == (0, "") and Path("OUT.safetensors").exists() is False
    assert told("convert", "M.ONNX", "o.PT2") == (0, "")
    assert isinstance(tonnx.convert("M.ONNX"), nn.Module)
    Path("b.yml").write_text("models: [{source: M.ONNX, target: b.ONNX}]")
    assert told("run", "b.yml", "-q") == (0, "")


def test_commands_that_were_nearly_right(told: Told) -> None:
    assert told("conver", "m.onnx", "m.py") == (1, "error: there is no command 'conver'; did you mean 'convert'?\n")
    assert told("convert", "m.onnx", "m.py", "--opst", "17") == (
        1,
        "error: convert has no option '--opst'; did you mean '--opset'?\n",
    )
    assert told("run") == (1, "error: run needs a file that lists the models: tonnx run models.yml\n")
    assert "tonnx convert model.onnx model.py" in told("convert", "m.onnx")[1]
    linear()
    assert told("simplify", "m.onnx", "3") == (
        1,
        "error: '3' is no file for the simpler model: tonnx simplify m.onnx simple.onnx 3 makes 3 checks\n",
    )
    assert not Path("3").exists()


def test_options_of_the_package_that_were_nearly_right(capfd: pytest.CaptureFixture[str]) -> None:
    assert verify_cli.main(["a.onnx", "b.onnx", "--layes"]) == 1
    assert capfd.readouterr().err == "error: tonnx verify has no option '--layes'; did you mean '--layers'?\n"
    assert verify_cli.main(["a.onnx"]) == 1
    said = capfd.readouterr().err
    assert said == "error: the following arguments are required: b; tonnx verify --help says how it is written\n"


def test_an_operator_without_a_conversion_has_a_line_to_copy(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_registry, "_converters", {})
    graph = helper.make_graph(
        [helper.make_node("MyOp", ["x"], ["y"], "n", domain="my.domain")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 2)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "own.onnx")
    code, said = told("convert", "own.onnx", "own.py")
    line = '@tonnx.add_converter("MyOp", version=2, domain="my.domain")'
    assert code == 2 and f"; {line} above a function of Python says what the node is:" in said

    @eval(line[1:])
    def _(node: tonnx.OnnxNode, graph: tonnx.OnnxGraph) -> tonnx.OperationConverterResult:
        return tonnx.OperationConverterResult(nn.ReLU(), tonnx.onnx_mapping_from_node(node))

    assert torch.equal(tonnx.convert("own.onnx")(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))


@pytest.mark.parametrize("target", ["{stem}.py", "{stem}", "[{dir}/{stem}.py, b.py]"])
def test_braces_in_yaml_are_explained(told: Told, target: str) -> None:
    linear()
    Path("b.yml").write_text(f"models:\n  - source: m.onnx\n    target: {target}\n")
    code, said = told("run", "b.yml")
    assert code == 1 and "line 3: " in said
    assert "; braces begin a map in YAML: put quotes around a name that has some" in said


def test_options_have_dashes_or_underscores(told: Told) -> None:
    linear(shape=("n", 2))
    assert told("convert", "m.onnx", "o.onnx", "--input_shape=x:3,2", "--no_external_data") == (0, "")
    assert onnx.load("o.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3
    assert verify_cli.main(["m.onnx", "o.onnx", "--outputs_only", "-q"]) == 0


def test_the_options_of_onnx2nn_in_one_command(told: Told) -> None:
    linear(shape=("n", "m"))
    options = "--onnx_path m.onnx --simplify_path s.onnx --pytorch_path m.pth --input_shape x:3,2".split()
    for command in ([], ["convert"]):
        for name in ("s.onnx", "m.pth"):
            Path(name).unlink(missing_ok=True)
        assert told(*command, *options) == (0, "")
        assert torch.load("m.pth", weights_only=True) == {}
        dims = onnx.load("s.onnx").graph.input[0].type.tensor_type.shape.dim
        assert [d.dim_value for d in dims] == [3, 2]


def test_shapes_by_the_path_of_a_model(told: Told) -> None:
    Path("data").mkdir()
    Path("cfg").mkdir()
    for name in ("a", "b"):
        linear(f"data/{name}.onnx", shape=None)
    models = (
        "defaults: {simplify: true, verify: true}\nmodels: [{source: ../data/*.onnx, target: '../out/{stem}.pt2'}]\n"
    )
    cfg = Path("cfg/example.yml")
    cfg.write_text(models + "input_shapes:\n  data/a.onnx: {x: [1, 3]}\n")
    code, said = told("run", "--cfg", "cfg/example.yml")
    assert code == 1 and "line 2: input 'x' of 'data/b.onnx' has no shape" in said and "a.onnx" not in said
    assert not Path("out").exists()  # nothing was begun
    cfg.write_text(models + "input_shapes:\n  data/a.onnx: {x: [1, 3]}\n  data/b.onnx: {x: [2, 5]}\n")
    assert told("run", "--cfg", "cfg/example.yml", "-q") == (0, "")
    program = torch.export.load("out/b.pt2")
    assert program.module()(torch.ones(2, 5)).shape == (2, 5)
    assert bool(tonnx.run("cfg/example.yml"))


def test_an_input_without_shape_gets_a_hint(told: Told) -> None:
    linear(shape=None)
    with pytest.raises(tonnx.Error, match=r"what shape input 'x' has: give shapes=\{'x': \[1, 3, 224"):
        tonnx.verify("m.onnx", "m.onnx")
    assert tonnx.verify("m.onnx", "m.onnx", shapes={"x": [2, 3]})


def test_shapes_of_models_that_are_not_there(told: Told) -> None:
    linear("a.onnx", shape=None)
    models = "models: [{source: a.onnx, target: a.py}]\ninput_shapes:\n"
    Path("b.yml").write_text(models + "  c.onnx: {x: [1, 3]}\n  a.onnx: {xx: [1, 3], x: [1, 2]}\n")
    code, said = told("run", "b.yml")
    assert code == 1 and "line 4: 'a.onnx' has no input 'xx'; did you mean 'x'?" in said
    assert "line 3: 'c.onnx' is no source of a model; paths in 'input_shapes' are from where the command is run" in said


def test_input_data_of_a_name_that_is_not_there(told: Told) -> None:
    linear()
    with pytest.raises(tonnx.Error, match="input_data: the model has no input 'y'; it has: x"):
        tonnx.simplify("m.onnx", input_data={"y": np.ones((1, 2), np.float32)})
    _, ok = tonnx.simplify("m.onnx", 1, input_data={"x": np.ones((1, 2), np.float32)})
    assert ok


def test_a_library_of_operators_goes_to_the_runtime_that_checks(told: Told) -> None:
    linear()
    with pytest.raises(tonnx.Error, match="ONNX Runtime cannot load the operators of 'none.so': "):
        tonnx.simplify("m.onnx", 1, custom_lib="none.so")
    assert tonnx.simplify("m.onnx", custom_lib="none.so")[1]  # nothing is run, and nothing is loaded
    code, said = told("simplify", "m.onnx", "s.onnx", "1", "--custom-lib", "none.so")
    assert code == 1 and "ONNX Runtime cannot load the operators of 'none.so': " in said
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no compiler to make a library with")
    Path("ops.cpp").write_text(
        '#include <cstdio>\nextern "C" void* RegisterCustomOps(void*, const void*) '
        '{ std::fclose(std::fopen("asked", "w")); return nullptr; }\n'
    )
    subprocess.run([compiler, "-shared", "-fPIC", "ops.cpp", "-o", "ops.so"], check=True)
    assert tonnx.simplify("m.onnx", 1, custom_lib=str(Path("ops.so").resolve()))[1] and Path("asked").exists()

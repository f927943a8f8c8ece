"""`tonnx export`: a class of a file, its weights and its shapes to ONNX; what ONNX Runtime gives is PyTorch's own."""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

import tonnx
from tonnx import _export_command

_NUMBERS = itertools.count()
CODE = """
import torch
from torch import nn

LIMIT = 3


class Net(nn.Module):
    def __init__(self, width: int = 4, kind: str = "relu") -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.act = {"relu": nn.ReLU, "tanh": nn.Tanh}[kind]()

    def forward(self, x):
        return self.act(self.norm(self.conv(x))).mean((2, 3))


class Tokens(nn.Module):
    def __init__(self, rows) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, 3)

    def forward(self, ids, mask, *, scale=None):
        y = self.table(ids) * mask.unsqueeze(-1)
        return y if scale is None else y * scale


def small(width=2):
    return Net(width)


def broken():
    raise RuntimeError("no such layer")


def text():
    return "text"


ready = Net(5)
"""


@pytest.fixture
def code(tmp_path: Path) -> str:
    path = tmp_path / f"net_{next(_NUMBERS)}.py"  # modules stay loaded
    path.write_text(CODE)
    return str(path)


@pytest.fixture(autouse=True)
def paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def module_of(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("the_same", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def saved(model: nn.Module, path: Path, wrap: Any = lambda state: state) -> str:
    for name, value in model.named_buffers():
        if name.endswith("running_var"):
            value.uniform_(0.5, 2)
    torch.save(wrap(model.state_dict()), path)
    return str(path)


def run_onnx(path: Path, **inputs: Tensor) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    result: np.ndarray[Any, Any] = session.run(None, {name: t.numpy() for name, t in inputs.items()})[0]
    return result


def shapes_of(path: Path) -> dict[str, list[int | str]]:
    inputs = onnx.load(str(path)).graph.input
    return {i.name: [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in inputs}


def test_the_command_of_the_package(code: str, tmp_path: Path) -> None:
    model = module_of(code).Net(6).eval()
    weights = saved(model, tmp_path / "net.pth")
    command = [sys.executable, "-m", "tonnx", "export", os.path.basename(code) + ":Net", "net.onnx"]
    command += ["--weights", weights, "--arg", "width=6", "--input", "-1,3,8,8", "--opset", "17"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == f"note: '{os.path.basename(code)}:Net' is code, and is run\n"
    assert shapes_of(tmp_path / "net.onnx") == {"x": ["x_0", 3, 8, 8]}
    assert onnx.load(str(tmp_path / "net.onnx")).opset_import[0].version == 17
    x = torch.randn(5, 3, 8, 8)
    np.testing.assert_allclose(run_onnx(tmp_path / "net.onnx", x=x), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "wrap", "options"),
    [
        ("Net", lambda state: state, ["--arg", "width=2", "--arg", "kind=relu"]),
        ("small", lambda state: {f"module.{k}": v for k, v in state.items()}, []),
        ("small", lambda state: {"epoch": 3, "model": state, "ema": state}, ["--part", "model"]),
        ("small", lambda state: {"args": Namespace(lr=1), "model": state}, ["--part", "model"]),  # not executed
        ("small", lambda state: {k: v for k, v in state.items() if "num_batches" not in k}, []),
    ],
    ids=["class", "wrapped", "checkpoint", "objects", "no counters"],
)
def test_weights(code: str, tmp_path: Path, name: str, wrap: Any, options: list[str]) -> None:
    model = module_of(code).Net(2).eval()
    weights = saved(model, tmp_path / "w.pth", wrap)
    target = tmp_path / "m.onnx"
    arguments = [f"{code}:{name}", str(target), "--weights", weights, "--input", "x:1,3,4,-1", *options]
    assert _export_command.main([*arguments, "--dynamic", "0:0=batch", "--output-name", "mean", "--verify"]) == 0
    assert shapes_of(target) == {"x": ["batch", 3, 4, "x_3"]}
    assert onnx.load(str(target)).graph.output[0].name == "mean"
    x = torch.randn(2, 3, 4, 7)
    np.testing.assert_allclose(run_onnx(target, x=x), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["net.py", "net.pt2", "net.pt"])
def test_other_targets(code: str, tmp_path: Path, target: str) -> None:
    model = module_of(code).small().eval()
    weights = saved(model, tmp_path / "net.pth")
    arguments = [f"{code}:small", str(tmp_path / target), "--weights", weights, "--input", "-1,3,8,8"]
    assert _export_command.main(arguments) == 0
    if target == "net.py":
        made = module_of(str(tmp_path / target)).Model().eval()
        made.load_state_dict(safetensors.torch.load_file(tmp_path / "net.safetensors"))
    elif target == "net.pt2":
        made = torch.export.load(tmp_path / target).module()
    else:
        made = torch.jit.load(tmp_path / target)
    x = torch.randn(5, 3, 8, 8)
    torch.testing.assert_close(made(x), model(x), rtol=1e-4, atol=1e-5)
    assert _export_command.main([*arguments, "--opset", "17"]) == 1


def test_safetensors_types_and_keywords(code: str, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    model = module_of(code).Tokens(9).eval()
    save_file(model.state_dict(), tmp_path / "t.safetensors")
    target = tmp_path / "t.onnx"
    arguments = [f"{code}:Tokens", str(target), "--weights", str(tmp_path / "t.safetensors"), "--arg", "rows=9"]
    arguments += ["--input", "ids:-1,-1", "--input", "1:-1,-1", "--input", "scale:3", "--input-type", "0:int64"]
    assert _export_command.main(arguments) == 0
    assert list(shapes_of(target)) == ["ids", "mask", "scale"]
    ids, mask, scale = torch.randint(0, 9, (3, 5)), torch.rand(3, 5), torch.randn(3)
    expected = model(ids, mask, scale=scale).detach().numpy()
    np.testing.assert_allclose(run_onnx(target, ids=ids, mask=mask, scale=scale), expected, rtol=1e-5)


def test_a_function_of_a_package_and_a_model_that_is_there(code: str, tmp_path: Path) -> None:
    target = tmp_path / "m.onnx"
    arguments = ["torch.nn:Linear", str(target), "--arg", "in_features=3", "--arg", "out_features=2"]
    assert _export_command.main([*arguments, "--input", "1,3", "--verify", "--external-data"]) == 0
    assert _export_command.main([f"{code}:ready", str(target), "--input", "1,3,4,4", "--verify"]) == 0


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("Nett", [], "{code} has no 'Nett'; it has: Net, "),
        ("LIMIT", [], "'LIMIT' of {code} is a int, not a class or function"),
        ("Tokens", [], "{code}:Tokens wants rows: --arg rows=..."),
        ("Net", ["--arg", "wide=3"], "{code}:Net has no argument 'wide'; it has: width, kind"),
        ("Net", ["--arg", "wide"], "--arg 'wide' is not of the form name=value"),
        ("ready", ["--arg", "width=3"], "{code}:ready is a model already, and takes no --arg"),
        ("broken", [], "{code}:broken cannot be built: RuntimeError: no such layer ({code}:"),
        ("text", [], "{code}:text gives a str, and not an nn.Module"),
        ("Net", ["--input", "y:1,3,4,4"], "the model has no input 'y'; it has: x"),
        ("Net", ["--input", "x:1,a"], "--input 'x:1,a' is not of the form x:1,3,224,224, where -1 is an open size"),
        ("Net", ["--input", "1,3,4,4", "--input", "x:1,3,4,4"], "input 'x' is given two shapes"),
        ("Net", ["--input", "1,3,4,4", "--input-type", "x:int65"], "there is no type 'int65'; there are: int"),
        (
            "Tokens",
            ["--arg", "rows=3", "--input", "1,2", "--input", "1,2", "--input-type", "scale:int64"],
            "--input-type names 'scale', which has no shape: --input scale:1,3,224,224",
        ),
        ("Net", ["--input", "1,3,4,4", "--dynamic", "x:7=n"], "--dynamic 'x:7=n': the input 'x' has 4 dimensions"),
        ("Net", ["--input", "1,3,4,4", "--dynamic", "x=n"], "--dynamic 'x=n' is not of the form x:0=batch"),
        ("Net", ["--part", "model"], "--part says which part of a file has the weights, and --weights gives none"),
        ("Net", [], "the model wants x: --input x:1,3,224,224 gives a shape"),
    ],
)
def test_errors(
    code: str, tmp_path: Path, name: str, options: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _export_command.main([f"{code}:{name}", str(tmp_path / "m.onnx"), *options]) in (1, 2)
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: " + text.format(code=code))
    assert not (tmp_path / "m.onnx").exists()


def test_errors_of_sources_and_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad_import.py").write_text("import there_is_no_such_package\n")
    for model, target, text in [
        ("net.py", "m.onnx", "'net.py' is not of the form file.py:Name or package.module:name"),
        ("absent.py:Net", "m.onnx", "there is no file 'absent.py'"),
        ("no_such_package:net", "m.onnx", "no_such_package cannot be imported: ModuleNotFoundError: No module named"),
        (
            f"{tmp_path}/bad_import.py:Net",
            "m.onnx",
            f"{tmp_path}/bad_import.py cannot be imported: ModuleNotFoundError",
        ),
        ("torch.nn:ReLU", "m.pth", "cannot write 'm.pth': export writes .onnx, .py, .pt2, .pt"),
    ]:
        assert _export_command.main([model, target]) in (1, 2)
        assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {text}")


def test_weights_of_another_model(code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = module_of(code).Net(2).state_dict()
    del state["conv.bias"]
    state["head.weight"] = torch.ones(1)
    state["norm.weight"] = torch.ones(7)
    torch.save(state, tmp_path / "w.pth")
    arguments = [f"{code}:small", str(tmp_path / "m.onnx"), "--weights", f"{tmp_path}/w.pth", "--input", "1,3,4,4"]
    assert _export_command.main(arguments) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"error: the weights of {tmp_path}/w.pth are not those of the model: the file lacks conv.bias; the model has no "
        "head.weight; norm.weight is [7] in the file and [2] in the model"
    )


def test_the_program_alone_says_what_it_needs(cli: Any) -> None:
    done = cli("export", "my_net.py:Net", "net.onnx", "--input", "1,3")
    assert done.returncode == 2
    assert done.stderr.startswith("error: export runs the model's code, which needs the Python package with PyTorch")


def test_random_weights_are_said_to_be_random(code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "m.onnx")
    arguments = [target, "--input", "1,3,8,8"]
    warning = "are random, as its code loads none: --weights net.pth gives it those of a file"
    assert _export_command.main([f"{code}:Net", *arguments]) == 0
    assert warning in capsys.readouterr().err
    model = module_of(code).Net()
    loading = Path(code).with_name("loading_" + os.path.basename(code))
    weights = saved(model, tmp_path / "w.pth")
    loading.write_text(
        Path(code).read_text()
        + f"\ndef loaded():\n    net = Net()\n    net.load_state_dict(torch.load({weights!r}))\n    return net\n"
    )
    for more in ([f"{code}:Net", *arguments, "--weights", weights], [f"{loading}:loaded", *arguments]):
        assert _export_command.main(more) == 0
        assert "are random" not in capsys.readouterr().err
    assert _export_command.main([f"{code}:Net", *arguments, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.fixture
def generated(tmp_path: Path) -> Path:
    """A file that tonnx wrote, of a model with an open size and names that code does not have."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 1)).eval()
    options: Any = {"input_names": ["my.image"], "output_names": ["my.scores"], "dynamic_axes": {"my.image": {0: "n"}}}
    tonnx.export(model, (torch.rand(2, 3, 8, 8),), tmp_path / "source.onnx", **options)
    path = tmp_path / f"generated_{next(_NUMBERS)}.py"
    tonnx.convert(tmp_path / "source.onnx", path)
    return path


def run_main(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    from tonnx.__main__ import run

    capsys.readouterr()
    return run(list(arguments)), capsys.readouterr().err


@pytest.mark.parametrize("command", ["export", "convert"])
def test_generated_code_goes_back_with_its_weights(
    command: str, generated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(generated) + (":Model" if command == "export" else "")
    target = tmp_path / "back.onnx"
    assert run_main(capsys, command, source, str(target)) == (0, f"note: '{generated}:Model' is code, and is run\n")
    assert shapes_of(target) == shapes_of(tmp_path / "source.onnx") == {"my.image": ["n", 3, 8, 8]}
    assert [x.name for x in onnx.load(target).graph.output] == ["my.scores"]
    x = torch.rand(5, 3, 8, 8)
    want = run_onnx(tmp_path / "source.onnx", **{"my.image": x})
    np.testing.assert_allclose(run_onnx(target, **{"my.image": x}), want, rtol=1e-4, atol=1e-5)


def test_generated_code_becomes_the_other_forms(generated: Path, tmp_path: Path) -> None:
    from tonnx.__main__ import run

    x = torch.rand(3, 3, 8, 8)
    want = run_onnx(tmp_path / "source.onnx", **{"my.image": x})
    assert run(["convert", str(generated), str(tmp_path / "net.pt2"), "--quiet"]) == 0
    assert run(["convert", str(generated), str(tmp_path / "net.pt"), "--quiet"]) == 0
    programs = torch.export.load(tmp_path / "net.pt2").module(), torch.jit.load(tmp_path / "net.pt")  # type: ignore[no-untyped-call]
    for program in programs:
        np.testing.assert_allclose(program(x).detach().numpy(), want, rtol=1e-4, atol=1e-5)


def test_generated_code_without_its_weights(
    generated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = generated.with_suffix(".safetensors")
    weights.rename(tmp_path / "elsewhere.safetensors")
    target = tmp_path / "back.onnx"
    code, said = run_main(capsys, "convert", str(generated), str(target))
    assert code == 1 and not target.exists()
    assert f"{weights.name} beside it, and there is no such file: --weights says where they are" in said
    more = ["--weights", str(tmp_path / "elsewhere.safetensors")]
    assert run_main(capsys, "convert", str(generated), str(target), *more)[0] == 0
    x = torch.rand(1, 3, 8, 8)
    want = run_onnx(tmp_path / "source.onnx", **{"my.image": x})
    np.testing.assert_allclose(run_onnx(target, **{"my.image": x}), want, rtol=1e-4, atol=1e-5)


def test_tied_weights_of_generated_code_are_loaded_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(11, 6)
            self.head = nn.Linear(6, 11, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids: Tensor) -> Tensor:
            result: Tensor = self.head(self.embed(ids).relu())
            return result

    ids = torch.tensor([[1, 4, 10]])
    tonnx.export(Tied().eval(), (ids,), tmp_path / "source.onnx")
    path = tmp_path / f"tied_{next(_NUMBERS)}.py"
    tonnx.convert(tmp_path / "source.onnx", path)
    weights = str(path.with_suffix(".safetensors"))
    for more in ([], ["--weights", weights]):
        assert run_main(capsys, "export", f"{path}:Model", str(tmp_path / "back.onnx"), *more)[0] == 0
        np.testing.assert_allclose(
            run_onnx(tmp_path / "back.onnx", ids=ids), run_onnx(tmp_path / "source.onnx", ids=ids), atol=1e-6
        )


def test_the_program_without_python_names_the_command(generated: Path, tmp_path: Path, cli: Any) -> None:
    done = cli("convert", generated, tmp_path / "back.onnx")
    assert done.returncode == 2
    assert f"tonnx export {generated}:Model {tmp_path / 'back.onnx'} does that, with the Python package" in done.stderr
    with pytest.raises(tonnx.Error, match="is code, which has to be run: tonnx export"):
        tonnx.convert(generated, tmp_path / "back.onnx")


def test_a_folder_is_told_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a checkpoint"
    folder.mkdir()
    (folder / "model.safetensors").touch()
    assert _export_command.main([str(folder), "net.onnx"]) == 2
    said = capsys.readouterr().err
    assert "is a folder" in said and f"--weights '{folder}/model.safetensors'" in said and "is run" not in said
    (folder / "config.json").touch()
    assert _export_command.main([str(folder), "net.onnx"]) == 2
    assert f"--arg pretrained_model_name_or_path='{folder}' " in capsys.readouterr().err

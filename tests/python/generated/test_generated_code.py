"""The generated .py: it reads well, needs PyTorch and safetensors alone, and behaves as a hand-written module does."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import (
    NETS,
    dynamic_flatten_net,
    feeds_of,
    floats,
    make_model,
    random_tensor,
    residual_net,
    runtime_run,
    shared_weight_net,
    two_in_two_out_net,
)
from onnx import helper
from torch import nn

import tonnx

# Runs the generated file where neither tonnx nor onnx can be imported.
ALONE = """
import importlib.abc, sys
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tonnx", "onnx", "onnxruntime", "numpy_helper"):
            raise ImportError(f"{name} must not be needed")
sys.meta_path.insert(0, Blocked())
import torch
from model import Model
model = Model.load()
assert not model.training
feeds = torch.load("feeds.pt")
with torch.no_grad():
    outputs = model(*feeds)
torch.save(outputs, "outputs.pt")
"""


def generate(model: onnx.ModelProto, folder: Path) -> str:
    """Writes model.onnx, model.py and model.safetensors, and returns the code."""
    onnx.save(model, folder / "model.onnx")
    tonnx.convert(str(folder / "model.onnx"), str(folder / "model.py"))
    assert sorted(p.name for p in folder.iterdir()) == ["model.onnx", "model.py", "model.safetensors"]
    return (folder / "model.py").read_text()


def load(folder: Path) -> nn.Module:
    module = import_file(folder / "model.py")
    return module.Model.load()


def import_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"generated_{abs(hash(path))}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def tensors_of(feeds: dict[str, np.ndarray]) -> list[torch.Tensor]:
    return [torch.from_numpy(x) for x in feeds.values()]


def assert_close(got: Any, want: list[np.ndarray]) -> None:
    assert isinstance(got, tuple) == (len(want) > 1), "one output comes bare, several as a tuple"
    got = got if isinstance(got, tuple) else (got,)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.detach().numpy(), w, rtol=1e-4, atol=1e-5)


every_net = pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())


@every_net
def test_formatters_and_linters_agree(net: Any, tmp_path: Path) -> None:
    code = generate(net(), tmp_path)
    assert max(map(len, code.splitlines())) <= 120
    ruff = [sys.executable, "-m", "ruff"]
    for command in (
        ["format", "--check", "--diff", "--line-length", "120"],
        ["check", "--select", "E,F,I,W", "--line-length", "120"],
    ):
        done = subprocess.run([*ruff, *command, "--isolated", "model.py"], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


@every_net
def test_names_come_from_the_model(net: Any, tmp_path: Path) -> None:
    code = generate(net(), tmp_path)
    body = code.split('"""', 2)[2]  # the docstring may name what it was made from
    assert "onnx_initializer_" not in code
    assert "onnx::" not in body
    assert not re.search(r"\bonnx__|MatMul_12|Gemm_57", body)
    assert not any("onnx" in name.lower() for name in load(tmp_path).state_dict())


@every_net
def test_docstring_says_inputs_and_outputs(net: Any, tmp_path: Path) -> None:
    model = net()
    docstring = generate(model, tmp_path).split('"""')[1]
    assert "model.onnx" in docstring
    for value in [*model.graph.input, *model.graph.output]:
        assert value.name in docstring
    assert "float32" in docstring and "batch" in docstring


@every_net
def test_runs_with_pytorch_alone(net: Any, tmp_path: Path) -> None:
    model = net()
    generate(model, tmp_path)
    feeds = feeds_of(model)
    torch.save(tensors_of(feeds), tmp_path / "feeds.pt")
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_close(torch.load(tmp_path / "outputs.pt"), runtime_run(model, feeds))


@every_net
def test_memory_and_file_give_the_same_module(net: Any, tmp_path: Path) -> None:
    model = net()
    generate(model, tmp_path)
    in_memory, from_file = tonnx.convert(model), load(tmp_path)
    assert isinstance(in_memory, nn.Module) and not in_memory.training
    assert in_memory.state_dict().keys() == from_file.state_dict().keys()
    for name, value in in_memory.state_dict().items():
        assert torch.equal(value, from_file.state_dict()[name]), name
    feeds = feeds_of(model, batch=3)
    with torch.no_grad():
        assert_close(in_memory(*tensors_of(feeds)), runtime_run(model, feeds))
        assert_close(from_file(*tensors_of(feeds)), runtime_run(model, feeds))


def test_layers_are_modules_under_their_own_names(tmp_path: Path) -> None:
    generate(residual_net(), tmp_path)
    model = load(tmp_path)
    kinds = [type(m) for m in model.modules()]
    assert kinds.count(nn.Conv2d) == 5
    assert kinds.count(nn.BatchNorm2d) == 3
    assert kinds.count(nn.Linear) == 1
    names = {name.replace(".", "_"): type(m) for name, m in model.named_modules()}
    assert names["conv1"] is nn.Conv2d
    assert names["bn1"] is nn.BatchNorm2d
    assert names["layer1_0_conv1"] is nn.Conv2d
    assert names["layer1_1_bn1"] is nn.BatchNorm2d
    assert names["fc"] is nn.Linear


def test_batch_norm_keeps_its_numbers(tmp_path: Path) -> None:
    source = residual_net()
    generate(source, tmp_path)
    norm = dict(load(tmp_path).named_modules())["bn1"]
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.eps == pytest.approx(1e-3)
    assert norm.momentum == pytest.approx(0.1)  # ONNX counts the other way round: its default is 0.9
    stored = {i.name: onnx.numpy_helper.to_array(i) for i in source.graph.initializer}
    np.testing.assert_array_equal(norm.running_var.numpy(), stored["bn1.running_var"])


def test_weights_keep_their_bits(tmp_path: Path) -> None:
    source = residual_net()
    generate(source, tmp_path)
    had = {onnx.numpy_helper.to_array(i).tobytes() for i in source.graph.initializer}
    has = {v.numpy().tobytes() for v in load(tmp_path).state_dict().values() if v.is_floating_point()}
    assert had == has


@pytest.mark.parametrize("how", ["file", "memory"])
@pytest.mark.parametrize("net", [residual_net, shared_weight_net, dynamic_flatten_net])
def test_it_trains(net: Any, how: str, tmp_path: Path) -> None:
    source = net()
    generate(source, tmp_path)
    model = (load(tmp_path) if how == "file" else tonnx.convert(source)).train()
    assert all(m.training for m in model.modules())
    feeds = tensors_of(feeds_of(source))
    parameters = dict(model.named_parameters())
    assert parameters and all(p.requires_grad and p.is_floating_point() for p in parameters.values())
    before = {n: b.clone() for n, b in model.named_buffers()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(*feeds).square().sum().backward()
    for name, parameter in parameters.items():
        assert parameter.grad is not None and parameter.grad.shape == parameter.shape, name
    optimizer.step()
    moved = [n for n, b in model.named_buffers() if "running_" in n and not torch.equal(b, before[n])]
    assert len(moved) == sum("running_" in n for n in before), "train mode updates the running statistics"
    model.eval()
    with torch.no_grad():
        assert torch.equal(model(*feeds), model(*feeds))


def test_training_leaves_the_source_file_alone(tmp_path: Path) -> None:
    """The weights in memory are views of the mapped file; writing to them must copy."""
    path = tmp_path / "model.onnx"
    onnx.save(residual_net(), path)
    before = path.read_bytes()
    model = tonnx.convert(path)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    assert path.read_bytes() == before


@pytest.mark.parametrize("how", ["file", "memory"])
@every_net
def test_export_with_a_dynamic_batch(net: Any, how: str, tmp_path: Path) -> None:
    source = net()
    generate(source, tmp_path)
    model = load(tmp_path) if how == "file" else tonnx.convert(source)
    batch = torch.export.Dim("batch", min=2, max=64)
    example = tensors_of(feeds_of(source, batch=4))
    program = torch.export.export(model, tuple(example), dynamic_shapes=tuple({0: batch} for _ in example))
    feeds = feeds_of(source, batch=7)
    with torch.no_grad():
        assert_close(program.module()(*tensors_of(feeds)), runtime_run(source, feeds))


@every_net
def test_compiles_as_one_graph(net: Any, tmp_path: Path) -> None:
    source = net()
    generate(source, tmp_path)
    torch.compiler.reset()
    model = torch.compile(load(tmp_path), fullgraph=True, backend="aot_eager")
    feeds = feeds_of(source)
    with torch.no_grad():
        assert_close(model(*tensors_of(feeds)), runtime_run(source, feeds))


@pytest.mark.parametrize("how", ["file", "memory"])
def test_shared_weights_stay_one_parameter(how: str, tmp_path: Path) -> None:
    source = shared_weight_net()
    generate(source, tmp_path)
    model = load(tmp_path) if how == "file" else tonnx.convert(source)
    assert sorted(tuple(p.shape) for p in model.parameters()) == [(6,), (6, 6)]
    assert sum(p.numel() for p in {p.data_ptr(): p for p in model.parameters()}.values()) == 42
    from safetensors import safe_open

    with safe_open(tmp_path / "model.safetensors", "pt") as stored:
        assert sum(stored.get_tensor(name).numel() for name in stored.keys()) == 42


def test_shapes_are_integers(tmp_path: Path) -> None:
    """Shape, Gather, Unsqueeze, Concat and Reshape become one line about sizes."""
    code = generate(dynamic_flatten_net(), tmp_path)
    for trace in ("torch.cat", "torch.tensor", "torch.gather", "index_select", "unsqueeze", "as_tensor"):
        assert trace not in code, code
    assert re.search(r"reshape|view|flatten", code)


def test_names_that_python_cannot_have(tmp_path: Path) -> None:
    generate(two_in_two_out_net(), tmp_path)
    model = load(tmp_path)
    feeds = feeds_of(two_in_two_out_net())
    assert_close(model(*tensors_of(feeds)), runtime_run(two_in_two_out_net(), feeds))


def test_a_file_name_that_is_no_module_name(tmp_path: Path) -> None:
    source = tmp_path / "res-net 50.v1.onnx"
    onnx.save(shared_weight_net(), source)
    tonnx.convert(source, tmp_path / "out.v1.py")
    assert (tmp_path / "out.v1.safetensors").exists()
    feeds = feeds_of(shared_weight_net())
    model = import_file(tmp_path / "out.v1.py").Model.load()
    assert_close(model(*tensors_of(feeds)), runtime_run(shared_weight_net(), feeds))


def test_text_in_the_model_cannot_become_code(tmp_path: Path) -> None:
    """Names and doc strings are data: no quote or newline in them may leave its string."""
    evil = 'x"""\nimport os; os.mkdir("pwned")\n"""\\'
    node = helper.make_node("MatMul", [evil, 'w"\n)'], ["y'\n"], '/a\n"""/b', doc_string=evil)
    weight = random_tensor(np.random.default_rng(0), 'w"\n)', 3, 3)
    model = make_model([node], [floats(evil, 2, 3)], [floats("y'\n", 2, 3)], [weight])
    model.producer_name = model.doc_string = model.graph.name = evil
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = evil
    generate(model, tmp_path)
    feeds = feeds_of(model)
    assert_close(load(tmp_path)(*tensors_of(feeds)), runtime_run(model, feeds))
    assert not (tmp_path / "pwned").exists()


def test_conversion_is_deterministic(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        generate(residual_net(), folder)
        contents.append([(folder / f).read_bytes() for f in ("model.py", "model.safetensors")])
    assert contents[0] == contents[1]

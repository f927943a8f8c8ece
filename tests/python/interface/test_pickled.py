"""A module in memory travels: pickled, copied and sent to other processes it stays the model that it was."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import dynamic_flatten_net, feeds_of, floats, make_model, residual_net, runtime_run, shared_weight_net
from onnx import helper, numpy_helper

import tonnx

MODELS = {"residual": residual_net, "shared": shared_weight_net, "flatten": dynamic_flatten_net}

# What another process does with a module that it is given; it writes the outputs for all of "inputs.pt" to "outputs.pt".
LOADED = """
import sys, torch, tonnx
if len(sys.argv) > 1:
    tonnx.convert(sys.argv[1])
model = torch.load("a.pt", weights_only=False)
with torch.no_grad():
    torch.save(model(*torch.load("inputs.pt")), "outputs.pt")
"""
SPAWNED = """
import torch, tonnx
import torch.multiprocessing as mp

def work(rank, model, inputs):
    with torch.no_grad():
        torch.save(model(*inputs), "outputs.pt")

if __name__ == "__main__":
    mp.spawn(work, args=(tonnx.convert("model.onnx", mmap={mmap}), torch.load("inputs.pt")), nprocs=1)
"""


def run_python(code: str, *args: object) -> None:
    Path("code.py").write_text(code)
    done = subprocess.run([sys.executable, "code.py", *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def saved(name: str) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...], torch.Tensor]:
    """model.onnx and inputs.pt in the folder of the test; the module, the inputs, and the outputs of ONNX Runtime."""
    source = MODELS[name]()
    onnx.save(source, "model.onnx")
    feeds = feeds_of(source)
    inputs = tuple(map(torch.from_numpy, feeds.values()))
    torch.save(inputs, "inputs.pt")
    return tonnx.convert("model.onnx"), inputs, torch.from_numpy(runtime_run(Path("model.onnx"), feeds)[0])


@pytest.mark.parametrize("name", MODELS)
def test_another_process_runs_the_model_that_was_saved(name: str) -> None:
    """Also where a model whose class and file are called the same was converted first."""
    model, _, want = saved(name)
    torch.save(model, "a.pt")
    run_python(LOADED)
    torch.testing.assert_close(torch.load("outputs.pt"), want)
    Path("b").mkdir()
    other = next(each for each in MODELS if each != name)
    onnx.save(MODELS[other](), "b/model.onnx")
    Path("outputs.pt").unlink()
    run_python(LOADED, "b/model.onnx")
    torch.testing.assert_close(torch.load("outputs.pt"), want)


@pytest.mark.parametrize("mmap", [False, True])
def test_spawned_processes_get_the_model(mmap: bool) -> None:
    _, _, want = saved("residual")
    run_python(SPAWNED.format(mmap=mmap))
    torch.testing.assert_close(torch.load("outputs.pt"), want)


def test_every_protocol_and_copy_is_the_same_class() -> None:
    model, inputs, want = saved("residual")
    copies = [pickle.loads(pickle.dumps(model, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    replica = model._replicate_for_data_parallel()  # type: ignore[no-untyped-call]  # as torch.nn.DataParallel does
    for each in [*copies, copy.copy(model), copy.deepcopy(model), replica]:
        assert type(each) is type(model)
        torch.testing.assert_close(each(*inputs), want)
    with torch.no_grad():
        next(copies[0].parameters()).zero_()
    torch.testing.assert_close(model(*inputs), want)


def test_what_has_the_same_code_is_the_same_class() -> None:
    model, inputs, want = saved("residual")
    again = tonnx.convert("model.onnx")
    assert type(again) is type(model)
    for parameter in again.parameters():
        torch.nn.init.zeros_(parameter)
    torch.testing.assert_close(model(*inputs), want)
    other = residual_net()
    other.graph.node[-1].attribute[0].i = 0  # Gemm with transB = 0
    other.graph.initializer[-2].CopyFrom(numpy_helper.from_array(np.ones((8, 5), np.float32), "onnx::Gemm_57"))
    other.graph.node.append(helper.make_node("Neg", ["scores"], ["negative"]))
    other.graph.output[0].name = "negative"
    onnx.save(other, "model.onnx")
    assert type(tonnx.convert("model.onnx")) is not type(model)


def test_python_finds_the_code() -> None:
    model, inputs, want = saved("residual")
    loaded = pickle.loads(pickle.dumps(model))
    source = inspect.getsource(type(loaded))
    assert source.startswith("class Model(nn.Module):") and "def forward(self, image):" in source
    traced = torch.fx.symbolic_trace(loaded)
    torch.testing.assert_close(pickle.loads(pickle.dumps(traced))(*inputs), want)
    program = torch.export.export(loaded, inputs)
    torch.export.save(program, "program.pt2")
    torch.testing.assert_close(torch.export.load("program.pt2").module()(*inputs), want)


def test_a_shared_weight_is_stored_once() -> None:
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.standard_normal((256, 256)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["a"], "/first/Gemm", transB=1),
        helper.make_node("MatMul", ["a", "w"], ["y"], "/second/MatMul"),
    ]
    model = tonnx.convert(make_model(nodes, [floats("x", 2, 256)], [floats("y", 2, 256)], [weight]))
    torch.save(model, "model.pt")
    assert Path("model.pt").stat().st_size < 1.2 * 256 * 256 * 4
    x = torch.ones(2, 256)
    loaded = torch.load("model.pt", weights_only=False)
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.mul_(2)
    torch.testing.assert_close(loaded(x), 4 * model(x))


def test_weights_alone_are_loaded_as_those_of_any_module() -> None:
    model, inputs, want = saved("residual")
    torch.save(model.state_dict(), "weights.pt")
    fresh = type(model)()
    fresh.load_state_dict(torch.load("weights.pt"))
    torch.testing.assert_close(fresh.eval()(*inputs), want)


def test_a_derived_class_is_pickled_by_its_name() -> None:
    model, inputs, want = saved("flatten")
    base: Any = type(model)

    class Doubled(base):
        def forward(self, *inputs: torch.Tensor) -> Any:
            return 2 * super().forward(*inputs)

    Doubled.__qualname__ = "Doubled"
    Doubled.__module__ = __name__
    globals()["Doubled"] = Doubled
    try:
        model.__class__ = Doubled
        for each in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert type(each) is Doubled
            torch.testing.assert_close(each(*inputs), 2 * want)
    finally:
        del globals()["Doubled"]


def test_a_generator_goes_on_where_it_was() -> None:
    nodes = [
        helper.make_node("RandomNormal", [], ["r"], "/noise/RandomNormal", shape=[3], seed=5.0),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    model, x = tonnx.convert(make_model(nodes, [floats("x", 3)], [floats("y", 3)])), torch.zeros(3)
    model(x)
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    want = model(x)
    for each in copies:
        assert torch.equal(each(x), want)


def test_code_is_not_run_where_only_weights_are_asked_for() -> None:
    model, _, _ = saved("residual")
    torch.save(model, "a.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"tonnx\._generated\.restore"):
        torch.load("a.pt")

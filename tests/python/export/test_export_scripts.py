"""tonnx.export of modules and functions of torch.jit: loops and branches stay, and ONNX Runtime computes as PyTorch."""

from __future__ import annotations

import gc
import io
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import tonnx

warnings.filterwarnings("ignore", category=DeprecationWarning)


class Halving(nn.Module):
    """Runs as often as its input says."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(self.linear(x))
        while bool(x.abs().max() > 1):
            x = x * 0.5
        return x


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x: Tensor, h: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        steps: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            steps.append(h * scale)
        return torch.stack(steps), h


def loaded(module: Any) -> Any:
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    return torch.jit.load(io.BytesIO(buffer.getvalue()))


def outputs_of(program: Any, *tensors: Tensor) -> list[np.ndarray[Any, Any]]:
    session = onnxruntime.InferenceSession(bytes(program), providers=["CPUExecutionProvider"])
    feeds = {i.name: t.numpy() for i, t in zip(session.get_inputs(), tensors, strict=True)}
    return list(session.run(None, feeds))


def ops_of(program: Any) -> set[str]:
    return {node.op_type for node in program.model_proto.graph.node}


def shape_of(value: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("prepare", [lambda m: m, loaded], ids=["scripted", "loaded"])
def test_a_loop_that_the_data_ends_stays_a_loop(prepare: Any) -> None:
    model = prepare(torch.jit.script(Halving().eval()))
    program = tonnx.export(model, (torch.ones(2, 3),), verify=True)
    assert "Loop" in ops_of(program)
    assert program.input_names == ["x"]
    assert program.output_names == ["output"]
    for scale in (0.1, 10.0, 1000.0):
        x = torch.randn(2, 3) * scale
        np.testing.assert_allclose(outputs_of(program, x)[0], model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_open_sizes_names_and_opset() -> None:
    model = torch.jit.script(Steps().eval())
    program = tonnx.export(
        model,
        (torch.randn(5, 2, 3), torch.zeros(2, 4)),
        input_names=["sequence", "state"],
        output_names=["all", "last"],
        dynamic_axes={"sequence": {0: "time", 1: "batch"}, "state": {0: "batch"}},
        opset_version=17,
    )
    proto = program.model_proto
    assert [i.name for i in proto.graph.input] == ["sequence", "state"]
    assert [shape_of(i) for i in proto.graph.input] == [["time", "batch", 3], ["batch", 4]]
    assert [o.name for o in proto.graph.output] == ["all", "last"]
    assert proto.opset_import[0].version == 17
    for time, batch in ((5, 2), (9, 1)):
        x, h = torch.randn(time, batch, 3), torch.randn(batch, 4)
        for ours, theirs in zip(outputs_of(program, x, h), model(x, h), strict=True):
            np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_dynamic_shapes_and_keywords() -> None:
    model = torch.jit.script(Steps().eval())
    time = torch.export.Dim("time")
    x, h = torch.randn(5, 2, 3), torch.zeros(2, 4)
    program = tonnx.export(model, (x,), kwargs={"h": h, "scale": 2}, dynamic_shapes={"x": {0: time}}, verify=True)
    assert program.input_names == ["x", "h"]  # the number is a part of the model
    assert program.output_names == ["output.0", "output.1"]
    assert shape_of(program.model_proto.graph.input[0]) == ["time", 2, 3]
    longer = torch.randn(8, 2, 3)
    for ours, theirs in zip(program(longer, h=h), model(longer, h, 2.0), strict=True):
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-4, atol=1e-5)


class Structures(nn.Module):
    def forward(
        self, pair: tuple[Tensor, Tensor], more: dict[str, Tensor], parts: list[Tensor], mask: Tensor | None = None
    ) -> dict[str, Tensor]:
        x = pair[0] - pair[1] + more["bias"] + torch.cat(parts, 1)
        if mask is not None:
            x = x * mask
        return {"sum": x.sum(), "x": x}


@pytest.mark.parametrize("mask", [None, torch.tensor([1.0, 0.0, 1.0])], ids=["none", "mask"])
def test_tensors_in_structures_are_inputs_of_their_own(mask: Tensor | None) -> None:
    pair = (torch.randn(2, 3), torch.randn(2, 3))
    parts = [torch.randn(2, 1), torch.randn(2, 2)]
    program = tonnx.export(
        torch.jit.script(Structures()), (pair, {"bias": torch.randn(3)}, parts), kwargs={"mask": mask}, verify=True
    )
    expected = ["pair.0", "pair.1", "more.bias", "parts.0", "parts.1"]
    assert program.input_names == expected + ([] if mask is None else ["mask"])
    assert program.output_names == ["sum", "x"]


def test_a_number_that_a_script_gives_is_an_output() -> None:
    class Counts(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            steps = 0
            while bool(x.sum() < 100):
                x = x * 2
                steps += 1
            return x, steps

    program = tonnx.export(torch.jit.script(Counts()), torch.ones(3), verify=True)
    assert outputs_of(program, torch.full((3,), 10.0))[1] == 2


def test_a_function_and_a_trace() -> None:
    @torch.jit.script
    def clipped(x: Tensor, low: float) -> Tensor:
        if bool(x.sum() > 0):
            x = -x
        return x.clamp(min=low)

    program = tonnx.export(clipped, (torch.ones(3), -2.0), verify=True)
    assert ops_of(program) >= {"If"}
    x = torch.tensor([-5.0, 1.0, 2.0])
    assert outputs_of(program, x)[0].tolist() == clipped(x, -2.0).tolist()
    traced = torch.jit.trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), torch.ones(1, 3))
    tonnx.export(traced, torch.ones(4, 3), verify=True)
    frozen = torch.jit.freeze(torch.jit.script(Halving().eval()))
    tonnx.export(frozen, torch.ones(4, 3), verify=True)


def test_the_mode_is_eval_and_comes_back() -> None:
    model = torch.jit.script(Halving().train())
    program = tonnx.export(model, torch.ones(2, 3), verify=True)
    assert not {"Dropout", "Bernoulli"} & ops_of(program)
    assert model.training
    assert model.drop.training


def test_weights_outlive_the_model(tmp_path: Path) -> None:
    model = torch.jit.script(nn.Linear(300, 200))
    x = torch.randn(2, 300)
    wanted = model(x).detach().numpy()
    program = tonnx.export(model, x)
    del model
    gc.collect()
    program.save(tmp_path / "m.onnx", external_data=True)
    weights = {w.name for w in onnx.load(str(tmp_path / "m.onnx")).graph.initializer}
    assert weights == {"weight", "bias"}
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"input": x.numpy()})[0], wanted, rtol=1e-4, atol=1e-5)


@torch.jit.script
def halved(x: Tensor) -> Tensor:
    while bool(x.abs().max() > 1):
        x = x * 0.5
    return x


@torch.jit.script
def counted(x: Tensor) -> Tensor:
    for i in range(x.size(0)):
        x = x * 0.9 + i
    return x


class Calls(nn.Module):
    """A module of Python that calls scripts: a function of the file, an attribute, and a module."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.counted = counted
        self.script = torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.Tanh()))

    def forward(self, x: Tensor) -> Tensor:
        return halved(self.counted(self.script(self.linear(x))))


def test_scripts_that_a_module_calls_keep_their_loops() -> None:
    model = Calls()
    program = tonnx.export(model, torch.ones(4, 3), dynamic_axes={"x": {0: "rows"}}, verify=True)
    assert "Loop" in ops_of(program)
    assert program.input_names == ["x"]
    weights = {w.name for w in program.model_proto.graph.initializer}
    assert weights >= {"linear.bias", "script.0.bias"}
    for rows in (1, 2, 7):
        x = torch.randn(rows, 3)
        np.testing.assert_allclose(outputs_of(program, x)[0], model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_scripted_keeps_the_error_of_the_trace() -> None:
    class Dynamic(Calls):
        def forward(self, x: Tensor, *rest: Tensor) -> Tensor:  # torch.jit takes no such parameters
            return halved(x)

    with pytest.raises(tonnx.Error, match="decides on the values of tensors"):
        tonnx.export(Dynamic(), torch.ones(4, 3))


class Pair(NamedTuple):
    a: Tensor
    b: Tensor


class OfPair(nn.Module):
    def forward(self, pair: Pair) -> Tensor:
        return pair.a + pair.b


class Forks(nn.Module):
    """What runs beside, and a branch that a trace would leave out."""

    def forward(self, x: Tensor) -> Tensor:
        future = torch.jit.fork(torch.relu, x)
        if bool(x.sum() > 0):
            x = x + 1
        return x + torch.jit.wait(future)


@pytest.mark.parametrize(
    ("model", "args", "options", "text"),
    [
        (Halving(), (torch.ones(3), 1), {}, "the model cannot be called with the example: too many positional"),
        (Halving(), (), {"kwargs": {"y": torch.ones(3)}}, "kwargs names 'y', but the arguments of the model are x"),
        (Halving(), (torch.ones(3),), {"input_names": ["a", "b"]}, "input_names has 2 names, but 1 inputs"),
        (Halving(), (torch.ones(3),), {"output_names": ["x"]}, "output_names has 'x', which is the name of an input"),
        (Halving(), (torch.ones(3),), {"dynamic_axes": {"z": [0]}}, "dynamic_axes names 'z', but the inputs and"),
        (Halving(), (torch.ones(3),), {"dynamic_axes": {"x": [4]}}, "axis 4 of input 'x' is out of range for rank 1"),
        (OfPair(), (Pair(torch.ones(1), torch.ones(1)),), {}, "the argument 'pair' is a Pair: a scripted model takes"),
    ],
)
def test_errors(model: nn.Module, args: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(tonnx.Error) as failure:
        tonnx.export(torch.jit.script(model), args, **options)
    assert str(failure.value).startswith(text)
    assert "\n" not in str(failure.value)


def test_what_runs_beside_is_run_in_its_place() -> None:
    tonnx.export(torch.jit.script(Forks()), torch.ones(3), "m.onnx")
    x = torch.tensor([1.0, -2.0, 3.0])
    (got,) = onnxruntime.InferenceSession("m.onnx").run(None, {"x": x.numpy()})
    np.testing.assert_allclose(got, Forks()(x))


class OfEigenvalues(nn.Module):
    """What is not read, and has a branch that a trace would leave out."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            x = x + 1
        return torch.linalg.eigvals(x).abs()


def test_what_the_reader_refuses_has_its_place() -> None:
    with pytest.raises(tonnx.Error, match=r"eigvals") as failure:
        tonnx.export(torch.jit.script(OfEigenvalues()), torch.ones(3, 3))
    assert ".py" in str(failure.value)

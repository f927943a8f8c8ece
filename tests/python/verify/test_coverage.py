"""verify says how much it proves: sizes at which models run, draws that reach their weights, and what outputs hide."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from safetensors.torch import load_file, save_file

import tonnx
from tonnx._verify.cli import main
from tonnx._verify.gradients import MULTIPLICATION, gradients


def exported(model: torch.nn.Module, example: torch.Tensor, dynamic: dict[int, str] | None = None) -> str:
    """The model as ONNX, and as a module beside it."""
    axes = {"x": dynamic} if dynamic else None
    torch.onnx.export(model.eval(), (example,), "m.onnx", input_names=["x"], dynamic_axes=axes, dynamo=False)
    tonnx.convert("m.onnx", "m.py")
    return "m.onnx"


def change(name: str) -> None:
    """Every element of a weight of the module by about one in twenty."""
    state = load_file("m.safetensors")
    noise = torch.randn(state[name].shape, generator=torch.Generator().manual_seed(0))
    state[name] = (state[name] * (1 + 0.05 * noise)).contiguous()
    save_file(state, "m.safetensors")


def weights() -> list[str]:
    return [name for name, tensor in load_file("m.safetensors").items() if tensor.ndim >= 2]


class Saturated(torch.nn.Module):
    """Whatever goes in, the class that comes out is certain."""

    def __init__(self, ending: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.ending = ending
        self.body = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
        with torch.no_grad():
            self.body[2].bias.copy_(torch.tensor([300.0, 0.0, 0.0, 0.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        return y.argmax(1) if self.ending == "argmax" else getattr(y, self.ending)(*[1] * (self.ending == "softmax"))


@pytest.mark.parametrize("ending", ["softmax", "argmax"])
def test_a_difference_that_no_output_shows_is_one(ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = exported(Saturated(ending), torch.rand(2, 16))
    report = tonnx.verify(source, "m.py")
    assert report and report.coverage is not None and report.coverage.outputs == 0
    assert report.inside > 0 and report.coverage.inside > 0
    change(weights()[0])
    report = tonnx.verify(source, "m.py")
    assert not report and report.is_same_outside and report.is_hidden_difference
    assert "inside, where no output shows it" in report.difference()
    assert main([source, "m.py", "--json", "r.json", "--html", "r.html"]) == 3
    assert "DIFFERENT inside" in capsys.readouterr().out
    assert json.loads(Path("r.json").read_text())["is_hidden_difference"] is True
    assert "inside" in Path("r.html").read_text()
    assert main([source, "m.py", "--outputs-only"]) == 0


def test_statistics_of_a_norm_are_no_obstacle() -> None:
    """PyTorch does not differentiate by them; all that else is in the model is seen."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv1d(3, 4, 3), torch.nn.BatchNorm1d(4), torch.nn.Tanh())
    torch.nn.init.normal_(net[1].running_mean)
    tonnx.export(
        net.eval(), torch.rand(2, 3, 9), "m.onnx", do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE
    )
    tonnx.convert("m.onnx", "m.py")
    report = tonnx.verify("m.onnx", "m.py")
    assert report and report.coverage is not None and report.coverage.is_complete
    assert any("running" in name for name in load_file("m.safetensors"))


def test_draws_go_on_until_the_outputs_depend_on_all_weights() -> None:
    """The second branch is taken for large inputs only."""

    class Branches(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.small, self.large = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.where(x.amax() > 20, self.large(x), self.small(x))

    source = exported(Branches(), torch.rand(2, 8))
    report = tonnx.verify(source, "m.py")
    assert report and report.coverage is not None and report.coverage.is_complete and len(report.draws) > 1
    assert "100 % of the weights" in str(report)
    change("large.weight")
    assert not tonnx.verify(source, "m.py")


def test_windows_choose_the_sizes_that_are_open() -> None:
    """512 samples are looked at in one go, and what comes of them is scaled down again."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv1d(1, 8, 512, stride=256), torch.nn.ReLU(), torch.nn.Conv1d(8, 4, 3, stride=2)
    )
    source = exported(net, torch.rand(1, 1, 4096), {0: "batch", 2: "samples"})
    report = tonnx.verify(source, "m.py")
    size = int(report.inputs["x"].rpartition(",")[2].strip(" ]"))
    assert report and 1024 < size <= 8192 and report.coverage is not None and report.coverage.is_complete


def test_sizes_are_tried_until_the_model_runs() -> None:
    """The rows must be 48, which only running it tells."""
    text = """(float[N, 3, H, W] x) => (float[N, A, B] y) <int64[3] s = {1, 144, -1}, float[64, 5] k> {
    p = MaxPool <kernel_shape = [48, 1]> (x)  t = ReduceMax <keepdims = 1> (p)  u = Reshape(x, s)  y = Mul(u, t) }"""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g {text.replace(", float[64, 5] k", "")}'
    )
    onnx.save(model, "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    assert tonnx.verify("m.onnx", "m.py")


def test_numbers_that_an_input_is_compared_with_are_tried() -> None:
    """A branch for 16000, and another one for all else, each with weights of its own."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.random((8, 8), np.float32), name) for name in ("v", "w")]
    branches = [
        onnx.parser.parse_graph(f"b () => (float[2, 8] {out}) {{ h{out} = MatMul(x, {w}) {out} = Tanh(h{out}) }}")
        for out, w in (("o", "v"), ("p", "w"))
    ]
    nodes = [
        onnx.helper.make_node("Equal", ["rate", "wanted"], ["is"]),
        onnx.helper.make_node("If", ["is"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    values = [onnx.helper.make_tensor_value_info(n, t, s) for n, t, s in (("x", 1, [2, 8]), ("rate", 7, []))]
    result = onnx.helper.make_tensor_value_info("y", 1, [2, 8])
    wanted = numpy_helper.from_array(np.int64(16000), "wanted")
    graph = onnx.helper.make_graph(nodes, "g", values, [result], [*weights, wanted])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    report = tonnx.verify("m.onnx", "m.py", layers=True)
    assert report and report.coverage is not None and report.coverage.is_complete
    assert {"Tanh", "MatMul"} <= {layer.op for layer in report.layers}  # values inside of the branch
    for name in load_file("m.safetensors"):
        tonnx.convert("m.onnx", "m.py")
        change(name)
        assert not tonnx.verify("m.onnx", "m.py"), name


FRAMES = """(float[B, N] x) => (float[B, M, C] y) <int64[1] one = {1}, float[4, 1, 400] w> {
    u = Unsqueeze(x, one)  c = Conv <strides = [160]> (u, w)  t = Transpose <perm = [0, 2, 1]> (c)  y = Relu(t) }"""


def frames() -> str:
    """Sound, of which 400 samples are looked at in one go."""
    text = FRAMES.replace(", float[4, 1, 400] w", "")
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    rng = np.random.default_rng(0)
    model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal((4, 1, 400)).astype("f"), "w"))
    onnx.save(model, "m.onnx")
    return "m.onnx"


def test_simplify_and_run_choose_sizes_as_verify_does() -> None:
    source = frames()
    assert tonnx.simplify(source, "s.onnx", check_n=2)
    Path("c.yml").write_text("models: [{source: m.onnx, targets: [m.py, t.onnx], verify: true}]")
    report = tonnx.run("c.yml")
    assert report and all(result.verified for result in report.results), report


def test_what_cannot_be_judged_is_said_and_kept() -> None:
    """No input is known that this model takes: its rows are as many as the shape that is no constant says."""
    text = """(float[N] x, int64[2] s) => (float[A, B] y) { n = Size(x)  k = ReduceProd <keepdims = 0> (s)
    q = Sub(n, k)  z = Div(n, q)  w = CastLike(z, x)  r = Reshape(x, s)  y = Mul(r, w) }"""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> g {text}')
    onnx.save(model, "m.onnx")
    report = tonnx.simplify("m.onnx", "s.onnx", check_n=1)
    assert report.ok and report.not_judged and Path("s.onnx").exists()
    Path("c.yml").write_text("models: [{source: m.onnx, target: t.onnx, verify: true}]")
    done = tonnx.run("c.yml")
    (result,) = done.results
    assert done and result.status == "done" and not result.verified and result.not_judged
    assert "not judged: " in str(done) and Path("t.onnx").exists()


def test_rounding_is_no_difference_where_input_data_is_given() -> None:
    """A normalisation that became part of long sums: elements that are almost 0 are as exact as the others are large."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[N, 1024, 4] x) => (float[N, 32, 4] y)
        { c = Conv(x, w) y = BatchNormalization(c, s, b, m, v) }"""
    )
    arrays = {"w": 100 * rng.standard_normal((32, 1024, 1)), **{name: rng.random(32) + 0.5 for name in "sbmv"}}
    for name, array in arrays.items():
        model.graph.initializer.append(numpy_helper.from_array(array.astype("f"), name))
    onnx.save(model, "m.onnx")
    x = rng.standard_normal((8, 1024, 4)).astype("f")
    made, ok = tonnx.simplify("m.onnx", check_n=1, input_data={"x": x})
    assert ok and [node.op_type for node in made.graph.node] == ["Conv"]


def test_a_slow_machine_comes_to_the_same_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """All clocks go forward by an hour whenever somebody looks."""
    source = exported(Saturated("softmax"), torch.rand(2, 16))
    usual = tonnx.verify(source, "m.py")
    hours = itertools.count()
    for clock in ("monotonic", "perf_counter", "time", "process_time", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: 3600.0 * next(hours))
    slow = tonnx.verify(source, "m.py")
    assert (slow.draws, slow.inside, slow.coverage) == (usual.draws, usual.inside, usual.coverage)
    assert len(slow.draws) > 1 and slow.inside > 0
    change(weights()[0])
    assert tonnx.verify(source, "m.py").is_hidden_difference


def test_work_is_what_is_computed() -> None:
    """A product of matrices is counted by its multiplications, forth and back."""

    def work(size: int) -> float:
        weight = torch.rand(size, size)
        ones = np.ones((size, size), "f")
        found = gradients({"w": weight}, lambda *_: ones, lambda total: total.add(0, torch.rand(size, size) @ weight))
        assert found is not None
        return found.work

    small, large = work(64), work(512)
    assert work(512) == large
    assert large - small > (512**3 - 64**3) * 2 * MULTIPLICATION  # one product forth and one back


class Calibration(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._data = iter([{"x": rng.random((1, 3, 16, 16)).astype(np.float32)} for _ in range(3)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._data, None)


def test_quantised_layers_are_compared_by_their_integers() -> None:
    """The module has them as floats, and a pool of them where the file has one of what they stand for. What is off by a
    step in an output is no difference; five in a hundred of the scales of a layer inside are."""
    torch.manual_seed(0)
    convs = [torch.nn.Conv2d(*sizes, 3, padding=1) for sizes in ((3, 16), (16, 16), (16, 16), (16, 16))]
    body = [convs[0], torch.nn.ReLU(), torch.nn.MaxPool2d(2), *(x for c in convs[1:] for x in (c, torch.nn.ReLU()))]
    exported(torch.nn.Sequential(*body, torch.nn.Flatten(), torch.nn.Linear(1024, 10)), torch.rand(1, 3, 16, 16))
    quantize_static("m.onnx", "q.onnx", Calibration(), quant_format=QuantFormat.QDQ, per_channel=True)
    tonnx.convert("q.onnx", "m.py")
    report = tonnx.verify("q.onnx", "m.py")
    assert report and report.inside >= 6
    scales = [name for name, tensor in load_file("m.safetensors").items() if list(tensor.shape) == [16, 1, 1]]
    change(scales[1])
    assert not tonnx.verify("q.onnx", "m.py")

"""Models whose layers PyTorch quantised (torch.ao.quantization): ONNX Runtime and generated code compute the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.ao.quantization as tq
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.ao.nn import quantized as nnq
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

import tonnx
from tonnx._export.interface import proof
from tonnx._runtime import open_session

pytestmark = pytest.mark.filterwarnings("ignore")
ENGINE = next((e for e in ("x86", "fbgemm", "qnnpack") if e in torch.backends.quantized.supported_engines), "none")


@pytest.fixture(autouse=True)
def engine() -> None:
    if ENGINE == "none":
        pytest.skip("this build of PyTorch computes nothing quantised")
    torch.backends.quantized.engine = ENGINE
    torch.manual_seed(3)


def quantised(model: nn.Module, *args: Tensor, fuse: tuple[list[str], ...] = ()) -> nn.Module:
    """After training, as PyTorch does it module by module."""
    model.eval()
    if fuse:
        tq.fuse_modules(model, [list(names) for names in fuse], inplace=True)  # type: ignore[no-untyped-call]
    model.qconfig = tq.get_default_qconfig(ENGINE)  # type: ignore[assignment]
    with torch.no_grad():
        prepared = tq.prepare(model)  # type: ignore[no-untyped-call]
        for _ in range(3):
            prepared(*(torch.randn_like(x) for x in args))
        prepared(*args)
    return tq.convert(prepared)  # type: ignore[no-any-return, no-untyped-call]


def check(model: nn.Module, *args: Tensor, atol: float = 1e-6, **options: Any) -> onnx.ModelProto:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = model(*args)
        keys = list(model.state_dict())
        tonnx.export(model, args, "m.onnx", **options)
        torch.testing.assert_close(model(*args), want, rtol=0, atol=0)  # it is what it was
        assert list(model.state_dict()) == keys
        made = onnx.load("m.onnx")
        session = open_session(made.SerializeToString())
        feeds = {value.name: x.numpy() for value, x in zip(session.get_inputs(), args, strict=True)}
        got = torch.from_numpy(np.asarray(session.run(None, feeds)[0]))
        torch.testing.assert_close(got, want, rtol=1e-6, atol=atol)
        torch.testing.assert_close(tonnx.convert("m.onnx")(*args), want, rtol=1e-6, atol=atol)
    return made


class Between(nn.Module):
    """A quantised tensor in, and out."""

    def __init__(self, layer: Callable[..., Any]) -> None:
        super().__init__()
        self.quant, self.layer, self.dequant = tq.QuantStub(), layer, tq.DeQuantStub()  # type: ignore[no-untyped-call]

    def forward(self, x: Tensor) -> Any:
        return self.dequant(self.layer(self.quant(x)))


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=2, dilation=2), (2, 4, 9)),
    "conv2d": (lambda: nn.Conv2d(4, 6, (3, 2), stride=(1, 2), padding=(1, 0), groups=2), (2, 4, 7, 8)),
    "conv2d without bias": (lambda: nn.Conv2d(4, 6, 1, bias=False), (2, 4, 5, 5)),
    "conv2d of reflections": (lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"), (2, 4, 5, 5)),
    "conv3d": (lambda: nn.Conv3d(2, 4, 2), (1, 2, 4, 5, 6)),
    "linear": (lambda: nn.Linear(6, 5), (2, 3, 6)),
    "hardswish": (lambda: nn.Hardswish(), (2, 6)),
    "elu": (lambda: nn.ELU(0.7), (2, 6)),
    "leaky_relu": (lambda: nn.LeakyReLU(0.2), (2, 6)),
    "layer_norm": (lambda: nn.LayerNorm(6), (2, 3, 6)),
    "group_norm": (lambda: nn.GroupNorm(2, 6), (2, 6, 5)),
    "instance_norm": (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 5, 5)),
    "batch_norm": (lambda: nn.BatchNorm2d(3), (2, 3, 5, 5)),
    "relu6": (lambda: nn.ReLU6(), (2, 6)),
}


def step_of(model: nn.Module, x: Tensor) -> float:
    """How far two results are apart where a sum of floats fell on the other side of half a step."""
    with torch.no_grad():
        return model.layer(model.quant(x)).q_scale() * 1.001  # type: ignore[operator]


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    build, shape = LAYERS[name]
    x = torch.randn(*shape)
    model = quantised(Between(build()), x)
    assert type(model.layer).__module__.startswith("torch.ao.nn.quantized") or name == "relu6", type(model.layer)
    check(model, x, atol=step_of(model, x))


@pytest.mark.parametrize("dims", [1, 2])
def test_transposed_convolutions(dims: int) -> None:
    """PyTorch quantises their weights by tensor only."""
    kind = (nn.ConvTranspose1d, nn.ConvTranspose2d)[dims - 1]
    model = Between(kind(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)).eval()
    model.qconfig = tq.QConfig(tq.default_observer, tq.default_weight_observer)  # type: ignore[assignment]
    x = torch.randn(2, 4, *[5] * dims)
    with torch.no_grad():
        prepared = tq.prepare(model)  # type: ignore[no-untyped-call]
        prepared(x)
    done = tq.convert(prepared)  # type: ignore[no-untyped-call]
    check(done, x, atol=step_of(done, x))


class Block(nn.Module):
    """What models are made of, with the names that the file is to have."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()  # type: ignore[no-untyped-call]
        self.conv, self.norm, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.point = nn.Conv2d(8, 8, 1, groups=2)
        self.sums, self.parts, self.gate = nnq.FloatFunctional(), nnq.FloatFunctional(), nnq.FloatFunctional()
        self.fc = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.norm(self.conv(self.quant(x))))
        y = self.sums.add_relu(x, self.point(x))
        low, high = self.gate.mul(x, y).chunk(2, dim=1)
        x = self.parts.cat([high, y, low], dim=1)
        x = F.adaptive_avg_pool2d(F.max_pool2d(x, 2), 1)
        return self.dequant(self.fc(torch.flatten(x, 1)))  # type: ignore[no-any-return]


def test_a_model_of_many_layers() -> None:
    x = torch.randn(2, 3, 8, 8)
    model = quantised(Block(), x, fuse=(["conv", "norm", "relu"],))
    made = check(model, x, atol=model.fc.scale * 1.001)  # type: ignore[operator, union-attr]
    weights = {t.name: onnx.TensorProto.DataType.Name(t.data_type) for t in made.graph.initializer}
    for layer in ("conv", "point", "fc"):
        assert weights[f"{layer}.weight"] == "INT8"
        assert weights[f"{layer}.weight_scale"] == weights[f"{layer}.bias"] == "FLOAT"


class Deep(nn.Module):
    """Its sums are long, and fall on the other side of half a step here and there."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()  # type: ignore[no-untyped-call]
        self.layers = nn.Sequential(*[nn.Conv2d(32, 32, 3, padding=1) for _ in range(6)])

    def forward(self, x: Tensor) -> Tensor:
        return self.dequant(self.layers(self.quant(x)))  # type: ignore[no-any-return]


def test_verify_allows_for_steps() -> None:
    x = torch.randn(2, 32, 12, 12)
    model = quantised(Deep(), x)
    tonnx.export(model, (x,), "m.onnx", verify=True)


def test_verify_sees_what_steps_do_not_explain(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(2, 32, 12, 12)
    model = quantised(Deep(), x)
    run = proof.run
    monkeypatch.setattr(proof, "run", lambda *args, **options: [y * 1.3 for y in run(*args, **options)])
    with pytest.raises(tonnx.Error, match="differs from PyTorch"):
        tonnx.export(model, (x,), "m.onnx", verify=True)


def test_open_sizes() -> None:
    x = torch.randn(2, 3, 8, 8)
    model = quantised(Block(), x, fuse=(["conv", "norm", "relu"],))
    check(model, x, atol=model.fc.scale * 1.001, dynamic_axes={"x": {0: "n"}}, input_names=["x"])  # type: ignore[operator, union-attr]


def test_graphs_that_pytorch_quantised() -> None:
    x = torch.randn(2, 3, 8, 8)
    float_model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)
    ).eval()
    prepared = prepare_fx(float_model, tq.get_default_qconfig_mapping(ENGINE), (x,))
    prepared(x)
    model = convert_fx(prepared)
    check(model, x, atol=getattr(model, "4").scale * 1.001)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], bool]] = {  # and whether it rounds
    "moves": (lambda x: x.permute(0, 2, 3, 1).contiguous().view(2, -1).unsqueeze(1)[:, :, 3:].flip(0), False),
    "splits": (lambda x: torch.cat([*x.split(1, 1)[::-1], *x.unsqueeze(0).unbind(0)[0].chunk(2, 1)], 1), False),
    "relu": (lambda x: F.relu(torch.relu(x).relu()), False),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, stride=2, padding=1), False),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, padding=1), True),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), True),
    "mean": (lambda x: x.mean([2, 3]), True),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), False),
    "bilinear": (lambda x: F.interpolate(x, size=(9, 11), mode="bilinear"), True),
    "hardtanh": (lambda x: F.hardtanh(x, -0.31, 0.77), False),
    "in place": (lambda x: (F.hardtanh(x, -0.31, 0.77, inplace=True), torch.relu_(x[:, :1]), x)[-1], False),
    "clamp": (lambda x: torch.clamp(x, -0.31, 0.77), False),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3), True),
    "sigmoid": (lambda x: torch.sigmoid(x), True),
    "tanh": (lambda x: torch.tanh(x), True),
    "hardsigmoid": (lambda x: F.hardsigmoid(x), True),
    "by a number": (lambda x: torch.ops.quantized.mul_scalar(x, 2.5), False),
    "softmax": (nnq.Softmax(-1, 0.004, 1), True),
    "sigmoid of given steps": (nnq.Sigmoid(0.0041, 2), True),
    "zeros around": (lambda x: F.pad(x, (1, 2)), False),
    "sizes": (lambda x: x.reshape(x.size(0), x.shape[1], x.numel() // (len(x) * x.shape[1])), False),
}


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, dtype: torch.dtype) -> None:
    function, rounds = FUNCTIONS[name]
    model = Between(function).eval()
    model.quant = nnq.Quantize(torch.tensor([0.021]), torch.tensor([110 if dtype is torch.quint8 else -9]), dtype)  # type: ignore[no-untyped-call]
    model.dequant = nnq.DeQuantize()  # type: ignore[no-untyped-call]
    x = torch.randn(2, 3, 8, 6)
    try:
        with torch.no_grad():
            model(x)
    except (RuntimeError, NotImplementedError) as e:
        pytest.skip(f"PyTorch has it not: {str(e)[:80]}")
    check(model, x, atol=step_of(model, x) if rounds else 1e-6)


@pytest.mark.parametrize("x", [torch.randn(3, 16) * 3, torch.rand(3, 16) + 2, torch.zeros(3, 16)])
def test_layers_that_quantise_what_they_are_given(x: Tensor) -> None:
    """Steps follow from the example: they are those of the run in the file too."""
    floats = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8, bias=False)).eval()
    model = tq.quantize_dynamic(floats, {nn.Linear})  # type: ignore[no-untyped-call]
    made = check(model, x, atol=1e-5)
    session = open_session(made.SerializeToString())
    other = torch.randn(3, 16) * 0.2
    with torch.no_grad():
        want = model(other)
    got = session.run(None, {session.get_inputs()[0].name: other.numpy()})[0]
    torch.testing.assert_close(torch.from_numpy(np.asarray(got)), want, rtol=1e-5, atol=1e-5)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5)

    def forward(self, x: Tensor) -> Any:
        return self.lstm(x)[0]


def without_end() -> nn.Module:
    model = quantised(Between(nn.Conv2d(1, 2, 1)), torch.randn(1, 1, 2, 2))
    model.dequant = nn.Identity()
    return model


REFUSED: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "recurrent": (lambda: tq.quantize_dynamic(Recurrent().eval(), {nn.LSTM}), (3, 2, 4), "'lstm._all_weight_values"),  # type: ignore[no-untyped-call]
    "half": (
        lambda: tq.quantize_dynamic(nn.Sequential(nn.Linear(4, 5)), dtype=torch.float16),  # type: ignore[no-untyped-call]
        (3, 4),
        "the weights of '0._packed_params' are packed as LinearPackedParamsBase",
    ),
    "sort": (
        lambda: quantised(Between(nn.Sequential(nn.Conv2d(1, 2, 1), Sorted())), torch.randn(1, 1, 2, 2)),
        (1, 1, 2, 2),
        "the model calls 'sort' on tensors that PyTorch has quantised, which is not exported",
    ),
    "without end": (without_end, (1, 1, 2, 2), "a result of the model is quantised; torch.ao.quantization.DeQuantStub"),
}


class Sorted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sort(x)[0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_said_is_refused(name: str) -> None:
    build, shape, said = REFUSED[name]
    model = build()
    before = str(model(torch.ones(shape)))
    with pytest.raises(tonnx.Error) as refused:
        tonnx.export(model, (torch.ones(shape),), "m.onnx")
    assert said in str(refused.value)
    assert str(model(torch.ones(shape))) == before

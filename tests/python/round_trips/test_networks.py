"""Whole networks: exported by PyTorch, converted back, and compared with the original at several batch sizes."""

from __future__ import annotations

import io
import warnings

import pytest
import torch
from torch import nn

import tonnx


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU6(),
            nn.Conv2d(8, 8, 3, padding=1, groups=8),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).flatten(1))


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], **options: object) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.rnn = kind(6, 7, batch_first=True, bidirectional=True, **options)
        self.head = nn.Linear(14, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        y, _ = self.rnn(self.embedding(ids))
        return self.head(y[:, -1])


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.randn(1, 4, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x + self.position).mean(1)


class Branches(nn.Module):
    """Scripted: the loop and the branch are in the ONNX file."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(int(x.size(1))):
            y = self.step(x)
            if bool(y.sum() > 0):
                x = torch.tanh(y) + x
            else:
                x = x - y
        return x


def images(batch: int) -> torch.Tensor:
    return torch.randn(batch, 3, 12, 12)


def tokens(batch: int) -> torch.Tensor:
    return torch.randint(0, 11, (batch, 5))


NETWORKS = {
    "classifier": (Classifier, images),
    "lstm": (lambda: Recurrent(nn.LSTM, num_layers=2), tokens),
    "gru": (lambda: Recurrent(nn.GRU), tokens),
    "rnn": (lambda: Recurrent(nn.RNN, nonlinearity="relu"), tokens),
    "encoder": (Encoder, lambda batch: torch.randn(batch, 4, 8)),
    "branches": (lambda: torch.jit.script(Branches()), lambda batch: torch.randn(batch, 4)),
}


def exported(network: nn.Module, x: torch.Tensor) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, (x,), file, dynamo=False, opset_version=17, input_names=["x"], dynamic_axes={"x": {0: "batch"}}
        )
    return file.getvalue()


@pytest.fixture(params=NETWORKS)
def pair(request: pytest.FixtureRequest) -> tuple[str, nn.Module, nn.Module]:
    torch.manual_seed(0)
    make, sample = NETWORKS[request.param]
    network = make().eval()
    for weight in network.parameters():  # none like another: the exporter would make them one
        nn.init.uniform_(weight, -0.5, 0.5)
    return request.param, network, tonnx.convert(exported(network, sample(2)))


def test_one_module_for_all_batch_sizes(pair: tuple[str, nn.Module, nn.Module]) -> None:
    name, network, module = pair
    for batch in (1, 3, 7):
        x = NETWORKS[name][1](batch)
        torch.testing.assert_close(module(x), network(x), rtol=1e-4, atol=1e-5)


def test_gradients_reach_every_weight(pair: tuple[str, nn.Module, nn.Module]) -> None:
    name, network, module = pair
    x = NETWORKS[name][1](3)
    for each in (network, module):
        each(x).square().sum().backward()
    assert all(weight.grad is not None for weight in module.parameters())
    # weights may be laid out in another way, but as many numbers are as far from where they should be
    ours = sum(float(weight.grad.square().sum()) for weight in module.parameters() if weight.grad is not None)
    theirs = sum(float(weight.grad.square().sum()) for weight in network.parameters() if weight.grad is not None)
    if name != "classifier":  # whose BatchNorm the exporter folds into the convolution
        assert ours == pytest.approx(theirs, rel=1e-3)


def test_layers_are_modules(pair: tuple[str, nn.Module, nn.Module]) -> None:
    name, _, module = pair
    kinds = {type(part).__name__ for part in module.modules()}
    expected = {
        "classifier": {"Conv2d", "Linear"},
        "lstm": {"Embedding", "LSTM", "Linear"},
        "gru": {"Embedding", "GRU", "Linear"},
        "rnn": {"Embedding", "RNN", "Linear"},
        "encoder": {"LayerNorm", "Linear"},
        "branches": {"Linear"},
    }
    assert expected[name] <= kinds


@pytest.mark.parametrize("name", ["classifier", "lstm", "encoder"])
def test_export_with_any_batch(name: str) -> None:
    make, sample = NETWORKS[name]
    network = make().eval()
    module = tonnx.convert(exported(network, sample(2)))
    program = torch.export.export(module, (sample(3),), dynamic_shapes=({0: torch.export.Dim("batch")},))
    x = sample(5)
    torch.testing.assert_close(program.module()(x), network(x), rtol=1e-4, atol=1e-5)

"""Weights that modules of the original share are one parameter under all of their names."""

from __future__ import annotations

import copy
import importlib.util
import pickle
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

import tonnx


class Stack(nn.Module):
    def __init__(self, shared: nn.Embedding, is_own: bool) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(17, 8) if is_own else shared
        self.embed_tokens.weight = shared.weight
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(self.embed_tokens(x))


class Pair(nn.Module):
    """An encoder and a decoder with one table of words, which gives the scores at the end as well."""

    def __init__(self, is_own: bool = True) -> None:
        super().__init__()
        self.shared = nn.Embedding(17, 8)
        self.encoder = Stack(self.shared, is_own)
        self.decoder = Stack(self.shared, is_own)
        self.lm_head = nn.Linear(8, 17, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.decoder(y) + self.encoder(x).mean(1, keepdim=True))


class Single(nn.Module):
    """A table of words that gives the scores as well, beside a layer that has the same numbers by chance."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(8, 8)
        self.layer = nn.Linear(8, 8, bias=False)
        self.head = nn.Linear(8, 8, bias=False)
        self.head.weight = self.embed.weight
        self.layer.weight = nn.Parameter(self.embed.weight.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.layer(self.embed(x))))


PAIR_KEYS = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}


def export(model: nn.Module, inputs: tuple[torch.Tensor, ...], exporter: str, path: Path) -> None:
    if exporter == "tonnx":
        tonnx.export(model, inputs, path)
    else:
        torch.onnx.export(model, inputs, path, dynamo=False, do_constant_folding=exporter == "folded")


def loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model


def assert_tied(model: nn.Module, names: set[str]) -> None:
    parameters = dict(model.named_parameters(remove_duplicate=False))
    assert len({id(parameters[name]) for name in names}) == 1


@pytest.fixture(params=["torchscript", "folded", "tonnx"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Pair, tuple[torch.Tensor, ...], Path]:
    model, inputs = Pair().eval(), (torch.randint(17, (2, 5)), torch.randint(17, (2, 4)))
    export(model, inputs, request.param, tmp_path / "pair.onnx")
    return model, inputs, tmp_path / "pair.onnx"


def test_a_file(pair: tuple[Pair, tuple[torch.Tensor, ...], Path], tmp_path: Path) -> None:
    original, inputs, path = pair
    tonnx.convert(path, tmp_path / "net.py")
    model = loaded(tmp_path / "net.py").load()
    torch.testing.assert_close(model(*inputs), original(*inputs))
    assert set(model.state_dict()) == set(original.state_dict())
    Pair().load_state_dict(model.state_dict(), strict=True)
    assert_tied(model, PAIR_KEYS)
    stored = safetensors.torch.load_file(tmp_path / "net.safetensors")
    assert len(PAIR_KEYS & set(stored)) == 1  # a weight takes its room once


def test_training_and_loading_again(pair: tuple[Pair, tuple[torch.Tensor, ...], Path], tmp_path: Path) -> None:
    original, inputs, path = pair
    tonnx.convert(path, tmp_path / "net.py")
    kind = loaded(tmp_path / "net.py")
    model = kind.load()
    for each in (model, original):
        each(*inputs).logsumexp(-1).sum().backward()
        torch.optim.SGD(each.parameters(), 0.1).step()
    torch.testing.assert_close(model(*inputs), original(*inputs))
    torch.save(model.state_dict(), tmp_path / "trained.pt")
    again = kind()
    again.load_state_dict(torch.load(tmp_path / "trained.pt"))
    torch.testing.assert_close(again.eval()(*inputs), original(*inputs))
    assert_tied(again, PAIR_KEYS)
    safetensors.torch.save_model(model, str(tmp_path / "trained.safetensors"))
    if "shared.weight" in safetensors.torch.load_file(tmp_path / "trained.safetensors"):
        torch.testing.assert_close(kind.load(tmp_path / "trained.safetensors")(*inputs), original(*inputs))


def test_in_memory(pair: tuple[Pair, tuple[torch.Tensor, ...], Path], tmp_path: Path) -> None:
    original, inputs, path = pair
    for mmap in (False, True):
        model = tonnx.convert(path, mmap=mmap)
        assert_tied(model, PAIR_KEYS)
        for each in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            torch.testing.assert_close(each(*inputs), original(*inputs))
            assert_tied(each, PAIR_KEYS)
    tonnx.save(model, tmp_path / "saved.py")
    saved = loaded(tmp_path / "saved.py").load()
    torch.testing.assert_close(saved(*inputs), original(*inputs))
    assert_tied(saved, PAIR_KEYS)


@pytest.mark.parametrize("target", ["net.pth", "net.safetensors"])
def test_weights_alone(target: str, pair: tuple[Pair, tuple[torch.Tensor, ...], Path], tmp_path: Path) -> None:
    original, inputs, path = pair
    tonnx.convert(path, tmp_path / target)
    load = safetensors.torch.load_file if target.endswith("safetensors") else torch.load
    other = Pair().eval()
    other.load_state_dict(load(tmp_path / target), strict=True)
    torch.testing.assert_close(other(*inputs), original(*inputs))


@pytest.mark.parametrize("target", ["net.pt2", "net.pt"])
def test_other_files(target: str, pair: tuple[Pair, tuple[torch.Tensor, ...], Path], tmp_path: Path) -> None:
    original, inputs, path = pair
    tonnx.convert(path, tmp_path / target)
    model = torch.export.load(tmp_path / target).module() if target.endswith("2") else torch.jit.load(tmp_path / target)
    torch.testing.assert_close(model(*inputs), original(*inputs))


@pytest.mark.parametrize("exporter", ["torchscript", "tonnx"])
def test_equal_numbers_under_another_name_are_another_weight(exporter: str, tmp_path: Path) -> None:
    original, x = Single().eval(), torch.randint(8, (2, 5))
    export(original, (x,), exporter, tmp_path / "single.onnx")
    model = tonnx.convert(tmp_path / "single.onnx")
    torch.testing.assert_close(model(x), original(x))
    Single().load_state_dict(model.state_dict(), strict=True)
    assert_tied(model, {"embed.weight", "head.weight"})
    assert model.get_parameter("layer.weight") is not model.get_parameter("embed.weight")


@pytest.mark.parametrize("exporter", ["torchscript", "tonnx"])
def test_one_module_under_several_names(exporter: str, tmp_path: Path) -> None:
    """An exporter may know only one of them: no others are made up."""
    original, inputs = Pair(is_own=False).eval(), (torch.randint(17, (2, 5)), torch.randint(17, (2, 4)))
    export(original, inputs, exporter, tmp_path / "pair.onnx")
    model = tonnx.convert(tmp_path / "pair.onnx")
    torch.testing.assert_close(model(*inputs), original(*inputs))
    assert set(model.state_dict()) <= set(original.state_dict())


def test_one_layer_that_is_called_twice_stays_one(tmp_path: Path) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(9, 4)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.embed(x) + self.embed(y)

    original, inputs = Twice(), (torch.randint(9, (3,)), torch.randint(9, (3,)))
    export(original, inputs, "torchscript", tmp_path / "twice.onnx")
    model = tonnx.convert(tmp_path / "twice.onnx")
    assert set(model.state_dict()) == {"embed.weight"}
    torch.testing.assert_close(model(*inputs), original(*inputs))

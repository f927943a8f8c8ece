"""Inputs of TorchScript archives: lists, tuples, dicts and named tuples are flat, and traces tell what they took."""

from __future__ import annotations

import subprocess
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple  # noqa: UP035  as TorchScript asks for them

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

Cli = Callable[..., subprocess.CompletedProcess[str]]

warnings.filterwarnings("ignore", category=DeprecationWarning)


def rand(*sizes: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(sizes).astype(np.float32))


class Sums(nn.Module):
    def forward(self, xs: List[Tensor], scale: float) -> Tensor:  # noqa: UP006
        total = torch.zeros_like(xs[0])
        for i, x in enumerate(xs):
            total = total + x * (i + 1)
        return total * scale


class State(NamedTuple):
    hidden: Tensor
    cell: Tensor


class Steps(nn.Module):
    def forward(self, x: Tensor, state: State, pair: Tuple[Tensor, Tensor]) -> Tensor:  # noqa: UP006
        return x * state.hidden + state.cell - pair[0] * pair[1]


class Features(nn.Module):
    def forward(self, maps: Dict[str, Tensor], weight: Optional[List[Tensor]] = None) -> Tensor:  # noqa: UP006, UP045
        total = maps["low"] - maps["high"]
        if weight is not None:
            total = total * weight[0]
        return total


A, B, C = rand(2, 3), rand(2, 3) + 1, rand(2, 3) * 2
CASES: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...], list[str], dict[str, Tensor]]] = {
    "list": (
        Sums,
        ([A, B, C], 2.0),
        ["xs.0:2,3", "xs.1:2,3", "0.2:2,3"],
        {"xs_0": A, "xs_1": B, "xs_2": C, "scale": torch.tensor(2.0)},
    ),
    "named tuple": (
        Steps,
        (A, State(B, C), (C, A)),
        ["x:2,3", "state.hidden:-1,3", "state.cell:2,3", "pair.0:2,3", "2.1:2,3"],
        {"x": A, "state_hidden": B, "state_cell": C, "pair_0": C, "pair_1": A},
    ),
    "dict": (Features, ({"low": A, "high": B},), ["maps.low:2,3", "0.high:2,3"], {"maps_low": A, "maps_high": B}),
    "optional list": (
        Features,
        ({"low": A, "high": B}, [C]),
        ["maps.low:2,3", "maps.high:2,3", "weight.0:2,3"],
        {"maps_low": A, "maps_high": B, "weight_0": C},
    ),
}


def run(path: str, feeds: dict[str, Tensor]) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert {i.name for i in session.get_inputs()} == feeds.keys()
    return np.asarray(session.run(None, {name: tensor.numpy() for name, tensor in feeds.items()})[0])


@pytest.mark.parametrize("name", CASES)
def test_parts_are_inputs(cli: Cli, name: str) -> None:
    build, args, shapes, feeds = CASES[name]
    module = torch.jit.script(build())
    torch.jit.save(module, "m.pt")
    done = cli("convert", "m.pt", "m.onnx", *(word for shape in shapes for word in ("--input-shape", shape)))
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(run("m.onnx", feeds), module(*args).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ([], "the input 'xs' is a List: --input-shape xs.0:1,3,224,224 gives the shape of its first element"),
        (["xs.0:2,3", "xs.2:2,3"], "the input 'xs' is a List of 2, and has no '2'"),
        (["xs.0:2,3", "xs.one:2,3"], "the input 'xs' is a List of 2, and has no 'one'"),
        (["xs.0:2,3", "scale.4:2"], "the model has no input 'scale.4'"),
        (["ys.0:2,3"], "the model has no input 'ys.0'; it has: xs, scale"),
    ],
)
def test_mistakes_are_named(cli: Cli, shapes: list[str], said: str) -> None:
    torch.jit.save(torch.jit.script(Sums()), "m.pt")
    done = cli("convert", "m.pt", "m.onnx", *(word for shape in shapes for word in ("--input-shape", shape)))
    assert done.returncode == 1 and said in done.stderr, done.stderr


class Traced(nn.Module):
    def forward(self, maps: dict[str, Tensor], ids: Tensor, more: list[Tensor]) -> Tensor:
        return maps["low"] - maps["high"] * ids + more[0] / more[1]


def traced() -> tuple[Any, tuple[Any, ...], dict[str, Tensor]]:
    ids = torch.tensor([[1, 2, 3]])
    args = ({"low": A, "high": B}, ids, [C, B])
    module = torch.jit.trace(Traced(), args, strict=False)  # type: ignore[no-untyped-call]
    torch.jit.save(module, "m.pt")
    return module, args, {"maps_low": A, "maps_high": B, "ids": ids, "more_0": C, "more_1": B}


def test_a_trace_tells_its_inputs(cli: Cli) -> None:
    module, args, feeds = traced()
    done = cli("convert", "m.pt", "m.onnx")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(run("m.onnx", feeds), module(*args).numpy(), rtol=1e-6)


def test_what_is_given_counts_more_than_what_was_traced(cli: Cli) -> None:
    module, _, feeds = traced()
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "ids:-1,3", "--input-type", "ids:int32")
    assert done.returncode == 0, done.stderr
    feeds["ids"] = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int32)
    wanted = module({"low": A, "high": B}, feeds["ids"], [C, B])
    np.testing.assert_allclose(run("m.onnx", feeds), wanted.numpy(), rtol=1e-6)


def with_traced(data: bytes) -> None:
    """Puts another traced_inputs.pkl into the archive."""
    with zipfile.ZipFile("m.pt") as old, zipfile.ZipFile("bad.pt", "w") as new:
        for name in old.namelist():
            new.writestr(name, data if name.endswith("traced_inputs.pkl") else old.read(name))


def many_inputs() -> bytes:
    """Lists of one list, again and again, without a tensor at their end."""
    import pickle

    level: Any = []
    for _ in range(12):
        level = [level] * 100
    return pickle.dumps({"forward": [level]}, protocol=2)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "the input 'maps' is a Dict"),
        (b"\x80", "traced_inputs.pkl"),
        (b"", "traced_inputs.pkl"),
        (many_inputs(), "the archive was traced with too many inputs"),
    ],
    ids=["a call", "cut", "empty", "many"],
)
def test_hostile_traces(cli: Cli, data: bytes, said: str) -> None:
    traced()
    with_traced(data)
    done = cli("convert", "bad.pt", "m.onnx")
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert not Path("m.onnx").exists()

"""Blocks of one number that are joined to a tensor are a pad, and what is put at constant places is put by slices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper, numpy_helper
from torch import nn

import tonnx

HEADER = '<ir_version: 10, opset_import: ["" : 18]>'


def model_of(text: str, **constants: np.ndarray) -> onnx.ModelProto:
    """Constants are nodes, as exporters have what the model computes of nothing."""
    model = onnx.parser.parse_model(HEADER + text)
    for name, array in constants.items():
        model.graph.node.insert(0, helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
    return model


def converted(model: onnx.ModelProto, folder: Path, *feeds: np.ndarray) -> tuple[nn.Module, str]:
    """The module, after it was compared with ONNX Runtime, and its code."""
    module = tonnx.convert(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    want = session.run(None, dict(zip((i.name for i in session.get_inputs()), feeds, strict=True)))[0]
    got = module(*map(torch.from_numpy, feeds)).detach().numpy()
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    tonnx.convert(model, folder / "net.py")
    return module, (folder / "net.py").read_text()


ZEROS = np.zeros((2, 3, 4), np.float32)
X = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
PAD_TEXT = "g (float[2, 5, 4] x) => (float[2, {n}, 4] y) {{ y = Concat<axis={axis}>({parts}) }}"


@pytest.mark.parametrize(
    ("parts", "n", "axis", "code"),
    [
        ("x, z", 8, 1, "F.pad(x, (0, 0, 0, 3))"),
        ("z, x", 8, -2, "F.pad(x, (0, 0, 3, 0))"),
        ("z, x, z", 11, 1, "F.pad(x, (0, 0, 3, 3))"),
    ],
)
def test_zeros(parts: str, n: int, axis: int, code: str, tmp_path: Path) -> None:
    module, text = converted(model_of(PAD_TEXT.format(n=n, axis=axis, parts=parts), z=ZEROS), tmp_path, X)
    assert code in text
    assert not module.state_dict()


@pytest.mark.parametrize(
    ("dtype", "number", "code"),
    [("float", 1.5, "value=1.5"), ("int64", -3, "value=-3"), ("bool", True, "value=True"), ("int64", 0, "(2, 0))")],
)
def test_another_number(dtype: str, number: float, code: str, tmp_path: Path) -> None:
    kind = {"float": np.float32, "int64": np.int64, "bool": np.bool_}[dtype]
    text = f"g ({dtype}[2, 3] x) => ({dtype}[2, 5] y) {{ y = Concat<axis=1>(z, x) }}"
    x = np.array([[0, 1, 2], [1, 0, 1]]).astype(kind)
    module, source = converted(model_of(text, z=np.full((2, 2), number, kind)), tmp_path, x)
    assert "F.pad(x, " in source
    assert code in source
    assert not module.state_dict()


def test_zeros_of_open_sizes(tmp_path: Path) -> None:
    text = """g (float[n, 5] x) => (float[n, 7] y) <int64[1] two = {2}> {
        s = Shape<start=0, end=1>(x) sizes = Concat<axis=0>(s, two) z = ConstantOfShape(sizes) y = Concat<axis=1>(x, z) }"""
    _, source = converted(model_of(text), tmp_path, X[0, :, :].T.copy())
    assert "F.pad(x, (0, 2))" in source


@pytest.mark.parametrize(
    ("parts", "constants"),
    [
        ("x, z", {"z": np.concatenate([ZEROS[:, :2], ZEROS[:, :1] + 1], axis=1)}),  # two numbers in one block
        ("x, z", {"z": -ZEROS}),  # a pad has no negative zero
        ("x, z", {"z": ZEROS + np.inf}),
        ("z, x, w", {"z": ZEROS[:, :1], "w": ZEROS[:, :2] + 1}),
        ("x, z, x", {"z": ZEROS}),
    ],
)
def test_what_is_no_pad(parts: str, constants: dict[str, np.ndarray], tmp_path: Path) -> None:
    n = 5 * parts.count("x") + sum(c.shape[1] for c in constants.values())
    _, source = converted(model_of(PAD_TEXT.format(n=n, axis=1, parts=parts), **constants), tmp_path, X)
    assert "F.pad" not in source


@pytest.mark.parametrize("name", ["token", "block.token"])
def test_a_weight_that_nobody_has_trained_yet_is_no_pad(name: str, tmp_path: Path) -> None:
    model = model_of(PAD_TEXT.format(n=8, axis=1, parts="x, z"))
    model.graph.node[0].input[1] = name
    model.graph.initializer.append(numpy_helper.from_array(ZEROS, name))
    module, _ = converted(model, tmp_path, X)
    assert list(module.state_dict()) == [name]


def grid(*slices: slice) -> np.ndarray:
    """The indices that a ScatterND of these slices has."""
    places = np.meshgrid(*(np.arange(s.start, s.stop, s.step or 1) for s in slices), indexing="ij")
    return np.stack(places, -1)


PUT = "g (float[4, 6, 5] x, float[{sizes}] u) => (float[4, 6, 5] y) {{ y = ScatterND(x, i, u) }}"


@pytest.mark.parametrize(
    ("slices", "calls"),
    [
        ((slice(1, 3),), 1),
        ((slice(0, 4), slice(2, 5)), 1),
        ((slice(0, 4), slice(1, 6, 2)), 1),
        ((slice(1, 3), slice(2, 5)), 2),
        ((slice(0, 3, 2), slice(0, 6), slice(3, 4)), 2),
        ((slice(3, 4), slice(5, 6), slice(4, 5)), 3),
    ],
)
def test_slices(slices: tuple[slice, ...], calls: int, tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(4, 6, 5)).astype(np.float32)
    u = np.random.default_rng(2).normal(size=x[slices].shape).astype(np.float32)
    text = PUT.format(sizes=", ".join(map(str, u.shape)))
    module, source = converted(model_of(text, i=grid(*slices)), tmp_path, x, u)
    assert source.count("torch.slice_scatter(") == calls
    assert not module.state_dict()
    for name in ("net.pt2", "net.pt"):  # the other forms say it too
        tonnx.convert(model_of(text, i=grid(*slices)), tmp_path / name)
    want = module(torch.from_numpy(x), torch.from_numpy(u))
    assert torch.equal(torch.jit.load(tmp_path / "net.pt")(torch.from_numpy(x), torch.from_numpy(u)), want)
    program = torch.export.load(tmp_path / "net.pt2").module()
    assert torch.equal(program(torch.from_numpy(x), torch.from_numpy(u)), want)


@pytest.mark.parametrize(
    "change",
    [
        lambda i: i[::-1],  # backwards
        lambda i: np.concatenate([i[:1], i[:1]]),  # one place twice
        lambda i: i[:, :, ::-1] % 4,  # rows and columns change places
        lambda i: i - np.array([4, 0]),  # from the end
    ],
)
def test_other_places(change: Callable[[np.ndarray], np.ndarray], tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(4, 6, 5)).astype(np.float32)
    places: Any = change(grid(slice(1, 3), slice(2, 4)))
    u = np.full((*places.shape[:-1], 5), 7, np.float32)
    text = PUT.format(sizes=", ".join(map(str, u.shape)))
    _, source = converted(model_of(text, i=np.ascontiguousarray(places)), tmp_path, x, u)
    assert "slice_scatter" not in source


def test_places_behind_the_end_are_an_error() -> None:
    text = "g (float[4] x, float[2] u) => (float[4] y) { y = ScatterND(x, i, u) }"
    module = tonnx.convert(model_of(text, i=np.array([[3], [4]])))
    with pytest.raises(IndexError):
        module(torch.zeros(4), torch.zeros(2))


def test_an_assignment_to_a_slice_there_and_back(tmp_path: Path) -> None:
    class Put(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            x = x.clone()
            x[:, 2:4] = y
            return torch.cat([x, torch.zeros(2, 3, 4)], 1)

    x, y = torch.randn(2, 5, 4), torch.randn(2, 2, 4)
    torch.onnx.export(Put(), (x, y), tmp_path / "put.onnx", dynamo=False)
    module = tonnx.convert(tmp_path / "put.onnx")
    assert torch.equal(module(x, y), Put()(x, y))
    tonnx.export(module, (x, y), tmp_path / "back.onnx")
    got = onnxruntime.InferenceSession(tmp_path / "back.onnx").run(None, {"input": x.numpy(), "input_2": y.numpy()})[0]
    np.testing.assert_array_equal(got, Put()(x, y).numpy())

"""Tables and masks that an exporter computed are computed by the code: they are no weights, and no state dict has them."""

from __future__ import annotations

import importlib.util
import math
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


def module_of(model: onnx.ModelProto, folder: Path) -> tuple[nn.Module, str]:
    """The module of the generated file, and its text."""
    tonnx.convert(model, folder / "net.py")
    spec = importlib.util.spec_from_file_location("net", folder / "net.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loaded: nn.Module = module.Model.load()
    again: nn.Module = module.Model().eval()
    again.load_state_dict(loaded.state_dict())  # what is in no state dict is there nevertheless
    return again, (folder / "net.py").read_text()


def model_with(op: str, table: np.ndarray, *sizes: int) -> onnx.ModelProto:
    """One node between an input and a constant of an exporter's; the output is all that the constant holds."""
    element = helper.np_dtype_to_tensor_dtype(table.dtype)
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "/attn/Constant_output_0"], ["y"], name="/attn/Add")],
        "g",
        [helper.make_tensor_value_info("x", element, sizes)],
        [helper.make_tensor_value_info("y", element, None)],
        [numpy_helper.from_array(table, "/attn/Constant_output_0")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def assert_same(model: onnx.ModelProto, module: nn.Module, *inputs: np.ndarray) -> None:
    """To the last bit."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    want = session.run(None, {x.name: value for x, value in zip(session.get_inputs(), inputs, strict=True)})[0]
    got = module(*map(torch.from_numpy, inputs)).detach().numpy()
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


def buckets(rows: int, columns: int, *, both_ways: bool, count: int = 32, farthest: int = 128) -> np.ndarray:
    """A number for each distance: exact when it is small, by its logarithm when it is not."""
    distance = torch.arange(columns) - torch.arange(rows)[:, None]
    result = torch.zeros_like(distance)
    if both_ways:
        count //= 2
        result += (distance > 0) * count
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = count // 2
    large = torch.log(distance.float() / exact) / math.log(farthest / exact) * (count - exact)
    large = (exact + large.nan_to_num(0, 0, 0).long()).clamp(max=count - 1)
    return (result + torch.where(distance < exact, distance, large)).numpy()


TABLES = {
    "difference": np.arange(6)[None] - np.arange(6)[:, None],
    "other way": np.arange(5)[:, None] - np.arange(9)[None] + 3,
    "distance": np.abs(np.arange(7)[None] - np.arange(4)[:, None]),
    "clipped": np.clip(np.arange(16)[None] - np.arange(16)[:, None], -4, 4) + 4,
    "one step": (np.arange(6)[None] > np.arange(6)[:, None]) * 16,
    "few, both ways": buckets(12, 12, both_ways=True),
    "few, one way": buckets(5, 5, both_ways=False),
    "many, both ways": buckets(150, 140, both_ways=True),
    "many, one way": buckets(60, 200, both_ways=False),
    "for each of a batch": np.broadcast_to(buckets(12, 12, both_ways=True), (2, 1, 12, 12)),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_relative_positions(name: str, tmp_path: Path) -> None:
    table = np.ascontiguousarray(TABLES[name])
    model = model_with("Add", table, *table.shape)
    module, text = module_of(model, tmp_path)
    assert not module.state_dict()
    assert "torch.arange" in text
    assert_same(model, module, np.zeros(table.shape, np.int64))


@pytest.mark.parametrize("place", [(0, 0), (3, 4), (11, 11)])
def test_a_table_with_one_other_element_is_kept(place: tuple[int, int], tmp_path: Path) -> None:
    table = buckets(12, 12, both_ways=True)
    table[place] += 1
    model = model_with("Add", table, 12, 12)
    module, _ = module_of(model, tmp_path)
    assert len(module.state_dict()) == 1
    assert_same(model, module, np.zeros((12, 12), np.int64))


def test_a_table_with_a_name_of_its_own_is_kept(tmp_path: Path) -> None:
    model = model_with("Add", TABLES["distance"], 4, 7)
    model.graph.initializer[0].name = model.graph.node[0].input[1] = "distances"
    module, _ = module_of(model, tmp_path)
    assert set(module.state_dict()) == {"distances"}


def window_mask(size: tuple[int, int], window: tuple[int, int], shift: tuple[int, int], hidden: float) -> np.ndarray:
    """What places of a window may see each other when the plane was rolled: those that lay in one region before."""
    plane = np.zeros(size)
    edges = [[0, n - w, n - s, n] if s else [0, n] for n, w, s in zip(size, window, shift, strict=True)]
    number = 0
    for top, bottom in zip(edges[0], edges[0][1:], strict=False):
        for left, right in zip(edges[1], edges[1][1:], strict=False):
            plane[top:bottom, left:right] = number
            number += 1
    windows = plane.reshape(size[0] // window[0], window[0], size[1] // window[1], window[1]).transpose(0, 2, 1, 3)
    regions = windows.reshape(-1, window[0] * window[1])
    return np.where(regions[:, None] != regions[:, :, None], np.float32(hidden), np.float32(0))


MASKS = {
    "square": window_mask((56, 56), (7, 7), (3, 3), -100.0),
    "four windows": window_mask((14, 14), (7, 7), (3, 3), -100.0),
    "oblong": window_mask((12, 8), (4, 2), (2, 1), -100.0),
    "other shifts": window_mask((8, 8), (4, 4), (3, 1), -10000.0),
    "one way only": window_mask((12, 12), (4, 4), (0, 2), -100.0),
    "the other way only": window_mask((12, 6), (4, 3), (1, 0), -100.0),
    "half precision": window_mask((8, 8), (4, 4), (2, 2), -100.0).astype(np.float16),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("heads", [False, True])
def test_a_mask_of_shifted_windows(name: str, heads: bool, tmp_path: Path) -> None:
    mask = MASKS[name][:, None] if heads else MASKS[name]
    sizes = (mask.shape[0], 2, *mask.shape[2:]) if heads else mask.shape
    model = model_with("Add", mask, *sizes)
    module, text = module_of(model, tmp_path)
    assert not module.state_dict()
    assert "torch.where(" in text
    assert_same(model, module, np.random.default_rng(0).normal(size=sizes).astype(mask.dtype))
    assert module(torch.zeros(sizes, dtype=torch.bfloat16)).dtype == torch.bfloat16  # the type of what it is added to


def test_a_mask_that_is_not_added_has_a_type_of_its_own(tmp_path: Path) -> None:
    mask = MASKS["oblong"]
    model = model_with("Div", mask - 1, *mask.shape)
    module, text = module_of(model, tmp_path)
    assert not module.state_dict()
    assert ".to(x.dtype)" in text
    assert_same(model, module, np.random.default_rng(0).normal(size=mask.shape).astype(np.float32))


@pytest.mark.parametrize("place", [(0, 0, 1), (8, 3, 15), (8, 15, 15)])
def test_a_mask_with_one_other_element_is_kept(place: tuple[int, int, int], tmp_path: Path) -> None:
    mask = window_mask((12, 12), (4, 4), (2, 2), -100.0)
    mask[place] = -100.0 - mask[place]
    model = model_with("Add", mask, *mask.shape)
    module, _ = module_of(model, tmp_path)
    assert len(module.state_dict()) == 1
    assert_same(model, module, np.zeros(mask.shape, np.float32))


@pytest.mark.parametrize("target", ["net.pt2", "net.pt"])
def test_tables_in_other_files(target: str, tmp_path: Path) -> None:
    for op, table in (("Add", MASKS["oblong"]), ("Add", buckets(60, 60, both_ways=True))):
        model = model_with(op, table, *table.shape)
        tonnx.convert(model, tmp_path / target)
        loaded = (
            torch.export.load(tmp_path / target).module() if target.endswith("2") else torch.jit.load(tmp_path / target)
        )
        assert not loaded.state_dict()
        assert_same(model, loaded, np.zeros(table.shape, table.dtype))


def test_there_and_back(tmp_path: Path) -> None:
    """The code that computes a table is a model that can be exported again."""
    for table in (MASKS["oblong"], buckets(60, 60, both_ways=True)):
        x = torch.zeros(table.shape, dtype=torch.from_numpy(table).dtype)
        tonnx.export(tonnx.convert(model_with("Add", table, *table.shape)), (x,), tmp_path / "back.onnx")
        got = onnxruntime.InferenceSession(tmp_path / "back.onnx").run(None, {"x": x.numpy()})[0]
        assert got.tobytes() == table.tobytes()


class Blocks(nn.Module):
    """Attention in windows, half of them shifted."""

    class Attention(nn.Module):
        def __init__(self, shift: int) -> None:
            super().__init__()
            self.shift = shift
            self.qkv = nn.Linear(8, 24)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
            batch, side = x.shape[0], x.shape[1] // 4
            x = x.view(batch, side, 4, side, 4, 8).transpose(2, 3).reshape(-1, 16, 8)
            q, k, v = self.qkv(x).chunk(3, -1)
            weights = q @ k.transpose(1, 2)
            if self.shift:
                region = torch.zeros(4 * side, 4 * side)
                for row, column in ((1, 0), (0, 1)):
                    region[-self.shift * row :, -self.shift * column :] += 1 + row
                region = region.view(side, 4, side, 4).transpose(1, 2).reshape(-1, 16)
                difference = region[:, None] - region[:, :, None]
                mask = difference.masked_fill(difference != 0, -100.0).masked_fill(difference == 0, 0.0)
                weights = (weights.view(batch, side * side, 16, 16) + mask).view(-1, 16, 16)
            x = (
                (weights.softmax(-1) @ v)
                .view(batch, side, side, 4, 4, 8)
                .transpose(2, 3)
                .reshape(batch, 4 * side, -1, 8)
            )
            return torch.roll(x, (self.shift, self.shift), (1, 2))

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Blocks.Attention(shift) for shift in (0, 2, 0, 2, 0, 2)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks(x)


@pytest.mark.parametrize("exporter", ["torchscript", "tonnx"])
def test_the_original_takes_the_weights(exporter: str, tmp_path: Path) -> None:
    original, x = Blocks().eval(), torch.randn(2, 8, 8, 8)
    path = tmp_path / "blocks.onnx"
    if exporter == "tonnx":
        tonnx.export(original, (x,), path)
    else:
        torch.onnx.export(original, (x,), path, dynamo=False, do_constant_folding=False)
    module, text = module_of(onnx.load(path), tmp_path)
    torch.testing.assert_close(module(x), original(x))
    assert text.count("torch.where(") == 1  # in the class of those that are shifted
    Blocks().load_state_dict(module.state_dict(), strict=True)

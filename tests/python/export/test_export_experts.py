"""Products of groups of rows, as mixtures of experts compute them: the groups depend on data, PyTorch -> ONNX."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import onnx
import pytest
import torch
from torch import nn

import tonnx
from tonnx._runtime import open_session

torch.manual_seed(0)

if not hasattr(torch.ops.transformers, "grouped_mm_fallback"):  # as the library of that name has it

    @torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
    def grouped_mm_fallback(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        output = input.new_zeros(input.shape[0], weight.shape[2])
        starts = [0, *offs.tolist()]
        for expert, (start, end) in enumerate(zip(starts, starts[1:], strict=False)):
            output[start:end] = input[start:end] @ weight[expert]
        return output

    @grouped_mm_fallback.register_fake
    def _(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        return input.new_empty(input.shape[0], weight.shape[2])


def same(model: Any, session: Any, *values: torch.Tensor) -> None:
    with torch.no_grad():
        expected = model(*values)
    names = [i.name for i in session.get_inputs()]
    (got,) = session.run(None, {n: v.numpy() for n, v in zip(names, values, strict=True)})
    torch.testing.assert_close(torch.as_tensor(got), expected, rtol=1e-4, atol=1e-5)


class Experts(nn.Module):
    """Each row goes to some experts, sorted by them, and comes back as their weighted sum."""

    def __init__(self, experts: int, is_fallback: bool) -> None:
        super().__init__()
        self.router = nn.Linear(16, experts)
        self.up = nn.Parameter(torch.randn(experts, 24, 16) / 4)
        self.down = nn.Parameter(torch.randn(experts, 16, 24) / 4)
        self.experts, self.is_fallback = experts, is_fallback

    def product(self, x, weight, ends):
        if self.is_fallback:
            return torch.ops.transformers.grouped_mm_fallback(x, weight.transpose(1, 2), ends)
        return torch._grouped_mm(x, weight.transpose(1, 2), offs=ends)

    def forward(self, x):
        rows = x.reshape(-1, 16)
        shares, chosen = self.router(rows).softmax(-1).topk(2)
        order = chosen.reshape(-1).argsort(stable=True)
        counts = torch.bincount(chosen.reshape(-1), minlength=self.experts)[: self.experts]
        ends = counts.cumsum(0).to(torch.int32)
        y = self.product(self.product(rows[order // 2], self.up, ends).relu(), self.down, ends)
        y = y * shares.reshape(-1)[order].unsqueeze(1)
        return torch.zeros_like(rows).index_add(0, order // 2, y).view(x.shape)


@pytest.mark.parametrize("is_fallback", [False, True], ids=["aten", "fallback"])
@pytest.mark.parametrize("experts", [4, 9])
def test_mixture_of_experts_of_open_sizes(experts: int, is_fallback: bool) -> None:
    model = Experts(experts, is_fallback).eval()
    program = tonnx.export(model, torch.randn(2, 5, 16), dynamic_axes={"x": {0: "batch", 1: "tokens"}})
    session = open_session(bytes(program))
    for batch, tokens in [(2, 5), (1, 1), (3, 7)]:
        same(model, session, torch.randn(batch, tokens, 16))


class ChosenExperts(nn.Module):
    """A layer whose way to compute is looked up in a table, as the library `transformers` does it."""

    def __init__(self, experts: int, width: int, table: dict[str, Any]) -> None:
        super().__init__()
        self.router = nn.Linear(16, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 16) / 4)
        self.table = table

    def forward(self, x):
        shares, chosen = self.router(x).softmax(-1).topk(2)
        return self.table["grouped_mm"](self, x, chosen, shares)


def with_groups(layer, x, chosen, shares):
    ids, order = chosen.reshape(-1).sort()
    counts = torch.histc(ids.float(), bins=len(layer.up), min=0, max=len(layer.up) - 1)
    ends = counts.cumsum(0, dtype=torch.int32)
    y = torch.ops.transformers.grouped_mm_fallback(x[order // 2], layer.up.transpose(1, 2), ends)
    y = (y * shares.reshape(-1)[order].unsqueeze(1))[order.argsort()]
    return y.view(x.shape[0], 2, -1).sum(1)


def with_copies(layer, x, chosen, shares):
    y = torch.bmm(layer.up[chosen.reshape(-1)], x.repeat_interleave(2, 0).unsqueeze(2)).squeeze(2)
    return (y * shares.reshape(-1, 1)).view(x.shape[0], 2, -1).sum(1)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    functions = {"batched_mm": with_copies, "grouped_mm": with_groups}
    library: Any = SimpleNamespace(ALL_EXPERTS_FUNCTIONS=functions)
    monkeypatch.setitem(sys.modules, "transformers.integrations.moe", library)
    return functions


@pytest.mark.parametrize("experts", [4, 64])
def test_few_rows_take_copies_of_weights(experts: int, table: dict[str, Any]) -> None:
    """The model chooses at run time, and holds the weights once."""
    model = ChosenExperts(experts, 24, table).eval()
    program = bytes(tonnx.export(model, torch.randn(5, 16), dynamic_axes={"x": {0: "tokens"}}))
    assert table["grouped_mm"] is with_groups
    graph = onnx.load_from_string(program).graph
    assert "If" in [n.op_type for n in graph.node]
    assert sum(len(w.raw_data) for w in graph.initializer) < 1.5 * sum(p.nbytes for p in model.parameters())
    session = open_session(program)
    most = experts * 8192 // (24 * 16)
    for tokens in (1, most // 2, most // 2 + 1, most + 3):
        same(model, session, torch.randn(tokens, 16))


def test_large_weights_are_not_copied(table: dict[str, Any]) -> None:
    model = ChosenExperts(4, 4096, table).eval()
    program = bytes(tonnx.export(model, torch.randn(5, 16), dynamic_axes={"x": {0: "tokens"}}))
    assert "If" not in [n.op_type for n in onnx.load_from_string(program).graph.node]
    same(model, open_session(program), torch.randn(3, 16))


HISTOGRAMS = {
    "whole": ([0, 3, 3, 1, -1, 7, 4], 4, 0, 3),
    "from below": ([-2, 0, -2, 1, 5, -3], 4, -2, 1),
    "wider than one": ([0, 3, 3, 1, 9], 4, 0, 7),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_integers_are_counted(name: str) -> None:
    numbers, bins, low, high = HISTOGRAMS[name]
    x = torch.tensor(numbers)

    def forward(x):
        return torch.histc(x.float(), bins=bins, min=low, max=high)

    session = open_session(bytes(tonnx.export(forward, x, dynamic_axes={"x": {0: "n"}})))
    same(forward, session, x)
    same(forward, session, x[:3])


@pytest.mark.parametrize("opset", [11, 17, None])
def test_groups_of_rows(opset: int | None) -> None:
    """Some of them are empty, and the last rows are in none."""
    x, weight = torch.randn(9, 16), torch.randn(4, 16, 8)
    model = torch.ops.transformers.grouped_mm_fallback
    ends = torch.tensor([2, 2, 6, 7], dtype=torch.int32)

    def forward(x, weight, ends):
        return model(x, weight, ends)

    program = tonnx.export(forward, (x, weight, ends), dynamic_axes={"x": {0: "rows"}}, opset_version=opset)
    session = open_session(bytes(program))
    same(forward, session, x, weight, ends)
    same(forward, session, x[:6], weight, torch.tensor([0, 1, 1, 6], dtype=torch.int32))


OTHER_GROUPS = {
    "stacks": ((3, 4, 16), (3, 16, 8), None),
    "columns": ((3, 4, 16), (16, 24), [8, 8, 24]),
    "what is summed over": ((4, 24), (24, 8), [8, 16, 24]),
}


@pytest.mark.parametrize("name", OTHER_GROUPS)
def test_other_groups(name: str) -> None:
    a, b, ends = OTHER_GROUPS[name]
    offs = None if ends is None else torch.tensor(ends, dtype=torch.int32)

    def forward(a, b):
        return torch._grouped_mm(a, b, offs=offs)

    values = (torch.randn(a), torch.randn(b))
    same(forward, open_session(bytes(tonnx.export(forward, values))), *values)

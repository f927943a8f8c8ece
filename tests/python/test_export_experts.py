"""Products of groups of rows, as mixtures of experts compute them: the groups depend on data, PyTorch -> ONNX."""

from __future__ import annotations

from typing import Any

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

"""Attention to another tensor, as generated code writes it."""

from __future__ import annotations

import re

import torch
from test_module_classes import check_format, code_of_network
from torch import nn


class Cross(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        q, k, v = (f.unflatten(-1, (4, 4)).transpose(1, 2) for f in (self.query(x), self.key(y), self.value(y)))
        return nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Crossing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Cross(), Cross()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.flatten(1, 2)
        return self.second(self.first(rows, torch.sin(rows)), torch.cos(rows))


def test_key_and_value_of_another_tensor_are_one_statement() -> None:
    code = code_of_network(Crossing)
    assert re.search(r"\n        k, v = \(f\(y\)\.\S+.* for f in \(self\.key, self\.value\)\)\n", code)
    check_format()

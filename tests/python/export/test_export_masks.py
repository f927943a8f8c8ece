"""nn.Transformer with masks of open sizes, PyTorch -> ONNX."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import tonnx
from tonnx._runtime import open_session

causal = nn.Transformer.generate_square_subsequent_mask


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)

    def forward(self, x, y):
        return self.transformer(x, y, tgt_mask=causal(y.shape[1]))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1)

    def forward(self, x, y):
        return self.encoder(x, mask=causal(x.shape[1])) + self.encoder(y, mask=causal(y.shape[1]).triu(2))


@pytest.mark.parametrize("model", [Translator(), Encoder()], ids=["translator", "encoder"])
def test_masks_of_open_sizes(model: Any) -> None:
    model.eval()
    is_same = isinstance(model, Encoder)
    axes = {name: {0: "batch", 1: "length" if is_same else f"length_{name}"} for name in "xy"}
    example = (torch.randn(2, 6, 16), torch.randn(2, 6 if is_same else 4, 16))
    session = open_session(bytes(tonnx.export(model, example, dynamic_axes=axes)))
    for batch, length, other in [(2, 6, 4), (1, 3, 7), (3, 9, 2)]:
        x, y = torch.randn(batch, length, 16), torch.randn(batch, length if is_same else other, 16)
        with torch.no_grad():
            expected = model(x, y)
        (got,) = session.run(None, {"x": x.numpy(), "y": y.numpy()})
        torch.testing.assert_close(torch.as_tensor(got), expected, rtol=1e-4, atol=1e-5)

"""Models that PyTorch quantised for training or in a program: QuantizeLinear and DequantizeLinear compute the same."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # type: ignore[import-untyped]  # noqa: F401  defines the operators
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

import tonnx
from tonnx._runtime import open_session

OPS = torch.ops.quantized_decomposed
SCALES, ZEROS = torch.tensor([0.11, 0.02, 0.3]), torch.tensor([3, 0, -5])


class Layer(nn.Module):
    """A convolution as a quantised program has it: integers as weights, and steps around it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (4, 3, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(4) / 100 + 0.001)
        self.bias = nn.Parameter(torch.randn(4))

    def forward(self, x: Tensor) -> Tensor:
        x = OPS.dequantize_per_tensor(
            OPS.quantize_per_tensor(x, 0.031, 128, 0, 255, torch.uint8), 0.031, 128, 0, 255, torch.uint8
        )
        zeros = torch.zeros(4, dtype=torch.int64)
        weight = OPS.dequantize_per_channel(self.weight, self.scales, zeros, 0, -127, 127, torch.int8)
        y = F.relu(F.conv2d(x, weight, self.bias, padding=1))
        return OPS.dequantize_per_tensor(  # type: ignore[no-any-return]
            OPS.quantize_per_tensor(y, 0.07, -100, -128, 127, torch.int8), 0.07, -100, -128, 127, torch.int8
        )


class Of(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def in_floats(x: Tensor) -> Tensor:
    return torch.fake_quantize_per_channel_affine(x, SCALES, ZEROS.float() + 0.25, 1, -8, 7)


PAIR = {"QuantizeLinear": 1, "DequantizeLinear": 1}
CASES: dict[str, tuple[Callable[[], nn.Module], dict[str, int]]] = {
    "layer": (Layer, {"QuantizeLinear": 2, "DequantizeLinear": 3, "Conv": 1, "Relu": 1}),
    "fake": (lambda: Of(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.13, 5, 0, 255)), PAIR),
    "fake by tensors": (
        lambda: Of(lambda x: torch.fake_quantize_per_tensor_affine(x, SCALES[:1], ZEROS[:1].int(), -128, 127)),
        PAIR,
    ),
    "fake by channel": (
        lambda: Of(lambda x: torch.fake_quantize_per_channel_affine(x, SCALES, ZEROS.int(), 1, -128, 127)),
        PAIR,
    ),
    "narrow": (lambda: Of(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.3, 7, 0, 15)), {**PAIR, "Clip": 1}),
    "wide": (lambda: Of(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.01, 9, -300, 300)), {}),
    "zero points in floats": (lambda: Of(in_floats), {}),
    "integers": (lambda: Of(lambda x: OPS.quantize_per_channel(x, SCALES, ZEROS, 1, -128, 127, torch.int8)), {}),
    "wide integers": (lambda: Of(lambda x: OPS.quantize_per_tensor(x, 0.01, 1, -2000, 2000, torch.int16)), {}),
}


def agree(got: Tensor, want: Tensor, name: str) -> None:
    assert got.dtype == want.dtype
    # a sum of many floats may fall on the other side of a step
    torch.testing.assert_close(got, want, rtol=1e-5, atol=0.0701 if name == "layer" else 1e-6)


def operators() -> Counter[str]:
    return Counter(node.op_type for node in onnx.load("m.onnx").graph.node)


@pytest.mark.parametrize("source", ["live", "m.pt2", "m.pt"])
@pytest.mark.parametrize("name", CASES)
def test_it_computes_the_same(name: str, source: str) -> None:
    torch.manual_seed(2)
    build, wanted = CASES[name]
    model, x = build().eval(), torch.randn(2, 3, 5, 6) * 2
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if source == "live":
            tonnx.export(model, (x,), "m.onnx")
        elif source == "m.pt2":
            torch.export.save(torch.export.export(model, (x,)), source)
            tonnx.convert(source, "m.onnx")
        else:
            torch.jit.trace(model, x).save(source)  # type: ignore[no-untyped-call]
            tonnx.convert(source, "m.onnx")
        want = model(x)
    session = open_session(onnx.load("m.onnx").SerializeToString())
    got = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    agree(torch.from_numpy(np.asarray(got)), want, name)
    assert not wanted or operators() == Counter(wanted)
    if source != "live":
        with torch.no_grad():
            agree(tonnx.convert(source)(x), want, name)
    with torch.no_grad():
        agree(tonnx.convert("m.onnx")(x), want, name)

"""nn.MultiheadAttention comes back as the module that it was, with its keys, its values and its gradients."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from allowed_code import check_python
from generated_code import load
from torch import nn

import tonnx

torch.manual_seed(0)
BATCH, POSITIONS, UNITS, HEADS = 2, 5, 12, 3


class Layer(nn.Module):
    def __init__(self, batch_first: bool = True, mask: bool = False, bias: bool = True) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(UNITS, HEADS, batch_first=batch_first, bias=bias)
        self.norm = nn.LayerNorm(UNITS)
        self.register_buffer("mask", torch.rand(POSITIONS, POSITIONS) if mask else None, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.attention(x, x, x, attn_mask=self.mask, need_weights=False)[0])


class Turned(Layer):
    """The second of its arguments is the batch, and that of the module is the first one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.transpose(0, 1)
        return x + self.attention(y, y, y, need_weights=False)[0].transpose(0, 1)


class Twice(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(super().forward(x))


class Crossed(Layer):
    """Values that are keys, and keys that are values: what nn.MultiheadAttention does not do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = nn.functional.linear(x, self.attention.in_proj_weight, self.attention.in_proj_bias)
        parts = parts.unflatten(-1, (3, HEADS, UNITS // HEADS)).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(parts[0], parts[2], parts[1])
        return self.attention.out_proj(y.transpose(1, 2).flatten(2))


class Mixed(Crossed):
    """Heads that do not lie side by side in what comes out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = nn.functional.linear(x, self.attention.in_proj_weight, self.attention.in_proj_bias)
        parts = parts.unflatten(-1, (3, HEADS, UNITS // HEADS)).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        return self.attention.out_proj(y.permute(0, 2, 3, 1).flatten(2))


class Folded(Layer):
    """Batch and heads are one dimension of the keys for a while, which is how torch.onnx writes them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, size = x.shape[0], UNITS // HEADS
        parts = nn.functional.linear(x.transpose(0, 1), self.attention.in_proj_weight, self.attention.in_proj_bias)
        query, key, value = parts.unflatten(-1, (3, UNITS)).permute(2, 0, 1, 3)
        query, value = (y.unflatten(-1, (HEADS, size)).permute(1, 2, 0, 3) for y in (query, value))
        key = key.reshape(POSITIONS, -1, size).permute(1, 2, 0).reshape(batch, HEADS, size, POSITIONS).transpose(2, 3)
        y = nn.functional.scaled_dot_product_attention(query, key, value)
        y = y.permute(2, 0, 1, 3).reshape(-1, UNITS)
        return self.attention.out_proj(y).reshape(POSITIONS, batch, UNITS).transpose(0, 1)


def by_tonnx(model: nn.Module, x: torch.Tensor, **dynamic: object) -> None:
    tonnx.export(model, (x,), "m.onnx", do_constant_folding=False, **dynamic)


def by_torch(model: nn.Module, x: torch.Tensor) -> None:
    torch.onnx.export(model, (x,), "m.onnx", dynamo=False, do_constant_folding=False)


def converted_and_code(
    model: nn.Module, x: torch.Tensor, export: Callable[..., None] = by_tonnx, **dynamic: object
) -> tuple[nn.Module, str]:
    nn.init.uniform_(model.attention.in_proj_weight, -0.5, 0.5)
    if model.attention.in_proj_bias is not None:
        nn.init.uniform_(model.attention.in_proj_bias)
        nn.init.uniform_(model.attention.out_proj.bias)
    with torch.no_grad():
        export(model.eval(), x, **dynamic)
    tonnx.convert("m.onnx", "m.py")
    code = Path("m.py").read_text()
    check_python(code)
    converted = load(Path("m.py"))
    with torch.no_grad():
        torch.testing.assert_close(converted(x), model(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(converted(x), model(x), rtol=1e-4, atol=1e-5)
    return converted, code


@pytest.mark.parametrize("export", [by_tonnx, by_torch])
@pytest.mark.parametrize("batch_first", [True, False])
def test_it_is_the_module(export: Callable[..., None], batch_first: bool) -> None:
    model, x = Layer(batch_first), torch.rand(BATCH, POSITIONS, UNITS)
    converted, code = converted_and_code(model, x, export)
    end = ", batch_first=True" if batch_first else ""
    assert f"self.attention = nn.MultiheadAttention({UNITS}, {HEADS}{end})" in code
    assert re.search(r"self\.attention\((\w+), \1, \1, need_weights=False\)\[0\]", code)
    model.load_state_dict(converted.state_dict(), strict=True)
    torch.testing.assert_close(dict(converted.state_dict()), dict(model.state_dict()))


def test_it_trains_as_the_original() -> None:
    model, x = Layer(), torch.rand(BATCH, POSITIONS, UNITS)
    converted, _ = converted_and_code(model, x)
    for each in (model, converted):
        each.train()(x).square().sum().backward()
    want = {name: weight.grad for name, weight in model.named_parameters()}
    torch.testing.assert_close({name: weight.grad for name, weight in converted.named_parameters()}, want)
    assert converted.bfloat16()(x.bfloat16()).dtype == torch.bfloat16


def test_it_goes_through_the_compiler_and_back() -> None:
    model, x = Layer(), torch.rand(BATCH, POSITIONS, UNITS)
    converted, _ = converted_and_code(model, x)
    with torch.no_grad():
        want = model(x)
        compiled = torch.compile(converted, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(x), want, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(torch.export.export(converted, (x,)).module()(x), want, rtol=1e-4, atol=1e-5)
        tonnx.export(converted, (x,), "again.onnx")
        torch.testing.assert_close(tonnx.convert("again.onnx")(x), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ending", ["pt2", "pt"])
def test_other_forms_have_it_written_out(ending: str) -> None:
    model, x = Layer(), torch.rand(BATCH, POSITIONS, UNITS)
    converted_and_code(model, x)
    tonnx.convert("m.onnx", f"m.{ending}")
    load_file = torch.jit.load if ending == "pt" else lambda path: torch.export.load(path).module()
    with torch.no_grad():
        torch.testing.assert_close(load_file(f"m.{ending}")(x), model(x), rtol=1e-4, atol=1e-5)


def test_a_mask_that_is_added_is_given() -> None:
    model, x = Layer(mask=True), torch.rand(BATCH, POSITIONS, UNITS)
    _, code = converted_and_code(model, x)
    assert "nn.MultiheadAttention(" in code and "attn_mask=" in code


def test_sizes_may_be_unknown() -> None:
    model, x = Layer(), torch.rand(BATCH, POSITIONS, UNITS)
    batch, positions = torch.export.Dim("batch"), torch.export.Dim("positions")
    converted, code = converted_and_code(model, x, dynamic_shapes=({0: batch, 1: positions},))
    assert "nn.MultiheadAttention(" in code
    more = torch.rand(BATCH + 1, POSITIONS + 2, UNITS)
    torch.testing.assert_close(converted(more), model(more), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_batch_of_one(batch_first: bool) -> None:
    shape = (1, POSITIONS, UNITS) if batch_first else (POSITIONS, 1, UNITS)
    model, x = Layer(batch_first), torch.rand(shape)
    converted, code = converted_and_code(model, x, by_torch)
    end = ", batch_first=True" if batch_first else ""
    assert f"self.attention = nn.MultiheadAttention({UNITS}, {HEADS}{end})" in code
    more = torch.rand(3, 3, UNITS)
    torch.testing.assert_close(converted(more), model(more), rtol=1e-4, atol=1e-5)


def test_an_open_batch_that_is_folded_into_the_heads() -> None:
    model, x = Folded(), torch.rand(BATCH, POSITIONS, UNITS)
    converted, code = converted_and_code(model, x, dynamic_shapes=({0: torch.export.Dim("batch")},))
    assert "nn.MultiheadAttention(" in code
    more = torch.rand(BATCH + 1, POSITIONS, UNITS)
    torch.testing.assert_close(converted(more), model(more), rtol=1e-4, atol=1e-5)


def test_what_turns_its_arguments_around() -> None:
    model, x = Turned(), torch.rand(POSITIONS, BATCH, UNITS)
    _, code = converted_and_code(model, x)
    assert "nn.MultiheadAttention(" in code


@pytest.mark.parametrize("kind", [Twice, Crossed, Mixed])
def test_what_is_none_stays_as_it_is(kind: type[nn.Module]) -> None:
    _, code = converted_and_code(kind(), torch.rand(BATCH, POSITIONS, UNITS))
    assert "nn.MultiheadAttention(" not in code

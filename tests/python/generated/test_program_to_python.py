"""From an exported program to a module: the values are those of eager PyTorch, and the code is what a person writes."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

import tonnx


class Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, y: Any = None) -> Any:
        return self.function(x) if y is None else self.function(x, y)


def as_module(code: Callable[..., Any]) -> nn.Module:
    return (code if isinstance(code, nn.Module) else Call(code)).eval()


def saved(module: nn.Module, args: tuple[Any, ...], dynamic: Any = None, name: str = "model.pt2") -> Path:
    torch.export.save(torch.export.export(module, args, dynamic_shapes=dynamic), name)
    return Path(name)


def assert_same(found: Any, wanted: Any) -> None:
    found, wanted = pytree.tree_leaves(found), pytree.tree_leaves(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        if isinstance(b, torch.Tensor):
            assert a.dtype == b.dtype
            torch.testing.assert_close(a, b, equal_nan=True)
        else:
            assert a == b


def check(
    code: Callable[..., Any],
    *args: Any,
    dynamic: Any = None,
    also: tuple[Any, ...] = (),
    allow_ops: tuple[str, ...] = (),
) -> tuple[str, nn.Module]:
    """The generated forward method, and the module, once its values are right. `also`: arguments of other sizes."""
    module = as_module(code)
    path = saved(module, args, dynamic)
    converted = tonnx.convert(path, allow_ops=allow_ops)
    for case in (args, also) if also else (args,):
        with torch.no_grad():
            assert_same(converted(*pytree.tree_leaves(case)), module(*case))
    tonnx.convert(path, "written.py", allow_ops=allow_ops)
    source = Path("written.py").read_text()
    start = source.index("def forward")
    return source[start : source.index("@classmethod")].strip(), converted


x = torch.linspace(-2, 3, 24).reshape(2, 3, 4)
ints = torch.arange(12).reshape(3, 4)

CALLS = {
    "numbers": lambda x: (x * 2 + 1.5 - x / 3) ** 2,
    "alpha": lambda x: torch.add(x, x * 2, alpha=3) - torch.sub(x, 1, alpha=2) + torch.rsub(x, 2, alpha=0.5),
    "complex": lambda x: (x * 1j + (1 - 2j)).abs(),
    "infinities": lambda x: x.masked_fill(x > 1, float("-inf")).masked_fill(x < 0, float("nan")),
    "keywords": lambda x: (x.sum(-1, keepdim=True, dtype=torch.float64), x.std(1, correction=0), x.argmax(1)),
    "types": lambda x: (x.to(torch.int32), x.long() + 0, x.double().to(x), x.bool().to(torch.uint8)),
    "lists": lambda x: torch.cat([torch.stack([x, x * 2]), *[p[None] for p in x.unbind()][:1] * 2][:1], 1),
    "pieces": lambda x: (x.split([1, 3], -1), torch.chunk(x, 2, -1), x.unbind(1)),
    "several_results": lambda x: (torch.topk(x, 2), torch.max(x, 1), torch.var_mean(x, -1)),
    "optional_tensors": lambda x: (
        F.layer_norm(x, [4]),
        F.conv1d(x, torch.ones(2, 3, 2)),
        torch.clamp(x, max=x.new_ones(4)),
    ),
    "index": lambda x: (x[:, 1:], x[..., -1], x[:, torch.tensor([0, 2])], x[x > 0], x[:, None, ::2]),
    "factories": lambda x: (
        torch.zeros(2, 3),
        torch.full((2,), 7),
        torch.arange(3.0),
        torch.eye(2, dtype=torch.int64) + x.new_zeros(2),
    ),
    "words": lambda x: (
        F.gelu(x, approximate="tanh"),
        torch.einsum("bij,bkj->bik", x, x),
        F.pad(x, (1, 1), mode="reflect"),
    ),
    "norms": lambda x: (torch.linalg.norm(x[0]), torch.linalg.matrix_norm(x, "nuc"), torch.linalg.qr(x).R.abs()),
    "copies": lambda x: x.clone().contiguous().transpose(0, 1).contiguous().view(3, -1).detach().float(),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments(name: str) -> None:
    def plain(x: torch.Tensor) -> Any:  # named tuples cannot be saved
        return pytree.tree_leaves(CALLS[name](x))

    check(plain, x)


def test_no_line_without_an_effect() -> None:
    code, _ = check(CALLS["copies"], x)
    for word in ("clone", "contiguous", "to(", "float(", "view"):
        assert word not in code
    code, _ = check(lambda i: F.pad(i, (0, 0)) + 0, ints)
    assert code.endswith("return x")


def test_constants_of_one_number_are_literals() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * torch.tensor(2.5) + torch.tensor(3)
        y[:, 0] = 7.0
        return torch.where(y > torch.tensor(1.0), y, x)

    code, module = check(forward, x)
    assert "* 2.5 + 3" in code and "7.0" in code
    assert not module.state_dict()


def test_a_number_of_a_higher_type_stays_a_tensor() -> None:
    check(lambda i: (i * torch.tensor(2.5, dtype=torch.float64), i.float().sum() * torch.tensor(2.0).double()), ints)


def test_conversions_name_no_device() -> None:
    code, _ = check(lambda x, i: x.to("cpu", torch.float64) + i.to(x), x, ints)
    assert "cpu" not in code


def test_dynamic_sizes() -> None:
    def forward(x: torch.Tensor) -> Any:
        n = x.shape[0]
        return x.reshape(n * 3, 4), x.expand(2, n, 3, 4).flatten(0, 1), torch.zeros(n, n // 2 + 1), x.sum() / n, n * 2

    code, _ = check(Call(forward), x, dynamic={"x": {0: torch.export.Dim("batch")}}, also=(x.repeat(3, 1, 1),))
    assert "sym_size" not in code


def test_sizes_that_depend_on_data() -> None:
    check(lambda x: (x.nonzero(), x[x > 0].sum(), torch.nonzero(x)[:, 0] * 2), x)


def test_item() -> None:
    check(lambda x, i: (x * i.sum().item(), i.max().item()), x, ints)


def test_branches() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda a, b: (a + b, a.clone()), lambda a, b: (a - b, b.clone()), (x, y))

    check(forward, x, x * 2, also=(-x, x))


def test_loops() -> None:
    def forward(x: torch.Tensor) -> Any:
        i = torch.zeros((), dtype=torch.int64)
        return torch.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 1.5 - x), (i, x.clone()))

    check(forward, x)


def test_nested_inputs_have_good_names() -> None:
    class Structured(nn.Module):
        def forward(self, batch: dict[str, Any]) -> Any:
            a, b = batch["pair"]
            return {"sum": a + b, "parts": (a * batch["scale"], [b.mean(-1)])}

    code, _ = check(Structured(), {"pair": [x, x + 1], "scale": torch.ones(4)})
    assert code.startswith("def forward(self, batch_pair_0, batch_pair_1, batch_scale):")


def test_parameters_and_buffers() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.rand(4))
            self.table = nn.Parameter(torch.arange(3), requires_grad=False)
            self.register_buffer("shift", torch.rand(4))
            self.register_buffer("hidden", torch.rand(4), persistent=False)
            self.linear = nn.Linear(4, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x[:, self.table] * self.scale + self.shift - self.hidden)

    module = Weighted().eval()
    _, converted = check(module, x)
    assert {n for n, _ in converted.named_parameters()} >= {"scale", "linear.weight", "linear.bias"}
    assert {"shift", "hidden"} <= {n for n, _ in converted.named_buffers()}


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind: str) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = getattr(nn, kind)(4, 6, num_layers=2, bidirectional=True, batch_first=True, dropout=0.5)

        def forward(self, x: torch.Tensor) -> Any:
            return self.rnn(x)

    batch = {"x": {0: torch.export.Dim("batch")}}
    code, converted = check(Recurrent(), x, dynamic=batch, also=(x.repeat(2, 1, 1),))
    assert "self.rnn(x)" in code
    assert repr(converted.rnn) == repr(Recurrent().rnn)


def test_a_state_that_is_given_stays() -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTM(4, 6)

        def forward(self, x: torch.Tensor, h: torch.Tensor) -> Any:
            y, state = self.cell(x, (h, h * 2))
            return self.cell(x + y.mean(), state)

    check(Recurrent(), x, torch.rand(1, 3, 6))


def test_layers() -> None:
    encoder = nn.Sequential(
        nn.Embedding(12, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.LayerNorm(8)
    )
    _, converted = check(encoder, ints, dynamic=({0: torch.export.Dim("batch")},), also=(ints[:2],))
    types = {type(m) for m in converted.modules()}
    assert {nn.Embedding, nn.LayerNorm, nn.Linear, nn.Dropout, nn.MultiheadAttention} <= types


def test_products_with_weights_are_linear_layers() -> None:
    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.rand(4, 5))
            self.v = nn.Parameter(torch.rand(2, 5))
            self.b = nn.Parameter(torch.rand(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mm(torch.addmm(self.b, x, self.w), self.v.t()) + torch.addmm(self.b, x, self.w, beta=2)[:, :2]

    code, converted = check(Products(), x[0])
    assert sum(isinstance(m, nn.Linear) for m in converted.modules()) == 2
    assert "beta=2" in code


def test_an_operator_that_no_table_has() -> None:
    with torch.library._scoped_library("tonnx_tests", "DEF") as library:
        library.define("scaled(Tensor x, float by=1.0, *, bool negate=False) -> (Tensor, Tensor)")

        def scaled(x: torch.Tensor, by: float = 1.0, *, negate: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
            return x * (-by if negate else by), x + 1

        library.impl("scaled", scaled, "CompositeExplicitAutograd")
        code, _ = check(
            lambda x: torch.ops.tonnx_tests.scaled(x, 2.0, negate=True), x, allow_ops=("tonnx_tests::scaled",)
        )
        assert "torch.ops.tonnx_tests.scaled.default(x, by=2.0, negate=True)" in code


def test_the_written_file_loads() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2)).eval()
    image = torch.rand(2, 3, 4, 4)
    tonnx.convert(saved(module, (image,)), "network.py")
    spec = importlib.util.spec_from_file_location("network", "network.py")
    assert spec is not None and spec.loader is not None
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    assert_same(written.Model.load()(image), module(image))


def test_it_can_be_trained() -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    converted = tonnx.convert(saved(module.eval(), (x,)))
    for model in (module, converted):
        model(x).sum().backward()
    for a, b in zip(converted.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_it_can_be_exported_again() -> None:
    module = as_module(CALLS["keywords"])
    converted = tonnx.convert(saved(module, (x,)))
    assert_same(torch.export.export(converted, (x,)).module()(x), module(x))


def test_a_branch_that_gives_less_than_its_node() -> None:
    def forward(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda a: (a + 1, a * 2), lambda a: (a - 1, a * 3), (x,))

    def shorten(value: Any) -> None:
        for part in value.values() if isinstance(value, dict) else value:
            if isinstance(part, dict | list):
                shorten(part)
        if isinstance(value, dict) and "as_graph" in value:
            value["as_graph"]["graph"]["outputs"].pop()

    path = saved(as_module(forward), (x,))
    with zipfile.ZipFile(path) as source, zipfile.ZipFile("damaged.pt2", "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("models/model.json"):
                program = json.loads(content)
                shorten(program["graph_module"]["graph"])
                content = json.dumps(program).encode()
            target.writestr(name, content)
    with pytest.raises(tonnx.Error):
        tonnx.convert("damaged.pt2")

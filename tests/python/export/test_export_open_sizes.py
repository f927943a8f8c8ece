"""Open sizes: a file is right at every size that the model takes, whatever the example's is, or it is not written."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from recorded_program import outcome
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

import tonnx
from tonnx._runtime import open_session

Dims = dict[str, dict[int, str]]


class Calls(nn.Module):
    """A function as a module, with the modules that it uses."""

    def __init__(self, function: Callable[..., Any], **modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, x, y=None, z=None):
        return self.function(self, *[v for v in (x, y, z) if v is not None])


class Step(nn.Module):
    """A step of a decoder with a cache: the mask is as long as the cache and the new tokens together."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, past, mask):
        keys = torch.cat([past, self.linear(x)], 1)
        return (x @ keys.transpose(1, 2) + mask[:, None]).softmax(-1) @ keys, keys


class Attention(nn.Module):
    """As timm writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        batch, tokens, channels = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        return ((q @ k.transpose(-2, -1)).softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, channels)


def attend(**options: Any) -> nn.MultiheadAttention:
    return nn.MultiheadAttention(16, 2, **options)


def causal(self, x):
    return F.scaled_dot_product_attention(x, x, x, is_causal=bool(x.shape[2] > 1))


def windows(self, x):
    """As the first Swin writes it."""
    rows, height, width, channels = len(x), *x.shape[1:]
    parts = x.view(rows, height // 2, 2, width // 2, 2, channels).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, channels)
    rows = int(parts.shape[0] / (height * width / 2 / 2))
    whole = parts.view(rows, height // 2, width // 2, 2, 2, channels).permute(0, 1, 3, 2, 4, 5)
    return whole.reshape(rows, height, width, channels) + torch.ones(1, 1, 1, channels).expand(rows, -1, -1, -1)


BATCH, TOKENS = {0: "batch"}, {0: "batch", 1: "tokens"}
rand = torch.rand
OPEN: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...], Dims]] = {
    "encoder": (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2),
        (rand(1, 5, 16),),
        {"src": BATCH},
    ),
    "encoder of one token": (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1),
        (rand(1, 1, 16),),
        {"src": TOKENS},
    ),
    "norm first": (nn.TransformerEncoderLayer(16, 2, 32, norm_first=True), (rand(5, 1, 16),), {"src": {1: "batch"}}),
    "decoder": (
        nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 32, batch_first=True), 1),
        (rand(1, 5, 16), rand(1, 3, 16)),
        {"tgt": BATCH, "memory": BATCH},
    ),
    "transformer": (
        nn.Transformer(16, 2, 1, 1, 32, batch_first=True),
        (rand(1, 5, 16), rand(1, 3, 16)),
        {"src": TOKENS, "tgt": {0: "batch", 1: "words"}},
    ),
    "attention": (
        attend(batch_first=True),
        (rand(1, 5, 16), rand(1, 3, 16), rand(1, 3, 16)),
        {"query": BATCH, "key": BATCH, "value": BATCH},
    ),
    "attention with masks": (
        Calls(lambda m, x, mask, pad: m.a(x, x, x, pad, False, mask)[0], a=attend(batch_first=True)),
        (rand(1, 5, 16), torch.eye(5) == 0, torch.zeros(1, 5, dtype=torch.bool)),
        {"x": BATCH, "z": BATCH},
    ),
    "attention by hand": (Attention(), (rand(1, 5, 16),), {"x": TOKENS}),
    "causal": (Calls(causal), (rand(1, 2, 1, 8),), {"x": {0: "batch", 2: "tokens"}}),
    "class token": (
        Calls(lambda m, x: torch.cat([m.token.weight.expand(x.shape[0], -1, -1), x], 1), token=nn.Embedding(1, 4)),
        (rand(1, 3, 4),),
        {"x": BATCH},
    ),
    "flattened": (Calls(lambda m, x: x.view(x.shape[0], -1)), (rand(1, 3, 4),), {"x": BATCH}),
    "sizes swapped": (Calls(lambda m, x: x.reshape(x.shape[1], x.shape[0], 4) * 2), (rand(1, 3, 4),), {"x": TOKENS}),
    "joined": (Calls(lambda m, x: x.reshape(x.shape[0], x.shape[1] * 2, 2) * 2), (rand(1, 3, 4),), {"x": TOKENS}),
    "mask of one row": (
        Calls(lambda m, x, y: x.masked_fill(y, 0.0)),
        (rand(1, 3, 3), rand(1, 3, 3) > 0.5),
        {"x": BATCH},
    ),
    "mask of each row": (
        Calls(lambda m, x, y: x.masked_fill(y, 0.0)),
        (rand(1, 3, 3), rand(1, 3, 3) > 0.5),
        {"x": BATCH, "y": BATCH},
    ),
    "two names for one size": (Calls(lambda m, x, y: x + y), (rand(1, 3), rand(1, 3)), {"x": {0: "a"}, "y": {0: "b"}}),
    "convolutions": (
        nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
        ),
        (rand(1, 3, 8, 8),),
        {"input": {0: "batch", 2: "height"}},
    ),
    "resized": (
        Calls(lambda m, x: F.interpolate(x, scale_factor=2.0, mode="bilinear")),
        (rand(1, 3, 4, 4),),
        {"x": BATCH},
    ),
    "padded to a multiple": (Calls(lambda m, x: F.pad(x, (0, -x.shape[1] % 4))), (rand(1, 8),), {"x": TOKENS}),
    "lstm": (nn.LSTM(4, 8, batch_first=True, bidirectional=True), (rand(1, 3, 4),), {"input": BATCH}),
    "gru": (nn.GRU(4, 8), (rand(3, 1, 4),), {"input": {1: "batch"}}),
    "einsum": (
        Calls(lambda m, x, y: torch.einsum("bij,bjk->bik", x, y)),
        (rand(1, 3, 4), rand(1, 4, 2)),
        {"x": BATCH, "y": BATCH},
    ),
    "bag": (nn.EmbeddingBag(9, 4), (torch.randint(0, 9, (1, 3)),), {"input": BATCH}),
    "a row of each": (
        Calls(lambda m, x, y: x[torch.arange(x.shape[0]), y]),
        (rand(1, 4, 3), torch.randint(0, 4, (1,))),
        {"x": BATCH, "y": BATCH},
    ),
    "branch on data": (
        Calls(lambda m, x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))),
        (rand(1, 4),),
        {"x": BATCH},
    ),
    "sizes as numbers": (Calls(windows), (rand(1, 4, 4, 3),), {"x": BATCH}),
    "squeezed at the end": (Calls(lambda m, x: x.squeeze(-1)), (rand(1, 3, 1),), {"x": BATCH}),
}
NOT_EMPTY = {"lstm", "gru", "einsum"}  # ONNX Runtime ends the process where such a node has no rows


def at_size(
    example: tuple[torch.Tensor, ...], inputs: list[str], dims: Dims, name: str, size: int
) -> list[torch.Tensor]:
    result = []
    for value, own in zip(example, inputs, strict=True):
        for axis, label in dims.get(own, {}).items():
            if label == name:
                value = value.index_select(axis, torch.arange(size) % value.shape[axis])
        result.append(torch.rand_like(value) if value.is_floating_point() else value)
    return result


def same_results(model: nn.Module, session: Any, values: list[torch.Tensor]) -> bool:
    """Whether ONNX Runtime computes what PyTorch does; PyTorch may refuse the sizes."""
    with torch.no_grad():
        try:
            expected = model(*values)
        except (RuntimeError, AssertionError):
            return False
    expected = [v for v in pytree.tree_leaves(expected) if v is not None]
    names = [i.name for i in session.get_inputs()]
    got = session.run(None, {n: v.numpy() for n, v in zip(names, values, strict=True)})
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(torch.as_tensor(ours), theirs, rtol=1e-3, atol=1e-4)
    return True


@pytest.mark.parametrize("name", OPEN)
def test_an_example_of_one_is_open(name: str) -> None:
    model, example, dims = OPEN[name]
    model = model.eval()
    program = tonnx.export(model, example, dynamic_axes=dims)
    session = open_session(bytes(program), optimizes=False)
    for label in sorted({label for axes in dims.values() for label in axes.values()}):
        taken = []
        for size in (0, 1, 2, 5):
            if size == 0 and name in NOT_EMPTY:
                continue
            values = at_size(example, program.input_names, dims, label, size)
            if name == "two names for one size":
                values = [torch.rand(size, 3), torch.rand(size, 3)]
            if same_results(model, session, values):
                taken.append(size)
        assert {2, 5} <= set(taken) or label == "height"


@pytest.mark.parametrize("dim", ["n", Dim("n"), Dim("n", min=1, max=9), Dim.AUTO, Dim.DYNAMIC, Dim.AUTO(max=9)])
@pytest.mark.parametrize("as_tuple", [False, True], ids=["by name", "by place"])
def test_every_way_to_say_that_a_size_is_open(dim: Any, as_tuple: bool) -> None:
    model = Attention().eval()
    shapes = ({0: dim},) if as_tuple else {"x": {0: dim}}
    session = open_session(bytes(tonnx.export(model, rand(1, 5, 16), dynamic_shapes=shapes)), optimizes=False)
    for size in (1, 2, 5):
        assert same_results(model, session, [rand(size, 5, 16)])


STEPS = {
    "one token": (rand(1, 1, 8), rand(1, 7, 8), rand(1, 8)),
    "no cache": (rand(1, 3, 8), rand(1, 0, 8), rand(1, 3)),
    "one token and no cache": (rand(1, 1, 8), rand(1, 0, 8), rand(1, 1)),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("labels", [["b", "b", "b"], ["b", "c", "d"]], ids=["named alike", "named apart"])
def test_sizes_that_are_the_sum_of_others(name: str, labels: list[str]) -> None:
    model = Step().eval()
    x, past, mask = labels
    dims = {"x": {0: x, 1: "new"}, "past": {0: past, 1: "past"}, "mask": {0: mask, 1: "all"}}
    session = open_session(bytes(tonnx.export(model, STEPS[name], dynamic_shapes=dims)), optimizes=False)
    for batch, new, before in [(1, 1, 0), (2, 1, 4), (3, 2, 1), (1, 5, 5)]:
        values = [rand(batch, new, 8), rand(batch, before, 8), rand(batch, before + new)]
        assert same_results(model, session, values)


def twice_if_one(self, x):
    if x.shape[0] == 1:
        return x * 2
    return x


def ones_if_none(self, x):
    if x.shape[0] == 0:
        return x.new_ones(3)
    return x


def twice_if_many(self, x):
    if x.shape[0] > 8:
        return x * 2
    return x


def padded_if_uneven(self, x):
    if x.shape[0] % 4:
        x = F.pad(x, (0, 0, 0, 4 - x.shape[0] % 4))
    return x


def sum_if_alike(self, x, y):
    if x.shape == y.shape:
        return (x + y).sum()
    return x.sum()


def row_by_row(self, x):
    return torch.stack([row * 2 for row in x])


def as_number(self, x):
    return x * x.shape[0].__index__()


def by_type(self, x):
    return x * 2 if type(len(x)) is int else x


def without_ones(self, x):
    return x.squeeze() * 2


def without_first(self, x):
    return x.squeeze(0) * 2


def at_most_nine(self, x):
    return x.split(9)[0] * 2


def in_four(self, x):
    return torch.cat([part * 2 for part in x.chunk(4)])


def added_half_as_often(self, x):
    for _ in range(x.shape[0] // 2):
        x = x + 1
    return x


REFUSED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], str, str]] = {
    "one": (twice_if_one, (rand(1, 3),), "if x.shape[0] == 1:", "Dim('n', min=2)"),
    "one, with more in the example": (twice_if_one, (rand(4, 3),), "if x.shape[0] == 1:", "Dim('n', min=2)"),
    "none": (ones_if_none, (rand(1, 3),), "if x.shape[0] == 0:", "Dim('n', min=1)"),
    "many": (twice_if_many, (rand(1, 3),), "if x.shape[0] > 8:", "Dim('n', max=8)"),
    "uneven": (padded_if_uneven, (rand(8, 3),), "if x.shape[0] % 4:", "change this line"),
    "alike": (sum_if_alike, (rand(1, 3), rand(1, 3)), "if x.shape == y.shape:", "change this line"),
    "rows": (row_by_row, (rand(1, 3),), "return torch.stack([row * 2 for row in x])", "fixes the size of axis 0"),
    "number": (as_number, (rand(1, 3),), "return x * x.shape[0].__index__()", "fixes the size of axis 0"),
    "type": (by_type, (rand(1, 3),), "return x * 2 if type(len(x)) is int else x", "fixes the size of axis 0"),
    "squeeze": (without_ones, (rand(1, 3, 1),), "self.function(", "Dim('n', min=2)"),
    "squeeze of an axis": (without_first, (rand(1, 3),), "self.function(", "Dim('n', min=2)"),
    "part": (at_most_nine, (rand(1, 3),), "return x.split(9)[0] * 2", "Dim('n', max=9)"),
    "parts": (in_four, (rand(5, 3),), "return torch.cat([part * 2 for part in x.chunk(4)])", "change this line"),
    "a loop": (added_half_as_often, (rand(4, 3),), "for _ in range(x.shape[0] // 2):", "change this line"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_the_size_itself_is_refused_by_its_line(name: str) -> None:
    function, example, line, advice = REFUSED[name]
    dims = {"x": {0: "n"}, "y": {0: "m"}}
    axes = {key: axes for key, axes in dims.items() if key == "x" or len(example) == 2}
    text = outcome(lambda: tonnx.export(Calls(function), example, dynamic_axes=axes))
    assert "axis 0 of input 'x'" in text
    assert line in text
    assert "test_export_open_sizes.py:" in text
    assert advice in text


def half_of_it(self, x):
    return x, int(x.shape[0] * 0.5), x[: int(x.shape[0] * 0.75)]


def scaled_by_size(self, x):
    return x * float(x.shape[0] / 4), torch.tril(x, x.shape[0] // 2)


@pytest.mark.parametrize("function", [half_of_it, scaled_by_size])
def test_numbers_that_python_makes_of_sizes_stay_open(function: Callable[..., Any]) -> None:
    model = Calls(function)
    session = open_session(bytes(tonnx.export(model, rand(4, 3), dynamic_shapes={"x": {0: "n"}})))
    for size in (1, 2, 5, 8):
        x = rand(size, 3)
        given = {session.get_inputs()[0].name: x.numpy()}
        for got, expected in zip(session.run(None, given), model(x), strict=True):
            torch.testing.assert_close(torch.as_tensor(got), torch.as_tensor(expected))


@pytest.mark.parametrize("name", ["<stdin>", "<python-input-3>", "<ipython-input-2-abc>"])
def test_what_is_typed_into_python_is_code_of_the_user(name: str) -> None:
    typed: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x + 1 if x.shape[0] >= 2 else x * 2", name, "exec"), typed)
    text = outcome(lambda: tonnx.export(typed["f"], rand(4, 3), dynamic_shapes={"x": {0: "n"}}))
    assert f"({name}:2)" in text and "Dim('n', min=2)" in text


def test_sizes_that_the_user_rules_out_need_not_be_right() -> None:
    program = tonnx.export(Calls(twice_if_one), rand(3, 3), dynamic_shapes={"x": {0: Dim("n", min=2)}})
    assert same_results(Calls(twice_if_one), open_session(bytes(program), optimizes=False), [rand(2, 3)])
    program = tonnx.export(Calls(twice_if_many), rand(1, 3), dynamic_shapes={"x": {0: Dim("n", max=8)}})
    assert same_results(Calls(twice_if_many), open_session(bytes(program), optimizes=False), [rand(8, 3)])


def test_the_example_has_the_sizes_that_are_promised() -> None:
    text = outcome(lambda: tonnx.export(Calls(twice_if_one), rand(1, 3), dynamic_shapes={"x": {0: Dim("n", min=2)}}))
    assert text == (
        "axis 0 of input 'x' is 1 in the example, and dynamic_shapes says that it is 2 or more: give an example that is "
        "as it says"
    )


def test_a_model_that_takes_no_other_size_is_refused() -> None:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(1, 4))

        def forward(self, x):
            self.state.copy_(self.state * 0.5 + x)
            return self.state * 2

    text = outcome(lambda: tonnx.export(Remembers(), rand(1, 4), dynamic_axes={"x": {0: "n"}}))
    assert text.startswith(
        "dynamic_axes asks for open sizes, and where axis 0 of input 'x' is 5, not 1, the model fails"
    )
    assert "self.state.copy_(self.state * 0.5 + x)" in text


@pytest.mark.parametrize("function", [twice_if_one, as_number, row_by_row, without_ones])
def test_auto_has_the_size_of_the_example_where_it_must(function: Callable[..., Any]) -> None:
    model = Calls(function)
    program = tonnx.export(model, rand(1, 3), dynamic_shapes={"x": {0: Dim.AUTO}})
    session = open_session(bytes(program), optimizes=False)
    assert session.get_inputs()[0].shape == [1, 3]
    assert same_results(model, session, [rand(1, 3)])


def test_multiples_of_a_dim() -> None:
    model = Calls(lambda m, x, y: torch.cat([x, x]) + y)
    n = Dim("n")
    program = tonnx.export(model, (rand(1, 3), rand(2, 3)), dynamic_shapes=({0: n}, {0: 2 * n}))
    session = open_session(bytes(program), optimizes=False)
    for size in (0, 1, 4):
        assert same_results(model, session, [rand(size, 3), rand(2 * size, 3)])


def test_the_example_stays_the_users(tmp_path) -> None:
    model, example = copy.deepcopy(OPEN["encoder"][0]).eval(), OPEN["encoder"][1]
    program = tonnx.export(model, example, tmp_path / "m.onnx", dynamic_axes={"src": BATCH}, verify=True)
    args, kwargs = program.exported_program.example_inputs
    assert args[0] is example[0]
    assert kwargs == {}


def test_additional_inputs_are_open_sizes() -> None:
    more = torch.export.AdditionalInputs()
    more.add((rand(4, 3),))
    program = tonnx.export(nn.Linear(3, 2), rand(1, 3), dynamic_shapes=more)
    assert program(rand(6, 3))[0].shape == (6, 2)


def test_one_tensor_given_twice_is_two_inputs() -> None:
    model = attend(batch_first=True).eval()
    x, y = rand(1, 5, 16), rand(1, 5, 16)
    for options in ({}, {"dynamic_axes": {"query": BATCH, "key": BATCH, "value": BATCH}}):
        session = open_session(bytes(tonnx.export(model, (x, x, x), **options)), optimizes=False)
        assert same_results(model, session, [x, y, y])


def test_what_is_tried_is_not_logged(capfd: pytest.CaptureFixture[str]) -> None:
    model = Calls(lambda m, x: F.interpolate(x, scale_factor=2.0))
    records: list[logging.LogRecord] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = records.append  # type: ignore[method-assign]
    loggers = [logging.getLogger(), logging.getLogger("torch")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        tonnx.export(model, rand(1, 3, 4, 4), dynamic_axes={"x": {0: "n", 2: "h"}})  # which cannot be 0
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
    assert records == []
    assert capfd.readouterr().err == ""

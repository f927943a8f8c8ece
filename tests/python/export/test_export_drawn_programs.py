"""Programs that `make fuzz-values VALUES=programs` found: on every route out of PyTorch they compute what PyTorch computes.

Each says the number of the first case that had it.
"""

from __future__ import annotations

import importlib.util
import re
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import tonnx

warnings.filterwarnings("ignore", category=DeprecationWarning)

Tensors = list[torch.Tensor]
Run = Callable[[Tensors], list[np.ndarray[Any, Any]]]


@dataclass(frozen=True)
class Drawn:
    """The lines of a function of `a`, `b` ..., and its inputs at two sizes of what is open."""

    text: str  # its last line gives the results
    inputs: str  # "float32 n 3; int64 4": a type and sizes for each, a letter for one that is open
    sizes: tuple[dict[str, int], ...] = ({"n": 3, "m": 2}, {"n": 5, "m": 4})
    routes: tuple[str, ...] = ("live", "fixed", "pt2", "python", "script")

    def parsed(self) -> list[tuple[torch.dtype, list[str | int]]]:
        rows = [text.split() for text in self.inputs.split(";")]
        return [(getattr(torch, dtype), [int(d) if d.isdigit() else d for d in dims]) for dtype, *dims in rows]

    def tensors(self, at: int) -> Tensors:
        random = torch.Generator().manual_seed(at)
        found = []
        for dtype, dims in self.parsed():
            shape = [self.sizes[at][d] if isinstance(d, str) else d for d in dims]
            numbers = torch.randint(0 if dtype in (torch.uint8, torch.bool) else -6, 7, shape, generator=random)
            found.append(
                numbers > 3
                if dtype is torch.bool
                else numbers.to(dtype) / 2
                if dtype.is_floating_point
                else numbers.to(dtype)
            )
        return found

    def open_sizes(self) -> list[dict[int, str]] | None:
        found = [{i: d for i, d in enumerate(dims) if isinstance(d, str)} for _, dims in self.parsed()]
        return found if any(found) else None

    def module(self, folder: Path) -> torch.nn.Module:
        names = ", ".join(f"{name}: torch.Tensor" for name in "abcde"[: len(self.parsed())])
        body = textwrap.indent(textwrap.dedent(self.text).strip(), "        ")
        start = "import torch\nimport torch.nn.functional as F\n\n\nclass Net(torch.nn.Module):\n"
        module: torch.nn.Module = loaded(folder, "net", f"{start}    def forward(self, {names}):\n{body}\n").Net()
        return module.eval()


def loaded(folder: Path, name: str, source: str | None = None) -> Any:
    path = folder / f"{name}.py"
    if source is not None:
        path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arrays(results: Any) -> list[np.ndarray[Any, Any]]:
    found = results if isinstance(results, (tuple, list)) else [results]
    return [r.detach().numpy().copy() if isinstance(r, torch.Tensor) else torch.tensor(r).numpy() for r in found]


def in_runtime(model: bytes) -> Run:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]

    def run(tensors: Tensors) -> list[np.ndarray[Any, Any]]:
        feeds = (
            dict(zip("abcde", tensors, strict=False))
            if names and names[0] in "abcde"
            else dict(zip(names, tensors, strict=True))
        )
        return list(session.run(None, {name: feeds[name].numpy() for name in names}))

    return run


def saved(drawn: Drawn, folder: Path) -> Path:
    shapes = drawn.open_sizes()
    dims = tuple({i: torch.export.Dim.AUTO for i in each} for each in shapes) if shapes else None
    program = torch.export.export(drawn.module(folder), tuple(drawn.tensors(0)), dynamic_shapes=dims)
    torch.export.save(program, folder / "net.pt2")
    return folder / "net.pt2"


def taken(drawn: Drawn, route: str, folder: Path) -> Run:
    if route in ("live", "fixed"):
        shapes = drawn.open_sizes() if route == "live" else None
        return in_runtime(bytes(tonnx.export(drawn.module(folder), tuple(drawn.tensors(0)), dynamic_shapes=shapes)))
    if route == "python":
        tonnx.convert(saved(drawn, folder), folder / "code.py")
        model = loaded(folder, "code").Model
        model = model.load() if (folder / "code.safetensors").exists() else model()
        return lambda tensors: arrays(model.eval()(*tensors))
    if route == "script":
        torch.jit.script(drawn.module(folder)).save(str(folder / "net.pt"))
        rows = drawn.parsed()
        sizes = {str(i): [-1 if isinstance(d, str) else d for d in dims] for i, (_, dims) in enumerate(rows)}
        types = {str(i): str(dtype).removeprefix("torch.") for i, (dtype, _) in enumerate(rows)}
        tonnx.convert(folder / "net.pt", folder / "net.onnx", input_shapes=sizes, input_types=types)
    else:
        tonnx.convert(saved(drawn, folder), folder / "net.onnx")
    return in_runtime((folder / "net.onnx").read_bytes())


CASES = {
    # 41000375: floor((2 - min(3, n)) / 3) is -1 where n is 3
    "a size that is divided where it is negative": Drawn(
        "return a.diagonal(0, 2, 1)[1:2, ..., -1:2:3].numel(), a[-1:2:3].numel()", "float32 2 n 3 m", routes=("pt2", "python", "script")
    ),
    "sizes that are divided": Drawn(
        "return ((a.shape[0] - 3) // 2, (a.shape[0] - 7) // 3 + 1, (2 - a.shape[1]) // 3, a[::2].shape[0])", "float32 n m"
    ),
    # 41000383
    "an empty row beside tables": Drawn("return torch.hstack([b[:, :1], a[4:]]), torch.cat([a[4:], b], 0)", "int32 4; float32 n 2"),
    # 42000717: there is no `flags - 1`
    "a negative number that is added to flags": Drawn("return (a > 1) + -1, -1 + (a > 1)", "float32 n"),
    # 901000088
    "signs of whole numbers": Drawn("return torch.copysign(a, b), torch.copysign(b, 2), torch.copysign(c, c)", "int64 n; int32 n; bool 3"),
    # 42000601
    "squares of flags": Drawn("return a.square(), a[0].square()", "bool n"),
    "places without a dimension": Drawn("return torch.take_along_dim(a, torch.tensor([[0, 3], [1, 1]])), a.diff(n=0, prepend=a)", "float32 n 4"),
    # 61000333: what sums nothing is a view
    "writes through einsum": Drawn(
        """
        x = a + 0
        torch.einsum('ij->ji', x)[0].sub_(1)
        torch.einsum('ii->i', x[:, :3]).mul_(2)
        y = torch.einsum('...ij->...ji', b)
        b.add_(1)
        z = torch.cartesian_prod(x[0])
        z[1] = 7
        return x, y * 2, torch.einsum('ij->j', x)
        """,
        "float32 3 n; float32 2 n m",
        ({"n": 4, "m": 3}, {"n": 6, "m": 2}),
        ("live", "fixed", "pt2", "python"),  # torch.jit.script drops such writes
    ),
    "what looks like a copy": Drawn(
        "x = a + 0\ntorch.conj_physical(x).mul_(2)\nreturn x", "float32 3 n", routes=("live", "fixed", "pt2", "python")
    ),
    "what looks like a view": Drawn(
        "x = a + 0\ny = torch.narrow_copy(x, 0, 0, 2)\ny.add_(5)\nreturn x, y", "float32 3 n"
    ),
    # 81000480
    "quotients of the smallest integers": Drawn(
        """
        x = (a * 0 - 128).to(torch.int8) + torch.arange(4, dtype=torch.int8)
        return x // 7, x // -7, torch.floor_divide(x, (b.abs() + 2).to(torch.int8)), torch.div(x, 5, rounding_mode='floor')
        """,
        "int64 n 4; int64 4",
    ),
    # 81000260
    "sums of products that broadcast": Drawn(
        "return torch.einsum('...i,...i->...', a, b), torch.einsum('bij,bjk->bik', c, b)",
        "float32 3 2 1 3; float32 1 6 3; float32 n 4 6",
    ),
    # 61000092
    "angles of zeros with signs": Drawn("return torch.atan2(a * 0, b * 0), torch.atan2(a * 0, b)", "float32 8; float32 8"),
    # 61000700
    "one step of an open number": Drawn(
        "n = a.shape[0]\nreturn torch.linspace(2, 1, n), torch.linspace(1, 5, n, dtype=torch.int64)",
        "float32 n",
        ({"n": 3}, {"n": 1}, {"n": 2}),
        ("script",),
    ),
    # 41000617: there are fewer parts than asked for
    "the last part of few": Drawn(
        "return a.chunk(2, 0)[-1], a.chunk(4, 1)[-1], a.chunk(2, -1)[-2]",
        "float32 n m",
        ({"n": 4, "m": 6}, {"n": 2, "m": 4}, {"n": 1, "m": 5}, {"n": 7, "m": 9}),
        ("script",),
    ),
    # 62000256: the sizes of the example have no such elements
    "slices that are empty at first": Drawn(
        "return a[4:-1], a[2:][3:-2]", "float32 n", ({"n": 2}, {"n": 5}, {"n": 6}, {"n": 9}), ("live",)
    ),
    # 64000555: ONNX Runtime ends with the process where a Scan has no elements
    "running products and extremes of nothing": Drawn(
        "return a.cumprod(0), a.cumprod(1), *a.cummax(0), *a.cummin(2), a.logcumsumexp(1), a.logcumsumexp(2)",
        "float32 n 2 m", ({"n": 3, "m": 4}, {"n": 0, "m": 2}, {"n": 2, "m": 0}, {"n": 1, "m": 1}), ("live", "pt2"),
    ),
    # 65000079: one element in more dimensions than are written to
    "one element through a mask": Drawn(
        """
        x = a * 1
        x[x > 0] = a[:1, :1]
        y = a * 1
        y[torch.tensor([0, 1]), torch.tensor([1, 0])] = a[:1, :1, None]
        return x, y
        """,
        "float32 2 3", routes=("fixed", "pt2", "python", "script"),
    ),
    # 62000473
    "numbers times another number": Drawn(
        "return a.sub(0.5, alpha=2), a.add(1.5, alpha=3), torch.rsub(a, 2.5, alpha=2), b.sub(0.25, alpha=3), b.add(2, alpha=-1)",
        "uint8 3; float32 4",
    ),
    # chunk(3) of one element is one part, and chunk(4) of five elements has parts of 2, 2 and 1
    "parts of few elements": Drawn(
        "return a.chunk(3, 0)[0], a.chunk(4, 0)[0] * 2",
        "float32 n 2", ({"n": 7}, {"n": 1}, {"n": 2}, {"n": 4}, {"n": 5}), ("pt2", "script"),
    ),
    "the third part of five elements": Drawn(
        "return a.chunk(4, 1)[2]", "float32 2 n", ({"n": 7}, {"n": 5}, {"n": 6}, {"n": 9}), ("pt2", "script"),
    ),
    # 97000124: b[0] is broadcast along the dimension of the products where m is 1
    "an angle to what an open size broadcasts": Drawn(
        "return F.cosine_similarity(a, b, dim=-1), F.cosine_similarity(b, a[0], dim=0)", "float32 6 m 2; float32 2 m",
        ({"m": 2}, {"m": 1}), ("script",),
    ),
    # 81000505: of equal strides the longer dimension is outside
    "a copy of what overlaps itself": Drawn(
        """
        x = (a + 0).as_strided((2, 6), (1, 1)).clone()
        x.reshape(x.shape[0] * x.shape[1]).sub_(2)
        y = (a + 0).as_strided((6, 2), (1, 1)) + 1
        y.reshape(-1).sub_(2)
        return x, y
        """,
        "float32 4 3", routes=("fixed", "pt2", "python"),
    ),
    # 97000189: the first tensor says how the sum lies in memory, though it has no view
    "sums of tensors that lie otherwise": Drawn(
        """
        x = a.relu() + b.t()
        y = b.t() + a.relu()
        z = c + b.t()
        x.flatten().add_(1)
        y.flatten().add_(1)
        z.flatten().add_(1)
        return x, y, z
        """,
        "float32 3 4; float32 4 3; float32 1 4", routes=("fixed", "pt2", "python"),
    ),
    # 81000815: equal sizes of the example, which a reshape has PyTorch take for one
    "two open sizes that are equal at first": Drawn(
        """
        a.unfold(1, 2, 2).sub_(3)
        x = a.transpose(1, 0)
        return a.take(torch.tensor([0, 1])), x.reshape(x.shape[1], x.shape[0])
        """,
        "int32 n m", ({"n": 4, "m": 4}, {"n": 2, "m": 6}, {"n": 5, "m": 3}), ("live",),
    ),
    "parts that are unpacked": Drawn("p, q = a.chunk(2, 0)\nreturn p, q, torch.cat([p, q])", "float32 n m"),
    "one place and a row of values": Drawn("return a.scatter(0, torch.tensor(1), b), a.scatter_add(0, torch.tensor(0), b)", "float32 n; float32 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_drawn_programs(name: str, tmp_path: Path) -> None:
    drawn = CASES[name]
    module = drawn.module(tmp_path)
    want = [arrays(module(*drawn.tensors(at))) for at in range(len(drawn.sizes))]
    for route in drawn.routes:
        folder = tmp_path / route
        folder.mkdir()
        run = taken(drawn, route, folder)
        for at in range(1 if route == "fixed" else len(drawn.sizes)):
            got = run(drawn.tensors(at))
            assert [(g.dtype, g.shape) for g in got] == [(w.dtype, w.shape) for w in want[at]], (route, at)
            for g, w in zip(got, want[at], strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6, err_msg=f"{route}, size {at}")


# 61000417
@pytest.mark.parametrize("route", ["pt2", "script"])
def test_a_view_that_overlaps_itself_is_not_written_through(route: str, tmp_path: Path) -> None:
    drawn = Drawn("b = a + 0\nb.as_strided((2, 24), (1, 1)).fill_(3)\nreturn b", "float32 3 6 4")
    with pytest.raises(tonnx.Error, match="as_strided"):
        taken(drawn, route, tmp_path)


NO_ROWS = {
    "rot90": "x = torch.rot90(a)\ny = x.flatten(0, 1)",  # 97000189
    "rot90 and more": "x = torch.rot90(a) + 1\ny = x.flatten(0, 1)",
    "nonzero": "x = a.nonzero() % 1.0\ny = x.flatten(0, 1)",  # 111000272
    "argwhere": "x = torch.argwhere(a)\ny = x.flatten(0, 1)",
    "flip": "x = a.transpose(0, 1).flip(0)\ny = x.reshape(-1)",
    "sort": "x = a.transpose(0, 1).sort(0)[0]\ny = x.contiguous()",
    "index_fill": "x = a.transpose(0, 1).index_fill(0, torch.tensor([0]), 1)\ny = x.reshape(-1)",
    "index": "x = a.transpose(1, 2)[torch.tensor([0, 1])]\ny = x.flatten()",
    "cat": "b = a[None].permute(0, 3, 1, 2)\nx = torch.cat([b, b])\ny = x.reshape(-1)",
}  # fmt: skip


@pytest.mark.parametrize("end", ["x.add_(1)\nreturn x, y + 0", "y.add_(1)\nreturn x + 0, y"])
@pytest.mark.parametrize("name", NO_ROWS)
def test_writes_beside_what_may_be_a_copy(name: str, end: str, tmp_path: Path) -> None:
    """Whether a reshape copies depends on how its tensor lies in memory: right, or refused."""
    drawn = Drawn(f"{NO_ROWS[name]}\n{end}", "float32 3 4 5")
    want = arrays(drawn.module(tmp_path)(*drawn.tensors(0)))
    for route in ("fixed", "pt2"):
        folder = tmp_path / route
        folder.mkdir()
        try:
            run = taken(drawn, route, folder)
        except tonnx.Error as e:
            assert e.kind == "unsupported"
            assert re.search("may be a view or a copy|a write to what", str(e))
            continue
        for got, wanted in zip(run(drawn.tensors(0)), want, strict=True):
            np.testing.assert_array_equal(got, wanted)


# 72000022: PyTorch asserts that a count is at most 2 ** 64 - 4
def test_a_bound_that_no_integer_holds(tmp_path: Path) -> None:
    drawn = Drawn(
        """
        x = a.unique().expand(2, -1)
        y = F.hardsigmoid(torch.atan2(x.isinf(), x.isinf()))
        y[y > 1] += 5
        return x ^ a.sgn(), y
        """,
        "int64 1 n",
    )
    shapes = ({1: torch.export.Dim.AUTO},)
    module = drawn.module(tmp_path)
    program = torch.export.export(module, (torch.arange(3)[None],), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "net.pt2")
    tonnx.convert(tmp_path / "net.pt2", tmp_path / "net.onnx")
    run = in_runtime((tmp_path / "net.onnx").read_bytes())
    for n in (3, 5):
        for got, want in zip(run([torch.arange(n)[None]]), arrays(module(torch.arange(n)[None])), strict=True):
            np.testing.assert_array_equal(got, want)


# 95000122: and that one of products of these is at most a number that no unsigned integer holds
def test_a_bound_that_is_larger_still(tmp_path: Path) -> None:
    drawn = Drawn("return a.nonzero().nonzero(as_tuple=True)[0]", "int16 1 m m")
    for route in ("pt2", "python"):
        folder = tmp_path / route
        folder.mkdir()
        run = taken(drawn, route, folder)
        for at in range(2):
            want = arrays(drawn.module(folder)(*drawn.tensors(at)))
            np.testing.assert_array_equal(run(drawn.tensors(at))[0], want[0])


# 72000034
def test_a_number_that_follows_from_an_open_size_is_refused(tmp_path: Path) -> None:
    drawn = Drawn("return torch.tril_indices(a.shape[0], 3)", "float32 n")
    with pytest.raises(
        tonnx.Error, match="'row' of tril_indices follows from data or from a size that is open"
    ) as error:
        taken(drawn, "script", tmp_path)
    assert error.value.kind == "unsupported"


@pytest.mark.parametrize(
    "text",
    [
        "s = torch.zeros(1)\nfor p in a.chunk(3, 0):\n    s = s * 2 + p.sum()\nreturn s",
        "return torch.zeros(len(a.chunk(3, 0)))",
        "c = a.chunk(3, 0)\nreturn c[len(c) - 1]",
        "return torch.cat(a.chunk(3, 0), 1)",
        "return torch.stack([p.sum() for p in a.chunk(3, 0)])",
        "c = a.chunk(3, 0)\nc.append(a)\nreturn c[-2]",
        "return torch.zeros(len(a.chunk(3, 0)[1:]))",
        "return a.chunk(3, 0)",
    ],
)
def test_as_many_parts_as_follow_from_an_open_size_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(tonnx.Error, match="how many tensors chunk gives follows from a size that is open") as error:
        taken(Drawn(text, "float32 n 4"), "script", tmp_path)
    assert error.value.kind == "unsupported"


# 42000605: PyTorch asserts that no size is negative, where it is asked for those of another trace
def test_a_question_of_sizes_that_pytorch_cannot_answer(tmp_path: Path) -> None:
    drawn = Drawn(
        """
        b = torch.broadcast_to(a, a.shape)
        c = b.reshape(b.shape[2], b.shape[1], b.shape[0])[2:]
        d = c.view(2, -1, c.shape[1], c.shape[2])
        return a + 1
        """,
        "float32 3 n n",
        ({"n": 2},),
    )
    try:
        run = taken(drawn, "live", tmp_path)
    except tonnx.Error as e:
        assert e.kind == "unsupported"
        return
    np.testing.assert_array_equal(run(drawn.tensors(0))[0], (drawn.tensors(0)[0] + 1).numpy())

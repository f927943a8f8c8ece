"""TorchScript archives as sources: what PyTorch computes with them is what ONNX Runtime and generated code compute."""

from __future__ import annotations

import enum
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple  # noqa: UP035  as TorchScript asks for them

import numpy as np
import onnxruntime
import pytest
import torch
from conftest import cli_command
from torch import Tensor, nn

import tonnx

Cli = Callable[..., subprocess.CompletedProcess[str]]
Calls = Sequence[tuple[Any, ...]]

warnings.filterwarnings("ignore", category=DeprecationWarning)


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu_(self.norm(self.conv(x))) + x


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.ConvTranspose2d(3, 4, 2, stride=2)
        self.blocks = nn.Sequential(Block(4), Block(4))
        self.drop = nn.Dropout(0.5, inplace=True)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.stem(x))
        x = nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear")
        return torch.log_softmax(self.head(self.drop(x.mean((2, 3)))), -1)


class Views(nn.Module):
    """Arithmetic on sizes, as traces compute it in tensors."""

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        y = x.view(b, t, 2, c // 2).transpose(1, 2).reshape(b * 2, t, -1)
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        scores = (y @ y.transpose(1, 2) / (c // 2) ** 0.5).masked_fill(~mask, float("-inf"))
        return (scores.softmax(-1) @ y).view(b, 2, t, c // 2)[:, -1] + torch.arange(t).unsqueeze(-1)


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            y = x * 2
        elif bool(x.min() < -5):
            y = x - 7
        else:
            y = x.abs()
        return y + 1


class Early(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for i in range(5):
            x = x * 0.5 + i
            if bool(x.max() > 2):
                return x * 10
        return -x


class While(nn.Module):
    def forward(self, a: Tensor) -> tuple[Tensor, int]:
        x, steps = a.clone(), 0
        while bool((x * x - a).abs().max() > 1e-3) and steps < 20:
            x = 0.5 * (x + a / x)
            steps += 1
        return x, steps


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, c = torch.zeros(x.size(1), 4), torch.zeros(x.size(1), 4)
        steps: list[Tensor] = []
        for t in range(x.size(0)):
            h, c = self.cell(x[t], (h, c))
            steps.append(h)
        return torch.stack(steps), c


class Writes(nn.Module):
    """Tensors that a loop and a branch write to, themselves and through views."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        for i in range(x.size(0)):
            y[i] = x[: i + 1].sum(0)
            y[i, 0] += 1
        if bool(x.sum() > 0):
            y[:, 1] = 5
        return y * 2


class Nested(nn.Module):
    """Writes in a branch inside a loop, and in a branch inside a branch."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        for i in range(x.size(0)):
            if bool(x[i].sum() > 0):
                y[i] = x[i] * 2
            y[i, 0] += 1
        z = x.clone()
        if bool(x.sum() > 0):
            if bool(x.max() > 1):
                z[:, 1] = 7
            z[:, 2] += 1
        return y + z


class Pair(NamedTuple):
    first: Tensor
    rest: list[Tensor]


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mode = "sum"
        self.scales = {"large": 3.0, "small": 0.5}

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Pair:
        table: dict[str, Tensor] = {}
        for i, part in enumerate(torch.chunk(x, 2, -1)):
            table[str(i)] = part * self.scales["large"]
        if bias is not None:
            x = x + bias
        y = x.sum(0) if self.mode == "sum" else x.mean(0)
        if x.dim() != 2:
            raise ValueError("two dimensions")
        return Pair(y, list(table.values()))


class Mode(enum.Enum):
    ADD = "add"
    MUL = "mul"


class Plain(nn.Module):
    """What is decided before the model runs: members of an Enum, slices of lists, texts, ranges."""

    def __init__(self) -> None:
        super().__init__()
        self.mode = Mode.MUL

    def forward(self, x: Tensor) -> Tensor:
        sizes = [x.size(i) for i in range(x.dim() - 1, -1, -1)]
        y = x.detach().reshape(sizes[::-1][-2:])
        for i in range(6, 0, -2):
            y = y + i
        if self.mode == Mode.ADD:
            return y + 1
        return y.to(torch.device("cpu")) * (3.0 if "{}".format(len(sizes)) == "2" else 0.0)  # noqa: UP032


class Chosen(nn.Module):
    """A way that raises, a branch inside a loop, numbers that the run decides."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int, float]:
        if bool(x.isnan().any()):
            raise ValueError("nan")
        count, scale = 0, 1.0
        for i in range(n):
            if bool(x[0] > i):
                count += 2
                scale = scale * 0.5
            else:
                x = x + 1
        return x * scale, count, scale


class Forks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        other = torch.jit.fork(self.layer, x)
        more = torch.jit.fork(torch.relu, x * 2)
        return torch.jit.wait(other) + torch.jit.wait(more)


class Scales(nn.Module):
    """A factor that follows from sizes in small tensors, dicts of pairs, and a way of its own for what is empty."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        sizes = torch.tensor(x.shape[-2:])
        low, high = torch.min(sizes).to(torch.float32), torch.max(sizes).to(torch.float32)
        factor = torch.min(torch.reciprocal(low) * 8.0, 20.0 / high).item()
        large = nn.functional.interpolate(x, scale_factor=float(factor), mode="bilinear", recompute_scale_factor=True)
        parts = {str(i): part for i, part in enumerate(large.unbind(1))}
        parts.update({"last": large[:, 0]})
        places = torch.where(parts["1"].flatten() > 0)[0]
        rows = places.reshape(-1, 1)
        if rows.size(0) > 0:
            rows = rows.reshape(rows.size(0), 1, 1)
        return parts["last"] + len(parts), rows


class Written(nn.Module):
    """A tensor that was known, and is written to before it is asked."""

    def forward(self, x: Tensor) -> Tensor:
        count = torch.tensor([1.0, 2.0])
        count[0] = 7.0
        return x * count.max() + torch.min(count, torch.tensor([3.0, 3.0]))


class Bits(nn.Module):
    """Integers of 64 bits without a sign, the smallest with one, float8 past its range."""

    def forward(self, x: Tensor, wide: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        chosen = torch.where(torch.tensor([True, False, True]), wide, wide.view(3)[:1])
        signs = torch.tensor([5, -1]).bitwise_xor(-9223372036854775808)
        narrow = (x * 1e6).to(torch.float8_e5m2).to(torch.float32)
        return chosen.to(torch.int64), signs, narrow, torch.einsum("i,i", [x, x])


def rand(*shape: int) -> Tensor:
    return torch.rand(*shape) * 4 - 2


WIDE = torch.tensor([2**63 + 5, 2**40, 300], dtype=torch.uint64)
CASES: dict[str, tuple[Callable[[], nn.Module], str, Calls]] = {
    "layers": (Layers, "both", [(rand(2, 3, 6, 6),), (rand(3, 3, 6, 6),)]),
    "views": (Views, "both", [(rand(2, 5, 8),)]),
    "branches": (Branches, "script", [(torch.ones(3),), (-torch.ones(3),), (torch.full((3,), -9.0),)]),
    "early": (Early, "script", [(rand(4),), (torch.full((4,), 9.0),), (torch.full((4,), -90.0),)]),
    "while": (While, "script", [(torch.tensor([2.0, 9.0]),), (torch.tensor([1.0, 1.0]),)]),
    "steps": (Steps, "script", [(rand(4, 2, 3),), (rand(7, 2, 3),)]),
    "writes": (Writes, "script", [(torch.rand(4, 3),), (-torch.rand(6, 3),)]),
    "nested": (Nested, "script", [(torch.rand(4, 3),), (-torch.rand(6, 3),), (rand(5, 3) + 1,)]),
    "containers": (Containers, "script", [(rand(3, 4),)]),
    "containers with bias": (Containers, "script", [(rand(3, 4), rand(4))]),
    "plain": (Plain, "script", [(rand(3, 4),), (rand(5, 4),)]),
    "chosen": (Chosen, "script", [(torch.tensor([2.5]), 4), (torch.tensor([-1.0]), 3), (torch.tensor([9.0]), 0)]),
    "recurrent": (lambda: nn.GRU(3, 4, 2, bidirectional=True), "trace", [(rand(5, 2, 3),)]),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), "both", [(rand(2, 5, 8),)]),
    "bits": (Bits, "trace", [(rand(3), WIDE)]),
    "forks": (Forks, "both", [(rand(2, 3),)]),
    "scales": (Scales, "script", [(rand(2, 3, 4, 6),)]),
    "written": (Written, "script", [(rand(2),)]),
}


def flat(value: Any) -> list[Tensor]:
    if isinstance(value, int | float | bool):
        return [torch.tensor(value)]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, list | tuple) else [value]


def saved(build: Callable[[], nn.Module], how: str, calls: Calls, path: Path) -> list[list[Tensor]]:
    """Writes the archive, and gives what PyTorch computes with it."""
    torch.manual_seed(0)
    model = build().eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.jit.script(model) if how == "script" else torch.jit.trace(model, calls[0], check_trace=False)
        torch.jit.save(made, path)
        loaded = torch.jit.load(path)
        return [flat(loaded(*args)) for args in calls]


def input_options(calls: Calls) -> tuple[dict[str, list[int]], dict[str, str]]:
    shapes, types = {}, {}
    for i, example in enumerate(calls[0]):
        if not isinstance(example, Tensor):
            continue
        sizes = zip(*(args[i].shape for args in calls), strict=True)
        shapes[str(i)] = [-1 if len(set(each)) > 1 else each[0] for each in sizes]
        types[str(i)] = str(example.dtype).removeprefix("torch.")
    return shapes, types


def run(path: str, args: Sequence[Any]) -> list[Tensor]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {value.name: np.asarray(x) for value, x in zip(session.get_inputs(), args, strict=True)}
    return [torch.from_numpy(np.asarray(result)) for result in session.run(None, feeds)]


def assert_close(got: list[Tensor], wanted: list[Tensor]) -> None:
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


ALL = [(name, how) for name, case in CASES.items() for how in ("script", "trace") if case[1] in (how, "both")]


@pytest.mark.parametrize(("name", "how"), ALL)
def test_outputs_are_those_of_pytorch(cli: Cli, tmp_path: Path, name: str, how: str) -> None:
    build, _, calls = CASES[name]
    wanted = saved(build, how, calls, tmp_path / "m.pt")
    shapes, types = input_options(calls)
    options = [text for i, shape in shapes.items() for text in ("--input-shape", f"{i}:{','.join(map(str, shape))}")]
    options += [text for i, dtype in types.items() for text in ("--input-type", f"{i}:{dtype}")]
    done = cli("convert", "m.pt", "m.onnx", *options)
    assert done.returncode == 0, done.stderr
    for args, outputs in zip(calls, wanted, strict=True):
        assert_close(run("m.onnx", args), outputs)
    module = tonnx.convert("m.pt", input_shapes=shapes, input_types=types)
    with torch.no_grad():
        for args, outputs in zip(calls, wanted, strict=True):
            assert_close(flat(module(*map(torch.as_tensor, args))), outputs)


def test_names_of_the_state_dict_and_of_classes(tmp_path: Path) -> None:
    saved(Layers, "trace", [(rand(2, 3, 6, 6),)], tmp_path / "m.pt")
    module = tonnx.convert("m.pt", input_shapes={"x": [2, 3, 6, 6]})
    known = {name for name in Layers().state_dict() if not name.endswith("num_batches_tracked")}
    assert {name for name in module.state_dict() if not name.endswith("num_batches_tracked")} == known
    assert type(module.blocks[0]).__name__ == "Block"


@pytest.mark.parametrize("target", ["m.pt2", "m.safetensors", "m.pth"])
def test_other_targets(cli: Cli, tmp_path: Path, target: str) -> None:
    calls = CASES["layers"][2]
    (wanted, _) = saved(Layers, "script", calls, tmp_path / "m.pt")
    done = cli("convert", "m.pt", target, "--input-shape", "x:2,3,6,6")
    assert done.returncode == 0, done.stderr
    if target == "m.pt2":
        assert_close(flat(torch.export.load(target).module()(*calls[0])), wanted)


def test_print_shows_the_graph(cli: Cli, tmp_path: Path) -> None:
    saved(Views, "trace", [(rand(2, 5, 8),)], tmp_path / "m.pt")
    done = cli("print", "m.pt", "--input-shape", "0:-1,5,8")
    assert done.returncode == 0, done.stderr
    assert "input %x: float32[x_0, 5, 8]" in done.stdout and "aten::softmax" in done.stdout


def test_in_a_batch(cli: Cli, tmp_path: Path) -> None:
    saved(Views, "trace", [(rand(2, 5, 8),)], tmp_path / "m.pt")
    Path("b.yml").write_text("models:\n  - {source: m.pt, target: m.onnx, input_shapes: {x: [2, 5, 8]}}\n")
    done = cli("run", "b.yml")
    assert done.returncode == 0, done.stderr
    x = rand(2, 5, 8)
    assert_close(run("m.onnx", (x,)), flat(torch.jit.load("m.pt")(x)))


def test_shapes_for_all_models_of_a_batch(cli: Cli, tmp_path: Path) -> None:
    saved(Views, "trace", [(rand(2, 5, 8),)], tmp_path / "m.pt")
    saved(Net, "script", [(rand(2),)], tmp_path / "n.pt")
    Path("b.yml").write_text(
        "defaults: {input_shapes: {x: [3, 5, 8]}}\nmodels:\n  - {source: m.pt, target: m.onnx}\n"
        "  - {source: n.pt, target: n.onnx, input_shapes: {x: [4]}}\n"
    )
    done = cli("run", "b.yml")
    assert done.returncode == 0, done.stderr
    assert onnxruntime.InferenceSession("m.onnx").get_inputs()[0].shape == [3, 5, 8]
    assert onnxruntime.InferenceSession("n.onnx").get_inputs()[0].shape == [4]


def edited(source: Path, target: Path, edit: Callable[[str, bytes], bytes | None]) -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = edit(name, old.read(name))
            if data is not None:
                new.writestr(name, data)


def with_version(number: int) -> Callable[[str, bytes], bytes]:
    return lambda name, data: f"{number}\n".encode() if name.endswith("version") else data


class Divides(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return torch.div(x, y), torch.div(x, 2), torch.full([2], 3)


@pytest.mark.parametrize("version", [3, 4, 10])
def test_older_versions_mean_what_they_meant(cli: Cli, tmp_path: Path, version: int) -> None:
    saved(Divides, "script", [(torch.tensor([7, -7]), torch.tensor([2, 2]))], tmp_path / "new.pt")
    edited(tmp_path / "new.pt", tmp_path / "m.pt", with_version(version))
    args = (torch.tensor([7, -7]), torch.tensor([2, 2]))
    wanted = flat(torch.jit.load("m.pt")(*args))
    options = ["--input-shape", "0:2", "--input-type", "0:int64", "--input-shape", "1:2", "--input-type", "1:int64"]
    done = cli("convert", "m.pt", "m.onnx", *options)
    assert done.returncode == 0, done.stderr
    assert_close(run("m.onnx", args), wanted)


def code(text: str) -> Callable[[str, bytes], bytes]:
    return lambda name, data: text.encode() if name.endswith("/test_torchscript_reader.py") else data


CLASS = """class Net(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  _is_full_backward_hook : Optional[bool]
"""
FORWARD = "  def forward(self: __torch__.test_torchscript_reader.Net,\n    x: Tensor) -> Tensor:\n"
PYRAMID = ["b0 = [x, x]", *(f"b{i + 1} = [b{i}, b{i}]" for i in range(40))]
NUMBERS = ["b0 = [1, 2]", *PYRAMID[1:]]


def body(*lines: str) -> Callable[[str, bytes], bytes]:
    return code(CLASS + FORWARD + "".join(f"    {line}\n" for line in lines))


HOSTILE: dict[str, Callable[[str, bytes], bytes | None]] = {
    "the archive is of version 11": with_version(11),
    "whose code is not in it": lambda name, data: None if name.endswith("constants.pkl") else data,
    "more than 200 deep": code(CLASS + FORWARD + "    return (self).forward(x, )\n"),
    "there is no operator prim::no_such_thing": code(CLASS + FORWARD + "    return ops.prim.no_such_thing(x)\n"),
    "brackets nest too deep": code(CLASS + FORWARD + "    return " + "(" * 5000 + "x" + ")" * 5000 + "\n"),
    "the code nests too deep": code(CLASS + FORWARD + "    return " + "- " * 5000 + "x\n"),
    "blocks nest too deep": code(CLASS + FORWARD + "".join("  " * i + "if True:\n" for i in range(2, 900))),
    "an end of the expression": code(CLASS + FORWARD + "    return x" + ".a" * 5000 + "\n"),
    "used before it has a value": code(CLASS + FORWARD + "    return y\n"),
    "a text does not end": code(CLASS + FORWARD + '    return "\n'),
    "line 7: a bracket is closed that is not open": code(CLASS + FORWARD.replace("x: Tensor", ") x: Tensor")),
    "whose code the archive does not have": code("class Other(Module):\n  pass\n"),
    "raises an exception": code(CLASS + FORWARD + '    ops.prim.RaiseException("no")\n    return x\n'),
    "does not take (a tensor, a str)": code(CLASS + FORWARD + '    return torch.add(x, "a")\n'),
    "loop goes on by steps of 0": code(CLASS + FORWARD + "    for i in range(0, 9, 0):\n      pass\n    return x\n"),
    "item 5 of a list of 1": code(CLASS + FORWARD + "    a = [x]\n    return a[5]\n"),
    "a list contains itself": body("b = annotate(List[Any], [])", "_0 = torch.append(b, b)", "return torch.tensor(b)"),
    "lists nest more than 64 deep": body("b = [x]", "for i in range(500):", "  b = [b]", "return x"),
    "append of a list lacks an argument": body("b = [x]", "_0 = torch.append(b)", "return x"),
    "a tensor is made of nothing": body("return torch.tensor()"),
    "changes its length in it": body(
        "b = [x]", "for i in range(int(torch.sum(x))):", "  b = torch.add(b, [x])", "return b[0]"
    ),
    "more than 4096 lists are put into lists": body(
        "b = annotate(List[Any], [])",
        *("for i in range(500):", "  for j in range(500):"),
        *("    c = annotate(List[Any], [])", "    _0 = torch.append(b, [c])", "    b = c", "return x"),
    ),
    "a list has more than 1048576 items": body("b = [1]", *["_0 = torch.extend(b, b)"] * 60, "return x"),
    "a text has more than 1048576 characters": body('b = "ab"', *["b = torch.add(b, b)"] * 60, "return x"),
    "bytes of memory, out of proportion": body(*PYRAMID, "return b40"),
    "steps of computation, out of proportion": body(*PYRAMID, *NUMBERS, "c = torch.eq(b40, b40)", "return x"),
}


class Net(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize("said", HOSTILE)
def test_hostile_archives(cli: Cli, tmp_path: Path, said: str) -> None:
    saved(Net, "script", [(rand(2),)], tmp_path / "good.pt")
    edited(tmp_path / "good.pt", tmp_path / "m.pt", HOSTILE[said])
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "x:2")
    assert done.returncode in (1, 2) and done.stderr.startswith("error: "), done.stderr
    assert said in done.stderr, done.stderr
    assert not Path("m.onnx").exists()


def test_operators_that_are_not_known_are_said_at_once(cli: Cli, tmp_path: Path) -> None:
    saved(Net, "script", [(rand(2),)], tmp_path / "good.pt")
    lines = ["a = torch.geqrf(x)", "b = torch.relu(x)", "for i in range(3):", "  b = ops.mine.fancy(torch.geqrf(b), i)"]
    edited(tmp_path / "good.pt", tmp_path / "m.pt", body(*lines, "return torch.no_such_thing(torch.cat([b, a]))"))
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "x:2")
    assert done.returncode == 2
    said = done.stderr.splitlines()
    file = "code/__torch__/test_torchscript_reader.py"
    assert said[:4] == [
        "error: these parts of the code cannot be read:",
        f"  there is no operator aten::geqrf (2 times): {file}, line 8; {file}, line 11",
        f"  there is no operator mine::fancy: {file}, line 11",
        f"  there is no operator aten::no_such_thing: {file}, line 12",
    ]


REFUSED: dict[str, tuple[list[str], list[str]]] = {
    "several constructs, and nothing that follows from them": (
        [
            "items = [x, torch.relu(x)]",
            "which = int(torch.sum(x))",
            "a = items[which]",  # line 10
            "b = torch.add(a, a)",
            "if bool(torch.gt(torch.sum(b), 0)):",
            "  c = torch.geqrf(b)",  # line 13
            "else:",
            "  c = torch.add(b, 1)",
            "for i in range(int(torch.sum(x)), 5):",  # line 16
            "  c = torch.add(c, 1)",
            "return torch.sum(c)",
        ],
        [
            "which item of a list is meant depends on the run: {file}, line 10",
            "there is no operator aten::geqrf: {file}, line 13",
            "a loop that only the run tells the length of begins at 0, and goes on by 1: {file}, line 16",
        ],
    ),
    "not what a constant decides against": (
        [
            "if torch.eq(torch.dim(x), 3):",
            "  y = torch.geqrf(x)",
            "else:",
            "  y = torch.no_such_thing(x)",  # line 11
            "if bool(torch.gt(torch.sum(x), 0)):",
            "  z = ops.mine.fancy(y)",  # line 13
            "else:",
            "  _0 = torch.geqrf(x)",
            '  ops.prim.RaiseException("no")',
            "  z = x",
            "return z",
        ],
        [
            "there is no operator aten::no_such_thing: {file}, line 11",
            "there is no operator mine::fancy: {file}, line 13",
        ],
    ),
    "in loops and behind lists": (
        [
            "parts = annotate(List[Tensor], [])",
            "i = 0",
            "while bool(torch.gt(torch.sum(torch.add(x, i)), 0)):",
            "  _0 = torch.append(parts, ops.mine.fancy(x))",  # line 11
            "  i = torch.add(i, 1)",
            "whole = torch.cat(parts)",
            "k = torch.len(parts)",
            "other = ops.mine.other(whole, k)",  # line 15
            "return other",
        ],
        [
            "there is no operator mine::fancy: {file}, line 11",
            "there is no operator mine::other: {file}, line 15",
        ],
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_all_that_cannot_be_read_is_said_at_once(cli: Cli, tmp_path: Path, what: str) -> None:
    lines, wanted = REFUSED[what]
    saved(Net, "script", [(rand(2),)], tmp_path / "good.pt")
    edited(tmp_path / "good.pt", tmp_path / "m.pt", body(*lines))
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "x:2")
    assert done.returncode == 2, done.stderr
    file = "code/__torch__/test_torchscript_reader.py"
    said = [line.strip() for line in done.stderr.splitlines() if line.startswith("  ") and "while " not in line]
    assert said == [each.format(file=file) for each in wanted], done.stderr
    assert not Path("m.onnx").exists()


def test_functions_that_call_one_another_without_end_are_given_up_at_once(cli: Cli, tmp_path: Path) -> None:
    saved(Net, "script", [(rand(2),)], tmp_path / "good.pt")
    lines = ["y = torch.geqrf(x)", "return (self).forward((self).forward(x, ), )"]
    edited(tmp_path / "good.pt", tmp_path / "m.pt", body(*lines))
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "x:2")
    assert done.returncode == 2 and "more than 200 deep" in done.stderr


class Quantised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant = torch.ao.quantization.QuantStub()
        self.fc = nn.Linear(4, 3)
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, x: Tensor) -> Tensor:
        return self.dequant(self.fc(self.quant(x)))


@pytest.mark.filterwarnings("ignore")
def test_quantised_modules_are_refused_with_the_next_step(cli: Cli, tmp_path: Path) -> None:
    torch.backends.quantized.engine = next(e for e in torch.backends.quantized.supported_engines if e != "none")
    model = Quantised().eval()
    model.qconfig = torch.ao.quantization.default_qconfig
    prepared = torch.ao.quantization.prepare(model)
    prepared(torch.rand(2, 4))
    torch.jit.script(torch.ao.quantization.convert(prepared)).save("m.pt")
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "x:2,4")
    assert done.returncode == 2
    assert "save the model as it was before torch.ao.quantization.convert, and quantise the .onnx" in done.stderr
    assert "'fc._packed_params._packed_params' is an object of" in done.stderr


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            self.seen = 5
        return x + self.seen


class Keeps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            self.total.add_(1)
        return x + self.total


class Turned(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.abs(x * (1 + 2j))


NOT_SAID = [
    (Remembers, "'seen' of an object is set"),
    (Keeps, "writes to 'total'"),
    (Turned, "the code has a complex number, which is not read; a tensor can hold it"),
]


@pytest.mark.parametrize(("build", "said"), NOT_SAID)
def test_what_cannot_be_said_is_refused(cli: Cli, tmp_path: Path, build: Callable[[], nn.Module], said: str) -> None:
    saved(build, "script", [(rand(2),)], tmp_path / "m.pt")
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "x:2")
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_what_the_file_does_not_say_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    saved(Net, "script", [(rand(2),)], tmp_path / "m.pt")
    done = cli("convert", "m.pt", "m.onnx")
    assert done.returncode == 1 and "--input-shape x:1,3,224,224 gives it" in done.stderr
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "y:2")
    assert done.returncode == 1 and "the model has no input 'y'; it has: x" in done.stderr
    torch.save({"w": rand(2)}, "w.pt")
    done = cli("convert", "w.pt", "m.onnx")
    assert done.returncode == 1 and "mv w.pt w.pth" in done.stderr
    done = cli("convert", "m.pt", "m.onnx", "--input-shape", "x:2", "--input-type", "x:floot")
    assert done.returncode == 1 and "is not a type of the form name:int64" in done.stderr


PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_memory_does_not_grow_with_weights() -> None:
    """Weights that BatchNorm is folded into are scaled while they go from file to file."""
    peaks = []
    for channels in (16, 1400):  # 70 MB
        layers = nn.Sequential(nn.Conv2d(channels, channels, 3), nn.BatchNorm2d(channels)).eval()
        torch.jit.save(torch.jit.script(layers), "m.pt")
        command = [*cli_command(), "convert", "m.pt", "m.onnx", "--input-shape", f"0:1,{channels},4,4"]
        # a process of its own: what this one holds would count
        done = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 8 * 1024

"""Draws a program: statement by statement, each tried in eager PyTorch at both sizes before it is kept."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from drawing import Unfit
from program_routes import Program
from torch.utils._python_dispatch import TorchDispatchMode

FLOATS = (torch.float32, torch.float64)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
NUMBERS = ("2", "3", "-1", "0.5", "-1.5", "0", "1", "7", "0.25", "True", "10", "-3", "1.0")
LARGEST = 4096  # elements of one tensor


class OrderlyWrites(TorchDispatchMode):
    """Refuses writes over their own source: what eager PyTorch gives then depends on the order of its loops."""

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        to = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if to is None or not op._schema.name.endswith("_") or not any(overlap(to, each) for each in args[1:]):
            return op(*args, **(kwargs or {}))
        copies = [each.clone() if isinstance(each, torch.Tensor) else each for each in args]
        want = op(*copies, **(kwargs or {}))
        result = op(*args, **(kwargs or {}))
        if not torch.equal(to.nan_to_num(), want.nan_to_num()):
            raise Unfit
        return result


def overlap(to: torch.Tensor, source: Any) -> bool:
    return isinstance(source, torch.Tensor) and to.untyped_storage().data_ptr() == source.untyped_storage().data_ptr()


class Draw:
    """What was drawn so far, and what each name stands for at either size."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.random = torch.Generator().manual_seed(seed)
        self.names: list[str] = []
        self.dims: list[list[str | int]] = []
        self.feeds: tuple[list[torch.Tensor], ...] = ([], [])
        self.lines: list[str] = []
        self.spaces: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        pairs = [(3, 5), (2, 6), (4, 2), (3, 4), (5, 3), (2, 7), (4, 6), (3, 1), (2, 1)]
        self.open = {
            name: self.rng.choice(pairs) for name in self.rng.sample(["n", "m"], self.rng.choice([0, 1, 1, 2]))
        }

    # what is there

    def tensors(self, test: Callable[[torch.Tensor], bool] = lambda t: True) -> list[str]:
        one, two = self.spaces
        return [
            name for name, value in one.items()
            if isinstance(value, torch.Tensor) and name in two and value.dim() == two[name].dim() and test(value) and test(two[name])
        ]  # fmt: skip

    def tensor(self, test: Callable[[torch.Tensor], bool] = lambda t: True) -> str:
        """One of the tensors; the newest more often."""
        found = self.tensors(test)
        if not found:
            raise Unfit
        return found[-1 - min(int(self.rng.expovariate(0.3)), len(found) - 1)]

    def size(self) -> str:
        """The name of a number that was made of sizes, or a number."""
        found = [n for n, v in self.spaces[0].items() if type(v) is int and 0 < v < 12 and 0 < self.spaces[1][n] < 12]
        return self.rng.choice(found) if found and self.chance(0.7) else str(self.rng.randint(1, 4))

    def at(self, name: str) -> torch.Tensor:
        return self.spaces[0][name]

    def rank(self, name: str) -> int:
        return self.at(name).dim()

    def dim(self, name: str) -> int:
        """A dimension of a tensor, from the front or from the back."""
        rank = self.rank(name)
        if rank == 0:
            raise Unfit
        at = self.rng.randrange(rank)
        return at - rank if self.chance(0.3) else at

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, *options: Any) -> Any:
        return self.rng.choice(options)

    # what is added

    def input(self) -> None:
        dims: list[str | int] = [
            self.rng.choice(list(self.open)) if self.open and self.chance(0.5) else self.rng.choice([1, 2, 3, 3, 4, 6])
            for _ in range(self.rng.choice([1, 2, 2, 3, 3, 4]))
        ]
        dtype = self.rng.choices([*FLOATS, *INTS, torch.bool], [12, 1, 4, 2, 1, 1, 1, 2])[0]
        name = "abcde"[len(self.names)]
        self.names.append(name)
        self.dims.append(dims)
        for at in (0, 1):
            shape = [self.open[d][at] if isinstance(d, str) else d for d in dims]
            self.feeds[at].append(self.values(shape, dtype))

    def values(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        """Numbers of few digits, so that most results are exact; some at the borders."""
        if dtype is torch.bool:
            return torch.randint(0, 2, shape, generator=self.random).bool()
        if dtype in INTS:
            low = 0 if dtype is torch.uint8 else -6
            return torch.randint(low, 7, shape, generator=self.random).to(dtype)
        found = torch.randint(-16, 17, shape, generator=self.random).to(dtype) / 4
        if self.chance(0.1) and found.numel():
            place = self.rng.randrange(found.numel())
            found.view(-1)[place] = self.rng.choice([float("nan"), float("inf"), float("-inf"), -0.0])
        return found

    def start(self) -> None:
        for at in (0, 1):
            space = self.spaces[at]
            space.clear()
            space.update(zip(self.names, (t.clone() for t in self.feeds[at]), strict=True))

    def run(self, line: str) -> None:
        for space in self.spaces:
            globals_: dict[str, Any] = {"torch": torch, "F": F}
            with OrderlyWrites():
                exec(line, globals_, space)
            space.pop("k", None)  # what a loop counts with

    def new_name(self, kind: str) -> str:
        return f"{kind}{len(self.lines)}"

    def add(self, line: str) -> bool:
        """Keeps a statement that runs at both sizes."""
        try:
            self.run(line)
            for space in self.spaces:
                for value in list(space.values())[-1:]:
                    require_usable(value)
        except Exception:
            self.start()
            for old in self.lines:
                self.run(old)
            return False
        self.lines.append(line)
        return True


def require_usable(value: Any) -> None:
    if isinstance(value, torch.Tensor):
        if value.numel() > LARGEST or value.dtype.is_complex or value.dim() > 5:
            raise Unfit
    elif not isinstance(value, (int, float)):
        raise Unfit


def results_of(d: Draw) -> list[str]:
    """The last values, those that nothing else takes, and inputs' views that were written to."""
    text = "\n".join(d.lines)
    made = [n for n in d.spaces[0] if n not in d.names and n in d.spaces[1]]
    unused = [n for n in made if text.count(f"{n} ") + text.count(f"{n}.") + text.count(f"{n},") <= 1]
    chosen = (unused or made)[-6:]
    chosen += [n for n in made if n not in chosen and d.chance(0.3)][:4]
    if d.chance(0.2):
        chosen.append(d.rng.choice(d.names))
    return chosen


def drawn(seed: int) -> Program:
    from program_table import STATEMENTS

    d = Draw(seed)
    for _ in range(d.rng.choice([1, 2, 2, 3])):
        d.input()
    d.start()
    wanted, tries = d.rng.choice([4, 6, 8, 12, 16, 24]), 0
    kinds, weights = list(STATEMENTS), list(STATEMENTS.values())
    if d.chance(0.5):  # a few kinds often
        chosen = set(d.rng.sample(range(len(kinds)), 8))
        weights = [w * (4 if i in chosen else 1) for i, w in enumerate(weights)]
    with torch.no_grad():
        while len(d.lines) < wanted and tries < 15 * wanted:
            tries += 1
            try:
                line = d.rng.choices(kinds, weights)[0](d)
            except Unfit:
                continue
            d.add(line)
    results = results_of(d)
    return Program(d.names, d.dims, d.feeds, d.lines if results else [], results)

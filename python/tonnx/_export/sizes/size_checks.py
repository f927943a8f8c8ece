"""Checks that a program is right at sizes that its trace did not see.

A trace holds at every size where the comparisons of sizes have the same answers and the operators have the shapes of
the trace. At a size where they may not, the model is traced again: it may fail there, or compute the same as the
program. If it computes something else, the program is wrong.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tonnx._error import Error
from tonnx._export.interface.names import InterfaceNames
from tonnx._export.interface.proof import CalledRunner
from tonnx._export.sizes.open_sizes import Call, OpenAxis, OpenSizes, unusual_size
from tonnx._export.sizes.questions import Question, Questions, is_own_file, place_of, value_at
from tonnx._export.sizes.replay import ShapesDiffer, fake_mode_of, outputs, require_shapes
from tonnx._verify import CompareOptions, compare_runners
from tonnx._verify.runners import value_of

Program = torch.export.ExportedProgram
Trace = Callable[[Call], Program]


class TracedSizes:
    """The symbols that the open axes have in a program, and the sizes that it was traced at."""

    def __init__(self, program: Program, open_sizes: OpenSizes, sizes: Sequence[int]) -> None:
        self.open_sizes = open_sizes
        self.home = list(sizes)
        values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
        shapes = {own: values[placeholder].shape for own, placeholder in _tensor_inputs(program, values)}
        found = [shapes[a.name][a.axis] if a.name in shapes else a.size for a in open_sizes.axes]
        nodes = [s.node if isinstance(s, torch.SymInt) else None for s in found]
        self._own_symbols: list[Any] = [None if n is None else n._expr for n in nodes]
        self._expressions: list[Any] = [None if n is None else n.expr for n in nodes]

    def is_fixed(self, index: int) -> bool:
        expression = self._expressions[index]
        return expression is None or bool(expression.is_number)

    def own_symbol(self, index: int) -> Any:
        return self._own_symbols[index]

    def symbols_at(self, sizes: Sequence[int]) -> dict[Any, int]:
        return {
            symbol: size for symbol, size in zip(self._own_symbols, sizes) if symbol is not None and symbol.is_Symbol
        }

    def independent(self) -> list[list[Any]]:
        """The independent symbols, in groups that the user gave the same name."""
        parts: list[list[Any]] = []
        of_group: dict[int, list[Any]] = {}
        for axis, expression in zip(self.open_sizes.axes, self._expressions):
            for symbol in sorted(getattr(expression, "free_symbols", ()), key=str):
                part = next((p for p in parts if symbol in p), None)
                if expression.is_Symbol and part is None:
                    part = of_group.get(axis.group)
                if part is None:
                    parts.append(part := [])
                if symbol not in part:
                    part.append(symbol)
                if expression.is_Symbol:
                    of_group.setdefault(axis.group, part)
        return parts

    def sizes_with(self, symbols: Mapping[Any, int]) -> list[int] | None:
        """The sizes of the axes at other values of these symbols; None where the user excludes them."""
        values = {**self.symbols_at(self.home), **symbols}
        result = []
        for axis, expression, size in zip(self.open_sizes.axes, self._expressions, self.home):
            value = size if expression is None else value_at(expression, values)
            if not isinstance(value, int) or value < 0 or not self.open_sizes.allows(axis, value):
                return None
            result.append(value)
        return result

    def hold_at(self, sizes: Sequence[int]) -> bool:
        """Whether these sizes satisfy the relations that the trace assumed, such as equal sizes."""
        symbols = self.symbols_at(sizes)
        found = [size if e is None else value_at(e, symbols) for e, size in zip(self._expressions, sizes)]
        return all(value is None or value == size for value, size in zip(found, sizes))

    def joined_by(self, sizes: Sequence[int], places: Mapping[Any, str]) -> str:
        """The line of the model that made the trace relate sizes."""
        symbols = self.symbols_at(sizes)
        for own, expression, size in zip(self._own_symbols, self._expressions, sizes):
            if own in places and value_at(expression, symbols) != size:
                return places[own]
        return "an unknown line"

    def apart(self) -> list[list[int]]:
        """For each group that the trace made depend on others: sizes where only that group is larger by one."""
        found = [self.with_group_apart(group) for group in range(len(self.open_sizes.roots))]
        return [sizes for sizes in found if sizes is not None]

    def moved(self) -> list[int] | None:
        """The sizes with larger values for the symbols that are 0 or 1."""
        taken = set(self.home)
        values: dict[Any, int] = {}
        for symbols in self.independent():
            if self.symbols_at(self.home).get(symbols[0], 2) < 2:
                values |= dict.fromkeys(symbols, unusual_size(taken))
                taken.add(values[symbols[0]])
        return self.sizes_with(values)

    def with_group_apart(self, group: int) -> list[int] | None:
        """Sizes where only this group is larger by one; None if the trace did not make it depend on others."""
        members = [i for i, a in enumerate(self.open_sizes.axes) if a.group == group]
        if all(self._own_symbols[i] == self._expressions[i] for i in members) or self._is_alone(members):
            return None
        axes = self.open_sizes.axes
        sizes = [self.home[i] + (a.what.scale if i in members else 0) for i, a in enumerate(axes)]
        return sizes if all(self.open_sizes.allows(a, s) for a, s in zip(axes, sizes)) else None

    def _is_alone(self, members: Sequence[int]) -> bool:
        used = {s for i in members for s in getattr(self._expressions[i], "free_symbols", ())}
        others = [e for i, e in enumerate(self._expressions) if i not in members and e is not None]
        return not any(used & e.free_symbols for e in others)


def _tensor_inputs(program: Program, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    own_inputs = InterfaceNames(program, None, None).own_inputs
    return [(own, placeholder) for own, placeholder in own_inputs if isinstance(values.get(placeholder), torch.Tensor)]


_LARGEST_TRIED = 1 << 20  # a slice x[:1000000000] is no reason to allocate such a tensor


@dataclass(frozen=True)
class Wrong:
    """Sizes where the program differs from the model."""

    axes: list[OpenAxis]
    size: int
    home: int
    place: str
    is_bound: bool  # whether all sizes beyond it are likely to be wrong too


class SizeChecks:
    """The checks of one program."""

    def __init__(self, program: Program, traced: TracedSizes, questions: Questions, trace: Trace) -> None:
        self._program = program
        self._traced = traced
        self._trace = trace
        self._asked = list(questions.asked.values())
        self._guards = [Question(_holds, guard.expr, True, "") for guard in fake_mode_of(program).shape_env.guards]
        self._home = traced.symbols_at(traced.home)
        self._joined = questions.joined

    def wrong(self) -> Wrong | None:
        """The first sizes at which the program is wrong."""
        seen = {tuple(self._traced.home)}
        for sizes in self._trials():
            if tuple(sizes) not in seen:
                seen.add(tuple(sizes))
                found = self._wrong_at(sizes)
                if found is not None:
                    return found
        return None

    def _trials(self) -> Iterator[list[int]]:
        traced = self._traced
        for symbols in traced.independent():
            home = self._home.get(symbols[0])
            if home is None:
                continue
            for value in self._candidates(symbols, home):
                sizes = traced.sizes_with(dict.fromkeys(symbols, value))
                if sizes is not None:
                    yield sizes
        yield from traced.apart()

    def _candidates(self, symbols: Sequence[Any], home: int) -> list[int]:
        """0 and 1, and for each comparison the nearest sizes where its answer changes."""
        result = {0, 1}
        for question in [*self._asked, *self._guards]:
            if not question.symbols & set(symbols):
                continue
            numbers = {int(n) for side in (question.left, question.right) for n in _integers(side)}
            numbers |= {2, 2 * home} | {self._home[s] for s in question.symbols if s in self._home}
            near = sorted({n + d for n in numbers for d in (-1, 0, 1)})
            flips = [n for n in near if self._flips_with(question, symbols, n)]
            # two of them: x[:9] is still all of 9 rows
            result |= {*[n for n in flips if n > home][:2], *[n for n in flips if n < home][-2:]}
        result |= {n + d for n in self._bounds_of_slices(symbols, home) for d in (-1, 0, 1)}
        return sorted(result, key=lambda n: abs(n - home))  # so that the first is the bound of what is right

    def _bounds_of_slices(self, symbols: Sequence[Any], home: int) -> set[int]:
        """The sizes at which a slice between numbers begins to have elements, or has them all: x[4:-1] begins at 6."""
        result = set()
        for node in self._program.graph.nodes:
            if node.target is not torch.ops.aten.slice.Tensor:
                continue
            tensor, dim, start, end = (*node.args, *(None, 0, None, None)[len(node.args) :])[:4]
            size = tensor.meta["val"].shape[dim]
            if not isinstance(size, torch.SymInt) or not size.node.expr.free_symbols & set(symbols):
                continue
            there = value_at(size.node.expr, self._home)
            numbers = [abs(n) for n in (start, end) if isinstance(n, int) and abs(n) < _LARGEST_TRIED]
            if isinstance(there, int):
                result |= {home + n - there for n in (*numbers, sum(numbers))}
        return result

    def _flips_with(self, question: Question, symbols: Sequence[Any], value: int) -> bool:
        sizes = self._traced.sizes_with(dict.fromkeys(symbols, value))
        return sizes is not None and self._flips(question, self._traced.symbols_at(sizes))

    def _flips(self, question: Question, symbols: Mapping[Any, int]) -> bool:
        try:
            now, home = question.answer(symbols), question.answer(self._home)
        # no answer: some size would be negative there
        except (ArithmeticError, AssertionError, TypeError, ValueError):
            return True
        return now is not None and home is not None and now != home

    def _wrong_at(self, sizes: Sequence[int]) -> Wrong | None:
        if any(size > max(_LARGEST_TRIED, at_home) for size, at_home in zip(sizes, self._traced.home, strict=True)):
            return None
        symbols = self._traced.symbols_at(sizes)
        asked = [q for q in self._asked if self._flips(q, symbols)]
        differs = self._where_shapes_differ(symbols)
        is_joined = not self._traced.hold_at(sizes)
        if not asked and differs is None and not is_joined:
            return None
        example = self._traced.open_sizes.example(sizes, rows_differ=True)
        try:
            exact = self._trace(example)
        except Error:  # the model itself fails at this size
            return None
        is_same = compute_the_same(self._program, exact, example)
        if is_same and not is_joined and not (differs and differs.runs):
            return None
        axes, home = self._traced.open_sizes.axes, self._traced.home
        changed = [i for i, size in enumerate(sizes) if size != home[i]]
        size = sizes[changed[0]]
        if is_same and size == 0:  # empty tensors work in PyTorch, but are too rare for an error
            warnings.warn(
                f"where {axes[changed[0]].text} is 0, the exported model may give another result than PyTorch, in "
                f"{_place_of_node(differs.node) if differs else ''}",
                stacklevel=2,
            )
            return None
        compared = [q for q in asked if not q.is_number]
        if compared:
            is_bound = len(compared[0].symbols) == 1 and (compared[0].is_order or size < 2)
        else:
            is_bound = differs is not None
        joined_by = self._traced.joined_by(sizes, self._joined)
        place = asked[0].place if asked else _place_of_node(differs.node) if differs else joined_by
        return Wrong([axes[i] for i in changed], size, home[changed[0]], place, is_bound)

    def _where_shapes_differ(self, symbols: Mapping[Any, int]) -> ShapesDiffer | None:
        try:
            require_shapes(self._program, symbols)
        except ShapesDiffer as failure:
            return failure if self._runs_at_home() else None
        return None

    def _runs_at_home(self) -> bool:
        """Whether the graph can run on fake tensors at all."""
        try:
            require_shapes(self._program, self._home)
        except ShapesDiffer:
            return False
        return True


def compute_the_same(program: Program, exact: Program, example: Call) -> bool:
    """Whether a program computes what the program of these fixed sizes computes, or the latter fails."""
    arguments = pytree.tree_leaves(example)
    try:
        expected = outputs(exact, arguments)
    except Exception:  # the model itself fails there
        return True
    try:
        got = outputs(program, arguments)
    except Exception:
        return False
    return (
        len(got) == len(expected) and all(map(_is_of_one_type, got, expected)) and _are_close(program, exact, arguments)
    )


def _is_of_one_type(got: Any, expected: Any) -> bool:
    if isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor):
        return got.shape == expected.shape and got.dtype == expected.dtype
    return bool(got == expected)


def _are_close(program: Program, exact: Program, arguments: Sequence[Any]) -> bool:
    first = CalledRunner("the model", partial(outputs, exact), arguments)
    second = CalledRunner("the program", partial(outputs, program), arguments)
    given = {value.name: value_of(tensor) for value, tensor in zip(first.inputs, first.tensors, strict=True)}
    try:
        return bool(compare_runners(first, second, given, CompareOptions(outputs_only=True)))
    except Error:  # one of them fails on slightly different numbers
        return False


def _holds(left: Any, right: Any) -> bool:
    return bool(left) is right


def _integers(expression: Any) -> Iterator[Any]:
    if isinstance(expression, int):
        yield expression
    elif hasattr(expression, "atoms"):
        import sympy  # type: ignore[import-untyped]

        yield from expression.atoms(sympy.Integer)


_FRAME = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+)')


def _place_of_node(node: torch.fx.Node) -> str:
    """The line of the model that a node comes from."""
    frames = [(m["path"], int(m["line"])) for m in _FRAME.finditer(node.meta.get("stack_trace") or "")]
    own = [f for f in frames if not is_own_file(f[0])] or frames
    return place_of(*own[-1]) if own else f"the operator {node.target}"

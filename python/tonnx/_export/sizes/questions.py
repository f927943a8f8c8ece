"""Records the comparisons that the Python code of a model makes on open sizes, and where it fixes a size.

torch.export assumes that an open size is neither 0 nor 1: `x.shape[0] == 1` is False in a trace, without a warning.
"""

from __future__ import annotations

import linecache
import operator
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tonnx._replaced import replaced

_TORCH = f"{Path(torch.__file__).parent}{os.sep}"
_MODULES_OF_TORCH = (f"{_TORCH}nn{os.sep}", f"{_TORCH}functional.py")  # Python code like that of users
_TONNX = f"{Path(__file__).parents[2]}{os.sep}"
_TRACER = str(Path(__file__).parents[1] / "capture" / "tracer.py")  # what calls torch.export
_COMPARISONS = {f"__{name}__": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def is_own_file(path: str) -> bool:
    """Whether a file belongs to torch or tonnx, or is code that they generate."""
    return path.startswith(
        (_TORCH, _TONNX, "<string>", "<eval_with_key>", "<frozen ", "<torch_package", "<__array_function__")
    )


def place_of(path: str, line: int) -> str:
    return f"'{linecache.getline(path, line).strip()}' ({path}:{line})"


def package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).split(".")[0]


def _asking_frame() -> FrameType | None:
    """The innermost frame of the model's code, or of a module of torch if there is none."""
    module_of_torch = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _TRACER:
        path = frame.f_code.co_filename
        if not is_own_file(path):
            return frame
        if module_of_torch is None and path.startswith(_MODULES_OF_TORCH):
            module_of_torch = frame
        frame = frame.f_back
    return module_of_torch


def asking_place() -> str:
    """The line of the model's code that is running."""
    frame = _asking_frame()
    return "" if frame is None else place_of(frame.f_code.co_filename, frame.f_lineno)


Symbols = Mapping[Any, int]


def value_at(expression: Any, symbols: Symbols) -> Any:
    """The value of an expression at these values of the symbols; None where it depends on others too."""
    if not isinstance(expression, sympy.Basic):
        return expression
    result = expression.xreplace({symbol: sympy.Integer(value) for symbol, value in symbols.items()})
    if result.free_symbols:
        return None
    return int(result) if result.is_Integer else result


@dataclass(frozen=True)
class Question:
    """A comparison of sizes in the code of the model."""

    compare: Callable[[Any, Any], Any]
    left: Any
    right: Any
    place: str
    is_number: bool = False  # the trace assumed that `left` is the number `right`, without a comparison

    def answer(self, sizes: Symbols) -> bool | None:
        """The answer at these values of the symbols; None where it depends on others too."""
        left, right = value_at(self.left, sizes), value_at(self.right, sizes)
        return None if left is None or right is None else bool(self.compare(left, right))

    @property
    def is_order(self) -> bool:
        """Whether it compares by order (<, >=), and not for equality."""
        return self.compare not in (operator.eq, operator.ne)

    @property
    def symbols(self) -> set[Any]:
        return getattr(self.left, "free_symbols", set()) | getattr(self.right, "free_symbols", set())


@dataclass
class Questions:
    """The comparisons of one trace, and the lines where a symbol became a number."""

    asked: dict[tuple[str, int, str, str, str], Question] = field(default_factory=dict)
    fixed: dict[Any, str] = field(default_factory=dict)
    joined: dict[Any, str] = field(default_factory=dict)  # where a symbol became an expression of others
    packages: set[str] = field(default_factory=set)  # whose code made numbers of symbols
    numbers: int = (
        0  # made of expressions of symbols: no symbol is fixed by them, but the program is for some sizes only
    )

    def note_number(self, symbol: Any, asker: FrameType | None) -> None:
        if symbol in self.fixed:
            return
        self.fixed[symbol] = "" if asker is None else place_of(asker.f_code.co_filename, asker.f_lineno)
        if asker is not None:
            self.packages.add(package_of(asker))

    def note_number_of(self, node: Any, number: Any, asker: FrameType | None) -> None:
        """Notes that the program holds only where the expression has this value."""
        expression = node._expr
        if asker is None or not getattr(expression, "free_symbols", None):
            return
        path, line = asker.f_code.co_filename, asker.f_lineno
        key = (path, line, "number", str(expression), str(number))
        if key not in self.asked:
            self.asked[key] = Question(operator.eq, expression, number, place_of(path, line), is_number=True)
            self.numbers += 1
            self.packages.add(package_of(asker))

    def note(self, asker: FrameType, name: str, left: Any, right: Any) -> None:
        path, line = asker.f_code.co_filename, asker.f_lineno
        if is_own_file(path) and not path.startswith(_MODULES_OF_TORCH):
            return
        left, right = _expression_of(left), _expression_of(right)
        key = (path, line, name, str(left), str(right))
        if left is not None and right is not None and key not in self.asked:
            self.asked[key] = Question(_COMPARISONS[name], left, right, place_of(path, line))


def _expression_of(value: Any) -> Any:
    node = getattr(value, "node", None)
    return value if node is None else getattr(node, "_expr", None)


@contextmanager
def questions_noted() -> Iterator[Questions]:
    """Inside, comparisons of sizes are recorded, and answered as usual."""
    questions = Questions()
    changes: list[tuple[type, str, Any]] = [
        (kind, name, _noting(questions, name)) for kind in (torch.SymInt, torch.SymFloat) for name in _COMPARISONS
    ]
    changes += [(torch.SymInt, "__bool__", _noting(questions, "__ne__"))]
    changes += [(ShapeEnv, "_set_replacement", _noting_numbers(questions))]
    changes += [(SymNode, name, _noting_numbers_of(questions)) for name in ("guard_int", "guard_float")]
    with ExitStack() as stack:
        for kind, name, change in changes:
            stack.enter_context(replaced(kind, name, change(kind.__dict__[name])))
        yield questions


Method = Callable[..., Any]


def _noting(questions: Questions, name: str) -> Callable[[Method], Method]:
    def change(original: Method) -> Method:
        def compare(self: Any, *other: Any) -> Any:
            questions.note(sys._getframe(1), name, self, *(other or (0,)))  # a truth value is a comparison with 0
            return original(self, *other)

        return compare

    return change


def _noting_numbers_of(questions: Questions) -> Callable[[Method], Method]:
    def change(original: Method) -> Method:
        def guard(self: Any, *place: Any) -> Any:
            number = original(self, *place)
            questions.note_number_of(self, number, _asking_frame())
            return number

        return guard

    return change


def _noting_numbers(questions: Questions) -> Callable[[Method], Method]:
    def change(original: Method) -> Method:
        def replace(self: Any, symbol: Any, target: Any, message: str) -> Any:
            if target.is_number:
                questions.note_number(symbol, _asking_frame())
            elif (asker := _asking_frame()) is not None:
                questions.joined.setdefault(symbol, place_of(asker.f_code.co_filename, asker.f_lineno))
            return original(self, symbol, target, message)

        return replace

    return change

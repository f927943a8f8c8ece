"""The source of classes in `__main__`, which generated code cannot import, with all that they use."""

from __future__ import annotations

import ast
import inspect
import symtable
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from typing import Any

from tonnx._error import Error
from tonnx._literal import is_dotted_name, literal


def code_of_main(names: Iterable[str]) -> str:
    """Definitions of names of `__main__`, after the imports and definitions that they use."""
    code = _MainCode()
    for name in names:
        code.add(name)
    return "\n".join([*code.imports, *code.definitions])


class _MainCode:
    """Collects imports and definitions in the order of use."""

    def __init__(self) -> None:
        self.imports: list[str] = []
        self.definitions: list[str] = []
        self._names: dict[str, Any] = vars(sys.modules["__main__"])
        self._seen: set[str] = set()

    def add(self, name: str) -> None:
        if name in self._seen or name not in self._names:
            return
        self._seen.add(name)
        value = self._names[name]
        if isinstance(value, types.ModuleType):
            self.imports.append(_checked(f"import {value.__name__} as {name}", value.__name__))
        elif not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
            self.definitions.append(f"{name} = {self._value(name, value)}")
        elif value.__module__ != "__main__":
            line = f"from {value.__module__} import {value.__name__} as {name}"
            self.imports.append(_checked(line, value.__module__, value.__name__))
        else:
            text = _source_of(value)
            for used in _names_in(text):
                self.add(used)
            self.definitions.append(f"\n\n{text}")

    def _value(self, name: str, value: Any) -> str:
        try:
            return literal(value)
        except TypeError:
            raise Error(
                f"'{name}' of __main__ cannot be written into generated code: define what uses it in a module of its "
                "own, and import it from there",
                "unsupported",
            ) from None


def _checked(line: str, *names: str) -> str:
    if not all(map(is_dotted_name, names)):
        raise Error(f"generated code cannot contain '{line}', which has a part that is not a name", "unsupported")
    return line


def _source_of(value: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        raise Error(
            f"the code of {value.__qualname__} in __main__ is not at hand: define it in a module of its own, "
            "and import it from there",
            "unsupported",
        ) from None


def _names_in(text: str) -> list[str]:
    """The global names that the code uses."""
    outer = set(_outer_names(symtable.symtable(text, "<definition>", "exec")))
    names = (node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))
    return [name for name in dict.fromkeys(names) if name in outer and not name.startswith("__")]


def _outer_names(table: symtable.SymbolTable) -> Iterator[str]:
    is_module = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or is_module):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _outer_names(inner)

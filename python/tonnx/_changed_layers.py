"""Writes layers that the user replaced in a converted module into its code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from tonnx._constructors import constructor_of
from tonnx._error import Error

_WIDTH = 120  # of a line of code


@dataclass
class Change:
    """A layer that differs from the one in the code."""

    path: list[str]
    now: nn.Module
    then: nn.Module

    @property
    def name(self) -> str:
        return ".".join(self.path)


def find_changes(now: nn.Module, then: nn.Module, path: Sequence[str] = ()) -> Iterator[Change]:
    """The outermost layers that differ; `then` is the module that the code creates."""
    own, others = dict(now.named_children()), dict(then.named_children())
    is_same = _is_of_class(now, type(then)) and now.extra_repr() == then.extra_repr()
    if path and (not is_same or own.keys() != others.keys()):
        yield Change(list(path), now, then)
        return
    for name in own.keys() & others.keys():
        yield from find_changes(own[name], others[name], [*path, name])


def _is_of_class(layer: nn.Module, kind: type[nn.Module]) -> bool:
    """Compares generated classes by name, since code that was loaded twice has two classes."""
    is_generated = type(layer).__module__.startswith("tonnx.generated.") and kind.__module__.startswith(
        "tonnx.generated."
    )
    return type(layer) is kind or (is_generated and type(layer).__qualname__ == kind.__qualname__)


def with_changes(source: str, model: nn.Module, changes: Sequence[Change]) -> str:
    """The code with these layers; throws where one cannot be written."""
    for change in sorted(changes, key=lambda each: each.path):
        made = constructor_of(change.now)
        if made is None:
            raise Error(
                f"'{change.name}' is {described(change.now)}, and the code makes it {described(change.then)}: "
                "tonnx.save writes layers of torch.nn whose arguments can be read off them, and "
                "torch.save(module.state_dict(), path) the weights",
                "unsupported",
            )
        source = _in_place(source, change, made) or _at_end(source, model, change, made)
    return _with_note(source, changes)


def described(layer: nn.Module) -> str:
    return f"{type(layer).__qualname__}({layer.extra_repr()})"


def _constructor(source: str) -> ast.FunctionDef:
    [model] = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "Model"]
    [init] = [n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    return init


def _in_place(source: str, change: Change, made: str) -> str | None:
    """The code with the constructor call replaced, also inside nn.Sequential(...); None if the call is elsewhere."""
    before = constructor_of(change.then)
    call: ast.expr | None = None
    for statement in _constructor(source).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == f"self.{change.path[0]}":
            call = statement.value
    for part in change.path[1:]:
        is_list = isinstance(call, ast.Call) and ast.unparse(call.func) == "nn.Sequential" and part.isdecimal()
        if not is_list or not isinstance(call, ast.Call) or int(part) >= len(call.args):
            return None
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            return None
        call = call.args[int(part)]
    if call is None or before is None or ast.unparse(call) != ast.unparse(ast.parse(before)):
        return None
    assert call.end_lineno is not None and call.end_col_offset is not None  # the parser sets them
    lines = source.splitlines(keepends=True)
    first, last = lines[call.lineno - 1].encode(), lines[call.end_lineno - 1].encode()
    text = (first[: call.col_offset] + made.encode() + last[call.end_col_offset :]).decode()
    if len(text) > _WIDTH:
        return None
    return "".join([*lines[: call.lineno - 1], text, *lines[call.end_lineno :]])


def _at_end(source: str, model: nn.Module, change: Change, made: str) -> str:
    """The code with `self.layers[3].fc = nn.Linear(512, 10)` appended to the constructor."""
    place, part = "self", model
    for name in change.path:
        if isinstance(part, nn.ModuleDict):
            place += f'["{name}"]'
        else:
            place += f"[{name}]" if name.isdecimal() else f".{name}"
        part = part.get_submodule(name)
    end = _constructor(source).end_lineno
    lines = source.splitlines(keepends=True)
    return "".join([*lines[:end], f"        {place} = {made}\n", *lines[end:]])


def _with_note(source: str, changes: Sequence[Change]) -> str:
    """Notes the changed layers in the docstring, since they may change the sizes of outputs."""
    end = source.find('\n"""\n')
    if not changes or end < 0:
        return source
    names = ", ".join(change.name for change in changes)
    text = f"\nChanged  {names}: sizes of outputs may be others"
    return source[:end] + (text if len(text) <= _WIDTH else f"\nChanged  {len(changes)} layers") + source[end:]

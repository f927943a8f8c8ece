"""Checks arguments of the public functions against the types that their signatures declare.

`Annotated[type, "words"]` gives the words that an error uses for a type. A function after the words returns advice
for a value of another type, such as `: use export for modules`, or "".
"""

from __future__ import annotations

import functools
import inspect
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ForwardRef, Literal, ParamSpec, Protocol, TypeVar, Union, get_args, get_origin

P = ParamSpec("P")
R = TypeVar("R")


def checks_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Makes an argument of another type than declared a TypeError that names the argument and the type."""
    signature = inspect.signature(function)
    declared: dict[str, Any] = {}

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if not declared:  # at the first call, so that importing stays fast
            declared.update(_declared(function))
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:  # Python's own error is good
            return function(*args, **kwargs)
        for name, value in given.arguments.items():
            wanted = declared.get(name, Any)
            if signature.parameters[name].kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
                require_type(name, value, wanted)
        return function(*args, **kwargs)

    return called


def require_type(name: str, value: object, wanted: Any) -> None:
    if not _fits(value, wanted):
        raise TypeError(f"{name} takes {_described(wanted)}, not {_shown(value)}{_advice(value, wanted)}")


def _advice(value: object, wanted: Any) -> str:
    told = [what(value) for what in getattr(wanted, "__metadata__", ()) if callable(what)]
    return "".join(told)


class _LaterType(type):
    """Stands for a type that is not imported yet; every value fits."""

    def __getattr__(cls, name: str) -> Any:
        return cls

    def __getitem__(cls, item: object) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return Any

    def __ror__(cls, other: Any) -> Any:
        return Any


class _Later(metaclass=_LaterType):
    pass


class _Names(dict[str, Any]):
    """The names in annotations: globals of a module, builtins, and types that are imported for type checkers only."""

    def __missing__(self, name: str) -> Any:
        import builtins

        return getattr(builtins, name, None) or _Later


def _declared(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function as types."""
    names = _Names(inspect.unwrap(function).__globals__)
    found = {}
    for name, annotation in function.__annotations__.items():
        wanted = eval(annotation, {}, names) if isinstance(annotation, str) else annotation
        found[name] = Any if wanted is _Later else wanted
    return found


def _choices(wanted: Any) -> tuple[Any, ...]:
    return get_args(wanted) if get_origin(wanted) in (Union, types.UnionType) else (wanted,)


def _fits(value: object, wanted: Any) -> bool:
    return any(_fits_one(value, choice) for choice in _choices(wanted))


def _fits_one(value: object, wanted: Any) -> bool:
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return _fits(value, inner[0])
    if wanted is Any or wanted is _Later or isinstance(wanted, str | TypeVar | ForwardRef):
        return True
    if wanted is None or wanted is type(None):
        return value is None
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if wanted is bool:
        return isinstance(value, bool | int) and value in (0, 1) or type(value).__name__ in ("bool", "bool_")
    if wanted is int:
        return hasattr(value, "__index__") and not isinstance(value, bool)
    if wanted is float:
        return hasattr(value, "__float__") and not isinstance(value, str)
    if origin is tuple:
        return isinstance(value, tuple) and (
            len(value) == len(inner) and all(_fits(v, w) for v, w in zip(value, inner, strict=True))
            if inner[-1:] != (Ellipsis,)
            else all(_fits(v, inner[0]) for v in value)
        )
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items())
    if origin is not None and issubclass(origin, Sequence):
        return _is_list(value) and all(_fits(item, inner[0]) for item in _items(value))
    if origin is not None and origin is Callable or origin is types.FunctionType:
        return callable(value)
    if getattr(wanted, "_is_protocol", False):
        return all(hasattr(value, name) for name in _protocol_names(wanted))
    return isinstance(value, origin or wanted)


def _protocol_names(wanted: Any) -> list[str]:
    return [name for kind in wanted.__mro__ if kind not in (Protocol, object) for name in vars(kind) if name[0] != "_"]


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _items(value: Any) -> Iterable[Any]:
    """The items of a list. An iterator is not consumed."""
    return value if isinstance(value, Sequence) else ()


def _described(wanted: Any) -> str:
    """A type in words: `an integer or None`."""
    choices = list(dict.fromkeys(_choices(wanted)))
    if str in choices and os.PathLike in [get_origin(c) or c for c in choices]:
        choices = [choice for choice in choices if choice is not str]
    words = list(dict.fromkeys(_described_one(choice) for choice in choices))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_WORDS: dict[Any, str] = {
    None: "None", type(None): "None", int: "an integer", float: "a number", bool: "True or False", str: "a string",
    bytes: "bytes", os.PathLike: "a path", Any: "any value",
}  # fmt: skip


def _described_one(wanted: Any) -> str:
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return str(inner[1])
    if (origin or wanted) in _WORDS:
        return _WORDS[origin or wanted]
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is tuple:
        return f"a tuple ({', '.join(_described(one) for one in inner if one is not Ellipsis)})"
    if origin is not None and issubclass(origin, Mapping):
        return f"a dict from {_plural(inner[0])} to {_plural(inner[1])}"
    if origin is not None and issubclass(origin, Sequence):
        return f"a list of {_plural(inner[0])}"
    if callable(wanted) and origin is Callable:
        return "a function"
    if getattr(wanted, "_is_protocol", False) and wanted.__doc__:
        sentence: str = wanted.__doc__.splitlines()[0].rstrip(".")
        return sentence[:1].lower() + sentence[1:]
    return with_article(getattr(wanted, "__qualname__", str(wanted)))


def _plural(wanted: Any) -> str:
    """A type in the plural: `integers`."""
    words = [_described_one(choice) for choice in _choices(wanted)]
    plurals = {"a string": "strings", "an integer": "integers", "a number": "numbers", "any value": "anything"}
    many = [plurals.get(word) or word.replace("a dict", "dicts", 1).replace("a list", "lists", 1) for word in words]
    return many[0] if len(many) == 1 else f"{', '.join(many[:-1])} or {many[-1]}"


def _shown(value: object) -> str:
    """A short value with its type, or the type alone."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if kind in (int, float, bool, str, bytes, type(None), list, tuple, dict):
        text = repr(value)
        if len(text) <= 60:
            return f"{text} ({name})" if value is not None else text
    return with_article(name)


def with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"

"""Makes untrusted text safe: as Python literals and names in code, and as visible text on a terminal."""

from __future__ import annotations

import keyword
import math

_MAX_DEPTH = 50


def literal(value: object, depth: int = 0) -> str:
    """The value as an expression of Python literals: None, booleans, numbers, strings, and lists and tuples of them.

    Raises TypeError for other values.
    """
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, int):
        number = int(value)
        return repr(number) if abs(number) < 10**18 else hex(number)  # Python limits how many digits it prints
    if isinstance(value, float):
        real = float(value)
        return repr(real) if math.isfinite(real) else f'float("{real}")'
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        if depth == _MAX_DEPTH:
            raise TypeError(f"a value nested more than {_MAX_DEPTH} deep has no literal")
        items = [literal(item, depth + 1) for item in value]
        if isinstance(value, list):
            return f"[{', '.join(items)}]"
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    raise TypeError(f"a value of {type(value).__name__} has no literal")


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(character: str) -> str:
    """Escapes controls, lone surrogates and marks that change the direction of text."""
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _text(value: str) -> str:
    return '"' + "".join(map(_escaped, str.__str__(value))) + '"'


def is_dotted_name(text: str) -> bool:
    """Whether the text is a name such as `package.module` or `Outer.Inner`."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))


def visible(text: str) -> str:
    """Escapes everything that would control a terminal, except line breaks."""
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else _escaped(c) for c in text)

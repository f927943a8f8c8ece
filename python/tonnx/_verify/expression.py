"""Sizes as expressions over names of open sizes, as inference writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

_FEW = 4
_TOKEN = re.compile(r'\s*(?:(?P<number>\d+)|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<name>[^\W\d][\w.]*)|(?P<mark>[-+*/(),]))')
_FUNCTIONS: Mapping[str, Callable[..., int]] = {"max": max, "min": min, "mod": lambda a, b: a % b}

Evaluate = Callable[[Mapping[str, int]], int]


@dataclass(frozen=True)
class Expression:
    """A size inside a model, over the names of open sizes of its inputs."""

    text: str
    names: frozenset[str]
    of: Evaluate = field(compare=False)
    scale: int = 1  # the largest number that it is divided by, or compared with: below that, little happens


class _Parser:
    """Reads `2*h + floor((w + 1)/2)`."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            if not (found := _TOKEN.match(text, at)):
                raise ValueError(text)
            kind = found.lastgroup or ""
            self._tokens.append(("name" if kind == "quoted" else kind, found[kind]))
            at = found.end()
        self.names: set[str] = set()
        self.scale = 1

    def whole(self) -> Evaluate:
        made = self._sum()
        if self._tokens:
            raise ValueError(self._tokens)
        return made

    def _take(self, *marks: str) -> str:
        if self._tokens and self._tokens[0][0] == "mark" and self._tokens[0][1] in marks:
            return self._tokens.pop(0)[1]
        return ""

    def _need(self, mark: str) -> None:
        if not self._take(mark):
            raise ValueError(mark)

    def _note_scale(self, counts: bool) -> None:
        if counts and self._tokens and self._tokens[0][0] == "number":
            self.scale = max(self.scale, int(self._tokens[0][1]))

    def _sum(self) -> Evaluate:
        sign = -1 if self._take("-") else 1
        parts = [(sign, self._product())]
        while mark := self._take("+", "-"):
            parts.append((1 if mark == "+" else -1, self._product()))
        return lambda sizes: sum(sign * part(sizes) for sign, part in parts)

    def _product(self) -> Evaluate:
        made = self._factor()
        while mark := self._take("*", "/"):
            self._note_scale(mark == "/")
            made = _joined(mark, made, self._factor())
        return made

    def _factor(self) -> Evaluate:
        if self._take("("):
            inner = self._sum()
            self._need(")")
            return inner
        if not self._tokens or self._tokens[0][0] == "mark":
            raise ValueError("a size is missing")
        kind, text = self._tokens.pop(0)
        if kind == "number":
            return lambda _: int(text)
        if (text in _FUNCTIONS or text == "floor") and self._take("("):
            self._note_scale(text in ("max", "min"))
            arguments = [self._sum()]
            while self._take(","):
                self._note_scale(True)
                arguments.append(self._sum())
            self._need(")")
            if text == "floor":
                return arguments[0]
            function = _FUNCTIONS[text]
            return lambda sizes: function(*(argument(sizes) for argument in arguments))
        self.names.add(text)
        return lambda sizes: sizes[text]


def _joined(mark: str, a: Evaluate, b: Evaluate) -> Evaluate:
    if mark == "*":
        return lambda sizes: a(sizes) * b(sizes)
    return lambda sizes: a(sizes) // b(sizes)  # a quotient stands inside of floor() only


def parsed(text: str) -> Expression | None:
    """The expression, or nothing where the text is none."""
    try:
        parser = _Parser(text)
        of = parser.whole()
    except (ValueError, RecursionError):
        return None
    return Expression(text, frozenset(parser.names), of, parser.scale)


@dataclass
class Needs:
    """What the sizes inside a model ask of the open sizes of its inputs: at least so much, each."""

    least: list[tuple[Expression, int]] = field(default_factory=list)

    def add(self, text: str, least: int, names: Iterable[str]) -> None:
        made = parsed(text)
        if made is not None and made.names and made.names <= set(names):
            self.least.append((made, least))

    def add_scale(self, text: str, names: Iterable[str]) -> None:
        """Every size that the expression is made of is a few times what it is divided by, or compared with."""
        made = parsed(text)
        if made is not None and made.names and made.names <= set(names):
            for name in made.names:
                self.least.append((named(name), _FEW * made.scale))


def named(name: str) -> Expression:
    """The size of that name itself."""
    return Expression(name, frozenset([name]), lambda sizes: sizes[name])

"""The code blocks of the README and of the pages in docs/, and how each kind is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]

_FENCE = re.compile(
    r"^(?:<!-- setup: (?P<setup>\w+) -->\n)?(?P<indent> *)```(?P<kind>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.S | re.M
)
KINDS = {"sh", "console", "python", "yaml", "c", "cpp", "cmake", "text"}


@dataclass(frozen=True)
class Block:
    """A block, where it stands, and what has to be there for it: `<!-- setup: name -->` in the line before it."""

    page: Path
    line: int
    kind: str
    body: str
    setup: str

    @property
    def title(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"


def blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text()
        for found in _FENCE.finditer(text):
            indent = found["indent"]
            body = "\n".join(line.removeprefix(indent) for line in found["body"].splitlines())
            line = text[: found.start("kind")].count("\n") + 1
            yield Block(page, line, found["kind"], body, found["setup"] or "")


@dataclass(frozen=True)
class Command:
    arguments: list[str]
    output: list[str]  # as the page shows it; a line of dots stands for any others


def commands(block: Block) -> list[Command]:
    """The command lines of a block; in one with `$` each has its output below it."""
    found: list[Command] = []
    for line in block.body.splitlines():
        if block.kind == "console" and not line.startswith("$ "):
            found[-1].output.append(line)
        elif line.strip() and not line.startswith("#"):
            found.append(Command(shlex.split(line.removeprefix("$ "), comments=True), []))
    return found


def is_like(shown: list[str], said: list[str]) -> bool:
    """Whether a command said what the page shows; times and sizes are those of the day."""

    def plain(line: str) -> str:
        return re.sub(r"\d+(\.\d+)? (ms|s)\b", "TIME", line.rstrip())

    if not any(line.startswith("note: ") for line in shown):
        said = [line for line in said if not line.startswith("note: ")]
    if not shown:
        return not said
    if shown[0].strip() == "...":
        return any(is_like(shown[1:], said[i:]) for i in range(len(said) + 1))
    return bool(said) and plain(shown[0]) == plain(said[0]) and is_like(shown[1:], said[1:])


Runner = Callable[[list[str]], tuple[int, str]]

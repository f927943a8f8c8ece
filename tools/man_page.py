#!/usr/bin/env python3
"""Writes the man page of the program out of what it says of itself: man_page.py PROGRAM PAGE."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

INDENT = 2  # of an entry of --help; what goes on below it is indented further


def said(program: str, *arguments: str) -> list[str]:
    """What it prints; nothing where the program alone cannot, as a part of it is in the Python package."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def plain(text: str) -> str:
    """Text that roff takes for nothing else."""
    text = text.strip().replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\\&" + text if text.startswith((".", "'")) else text


def entry(line: str) -> list[str]:
    """`--opset INT   the opset that is written`: a term, and what is said of it."""
    parts = re.split(r" {2,}", line.strip(), maxsplit=1)
    if len(parts) == 1 and (found := re.match(r"(\S+ \S+:.*?\]) (.*)", parts[0])):
        parts = [found[1], found[2]]  # a term that reaches to the column of the texts
    return [".TP", f".B {plain(parts[0])}", *(plain(part) for part in parts[1:])]


def body(lines: list[str]) -> list[str]:
    """Paragraphs and entries of one --help, without its usage."""
    page: list[str] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if line.startswith("Usage:"):
            page += [".PP", f".B {plain(line.removeprefix('Usage:'))}"]
        elif indent == 0 and line.endswith(":"):
            page += [".PP", f".I {plain(line)}"]
        elif indent == 0:
            page += [".PP", plain(line)]
        elif indent == INDENT:
            page += entry(line)
        else:
            page.append(plain(line))
    return page


def page_of(program: str) -> str:
    version = said(program, "--version")[0].split()[-1]
    main = said(program, "--help")
    start = main.index("Subcommands:") + 1
    end = next(i for i in range(start, len(main)) if not main[i].strip())
    commands = [re.split(r" {2,}", line.strip())[0] for line in main[start:end]]
    lines = [f'.TH TONNX 1 "" "tonnx {version}" "User Commands"', ".SH NAME"]
    lines += [f"tonnx \\- {plain(main[0]).rstrip('.').lower().replace('onnx', 'ONNX').replace('pytorch', 'PyTorch')}"]
    lines += [".SH SYNOPSIS", ".B tonnx", ".I SUBCOMMAND", "[OPTIONS]", ".SH DESCRIPTION"]
    lines += body([line for line in main if not line.startswith("Usage:")])
    for command in commands:
        help_text = said(program, command, "--help") or ["The Python package of tonnx has this command, and says more."]
        lines += [f'.SH "TONNX {command.upper()}"', *body(help_text)]
    lines += [".SH SEE ALSO", plain("The documentation of the project; README.md and docs/ in its sources.")]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(page_of(sys.argv[1]))

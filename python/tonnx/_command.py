"""Argument parsing and exit codes of the commands of the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from tonnx._error import Error, did_you_mean

BAD_INPUT, UNSUPPORTED, DIFFERS, INTERNAL = 1, 2, 3, 70
_CODES = {"bad_file": BAD_INPUT, "invalid_model": BAD_INPUT, "unsupported": UNSUPPORTED, "verification": DIFFERS}


class Parser(argparse.ArgumentParser):
    """Options may be written with `_` or `-`; an unknown option is an error that suggests similar ones."""

    def error(self, message: str) -> NoReturn:
        _, found, rest = message.partition("unrecognized arguments: ")
        name = next((text.partition("=")[0] for text in rest.split() if text.startswith("--")), "")
        if found and name:
            known = [option for option in self._option_string_actions if option.startswith("--")]
            self.exit(BAD_INPUT, f"error: {self.prog} has no option '{name}'{did_you_mean(name, known)}\n")
        self.exit(BAD_INPUT, f"error: {message}; {self.prog} --help says how it is written\n")


def _with_dashes(text: str) -> str:
    if not text.startswith("--"):
        return text
    name, equals, value = text.partition("=")
    return name.replace("_", "-") + equals + value


def run_command(
    parser: argparse.ArgumentParser, command: Callable[[argparse.Namespace], int], arguments: Sequence[str]
) -> int:
    """Runs a command with these arguments, prints errors, and returns the exit code."""
    try:
        return command(parser.parse_args([_with_dashes(text) for text in arguments]))
    except SystemExit as e:  # --help, or invalid arguments
        return int(e.code or 0)
    except Error as e:
        print(f"error: {e}", file=sys.stderr)
        return _CODES.get(e.kind, INTERNAL)
    except MemoryError:
        print("error: out of memory", file=sys.stderr)
        return BAD_INPUT

"""What commands of the package share: how arguments are read, and what a failure ends with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from tonnx._error import Error

BAD_INPUT, UNSUPPORTED, DIFFERS, INTERNAL = 1, 2, 3, 70
_CODES = {"bad_file": BAD_INPUT, "invalid_model": BAD_INPUT, "unsupported": UNSUPPORTED, "verification": DIFFERS}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(BAD_INPUT, f"error: {message}\n")


def run_command(
    parser: argparse.ArgumentParser, command: Callable[[argparse.Namespace], int], arguments: Sequence[str]
) -> int:
    """The exit code of a command with these arguments; what went wrong is printed."""
    try:
        return command(parser.parse_args(arguments))
    except SystemExit as e:  # --help, or arguments that cannot be read
        return int(e.code or 0)
    except Error as e:
        print(f"error: {e}", file=sys.stderr)
        return _CODES.get(e.kind, INTERNAL)
    except MemoryError:
        print("error: out of memory", file=sys.stderr)
        return BAD_INPUT

"""The command line of the package: the same as that of the tonnx program."""

import sys

from tonnx._core import run_cli


def main() -> int:
    return run_cli(["tonnx", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

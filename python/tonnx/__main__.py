"""The command line of the package: that of the tonnx program, which can compare outputs here."""

import sys

from tonnx import _compare
from tonnx._core import run_cli


def main() -> int:
    return run_cli(["tonnx", *sys.argv[1:]], _compare.compare_for_cli)


if __name__ == "__main__":
    sys.exit(main())

"""The command line of the package: that of the tonnx program, which can compare and export models here."""

import sys

from tonnx import _compare
from tonnx._core import guard_signals, run_cli


def main() -> int:
    guard_signals()  # this process is ours
    if sys.argv[1:2] == ["verify"]:
        from tonnx._verify import cli

        return cli.main(sys.argv[2:])
    if sys.argv[1:2] == ["export"]:
        from tonnx._export_command import main as export

        return export(sys.argv[2:])
    return run_cli(["tonnx", *sys.argv[1:]], _compare.compare_for_cli)


if __name__ == "__main__":
    sys.exit(main())

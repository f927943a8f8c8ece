"""The command line of the package: that of the tonnx program, which can compare models here."""

import signal
import sys

from tonnx import _compare
from tonnx._core import run_cli


def main() -> int:
    if sys.argv[1:2] == ["verify"]:
        from tonnx import _verify_cli

        return _verify_cli.main(sys.argv[2:])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the core does not look for signals of Python
    return run_cli(["tonnx", *sys.argv[1:]], _compare.compare_for_cli)


if __name__ == "__main__":
    sys.exit(main())

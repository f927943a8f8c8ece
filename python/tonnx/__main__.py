"""The command line of the package: that of the tonnx program, with the commands that need PyTorch or ONNX Runtime."""

import os
import select
import sys
from collections.abc import Sequence

from tonnx import _compare
from tonnx._core import guard_signals, run_cli


def run(arguments: Sequence[str]) -> int:
    """The exit code of a command with these arguments."""
    command, others = arguments[:1], arguments[1:]
    if command == ["verify"]:
        from tonnx._verify import cli

        return cli.main(others)
    if command == ["export"]:
        from tonnx._export_command import main as export

        return export(others)
    if command == ["convert"]:
        from tonnx._export_command import convert_code, source_of_code

        source = source_of_code(others)
        if source is not None:
            return convert_code(source, others)
    if command == ["run"] and any(text.split("=")[0] == "--on" for text in others):
        from tonnx._cluster.cli import main as run_on_cluster

        return run_on_cluster(others)
    return run_cli(["tonnx", *arguments], _compare.compare_for_cli)


BROKEN_PIPE = 141  # the exit code in a shell of a program that SIGPIPE ended


def _has_reader(descriptor: int) -> bool:
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def main() -> int:
    guard_signals()  # the process belongs to the command line
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        if _has_reader(sys.stdout.fileno()):  # another pipe is broken
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the buffers that Python flushes at exit
        return BROKEN_PIPE
    return code


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compares the interface of libtonnx.so with what abi/ says of it, so that no change of it goes unnoticed.

check_abi.py symbols LIBRARY [--update]         the exported functions and types, by name: abi/SONAME.symbols
check_abi.py types LIBRARY HEADERS [--update]   the types of their arguments, bit by bit: abi/SONAME.abi.xz, by abidiff

LIBRARY of `types` has debugging information; HEADERS is the folder of the public headers, whose types alone count.
"""

from __future__ import annotations

import argparse
import lzma
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ABI = Path(__file__).resolve().parents[1] / "abi"
HOW_TO_GO_ON = """
Where programs that were compiled before still run, as something was only added: `make abi-update`, and a line in
CHANGELOG.md. Where they do not: raise the version in include/tonnx/version.h first, before 1.0 the second number, and
later the first one; the list of the older version goes away then."""


def call(*command: object) -> str:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def soname(library: Path) -> str:
    found = re.search(r"SONAME\s+(\S+)", call("objdump", "-p", library))
    if found is None:
        sys.exit(f"error: {library} has no SONAME")
    return found[1]


def exported(library: Path) -> list[str]:
    """Names with their versions. Weak functions are left out: they are inline, and every program has its own."""
    names = set()
    for line in call("nm", "--dynamic", "--defined-only", "--demangle", library).splitlines():
        _, kind, name = line.split(" ", 2)
        if kind not in ("A", "W"):
            names.add(name)
    return sorted(names)


def report(differences: str, what: str) -> int:
    print(f"error: {what} is not what abi/ says of it:\n{differences}\n{HOW_TO_GO_ON}", file=sys.stderr)
    return 1


def write(path: Path, data: bytes) -> int:
    ABI.mkdir(exist_ok=True)
    is_new = not path.exists() or path.read_bytes() != data
    path.write_bytes(data)
    for other in ABI.glob(f"*{path.suffix}"):
        if other != path:
            other.unlink()
    print(f"abi/{path.name} {'is written: tell of the change in CHANGELOG.md' if is_new else 'is up to date'}")
    return 0


def check_symbols(library: Path, update: bool) -> int:
    path, names = ABI / f"{soname(library)}.symbols", exported(library)
    if not names:
        sys.exit(f"error: {library} exports nothing")
    if update:
        return write(path, "".join(f"{name}\n" for name in names).encode())
    known = path.read_text().splitlines() if path.exists() else []
    lines = [f"  - {name}" for name in known if name not in names] + [
        f"  + {name}" for name in names if name not in known
    ]
    if lines:
        return report("\n".join(lines), f"what {soname(library)} exports")
    print(f"{len(names)} exported names, all as in abi/{path.name}")
    return 0


def described(library: Path, headers: Path, path: Path) -> None:
    """What abidw says of the types in public headers. Places in sources change with every edit, and are left out."""
    options = [
        "--drop-private-types",
        "--no-corpus-path",
        "--no-comp-dir-path",
        "--no-show-locs",
        "--exported-interfaces-only",
    ]
    options += ["--type-id-style", "hash"]
    call("abidw", "--headers-dir", headers, *options, "--out-file", path, library)
    path.write_text(path.read_text().replace(f"{ABI.parent}/", ""))  # it is the same wherever it was built


def check_types(library: Path, headers: Path, update: bool) -> int:
    path = ABI / f"{soname(library)}.abi.xz"
    with tempfile.TemporaryDirectory() as folder:
        now = Path(folder) / "now.abi"
        described(library, headers, now)
        if "<abi-instr" not in now.read_text():
            sys.exit(f"error: {library} has no debugging information")
        if update:
            return write(path, lzma.compress(now.read_bytes(), preset=9))
        if not path.exists():
            return report(f"  abi/{path.name} is not there", f"the interface of {soname(library)}")
        known = Path(folder) / "known.abi"
        known.write_bytes(lzma.decompress(path.read_bytes()))
        done = subprocess.run(["abidiff", str(known), str(now)], capture_output=True, text=True)
    # a bit for a change of the interface; those below it are for errors and wrong arguments
    if done.returncode != 0:
        return report(done.stdout + done.stderr, f"the interface of {soname(library)}")
    print(f"the interface is that of abi/{path.name}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["symbols", "types"])
    parser.add_argument("library", type=Path)
    parser.add_argument("headers", type=Path, nargs="?")
    parser.add_argument("--update", action="store_true")
    given = parser.parse_args()
    if given.what == "symbols":
        return check_symbols(given.library, given.update)
    if given.headers is None:
        parser.error("types needs the folder of the headers")
    return check_types(given.library, given.headers, given.update)


if __name__ == "__main__":
    sys.exit(main())

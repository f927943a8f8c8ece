#!/usr/bin/env python3
"""Holds the layers of the library to their order: none includes, or needs a symbol of, a layer above it. Families of
operators do not include each other in circles. The command line and the Python binding, which are above all of them,
have the public interface alone; and that has nothing of the layers.

check_layers.py SOURCE BUILD LAYER... - the layers from the lowest to the highest, each a library BUILD/libtonnx_LAYER.a
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def symbols(library: Path) -> tuple[set[str], set[str]]:
    """What a static library defines, and what it needs."""
    defined, needed = set(), set()
    listing = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        match = re.match(r"[0-9a-f ]{16} ([A-Za-z]) (\S+)$", line)
        if match is None:
            continue
        kind, name = match.groups()
        if kind == "U":
            needed.add(name)
        elif kind in "TDRBVWu":
            defined.add(name)
    return defined, needed - defined


def faults_outside(source: Path) -> list[str]:
    """What the command line, the Python binding and the public headers include that they should not."""
    faults = []
    for folder in ("src/cli", "python/bindings", "include/tonnx"):
        files = [file for file in sorted((source / folder).iterdir()) if file.suffix in (".h", ".cpp")]
        if not files:
            faults.append(f"{folder}: has no sources")
        for file in files:
            for name in re.findall(r'^#include "([^"]*)"', file.read_text(), re.MULTILINE):
                # the binding has its own files, and the command line inside it
                is_own = folder != "include/tonnx" and name.startswith("cli/")
                is_own = is_own or (folder == "python/bindings" and (source / folder / name).exists())
                if not is_own:
                    faults.append(f"{file.relative_to(source)}: includes {name}, which is not of the public interface")
    return faults


def included_families(source: Path) -> dict[str, dict[str, str]]:
    """Which families of operators each family includes, and in which file; all of them may include frame."""
    included: dict[str, dict[str, str]] = {}
    root = source / "src" / "ops"
    for file in sorted(root.rglob("*")):
        if file.suffix not in (".h", ".cpp"):
            continue
        family = file.relative_to(root).parts[0]
        for other in re.findall(r'^#include "ops/(\w+)/', file.read_text(), re.MULTILINE):
            if other not in (family, "frame"):
                included.setdefault(family, {}).setdefault(other, str(file.relative_to(source)))
    return included


def faults_of_families(source: Path) -> list[str]:
    """Where families of operators include each other in circles, and what frame includes of them."""
    included = included_families(source)
    faults = [f"{file}: includes a file of {family}" for family, file in included.pop("frame", {}).items()]
    open_path: list[str] = []
    done: set[str] = set()

    def visit(family: str) -> None:
        if family in open_path:
            circle = [*open_path[open_path.index(family) :], family]
            steps = [f"{a} includes {b} in {included[a][b]}" for a, b in zip(circle, circle[1:], strict=False)]
            faults.append(f"families in a circle: {', '.join(steps)}")
        elif family not in done:
            open_path.append(family)
            for other in included.get(family, {}):
                visit(other)
            done.add(open_path.pop())

    for family in included:
        visit(family)
    return faults


def main(source: Path, build: Path, layers: list[str]) -> int:
    faults = faults_outside(source) + faults_of_families(source)
    for place, layer in enumerate(layers):
        above = set(layers[place + 1 :])
        files = [file for file in sorted((source / "src" / layer).rglob("*")) if file.suffix in (".h", ".cpp")]
        if not files:
            faults.append(f"{layer}: has no sources")
        for file in files:
            for folder in re.findall(r'^#include "(\w+)/', file.read_text(), re.MULTILINE):
                if folder in above:
                    faults.append(f"{file.relative_to(source)}: includes a file of {folder}, which is above {layer}")
    tables = {layer: symbols(build / f"libtonnx_{layer}.a") for layer in layers}
    for place, layer in enumerate(layers):
        here = set().union(*(tables[below][0] for below in layers[: place + 1]))
        for other in layers[place + 1 :]:
            for name in sorted((tables[layer][1] - here) & tables[other][0]):
                faults.append(f"{layer}: needs {name} of {other}, which is above it")
    print("\n".join(faults) or f"{len(layers)} layers, each on those below it")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))

#!/usr/bin/env python3
"""Runs clang-tidy over what a build compiles, several files at a time: tidy.py BUILD [--jobs N] [PART...]

BUILD has a compile_commands.json of clang, and its precompiled headers. With parts only files are looked at whose paths
have one of them in it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CLANG_TIDY = "clang-tidy-16"


def look_at(build: Path, file: str) -> tuple[str, bool]:
    done = subprocess.run([CLANG_TIDY, "-p", build, "--quiet", file], capture_output=True, text=True)
    return done.stdout, done.returncode == 0


def is_part(file: str, part: str) -> bool:
    """Files that are compiled together stand in one file, which names them."""
    return part in file or (file.endswith(".cxx") and part in Path(file).read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    commands = json.loads((options.build / "compile_commands.json").read_text())
    files = sorted({entry["file"] for entry in commands if "site-packages" not in entry["file"]})
    files = [file for file in files if "cmake_pch" not in file]
    if options.parts:
        files = [file for file in files if any(is_part(file, part) for part in options.parts)]
    if not files:
        print("no file to look at")
        return 1
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for text, is_clean in pool.map(lambda file: look_at(options.build, file), files):
            failed += not is_clean
            if not is_clean:
                print(text, end="", flush=True)
    print(f"clang-tidy: {len(files)} files, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

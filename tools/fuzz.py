"""Runs the coverage-guided fuzzers of build/fuzz over the inputs that are checked in, and keeps what they find.

    tools/fuzz.py build/fuzz/tonnx_fuzz --target onnx --seconds 600
    tools/fuzz.py build/fuzz/tonnx_fuzz --target all --seconds 120      # together
    tools/fuzz.py build/fuzz/tonnx_fuzz --target all --runs 1000        # of each, the same ones each time

A finding ends the run with exit code 1; it lies in build/fuzz/findings/TARGET. Once its cause is mended it goes to
tests/fuzz/found/TARGET, where the tests run it forever.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FUZZ = REPOSITORY / "tests/fuzz"
MEMORY_MB = 2048
SLOWEST_SECONDS = 60  # of one input, with the sanitizers, on a machine that does other things too
LONGEST = {"program": 1 << 16, "pt2": 1 << 16}
LONGEST_OTHERWISE = 1 << 13
MORE_SEEDS = {"program": REPOSITORY / "tests/formats/pt2/programs", "onnx": FUZZ / "corpus/onnx_routes"}


def targets_of(program: Path) -> list[str]:
    """The program lists its targets where none is given."""
    listed = subprocess.run([program], capture_output=True, text=True).stderr
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]


def complaint(log: str) -> str:
    """What the sanitizer said, from its first line on."""
    lines = log.splitlines()
    first = next((i for i, line in enumerate(lines) if "ERROR: " in line or "runtime error: " in line), len(lines) - 30)
    return "\n".join(f"    {line[:200]}" for line in lines[max(first, 0) :][:30])


def run(program: Path, target: str, seconds: int, runs: int | None) -> bool:
    """Whether nothing was found. A number of runs is repeatable: that many inputs are drawn from what is checked in,
    and nothing is learned from them."""
    work = Path(tempfile.mkdtemp()) if runs else program.parent / "corpus" / target
    findings = program.parent / "findings" / target
    for folder in (work, findings):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    seeds = [FUZZ / "corpus" / target, FUZZ / "found" / target, MORE_SEEDS.get(target)]
    folders = [str(work), *(str(folder) for folder in seeds if folder is not None and folder.is_dir())]
    if runs:
        subprocess.run([program, f"--target={target}", f"--draw={runs}", *folders], check=True)
    command = [
        str(program),
        f"--target={target}",
        *(["-runs=0"] if runs else [f"-max_total_time={seconds}"]),
        f"-rss_limit_mb={MEMORY_MB}",
        f"-malloc_limit_mb={MEMORY_MB}",
        f"-timeout={SLOWEST_SECONDS}",
        f"-max_len={LONGEST.get(target, LONGEST_OTHERWISE)}",
        f"-dict={FUZZ / 'tonnx.dict'}",
        f"-artifact_prefix={findings}/",
        "-print_final_stats=1",
        *folders,
    ]
    options = "allocator_may_return_null=1:detect_leaks=0:abort_on_error=0"
    environment = os.environ | {"ASAN_OPTIONS": options, "UBSAN_OPTIONS": "print_stacktrace=1"}
    if symbolizer := shutil.which("llvm-symbolizer-16"):
        environment["ASAN_SYMBOLIZER_PATH"] = symbolizer
    log = program.parent / f"{target}.log"
    with log.open("wb") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
    if runs:
        shutil.rmtree(work)
    found = sorted(set(findings.iterdir()) - before)
    stats = {
        line.split()[0]: line.split()[1]
        for line in log.read_text(errors="replace").splitlines()
        if line.startswith("stat::")
    }
    runs = stats.get("stat::number_of_executed_units:", "?")
    if done.returncode == 0 and not found:
        print(f"{target}: {runs} runs, nothing found", flush=True)
        return True
    print(f"{target}: {runs} runs, FOUND {', '.join(map(str, found)) or 'a failure'}; {log} says what:", flush=True)
    print(complaint(log.read_text(errors="replace")), flush=True)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument(
        "--target", default="all", help="one of those that the program lists, several with commas, or all"
    )
    parser.add_argument("--seconds", type=int, default=600, help="of all targets together, on one core")
    parser.add_argument("--runs", type=int, help="of each target, from a fixed seed, instead of seconds")
    parser.add_argument("--jobs", type=int, default=1, help="targets at the same time")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    known = targets_of(program)
    chosen = known if arguments.target == "all" else arguments.target.split(",")
    if unknown := set(chosen) - set(known):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    each = max(arguments.seconds * arguments.jobs // len(chosen), 1)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        clean = list(pool.map(lambda target: run(program, target, each, arguments.runs), chosen))
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Every direction and format from file to file: tonnx beside `cp` of the same file, and what others need for it."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import large_weights
import seed_classifiers
import torch
from resnet50_by_hand import ResNet50

EXAMPLE = (torch.zeros(1, 3, 224, 224),)


class Route(NamedTuple):
    """A conversion of a file of the cache, and the same by somebody else in a process that is warm already."""

    source: str
    target: str
    options: tuple[str, ...] = ()
    other: str = ""
    by_other: Callable[[Path, Path], Any] | None = None


def export_program(source: Path, target: Path) -> None:
    torch.onnx.export(torch.export.load(source), EXAMPLE, target, dynamo=True, verbose=False)


def export_script(source: Path, target: Path) -> None:
    torch.onnx.export(torch.jit.load(source), EXAMPLE, target, dynamo=False)


def convert_version(source: Path, target: Path) -> None:
    import onnx
    from onnx import version_converter

    onnx.save(version_converter.convert_version(onnx.load(source), 21), target)


def save_safetensors(source: Path, target: Path) -> None:
    from safetensors.torch import save_file

    save_file(torch.load(source), target)


def save_pth(source: Path, target: Path) -> None:
    from safetensors.torch import load_file

    torch.save(load_file(source), target)


def run_onnxsim(source: Path, target: Path) -> None:
    import onnx
    import onnxsim

    onnx.save(onnxsim.simplify(str(source))[0], target)


def run_onnxslim(source: Path, target: Path) -> None:
    import onnx
    import onnxslim

    onnx.save(onnxslim.slim(str(source)), target)


SHAPE = ("--input-shape", "0:1,3,224,224")
CONVERSIONS = (
    Route("resnet50.onnx", "out.py"),
    Route("resnet50.onnx", "out.pt2"),
    Route("resnet50.onnx", "out.pt"),
    Route("resnet50.onnx", "out.onnx", ("--opset", "21"), "onnx", convert_version),
    Route("resnet50.onnx", "out.safetensors"),
    Route("resnet50.onnx", "out.pth"),
    Route("resnet50.pt2", "out.onnx", (), "torch.onnx", export_program),
    Route("resnet50.pt2", "out.py"),
    Route("resnet50.pt2", "out.pt"),
    Route("resnet50.pt2", "out.safetensors"),
    Route("resnet50.pt2", "out.pth"),
    Route("resnet50.pt", "out.onnx", SHAPE, "torch.onnx", export_script),
    Route("resnet50.pt", "out.py", SHAPE),
    Route("resnet50.pt", "out.pt2", SHAPE),
    Route("resnet50.pt", "out.safetensors", SHAPE),
    Route("resnet50.pt", "out.pth", SHAPE),
    Route("resnet50.pth", "out.safetensors", (), "torch, safetensors", save_safetensors),
    Route("resnet50.safetensors", "out.pth", (), "torch, safetensors", save_pth),
)


def ensure_resnet(folder: Path, cli: Path) -> None:
    """resnet50 in every format that is read."""
    seed_classifiers.ensure(folder, "resnet50")
    if all((folder / f"resnet50.{kind}").exists() for kind in ("pt2", "pt", "pth", "safetensors")):
        return
    torch.manual_seed(0)
    model = ResNet50().eval()
    torch.export.save(torch.export.export(model, EXAMPLE), folder / "resnet50.pt2")
    torch.jit.trace(model, EXAMPLE).save(folder / "resnet50.pt")
    torch.save(model.state_dict(), folder / "resnet50.pth")
    weights = [str(folder / f"resnet50.{kind}") for kind in ("pth", "safetensors")]
    subprocess.run([str(cli), "convert", *weights], check=True, capture_output=True)


def seconds_of(command: Sequence[str]) -> float:
    """Nothing of earlier runs is left to be written to the disk."""
    os.sync()
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def median_of_other(run: Callable[[Path, Path], Any], source: Path, folder: Path, repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):  # the first of them warms up
        start = time.perf_counter()
        run(source, folder / "other.out")
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def row_of(arguments: argparse.Namespace, command: str, route: Route, label: str = "") -> list[str]:
    source = arguments.cache / route.source
    with tempfile.TemporaryDirectory(dir=arguments.cache) as name:
        folder = Path(name)
        ours = [str(arguments.cli), command, str(source), str(folder / route.target), *route.options]
        copy = ["cp", str(source), str(folder / "copy")]
        times: dict[str, list[float]] = {"cp": [], "tonnx": []}
        for _ in range(arguments.repeats + 1):  # alternating, and the first of each warms the page cache
            for kind, process in (("cp", copy), ("tonnx", ours)):
                times[kind].append(seconds_of(process))
                shutil.rmtree(folder)
                folder.mkdir()
        cp, tonnx = (statistics.median(times[kind][1:]) for kind in ("cp", "tonnx"))
        other = ["", ""]
        if route.by_other is not None:
            try:
                took = median_of_other(route.by_other, source, folder, max(1, arguments.repeats // 2))
                other = [f"{route.other} {took:.3f} s", f"{took / tonnx:.1f}"]
            except Exception as error:
                other = [f"{route.other} fails ({type(error).__name__})", ""]
    return [label or f"{route.source} to {route.target}", f"{cp:.3f} s", f"{tonnx:.3f} s", f"{tonnx / cp:.2f}", *other]


HEAD = ["", "cp", "tonnx", "of cp", "another", "of tonnx"]


def conversions(arguments: argparse.Namespace) -> list[list[str]]:
    ensure_resnet(arguments.cache, arguments.cli)
    return [row_of(arguments, "convert", route) for route in CONVERSIONS]


def seconds_to_copy_result(arguments: argparse.Namespace, command: str, source: Path, target: str) -> float:
    """What cp takes for as many bytes as come out: a cast weight has twice as many as go in."""
    with tempfile.TemporaryDirectory(dir=arguments.cache) as name:
        folder = Path(name)
        subprocess.run(
            [str(arguments.cli), command, str(source), str(folder / target)], check=True, capture_output=True
        )
        largest = max(folder.iterdir(), key=lambda path: path.stat().st_size)
        times = []
        for _ in range(arguments.repeats + 1):
            times.append(seconds_of(["cp", str(largest), str(folder / "copy")]))
            (folder / "copy").unlink()
    return statistics.median(times[1:])


def weights(arguments: argparse.Namespace) -> list[list[str]]:
    rows = []
    for kind in large_weights.KINDS:
        source = large_weights.ensure(arguments.cache, kind, arguments.megabytes)
        command, target = ("simplify", "out.onnx") if kind == "scaled" else ("convert", "out.py")
        route = Route(source.name, target)
        row = row_of(arguments, command, route, f"{kind}, {source.stat().st_size / 1e6:.0f} MB, {command}")
        rows.append([*row[:4], f"{seconds_to_copy_result(arguments, command, source, target):.3f} s"])
    return rows


def simplifications(arguments: argparse.Namespace) -> list[list[str]]:
    rows = []
    for name in seed_classifiers.NAMES:
        source = seed_classifiers.ensure(arguments.cache, name)
        for other, run in (("onnxsim", run_onnxsim), ("onnxslim", run_onnxslim)):
            rows.append(row_of(arguments, "simplify", Route(source.name, "out.onnx", (), other, run), source.name))
    return rows


def exports(arguments: argparse.Namespace) -> list[list[str]]:
    """A live module to a file, by each exporter in this process: the time, and how often ours fits into it."""
    import tonnx

    torch.manual_seed(0)
    model = ResNet50().eval()
    exporters: dict[str, Callable[[Path], Any]] = {
        "tonnx.export": lambda target: tonnx.export(model, EXAMPLE, target),
        "torch.onnx": lambda target: torch.onnx.export(model, EXAMPLE, target, dynamo=True, verbose=False),
        "torch.onnx, dynamo=False": lambda target: torch.onnx.export(model, EXAMPLE, target, dynamo=False),
    }
    rows, ours = [], 0.0
    with tempfile.TemporaryDirectory(dir=arguments.cache) as folder:
        for name, export in exporters.items():
            took = median_of_other(
                lambda _, target: export(target), Path(), Path(folder), max(1, arguments.repeats // 2)
            )
            ours = ours or took
            rows.append([name, f"{took:.3f} s", f"{took / ours:.1f}"])
    return rows


def processor_of(command: Sequence[str]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor: of these a machine that others use as well takes about as many."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = seconds_of(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def models(arguments: argparse.Namespace) -> list[list[str]]:
    """All models of a folder simplified, each by a process of its own, beside copies of them: sums of the best."""
    files = sorted(arguments.models.glob("**/*.onnx"))
    sums = {"cp": [0.0, 0.0], "tonnx simplify": [0.0, 0.0]}
    with tempfile.TemporaryDirectory(dir=arguments.cache) as folder:
        target = Path(folder) / "out.onnx"
        for file in files:
            best = {name: [float("inf"), float("inf")] for name in sums}
            for _ in range(arguments.repeats + 1):
                for name, program in (("cp", ["cp"]), ("tonnx simplify", [str(arguments.cli), "simplify"])):
                    target.unlink(missing_ok=True)
                    times = processor_of([*program, str(file), str(target)])
                    best[name] = [min(pair) for pair in zip(best[name], times)]
            for name, times_of in best.items():
                sums[name] = [total + one for total, one in zip(sums[name], times_of)]
    copy = sums["cp"]
    return [
        [name, *(cell for i in (0, 1) for cell in (f"{times[i]:.3f} s", f"{times[i] / (copy[i] or 1):.2f}"))]
        for name, times in sums.items()
    ]

"""Measures tonnx side by side with the other converters: speed, memory, and closeness to ONNX Runtime."""

from __future__ import annotations

import argparse
import functools
import gc
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import routes
import seed_classifiers
import torch
from onnx import numpy_helper
from resnet50_by_hand import ResNet50
from torch import nn

HERE = Path(__file__).resolve().parent
OTHERS = ("onnx2torch", "onnx2pytorch", "onnx2fx")
MAPPED = "tonnx, mmap=True"
SECTIONS = ("files", "routes", "weights", "simplify", "models", "export", "memory", "forward", "accuracy")

# Another converter from start to nn.Module, as a process of its own; saving the weights is not even counted.
OTHERS_PROCESS = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from bench import converter
converter(sys.argv[2])(sys.argv[3])
"""


def converter(name: str) -> Callable[[str], nn.Module]:
    """path -> nn.Module, by the converter of that name."""
    if name in ("tonnx", MAPPED):
        import tonnx

        return functools.partial(tonnx.convert, mmap=name == MAPPED)
    if name == "onnx2fx":
        import onnx2fx

        return lambda path: onnx2fx.convert(onnx.load(path))
    import torchvision_shim  # noqa: F401

    if name == "onnx2torch":
        import onnx2torch

        return onnx2torch.convert
    from onnx2pytorch import ConvertModel

    return lambda path: ConvertModel(onnx.load(path), experimental=True)


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return getattr(sys.modules.get(package), "__version__", "from the build folder")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
        print("  " + "   ".join(cells).rstrip())


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:60]


# ---- whole processes: file to file


def peak_process(command: Sequence[str]) -> tuple[float, float]:
    """Seconds, and the most megabytes resident at one time that are not pages of mapped files."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    status = f"/proc/{process.pid}/status"
    while process.poll() is None:
        try:
            with open(status) as f:
                fields = dict(line.split(":", 1) for line in f)
            peak = max(peak, sum(int(fields[k].split()[0]) for k in ("RssAnon", "RssShmem") if k in fields))
        except (OSError, ValueError):
            pass
        time.sleep(0.002)
    took = time.perf_counter() - start
    if process.returncode:
        assert process.stderr is not None
        raise RuntimeError((process.stderr.read().decode(errors="replace").strip().splitlines() or ["failed"])[-1])
    return took, peak / 1024


def bench_files(arguments: argparse.Namespace) -> None:
    source = seed_classifiers.ensure(arguments.cache, "vgg19")
    size = source.stat().st_size / 1e6
    print(f"\nvgg19.onnx ({size:.0f} MB), whole process, median of {arguments.repeats}")
    with tempfile.TemporaryDirectory(dir=arguments.cache) as folder:
        target = Path(folder)
        copy = ["cp", str(source), str(target / "copy.onnx")]
        ours = [str(arguments.cli), "convert", str(source), str(target / "vgg19.py")]
        times: dict[str, list[float]] = {"cp": [], "tonnx": []}
        for _ in range(arguments.repeats + 1):  # alternating, and the first of each warms the page cache
            for name, command in (("cp", copy), ("tonnx", ours)):
                times[name].append(routes.seconds_of(command))
                empty(target)
        cp, tonnx_time = (statistics.median(times[name][1:]) for name in ("cp", "tonnx"))
        _, memory = peak_process(ours)
        empty(target)
        rows = [
            ["cp", f"{cp:.3f} s", "1.00", ""],
            ["tonnx convert", f"{tonnx_time:.3f} s", f"{tonnx_time / cp:.2f}", f"{memory:.0f} MB"],
        ]
        for name in arguments.others:
            process = [sys.executable, "-c", OTHERS_PROCESS, str(HERE), name, str(source)]
            try:
                took, memory = peak_process(process)
                rows.append([f"{name} {version_of(name)}", f"{took:.3f} s", f"{took / cp:.2f}", f"{memory:.0f} MB"])
            except RuntimeError as error:
                rows.append([f"{name} {version_of(name)}", "fails", "", str(error)[:60]])
            empty(target)
    table(["", "time", "of cp", "memory beside mapped files"], rows)


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def bench_routes(arguments: argparse.Namespace) -> None:
    print(f"\nresnet50 from format to format, whole process, median of {arguments.repeats}; others in a warm process")
    table(routes.HEAD, routes.conversions(arguments))


def bench_weights(arguments: argparse.Namespace) -> None:
    print(f"\nweights that must change on the way, whole process, median of {arguments.repeats}")
    table([*routes.HEAD[:4], "cp of the result"], routes.weights(arguments))


def bench_simplify(arguments: argparse.Namespace) -> None:
    print(f"\nsimplify, whole process, median of {arguments.repeats}; others in a warm process")
    table(routes.HEAD, routes.simplifications(arguments))


def bench_models(arguments: argparse.Namespace) -> None:
    if arguments.models is None:
        print("\nno folder of models is named by --models")
        return
    print(f"\nsimplify of all models in {arguments.models}, whole processes, best of {arguments.repeats + 1}, added up")
    table(["", "time", "of cp", "of the processor", "of cp"], routes.models(arguments))


def bench_export(arguments: argparse.Namespace) -> None:
    print("\na live resnet50 to ONNX in a warm process, median")
    table(["", "time", "of tonnx"], routes.exports(arguments))


# ---- in a warm process: file to nn.Module


def bench_memory(arguments: argparse.Namespace) -> None:
    source = str(seed_classifiers.ensure(arguments.cache, "resnet50"))
    print("\nresnet50.onnx to an nn.Module in a warm process, median")
    medians: dict[str, float] = {}
    rows = []
    for name in ("tonnx", MAPPED, *arguments.others):
        try:
            convert = converter(name)
            convert(source)
            times = []
            for _ in range(max(arguments.repeats, 5)):
                gc.collect()
                start = time.perf_counter()
                convert(source)
                times.append(time.perf_counter() - start)
            medians[name] = statistics.median(times)
        except Exception as error:
            rows.append([f"{name} {version_of(name)}", "fails", reason(error)])
    ours = medians.get("tonnx")
    for name, median in medians.items():
        label = name if name == MAPPED else f"{name} {version_of(name)}"
        rows.append([label, f"{median * 1e3:.1f} ms", f"{median / ours:.1f}" if ours else ""])
    table(["", "time", "of tonnx"], rows)


# ---- forward pass


def fill(model: nn.Module, source: onnx.ModelProto) -> nn.Module:
    """Gives the hand-written model the weights of the ONNX model, layer by layer in the order of the graph."""
    weights = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in source.graph.initializer}
    kinds: dict[str, Any] = {"Conv": nn.Conv2d, "BatchNormalization": nn.BatchNorm2d, "Gemm": nn.Linear}
    layers = {op: iter([m for m in model.modules() if isinstance(m, kind)]) for op, kind in kinds.items()}
    slots = ("weight", "bias", "running_mean", "running_var")
    with torch.no_grad():
        for node in source.graph.node:
            if node.op_type in layers:
                layer = next(layers[node.op_type])
                for slot, name in zip(slots, node.input[1:]):
                    getattr(layer, slot).copy_(weights[name])
    return model.eval()


def bench_forward(arguments: argparse.Namespace) -> None:
    path = seed_classifiers.ensure(arguments.cache, "resnet50")
    print(f"\nforward pass of resnet50, one image, {torch.get_num_threads()} threads, interleaved, median")
    session = seed_classifiers.session_of(path)
    image = seed_classifiers.example_input(session)
    (want,) = session.run(None, {session.get_inputs()[0].name: image})
    models = {"by hand": fill(ResNet50(), onnx.load(path))}
    rows = []
    for name in ("tonnx", *arguments.others):
        try:
            models[name] = converter(name)(str(path)).eval()
        except Exception as error:
            rows.append([f"{name} {version_of(name)}", "fails", "", reason(error)])
    x = torch.from_numpy(image)
    times: dict[str, list[float]] = {name: [] for name in models}
    with torch.no_grad():
        for round_ in range(arguments.forward_repeats + 3):
            for name, model in models.items():
                start = time.perf_counter()
                model(x)
                if round_ >= 3:
                    times[name].append(time.perf_counter() - start)
        by_hand = statistics.median(times["by hand"])
        for name, model in models.items():
            median = statistics.median(times[name])
            label = name if name == "by hand" else f"{name} {version_of(name)}"
            error = np.abs(model(x).numpy() - want).max()
            rows.append([label, f"{median * 1e3:.1f} ms", f"{median / by_hand:.3f}", f"{error:.1e}"])
    table(["", "time", "of by hand", "greatest difference"], rows)


# ---- accuracy


def squared_error(name: str, path: Path, image: np.ndarray, want: np.ndarray) -> str:
    try:
        with torch.no_grad():
            got = converter(name)(str(path)).eval()(torch.from_numpy(image))
    except Exception as error:
        return f"fails ({type(error).__name__})"
    got = np.asarray(got[0] if isinstance(got, (list, tuple)) else got)
    if got.shape != want.shape:
        return f"shape {list(got.shape)}"
    return f"{np.mean((got.astype(np.float64) - want) ** 2):.1e}"


def bench_accuracy(arguments: argparse.Namespace) -> None:
    print("\nmean squared error of the outputs against ONNX Runtime")
    names = ("tonnx", *arguments.others)
    rows = []
    for model in seed_classifiers.NAMES:
        path = seed_classifiers.ensure(arguments.cache, model)
        session = seed_classifiers.session_of(path)
        image = seed_classifiers.example_input(session)
        (want,) = session.run(None, {session.get_inputs()[0].name: image})
        del session
        rows.append([model, *(squared_error(name, path, image, want) for name in names)])
        gc.collect()
    table(["", *(f"{name} {version_of(name)}" for name in names)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all where none is named"
    )
    parser.add_argument("--cli", type=Path, default=Path("build/release/tonnx"))
    default_cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tonnx/bench"
    parser.add_argument("--cache", type=Path, default=default_cache, help="where the models lie; made on the first run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=800, help="of weights that must change on the way")
    parser.add_argument("--models", type=Path, help="a folder of .onnx files, for the section models")
    parser.add_argument("--forward-repeats", type=int, default=30)
    parser.add_argument("--others", nargs="*", default=list(OTHERS), choices=OTHERS)
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    arguments.cli = arguments.cli.resolve()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    versions = (f"{package} {version(package)}" for package in ("torch", "onnx", "onnxruntime"))
    print(f"{', '.join(versions)}, {os.cpu_count()} cores")
    for section in arguments.sections or SECTIONS:
        globals()[f"bench_{section}"](arguments)


if __name__ == "__main__":
    main()

"""Takes every file of a folder along one route, within limits; says what became of each. Run by test_hostile_models.py."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import tonnx
from tonnx import _core
from tonnx._error import translated


def to(ending: str) -> Callable[[Path, Path], object]:
    return lambda source, out: tonnx.convert(source, out / f"{source.stem}{ending}")


ROUTES: dict[str, Callable[[Path, Path], object]] = {
    "py": to(".py"),
    "pt2": to(".pt2"),
    "pt": to(".pt"),
    "safetensors": to(".safetensors"),
    "onnx": to(".onnx"),
    "opset": lambda source, out: tonnx.convert(source, out / f"{source.stem}.onnx", opset=13),
    "simplify": lambda source, out: tonnx.simplify(str(source)),
    "infer": lambda source, out: tonnx.infer(str(source), str(out / f"{source.stem}.onnx")),
    "check": lambda source, out: tonnx.check(source),
    "print": lambda source, out: _core.Conversion.read_file(str(source)).text(),
}


def main(route: str, folder: str, megabytes: str, seconds: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (int(megabytes) << 20, int(megabytes) << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = Path(folder) / route
    out.mkdir()
    os.chdir(out)
    for source in sorted(Path(folder).glob("*.onnx")):
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + 1 + int(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        print(source.stem, end=" ", flush=True)
        try:
            with translated():
                ROUTES[route](source, out)
            print("done", flush=True)
        except tonnx.Error as e:
            print(e.kind, " ".join(str(e).split())[:200], flush=True)
        except MemoryError:
            print("memory", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Tries an installed wheel in an environment that has nothing else: wheel_trial.py PYTHON.

Run by `make test-wheel`, with the Python of the tests, which has onnx to make a model with.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N, 2] x) => (float[N, 2] y) <float[2] b = {1, 2}> { s = Add(x, b) y = Relu(s) }"""
# what every Linux that the wheel is for has; all else must be in the wheel
SYSTEM = {
    "libc",
    "libm",
    "libdl",
    "libpthread",
    "librt",
    "libstdc++",
    "libgcc_s",
    "libz",
    "ld-linux-x86-64",
    "linux-vdso",
}


def output(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(python: Path) -> None:
    core = Path(output(python, "-c", "import tonnx._core; print(tonnx._core.__file__)").strip())
    for line in output("ldd", core).splitlines():
        name, _, place = line.strip().partition(" => ")
        library = Path(name.split()[0]).name.split(".so")[0]
        is_inside = str(core.parents[1]) in str(Path(place.split(" ")[0]).resolve()) if place else False
        if library not in SYSTEM and not is_inside:
            sys.exit(f"the module needs {line.strip()}, which is not in the wheel")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "m.onnx"), Path(folder, "m.py")
        onnx.save(onnx.parser.parse_model(MODEL), source)
        output(python, "-m", "tonnx", "convert", source, target)
        if "torch.relu" not in target.read_text() and "relu" not in target.read_text():
            sys.exit("the code that came out is not the model's")
        if not target.with_suffix(".safetensors").exists():
            sys.exit("no weights came out")
        output(python.with_name("tonnx"), "check", source)
    version = output(python, "-c", "import tonnx; print(tonnx.__version__)").strip()
    print(f"the wheel of tonnx {version} works where nothing else is installed")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())

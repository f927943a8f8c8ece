"""How far two arrays are apart: the one comparison of elements that verify, simplify, run and export share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def wide(array: np.ndarray) -> np.ndarray:
    """The same numbers in the widest type of their kind, where differences neither overflow nor round."""
    import numpy as np

    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def apart(wanted: np.ndarray, got: np.ndarray, rtol: float, atol: float) -> tuple[np.ndarray, np.ndarray]:
    """The differences, and which of them are larger than `atol + rtol * abs(wanted)`. Both arrays are `wide`.

    One NaN is as good as another, and an infinity is only like itself; else their difference is infinite.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        error = np.abs(got - wanted)
        error[(wanted == got) | (np.isnan(wanted) & np.isnan(got))] = 0.0
        size = np.abs(wanted)
        wrong = ~(error <= atol + rtol * np.where(np.isfinite(size), size, 0.0))
    return np.nan_to_num(error, nan=np.inf, posinf=np.inf), wrong


def difference(got: Any, wanted: Any, rtol: float, atol: float) -> str | None:
    """Says how two outputs of one type differ; None where they agree. Tolerances are for floats only."""
    import numpy as np

    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            return "sequences of different lengths"
        parts = (difference(a, b, rtol, atol) for a, b in zip(got, wanted, strict=True))
        return next((part for part in parts if part), None)
    if not isinstance(wanted, np.ndarray | np.generic):
        return None if got == wanted else f"{got!r} where {wanted!r} is expected"
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype}{list(got.shape)} where {wanted.dtype}{list(wanted.shape)} is expected"
    if wanted.dtype.kind not in "fc":
        wrong = int((got != wanted).sum())
        return f"{wrong} of {wanted.size} elements differ" if wrong else None
    eps = 4 * float(np.finfo(wanted.dtype).eps)
    error, beyond = apart(np.atleast_1d(wide(wanted)), np.atleast_1d(wide(got)), max(rtol, eps), max(atol, eps))
    if not beyond.any():
        return None
    return f"{int(beyond.sum())} of {wanted.size} elements differ, by up to {error[beyond].max():.3g}"

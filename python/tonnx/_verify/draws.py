"""Random inputs of several scales and kinds: what one of them hides another may show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tonnx._error import Error, nearest
from tonnx._verify.runners import Input

if TYPE_CHECKING:
    import numpy as np

Shape = Sequence[int]
CAUTIOUS = 1000  # from this draw on integers are 1: more models can run with them
_USUAL_LIMIT = 10  # of integers of which nothing is known


def _waves(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """A few sines along the longest dimension, each with its own phase elsewhere, as sound and images have them."""
    import numpy as np

    axis = int(np.argmax(shape)) if shape else 0
    time = np.arange(shape[axis] if shape else 1).reshape([-1 if i == axis else 1 for i in range(max(len(shape), 1))])
    phases = rng.uniform(0, 2 * np.pi, [1 if i == axis else size for i, size in enumerate(shape)] or [1])
    made = sum(np.sin(time * pace + k * phases) / (k + 1) for k, pace in enumerate(rng.uniform(0.01, 1.0, 4)))
    return np.asarray(made + 0.01 * rng.standard_normal(shape)).reshape(shape)


def _sparse(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Nothing but for one element in ten, which is large."""
    import numpy as np

    return np.asarray(rng.standard_normal(shape) * 4 * (rng.random(shape) < 0.1))


FLOATS: tuple[tuple[str, Callable[[Any, Shape], Any]], ...] = (
    ("in [0, 1)", lambda rng, shape: rng.random(shape)),
    ("normal", lambda rng, shape: rng.standard_normal(shape)),
    ("waves", _waves),
    ("pixels up to 255", lambda rng, shape: 255 * rng.random(shape)),
    ("sparse", _sparse),
    ("small", lambda rng, shape: 0.05 * rng.standard_normal(shape)),
)


def array_of(
    rng: np.random.Generator,
    value: Input,
    dtype: np.dtype[Any],
    shape: Shape,
    limit: int | None,
    draw: int,
    length: int,
    fill: str = "random",
) -> np.ndarray:
    """The array of one input. Draws go on from those that most likely mean something to the model."""
    import numpy as np

    data: Any
    is_cautious, draw = draw >= CAUTIOUS, draw % CAUTIOUS
    if fill != "random":
        data = _FILLS[fill](shape)
    elif is_cautious and dtype.kind in "iu":
        data = np.ones(shape)
    elif value.choices and len(shape) <= 1:
        data = np.full(shape, value.choices[draw % len(value.choices)])
    elif dtype.kind == "b" and len(shape) <= 1:
        data = np.full(shape, draw % 2 == 0)
    elif value.is_length:
        data = np.full(shape, length) if draw == 0 else rng.integers(max(length // 2, 1), length + 1, shape)
    elif value.is_mask and dtype.kind in "fiub":
        data = _mask(rng, shape, draw)
    elif dtype.kind == "f" and limit is None:
        data = FLOATS[draw % len(FLOATS)][1](rng, shape)
    else:
        data = rng.integers(0, 2 if dtype.kind == "b" else limit or _USUAL_LIMIT, shape)
    return np.asarray(data).astype(dtype)


def _counted(shape: Shape) -> np.ndarray:
    import numpy as np

    return np.arange(int(np.prod(shape))).reshape(shape)


def _ones(shape: Shape) -> np.ndarray:
    import numpy as np

    return np.ones(shape)


_FILLS: dict[str, Callable[[Shape], np.ndarray]] = {
    "ones": _ones,
    "zeros": lambda shape: 0 * _ones(shape),
    "arange": _counted,
}


def require_fill(name: str) -> None:
    known = ("random", *_FILLS)
    if name not in known:
        raise Error(f"there is no input_fill '{name}'; there are: {nearest(name, known)}", "invalid_model")


def _mask(rng: np.random.Generator, shape: Shape, draw: int) -> np.ndarray:
    """All of it, then the beginning of it."""
    import numpy as np

    if draw == 0 or not shape:
        return np.ones(shape)
    ends = rng.integers(max(shape[-1] // 2, 1), shape[-1] + 1, [*shape[:-1], 1])
    return np.asarray(np.arange(shape[-1]) < ends)


def spread(array: np.ndarray, shape: Shape) -> np.ndarray:
    """The array at another shape: repeated along each axis, or cut off."""
    import numpy as np

    for axis, size in enumerate(shape):
        if size != array.shape[axis]:
            array = np.take(array, np.arange(size) % max(array.shape[axis], 1), axis)
    return array


def title(draw: int) -> str:
    return FLOATS[draw % len(FLOATS)][0]

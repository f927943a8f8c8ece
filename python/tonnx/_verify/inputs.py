"""The inputs that two models get: the same data, for each under its own name, type and place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tonnx._error import Error, nearest
from tonnx._verify.expression import parsed
from tonnx._verify.runners import Input, Runner, identifier
from tonnx._verify.sizes import Rule

if TYPE_CHECKING:
    import numpy as np


def pair_inputs(a: Runner, b: Runner) -> list[int | None]:
    """For each input of b the number of that of a: by name, or by place where the names say nothing."""
    by_name = {value.name: i for i, value in enumerate(a.inputs)}
    by_identifier = {identifier(value.name): i for i, value in enumerate(a.inputs)}
    found = [by_name.get(value.name, by_identifier.get(identifier(value.name))) for value in b.inputs]
    if None in found and len(a.inputs) == len(b.inputs):
        left = [i for i in range(len(a.inputs)) if i not in found]
        found = [left.pop(0) if i is None else i for i in found]
    if None in found:
        missing = next(value.name for value, i in zip(b.inputs, found) if i is None)
        names = ", ".join(value.name for value in a.inputs)
        raise Error(
            f"input '{missing}' of '{b.path}' has no counterpart in '{a.path}', which has {names}", "invalid_model"
        )
    return found


def titles(value: Input, others: Sequence[Input]) -> list[str]:
    """All names that an input may be given under."""
    return [name for one in (value, *others) for name in (one.name, identifier(one.name))]


class Sizes:
    """Sizes of dimensions that are open: equal names are equal sizes."""

    def __init__(self, known: Mapping[str, int] | None = None) -> None:
        self.known: dict[str, int] = dict(known or {})

    def learn(self, declared: Sequence[Any], sizes: Sequence[int | None]) -> None:
        for name, size in zip(declared, sizes):
            if size is not None and (isinstance(name, str) or getattr(name, "is_symbol", False)):
                self.known.setdefault(str(name), int(size))

    def of(self, options: Sequence[Any], guess: int, lowest: Mapping[str, int]) -> int:
        """The size of one dimension, by what both models declare of it."""
        fixed = [size for size in options if isinstance(size, int)]
        if fixed:
            return fixed[0]
        names = [str(size) for size in options if isinstance(size, str) or getattr(size, "is_symbol", False)]
        size = next((self.known[name] for name in names if name in self.known), None)
        if size is None:
            size = next((made for name in names if (made := self._composed(name)) is not None), None)
        for option in options:  # 2*s0
            if size is None and getattr(option, "free_symbols", None) and not option.is_symbol:
                chosen = {s: self.known.setdefault(str(s), max(lowest.get(str(s), 1), 2)) for s in option.free_symbols}
                size = int(option.subs(chosen))
        if size is None:
            size = max([guess, *(lowest.get(name, 0) for name in names)])
        for name in names:
            self.known.setdefault(name, size)
        return size

    def _composed(self, name: str) -> int | None:
        """`past + sequence` is the sum of two sizes that have names of their own."""
        made = parsed(name)
        return made.of(self.known) if made is not None and made.names and made.names <= self.known.keys() else None


class ShapeUnknown(Error):
    """Neither model says what shape an input has, and so the user has to."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"nothing says what shape input '{name}' has: give shapes={{{name!r}: [1, 3, 224, 224]}}, or inputs",
            "invalid_model",
        )
        self.name = name


def made_up_shape(value: Input, other: Input | None, sizes: Sizes, rule: Rule) -> list[int]:
    shapes = [one.shape for one in (value, other) if one is not None and one.shape is not None]
    if not shapes:
        raise ShapeUnknown(value.name)
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        raise Error(
            f"input '{value.name}' is of rank {' in one model and '.join(str(len(s)) for s in shapes)} in the other",
            "invalid_model",
        )
    lowest = {**(value.lowest or {}), **((other.lowest if other else None) or {})}
    for options in zip(*shapes):
        fixed = {size for size in options if isinstance(size, int)}
        if len(fixed) > 1:
            listed = " and ".join(str(list(shape)) for shape in shapes)
            raise Error(f"input '{value.name}' has different shapes: {listed}", "invalid_model")
        for size in fixed:
            sizes.learn(options, [size] * len(options))
    rank = len(shapes[0])
    return [sizes.of(options, rule(i, rank), lowest) for i, options in enumerate(zip(*shapes))]


def find(given: Mapping[str, Any], names: Sequence[str], used: set[str]) -> Any:
    for name in names:
        if name in given:
            used.add(name)
            return given[name]
    return None


def no_input(names: Iterable[str], a: Runner) -> Error:
    name = min(names)
    there = nearest(name, [value.name for value in a.inputs])
    return Error(f"the model has no input '{name}'; it has: {there}", "invalid_model")


def by_name(a: Runner, given: Mapping[str, np.ndarray] | Sequence[np.ndarray] | None) -> Mapping[str, np.ndarray]:
    """The arrays that are given, by the names of inputs of a."""
    import numpy as np

    if given is None:
        return {}
    if isinstance(given, Mapping):
        if not given or any(name != f"arr_{i}" for i, name in enumerate(given)):
            return given
        given = list(given.values())  # np.savez without names
    if len(given) != len(a.inputs):
        raise Error(f"{len(given)} inputs are given where '{a.path}' has {len(a.inputs)}", "invalid_model")
    return {value.name: np.asarray(array) for value, array in zip(a.inputs, given)}


def checked(array: np.ndarray, value: Input, dtype: str | None) -> np.ndarray:
    if value.shape is not None:
        fits = len(value.shape) == array.ndim and all(
            size == there for size, there in zip(value.shape, array.shape) if isinstance(size, int)
        )
        if not fits:
            wanted = [str(size) if size is not None else "?" for size in value.shape]
            raise Error(
                f"input '{value.name}' is of shape {list(array.shape)} where [{', '.join(wanted)}] is expected",
                "invalid_model",
            )
    if dtype is not None and str(array.dtype) != dtype:
        if array.dtype.kind not in "fiub":
            raise Error(f"input '{value.name}' holds {array.dtype} where {dtype} is expected", "invalid_model")
        return array.astype(dtype)
    return array


def perturbed(feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The inputs as far off as rounding could make them: what a model makes of that says how it magnifies errors."""
    import numpy as np

    rng = np.random.default_rng(1)
    result = []
    for array in feeds:
        if array.dtype.kind == "f":
            size = 64 * float(np.finfo(array.dtype).eps) if array.dtype.itemsize > 2 else 1e-3
            noise = size * rng.choice([-1.0, 1.0], array.shape)
            whole = np.trunc(array) == array  # numbers of rows, classes and places, which nobody rounds
            array = np.asarray(array * np.where(whole, 1.0, 1 + noise)).astype(array.dtype)
        result.append(array)
    return result


def feeds_of(b: Runner, pairs: Sequence[int | None], feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What b gets, in its order and its types."""
    chosen = [feeds[i] for i in pairs if i is not None]
    return [
        array.astype(v.dtype) if v.dtype and v.dtype != str(array.dtype) else array
        for v, array in zip(b.inputs, chosen)
    ]

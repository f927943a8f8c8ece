"""The inputs that two models get: the same data, for each under its own name, type and place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tonnx._compare import made_up_array
from tonnx._error import Error, nearest
from tonnx._verify.runners import Input, Runner, identifier

if TYPE_CHECKING:
    import numpy as np

_LARGEST = 1 << 31  # elements of a made-up input


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


def _title(value: Input, others: Sequence[Input]) -> list[str]:
    """All names that an input may be given under."""
    return [name for one in (value, *others) for name in (one.name, identifier(one.name))]


class Sizes:
    """Sizes of dimensions that are open: equal names are equal sizes."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def learn(self, declared: Sequence[Any], sizes: Sequence[int]) -> None:
        for name, size in zip(declared, sizes):
            if isinstance(name, str) or getattr(name, "is_symbol", False):
                self.known.setdefault(str(name), int(size))

    def of(self, options: Sequence[Any], guess: int, lowest: Mapping[str, int]) -> int:
        """The size of one dimension, by what both models declare of it."""
        fixed = [size for size in options if isinstance(size, int)]
        if fixed:
            return fixed[0]
        names = [str(size) for size in options if isinstance(size, str) or getattr(size, "is_symbol", False)]
        size = next((self.known[name] for name in names if name in self.known), None)
        for option in options:  # 2*s0
            if size is None and getattr(option, "free_symbols", None) and not option.is_symbol:
                chosen = {s: self.known.setdefault(str(s), max(lowest.get(str(s), 1), 2)) for s in option.free_symbols}
                size = int(option.subs(chosen))
        if size is None:
            size = max([guess, *(lowest.get(name, 0) for name in names)])
        for name in names:
            self.known.setdefault(name, size)
        return size


# Sizes of images and of sequences that are open, in the order in which they are tried until the model can run.
GUESSES = ((64, 8), (224, 64), (256, 512), (512, 16000))


def _guess(place: int, rank: int, attempt: int) -> int:
    """A batch of one, images large enough to be scaled down a few times, short sequences."""
    if place == 0 and rank > 1:
        return 1
    return GUESSES[attempt][0 if rank >= 4 and place >= 2 else 1]


def _made_up_shape(value: Input, other: Input | None, sizes: Sizes, attempt: int) -> list[int]:
    shapes = [one.shape for one in (value, other) if one is not None and one.shape is not None]
    if not shapes:
        raise Error(
            f"nothing says what shape input '{value.name}' has: give --shape {value.name}:1,3,224,224 or --inputs",
            "invalid_model",
        )
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
    return [sizes.of(options, _guess(i, rank, attempt), lowest) for i, options in enumerate(zip(*shapes))]


def _find(given: Mapping[str, Any], names: Sequence[str], used: set[str]) -> Any:
    for name in names:
        if name in given:
            used.add(name)
            return given[name]
    return None


def _no_input(what: str, names: Iterable[str], a: Runner) -> Error:
    name = min(names)
    there = nearest(name, [value.name for value in a.inputs])
    return Error(f"{what} names '{name}', but the inputs are: {there}", "invalid_model")


def make_inputs(
    a: Runner,
    b: Runner,
    pairs: Sequence[int | None],
    given: Mapping[str, np.ndarray] | Sequence[np.ndarray] | None,
    shapes: Mapping[str, Sequence[int]],
    seed: int,
    attempt: int = 0,
) -> list[np.ndarray]:
    """The arrays of all inputs of a: those that are given, and random ones, whose open sizes are guessed."""
    import numpy as np

    other_of = {i: b.inputs[j] for j, i in enumerate(pairs) if i is not None}
    arrays: Mapping[str, np.ndarray]
    if given is None or isinstance(given, Mapping):
        arrays = given or {}
        if arrays and all(name == f"arr_{i}" for i, name in enumerate(arrays)):  # np.savez without names
            given = list(arrays.values())
    if given is not None and not isinstance(given, Mapping):
        if len(given) != len(a.inputs):
            raise Error(f"{len(given)} inputs are given where '{a.path}' has {len(a.inputs)}", "invalid_model")
        arrays = {value.name: np.asarray(array) for value, array in zip(a.inputs, given)}
    sizes, used = Sizes(), set[str]()
    names = [_title(value, [other_of[i]] if i in other_of else []) for i, value in enumerate(a.inputs)]
    fixed = [_find(shapes, each, used) for each in names]
    if unknown := set(shapes) - used:
        raise _no_input("shapes", unknown, a)
    data = [_find(arrays, each, used) for each in names]
    if unknown := set(arrays) - used:
        raise _no_input("inputs", unknown, a)
    if arrays and any(array is None for array in data):
        missing = [value.name for value, array in zip(a.inputs, data) if array is None]
        raise Error(f"the inputs given lack {', '.join(missing)}", "invalid_model")
    for value, shape, array in zip(a.inputs, fixed, data):
        known = array.shape if array is not None else shape
        if known is not None and value.shape is not None:
            sizes.learn(value.shape, known)
    rng = np.random.default_rng(seed)
    result = []
    for i, value in enumerate(a.inputs):
        other = other_of.get(i)
        dtype = value.dtype or (other.dtype if other else None) or "float32"
        if data[i] is not None:
            result.append(_checked(np.asarray(data[i]), value, dtype if value.dtype else None))
            continue
        if dtype not in np.sctypeDict:
            raise Error(f"input '{value.name}' is of {dtype}, which numpy lacks", "unsupported")
        shape = fixed[i] if fixed[i] is not None else _made_up_shape(value, other, sizes, attempt)
        if any(size < 0 for size in shape) or int(np.prod(np.asarray(shape, dtype=object))) > _LARGEST:
            raise Error(f"input '{value.name}' cannot be of shape {list(shape)}", "invalid_model")
        limit = min(value.limit, other.limit if other else value.limit)
        result.append(made_up_array(rng, np.dtype(dtype), list(shape), limit=limit))
    return result


def _checked(array: np.ndarray, value: Input, dtype: str | None) -> np.ndarray:
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


def make_feeds(
    a: Runner,
    b: Runner,
    pairs: Sequence[int | None],
    given: Mapping[str, np.ndarray] | Sequence[np.ndarray] | None,
    shapes: Mapping[str, Sequence[int]],
    seed: int,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The arrays of both models. Where sizes were guessed with which the first cannot run, others are tried."""
    first: Error | None = None
    before: list[tuple[int, ...]] = []
    for attempt in range(len(GUESSES)):
        feeds = make_inputs(a, b, pairs, given, shapes, seed, attempt)
        if (now := [array.shape for array in feeds]) == before:
            break
        before = now
        try:
            a.run(feeds)
            return feeds, feeds_of(b, pairs, feeds)
        except Error as e:
            first = first or e
    assert first is not None
    raise first


def perturbed(feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The inputs as far off as rounding could make them: what a model makes of that says how it magnifies errors."""
    import numpy as np

    rng = np.random.default_rng(1)
    result = []
    for array in feeds:
        if array.dtype.kind == "f":
            size = 64 * float(np.finfo(array.dtype).eps) if array.dtype.itemsize > 2 else 1e-3
            array = (array * (1 + size * rng.choice([-1.0, 1.0], array.shape))).astype(array.dtype)
        result.append(array)
    return result


def feeds_of(b: Runner, pairs: Sequence[int | None], feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What b gets, in its order and its types."""
    chosen = [feeds[i] for i in pairs if i is not None]
    return [
        array.astype(v.dtype) if v.dtype and v.dtype != str(array.dtype) else array
        for v, array in zip(b.inputs, chosen)
    ]

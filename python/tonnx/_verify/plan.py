"""The inputs of a comparison: what is given, and random draws at sizes with which both models can run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tonnx._error import Error
from tonnx._verify import draws
from tonnx._verify.expression import Needs
from tonnx._verify.inputs import Sizes, by_name, checked, feeds_of, find, made_up_shape, no_input, pair_inputs, titles
from tonnx._verify.runners import Runner
from tonnx._verify.sizes import Candidate, candidates, is_too_large, open_names, usual

if TYPE_CHECKING:
    import numpy as np

_LARGEST = 1 << 31  # elements of a made-up input
_SECONDS = 60.0  # that this thread may compute, to look for sizes
_SECONDS_LATER = 5.0  # the same for a draw after the first
_TRIES_OF_SECOND = 4  # sizes at which only the first model runs, before the second is to blame

Feeds = tuple[list["np.ndarray"], list["np.ndarray"]]


class CannotRun(Error):
    """The first model cannot be run on anything that is known of its inputs: nothing can be said of the second."""


class Plan:
    """Makes the arrays of all inputs, for either model in its own order."""

    def __init__(
        self,
        a: Runner,
        b: Runner,
        given: Mapping[str, np.ndarray] | Sequence[np.ndarray] | None,
        shapes: Mapping[str, Sequence[int | None]],
        seed: int,
        fill: str = "random",
    ) -> None:
        draws.require_fill(fill)
        self.a, self.b, self.seed, self.fill = a, b, seed, fill
        self.pairs = pair_inputs(a, b)
        self._other = {i: b.inputs[j] for j, i in enumerate(self.pairs) if i is not None}
        arrays, used = by_name(a, given), set[str]()
        names = [titles(value, [self._other[i]] if i in self._other else []) for i, value in enumerate(a.inputs)]
        self._shapes = [find(shapes, each, used) for each in names]
        if unknown := set(shapes) - used:
            raise no_input(unknown, a)
        for value, shape in zip(a.inputs, self._shapes):
            if shape is not None and value.shape is not None and len(shape) != len(value.shape):
                wanted = f"'{value.name}' has {len(value.shape)} sizes"
                raise Error(f"input {wanted}, and {list(shape)} is given", "invalid_model")
        self._data = [find(arrays, each, used) for each in names]
        if unknown := set(arrays) - used:
            raise no_input(unknown, a)
        if arrays and any(array is None for array in self._data):
            missing = [value.name for value, array in zip(a.inputs, self._data) if array is None]
            raise Error(f"the inputs given lack {', '.join(missing)}", "invalid_model")
        self._known_needs: Needs | None = None
        self._choices: dict[int, tuple[Candidate, int]] = {}  # sizes of each draw, and the kind of its integers

    @property
    def is_random(self) -> bool:
        return any(array is None for array in self._data)

    def _known(self) -> dict[str, int]:
        """Sizes that are not open: those of data and shapes that are given, and those that one model fixes."""
        sizes = Sizes()
        for i, value in enumerate(self.a.inputs):
            known = self._data[i].shape if self._data[i] is not None else self._shapes[i]
            other = self._other.get(i)
            for one in (value, other):
                if one is not None and one.shape is not None:
                    if known is not None:
                        sizes.learn(one.shape, known)
                    if value.shape is not None and other is not None and len(value.shape) == len(other.shape or ()):
                        for pair in zip(value.shape, other.shape or ()):
                            fixed = [size for size in pair if isinstance(size, int)]
                            sizes.learn(pair, fixed[:1] * 2)
        return sizes.known

    def _bounded(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes inside of the ranges that a program of PyTorch declares."""
        found = dict(sizes)
        for i, value in enumerate(self.a.inputs):
            other = self._other.get(i)
            for one, name in zip((other.shape if other else None) or (), value.shape or ()):
                if isinstance(name, str) and name in found and getattr(one, "is_symbol", False):
                    low = (other.lowest or {}).get(str(one), 0) if other else 0
                    high = (other.highest or {}).get(str(one), found[name]) if other else found[name]
                    found[name] = min(max(found[name], low), max(high, low))
        return found

    def draw(self, number: int) -> Feeds:
        """The arrays of one draw; all draws are the same where everything is given."""
        usually = self._choices.get(0, (Candidate({}, usual), 0))
        return self._made(number, *self._choices.get(number, usually))

    def _made(self, number: int, candidate: Candidate, caution: int) -> Feeds:
        import numpy as np

        rng = np.random.default_rng(self.seed + 1000 * number)
        sizes = Sizes({**self._bounded(candidate.sizes), **self._known()})
        made: list[np.ndarray | None] = []
        shapes: list[Sequence[int]] = []
        for i, value in enumerate(self.a.inputs):
            other, data = self._other.get(i), self._data[i]
            dtype = value.dtype or (other.dtype if other else None) or "float32"
            if data is not None:
                made.append(checked(np.asarray(data), value, dtype if value.dtype else None))
                shapes.append(data.shape)
                continue
            if dtype not in np.sctypeDict:
                raise Error(f"input '{value.name}' is of {dtype}, which numpy lacks", "unsupported")
            shape = self._shapes[i]
            if shape is None or None in shape:
                made_up = made_up_shape(value, other, sizes, candidate.rule)
                shape = [there if size is None else size for size, there in zip(shape or made_up, made_up)]
            if any(size < 0 for size in shape) or int(np.prod(np.asarray(shape, dtype=object))) > _LARGEST:
                raise Error(f"input '{value.name}' cannot be of shape {list(shape)}", "invalid_model")
            made.append(None)
            shapes.append(shape)
        length = self._length(shapes)
        arrays = []
        for i, (value, array, shape) in enumerate(zip(self.a.inputs, made, shapes)):
            if array is None:
                other = self._other.get(i)
                kind = np.dtype(value.dtype or (other.dtype if other else None) or "float32")
                limits = [one.limit for one in (value, other) if one is not None and one.limit is not None]
                limit = min(limits, default=None)
                array = draws.array_of(rng, value, kind, list(shape), limit, number + caution, length, self.fill)
            arrays.append(array)
        return arrays, feeds_of(self.b, self.pairs, arrays)

    def _length(self, shapes: Sequence[Sequence[int]]) -> int:
        """How long a sequence is: the largest size that is open in an input of several dimensions."""
        found = [1]
        for value, shape in zip(self.a.inputs, shapes):
            sizes = value.shape if value.shape is not None and len(value.shape) == len(shape) else shape
            is_open = [not isinstance(size, int) for size in sizes]
            places = [there for i, there in enumerate(shape) if is_open[i] and i > 0] or list(shape[1:2])
            if not value.is_length and len(shape) > 1:
                found += places[:1]
        return max(found)

    def find_sizes(self, number: int = 0) -> None:
        """Settles on the first sizes with which both models can run a draw."""
        if not self.is_random:
            return
        end = time.thread_time() + (_SECONDS if number == 0 else _SECONDS_LATER)
        problems: list[Error] = []
        of_second: list[Error] = []
        tried = list(candidates(open_names(self.a.inputs), self._needs(), self._known()))
        for caution in (0, draws.CAUTIOUS) if self._has_integers() else (0,):
            seen: set[tuple[tuple[int, ...], ...]] = set()
            for candidate in tried:
                feeds = self._made(number, candidate, caution)
                shapes = tuple(array.shape for array in feeds[0])
                if shapes in seen or seen and any(is_too_large(shape) for shape in shapes):
                    continue
                seen.add(shapes)
                try:
                    self.a.run(feeds[0])
                except Error as e:
                    problems.append(e)
                else:
                    try:
                        self.b.run(feeds[1])
                        self._choices[number] = candidate, caution
                        return
                    except Error as e:
                        of_second.append(e)
                if len(of_second) >= _TRIES_OF_SECOND or time.thread_time() > end:
                    raise _problem(problems, of_second)
        raise _problem(problems, of_second)

    def _needs(self) -> Needs:
        if self._known_needs is None:
            self._known_needs = self.a.needs()
        return self._known_needs

    @property
    def has_choices(self) -> bool:
        """Draws differ in more than numbers: other parts of the models may run, which need other sizes."""
        return any(value.choices or value.dtype == "bool" for value in self.a.inputs)

    def _has_integers(self) -> bool:
        return any(
            data is None and (value.dtype or "float32").startswith(("int", "uint"))
            for value, data in zip(self.a.inputs, self._data)
        )


def _problem(of_first: Sequence[Error], of_second: Sequence[Error]) -> Error:
    if of_second:
        return of_second[0]
    return CannotRun(str(of_first[0]), of_first[0].kind)

"""Finds which values of two models correspond: by what they are, by their names, by where they stand.

A value is recognised by a sketch: sums of some of its elements with random signs, in 64 groups. The distance of two
sketches is about that of the values, so that all pairs can be compared without a value in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tonnx._verify.runners import Step, Value, identifier, operator_class

if TYPE_CHECKING:
    import numpy as np

GROUPS = 64
_RANGES = {"int8": (-128, 127), "uint8": (0, 255)}  # of what is quantised
_NEAR = 8  # steps that one value may be behind another it is like
_SAMPLE = 1 << 17  # elements that a sketch is made of, at most
_SAME = {"float16": 2e-2, "bfloat16": 5e-2}  # values that are as close as this are taken for the same
_SAME_OTHERWISE = 1e-3
_SIMILAR = 0.1
_EXACT = 1e-6  # values that are closer are what they seem


@dataclass
class Print:
    """What is kept of a value."""

    shape: tuple[int, ...]
    dtype: str
    bytes: int
    sketch: np.ndarray
    norm: float
    lowest: float
    highest: float
    is_whole: bool  # holds nothing but whole numbers

    @property
    def largest(self) -> float:
        return max(-self.lowest, self.highest)

    @property
    def is_telling(self) -> bool:
        """Many values of zeros or ones look the same."""
        return self.lowest < self.highest

    def kind(self) -> tuple[tuple[int, ...], str]:
        """Only values of the same kind are compared. Sizes of one come and go, types may be wider, what is quantised
        may be floats."""
        sort = "float" if "float" in self.dtype or self.dtype in _RANGES else "bool" if self.dtype == "bool" else "int"
        return tuple(size for size in self.shape if size != 1), sort


class Sketcher:
    def __init__(self) -> None:
        import numpy as np

        self._signs = np.random.default_rng(12).choice([-1.0, 1.0], _SAMPLE + GROUPS)

    def __call__(self, value: Value) -> Print:
        import numpy as np

        flat = value.array.reshape(-1)
        # steps of an odd number pass through all rows and columns
        part = flat[:: -(-flat.size // _SAMPLE) | 1].astype(np.float64)
        if not np.isfinite(part).all():
            part = np.nan_to_num(part, nan=0.0, posinf=1e30, neginf=-1e30)
        is_whole = bool((part == np.rint(part)).all())
        lowest, highest = (float(part.min()), float(part.max())) if part.size else (0.0, 0.0)
        norm = math.sqrt(float(np.square(part).sum()))
        whole = np.zeros(-(-part.size // GROUPS) * GROUPS)
        whole[: part.size] = part * self._signs[: part.size]
        sketch = whole.reshape(-1, GROUPS).sum(axis=0)
        return Print(tuple(value.array.shape), value.dtype, value.array.nbytes, sketch, norm, lowest, highest, is_whole)


def distance(a: Print, b: Print) -> float:
    """About how far two values are apart, as a share of the larger one."""
    import numpy as np

    return float(np.linalg.norm(a.sketch - b.sketch) / max(a.norm, b.norm, 1e-30))


@dataclass
class Pair:
    a: int
    b: int
    how: str  # "name", "value" or "place"


class Matcher:
    """Pairs of steps. Each step has at most one counterpart."""

    def __init__(
        self,
        a: Sequence[Step],
        b: Sequence[Step],
        prints_a: dict[int, Print],
        prints_b: dict[int, Print],
        inputs: dict[int, int],
    ) -> None:
        self.a, self.b, self.prints_a, self.prints_b = a, b, prints_a, prints_b
        self.of_a: dict[int, Pair] = {}
        self.of_b: dict[int, Pair] = {}
        self.inputs = inputs  # of b -> of a, both negative
        self._groups_a, self._groups_b = self._groups(prints_a), self._groups(prints_b)
        self._classes_a = [operator_class(step.op) for step in a]
        self._classes_b = [operator_class(step.op) for step in b]
        self._named = self._pairs_of_names()

    def run(self) -> list[Pair]:
        close = list(self._close_pairs())
        self._take([entry for entry in close if entry[0] <= self._threshold(entry[1])])
        if self._names_are_right(close):
            for i, j in sorted(self._named, key=lambda pair: round(self._distance(*pair), 1)):
                self._add(i, j, "name")
        self._take(close)
        self._uncross()
        self._follow_structure()
        self._move_on()
        return [self.of_a[i] for i in sorted(self.of_a)]

    @staticmethod
    def _groups(prints: dict[int, Print]) -> dict[object, list[int]]:
        groups: dict[object, list[int]] = {}
        for index, print_ in prints.items():
            groups.setdefault(print_.kind(), []).append(index)
        return groups

    def _threshold(self, i: int) -> float:
        return _SAME.get(self.prints_a[i].dtype, _SAME_OTHERWISE)

    def _add(self, i: int, j: int, how: str) -> None:
        if i not in self.of_a and j not in self.of_b:
            self.of_a[i] = self.of_b[j] = Pair(i, j, how)

    def _distance(self, i: int, j: int) -> float:
        return distance(self.prints_a[i], self.prints_b[j])

    def _close_pairs(self) -> Iterable[tuple[float, int, int]]:
        """(distance, i, j) of all pairs that are similar."""
        import numpy as np

        for kind, all_a in self._groups_a.items():
            telling_a = [i for i in all_a if self.prints_a[i].is_telling]
            telling_b = [j for j in self._groups_b.get(kind, ()) if self.prints_b[j].is_telling]
            if not telling_a or not telling_b:
                continue
            sketches = np.stack([self.prints_b[j].sketch for j in telling_b])
            norms = np.array([self.prints_b[j].norm for j in telling_b])
            for i in telling_a:
                print_ = self.prints_a[i]
                distances = np.linalg.norm(sketches - print_.sketch, axis=1) / np.maximum(norms, print_.norm)
                for at in np.flatnonzero(distances <= _SIMILAR):
                    if self._may_be_one(i, telling_b[int(at)]):
                        yield float(distances[at]), i, telling_b[int(at)]

    def _may_be_one(self, i: int, j: int) -> bool:
        """What is quantised may be floats elsewhere, but not those that have yet to be rounded and cut off."""
        prints = self.prints_a[i], self.prints_b[j]
        low, high = next((_RANGES[print_.dtype] for print_ in prints if print_.dtype in _RANGES), (-math.inf, math.inf))
        fits = all(print_.is_whole and low <= print_.lowest and print_.highest <= high for print_ in prints)
        return fits or high == math.inf

    def _take(self, close: Sequence[tuple[float, int, int]]) -> None:
        """The closest pairs first; among those as close as rounding makes them, names, operators and order decide."""
        import numpy as np

        named = set(self._named)
        scale = len(self.b) / max(len(self.a), 1)

        def rank(entry: tuple[float, int, int]) -> tuple[float, bool, bool, float]:
            distance, i, j = entry
            step = float(np.floor(2 * np.log10(max(distance, self._threshold(i) / 30))))
            return step, (i, j) not in named, self._classes_a[i] != self._classes_b[j], abs(i * scale - j)

        for _, i, j in sorted(close, key=rank):
            self._add(i, j, "name" if (i, j) in named else "value")

    def _keys(self, steps: Sequence[Step]) -> list[list[str]]:
        """Names of values, and paths of modules without the part that all of them begin with."""
        paths = [identifier(path) for step in steps for path in step.paths]
        prefix = ""
        if len(set(paths)) > 1:
            first, last = min(paths), max(paths)
            count = next((n for n, (x, y) in enumerate(zip(first, last)) if x != y), min(len(first), len(last)))
            prefix = first[: first.rfind("_", 0, count) + 1]
        return [
            [f"value {identifier(step.name)}", *(f"layer {identifier(p).removeprefix(prefix)}" for p in step.paths)]
            for step in steps
        ]

    def _pairs_of_names(self) -> list[tuple[int, int]]:
        """Pairs of steps that have a name in common which is no other step's, and that are of the same kind."""

        def places(steps: Sequence[Step]) -> dict[str, list[int]]:
            found: dict[str, list[int]] = {}
            for index, keys in enumerate(self._keys(steps)):
                for key in keys:
                    found.setdefault(key, []).append(index)
            return found

        in_a, in_b = places(self.a), places(self.b)
        pairs = dict[tuple[int, int], None]()
        for key, of_a in in_a.items():
            of_b = in_b.get(key, [])
            if (
                len(of_a) != 1
                or len(of_b) != 1
                or not {of_a[0]} <= self.prints_a.keys()
                or of_b[0] not in self.prints_b
            ):
                continue
            i, j = of_a[0], of_b[0]
            if key.startswith("layer") and self._classes_a[i] != self._classes_b[j]:
                continue
            if self.prints_a[i].kind() == self.prints_b[j].kind():
                pairs[i, j] = None
        return list(pairs)

    def _names_are_right(self, close: Sequence[tuple[float, int, int]]) -> bool:
        """Not where numbers such as `val_12` were given anew: what has the name then equals something else."""
        best: dict[int, float] = {}
        for distance, i, _ in close:
            best[i] = min(distance, best.get(i, 1.0))
        wrong = sum(
            i in self.of_a and self.of_a[i].b != j and self._distance(i, j) > 30 * max(best.get(i, 1.0), 1e-6)
            for i, j in self._named
        )
        return wrong * 5 <= len(self._named)

    def _uncross(self) -> None:
        """What is one behind the other in one model is so in the other too: a value is like what it is rounded to.

        Where they cannot change places, the two that are less alike are no counterparts.
        """
        for behind in sorted(self.of_a):
            for before in _ancestors(self.a, behind):
                if behind not in self.of_a or before not in self.of_a:
                    continue
                first, last = self.of_a[before], self.of_a[behind]
                if "name" in (first.how, last.how) or last.b not in _ancestors(self.b, first.b):
                    continue
                swapped = (before, last.b), (behind, first.b)
                if all(self._may_be_one(*pair) and self._distance(*pair) <= _SIMILAR for pair in swapped):
                    self.of_a[before] = self.of_b[last.b] = Pair(before, last.b, "value")
                    self.of_a[behind] = self.of_b[first.b] = Pair(behind, first.b, "value")
                    continue
                worse = max((first, last), key=lambda pair: self._distance(pair.a, pair.b))
                if self._distance(worse.a, worse.b) > self._threshold(worse.a):
                    del self.of_a[worse.a], self.of_b[worse.b]

    def _move_on(self) -> None:
        """A layer whose bias is added behind it looks like one that has it inside where the bias is small: what comes
        behind it is closer by far."""
        for steps, is_a in ((self.a, True), (self.b, False)):
            users: dict[int, list[int]] = {}
            for index, step in enumerate(steps):
                for parent in step.parents:
                    users.setdefault(parent, []).append(index)
            matched, prints = (self.of_a, self.prints_a) if is_a else (self.of_b, self.prints_b)
            for at, pair in list(matched.items()):
                apart = self._distance(pair.a, pair.b)
                for user in users.get(at, ()) if apart > _EXACT else ():
                    if user in matched or user not in prints or prints[user].kind() != prints[at].kind():
                        continue
                    moved = Pair(user, pair.b, "value") if is_a else Pair(pair.a, user, "value")
                    if self._may_be_one(moved.a, moved.b) and 10 * self._distance(moved.a, moved.b) < apart:
                        del self.of_a[pair.a], self.of_b[pair.b]
                        self.of_a[moved.a] = self.of_b[moved.b] = moved
                        break

    def _frontier(self, steps: Sequence[Step], matched: dict[int, Pair], start: int) -> set[int]:
        """The nearest steps before it that have a counterpart, and inputs; as numbers of a."""
        found, seen, waiting = set[int](), set[int](), list(steps[start].parents)
        while waiting and len(seen) < 500:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            if at < 0:
                found.add(at if steps is self.a else self.inputs.get(at, at - 1000))
            elif at in matched:
                found.add(matched[at].a)
            else:
                waiting.extend(steps[at].parents)
        return found

    def _follow_structure(self) -> None:
        """Pairs equal operators on values that correspond, though they have no element in common any more."""
        left: dict[object, list[int]] = {}
        for j in self.prints_b:
            if j not in self.of_b:
                left.setdefault((self._classes_b[j], self.prints_b[j].kind()), []).append(j)
        for i in sorted(self.prints_a):
            if i in self.of_a:
                continue
            candidates = left.get((self._classes_a[i], self.prints_a[i].kind()), [])
            candidates = [j for j in candidates if j not in self.of_b]
            if not candidates:
                continue
            before = self._frontier(self.a, self.of_a, i)
            fitting = [j for j in candidates if before and self._frontier(self.b, self.of_b, j) == before]
            if fitting:
                self._add(i, min(fitting, key=lambda j: (round(self._distance(i, j), 1), j)), "place")


def _ancestors(steps: Sequence[Step], index: int) -> set[int]:
    """Steps not far before one."""
    found, waiting = set[int](), [index]
    for _ in range(_NEAR):
        waiting = [p for at in waiting for p in steps[at].parents if p >= 0 and p not in found]
        found.update(waiting)
    return found

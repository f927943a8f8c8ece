"""Two models of which one fixes a size that is open in the other: the open one runs at other sizes too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tonnx._error import Error
from tonnx._verify.draws import spread
from tonnx._verify.inputs import feeds_of, perturbed
from tonnx._verify.measure import Tolerance, measure
from tonnx._verify.report import OutputComparison, SizeCheck
from tonnx._verify.runners import Depth, Runner, Value

if TYPE_CHECKING:
    import numpy as np

    from tonnx._verify.plan import Plan

_COUNTS = (2, 3)  # samples
_TIMES = (2.0, 3.0, 0.5, 0.25, 1.5)  # other sizes, in terms of the fixed one
_ENOUGH = 2  # of those that have to run
Named = Sequence[tuple[str, Value]]


@dataclass
class Opened:
    """A size that one model fixes and the other leaves open."""

    name: str
    size: int
    places: list[tuple[int, int]]  # the number of an input of the first model, and the axis

    @property
    def is_batch(self) -> bool:
        """Whether each element along it may be a sample of its own, of which the fixed model takes one."""
        return self.size == 1 and any(axis == 0 for _, axis in self.places)

    def axis_of(self, number: int) -> int | None:
        return next((axis for i, axis in self.places if i == number), None)


class Samples:
    """Compares the model with open sizes with the one that fixes them."""

    def __init__(
        self, a: Runner, b: Runner, plan: Plan, tolerance: Tolerance, pairs: Sequence[tuple[int, int]]
    ) -> None:
        self.a, self.b, self.plan, self.tolerance = a, b, plan, tolerance
        self._pairs = pairs  # outputs of the one and the other
        self._in_a, self._in_b = self._find()

    def _find(self) -> tuple[list[Opened], list[Opened]]:
        """What is open in the first alone, and in the second alone."""
        found: tuple[dict[str, Opened], dict[str, Opened]] = ({}, {})
        for j, i in enumerate(self.plan.pairs):
            if i is None:
                continue
            first, second = self.a.inputs[i].shape, self.b.inputs[j].shape
            if first is None or second is None or len(first) != len(second):
                continue
            for axis, sizes in enumerate(zip(first, second)):
                for side in (0, 1):
                    size, other = sizes[side], sizes[1 - side]
                    if isinstance(other, int) and not isinstance(size, int):
                        # sizes without a name may differ, but those of first dimensions seldom do
                        name = str(size) if size is not None else "batch" if axis == 0 else f"{i}:{axis}"
                        one = found[side].setdefault(name, Opened(name, other, []))
                        if one.size == other:
                            one.places.append((i, axis))
        return list(found[0].values()), list(found[1].values())

    def checks(self, depth: Depth) -> Iterator[SizeCheck]:
        """What becomes of each size that only one of the models leaves open; nothing where both fix something."""
        if self._in_a and self._in_b:
            return
        opened = self._in_a or self._in_b
        batch = next((one for one in opened if one.is_batch), None)
        for one in opened:
            if one is batch:
                yield self._compare_samples(one, depth)
            elif one.size > 1:
                yield self._run_at_others(one)

    # the model that has the open sizes, and the other

    def _run_fixed(self, feeds: list[np.ndarray]) -> list[Value]:
        if self._in_b:
            named = self.a.run(feeds)
            return [named[i][1] for i, _ in self._pairs]
        named = self.b.run(feeds_of(self.b, self.plan.pairs, feeds))
        return [named[j][1] for _, j in self._pairs]

    def _run_open(self, feeds: list[np.ndarray]) -> Named:
        if self._in_b:
            named = self.b.run(feeds_of(self.b, self.plan.pairs, feeds))
            return [named[j] for _, j in self._pairs]
        named = self.a.run(feeds)
        return [named[i] for i, _ in self._pairs]

    def _drawn(self, opened: Opened, count: int) -> tuple[list[list[np.ndarray]], list[list[Value]]]:
        """Inputs of so many samples with which the fixed model runs, and its outputs. What is no part of a sample is
        the same for all of them."""
        import numpy as np

        feeds: list[list[np.ndarray]] = []
        outputs: list[list[Value]] = []
        for number in range(3 * count):
            drawn = list(self.plan.draw(number)[0])
            for i, array in enumerate(drawn):
                if opened.axis_of(i) is None and feeds:
                    drawn[i] = feeds[0][i]
                elif feeds and not self.plan.is_random:
                    drawn[i] = np.roll(array, number)  # the numbers that were given, in other places
            try:
                found = self._run_fixed(drawn)
            except Error:
                if not feeds:
                    raise
                continue
            feeds.append(drawn)
            outputs.append(found)
            if len(feeds) == count:
                break
        return feeds, outputs

    def _compare_samples(self, opened: Opened, depth: Depth) -> SizeCheck:
        """The open model at two and at three samples, the other once for each of them."""
        import numpy as np

        check = SizeCheck(opened.name)
        feeds, outputs = self._drawn(opened, max(_COUNTS))
        for count in _COUNTS:
            if count > len(feeds):
                check.why = "the model with fixed sizes does not run on other samples"
                break
            joined = []
            for i, parts in enumerate(zip(*feeds[:count])):
                axis = opened.axis_of(i)
                joined.append(parts[0] if axis is None else np.concatenate(parts, axis))
            try:
                found = self._run_open(joined)
            except Error as e:
                check.fail(count, str(e))
                break
            check.sizes.append(count)
            for k, (name, value) in enumerate(found):
                parts = [sample[k] for sample in outputs[:count]]
                wanted = _joined(parts, value, count)
                numbers = measure(wanted, value, self.tolerance, depth)
                if not numbers["ok"] and not numbers["why"] and not self.tolerance.is_given:
                    near = [self._run_fixed(perturbed(sample))[k] for sample in feeds[:count]]
                    numbers = measure(wanted, value, self.tolerance, depth, near=_joined(near, value, count))
                if not numbers["ok"]:
                    check.fail(count, str(OutputComparison(name=name, counterpart=name, **numbers)))  # type: ignore[arg-type]
                    return check
        if not check.why and all(_are_equal([sample[k] for sample in outputs]) for k in range(len(self._pairs))):
            check.note = "all samples give the same"
        return check

    def _run_at_others(self, opened: Opened) -> SizeCheck:
        """Whether the model with open sizes runs at two other sizes: what it gives there nobody knows."""
        check = SizeCheck(opened.name, is_compared=False)
        shapes = [list(array.shape) for array in self.plan.draw(0)[0]]
        problems: list[str] = []
        for times in _TIMES:
            size = int(opened.size * times)
            if size < 1 or size == opened.size or len(check.sizes) == _ENOUGH:
                continue
            try:
                self._run_open(self._at(shapes, {place: size for place in opened.places}))
                check.sizes.append(size)
            except Error as e:
                problems.append(f"at {opened.name} = {size}: {e}")
        if not check.sizes and problems:
            check.ok, check.why = False, problems[0]
        return check

    def _at(self, shapes: Sequence[Sequence[int]], sizes: Mapping[tuple[int, int], int]) -> list[Any]:
        """The first draw, spread over other sizes."""
        feeds = []
        for i, array in enumerate(self.plan.draw(0)[0]):
            shape = [sizes.get((i, axis), size) for axis, size in enumerate(shapes[i])]
            feeds.append(spread(array, shape))
        return feeds


def _joined(parts: Sequence[Value], like: Value, count: int) -> Value:
    """The outputs of samples as one: along the axis that is longer there. One that all samples share stays as it is."""
    import numpy as np

    shape = parts[0].array.shape
    if any(part.array.shape != shape for part in parts):
        return Value(np.concatenate([part.array for part in parts]), parts[0].dtype) if shape else parts[0]
    longer = [
        axis
        for axis, sizes in enumerate(zip(shape, like.array.shape))
        if len(shape) == like.array.ndim and sizes[1] == count * sizes[0] and sizes[0] > 0
    ]
    if not longer and (like.array.shape == shape and (1 not in shape[:1] or _are_equal(parts))):
        return parts[0]
    axis = longer[0] if longer else next((i for i, size in enumerate(shape) if size == 1), 0)
    return Value(np.concatenate([part.array for part in parts], axis), parts[0].dtype) if shape else parts[0]


def _are_equal(parts: Sequence[Value]) -> bool:
    import numpy as np

    return all(np.array_equal(part.array, parts[0].array) for part in parts[1:])

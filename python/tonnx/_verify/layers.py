"""Compares the values inside two models, some at a time, and finds where they part."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING

from tonnx._error import Error
from tonnx._progress import tell
from tonnx._verify import runners
from tonnx._verify.inputs import perturbed
from tonnx._verify.match import Matcher, Pair, Print, Sketcher, distance
from tonnx._verify.measure import Tolerance, measure
from tonnx._verify.report import LayerComparison
from tonnx._verify.runners import Depth, Runner, Step, Value, depths, operator_class, own_depth
from tonnx._verify.work import COMPARED, ELEMENT, VALUE, Work

if TYPE_CHECKING:
    import numpy as np

_LARGEST_NOISE = 100.0
_FEW = 1000  # one element of so many of a quantised layer may be off by more than a step
_RECOGNISED = 0.5  # values that are further apart have nothing in common
_ROUNDS = re.compile("^(Dynamic)?Quantize|QLinear|Integer|Round|^quantize|^round")
Feeds = tuple[list["np.ndarray"], list["np.ndarray"]]


class TooLong(Error):
    """Nobody asked for the values inside, and to look at all of them is more work than the rest was."""


class Traced:
    """What is kept of all values of a model: a sketch of each, and the values themselves while there is room."""

    def __init__(self, runner: Runner, feeds: Sequence[np.ndarray], sketcher: Sketcher, work: Work) -> None:
        self.runner, self.feeds = runner, feeds
        self.prints: dict[int, Print] = {}
        self._kept: dict[int, Value] = {}
        room = runners.CHUNK_BYTES // 2

        def visit(index: int, value: Value) -> None:
            nonlocal room
            work.take(VALUE + ELEMENT * value.array.size)
            if work.is_spent:
                raise TooLong(f"the values inside of '{runner.path}' take too long", "unsupported")
            self.prints[index] = sketcher(value)
            if (room := room - value.array.nbytes) >= 0:
                self._kept[index] = Value(value.array.copy(), value.dtype)  # operators in place change it later

        runner.trace(feeds, visit)

    def fetch(self, wanted: Sequence[int]) -> dict[int, Value]:
        there = {index: self._kept[index] for index in wanted if index in self._kept}
        left = [index for index in wanted if index not in there]
        return {**there, **self.runner.fetch(self.feeds, left)} if left else there


def chunks(pairs: Sequence[Pair], a: dict[int, Print], b: dict[int, Print]) -> Iterator[list[Pair]]:
    """Pairs whose values fit into memory together."""
    chunk: list[Pair] = []
    used = 0
    for pair in pairs:
        size = a[pair.a].bytes + b[pair.b].bytes
        if chunk and used + size > runners.CHUNK_BYTES:
            yield chunk
            chunk, used = [], 0
        chunk.append(pair)
        used += size
    if chunk:
        yield chunk


def noise_of(steps: Sequence[Step], prints: dict[int, Print]) -> list[float]:
    """How much more rounding errors weigh than in their inputs: x - mean(x) is as exact as x was large."""
    found: list[float] = []
    for index, step in enumerate(steps):
        parents = [p for p in step.parents if p >= 0]
        noise = max((found[p] for p in parents), default=1.0)
        if operator_class(step.op) in ("add", "sub") and index in prints and prints[index].largest > 0:
            largest = max((found[p] * prints[p].largest for p in parents if p in prints), default=0.0)
            noise = largest / prints[index].largest
        found.append(min(max(noise, 1.0), _LARGEST_NOISE))
    return found


class Inside:
    """The values inside of two models on the same inputs, and which of them belong together."""

    def __init__(
        self,
        a: Runner,
        b: Runner,
        feeds: Feeds,
        inputs: dict[int, int],
        tolerance: Tolerance,
        work: Work,
    ) -> None:
        self._work = work
        self.a, self.b, self.feeds, self.tolerance = a, b, feeds, tolerance
        sketcher = Sketcher()
        self._in_a, self._in_b = (Traced(runner, arrays, sketcher, work) for runner, arrays in zip((a, b), feeds))
        pairs = Matcher(a.steps, b.steps, self._in_a.prints, self._in_b.prints, inputs).run()
        self.layers = self._compared(pairs)
        compared = {layer.index: layer for layer in self.layers}
        self._at = {layer.index: layer for layer in self.layers if self._is_sure(layer)}
        for layer in self.layers:
            covered = _covered(a.steps, compared, layer.index)
            layer.covers = tuple(f"{a.steps[i].title()} ({a.steps[i].op})" for i in covered)
            layer.weights = tuple(dict.fromkeys(name for i in (*covered, layer.index) for name in a.steps[i].weights))

    def _compared(self, pairs: Sequence[Pair]) -> list[LayerComparison]:
        """All layers that have a counterpart, in order of execution in a."""
        a, b = self.a, self.b
        depths_a, depths_b = depths(a.steps), depths(b.steps)
        noises = noise_of(a.steps, self._in_a.prints)
        found: list[LayerComparison] = []
        for chunk in chunks(pairs, self._in_a.prints, self._in_b.prints):
            if self._work.is_spent:
                break  # what is left stays unseen
            self._work.take(COMPARED * sum(math.prod(self._in_a.prints[pair.a].shape) for pair in chunk))
            values_a = self._in_a.fetch([pair.a for pair in chunk])
            values_b = self._in_b.fetch([pair.b for pair in chunk])
            left: list[tuple[Pair, Depth]] = []
            for pair in chunk:
                tell("layers compared", len(found) + len(left), len(pairs))
                if pair.a not in values_a or pair.b not in values_b:
                    continue
                values_b[pair.b] = alike(values_a[pair.a], values_b[pair.b])
                depth = Depth.deepest((depths_a[pair.a], depths_b[pair.b]))
                values = values_a[pair.a], values_b[pair.b]
                numbers = measure(*values, self.tolerance, depth, noise=noises[pair.a])
                if numbers["ok"] or self.tolerance.is_given:
                    found.append(_layer(a.steps, b.steps, pair, numbers, depth))
                else:
                    left.append((pair, depth))
            near = a.fetch(perturbed(self.feeds[0]), [pair.a for pair, _ in left]) if left else {}
            for pair, depth in left:
                values = values_a[pair.a], values_b[pair.b]
                numbers = measure(*values, self.tolerance, depth, noise=noises[pair.a], near=near.get(pair.a))
                found.append(_layer(a.steps, b.steps, pair, numbers, depth))
        return sorted(found, key=lambda layer: layer.index)

    def _is_sure(self, layer: LayerComparison) -> bool:
        """Whether the two are counterparts. Where only their places say so, what is not even similar may be none, as a
        product of integers is none of the product of what they stand for."""
        if layer.how != "place":
            return True
        if not self._in_a.prints[layer.index].is_telling:
            return False  # one number, or many that are equal: those of another layer may be like it
        return (
            layer.ok
            or distance(self._in_a.prints[layer.index], self._in_b.prints[layer.counterpart_index]) < _RECOGNISED
        )

    def sure(self) -> list[LayerComparison]:
        """The layers whose counterparts are beyond doubt."""
        return list(self._at.values())

    def counterpart(self, layer: LayerComparison) -> np.ndarray | None:
        """The value of the second model as the first would have it."""
        import numpy as np

        print_ = self._in_a.prints[layer.index]
        value = self._in_b.fetch([layer.counterpart_index]).get(layer.counterpart_index)
        if value is None or value.array.size != int(np.prod(print_.shape)):
            return None
        array = value.array.reshape(print_.shape)
        if print_.dtype in ("int8", "uint8"):
            array = array.clip(np.iinfo(print_.dtype).min, np.iinfo(print_.dtype).max)
        return array.astype(print_.dtype)

    def recheck(self, layers: Sequence[LayerComparison], tolerance: Tolerance, work: Work) -> None:
        """Judges layers by themselves: the first model computes them from the values that the second has before them.

        So no rounding is carried on from layer to layer, and what a layer does is all that can differ. What is too much
        work stays as it was judged before.
        """
        judged = 0
        for chunk in self._parts(layers):
            if work.is_spent:
                break
            tell("layers judged by themselves", judged, len(layers))
            judged += len(chunk)
            elements = sum(math.prod(self._in_a.prints[layer.index].shape) for layer in chunk)
            work.take(VALUE * len(chunk) + COMPARED * elements)
            given: dict[int, np.ndarray] = {}
            for index in {i for layer in chunk for i in self._before(layer.index)}:
                array = self.counterpart(self._at[index])
                if array is not None:
                    given[index] = array
            wanted = [layer.index for layer in chunk]
            values = self.a.recompute(self.feeds[0], given, wanted)
            near: dict[int, Value] | None = None
            for layer in chunk:
                other = self._in_b.fetch([layer.counterpart_index]).get(layer.counterpart_index)
                if layer.index not in values or other is None:
                    continue
                pair = values[layer.index], alike(values[layer.index], other)
                depth = self._depth_of(layer.index)
                numbers = measure(*pair, tolerance, depth)
                if not numbers["ok"]:
                    if near is None:
                        moved = dict(zip(given, perturbed(list(given.values()))))
                        near = self.a.recompute(perturbed(self.feeds[0]), moved, wanted)
                    steps = self._quantisations(layer)
                    coarse = Tolerance(None, None, ("int8", "int8")) if any(steps) else tolerance
                    numbers = measure(*pair, coarse, depth, near=near.get(layer.index), steps=steps)
                    # steps that fell the other way before it may add up in a few of its elements
                    if any(steps) and not numbers["why"] and int(str(numbers["wrong"])) * _FEW <= pair[0].array.size:
                        numbers["ok"] = True
                for name, number in numbers.items():
                    setattr(layer, name, number)

    def _parts(self, layers: Sequence[LayerComparison]) -> Iterator[list[LayerComparison]]:
        part: list[LayerComparison] = []
        used = 0
        for layer in layers:
            size = sum(self._in_a.prints[i].bytes for i in (layer.index, *self._before(layer.index)))
            if part and used + size > runners.CHUNK_BYTES:
                yield part
                part, used = [], 0
            part.append(layer)
            used += size
        if part:
            yield part

    def _before(self, index: int) -> list[int]:
        return _segment(self.a.steps, self._at, index)[1]

    def _depth_of(self, index: int) -> Depth:
        found = Depth()
        for at in _segment(self.a.steps, self._at, index)[0]:
            found = found.over(own_depth(self.a.steps[at]))
        return found

    def _quantisations(self, layer: LayerComparison) -> tuple[int, int]:
        """How often each of the two was rounded behind what both were computed from. A value before it is quantised may
        have that behind it as its counterpart, where one model has both in one layer."""
        places = layer.index, layer.counterpart_index
        compared = self._at, {other.counterpart_index for other in self._at.values()}
        steps = self.a.steps, self.b.steps
        counts = [
            sum(bool(_ROUNDS.search(of[at].op)) for at in _segment(of, known, place)[0])
            for of, known, place in zip(steps, compared, places)
        ]
        return counts[0], counts[1]


def _segment(steps: Sequence[Step], compared: Container[int], index: int) -> tuple[list[int], list[int]]:
    """The steps from the nearest values before one that were compared, itself among them; and these."""
    inside, before = [index], set[int]()
    seen, waiting = {index}, list(steps[index].parents)
    while waiting:
        at = waiting.pop()
        if at < 0 or at in seen:
            continue
        seen.add(at)
        if at in compared:
            before.add(at)
        else:
            inside.append(at)
            waiting.extend(steps[at].parents)
    return inside, sorted(before)


def alike(one: Value, other: Value) -> Value:
    """The other in the shape of the one: sizes of one come and go."""
    if one.array.size != other.array.size:
        return other
    return Value(other.array.reshape(one.array.shape), other.dtype)


def _layer(
    a: Sequence[Step], b: Sequence[Step], pair: Pair, numbers: dict[str, object], depth: Depth
) -> LayerComparison:
    one, other = a[pair.a], b[pair.b]
    return LayerComparison(
        name=one.name,
        counterpart=other.name,
        **numbers,  # type: ignore[arg-type]
        index=pair.a,
        layer=one.layer,
        op=one.op,
        module=one.module or other.module,
        counterpart_layer=other.layer,
        counterpart_op=other.op,
        how=pair.how,
        depth=depth.layers,
        counterpart_index=pair.b,
    )


def _covered(steps: Sequence[Step], compared: dict[int, LayerComparison], index: int) -> list[int]:
    """The steps between a value and the nearest ones before it that were compared, in order."""
    found, waiting = set[int](), list(steps[index].parents)
    while waiting and len(found) < 12:
        at = waiting.pop()
        if at >= 0 and at not in compared and at not in found:
            found.add(at)
            waiting.extend(steps[at].parents)
    return sorted(found)


def sorted_out(
    steps: Sequence[Step], layers: list[LayerComparison]
) -> tuple[list[LayerComparison], LayerComparison | None]:
    """The first layer whose difference goes on to an output.

    One that is gone again behind it is no cause: the models compute the same in another way there. Where no name said
    that it has a counterpart, it has none.
    """
    at = {layer.index: layer for layer in layers}
    users: dict[int, list[int]] = {}
    for index, step in enumerate(steps):
        for parent in step.parents:
            users.setdefault(parent, []).append(index)
    reaches: dict[int, bool] = {}
    for index in range(len(steps) - 1, -1, -1):
        behind = [reaches[user] for user in users.get(index, ()) if user in reaches]
        goes_on = not behind or any(behind)
        reaches[index] = goes_on and (index not in at or not at[index].ok)
    kept = [layer for layer in layers if layer.ok or reaches[layer.index] or layer.how == "name"]
    wrong = [layer for layer in kept if not layer.ok]
    first = next((layer for layer in wrong if reaches[layer.index]), wrong[0] if wrong else None)
    return kept, first


def foremost(steps: Sequence[Step], layers: Sequence[LayerComparison]) -> list[LayerComparison]:
    """The layers that differ though nothing does that they are computed from. Behind one that is the same again nothing
    is left of a difference."""
    wrong = {layer.index for layer in layers if not layer.ok}
    right = {layer.index for layer in layers if layer.ok}
    is_behind: list[bool] = []
    for index, step in enumerate(steps):
        differs = any(parent >= 0 and (parent in wrong or is_behind[parent]) for parent in step.parents)
        is_behind.append(differs and index not in right)
    return [layer for layer in layers if layer.index in wrong and not is_behind[layer.index]]

"""Compares the values inside two models, some at a time, and finds where they part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tonnx import _verify_runners
from tonnx._verify import LayerComparison, Tolerance, measure
from tonnx._verify_match import Matcher, Pair, Print, Sketcher
from tonnx._verify_runners import Runner, Step, Value, depths

if TYPE_CHECKING:
    import numpy as np

Feeds = tuple[list["np.ndarray"], list["np.ndarray"]]


def prints_of(runner: Runner, feeds: Sequence[np.ndarray], sketcher: Sketcher) -> dict[int, Print]:
    found: dict[int, Print] = {}

    def visit(index: int, value: Value) -> None:
        found[index] = sketcher(value)

    runner.trace(feeds, visit)
    return found


def chunks(pairs: Sequence[Pair], a: dict[int, Print], b: dict[int, Print]) -> Iterator[list[Pair]]:
    """Pairs whose values fit into memory together."""
    chunk: list[Pair] = []
    used = 0
    for pair in pairs:
        size = a[pair.a].bytes + b[pair.b].bytes
        if chunk and used + size > _verify_runners.CHUNK_BYTES:
            yield chunk
            chunk, used = [], 0
        chunk.append(pair)
        used += size
    if chunk:
        yield chunk


def compare_layers(
    a: Runner, b: Runner, feeds: Feeds, inputs: dict[int, int], tolerance: Tolerance
) -> tuple[list[LayerComparison], LayerComparison | None]:
    """All layers that have a counterpart, in order of execution in a, and the first that differs."""
    sketcher = Sketcher()
    prints_a, prints_b = prints_of(a, feeds[0], sketcher), prints_of(b, feeds[1], sketcher)
    pairs = Matcher(a.steps, b.steps, prints_a, prints_b, inputs).run()
    depths_a, depths_b = depths(a.steps), depths(b.steps)
    found: list[LayerComparison] = []
    for chunk in chunks(pairs, prints_a, prints_b):
        values_a = a.fetch(feeds[0], [pair.a for pair in chunk])
        values_b = b.fetch(feeds[1], [pair.b for pair in chunk])
        for pair in chunk:
            if pair.a not in values_a or pair.b not in values_b:
                continue
            depth = max(depths_a[pair.a], depths_b[pair.b])
            value_a, value_b = values_a.pop(pair.a), values_b.pop(pair.b)
            if value_a.array.size == value_b.array.size:  # sizes of one come and go
                value_b = Value(value_b.array.reshape(value_a.array.shape), value_b.dtype)
            numbers = measure(value_a, value_b, tolerance, depth)
            found.append(_layer(a.steps, b.steps, pair, numbers, depth))
    at = {layer.index: layer for layer in found}
    for layer in found:
        covered = _covered(a.steps, at, layer.index)
        layer.covers = tuple(f"{a.steps[i].title()} ({a.steps[i].op})" for i in covered)
        layer.weights = tuple(dict.fromkeys(name for i in (*covered, layer.index) for name in a.steps[i].weights))
    return _sorted_out(a.steps, found)


def _layer(a: Sequence[Step], b: Sequence[Step], pair: Pair, numbers: dict[str, object], depth: int) -> LayerComparison:
    one, other = a[pair.a], b[pair.b]
    return LayerComparison(
        name=one.name,
        counterpart=other.name,
        **numbers,  # type: ignore[arg-type]
        index=pair.a,
        layer=one.layer,
        op=one.op,
        counterpart_layer=other.layer,
        counterpart_op=other.op,
        how=pair.how,
        depth=depth,
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


def _sorted_out(
    steps: Sequence[Step], layers: list[LayerComparison]
) -> tuple[list[LayerComparison], LayerComparison | None]:
    """The first layer whose difference goes on to an output.

    One that is gone again behind it is no cause: the models compute the same in another way there. Where only its place
    said that it has a counterpart, it has none.
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
    kept = [layer for layer in layers if layer.ok or reaches[layer.index] or layer.how != "place"]
    wrong = [layer for layer in kept if not layer.ok]
    first = next((layer for layer in wrong if reaches[layer.index]), wrong[0] if wrong else None)
    return kept, first

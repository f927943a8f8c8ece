"""Open sizes of inputs: the smallest that mean something to a model, and others where it cannot run with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tonnx._verify.expression import Expression, Needs, parsed
from tonnx._verify.runners import Input

_IMAGE, _SEQUENCE = 64, 8
Rule = Callable[[int, int], int]  # the size of an open dimension, by its place and the rank
_LARGEST_SIZE = 1 << 17
_LARGEST_INPUT = 1 << 24  # elements of an input whose sizes were chosen


def open_names(inputs: Sequence[Input]) -> dict[str, tuple[int, int]]:
    """Open sizes that are plain names, with the place and the rank where each is declared first."""
    found: dict[str, tuple[int, int]] = {}
    for value in inputs:
        for place, size in enumerate(value.shape or ()):
            if isinstance(size, str):
                found.setdefault(size, (place, len(value.shape or ())))
    composed = {name for name in found if _is_composed(name, found)}
    return {name: where for name, where in found.items() if name not in composed}


def _is_composed(name: str, others: Iterable[str]) -> bool:
    """`past + sequence` is the sum of two sizes that have names of their own."""
    made = parsed(name)
    return made is not None and bool(made.names) and made.names <= set(others) - {name}


def smallest(names: Mapping[str, tuple[int, int]], needs: Needs, fixed: Mapping[str, int]) -> dict[str, int]:
    """The smallest sizes at which all that is asked for is there; what cannot be had is not asked for."""
    sizes = {name: fixed.get(name, usual(*where)) for name, where in names.items()}
    free = {name for name, where in names.items() if name not in fixed and not is_batch(*where)}
    for expression, least in sorted(needs.least, key=lambda need: (need[1], len(need[0].text))):
        if not expression.names <= sizes.keys():
            continue
        before = dict(sizes)
        growing = expression.names & free
        while _value(expression, sizes) < least:
            if not growing or any(sizes[name] * 2 > _LARGEST_SIZE for name in growing):
                sizes = before
                break
            sizes |= {name: sizes[name] * 2 for name in growing}
    return sizes


def _value(expression: Expression, sizes: Mapping[str, int]) -> int:
    try:
        return expression.of(sizes)
    except ZeroDivisionError:
        return 0


def is_batch(place: int, rank: int) -> bool:
    return place == 0 and rank > 1


def is_pixel(place: int, rank: int) -> bool:
    return rank >= 4 and place >= 2


def usual(place: int, rank: int) -> int:
    """A batch of one, images large enough to be scaled down a few times, short sequences."""
    if is_batch(place, rank):
        return 1
    return _IMAGE if is_pixel(place, rank) else _SEQUENCE


@dataclass
class Candidate:
    """One way to choose open sizes: those that have names, and a rule for the others."""

    sizes: dict[str, int]
    rule: Rule


# Sizes of images and of sequences, in the order in which they are tried until both models can run.
_GUESSES = ((224, 64), (256, 512), (512, 16000))
_ALONE = (16, 64, 128, 256, 512, 576, 1024, 4096, 16000)  # of the last dimension where all others are one
_EQUAL = (1, 2, 4, 16, 32, 48, 128, 320)


def candidates(names: Mapping[str, tuple[int, int]], needs: Needs, fixed: Mapping[str, int]) -> Iterator[Candidate]:
    """Ways to choose the open sizes, the best first."""
    chosen = smallest(names, needs, fixed)
    yield Candidate(chosen, usual)
    rules: list[Rule] = []
    longest = max((chosen[name] for name, where in names.items() if not is_batch(*where)), default=_SEQUENCE)
    rules += [_last(size) for size in dict.fromkeys([longest, *_ALONE[:2]])]
    rules += [_by_kind(image, sequence) for image, sequence in _GUESSES]
    rules += [_last(size) for size in _ALONE[2:]]
    rules += [_by_kind(size, size) for size in _EQUAL]
    rules += [lambda place, rank: 1, lambda place, rank: 2]
    for rule in rules:
        yield Candidate({name: rule(*where) for name, where in names.items()}, rule)


def _by_kind(image: int, sequence: int) -> Rule:
    return lambda place, rank: 1 if is_batch(place, rank) else image if is_pixel(place, rank) else sequence


def _last(length: int) -> Rule:
    """Only the last dimension, or both of an image, are longer than one."""
    return lambda place, rank: length if place == rank - 1 or is_pixel(place, rank) else 1


def is_too_large(shape: Sequence[Any]) -> bool:
    total = 1
    for size in shape:
        total *= int(size)
    return total > _LARGEST_INPUT

"""The open sizes of an example: which axes share a size, and the example resized to other sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tonnx._error import Error
from tonnx._export.sizes.dynamic import Axis, DynamicShapes, leaves_of

# Sizes that are unlikely as constants in a model. torch.export would fix 0 and 1.
_UNUSUAL = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)

Call = tuple[tuple[Any, ...], dict[str, Any]]


def unusual_size(taken: Container[int]) -> int:
    return next((n for n in _UNUSUAL if n not in taken), _UNUSUAL[0])


@dataclass(frozen=True)
class OpenAxis:
    """An axis that was asked to be open, and where it is in the example."""

    name: str
    leaf: int
    axis: int
    size: int
    what: Axis
    group: int  # axes of one group have sizes that follow from the same root

    def size_for(self, root: int) -> int:
        return self.what.scale * root + self.what.offset

    @property
    def text(self) -> str:
        return f"axis {self.axis} of input '{self.name}'"


class OpenSizes:
    """The open axes of an example; `roots` are the sizes of their groups."""

    def __init__(self, model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: DynamicShapes) -> None:
        self._values, self._structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
        self.asked_by = shapes.asked_by
        self.axes: list[OpenAxis] = []
        self.roots: list[int] = []
        groups: dict[Any, int] = {}
        for leaf, (name, value) in enumerate(leaves_of(model, args, kwargs)):
            for axis, what in shapes.axes.get(name, {}).items():
                size = value.shape[axis]
                root, rest = divmod(size - what.offset, what.scale)
                key = (what.dim, root, rest) if what.dim is not None else (leaf, axis)
                group = groups.setdefault(key, len(self.roots))
                if group == len(self.roots):
                    self.roots.append(root)
                self.axes.append(OpenAxis(name, leaf, axis, size, what, group))
        for axis_of in self.axes:
            self._require_in_range(axis_of)

    def _require_in_range(self, axis: OpenAxis) -> None:
        if not self.allows(axis, axis.size):
            low, high = axis.size_for(axis.what.minimum), axis.what.maximum
            bounds = f"{low} or more" if high == math.inf else f"between {low} and {axis.size_for(int(high))}"
            raise Error(
                f"{axis.text} is {axis.size} in the example, and {self.asked_by} says that it is {bounds}: "
                "give an example that is as it says",
                "unsupported",
            )

    def allows(self, axis: OpenAxis, size: int) -> bool:
        low, high = axis.what.minimum, axis.what.maximum
        return axis.size_for(low) <= size and (high == math.inf or size <= axis.size_for(int(high)))

    @property
    def own(self) -> list[int]:
        """The sizes of the example."""
        return [axis.size for axis in self.axes]

    def of_groups(self, roots: Sequence[int]) -> list[int]:
        return [axis.size_for(roots[axis.group]) for axis in self.axes]

    def _is_small(self, group: int) -> bool:
        return any(axis.size < 2 for axis in self.axes if axis.group == group)

    def _unusual(self, group: int, taken: set[int]) -> int:
        """A size for a group that differs from all others, if its range has one."""
        members = [axis for axis in self.axes if axis.group == group]
        inside = [n for n in (*_UNUSUAL, 4, 3, 2) if all(self.allows(a, a.size_for(n)) for a in members)]
        return next((n for n in inside if n not in taken), inside[0] if inside else self.roots[group])

    def _spread_roots(self) -> list[int]:
        taken = {size for value in self._values if isinstance(value, torch.Tensor) for size in value.shape}
        roots = list(self.roots)
        for group in range(len(roots)):
            if self._is_small(group):
                roots[group] = self._unusual(group, taken)
                taken.add(roots[group])
        return roots

    def spread(self) -> list[int]:
        """The sizes of the example, with sizes of 0 and 1 replaced by different larger ones."""
        return self.of_groups(self._spread_roots())

    def together(self) -> Iterator[list[int]]:
        """The sizes of the example, with sizes of 0 and 1 all replaced by the same larger one."""
        return (self.of_groups(roots) for roots in self._together_roots())

    def _together_roots(self) -> list[list[int]]:
        sizes = (_UNUSUAL[0], 2)
        return [[size if self._is_small(g) else root for g, root in enumerate(self.roots)] for size in sizes]

    def sums(self) -> Iterator[list[int]]:
        """The same sizes, with one replaced by the sum of two others if it is their sum in the example."""
        count = len(self.roots)
        pairs = itertools.combinations(range(count), 2)
        found = [(t, a, b) for a, b in pairs for t in range(count) if self.roots[t] == self.roots[a] + self.roots[b]]
        for roots in (self._together_roots()[0], self._spread_roots()):
            for total, one, other in found:
                if total not in (one, other):
                    changed = list(roots)
                    changed[total] = roots[one] + roots[other]
                    yield self.of_groups(changed)

    def example(self, sizes: Sequence[int], rows_differ: bool = False) -> Call:
        """The example resized along its open axes: its rows are repeated, or zeros are used where it has none."""
        values = list(self._values)
        for axis, size in zip(self.axes, sizes):
            values[axis.leaf] = _resized(values[axis.leaf], axis.axis, size, rows_differ)
        args, kwargs = pytree.tree_unflatten(values, self._structure)
        return args, kwargs


def _resized(tensor: torch.Tensor, axis: int, size: int, rows_differ: bool) -> torch.Tensor:
    from torch._prims_common import suggest_memory_format

    have = tensor.shape[axis]
    if have == size:
        return tensor
    tensor = tensor.detach()
    if have == 0:
        return tensor.new_zeros([*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]])
    places = torch.arange(size, device=tensor.device)
    result = tensor.index_select(axis, places % have).contiguous(memory_format=suggest_memory_format(tensor))
    if rows_differ and result.is_floating_point():
        factors = (1 + places / (64 * max(size, 1))).to(result.dtype)
        result = result * factors.view([-1 if i == axis else 1 for i in range(result.dim())])
    return result

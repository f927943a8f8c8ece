"""A runner in the form that the C++ core calls: arrays as addresses in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tonnx._verify.runners import Runner, Step, Value

if TYPE_CHECKING:
    import numpy as np

CoreTensor = tuple[str, list[int], Any]  # element type, sizes, and memory or strings


def to_core(value: Value) -> CoreTensor:
    """A value for the core, without a copy."""
    import numpy as np

    array, dtype = value.array, value.dtype
    if array.dtype.kind in "OUS":
        return "string", list(array.shape), [str(text) for text in array.reshape(-1)]
    array = np.asarray(array, order="C")
    name = str(array.dtype)
    if dtype == "bfloat16" and name == "float32":  # numpy has no bfloat16: the value was widened
        name, array = dtype, (array.view(np.uint32) >> 16).astype(np.uint16)
    return name, list(array.shape), (array.ctypes.data, array.nbytes, array)


def from_core(tensor: CoreTensor) -> np.ndarray:
    """A read-only array over the core's memory."""
    import numpy as np

    name, shape, memory = tensor
    if name == "string":
        return np.array(memory, dtype=object).reshape(shape)
    if memory is None:
        return np.zeros(shape, "float32" if name == "bfloat16" else name)
    if name == "bfloat16":
        wide = np.frombuffer(memory, np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).reshape(shape)
    return np.frombuffer(memory, name).reshape(shape)


def size_of(size: Any) -> int | str | None:
    """A size that is a number, a name, an expression of PyTorch, or open."""
    return size if isinstance(size, int) or size is None else str(size)


class Bridge:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.title = runner.path
        self.model_path = runner.model_path
        self.model_data = runner.model_data

    def inputs(self) -> list[tuple[str, str, list[int | str | None] | None, int | None]]:
        return [
            (
                value.name,
                value.dtype or "",
                None if value.shape is None else list(map(size_of, value.shape)),
                value.limit,
            )
            for value in self._runner.inputs
        ]

    def ranges(self) -> list[tuple[str, int, int | None]]:
        return self._runner.ranges

    def numerics(self) -> tuple[str, float, float]:
        depth = self._runner.depth()
        return self._runner.precision, float(depth.layers), float(depth.numbers)

    def run(self, feeds: Sequence[CoreTensor]) -> tuple[list[str], list[CoreTensor]]:
        return _split(self._runner.run(_arrays(feeds)))

    def run_with(self, feeds: Sequence[CoreTensor], given: Mapping[int, CoreTensor]) -> list[CoreTensor]:
        return _split(self._runner.run_with(_arrays(feeds), _by_place(given)))[1]

    def fetch(self, feeds: Sequence[CoreTensor], places: Sequence[int]) -> list[CoreTensor | None]:
        return _in_order(self._runner.fetch(_arrays(feeds), places), places)

    def recompute(
        self, feeds: Sequence[CoreTensor], given: Mapping[int, CoreTensor], wanted: Sequence[int]
    ) -> list[CoreTensor | None]:
        return _in_order(self._runner.recompute(_arrays(feeds), _by_place(given), wanted), wanted)

    def find_steps(self, feeds: Sequence[CoreTensor]) -> list[Step] | None:
        return self._runner.find_steps(_arrays(feeds))

    def trace(self, feeds: Sequence[CoreTensor], visit: Callable[[int, CoreTensor], None]) -> list[Step]:
        def see(place: int, value: Value) -> None:
            # in-place operators may change it later, and the core keeps it
            visit(place, to_core(Value(value.array.copy(), value.dtype)))

        return self._runner.trace(_arrays(feeds), see)

    def gradients(
        self, feeds: Sequence[CoreTensor], factors: Callable[[int, CoreTensor], CoreTensor | None], is_inside: bool
    ) -> tuple[list[tuple[str, CoreTensor, CoreTensor | None]], float] | None:
        def factor(place: int, value: Value) -> np.ndarray | None:
            found = factors(place, to_core(value))
            return None if found is None else from_core(found)

        found = self._runner.gradients(_arrays(feeds), factor, is_inside)
        if found is None:
            return None
        weights = [
            (name, to_core(weight), None if gradient is None else to_core(gradient))
            for name, weight, gradient in found.weights
        ]
        return weights, found.work


def _arrays(feeds: Sequence[CoreTensor]) -> list[np.ndarray]:
    return [from_core(feed) for feed in feeds]


def _by_place(given: Mapping[int, CoreTensor]) -> dict[int, np.ndarray]:
    return {place: from_core(value) for place, value in given.items()}


def _split(named: Sequence[tuple[str, Value]]) -> tuple[list[str], list[CoreTensor]]:
    return [name for name, _ in named], [to_core(value) for _, value in named]


def _in_order(found: Mapping[int, Value], places: Sequence[int]) -> list[CoreTensor | None]:
    return [to_core(found[place]) if place in found else None for place in places]

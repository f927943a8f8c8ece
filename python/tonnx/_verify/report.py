"""The report of verify: how far outputs and layers of two models differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tonnx import _core


@dataclass
class Coverage:
    """Which weights the comparison covers: those where a change of 1% would exceed the tolerances."""

    weights: int = 0  # tensors of floats
    outputs: int = 0  # that the outputs depend on
    inside: int = 0  # that only values inside depend on
    hidden: dict[str, str] = field(default_factory=dict)  # the weights that are not covered, and why

    @property
    def is_complete(self) -> bool:
        return not self.hidden

    def __str__(self) -> str:
        return _core.coverage_text(self.weights, self.outputs, self.inside, list(self.hidden.items()))


@dataclass
class OutputComparison:
    """How far two outputs differ. The first model is the reference."""

    name: str
    counterpart: str
    shape: tuple[int, ...]
    dtype: str
    max_abs: float
    max_rel: float
    cosine: float
    rtol: float
    atol: float
    wrong: int  # elements beyond the tolerance
    elements: int
    ok: bool
    why: str = ""  # such as another shape or type
    mse: float = 0.0  # the mean of the squared differences
    is_rounding: bool = (
        False  # differs by more than the tolerance, although every layer computes the same on the same inputs
    )

    def __bool__(self) -> bool:
        return self.ok

    @property
    def type(self) -> str:
        """`float32[1, 1000]`"""
        return f"{self.dtype}{list(self.shape)}"

    def __str__(self) -> str:
        return _core.output_text({**asdict(self), "type": self.type})


@dataclass
class LayerComparison(OutputComparison):
    """An intermediate value of both models, the layers that compute it, and how they were matched."""

    index: int = 0  # in order of execution
    layer: str = ""
    op: str = ""
    module: str = ""
    counterpart_layer: str = ""
    counterpart_op: str = ""
    weights: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()  # nodes before it without a counterpart, such as fused ones
    how: str = "name"
    depth: int = 1
    counterpart_index: int = 0

    def title(self) -> str:
        """The names of the layer in both models."""
        return _core.layer_title(asdict(self))


@dataclass
class SizeCheck:
    """A size that is fixed in one model and open in the other: whether the open model is right at other sizes."""

    name: str
    is_compared: bool = True  # with the fixed model, run for each sample; otherwise it only has to run
    sizes: list[int] = field(default_factory=list)  # at which it ran
    ok: bool = True
    why: str = ""
    note: str = ""

    def __str__(self) -> str:
        return _core.size_text(asdict(self))


@dataclass
class VerifyReport:
    """The report of verify. True if the models compute the same."""

    a: str
    b: str
    inputs: dict[str, str]
    seed: int | None
    outputs: list[OutputComparison] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # outputs that only one model has
    layers: list[LayerComparison] = field(default_factory=list)
    first_difference: LayerComparison | None = None
    steps: tuple[int, int] | None = None  # the number of intermediate values of a and b
    seconds: float = 0.0
    draws: list[str] = field(default_factory=list)  # the distribution of the random inputs of each run
    inside: int = 0  # the number of intermediate values that were compared
    coverage: Coverage | None = None  # None if neither model has gradients
    is_hidden_difference: bool = False  # the models differ inside, and no output shows it
    sizes: list[SizeCheck] = field(default_factory=list)  # that are fixed in only one of the models
    left_out: list[str] = field(default_factory=list)  # what was not compared because it takes too long
    _words: tuple[str, str, str] = ("", "", "")  # the whole text, its last line, and what differs

    @property
    def is_same_outside(self) -> bool:
        return not self.missing and all(output.ok for output in self.outputs)

    @property
    def is_same_at_other_sizes(self) -> bool:
        return all(check.ok for check in self.sizes)

    @property
    def ok(self) -> bool:
        return self.is_same_outside and self.is_same_at_other_sizes and not self.is_hidden_difference

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return f"{self.a} against {self.b}\n{self._words[0]}"

    def verdict(self) -> str:
        """The last line."""
        return self._words[1]

    def difference(self) -> str:
        """What differs, in one line; empty where nothing does."""
        return self._words[2]


def report_of(a: str, b: str, seed: int, found: Mapping[str, Any]) -> VerifyReport:
    """The result of the C++ core as a report."""
    first, coverage = found["first_difference"], found["coverage"]
    return VerifyReport(
        a,
        b,
        found["inputs"],
        seed if found["is_random"] else None,
        outputs=[OutputComparison(**_with_shape(each)) for each in found["outputs"]],
        missing=found["missing"],
        layers=[LayerComparison(**_with_shape(each)) for each in found["layers"]],
        first_difference=None if first is None else LayerComparison(**_with_shape(first)),
        steps=found["steps"],
        draws=found["draws"],
        inside=found["inside"],
        coverage=None if coverage is None else Coverage(**coverage),
        is_hidden_difference=found["is_hidden_difference"],
        sizes=[SizeCheck(**each) for each in found["sizes"]],
        left_out=found["left_out"],
        _words=(found["text"], found["verdict"], found["difference"]),
    )


def _with_shape(row: Mapping[str, Any]) -> dict[str, Any]:
    dtype, _, sizes = row["type"].rstrip("]").partition("[")
    shape = tuple(int(size) for size in sizes.split(",") if size.strip())
    return {**{key: value for key, value in row.items() if key != "type"}, "dtype": dtype, "shape": shape}

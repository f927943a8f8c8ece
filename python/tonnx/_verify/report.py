"""What verify found: how far outputs and layers of two models are apart, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tonnx import _core


@dataclass
class Coverage:
    """Weights are seen where a change of one hundredth would move what was compared by more than it may differ."""

    weights: int = 0  # tensors of floats
    outputs: int = 0  # that the outputs depend on
    inside: int = 0  # that only values inside depend on
    hidden: dict[str, str] = field(default_factory=dict)  # the others, and why

    @property
    def is_complete(self) -> bool:
        return not self.hidden

    def __str__(self) -> str:
        return _core.coverage_text(self.weights, self.outputs, self.inside, list(self.hidden.items()))


@dataclass
class OutputComparison:
    """How far two tensors are apart. The first model is what the second one is measured by."""

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
    why: str = ""  # other shapes, other types
    mse: float = 0.0  # the mean of the squared differences
    is_rounding: bool = False  # off by more than is allowed, though every layer does the same where it gets the same

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
    """A value inside the models: what computes it on either side, and how the counterpart was found."""

    index: int = 0  # in order of execution
    layer: str = ""
    op: str = ""
    module: str = ""
    counterpart_layer: str = ""
    counterpart_op: str = ""
    weights: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()  # nodes before it that have no counterpart: they may be fused in the other model
    how: str = "name"
    depth: int = 1
    counterpart_index: int = 0

    def title(self) -> str:
        """The layer in the words of both models."""
        return _core.layer_title(asdict(self))


@dataclass
class SizeCheck:
    """A size that one model fixes and the other leaves open: what the open model does at other sizes."""

    name: str
    is_compared: bool = True  # with the fixed model, run once for each sample; otherwise it only has to run
    sizes: list[int] = field(default_factory=list)  # at which it ran
    ok: bool = True
    why: str = ""
    note: str = ""

    def __str__(self) -> str:
        return _core.size_text(asdict(self))


@dataclass
class VerifyReport:
    """What verify found. It is true where the outputs are the same."""

    a: str
    b: str
    inputs: dict[str, str]
    seed: int | None
    outputs: list[OutputComparison] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # outputs that only one model has
    layers: list[LayerComparison] = field(default_factory=list)
    first_difference: LayerComparison | None = None
    steps: tuple[int, int] | None = None  # values that were looked at in a and in b
    seconds: float = 0.0
    draws: list[str] = field(default_factory=list)  # what the random floats were like, each time that both ran
    inside: int = 0  # values inside that were compared
    coverage: Coverage | None = None  # None where no model can be differentiated
    is_hidden_difference: bool = False  # the first difference is one that no output shows
    sizes: list[SizeCheck] = field(default_factory=list)  # those that only one of the models fixes
    left_out: list[str] = field(default_factory=list)  # what would have been too much work
    _words: tuple[str, str, str] = ("", "", "")  # all of it, its last line, and what differs

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
    """What the judge found, as a report."""
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

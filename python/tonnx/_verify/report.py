"""What verify found: how far outputs and layers of two models are apart, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, field

from tonnx._verify.coverage import Coverage


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

    def __str__(self) -> str:
        head = f"{self.name}  {self.dtype}{list(self.shape)}"
        if self.why:
            return f"{head}  {self.why}"
        verdict = "same" if self.ok else f"DIFFERS in {self.wrong} of {self.elements}"
        numbers = (
            f"max abs {self.max_abs:.3g}  mse {self.mse:.2g}  max rel {self.max_rel:.3g}  cosine {self.cosine:.8f}"
        )
        if self.is_rounding:
            verdict = f"same but for rounding, which the model magnifies in {self.wrong} of {self.elements}"
        return f"{head}  {numbers}  {verdict} (rtol {self.rtol:.2g}, atol {self.atol:.2g})"


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
        sides = [f"{self.layer or self.name} ({self.op})"]
        if (self.counterpart_layer or self.counterpart) != (self.layer or self.name):
            sides.append(f"{self.counterpart_layer or self.counterpart} ({self.counterpart_op})")
        text = " = ".join(sides) + (f", in {self.module}" if self.module else "") + f", value {self.name}"
        text += f", with {', '.join(self.covers)} before it" if self.covers else ""
        return text + (f", weights {', '.join(self.weights)}" if self.weights else "")


@dataclass
class SizeCheck:
    """A size that one model fixes and the other leaves open: what the open model does at other sizes."""

    name: str
    is_compared: bool = True  # with the fixed model, run once for each sample; otherwise it only has to run
    sizes: list[int] = field(default_factory=list)  # at which it ran
    ok: bool = True
    why: str = ""
    note: str = ""

    def fail(self, size: int, why: str) -> None:
        self.ok, self.why = False, f"at {self.name} = {size}: {why}"

    def __str__(self) -> str:
        if not self.ok:
            return f"{self.name} is open in one model alone. DIFFERS {self.why}"
        at = " and ".join(str(size) for size in self.sizes)
        if not at:
            return f"{self.name} is open in one model alone, and was not tried at another size" + (
                f": {self.why}" if self.why else ""
            )
        done = "compared sample by sample" if self.is_compared else "runs"
        return f"{self.name} is open in one model alone: {done} at {at}" + (f"; {self.note}" if self.note else "")


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
        lines = [f"{self.a} against {self.b}"]
        data = ", ".join(f"{name} {kind}" for name, kind in self.inputs.items())
        kinds = f" (random: {'; '.join(self.draws)}; seed {self.seed})" if self.seed is not None else ""
        lines.append(f"inputs   {data}{kinds}")
        lines += [f"{'output' if i == 0 else '':<9}{output}" for i, output in enumerate(self.outputs)]
        lines += [f"output   {text}" for text in self.missing]
        lines += [f"{'size' if i == 0 else '':<9}{check}" for i, check in enumerate(self.sizes)]
        if self.steps is not None:
            wrong = sum(not layer.ok for layer in self.layers)
            lines.append(
                f"layers   {len(self.layers)} compared of {self.steps[0]} and {self.steps[1]}"
                + (f", {wrong} differ" if wrong else ", all the same")
            )
        elif self.inside:
            lines.append(f"inside   {self.inside} values compared, all the same")
        if self.first_difference is not None:
            though = ", though the outputs are the same" if self.is_same_outside else ""
            lines.append(f"first layer that differs{though}: {self.first_difference.title()}")
            lines.append(f"         {OutputComparison.__str__(self.first_difference)}")
        if self.coverage is not None:
            lines.append(f"weights  {self.coverage}")
        lines.append(self.verdict())
        return "\n".join(lines)

    def verdict(self) -> str:
        """The last line."""
        if self.is_hidden_difference:
            return "DIFFERENT inside, where the outputs do not show it at these inputs"
        if self.is_same_outside and not self.is_same_at_other_sizes:
            return "DIFFERENT at other sizes"
        return "same" if self.ok else "DIFFERENT"

    def difference(self) -> str:
        """What differs, in one line."""
        if self.is_hidden_difference and self.first_difference is not None:
            return f"inside, where no output shows it: {OutputComparison.__str__(self.first_difference)}"
        wrong: list[object] = [output for output in self.outputs if not output.ok]
        wrong += [check for check in self.sizes if not check.ok]
        return str(wrong[0]) if wrong else ", ".join(self.missing)

"""Which weights a comparison has seen, and which ones it says nothing about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_SHOWN = 3


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

    def note(self, moved: Mapping[str, float | None], *, inside: bool = False) -> None:
        """What one more run has shown."""
        if not self.weights:
            self.weights = len(moved)
            self.hidden = dict.fromkeys(moved, "not reached")
        for name, size in moved.items():
            if name not in self.hidden:
                continue
            if size is not None and size >= 1:
                del self.hidden[name]
                self.inside += inside
                self.outputs += not inside
            elif size is not None:
                self.hidden[name] = "hardly moves what was compared" if inside else "outputs hardly move with it"

    def __str__(self) -> str:
        if not self.weights:
            return "the model has no weights"
        share = 100 * self.outputs / self.weights
        text = f"the outputs depend on {_percent(share)} % of the weights at these inputs "
        text += f"({self.outputs} of {self.weights})"
        if self.inside:
            text += f", values inside that were compared on {self.inside} more"
        if self.hidden:
            names = [f"{name} ({why})" for name, why in list(self.hidden.items())[:_SHOWN]]
            rest = len(self.hidden) - len(names)
            text += f"; not judged: {', '.join(names)}" + (f" and {rest} more" if rest else "")
        return text


def _percent(share: float) -> str:
    """All of them is said of nothing less."""
    return f"{min(share, 99.9):.3g}" if share < 100 else "100"

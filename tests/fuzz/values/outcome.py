"""What a generator says of one case, on one route: the interface between run.py and the generators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# same: equal values. refused: an error that says what is not supported. wrong: other values than the oracle's. internal: a
# defect of tonnx, or an exception that is no error of tonnx. invalid: a file that its checker or runtime refuses.
# unstable: other values where rounding alone explains them. empty: PyTorch refuses a tensor without elements, or of one.
# deviates: ONNX's own evaluator agrees with tonnx, and not with ONNX Runtime. skipped: nothing to compare. crash: a process that died.
KINDS = ("same", "refused", "wrong", "internal", "invalid", "unstable", "empty", "deviates", "skipped", "crash")
BAD = ("wrong", "internal", "invalid", "crash")


@dataclass
class Outcome:
    """How one route of one case ended."""

    route: str
    kind: str
    text: str = ""
    reproduction: str = ""  # where the smallest case that still fails was saved, or its text


# Called with the name of each step before it starts, so that a process that dies has said what it was doing.
Announce = Callable[[str], None]

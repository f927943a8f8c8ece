"""tonnx.verify: do two files hold the same model, and if not, where do they part?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tonnx._verify.coverage import Coverage
from tonnx._verify.measure import Tolerance
from tonnx._verify.plan import Plan
from tonnx._verify.report import LayerComparison, OutputComparison, VerifyReport
from tonnx._verify.runners import open_model

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Coverage", "LayerComparison", "OutputComparison", "VerifyReport", "verify"]


def verify(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    inputs: Mapping[str, np.ndarray] | Sequence[np.ndarray] | str | os.PathLike[str] | None = None,
    layers: bool = False,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    allow_ops: Sequence[str] = (),
    outputs_only: bool = False,
) -> VerifyReport:
    """Runs two model files on the same inputs and says whether their outputs are the same.

    Each of `a` and `b` is an .onnx, .pt2, TorchScript .pt, or a .py that tonnx wrote, with its weights beside it; code
    in a .py is run. `inputs` are arrays by name or in order, or the path of an .npz file; random ones are made where
    there are none, of the shapes that the models declare or `shapes` gives by name. `layers` also compares every
    value inside the models that has a counterpart, and finds the first layer that differs. Tolerances fit the types
    and the depth of the models unless `rtol` or `atol` is given, which are used as numpy.isclose does.
    `allow_ops` names operators of other libraries than PyTorch's, as `library::name`, that a .pt2 may call.
    """
    from tonnx._compare import read_arrays
    from tonnx._verify.judge import Judge, described

    start = time.perf_counter()
    first, second = open_model(a, allow_ops), open_model(b, allow_ops)
    given = read_arrays(inputs) if isinstance(inputs, str | os.PathLike) else inputs
    plan = Plan(first, second, given, shapes or {}, seed)
    plan.find_sizes()
    tolerance = Tolerance(rtol, atol, (first.precision, second.precision))
    kinds = described(plan.draw(0)[0], plan)
    report = VerifyReport(os.fspath(a), os.fspath(b), kinds, seed if plan.is_random else None)
    Judge(first, second, plan, tolerance, report).compare(layers=layers, outputs_only=outputs_only)
    report.seconds = time.perf_counter() - start
    return report

"""tonnx.verify: do two files hold the same model, and if not, where do they part?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Union

from tonnx._arguments import checks_arguments
from tonnx._verify.coverage import Coverage
from tonnx._verify.measure import Tolerance
from tonnx._verify.plan import CannotRun, Plan
from tonnx._verify.report import LayerComparison, OutputComparison, VerifyReport
from tonnx._verify.runners import open_model

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

__all__ = ["CannotRun", "Coverage", "LayerComparison", "OutputComparison", "VerifyReport", "judged", "verify"]

Inputs = Mapping[str, "np.ndarray"] | Sequence["np.ndarray"] | str | os.PathLike[str] | None
Path = str | os.PathLike[str]
Model = Union[Path, "nn.Module"]


@checks_arguments
def verify(
    a: Model,
    b: Model,
    inputs: Inputs = None,
    layers: bool = False,
    *,
    shapes: Annotated[Mapping[str, Sequence[int | None]], 'a dict such as {"x": [1, 3, 224, 224]}'] | None = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    allow_ops: Sequence[str] = (),
    outputs_only: bool = False,
) -> VerifyReport:
    """Runs two models on the same inputs and says whether they do the same.

    Each of `a` and `b` is an .onnx, .pt2, TorchScript .pt, or a .py that tonnx wrote, with its weights beside it; code
    in a .py is run. Or it is an nn.Module in memory, which runs in eval mode on inputs of the other model's shapes.
    `inputs` are arrays by name or in order, or the path of an .npz file; random ones are made where there are none, of
    the shapes that the models declare or `shapes` gives by name. They are drawn until the outputs depend on all
    weights, and values inside are compared for the weights that still hide: a difference there counts, though no output
    shows it. `outputs_only` leaves that out. `layers` compares every value inside the models that has a counterpart,
    and finds the first layer that differs. Tolerances fit the types of the models and the lengths of their sums unless
    `rtol` or `atol` is given, which are used for the outputs as numpy.isclose does.
    `allow_ops` names operators of other libraries than PyTorch's, as `library::name`, that a .pt2 may call.
    """
    tolerances = rtol, atol
    return judged(a, b, inputs, shapes, seed, tolerances, allow_ops, layers=layers, outputs_only=outputs_only)


def judged(
    a: Model,
    b: Model,
    inputs: Inputs = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    seed: int = 0,
    tolerances: tuple[float | None, float | None] = (None, None),
    allow_ops: Sequence[str] = (),
    *,
    layers: bool = False,
    outputs_only: bool = False,
    draws: int = 1,
    fill: str = "random",
    may_drop_outputs: bool = False,
) -> VerifyReport:
    """The same for all who compare models: on at least so many draws, with inputs that are not random where `fill` says
    how they are; the second model may lack outputs where somebody wanted it so."""
    from tonnx._compare import read_arrays
    from tonnx._verify.judge import Judge, described

    start = time.perf_counter()
    first, second = open_model(a, allow_ops), open_model(b, allow_ops)
    first.fit(second)
    second.fit(first)
    given = read_arrays(inputs) if isinstance(inputs, str | os.PathLike) else inputs
    plan = Plan(first, second, given, shapes or {}, seed, fill)
    plan.find_sizes()
    tolerance = Tolerance(*tolerances, (first.precision, second.precision))
    kinds = described(plan.draw(0)[0], plan)
    report = VerifyReport(first.path, second.path, kinds, seed if plan.is_random else None)
    judge = Judge(first, second, plan, tolerance, report, may_drop_outputs=may_drop_outputs)
    judge.compare(layers=layers, outputs_only=outputs_only, draws=draws)
    report.seconds = time.perf_counter() - start
    return report

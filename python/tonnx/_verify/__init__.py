"""tonnx.verify: do two files hold the same model, and if not, where do they part?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tonnx._error import Error
from tonnx._verify.inputs import make_feeds, pair_inputs, perturbed
from tonnx._verify.measure import Tolerance, measure
from tonnx._verify.report import LayerComparison, OutputComparison, VerifyReport
from tonnx._verify.runners import Runner, Value, identifier, open_model

if TYPE_CHECKING:
    import numpy as np

__all__ = ["LayerComparison", "OutputComparison", "VerifyReport", "verify"]

Named = Sequence[tuple[str, Value]]


def pair_outputs(a: Named, b: Named) -> tuple[list[tuple[int, int]], list[str]]:
    """Outputs of the same name, or in the same place where the names say nothing; and what only one model has."""
    in_b = {identifier(name): j for j, (name, _) in enumerate(b) if name}
    pairs = [(i, in_b[identifier(name)]) for i, (name, _) in enumerate(a) if name and identifier(name) in in_b]
    left_a = [i for i in range(len(a)) if i not in {i for i, _ in pairs}]
    left_b = [j for j in range(len(b)) if j not in {j for _, j in pairs}]
    if len(left_a) == len(left_b):
        pairs += zip(left_a, left_b)
        return sorted(pairs), []
    missing = [f"{a[i][0] or i}  only in the first model" for i in left_a]
    return sorted(pairs), missing + [f"{b[j][0] or j}  only in the second model" for j in left_b]


def compare_outputs(
    a: Runner, b: Runner, feeds: tuple[list[np.ndarray], list[np.ndarray]], tolerance: Tolerance
) -> tuple[list[OutputComparison], list[str]]:
    in_a, in_b = a.run(feeds[0]), b.run(feeds[1])
    pairs, missing = pair_outputs(in_a, in_b)
    if not pairs and missing:
        raise Error(f"'{a.path}' and '{b.path}' have no output in common: {'; '.join(missing)}", "invalid_model")
    depth = max(a.depth(), b.depth())
    found = []
    near: Named = []
    for i, j in pairs:
        name = in_a[i][0] or in_b[j][0] or f"output {i}"
        numbers = measure(in_a[i][1], in_b[j][1], tolerance, depth)
        if not numbers["ok"] and not tolerance.is_given:
            near = near or a.run(perturbed(feeds[0]))
            numbers = measure(in_a[i][1], in_b[j][1], tolerance, depth, near=near[i][1])
        found.append(OutputComparison(name=name, counterpart=in_b[j][0] or name, **numbers))  # type: ignore[arg-type]
    return found, missing


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

    start = time.perf_counter()
    first, second = open_model(a, allow_ops), open_model(b, allow_ops)
    given = read_arrays(inputs) if isinstance(inputs, str | os.PathLike) else inputs
    pairs = pair_inputs(first, second)
    feeds = make_feeds(first, second, pairs, given, shapes or {}, seed)
    tolerance = Tolerance(rtol, atol, (first.precision, second.precision))
    outputs, missing = compare_outputs(first, second, feeds, tolerance)
    kinds = {value.name: f"{array.dtype}{list(array.shape)}" for value, array in zip(first.inputs, feeds[0])}
    report = VerifyReport(os.fspath(a), os.fspath(b), kinds, None if given else seed, outputs, missing)
    if layers:
        from tonnx._verify.layers import compare_layers

        numbers = {-1 - j: -1 - i for j, i in enumerate(pairs) if i is not None}
        report.layers, report.first_difference = compare_layers(first, second, feeds, numbers, tolerance)
        report.steps = (len(first.steps), len(second.steps))
    report.seconds = time.perf_counter() - start
    return report

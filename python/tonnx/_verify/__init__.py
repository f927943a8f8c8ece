"""tonnx.verify: whether two models compute the same, and if not, where they begin to differ."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Union

from tonnx import _core
from tonnx._arguments import checks_arguments
from tonnx._error import Error, nearest
from tonnx._progress import tell
from tonnx._verify import runners
from tonnx._verify.report import Coverage, LayerComparison, OutputComparison, VerifyReport, report_of
from tonnx._verify.runners import Runner, Value, open_model

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

__all__ = [
    "CannotRun",
    "CompareOptions",
    "Coverage",
    "LayerComparison",
    "OutputComparison",
    "VerifyReport",
    "compare",
    "compare_runners",
    "verify",
]

_FILLS = ("random", "ones", "zeros", "arange")

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
    """Runs two models on the same inputs and reports whether they compute the same.

    `a` and `b` are .onnx, .pt2, TorchScript .pt, or .py files that tonnx wrote (with the weights beside them; the code
    is run), or an nn.Module in memory, which runs in eval mode on inputs of the other model's shapes.
    `inputs` are arrays by name or in order, or the path of an .npz file. Without them, random inputs are drawn, of the
    shapes that the models declare or `shapes` gives by name, until the outputs depend on all weights. For weights that
    the outputs still do not depend on, intermediate values are compared; a difference there counts too. `outputs_only`
    leaves that out. `layers` compares all intermediate values that have a counterpart, and finds the first layer that
    differs. Tolerances follow from the types of the models and the lengths of their sums, unless `rtol` or `atol` is
    given, which are used for the outputs as in numpy.isclose.
    `allow_ops` names operators of other libraries, as `library::name`, that a .pt2 may call.
    """
    options = CompareOptions(shapes or {}, seed, rtol, atol, layers=layers, outputs_only=outputs_only)
    return compare(a, b, inputs, options, allow_ops)


@dataclass(frozen=True)
class CompareOptions:
    """How two models are compared."""

    shapes: Mapping[str, Sequence[int | None]] = field(default_factory=dict)  # by input
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    layers: bool = False
    outputs_only: bool = False
    draws: int = 1  # the least number of random inputs
    fill: str = "random"  # the kind of inputs: one of _FILLS
    may_drop_outputs: bool = False  # whether the second model may lack outputs


def compare(
    a: Model, b: Model, inputs: Inputs = None, options: CompareOptions | None = None, allow_ops: Sequence[str] = ()
) -> VerifyReport:
    """Compares two models that are files or modules; used by `verify`, `simplify` and batches."""
    from tonnx._compare import read_arrays

    options = options or CompareOptions()
    if options.fill not in _FILLS:
        raise Error(
            f"there is no input_fill '{options.fill}'; there are: {nearest(options.fill, _FILLS)}", "invalid_model"
        )
    first, second = open_model(a, allow_ops), open_model(b, allow_ops)
    first.fit(second)
    second.fit(first)
    given = _by_name(first, read_arrays(inputs) if isinstance(inputs, str | os.PathLike) else inputs)
    return compare_runners(first, second, {name: Value(x, str(x.dtype)) for name, x in given.items()}, options)


def compare_runners(
    first: Runner, second: Runner, inputs: Mapping[str, Value], options: CompareOptions
) -> VerifyReport:
    """Compares two open models, in the C++ core (src/verify/)."""
    from tonnx._verify.bridge import Bridge, to_core

    for name, shape in options.shapes.items():
        if any(size is not None and size < 0 for size in shape):
            raise Error(f"input '{name}' cannot be of shape {list(shape)}", "invalid_model")
    start = time.perf_counter()
    try:
        found = _core.judge(
            Bridge(first),
            Bridge(second),
            {name: to_core(value) for name, value in inputs.items()},
            {name: [-1 if size is None else size for size in shape] for name, shape in options.shapes.items()},
            options.seed,
            options.fill,
            options.rtol,
            options.atol,
            options.layers,
            options.outputs_only,
            options.may_drop_outputs,
            options.draws,
            runners.CHUNK_BYTES,
            tell,
        )
    except _core.CannotRun as e:
        raise CannotRun(*e.args) from None
    except _core.ShapeUnknown as e:
        raise ShapeUnknown(e.args[0]) from None
    except _core.CoreError as e:
        raise Error(*e.args) from None
    report = report_of(first.path, second.path, options.seed, found)
    report.seconds = time.perf_counter() - start
    return report


class CannotRun(Error):
    """The first model cannot be run on what is known of its inputs, so nothing can be said about the second."""


class ShapeUnknown(Error):
    """Neither model declares the shape of an input."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"nothing says what shape input '{name}' has: give shapes={{{name!r}: [1, 3, 224, 224]}}, or inputs",
            "invalid_model",
        )
        self.name = name


def _by_name(model: Runner, given: Mapping[str, np.ndarray] | Sequence[np.ndarray] | None) -> dict[str, np.ndarray]:
    """The given arrays by the names of the model's inputs."""
    import numpy as np

    if given is None:
        return {}
    if isinstance(given, Mapping):
        if not given or any(name != f"arr_{i}" for i, name in enumerate(given)):
            return {name: np.asarray(array) for name, array in given.items()}
        given = list(given.values())  # from np.savez without names
    if len(given) != len(model.inputs):
        raise Error(f"{len(given)} inputs are given where '{model.path}' has {len(model.inputs)}", "invalid_model")
    return {value.name: np.asarray(array) for value, array in zip(model.inputs, given)}

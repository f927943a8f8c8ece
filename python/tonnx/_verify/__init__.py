"""tonnx.verify: do two files hold the same model, and if not, where do they part?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
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
    "Coverage",
    "LayerComparison",
    "OutputComparison",
    "VerifyReport",
    "judged",
    "judged_runners",
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

    if fill not in _FILLS:
        raise Error(f"there is no input_fill '{fill}'; there are: {nearest(fill, _FILLS)}", "invalid_model")
    first, second = open_model(a, allow_ops), open_model(b, allow_ops)
    first.fit(second)
    second.fit(first)
    given = _by_name(first, read_arrays(inputs) if isinstance(inputs, str | os.PathLike) else inputs)
    values = {name: Value(array, str(array.dtype)) for name, array in given.items()}
    return judged_runners(
        first,
        second,
        values,
        shapes or {},
        seed,
        tolerances,
        layers=layers,
        outputs_only=outputs_only,
        draws=draws,
        fill=fill,
        may_drop_outputs=may_drop_outputs,
    )


def judged_runners(
    first: Runner,
    second: Runner,
    inputs: Mapping[str, Value],
    shapes: Mapping[str, Sequence[int | None]] = MappingProxyType({}),
    seed: int = 0,
    tolerances: tuple[float | None, float | None] = (None, None),
    *,
    layers: bool = False,
    outputs_only: bool = False,
    draws: int = 1,
    fill: str = "random",
    may_drop_outputs: bool = False,
) -> VerifyReport:
    """Asks the one judge there is, which is part of the core."""
    from tonnx._verify.bridge import Bridge, to_core

    for name, shape in shapes.items():
        if any(size is not None and size < 0 for size in shape):
            raise Error(f"input '{name}' cannot be of shape {list(shape)}", "invalid_model")
    start = time.perf_counter()
    try:
        found = _core.judge(
            Bridge(first),
            Bridge(second),
            {name: to_core(value) for name, value in inputs.items()},
            {name: [-1 if size is None else size for size in shape] for name, shape in shapes.items()},
            seed,
            fill,
            *tolerances,
            layers,
            outputs_only,
            may_drop_outputs,
            draws,
            runners.CHUNK_BYTES,
            tell,
        )
    except _core.CannotRun as e:
        raise CannotRun(*e.args) from None
    except _core.ShapeUnknown as e:
        raise ShapeUnknown(e.args[0]) from None
    except _core.CoreError as e:
        raise Error(*e.args) from None
    report = report_of(first.path, second.path, seed, found)
    report.seconds = time.perf_counter() - start
    return report


class CannotRun(Error):
    """The first model cannot be run on anything that is known of its inputs: nothing can be said of the second."""


class ShapeUnknown(Error):
    """Neither model says what shape an input has, and so the user has to."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"nothing says what shape input '{name}' has: give shapes={{{name!r}: [1, 3, 224, 224]}}, or inputs",
            "invalid_model",
        )
        self.name = name


def _by_name(model: Runner, given: Mapping[str, np.ndarray] | Sequence[np.ndarray] | None) -> dict[str, np.ndarray]:
    """The arrays that are given, by the names of the model's inputs."""
    import numpy as np

    if given is None:
        return {}
    if isinstance(given, Mapping):
        if not given or any(name != f"arr_{i}" for i, name in enumerate(given)):
            return {name: np.asarray(array) for name, array in given.items()}
        given = list(given.values())  # np.savez without names
    if len(given) != len(model.inputs):
        raise Error(f"{len(given)} inputs are given where '{model.path}' has {len(model.inputs)}", "invalid_model")
    return {value.name: np.asarray(array) for value, array in zip(model.inputs, given)}

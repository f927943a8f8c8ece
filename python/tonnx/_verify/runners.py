"""The interface of models that are run for a comparison, whatever their format."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tonnx import _core
from tonnx._error import Error

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import nn

FORMATS = {".onnx": "ONNX", ".pt2": "torch.export", ".pt": "TorchScript", ".py": "PyTorch module"}
CHUNK_BYTES = 1 << 30  # of values in memory at a time


@dataclass
class Value:
    """A tensor as a numpy array. Types that numpy lacks are widened; `dtype` is the original one."""

    array: np.ndarray
    dtype: str


@dataclass
class Input:
    """An input. Open sizes are None, a name, or a symbolic expression of PyTorch."""

    name: str
    dtype: str | None = None
    shape: list[Any] | None = None
    limit: int | None = None  # exclusive upper bound of random integers


@dataclass
class Step:
    """One intermediate value, in order of execution.

    Parents are the steps that it is computed from, negative numbers the inputs of the model: -1 is the first one.
    """

    name: str
    op: str
    parents: tuple[int, ...]
    layer: str = ""  # the node or the module that computes it
    weights: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()  # of the modules that it is the output of
    module: str = ""  # the path of the node's module in the original model


Visit = Callable[[int, Value], None]


class Depth(NamedTuple):
    """An estimate of the rounding errors that a value has accumulated."""

    layers: int = 0  # that sum many numbers
    numbers: int = 0  # summed by all of these layers for one element


class Gradients(NamedTuple):
    """Gradients of a sum, and the estimated seconds that they took."""

    weights: list[tuple[str, Value, Value | None]]  # name, weight, and gradient or None
    work: float


class Runner(ABC):
    """An open model. Feeds are the arrays of all inputs, in the model's order."""

    # a file, or its bytes, that the core can read for types of inputs, sizes and rounding
    model_path: str | None = None
    model_data: bytes | None = None

    def __init__(self, path: str) -> None:
        self.path = path
        self.inputs: list[Input] = []
        self.ranges: list[tuple[str, int, int | None]] = []  # name, minimum and maximum of open sizes
        self.precision = "float32"  # the coarsest type that it computes in, if the core cannot read the model

    def fit(self, other: Runner) -> None:
        """Adapts the inputs to the model that it is compared with."""
        return

    @abstractmethod
    def run(self, feeds: Sequence[np.ndarray]) -> list[tuple[str, Value]]:
        """The outputs with their names, which may be empty."""

    def find_steps(self, feeds: Sequence[np.ndarray]) -> list[Step] | None:
        """All steps on these inputs, whose values `fetch` returns; None if only `trace` can find them."""
        return []

    def trace(self, feeds: Sequence[np.ndarray], visit: Visit) -> list[Step]:
        """Runs the model once, calls `visit` with every intermediate value, and returns the steps."""
        raise NotImplementedError

    def fetch(self, feeds: Sequence[np.ndarray], wanted: Iterable[int]) -> dict[int, Value]:
        """The values of some steps."""
        return {}

    def run_with(self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray]) -> list[tuple[str, Value]]:
        """The outputs when the values of some steps are replaced."""
        raise Error(f"the values of '{self.path}' cannot be replaced", "unsupported")

    def recompute(
        self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray], wanted: Sequence[int]
    ) -> dict[int, Value]:
        """Values of steps when the users of the given steps get these values."""
        raise Error(f"the values of '{self.path}' cannot be replaced", "unsupported")

    def gradients(
        self, feeds: Sequence[np.ndarray], factor: Callable[[int, Value], np.ndarray | None], is_inside: bool
    ) -> Gradients | None:
        """The gradients of the sum of all outputs, or intermediate values, times factors; None if unknown."""
        return None

    def depth(self) -> Depth:
        """The depth from inputs to outputs, if the core cannot read the model."""
        return Depth()


def identifier(text: str) -> str:
    """A name of ONNX as tonnx writes it in Python."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")
    return f"n{name}" if name[:1].isdigit() else name


_ENDING = re.compile(r"[./_:](weights?|kernel|filter|gamma|scale|W|w|s|bias|beta|b|running_mean|running_var)$")


def layer_of_weight(name: str) -> str:
    """The layer of a weight: `layer1.0.conv1` for `layer1.0.conv1.weight`; empty if the name has none."""
    if not name or name.startswith("onnx::") or re.fullmatch(r"[A-Za-z]{0,8}_?\d*", name):
        return ""
    base = re.sub(r"(:0|(_[01])+)$", "", name)
    found = _ENDING.search(base)
    return base[: found.start()] if found else name


def value_of(tensor: torch.Tensor) -> Value:
    """The tensor as a numpy array."""
    import torch

    dtype = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():  # as a last dimension of 2, as in ONNX
        tensor = torch.view_as_real(tensor)
    if dtype not in ("float64", "float32", "float16", "bool") and tensor.is_floating_point():
        tensor = tensor.float()
    return Value(tensor.cpu().contiguous().numpy(), dtype)


def open_model(model: str | os.PathLike[str] | nn.Module, allow_ops: Sequence[str] = ()) -> Runner:
    """Opens a file by its suffix, or a module in memory."""
    if not isinstance(model, str | os.PathLike):
        return _open_live(model)
    name = os.fspath(model)
    ending = os.path.splitext(name)[1].lower()
    if ending not in FORMATS:
        advice = _core.advice_on(name, "")
        raise Error(advice or f"'{name}' is not one of {', '.join(FORMATS)}", "unsupported")
    if not os.path.isfile(name):
        raise Error(f"cannot open '{name}': there is no such file", "bad_file")
    if ending == ".onnx":
        from tonnx._verify.onnx_runner import OnnxRunner

        return OnnxRunner(name)
    try:
        import torch  # noqa: F401
    except ImportError:
        raise Error(f"running '{name}' needs PyTorch: pip install torch", "unsupported") from None
    from tonnx._verify import module_runner, script_runner, torch_runner

    runners: Mapping[str, Callable[[str], Runner]] = {
        ".pt2": lambda path: torch_runner.ProgramRunner(path, allow_ops),
        ".py": module_runner.ModuleRunner,
        ".pt": script_runner.ScriptRunner,
    }
    return runners[ending](name)


def _open_live(model: Any) -> Runner:
    from torch import nn

    from tonnx._verify.module_runner import LiveRunner

    if not isinstance(model, nn.Module):
        raise TypeError(f"a model is the path of a file or an nn.Module, not {type(model).__name__}")
    return LiveRunner(model)


def short(problem: BaseException) -> str:
    """The first line of an error message."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0][:400] if lines else type(problem).__name__

"""What models of every format have in common when they are run: inputs, outputs, and the steps in between."""

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
CHUNK_BYTES = 1 << 30  # values that are held at the same time


@dataclass
class Value:
    """A tensor that a model made. Types that numpy lacks are widened, and keep their name here."""

    array: np.ndarray
    dtype: str


@dataclass
class Input:
    """What a model takes. Sizes that are open are None, a name, or an expression over names of PyTorch."""

    name: str
    dtype: str | None = None
    shape: list[Any] | None = None
    limit: int | None = None  # of random integers


@dataclass
class Step:
    """One value that a model computes, in order of execution.

    Parents are the steps that it is computed from, negative numbers the inputs of the model: -1 is the first one.
    """

    name: str
    op: str
    parents: tuple[int, ...]
    layer: str = ""  # the node or the module that computes it
    weights: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()  # of modules whose output it is
    module: str = ""  # where a node lies in the model that the file was made of


Visit = Callable[[int, Value], None]


class Depth(NamedTuple):
    """How much rounding a value has behind it."""

    layers: int = 0  # that add up many numbers
    numbers: int = 0  # that these add up for one element, together


class Gradients(NamedTuple):
    """The derivatives of a sum, and the seconds of a usual processor that they took."""

    weights: list[tuple[str, Value, Value | None]]  # by name; None for a weight that had no part in it
    work: float


class Runner(ABC):
    """A model that is open. Feeds are the arrays of all inputs, in the model's own order."""

    # a file that the core reads, or its bytes: it tells of inputs, sizes and rounding
    model_path: str | None = None
    model_data: bytes | None = None

    def __init__(self, path: str) -> None:
        self.path = path
        self.inputs: list[Input] = []
        self.ranges: list[tuple[str, int, int | None]] = []  # of open sizes, by their names
        self.steps: list[Step] = []  # once it was traced
        self.precision = "float32"  # the coarsest type that it computes in, where no file tells more

    def fit(self, other: Runner) -> None:
        """Learns from the model that it is compared with which of its own inputs count."""
        return

    @abstractmethod
    def run(self, feeds: Sequence[np.ndarray]) -> list[tuple[str, Value]]:
        """The outputs, by their names; an empty name where the model has none."""

    @abstractmethod
    def trace(self, feeds: Sequence[np.ndarray], visit: Visit) -> None:
        """Runs the model, shows every value on the way, and leaves the steps behind."""

    @abstractmethod
    def fetch(self, feeds: Sequence[np.ndarray], wanted: Iterable[int]) -> dict[int, Value]:
        """The values of some steps."""

    def run_with(self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray]) -> list[tuple[str, Value]]:
        """The outputs where the values of some steps are others."""
        raise Error(f"the values of '{self.path}' cannot be replaced", "unsupported")

    def recompute(
        self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray], wanted: Sequence[int]
    ) -> dict[int, Value]:
        """Values of steps as they are computed where those that use the given ones take these."""
        raise Error(f"the values of '{self.path}' cannot be replaced", "unsupported")

    def gradients(
        self, feeds: Sequence[np.ndarray], factor: Callable[[int, Value], np.ndarray | None], is_inside: bool
    ) -> Gradients | None:
        """The derivatives of the sum of all outputs, or of values inside, times factors; None where nobody knows."""
        return None

    def depth(self) -> Depth:
        """What lies one after the other from inputs to outputs, at most, where no file tells more."""
        return Depth()


class OutputRunner(Runner):
    """A model of which nothing is known but its outputs."""

    def trace(self, feeds: Sequence[np.ndarray], visit: Visit) -> None:
        return

    def fetch(self, feeds: Sequence[np.ndarray], wanted: Iterable[int]) -> dict[int, Value]:
        return {}


class ChunkRunner(Runner):
    """A model that can only say some of its values at a time, because all that are asked for lie in memory."""

    def trace(self, feeds: Sequence[np.ndarray], visit: Visit) -> None:
        self.find_steps()
        at, count = 0, 16
        while at < len(self.steps):
            chunk = range(at, min(at + count, len(self.steps)))
            found = self.fetch(feeds, chunk)
            for index, value in found.items():
                visit(index, value)
            used = sum(value.array.nbytes for value in found.values())
            at += count
            count = max(1, min(4 * count, int(count * CHUNK_BYTES / max(used, 1) / 2)))

    @abstractmethod
    def find_steps(self) -> None: ...


def identifier(text: str) -> str:
    """The name as tonnx writes it into code and programs of PyTorch."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")
    return f"n{name}" if name[:1].isdigit() else name


_ENDING = re.compile(r"[./_:](weights?|kernel|filter|gamma|scale|W|w|s|bias|beta|b|running_mean|running_var)$")


def layer_of_weight(name: str) -> str:
    """`conv1_w_0`, `layer1.0.conv1.weight`: the layer that a weight belongs to; empty where the name says nothing."""
    if not name or name.startswith("onnx::") or re.fullmatch(r"[A-Za-z]{0,8}_?\d*", name):
        return ""
    base = re.sub(r"(:0|(_[01])+)$", "", name)
    found = _ENDING.search(base)
    return base[: found.start()] if found else name


def value_of(tensor: torch.Tensor) -> Value:
    """The tensor as numpy holds it."""
    import torch

    dtype = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():  # ONNX has a last dimension of two instead
        tensor = torch.view_as_real(tensor)
    if dtype not in ("float64", "float32", "float16", "bool") and tensor.is_floating_point():
        tensor = tensor.float()
    return Value(tensor.cpu().contiguous().numpy(), dtype)


def open_model(model: str | os.PathLike[str] | nn.Module, allow_ops: Sequence[str] = ()) -> Runner:
    """The model, by the ending of its name, or as it is in memory."""
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
    """The first line of what went wrong: the rest is where in other people's code."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0][:400] if lines else type(problem).__name__

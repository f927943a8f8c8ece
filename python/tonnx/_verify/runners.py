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
from tonnx._verify.expression import Needs

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

FORMATS = {".onnx": "ONNX", ".pt2": "torch.export", ".pt": "TorchScript", ".py": "PyTorch module"}
CHUNK_BYTES = 1 << 30  # values that are held at the same time
_USUAL_SUM = 256  # numbers that a layer adds up where nobody knows
_FUNCTION = 4  # exp and its like are off by as much as a sum of so many numbers


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
    choices: tuple[float, ...] = ()  # numbers that make a comparison inside true, or false
    is_mask: bool = False
    is_length: bool = False  # how much of the other inputs counts
    lowest: dict[str, int] | None = None  # of open sizes, by their names
    highest: dict[str, int] | None = None


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
    adds_up: int | None = None  # numbers that each element is the sum of, where the weights tell
    layers: int | None = None  # that lie one behind the other in it, where it holds a graph

    def title(self) -> str:
        return self.layer or self.name


Visit = Callable[[int, Value], None]
Tolerances = tuple[float, float]  # relative and absolute, as numpy.isclose has them


class Depth(NamedTuple):
    """How much rounding a value has behind it."""

    layers: int = 0  # that add up many numbers
    numbers: int = 0  # that these add up for one element, together

    def over(self, other: Depth) -> Depth:
        return Depth(self.layers + other.layers, self.numbers + other.numbers)

    @staticmethod
    def deepest(of: Iterable[Depth]) -> Depth:
        found = list(of)
        return Depth(max((d.layers for d in found), default=0), max((d.numbers for d in found), default=0))


class Influence(NamedTuple):
    """What weights do to what was compared."""

    moved: dict[str, float | None]  # by each, in units of what may differ; None for one that had no part in it
    work: float  # that it took to find out, as work.py counts it


class Runner(ABC):
    """A model that is open. Feeds are the arrays of all inputs, in the model's own order."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.inputs: list[Input] = []
        self.steps: list[Step] = []  # once it was traced
        self.precision = "float32"  # the coarsest type that it computes in

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

    def needs(self) -> Needs:
        """What the sizes inside ask of the open sizes of inputs, as far as that is known."""
        return Needs()

    @abstractmethod
    def run_with(self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray]) -> list[tuple[str, Value]]:
        """The outputs where the values of some steps are others."""

    @abstractmethod
    def recompute(
        self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray], wanted: Sequence[int]
    ) -> dict[int, Value]:
        """Values of steps as they are computed where those that use the given ones take these."""

    def influence(
        self, feeds: Sequence[np.ndarray], outputs: Mapping[int, Tolerances], inside: Mapping[int, Tolerances]
    ) -> Influence | None:
        """How far outputs and values of steps move with each weight; None where nobody knows."""
        return None

    @abstractmethod
    def depth(self) -> Depth:
        """What lies one behind the other from inputs to outputs, at most."""


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


_SAME_OPERATOR = {
    "gemm": "matmul",
    "linear": "matmul",
    "addmm": "matmul",
    "mm": "matmul",
    "bmm": "matmul",
    "baddbmm": "matmul",
    "batchnormalization": "batchnorm",
    "nativebatchnorm": "batchnorm",
    "layernormalization": "layernorm",
    "nativelayernorm": "layernorm",
    "convolution": "conv",
    "convtranspose": "convtranspose",
    "sum": "add",
    "iadd": "add",
    "radd": "add",
    "truediv": "div",
    "averagepool": "avgpool",
    "globalaveragepool": "avgpool",
    "adaptiveavgpool": "avgpool",
    "view": "reshape",
    "flatten": "reshape",
    "squeeze": "reshape",
    "unsqueeze": "reshape",
    "permute": "transpose",
    "t": "transpose",
    "clamp": "clip",
    "relu6": "clip",
    "hardtanh": "clip",
    "concat": "cat",
    "getitem": "slice",
}


def operator_class(op: str) -> str:
    """Operators that do the same have the same class, whatever they are called."""
    name = re.sub(r"[1-3]d(withindices)?$", "", op.split(".")[0].lower().replace("_", ""))
    return _SAME_OPERATOR.get(name, name)


_ACCUMULATES = re.compile(
    r"conv|matmul|norm|softmax|pool|reduce|mean|attention|lstm|gru|rnn|einsum|resize|upsample|cumsum"
)


def depths(steps: Sequence[Step]) -> list[Depth]:
    """What lies behind each step, itself among it."""
    found: list[Depth] = []
    for step in steps:
        found.append(Depth.deepest(found[p] for p in step.parents if p >= 0).over(own_depth(step)))
    return found


def own_depth(step: Step) -> Depth:
    """What one step adds."""
    is_sum = bool(_ACCUMULATES.search(operator_class(step.op)))
    layers = int(is_sum) if step.layers is None else step.layers
    numbers = step.adds_up if step.adds_up is not None else _USUAL_SUM * layers
    return Depth(layers, max(numbers, _FUNCTION))


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

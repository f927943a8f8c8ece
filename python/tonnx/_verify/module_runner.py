"""Runs modules of Python code, generated or live, and observes every intermediate value."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from tonnx._docstring import TensorRow, read_docstring
from tonnx._error import Error
from tonnx._export.capture.model import mode_of
from tonnx._verify.runners import Depth, Input, Runner, Step, identifier, layer_of_weight, short
from tonnx._verify.torch_runner import See, TorchRunner, coarsest, depth_of_weights, is_plain, weights_of


class _Watch(TorchFunctionMode):
    """Observes every call of a PyTorch function; tensors carry the number of the step that made them."""

    def __init__(self, see: See, weights: dict[int, str], path: Callable[[], str]) -> None:
        super().__init__()
        self.see, self.weights, self.path = see, weights, path

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        given = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        parents = tuple(dict.fromkeys(number for leaf in given if (number := step_number(leaf)) is not None))
        if not parents or name == "__get__":
            return result
        weights = tuple(self.weights[id(leaf)] for leaf in given if id(leaf) in self.weights)
        changes = name.endswith("_") and not name.endswith("__") or name.startswith("__i")
        for tensor in pytree.tree_leaves(result):
            if not is_plain(tensor) or (not changes and any(tensor is leaf for leaf in given)):
                continue
            layer = self.path() or (layer_of_weight(weights[0]) if weights else "")
            paths = (layer_of_weight(weights[0]),) if weights else ()
            step = lambda: Step(name, name.strip("_"), parents, layer, weights, paths)  # noqa: E731
            tensor._tonnx_step = self.see(tensor, step)
        return result


def step_number(tensor: torch.Tensor) -> int | None:
    return getattr(tensor, "_tonnx_step", None)


class CodeRunner(TorchRunner):
    """A module of Python code, whose calls of PyTorch are observed while it runs."""

    _model: nn.Module

    def call(self, tensors: list[torch.Tensor]) -> Any:
        return self._called(tensors)

    def _called(self, tensors: list[torch.Tensor]) -> Any:
        return self._model(*tensors)

    def weights(self) -> dict[str, torch.Tensor]:
        return weights_of(self._model)

    def walk(self, tensors: list[torch.Tensor], see: See) -> Any:
        weights = {id(t): name for name, t in self.weights().items()}
        stack: list[str] = []
        for i, tensor in enumerate(tensors):
            tensor._tonnx_step = -1 - i  # type: ignore[attr-defined]
        with ExitStack() as undo:
            for path, module in self._model.named_modules():
                if not path:
                    continue
                undo.callback(module.register_forward_pre_hook(lambda *_, p=path: stack.append(p)).remove)
                undo.callback(module.register_forward_hook(lambda *_: stack.pop() and None).remove)
            undo.enter_context(_Watch(see, weights, lambda: stack[-1] if stack else ""))
            return self._called(tensors)

    def depth(self) -> Depth:
        return depth_of_weights(self._model.state_dict().values())


class ModuleRunner(CodeRunner):
    """A .py file that tonnx wrote, with a class `Model` that loads its weights."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        name = f"_tonnx_verify_{len(sys.modules)}"
        module: Any = ModuleType(name)
        module.__file__ = os.path.abspath(path)
        sys.modules[name] = module
        try:
            # not imported, which would write a __pycache__, or trust an existing one
            code = Path(path).read_bytes()
            exec(compile(code, module.__file__, "exec"), module.__dict__)
            self.has_open_orders = b"sorted=False" in code
            kind = module.Model
            self._model = (kind.load() if hasattr(kind, "load") else kind()).eval()
        except Exception as e:
            raise Error(f"cannot load '{path}': {type(e).__name__}: {short(e)}", "bad_file") from None
        self.precision = coarsest(self._model.state_dict().values())
        listed = read_docstring(module.__doc__ or "")
        self.output_names = [row.name for row in listed.outputs]
        rows = {row.name: row for row in listed.inputs}
        for parameter in inspect.signature(self._model.forward).parameters.values():
            if parameter.name not in rows and parameter.default is not parameter.empty:
                continue
            self.inputs.append(_input_of(parameter.name, rows.get(parameter.name)))


class LiveRunner(CodeRunner):
    """A module in memory, run in eval mode. The shapes of its inputs are those of the other model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(title_of(model))
        self._model = model
        self._device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
        self.precision = coarsest(model.state_dict().values())
        self._parameters = inspect.signature(model.forward).parameters.values()
        self._choose_inputs(())

    def _choose_inputs(self, names: Sequence[str]) -> None:
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        self.inputs = [
            Input(p.name) for p in self._parameters if p.kind not in kinds and (p.default is p.empty or p.name in names)
        ]

    def fit(self, other: Runner) -> None:
        """Optional arguments are inputs if the other model has them."""
        self._choose_inputs([identifier(value.name) for value in other.inputs])

    def _tensors(self, feeds: Sequence[Any]) -> list[torch.Tensor]:
        return [tensor.to(self._device) for tensor in super()._tensors(feeds)]

    def call(self, tensors: list[torch.Tensor]) -> Any:
        with mode_of(self._model, False):
            return super().call(tensors)

    def walk(self, tensors: list[torch.Tensor], see: See) -> Any:
        with mode_of(self._model, False):
            return super().walk(tensors, see)

    def _called(self, tensors: list[torch.Tensor]) -> Any:
        by_place = [p.name for p in self._parameters if p.kind is p.POSITIONAL_ONLY]
        named = {value.name: tensor for value, tensor in zip(self.inputs, tensors)}
        return self._model(*(named.pop(name) for name in by_place if name in named), **named)


def title_of(model: nn.Module) -> str:
    """The name of a module in memory in reports."""
    return f"{type(model).__name__} in memory"


def _input_of(name: str, row: TensorRow | None) -> Input:
    if row is None:
        return Input(name)
    sizes = [int(size) if size.isdigit() else None if size == "?" else size for size in row.dims]
    return Input(row.own, {"float": "float32", "double": "float64"}.get(row.dtype, row.dtype), sizes)

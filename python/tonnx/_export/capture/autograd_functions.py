"""autograd.Functions that a symbolic can write: each call becomes one operator while the model is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import Function
from torch.utils import _pytree as pytree

from tonnx._replaced import replaced


@dataclass(frozen=True)
class TensorArgument:
    """Stands for a tensor among the arguments of a call: its index among the tensors."""

    index: int


@dataclass
class FunctionCall:
    """One call of a Function: its arguments, with a TensorArgument for each tensor, and its symbolic if it has one."""

    function: type[Function]
    symbolic: Any
    arguments: tuple[Any, ...]

    @property
    def title(self) -> str:
        return self.function.__qualname__

    @property
    def name(self) -> str:
        return self.function.__name__


class FunctionCalls:
    """Defines one operator for each call of a Function, and remembers which call each operator stands for."""

    _count = 0

    def __init__(self) -> None:
        self.library: Any = torch.library.Library("tonnx_function", "FRAGMENT")  # type: ignore[no-untyped-call]
        self.calls: dict[Any, FunctionCall] = {}

    def apply(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        places = iter(range(len(tensors)))
        template = tuple(TensorArgument(next(places)) if isinstance(a, torch.Tensor) else a for a in args)

        def forward(*values: torch.Tensor) -> list[torch.Tensor]:
            filled = [values[a.index] if isinstance(a, TensorArgument) else a for a in template]
            results, _ = pytree.tree_flatten(_run_forward(function, filled))
            # an operator must not return its own inputs
            return [r.clone() if any(r is v for v in values) else r for r in results]

        structure = self._structure_of(function, args)
        operator = self._define(function, len(tensors), structure.num_leaves, forward)
        self.calls[operator] = FunctionCall(function, _own_symbolic(function), template)
        results = operator(*tensors)
        return pytree.tree_unflatten([results] if structure.num_leaves == 1 else list(results), structure)

    def _structure_of(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

        with disable_proxy_modes_tracing(), torch.no_grad():
            return pytree.tree_structure(_run_forward(function, args))

    def _define(self, function: type[Function], inputs: int, outputs: int, forward: Any) -> Any:
        FunctionCalls._count += 1
        name = f"{function.__name__}_{FunctionCalls._count}"
        parameters = ", ".join(f"Tensor x{i}" for i in range(inputs))
        returns = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
        self.library.define(f"{name}({parameters}) -> {returns}")

        def run(*values: torch.Tensor) -> Any:
            results = forward(*values)
            return results[0] if outputs == 1 else tuple(results)

        self.library.impl(name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"tonnx_function::{name}", run, lib=self.library)
        return getattr(torch.ops.tonnx_function, name).default


class _Context:
    """The `ctx` argument of a forward. Nothing in it matters, because no backward is run."""

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def mark_dirty(self, *tensors: Any) -> None: ...

    def mark_non_differentiable(self, *tensors: Any) -> None: ...

    def set_materialize_grads(self, value: bool) -> None: ...


def _run_forward(function: type[Function], args: Any) -> Any:
    if function.setup_context is not Function.setup_context:
        return function.forward(*args)
    return function.forward(_Context(), *args)


def _own_symbolic(function: type[Function]) -> Any:
    symbolic = getattr(function, "symbolic", None)
    return None if symbolic is getattr(Function, "symbolic", None) else symbolic


@contextmanager
def functions_kept(keeps: Callable[[type[Function]], bool] = lambda function: False) -> Iterator[FunctionCalls]:
    """Traces each call of a Function that has a symbolic, or for which `keeps` is true, as one operator."""
    calls = FunctionCalls()
    original = Function.__dict__["apply"]

    def apply(cls: type[Function], *args: Any, **kwargs: Any) -> Any:
        if kwargs or (_own_symbolic(cls) is None and not keeps(cls)):
            return original.__get__(None, cls)(*args, **kwargs)
        return calls.apply(cls, args)

    with replaced(Function, "apply", classmethod(apply)):
        yield calls

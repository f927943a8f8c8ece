"""What is exported: a module, a function or a method as the module to trace, and the mode to trace it in."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn


def as_module(model: nn.Module | Callable[..., Any]) -> tuple[nn.Module, Callable[..., Any] | None]:
    """The module to trace; where the model is a method of it, that method too."""
    if isinstance(model, nn.parallel.DataParallel | nn.parallel.DistributedDataParallel):
        return model.module, None
    if isinstance(model, nn.Module):
        return getattr(model, "_orig_mod", model), None
    if inspect.ismethod(model) and isinstance(model.__self__, nn.Module):
        return model.__self__, model
    return _module_of_function(model), None


def what_exports(value: object) -> str:
    """The end of the error about a value that is not a model: how to convert it instead."""
    if isinstance(value, str | os.PathLike):
        return f': tonnx.convert("{os.fspath(value)}", target) converts files'
    if isinstance(value, Mapping):
        return ": weights have no program; model.load_state_dict(weights), and export that model"
    return ""


def _module_of_function(function: Callable[..., Any]) -> nn.Module:
    """A module whose forward is the function; it owns the modules that the function uses, which gives weights names."""
    plain = function.func if isinstance(function, functools.partial) else function
    name = getattr(plain, "__name__", "function")
    try:
        inspect.signature(function)
    except ValueError:  # functions of torch have no signature
        builtin = function
        function = lambda *input: builtin(*input)
    title = name if name.isidentifier() else "function"
    module: nn.Module = type(title, (nn.Module,), {"forward": staticmethod(function)})()
    try:
        used = inspect.getclosurevars(plain)
    except TypeError:
        return module
    for variable, value in {**used.globals, **used.nonlocals}.items():
        if isinstance(value, nn.Module):
            setattr(module, variable, value)
    return module


@contextmanager
def mode_of(module: nn.Module, training: bool | None) -> Iterator[None]:
    """Puts the module into train or eval mode (None: leaves it), and restores the mode of each submodule."""
    before = [(m, m.training) for m in module.modules() if hasattr(m, "training")]  # frozen scripts have no mode
    try:
        if training is not None:
            for part, _ in before:
                part.training = training
        yield
    finally:
        for part, was in before:
            part.training = was

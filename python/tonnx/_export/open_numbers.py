"""len() and int() that leave open sizes open: Python's own make numbers of them."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from tonnx._export.questions import is_own_file


def _length(value: Any) -> Any:
    return value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else builtins.len(value)


class _IntType(type):
    """Stands for the type `int` wherever a model asks for it, but does not make a number of a size."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        is_size = len(args) == 1 and not kwargs and isinstance(args[0], torch.SymInt | torch.SymFloat)
        return torch.sym_int(args[0]) if is_size else builtins.int(*args, **kwargs)  # type: ignore[no-untyped-call]

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, builtins.int | torch.SymInt)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, builtins.int)


class _Int(metaclass=_IntType):
    from_bytes = builtins.int.from_bytes


LENGTHS: Mapping[str, Any] = {"len": _length}
NUMBERS: Mapping[str, Any] = {"len": _length, "int": _Int}


@contextmanager
def sizes_left_open(packages: Collection[str], functions: Mapping[str, Any]) -> Iterator[None]:
    """Inside, the modules of these packages have these functions in place of Python's."""
    changed: list[tuple[dict[str, Any], str]] = []
    for module_name, module in list(sys.modules.items()):
        namespace = getattr(module, "__dict__", {})
        if module_name.split(".")[0] not in packages or is_own_file(namespace.get("__file__") or "<"):
            continue
        for name, function in functions.items():
            if name not in namespace:
                namespace[name] = function
                changed.append((namespace, name))
    try:
        yield
    finally:
        for namespace, name in changed:
            del namespace[name]

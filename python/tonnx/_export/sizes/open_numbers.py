"""len(), int() and float() that leave open sizes open: Python's own make numbers of them."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from tonnx._export.sizes.questions import is_own_file
from tonnx._replaced import replaced


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


class _FloatType(type):
    """The same for `float`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        is_size = len(args) == 1 and not kwargs and isinstance(args[0], torch.SymInt | torch.SymFloat)
        return torch.sym_float(args[0]) if is_size else builtins.float(*args, **kwargs)  # type: ignore[no-untyped-call]

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, builtins.float | torch.SymFloat)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, builtins.float)


class _Float(metaclass=_FloatType):
    fromhex = builtins.float.fromhex


LENGTHS: Mapping[str, Any] = {"len": _length}
NUMBERS: Mapping[str, Any] = {"len": _length, "int": _Int, "float": _Float}


@contextmanager
def sizes_left_open(packages: Collection[str], functions: Mapping[str, Any]) -> Iterator[None]:
    """Inside, the modules of these packages have these functions in place of Python's."""
    with ExitStack() as stack:
        for module_name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            is_typed = module_name == "__main__" and not file  # a notebook has no file
            if module_name.split(".")[0] not in packages or not (is_typed or not is_own_file(file or "<frozen ")):
                continue
            for name, function in functions.items():
                if name not in vars(module):
                    stack.enter_context(replaced(module, name, function))
        yield

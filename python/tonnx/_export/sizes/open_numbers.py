"""len(), int() and float() that keep open sizes symbolic; Python's own return numbers."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from tonnx._export.sizes.questions import is_own_file
from tonnx._replaced import replaced


def _length(value: Any) -> Any:
    return value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else builtins.len(value)


def _type_like(plain: type, symbolic: type, convert: Callable[[Any], Any], constructor: str) -> type:
    """Replaces the type `int` or `float` in the code of a model; int(size) stays symbolic."""

    class Kind(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            is_size = len(args) == 1 and not kwargs and isinstance(args[0], torch.SymInt | torch.SymFloat)
            return convert(args[0]) if is_size else plain(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, (plain, symbolic))

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, plain)

    return Kind(plain.__name__, (), {constructor: getattr(plain, constructor)})


_INT = _type_like(int, torch.SymInt, torch.sym_int, "from_bytes")
_FLOAT = _type_like(float, torch.SymFloat, torch.sym_float, "fromhex")
LENGTHS: Mapping[str, Any] = {"len": _length}
NUMBERS: Mapping[str, Any] = {"len": _length, "int": _INT, "float": _FLOAT}


@contextmanager
def sizes_left_open(packages: Collection[str], functions: Mapping[str, Any]) -> Iterator[None]:
    """Inside, the modules of these packages use these functions in place of Python's."""
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

"""Generated code as Python modules: identified by its text, run once in a process, and pickled with its models."""

from __future__ import annotations

import hashlib
import linecache
import sys
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from torch import nn

from tonnx._error import Error

if TYPE_CHECKING:
    from typing import SupportsIndex


@dataclass(frozen=True)
class Generated:
    """Code that was run."""

    source: str
    title: str
    code: CodeType
    module: ModuleType

    @property
    def model_class(self) -> type[nn.Module]:
        kind: type[nn.Module] = self.module.__dict__["Model"]
        return kind

    def classes(self) -> list[type[nn.Module]]:
        """The classes that the code defines."""
        return [v for v in vars(self.module).values() if isinstance(v, type) and v.__module__ == self.module.__name__]


_all: dict[str, Generated] = {}  # by the name of the module


class _NoModules:
    """Stands for the modules of registered converters, which only a converted model has."""

    def __getitem__(self, index: int) -> NoReturn:
        raise Error(
            "the class cannot create the modules of registered converters: copy a model of it with copy.deepcopy",
            "unsupported",
        )


def generated(source: str, title: str) -> Generated:
    """Runs the code, unless code with the same text has been run."""
    name = f"tonnx.generated.{title}_{hashlib.sha256(source.encode()).hexdigest()[:32]}"
    if name in _all:
        return _all[name]
    file = f"<{name}>"
    module = ModuleType(name)
    module.__file__ = file
    module.__dict__["EXTERNAL"] = _NoModules()
    code = compile(source, file, "exec")
    exec(code, module.__dict__)
    made = Generated(source, title, code, module)
    for kind in made.classes():
        _pickle_with_source(kind, made)
    made = _all.setdefault(name, made)  # another thread may have been faster
    sys.modules[name] = made.module
    # so that tracebacks, inspect.getsource and torch.compile find the code
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    return made


def find_generated(model: nn.Module) -> Generated | None:
    """The code that defines the model's class; None for other classes, also derived ones."""
    return _all.get(type(model).__module__)


def _pickle_with_source(kind: type[nn.Module], made: Generated) -> None:
    """Makes pickle and copy store an object of this class as the code and the object's state.

    By itself pickle writes the names of module and class, which mean nothing in another process.
    """

    def reduce(self: nn.Module, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        reduced = super(kind, self).__reduce_ex__(protocol)
        if type(self) is not kind:  # a derived class can be imported
            return reduced
        return restore, (made.source, made.title, kind.__name__), *reduced[2:]

    kind.__reduce_ex__ = reduce  # type: ignore[assignment]


def restore(source: str, title: str, class_name: str) -> nn.Module:
    """An object without state of a class of the code. Pickles call this function by its name."""
    kind: type[nn.Module] = vars(generated(source, title).module)[class_name]
    return kind.__new__(kind)

"""Generated code as modules of Python's: known by its text, run once in a process, pickled along with its models."""

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
        """Those that the code itself defines."""
        return [v for v in vars(self.module).values() if isinstance(v, type) and v.__module__ == self.module.__name__]


_all: dict[str, Generated] = {}  # by the name of the module


class _NoModules:
    """Stands for the modules that converters of the user's own gave: they belong to the model that was made of them."""

    def __getitem__(self, index: int) -> NoReturn:
        raise Error(
            "the class cannot make the modules that converters of your own gave: copy a model of it with copy.deepcopy",
            "unsupported",
        )


def generated(source: str, title: str) -> Generated:
    """The code, run where it was not yet: what has the same text is the same module."""
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
    made = _all.setdefault(name, made)  # another thread may have been quicker
    sys.modules[name] = made.module
    # tracebacks, inspect.getsource and torch.compile find the code as if it came from a file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    return made


def find_generated(model: nn.Module) -> Generated | None:
    """The code that the model's class is of; none where a class was derived from that, or comes from elsewhere."""
    return _all.get(type(model).__module__)


def _pickle_with_source(kind: type[nn.Module], made: Generated) -> None:
    """Lets pickle and copy write an object of this class as the code and the object's state.

    By itself pickle writes the names of module and class, which mean nothing in another process.
    """

    def reduce(self: nn.Module, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        reduced = super(kind, self).__reduce_ex__(protocol)
        if type(self) is not kind:  # a class that the user derived can be imported from where it stands
            return reduced
        return restore, (made.source, made.title, kind.__name__), *reduced[2:]

    kind.__reduce_ex__ = reduce  # type: ignore[assignment]


def restore(source: str, title: str, class_name: str) -> nn.Module:
    """An object of a class of the code, without state. Pickles call it by this name; it runs the code in the pickle."""
    kind: type[nn.Module] = vars(generated(source, title).module)[class_name]
    return kind.__new__(kind)

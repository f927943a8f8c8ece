"""tonnx.save: a converted module, with the weights that it has now, as code."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

from torch import nn

from tonnx import _core
from tonnx._arguments import checks_arguments
from tonnx._build import make
from tonnx._changed_layers import find_changes, with_changes
from tonnx._error import Error, translated
from tonnx._generated import Generated, find_generated, generated
from tonnx._registry import ExternalModules, stored_state


@checks_arguments
def save(model: Annotated[nn.Module, "an nn.Module"], target: str | os.PathLike[str]) -> None:
    """Writes a module that `tonnx.convert` gave, with the weights that it has now.

    The ending says what is written: `.py`, and the weights beside it in `.safetensors`, as by `tonnx.convert`; or the
    weights alone: `.safetensors` or `.pth`. The module may have been trained, copied, pickled and moved to another
    device or type. A layer of torch.nn that was put in the place of another, such as a last layer for other classes, is
    written into the code, if its arguments can be read off it; a layer of another kind is an error.
    """
    path = os.fspath(target)
    code = find_generated(model)
    if code is None or type(model) is not code.model_class:
        raise Error(f"tonnx.save writes modules that tonnx.convert gave, not {type(model).__qualname__}", "unsupported")
    if Path(path).suffix.lower() not in (".py", ".safetensors", ".pth"):
        raise Error(f"cannot write '{path}': tonnx.save writes .py, .safetensors and .pth", "unsupported")
    external = ExternalModules([model.get_submodule(name) for name in _external_names(code)])
    source = code.source
    if Path(path).suffix.lower() == ".py":
        fresh = make(code, external.modules)
        changes = list(find_changes(model, fresh))
        if changes:
            source = with_changes(source, model, changes)
            fresh = make(generated(source, code.title), external.modules)
        _require_same_layers(model, fresh)
    imports, constructors = external.constructors()
    with translated():
        _core.write_module(path, source, imports, constructors, stored_state(model))


def _external_names(code: Generated) -> list[str]:
    """The attributes that modules of converters of the user's own are, in their order."""
    found = re.findall(r"^ +self\.(\w+) = EXTERNAL\[(\d+)\]$", code.source, re.MULTILINE)
    return [name for name, _ in sorted(found, key=lambda row: int(row[1]))]


def _require_same_layers(model: nn.Module, fresh: nn.Module) -> None:
    """Throws where the code would give other layers, or other shapes of weights, than the module has."""
    for now, then in ((_layers(model), _layers(fresh)), (_shapes(model), _shapes(fresh))):
        for name in [*then, *now]:
            if now.get(name) != then.get(name):
                raise Error(
                    f"'{name}' is {now.get(name, 'missing')}, and the code makes it {then.get(name, 'not at all')}: "
                    "only weights may be others than when the model was converted",
                    "unsupported",
                )


def _layers(model: nn.Module) -> dict[str, str]:
    return {name: f"{type(part).__qualname__}({part.extra_repr()})" for name, part in model.named_modules()}


def _shapes(model: nn.Module) -> dict[str, str]:
    return {name: f"a tensor of {list(tensor.shape)}" for name, tensor in model.state_dict().items()}

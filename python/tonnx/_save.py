"""tonnx.save: writes a converted module as code, with its current weights."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

from torch import nn

from tonnx import _core
from tonnx._arguments import checks_arguments
from tonnx._build import make
from tonnx._changed_layers import described, find_changes, with_changes
from tonnx._error import Error, translated
from tonnx._generated import Generated, find_generated, generated
from tonnx._registry import ExternalModules, stored_state


@checks_arguments
def save(model: Annotated[nn.Module, "an nn.Module"], target: str | os.PathLike[str]) -> None:
    """Writes a module that `tonnx.convert` returned, with its current weights.

    The suffix of `target` chooses the format: `.py` with the weights in a `.safetensors` file beside it, or the weights
    alone as `.safetensors` or `.pth`. The module may have been trained, copied, pickled and moved to another device or
    type. A layer that was replaced by another one of torch.nn, such as a last layer for other classes, is written into
    the code if its arguments can be read from its attributes; other replacements are errors.
    """
    path = os.fspath(target)
    code = find_generated(model)
    if code is None or type(model) is not code.model_class:
        raise Error(
            f"tonnx.save writes modules that tonnx.convert returned, not {type(model).__qualname__}", "unsupported"
        )
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
    """The attributes with the modules of registered converters, in order."""
    found = re.findall(r"^ +self\.(\w+) = EXTERNAL\[(\d+)\]$", code.source, re.MULTILINE)
    return [name for name, _ in sorted(found, key=lambda row: int(row[1]))]


def _require_same_layers(model: nn.Module, fresh: nn.Module) -> None:
    """Throws where the code would create other layers or shapes of weights than the module has."""
    for now, then in ((_layers(model), _layers(fresh)), (_shapes(model), _shapes(fresh))):
        for name in [*then, *now]:
            if now.get(name) != then.get(name):
                raise Error(
                    f"'{name}' is {now.get(name, 'missing')}, and the code makes it {then.get(name, 'not at all')}: "
                    "only weights may be others than when the model was converted",
                    "unsupported",
                )


def _layers(model: nn.Module) -> dict[str, str]:
    return {name: described(part) for name, part in model.named_modules()}


def _shapes(model: nn.Module) -> dict[str, str]:
    return {name: f"a tensor of {list(tensor.shape)}" for name, tensor in model.state_dict().items()}

"""Makes the module of generated code in memory, its weights views of the mapped file."""

from __future__ import annotations

import itertools
import linecache
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from tonnx._core import StateEntry, TensorDescription

_numbers = itertools.count(1)


def tensor_of(description: TensorDescription) -> torch.Tensor:
    """A view of the bytes where they lie. Writing to it copies the pages that are written, and changes no file."""
    buffer, offset, dtype_name, sizes = description
    dtype: torch.dtype = getattr(torch, dtype_name)
    if buffer is None:
        return torch.empty(sizes, dtype=dtype)
    count = 1
    for size in sizes:
        count *= size
    return torch.frombuffer(buffer, dtype=dtype, count=count, offset=offset).view(sizes)


def build(source: str, title: str, state: list[StateEntry], external: list[nn.Module]) -> nn.Module:
    """Runs generated code and gives its class the weights, in eval mode.

    Modules that converters of the user's own gave stand in the code as `EXTERNAL[i]`.
    """
    name = f"tonnx.generated.{title}_{next(_numbers)}"
    file = f"<{name}>"
    module = ModuleType(name)
    module.__file__ = file
    # tracebacks, inspect.getsource and torch.compile find the code as if it came from a file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    sys.modules[name] = module
    module.__dict__["EXTERNAL"] = external
    exec(compile(source, file, "exec"), module.__dict__)
    with torch.device("meta"):
        model: nn.Module = module.__dict__["Model"]()
    for path, description, transposed, trainable in state:
        tensor = tensor_of(description)
        if transposed:
            tensor = tensor.t()
        owner_name, _, attribute = path.rpartition(".")
        owner = model.get_submodule(owner_name) if owner_name else model
        if attribute in owner._parameters:
            owner._parameters[attribute] = nn.Parameter(tensor, requires_grad=trainable)
        else:
            owner._buffers[attribute] = tensor
    for part in model.modules():  # what no model file has, such as the batch counter of a BatchNorm
        for attribute, buffer in part._buffers.items():
            if buffer is not None and buffer.is_meta:
                part._buffers[attribute] = torch.zeros(buffer.shape, dtype=buffer.dtype)
    return model.eval()

"""Writes a .pt2 or .pt of a module with layers of registered converters, which only PyTorch can trace."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnx import _core
from tonnx._error import Error

if TYPE_CHECKING:
    import torch
    from torch import nn

InputType = tuple[str, Sequence[int | str]]  # the element type, and the sizes: numbers, or names of open sizes


def write_traced(model: nn.Module, types: Mapping[str, InputType], names: Sequence[str], path: str) -> None:
    """Traces the module with torch.export, with the open sizes of its inputs, and writes the program."""
    import torch

    missing = [name for name in names if name not in types]
    if missing:
        raise Error(f"the sizes of the input '{missing[0]}' are not known: give them with input_shapes", "unsupported")
    given = [types[name] for name in names]
    numbers = _numbers_of(given)
    example = tuple(_example(dtype, [numbers.get(s, s) for s in sizes]) for dtype, sizes in given)
    auto = torch.export.Dim.AUTO
    open_sizes = [{i: auto for i, size in enumerate(sizes) if isinstance(size, str)} for _, sizes in given]
    with torch.no_grad():
        try:
            program = torch.export.export(model, example, dynamic_shapes=tuple(open_sizes), strict=False)
        except Exception as failure:
            first = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
            raise Error(
                f"torch.export cannot trace the model with the layers of registered converters: {first}", "unsupported"
            ) from failure
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        between = str(Path(folder) / "model.pt2")
        torch.export.save(program, between)
        if Path(path).suffix.lower() == ".pt2":
            os.replace(between, path)
        else:
            _core.convert_file(between, path, None, None, [], None, False, "", None)


def _numbers_of(given: Sequence[InputType]) -> dict[int | str, int]:
    """A different size for each name; never 0 or 1, which torch.export would fix."""
    fixed = {size for _, sizes in given for size in sizes if isinstance(size, int)}
    free = (n for n in itertools.count(2) if n not in fixed)
    open_names = dict.fromkeys(size for _, sizes in given for size in sizes if isinstance(size, str))
    return {name: next(free) for name in open_names}


def _example(dtype: str, sizes: Sequence[Any]) -> torch.Tensor:
    import torch

    return torch.ones(tuple(sizes), dtype=getattr(torch, dtype))

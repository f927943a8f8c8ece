"""Loads the weights of a file into a model by name. The core reads the file, and executes nothing in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from tonnx._convert import convert
from tonnx._error import Error

_WRAPPERS = ("module.", "_orig_mod.")  # of DataParallel and torch.compile
_MOST = 10  # the number of names in an error


def load_weights(model: nn.Module, path: str, part: str | None) -> None:
    """Loads the weights of a file; throws where names or shapes differ."""
    weights = _read(path, part)
    own = {name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}
    while weights and all(name.startswith(_WRAPPERS) and name not in own for name in weights):
        weights = {name.partition(".")[2]: value for name, value in weights.items()}
    _require_same(weights, own, path)
    model.load_state_dict(weights, strict=False)  # only counters are missing


def _read(path: str, part: str | None) -> Mapping[str, torch.Tensor]:
    with tempfile.TemporaryDirectory(prefix="tonnx-") as folder:
        plain = os.path.join(folder, "weights.pth")
        convert(path, plain, part=part)
        weights: Mapping[str, torch.Tensor] = torch.load(plain, map_location="cpu", weights_only=True, mmap=True)
        return weights


def _require_same(weights: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor], path: str) -> None:
    given = {own[name].data_ptr() for name in weights if name in own and own[name].numel() > 0}
    missing = [
        name
        for name, value in own.items()
        if name not in weights and not _is_counter(name) and value.data_ptr() not in given
    ]
    extra = [name for name in weights if name not in own and not _is_counter(name)]
    other = [
        f"{name} is {list(weights[name].shape)} in the file and {list(value.shape)} in the model"
        for name, value in own.items()
        if name in weights and weights[name].shape != value.shape and not isinstance(value, nn.UninitializedParameter)
    ]
    parts = [f"the file lacks {_listed(missing)}"] if missing else []
    parts += [f"the model has no {_listed(extra)}"] if extra else []
    parts += [_listed(other)] if other else []
    if parts:
        raise Error(f"the weights of {path} are not those of the model: {'; '.join(parts)}", "invalid_model")


def _is_counter(name: str) -> bool:
    return name.rpartition(".")[2] == "num_batches_tracked"


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(names[:_MOST])
    return text if len(names) <= _MOST else f"{text} and {len(names) - _MOST} more"

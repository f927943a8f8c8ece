"""Builds the model of `tonnx export`: calls a class or a function of a file or a package."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from tonnx._error import Error, nearest
from tonnx._export_command.generated_file import has_loader, load
from tonnx._replaced import replaced


@dataclass
class Built:
    """A model, and whether its weights are random: random numbers were drawn and no state dict was loaded."""

    model: nn.Module
    is_random: bool


def build_model(where: str, arguments: Sequence[str], *, loads_weights: bool = True) -> Built:
    """`my_net.py:Net` or `torchvision.models:resnet18`, with arguments of the form `width=64`.

    The class of a file that tonnx wrote loads the weights that lie beside the file, unless others are to be loaded.
    """
    with _watched() as watch:
        model = _build(where, arguments, loads_weights)
    return Built(model, watch.is_random)


class _Watch:
    is_random = False


@contextmanager
def _watched() -> Iterator[_Watch]:
    """Observes whether random numbers are drawn, and whether a model loads a state dict."""
    watch, loaded = _Watch(), False
    load_state_dict = nn.Module.load_state_dict

    def noted(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal loaded
        loaded = True
        return load_state_dict(self, *args, **kwargs)

    before = torch.get_rng_state()
    with replaced(nn.Module, "load_state_dict", noted):
        yield watch
    watch.is_random = not loaded and not torch.equal(before, torch.get_rng_state())


def _build(where: str, arguments: Sequence[str], loads_weights: bool) -> nn.Module:
    source, colon, name = where.rpartition(":")
    if os.path.isdir(where):
        raise Error(_of_folder(where), "unsupported")
    if not colon or not source or not name:
        raise Error(f"'{where}' is not of the form file.py:Name or package.module:name", "invalid_model")
    made = _find(_load(source), name, source)
    given = _parse_arguments(arguments)
    if loads_weights and not given and has_loader(made):
        return load(made, source)
    if not isinstance(made, nn.Module):
        made = _call(made, given, where)
    elif given:
        raise Error(f"{where} is a model already, and takes no --arg", "invalid_model")
    if not isinstance(made, nn.Module):
        raise Error(f"{where} gives a {type(made).__name__}, and not an nn.Module", "invalid_model")
    return made


def _of_folder(folder: str) -> str:
    """The error about a folder: how to export a checkpoint."""
    path, quoted = Path(folder), shlex.quote(folder)
    if (path / "config.json").is_file():
        return (
            f"'{folder}' is a folder with a checkpoint, which has no code: name the class of transformers that loads "
            f"it, and its inputs: tonnx export transformers:AutoModel.from_pretrained model.onnx "
            f"--arg pretrained_model_name_or_path={quoted} --input input_ids:1,16 --input-type input_ids:int64"
        )
    weights = [file.name for ending in ("*.safetensors", "*.pth", "*.bin") for file in sorted(path.glob(ending))]
    given = shlex.quote(str(path / weights[0])) if weights else "net.pth"
    return (
        f"'{folder}' is a folder: export builds a model from code, named as file.py:Name or package.module:name, and "
        f"gives it the weights of a file: tonnx export my_net.py:Net model.onnx --weights {given}"
    )


def _load(source: str) -> ModuleType:
    """Imports the code, which can import files beside it or in the current folder."""
    try:
        if not source.endswith(".py"):
            sys.path.insert(0, os.getcwd())
            return importlib.import_module(source)
        path = Path(source).resolve()
        if not path.is_file():
            raise Error(f"there is no file '{source}'", "bad_file")
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None  # the name ends in .py
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module  # dataclasses and pickle need it
        spec.loader.exec_module(module)
        return module
    except Error:
        raise
    except Exception as failure:  # the code may raise anything
        raise Error(f"{source} cannot be imported: {_sentence(failure)}", "invalid_model") from failure


def _find(module: ModuleType, name: str, source: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            models = [n for n, value in vars(found).items() if not n.startswith("_") and callable(value)]
            raise Error(f"{source} has no '{name}'; it has: {nearest(part, models) or 'none'}", "invalid_model")
        found = getattr(found, part)
    if not callable(found):
        raise Error(f"'{name}' of {source} is a {type(found).__name__}, not a class or function", "invalid_model")
    return found


def _parse_arguments(texts: Sequence[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise Error(f"--arg '{text}' is not of the form name=value", "invalid_model")
        if name in given:
            raise Error(f"--arg gives '{name}' twice", "invalid_model")
        try:
            given[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):  # a string without quotes
            given[name] = value
    return given


def _call(made: Any, given: dict[str, Any], where: str) -> Any:
    _require_parameters(made, given, where)
    try:
        return made(**given)
    except Exception as failure:
        raise Error(f"{where} cannot be built: {_sentence(failure)}", "invalid_model") from failure


def _require_parameters(made: Any, given: dict[str, Any], where: str) -> None:
    try:
        parameters = inspect.signature(made).parameters
    except ValueError:  # some builtins have no signature
        return
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    named = {n: p for n, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    for name in given:
        if name not in named and not takes_any:
            raise Error(f"{where} has no argument '{name}'; it has: {nearest(name, named) or 'none'}", "invalid_model")
    missing = [n for n, p in named.items() if p.default is p.empty and n not in given]
    if missing:
        options = " ".join(f"--arg {name}=..." for name in missing)
        raise Error(f"{where} wants {', '.join(missing)}: {options}", "invalid_model")


def _sentence(failure: Exception) -> str:
    """The exception, and the innermost line of the user's code."""
    place = ""
    for frame in traceback.extract_tb(failure.__traceback__):
        if not frame.filename.startswith("<frozen") and Path(frame.filename).parent != Path(__file__).parent:
            place = f" ({frame.filename}:{frame.lineno})"
    lines = str(failure).strip().splitlines()
    return f"{type(failure).__name__}{f': {lines[0]}' if lines else ''}{place}"

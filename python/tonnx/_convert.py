"""tonnx.convert: converts a model to an nn.Module or a file."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol, overload

from tonnx import _core, _registry
from tonnx._arguments import checks_arguments
from tonnx._compare import compare_opened
from tonnx._error import Error, translated
from tonnx._limits import Limits, budget

if TYPE_CHECKING:
    from torch import nn


class SerializableModel(Protocol):
    """An onnx.ModelProto."""

    def SerializeToString(self) -> bytes: ...


# the name of a size, or its name and its range
Dynamic = str | tuple[str, int, int | None]
Opened = Annotated[Mapping[str, Mapping[int, Dynamic]] | Literal["auto"], 'a dict such as {"x": {0: "batch"}}, "auto"']
InputShapes = Annotated[Mapping[str, Sequence[int]], 'a dict such as {"x": [1, 3, 224, 224]}']
InputTypes = Annotated[Mapping[str, str], 'a dict such as {"ids": "int64"}']


def _what_converts(value: object) -> str:
    """Advice in the error about a source that is not a file."""
    return ": tonnx.export(model, args, path) writes a module as ONNX" if hasattr(value, "state_dict") else ""


Source = Annotated[
    str | os.PathLike[str] | bytes | SerializableModel, "a path, bytes or an onnx.ModelProto", _what_converts
]


@overload
def convert(
    source: Source,
    target: None = None,
    *,
    input_shapes: InputShapes | None = None,
    input_types: InputTypes | None = None,
    allow_ops: Sequence[str] = (),
    mmap: bool = False,
    flat: bool = False,
    weights: str | os.PathLike[str] | None = None,
    part: str | None = None,
    limits: Limits | None = None,
) -> nn.Module: ...


@overload
def convert(
    source: Source,
    target: str | os.PathLike[str],
    *,
    opset: int | None = None,
    input_shapes: InputShapes | None = None,
    input_types: InputTypes | None = None,
    external_data: bool | None = None,
    dynamic: Opened | None = None,
    verify: bool = True,
    allow_ops: Sequence[str] = (),
    source_lines: bool | None = None,
    flat: bool = False,
    weights: str | os.PathLike[str] | None = None,
    part: str | None = None,
    limits: Limits | None = None,
) -> None: ...


@checks_arguments
def convert(
    source: Source,
    target: str | os.PathLike[str] | None = None,
    *,
    opset: int | None = None,
    input_shapes: InputShapes | None = None,
    input_types: InputTypes | None = None,
    external_data: bool | None = None,
    dynamic: Opened | None = None,
    verify: bool = True,
    allow_ops: Sequence[str] = (),
    mmap: bool = False,
    source_lines: bool | None = None,
    flat: bool = False,
    weights: str | os.PathLike[str] | None = None,
    part: str | None = None,
    limits: Limits | None = None,
) -> nn.Module | None:
    """Converts a model between ONNX and PyTorch.

    `source` is the path of an `.onnx`, `.pt2` or `.pt` (TorchScript) file, the bytes of an ONNX model, or an
    onnx.ModelProto. Without a target the model is returned as an nn.Module in eval mode, which can be called, trained,
    copied, pickled and, by `tonnx.save`, written as code. The suffix of a target chooses what is written: `.py` (with
    the weights beside it in `.safetensors`), `.pt2`, `.pt` (TorchScript, for torch.jit.load) or `.onnx`; or the weights
    alone, under the names that the `.py` has: `.safetensors` or `.pth`. A file of weights alone can be converted to the
    other format.

    An option without a meaning for a source and a target is an error. `opset` and `external_data` are for a target in
    ONNX: its opset, and whether its weights go to a separate file. `input_shapes` fixes the shapes of the inputs of an
    ONNX model; -1 leaves a size unchanged. A `.pt` file has no shapes: `input_shapes` and `input_types` (`{"ids":
    "int64"}`, default float32) give them by name or by index ("0"); -1 is an open size.
    `dynamic` opens sizes of an ONNX model that becomes `.pt2`, `.pt` or `.onnx`: `{"x": {0: "batch"}}` opens a size of
    an input, `{"x": {0: ("batch", 1, 64)}}` within a range, and "auto" the first size of every input; sizes that
    depend on it are adapted. The result is compared with the original, at the original size and sample by sample, if
    ONNX Runtime is installed; `verify=False` leaves that out.
    `allow_ops` is for a `.pt2` source: operators that tonnx does not know are refused, unless they are named here as
    `library::name`; the code then calls them through torch.ops.
    `mmap` is for a module from a file: its weights are views of the mapped file, which take neither time nor memory
    before they are used. The file must not change while the module is in use: if it is overwritten in place the weights
    change, and if it is truncated the system kills the process. By default the weights are copied.
    `source_lines=False` is for a `.pt2` that becomes ONNX: nodes do not name the line of the model that they come from.
    `flat` is for code, in memory or as `.py`, and for its weights: one class with all layers as attributes, instead of
    nested modules.
    `weights` is a `.pth` or `.safetensors` file whose values replace those of the model. Its names are those of the
    model, or those of the converted module (its state dict, or the `.safetensors` beside a `.py`). Missing names,
    unknown names and other shapes are an error.
    `part` is the dict of a checkpoint with the weights, as `tonnx print` names it: "model"; "." is the whole file.
    `limits` replaces the limits that follow from the size of the model: `{"memory": "1G"}`.
    """
    options = {
        "opset": opset is not None,
        "external_data": external_data is not None,
        "input_shapes": bool(input_shapes),
        "input_types": bool(input_types),
        "dynamic": bool(dynamic),
        "allow_ops": bool(allow_ops),
        "mmap": mmap,
        "source_lines": source_lines is not None,
        "flat": flat,
        "weights": weights is not None,
        "part": part is not None,
    }
    with translated(), budget(limits):
        path = "" if target is None else os.fspath(target)
        origin = os.fspath(source) if isinstance(source, str | os.PathLike) else "model.onnx"
        _core.check_route(origin, path, [name for name, is_given in options.items() if is_given])
        other = "" if weights is None else os.fspath(weights)
        if Path(origin).suffix.lower() != ".onnx":
            shapes = {name: list(shape) for name, shape in (input_shapes or {}).items()}
            types = dict(input_types or {})
            if target is None:
                return _built_program(
                    _title(origin), _core.Program.read_file(origin, other, part, shapes, types), allow_ops, mmap, flat
                )
            _core.convert_file(
                origin,
                path,
                opset,
                external_data,
                list(allow_ops),
                source_lines,
                flat,
                other,
                part,
                shapes,
                types,
            )
            return None
        if mmap and not isinstance(source, str | os.PathLike):
            raise Error("mmap is for a model in a file: this one is in memory already", "invalid_model")
        conversion, title = _read(source)
        if other:
            conversion.replace_weights(other, part)
        if input_shapes:
            conversion.set_input_shapes({name: list(shape) for name, shape in input_shapes.items()})
        if target is None:
            return _to_module(conversion, title, mmap, flat)
        if Path(path).suffix.lower() in (".py", ".safetensors", ".pth"):
            _to_python(conversion, path, flat)
        elif Path(path).suffix.lower() in (".pt2", ".pt") and conversion.has_external(_registry.registered()):
            _to_traced(conversion, title, path, dynamic or {})
        else:
            judge = compare_opened if dynamic and verify else None
            conversion.write(path, opset, external_data, _dynamic_list(dynamic or {}), judge, _warn)
    return None


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


def _dynamic_list(dynamic: Opened) -> list[tuple[str, int, str, int, int | None]]:
    if dynamic == "auto":
        return [("", 0, "batch", 0, None)]
    rows: list[tuple[str, int, str, int, int | None]] = []
    for name, axes in dynamic.items():
        for axis, size in axes.items():
            rows.append((name, axis, size, 0, None) if isinstance(size, str) else (name, axis, *size))
    return rows


def _built_program(title: str, program: _core.Program, allow_ops: Sequence[str], mmap: bool, flat: bool) -> nn.Module:
    code, state, copies = program.source_and_state(title, list(allow_ops), mmap, flat)
    return _built(code, title, state, [], copies)


class Unsupported(NamedTuple):
    """An operator that cannot be converted."""

    domain: str
    op: str
    version: int
    nodes: list[str]
    reason: str


@checks_arguments
def check(source: Source, *, limits: Limits | None = None) -> list[Unsupported]:
    """Lists every operator of the model that cannot be converted to PyTorch, with its nodes and the reason."""
    with translated(), budget(limits):
        conversion, _ = _read(source)
        return [Unsupported(*row) for row in conversion.unsupported(_registry.registered())]


def _read(source: Source) -> tuple[_core.Conversion, str]:
    if isinstance(source, bytes):
        return _core.Conversion.read_bytes(source, "", False), "model"
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return _core.Conversion.read_file(path), _title(path)
    return _core.Conversion.read_bytes(source.SerializeToString(), "", True), "model"


def _title(path: str) -> str:
    return re.sub(r"\W", "_", Path(path).stem) or "model"


def _lower(conversion: _core.Conversion) -> _registry.ExternalModules:
    conversion.prepare(_registry.registered())
    external = _registry.run_converters(conversion)
    conversion.lower(external.mappings)
    return external


def _to_module(conversion: _core.Conversion, title: str, mmap: bool, flat: bool) -> nn.Module:
    if not mmap:
        conversion.copy_weights()
    external = _lower(conversion)
    source, state, copies = conversion.source_and_state(title, external.states(), mmap, flat)
    return _built(source, title, state, external.modules, copies)


def _built(
    source: str,
    title: str,
    state: list[_core.StateEntry],
    external: list[nn.Module],
    copies: list[_core.Copies],
) -> nn.Module:
    from tonnx._build import build

    model = build(source, title, state, external)  # while the weights are copied
    for part in copies:
        part.wait()
    return model


def _to_traced(conversion: _core.Conversion, title: str, path: str, dynamic: Opened) -> None:
    from tonnx._traced_program import write_traced

    if dynamic:
        raise Error(
            "a model with layers of registered converters has the open sizes of its own inputs: declare others in an "
            ".onnx file first, and convert that",
            "unsupported",
        )
    graph = conversion.graph()
    write_traced(_to_module(conversion, title, False, True), graph["input_types"], graph["inputs"], path)


def _to_python(conversion: _core.Conversion, path: str, flat: bool) -> None:
    external = _lower(conversion)
    imports, constructors = external.constructors()
    conversion.write_python(path, imports, constructors, external.states(), flat)

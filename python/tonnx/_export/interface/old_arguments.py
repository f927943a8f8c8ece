"""Accepts the arguments of all versions of torch.onnx.export, by position and by name."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import torch

from tonnx._error import Error, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

OperatorExportTypes = torch._C._onnx.OperatorExportTypes
_FORMS = {"ONNX": None, "ONNX_FALLTHROUGH": "own", "ONNX_ATEN_FALLBACK": "aten"}

# The parameters after the file, in the order of torch 1.9. From 1.10 on, `operator_export_type` replaces `aten`.
_FIRST = ("export_params", "verbose", "training", "input_names", "output_names")
_ORDER_OF_1_9 = (
    *_FIRST,
    "aten",
    "export_raw_ir",
    "operator_export_type",
    "opset_version",
    "_retain_param_name",
    "do_constant_folding",
    "example_outputs",
    "strip_doc_string",
    "dynamic_axes",
    "keep_initializers_as_inputs",
    "custom_opsets",
    "enable_onnx_checker",
    "use_external_data_format",
)
_ORDER_OF_1_10 = (
    *_FIRST,
    "operator_export_type",
    "opset_version",
    "do_constant_folding",
    "dynamic_axes",
    "keep_initializers_as_inputs",
    "custom_opsets",
    "export_modules_as_functions",
)

# Values without an effect, and what replaces others. None: no value has an effect.
_WITHOUT_EFFECT: dict[str, tuple[tuple[object, ...] | None, str]] = {
    "artifacts_dir": (None, ""),
    "autograd_inlining": (None, ""),
    "dynamo": (None, ""),
    "enable_onnx_checker": (None, ""),  # written models pass the check
    "example_outputs": (None, ""),  # scripts are read, not traced
    "fallback": (None, ""),
    "_retain_param_name": ((None, True), "input_names names the weights after the inputs"),
    "aten": ((None, False), "operator_export_type=OperatorExportTypes.ONNX_ATEN_FALLBACK is what there is of it"),
    "export_raw_ir": ((None, False), "print(torch.export.export(model, args)) shows the graph before it is ONNX"),
    "google_printer": ((None, False), "print(onnx.printer.to_text(program.model_proto)) writes the text of onnx"),
    "optimize": ((None, True), "tonnx.simplify(path, path) makes a written model simpler"),
    "report": ((None, False), "verify=True compares the outputs"),
    "profile": ((None, False), "verbose=True says what was written"),
    "dump_exported_program": ((None, False), "torch.export.save(program.exported_program, path) does it"),
    "export_modules_as_functions": ((None, False), "the modules of nodes are in their metadata"),
}

_OLD_NAMES = {"strip_doc_string": "source_lines", "use_external_data_format": "external_data", "f": "path"}


def takes_old_arguments(export: Callable[P, R]) -> Callable[P, R]:
    """Translates calls written for any version of torch.onnx.export to the function's own arguments."""
    known = [name for name in inspect.signature(export).parameters if name != "others"]

    @functools.wraps(export)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        named = {**_named(args[3:], kwargs), **kwargs}
        return export(*args[:3], **_renamed(named, known))  # type: ignore[arg-type]

    return called


def _named(positional: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Positional arguments after the file, by name."""
    at = len(_FIRST)
    is_newer = len(positional) > at and isinstance(positional[at], OperatorExportTypes)
    order = _ORDER_OF_1_10 if is_newer else _ORDER_OF_1_9
    if len(positional) > len(order):
        raise TypeError(f"export() takes at most {3 + len(order)} arguments by their places: give the others by name")
    named = dict(zip(order, positional))
    twice = next((name for name in named if name in kwargs), None)
    if twice is not None:
        raise TypeError(f"export() got '{twice}' by its place and by its name")
    return named


def _renamed(named: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    for old, new in _OLD_NAMES.items():
        if old in named:
            value = named.pop(old)
            named.setdefault(new, not value if old == "strip_doc_string" else value)
    if named.get("custom_translation_table"):
        raise Error(
            "custom_translation_table holds functions of onnxscript, which tonnx does not read: "
            "register the same with tonnx.register_custom_op_symbolic",
            "unsupported",
        )
    named.pop("custom_translation_table", None)
    if "operator_export_type" in named:
        form = _form_of(named.pop("operator_export_type"))
        named["fallthrough"] = named.get("fallthrough") or form
    for name in [name for name in named if name not in known]:
        if name not in _WITHOUT_EFFECT:
            meant = did_you_mean(name, [*known, *_OLD_NAMES, *_WITHOUT_EFFECT])
            raise TypeError(f"export() got an unexpected keyword argument '{name}'{meant}")
        harmless, instead = _WITHOUT_EFFECT[name]
        value = named.pop(name)
        if harmless is not None and value not in harmless:
            warnings.warn(f"{name}={value!r} has no effect in tonnx.export: {instead}", stacklevel=4)
    return named


def _form_of(kind: Any) -> str | None:
    """How operators without a conversion are written; None if they are errors."""
    if kind is None:
        return None
    name = getattr(kind, "name", str(kind))
    if name not in _FORMS:
        warnings.warn(
            f"operator_export_type={name} has no effect in tonnx.export: operators of ONNX are written, and "
            "ONNX_ATEN_FALLBACK or ONNX_FALLTHROUGH say what becomes of the others",
            stacklevel=5,
        )
        return None
    return _FORMS[name]

"""The values of a program in the schema of .pt2: dtypes, symbolic numbers, tensors and their memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from sympy.printing.repr import srepr  # type: ignore[import-untyped]

from tonnx._error import Error

Json = Any

_DTYPES = {
    "uint8": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "complex32": 9,
    "complex64": 10,
    "complex128": 11,
    "bool": 12,
    "bfloat16": 13,
    "uint16": 28,
    "float8_e4m3fn": 29,
    "float8_e5m2": 30,
    "float8_e4m3fnuz": 31,
    "float8_e5m2fnuz": 32,
    "float8_e8m0fnu": 33,
    "uint32": 34,
    "uint64": 35,
}
DTYPE_CODES = {getattr(torch, name): code for name, code in _DTYPES.items() if hasattr(torch, name)}
LAYOUT_CODES = {torch.strided: 7, torch.sparse_coo: 1, torch.sparse_csr: 2, torch.sparse_csc: 3, torch.sparse_bsr: 4}


def is_tensor_list(kind: Any) -> bool:
    return isinstance(kind, torch.ListType) and isinstance(kind.getElementType(), torch.TensorType)


def float_json(value: float) -> Json:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


class Expressions:
    """Symbolic numbers as text, cached because printing is slow."""

    def __init__(self) -> None:
        self._ints: dict[int, Json] = {}
        self._known: dict[Any, Json] = {}

    def int_json(self, value: Any) -> Json:
        if type(value) is int or not isinstance(value, torch.SymInt):
            value = int(value)
            found = self._ints.get(value)
            if found is None:
                found = self._ints[value] = {"as_int": value}
            return found
        return self._symbolic(value, "as_int", int)

    def float_json(self, value: Any) -> Json:
        if not isinstance(value, torch.SymFloat):
            return {"as_float": float_json(float(value))}
        return self._symbolic(value, "as_float", float)

    def bool_json(self, value: Any) -> Json:
        if not isinstance(value, torch.SymBool):
            return {"as_bool": bool(value)}
        return self._symbolic(value, "as_bool", bool)

    def _symbolic(self, value: Any, kind: str, plain: Callable[[Any], Any]) -> Json:
        node = value.node
        key = (kind, node._expr) if hasattr(node, "_expr") else None
        if key is not None and key in self._known:
            return self._known[key]
        expression = node.expr if key is not None else None
        if expression is None or expression.is_number or expression in (True, False):
            result = {kind: float_json(plain(value)) if kind == "as_float" else plain(value)}
        else:
            hint = node.hint if kind != "as_bool" else None
            if hint is not None:
                hint = {kind: float_json(float(hint)) if kind == "as_float" else int(hint)}
            result = {"as_expr": {"expr_str": srepr(expression), "hint": hint}}
        if key is not None:
            self._known[key] = result
        return result


class TensorMetas:
    """Types and layouts of tensors in the schema."""

    def __init__(self, expressions: Expressions) -> None:
        self._size = expressions.int_json
        self._devices: dict[torch.device, Json] = {}

    def json(self, tensor: torch.Tensor) -> Json:
        size = self._size
        device = tensor.device
        device_json = self._devices.get(device)
        if device_json is None:
            device_json = self._devices[device] = {"type": device.type, "index": device.index}
        layout = tensor.layout
        strided = layout is torch.strided
        return {
            "dtype": DTYPE_CODES[tensor.dtype],
            "sizes": [size(s) for s in tensor.shape],
            "requires_grad": tensor.requires_grad,
            "device": device_json,
            "strides": [size(s) for s in tensor.stride()] if strided else [{"as_int": 0}] * tensor.dim(),
            "storage_offset": size(tensor.storage_offset()) if strided else {"as_int": 0},
            "layout": LAYOUT_CODES.get(layout, 0),
        }


Storage = tuple[int, int, object]


@dataclass
class Storages:
    """The memory of the weights and constants: one entry for each storage, whatever the number of views."""

    entries: dict[str, Storage] = field(default_factory=dict)
    _keys: dict[int, str] = field(default_factory=dict)

    def add(self, tensor: torch.Tensor, name: str) -> tuple[str, torch.Tensor]:
        """The key of the tensor's storage, and the tensor as a view of it."""
        tensor = _plain_tensor(tensor, name)
        storage = tensor.untyped_storage()
        identity = storage._cdata
        if identity in self._keys:
            return self._keys[identity], tensor
        key = f"storage_{len(self.entries)}"
        if tensor.device.type == "cpu":
            self._keys[identity] = key
            self.entries[key] = (storage.data_ptr(), storage.nbytes(), tensor)
            return key, tensor
        copy = storage.cpu()  # type: ignore[no-untyped-call]
        self._keys[identity] = key
        self.entries[key] = (copy.data_ptr(), copy.nbytes(), (copy, tensor))
        return key, tensor


def _plain_tensor(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """The tensor as strided memory; throws where it has none."""
    from torch._subclasses.fake_tensor import FakeTensor

    if isinstance(tensor, FakeTensor) or tensor.device.type == "meta":
        raise Error(
            f"the weight '{name}' has no values: it is on the meta device or was made under a fake mode; "
            "load its values before the export",
            "unsupported",
        )
    if tensor.is_sparse or tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        raise Error(
            f"the weight '{name}' is a quantized tensor of eager mode; quantize the exported program (pt2e) instead",
            "unsupported",
        )
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor.detach() if tensor.requires_grad else tensor

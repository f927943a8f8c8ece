"""ONNX's backend node tests: collected once, their values carried to PyTorch and back, and compared."""

from __future__ import annotations

import collections
import fcntl
import functools
import os
import pickle
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import torch
from conftest import REPOSITORY
from onnx import numpy_helper

# PyTorch computes in no type smaller than a byte: such values travel, and are compared, in the next wider type.
WIDER = {"int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8, "float4_e2m1fn": np.float32}


KEPT = REPOSITORY / "build" / f"node_tests-{onnx.__version__}-{np.__version__}.pickle"


def collect() -> dict[str, Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None) if case.model is not None and case.data_sets}


@functools.lru_cache(maxsize=1)
def node_tests() -> dict[str, Any]:
    """Every node test of the installed onnx package that has a model and data, by name.

    The package computes them anew each time, pools with loops in Python: they are kept, and one process makes them for all.
    """
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not KEPT.exists():
            part = KEPT.with_suffix(".part")
            part.write_bytes(pickle.dumps(collect()))
            part.rename(KEPT)
    return dict(pickle.loads(KEPT.read_bytes()))


def sample(per_operator: int = 2) -> list[str]:
    """The names of the tests to be run: of each operator, alone and written in others, the first few."""
    chosen, seen = [], collections.Counter[tuple[str, bool]]()
    for name, case in sorted(node_tests().items()):
        key = (case.model.graph.node[0].op_type, "_expanded" in name)
        seen[key] += 1
        if seen[key] <= per_operator or "TONNX_ALL_NODE_TESTS" in os.environ:
            chosen.append(name)
    return chosen


def numpy_value(value: Any) -> Any:
    """A stored input or output as numpy: an array, a list of values, or None."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def widened(array: np.ndarray) -> np.ndarray:
    return array.astype(WIDER.get(array.dtype.name, array.dtype))


def to_torch(value: Any) -> Any:
    """A numpy value as what a PyTorch module takes."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [to_torch(v) for v in value]
    array = widened(np.array(value))
    if array.dtype.kind in "OSU":
        raise TypeError("PyTorch has no tensors of strings")
    same = getattr(torch, array.dtype.name, None)
    if array.dtype.kind == "V" or array.dtype == ml_dtypes.bfloat16 or array.dtype.name.startswith("float8"):
        if same is None:
            raise TypeError(f"PyTorch has no type {array.dtype.name}")
        plain = {1: np.uint8, 2: np.int16}[array.dtype.itemsize]
        return torch.from_numpy(array.view(plain)).view(same)
    return torch.from_numpy(array)


def from_torch(value: Any) -> Any:
    """What a PyTorch module gave, as numpy."""
    if value is None or isinstance(value, np.ndarray):
        return value
    if isinstance(value, (list, tuple)):
        return [from_torch(v) for v in value]
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    value = value.detach().cpu().contiguous()
    name = str(value.dtype).removeprefix("torch.")
    if name == "bfloat16" or name.startswith("float8"):
        plain = torch.int16 if value.element_size() == 2 else torch.uint8
        return value.view(plain).numpy().view(getattr(ml_dtypes, name))
    return value.numpy()


def difference(got: Any, want: Any, rtol: float, atol: float) -> str | None:
    """None where the two values are equal in kind, type, shape and within the tolerances; else what differs."""
    if want is None:
        return None if got is None else "a value where none is expected"
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)):
            return "not a sequence"
        if len(got) != len(want):
            return f"{len(got)} elements instead of {len(want)}"
        found = (difference(g, w, rtol, atol) for g, w in zip(got, want, strict=True))
        return next((f"element {i}: {why}" for i, why in enumerate(found) if why), None)
    if got is None or isinstance(got, (list, tuple)):
        return "not a tensor"
    got, want = widened(np.asarray(got)), widened(np.asarray(want))
    if got.shape != want.shape:
        return f"shape {list(got.shape)} instead of {list(want.shape)}"
    if want.dtype.kind in "OSU":
        return None if (got.astype(str) == want.astype(str)).all() else "different strings"
    if got.dtype != want.dtype:
        return f"type {got.dtype} instead of {want.dtype}"
    if want.dtype.kind in "biu":
        return None if (got == want).all() else "different values"
    exact = np.complex128 if want.dtype.kind == "c" else np.float64
    close = np.isclose(got.astype(exact), want.astype(exact), rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return None
    with np.errstate(invalid="ignore"):
        worst = np.abs(got.astype(exact) - want.astype(exact))[~close]
    return f"{close.size - close.sum()} of {close.size} values differ, by up to {np.nanmax(worst, initial=0):.3g}"


def outputs_difference(got: Any, want: list[Any], rtol: float, atol: float) -> str | None:
    """Compares what a module returned, one value or a tuple, with the list of expected outputs."""
    if len(want) == 1 and not isinstance(got, tuple):
        got = [got]
    if not isinstance(got, (list, tuple)) or len(got) < len(want):
        return f"{len(got) if isinstance(got, (list, tuple)) else 1} outputs instead of {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if why := difference(g, w, rtol, atol):
            return f"output {i}: {why}" if len(want) > 1 else why
    return None

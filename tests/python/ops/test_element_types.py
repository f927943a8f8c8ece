"""Element types and shapes of what operators give, by the rules of the tables alone: those that PyTorch gives."""

from __future__ import annotations

import itertools
import re
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import TensorProto

import tonnx

Cli = Callable[..., subprocess.CompletedProcess[str]]

warnings.filterwarnings("ignore", category=DeprecationWarning)

# flags, whole numbers and floats, as rows and without dimensions: their ranks decide which type gives way
TENSORS = {
    "b1": torch.tensor([True, False, True]),
    "i1": torch.tensor([1, 2, 3]),
    "s1": torch.tensor([-1, 2, 3], dtype=torch.int16),
    "u1": torch.tensor([1, 2, 3], dtype=torch.uint8),
    "f1": torch.tensor([0.5, -1.0, 2.0]),
    "d1": torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64),
    "h1": torch.tensor([0.5, -1.0, 2.0], dtype=torch.float16),
    "b0": torch.tensor(True),
    "i0": torch.tensor(2),
    "f0": torch.tensor(0.5),
    "d0": torch.tensor(1.5, dtype=torch.float64),
}
FEW = ["b1", "i1", "f1", "f0", "i0", "d0"]
CHOICES = {
    "Tensor": list(TENSORS),
    "number": ["2", "1.5"],  # a script has no flags among its numbers
    "Optional[str]": ["None", "'floor'", "'trunc'"],
    "int": ["0"],
    "float": ["0.5"],
}
OPTIONS = {"Optional[number]": ["2", "1.5"], "number": ["2", "1.5"], "Optional[Tensor]": ["i1", "f1", "d0"]}
ONNX_TYPES = {
    torch.bool: TensorProto.BOOL, torch.int64: TensorProto.INT64, torch.int32: TensorProto.INT32,
    torch.int16: TensorProto.INT16, torch.int8: TensorProto.INT8, torch.uint8: TensorProto.UINT8,
    torch.float16: TensorProto.FLOAT16, torch.float32: TensorProto.FLOAT, torch.float64: TensorProto.DOUBLE,
}  # fmt: skip


def schema_of(row: str) -> Any:
    operator, _, overload = row.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, operator), overload or "default")._schema


def forms_of(schema: Any) -> Iterator[list[str]]:
    """The arguments of calls: each required one in all its kinds, and each optional one of them in turn."""
    required = [a for a in schema.arguments if not a.has_default_value()]
    if not required or any(str(a.type) not in CHOICES or a.alias_info is not None for a in required):
        return
    choices = [CHOICES[str(a.type)] for a in required]
    if len(required) > 2:
        choices = [FEW if each is CHOICES["Tensor"] else each for each in choices]
    optional = [a for a in schema.arguments if a.has_default_value() and str(a.type) in OPTIONS]
    for chosen in itertools.product(*choices):
        given = [f"{a.name}={text}" if a.kwarg_only else text for a, text in zip(required, chosen, strict=True)]
        yield given
        for option in optional:
            yield from ([*given, f"{option.name}={text}"] for text in OPTIONS[str(option.type)])


def calls_of(row: str) -> list[str]:
    """Those that PyTorch computes, and that give a tensor."""
    found = []
    for arguments in forms_of(schema_of(row)):
        call = f"torch.ops.aten.{row.removeprefix('aten::').partition('.')[0]}({', '.join(arguments)})"
        try:
            result = eval(call, {"torch": torch, **TENSORS})
        except (RuntimeError, IndexError, NotImplementedError, ValueError, TypeError):
            continue
        if isinstance(result, torch.Tensor) and result.dtype in ONNX_TYPES:
            found.append(call)
    return found


def script_of(calls: list[str]) -> Any:
    arguments = ", ".join(f"{name}: Tensor" for name in TENSORS)
    lines = [f"    r{i} = {call}\n" for i, call in enumerate(calls)]
    results = ", ".join(f"r{i}" for i in range(len(calls)))
    module: Any = type("Calls", (torch.jit.ScriptModule,), {"__module__": f"calls_{next(count)}"})()
    module.define(f"def forward(self, {arguments}):\n{''.join(lines)}    return ({results},)\n")
    return module


count = itertools.count()


def differences(calls: list[str], folder: Path) -> list[str]:
    """The calls whose results have another type or shape in the file; those that PyTorch or we refuse are left out."""
    path = folder / "calls.pt"
    script_of(calls).save(str(path))
    types = {str(i): str(t.dtype).removeprefix("torch.") for i, t in enumerate(TENSORS.values())}
    sizes = {str(i): list(t.shape) for i, t in enumerate(TENSORS.values())}
    try:
        want = torch.jit.load(str(path))(*TENSORS.values())  # type: ignore[no-untyped-call]
        tonnx.convert(path, folder / "calls.onnx", input_shapes=sizes, input_types=types)
    except (tonnx.Error, RuntimeError, NotImplementedError) as e:
        if len(calls) > 1:
            middle = len(calls) // 2
            return differences(calls[:middle], folder) + differences(calls[middle:], folder)
        return [] if not isinstance(e, tonnx.Error) or e.kind == "unsupported" else [f"{calls[0]}: {e}"]
    found = []
    for call, result, output in zip(calls, want, onnx.load(folder / "calls.onnx").graph.output, strict=True):
        type_ = output.type.tensor_type
        shape = [d.dim_param or d.dim_value for d in type_.shape.dim]
        if type_.elem_type != ONNX_TYPES[result.dtype]:
            found.append(f"{call}: {TensorProto.DataType.Name(type_.elem_type)} in place of {result.dtype}")
        elif all(isinstance(size, int) for size in shape) and shape != list(result.shape):
            found.append(f"{call}: {shape} in place of {list(result.shape)}")
    return found


PARTS = 8  # so that one test does not take a minute


@pytest.mark.parametrize("part", range(PARTS))
def test_operators_give_the_types_that_pytorch_gives(part: int, cli: Cli, tmp_path: Path) -> None:
    table = cli("ops", "--markdown").stdout.partition("## From PyTorch")[2]
    rows = re.findall(r"\| (aten::[\w.]+) \| yes \|", table)
    found, tried = [], 0
    for row in rows[part::PARTS]:
        if calls := calls_of(row):
            tried += len(calls)
            found += differences(calls, tmp_path)
    assert tried > 500
    assert not found, "\n".join(found[:40])

"""The weights alone: .safetensors and .pth under the names that the .py has."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import safetensors.torch
import torch
from onnx import TensorProto, helper, numpy_helper

import tonnx

Cli = Callable[..., Any]


def network() -> onnx.ModelProto:
    """A convolution, a matrix that nn.Linear holds transposed, and a table that is used twice."""
    rng = np.random.default_rng(0)
    weights = {
        "conv.weight": rng.random((4, 3, 3, 3), dtype=np.float32),
        "conv.bias": rng.random(4, dtype=np.float32),
        "fc.kernel": rng.random((4, 6), dtype=np.float32),
        "shift": rng.random(6, dtype=np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["a"], "conv"),
        helper.make_node("GlobalAveragePool", ["a"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("MatMul", ["c", "fc.kernel"], ["d"], "fc"),
        helper.make_node("Add", ["d", "shift"], ["e"]),
        helper.make_node("Mul", ["e", "shift"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.contiguous().flatten().view(torch.uint8).equal(b.contiguous().flatten().view(torch.uint8))


def load_pth(path: Path, **options: Any) -> dict[str, torch.Tensor]:
    return torch.load(path, weights_only=True, **options)


@pytest.mark.parametrize("mmap", [False, True])
def test_the_same_as_beside_the_code(cli: Cli, tmp_path: Path, mmap: bool) -> None:
    onnx.save(network(), tmp_path / "m.onnx")
    for target in ("code.py", "w.safetensors", "w.pth"):
        done = cli("convert", "m.onnx", target)
        assert done.returncode == 0, done.stderr
    wanted = safetensors.torch.load_file("code.safetensors")
    alone = safetensors.torch.load_file("w.safetensors")
    saved = load_pth(tmp_path / "w.pth", mmap=mmap)
    assert list(saved) == list(tonnx.convert("m.onnx").state_dict()) and saved.keys() == wanted.keys() == alone.keys()
    assert all(same_bits(saved[name], tensor) and same_bits(alone[name], tensor) for name, tensor in wanted.items())
    module = tonnx.convert("m.onnx")
    module.load_state_dict(saved)
    module.load_state_dict(saved, assign=True)
    assert module(torch.rand(1, 3, 8, 8)).shape == (1, 6)


def test_entries_are_aligned_and_whole(cli: Cli, tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "m.onnx")
    assert cli("convert", "m.onnx", "w.pth").returncode == 0
    data = (tmp_path / "w.pth").read_bytes()
    with zipfile.ZipFile("w.pth") as archive:
        assert archive.testzip() is None
        for entry in archive.infolist():
            at = entry.header_offset
            lengths = int.from_bytes(data[at + 26 : at + 28], "little") + int.from_bytes(
                data[at + 28 : at + 30], "little"
            )
            assert (at + 30 + lengths) % 64 == 0, entry.filename


def buffer_model(tensor: TensorProto) -> onnx.ModelProto:
    """The tensor reaches an output as it is, and so stays a buffer."""
    nodes = [helper.make_node("Gather", ["w", "i"], ["y"])]
    inputs = [helper.make_tensor_value_info("i", TensorProto.INT64, [2])]
    outputs = [helper.make_tensor_value_info("y", tensor.data_type, [2, *tensor.dims[1:]])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [tensor])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


DTYPES = {
    "FLOAT": torch.float32,
    "DOUBLE": torch.float64,
    "FLOAT16": torch.float16,
    "BFLOAT16": torch.bfloat16,
    "INT8": torch.int8,
    "INT16": torch.int16,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "UINT8": torch.uint8,
    "UINT16": torch.uint16,
    "UINT32": torch.uint32,
    "UINT64": torch.uint64,
    "BOOL": torch.bool,
    "COMPLEX64": torch.complex64,
    "COMPLEX128": torch.complex128,
}


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("ending", ["pth", "safetensors"])
def test_element_types(cli: Cli, tmp_path: Path, name: str, ending: str) -> None:
    wanted = (torch.arange(12).reshape(6, 2) % (2 if name == "BOOL" else 99)).to(DTYPES[name])
    tensor = TensorProto(name="w", dims=[6, 2], data_type=TensorProto.DataType.Value(name))
    tensor.raw_data = wanted.flatten().view(torch.uint8).numpy().tobytes()
    onnx.save(buffer_model(tensor), tmp_path / "m.onnx")
    done = cli("convert", "m.onnx", f"w.{ending}")
    if name == "COMPLEX128" and ending == "safetensors":
        assert done.returncode == 2 and "no type for complex128" in done.stderr and ".pth" in done.stderr
        assert not (tmp_path / "w.safetensors").exists()
        return
    assert done.returncode == 0, done.stderr
    for mmap in (False, True) if ending == "pth" else (False,):
        path = tmp_path / f"w.{ending}"
        found = load_pth(path, mmap=mmap) if ending == "pth" else safetensors.torch.load_file(path)
        (got,) = found.values()
        assert same_bits(got, wanted)


@pytest.mark.parametrize("name", ["FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ"])
@pytest.mark.parametrize("ending", ["pth", "safetensors"])
def test_float8(cli: Cli, tmp_path: Path, name: str, ending: str) -> None:
    dtype = getattr(torch, "float8_" + name.removeprefix("FLOAT8").lower())
    raw = torch.arange(12, dtype=torch.uint8)
    tensor = TensorProto(
        name="w", dims=[6, 2], data_type=TensorProto.DataType.Value(name), raw_data=raw.numpy().tobytes()
    )
    nodes = [helper.make_node("Reshape", ["w", "shape"], ["y"])]
    inputs = [helper.make_tensor_value_info("shape", TensorProto.INT64, [2])]
    outputs = [helper.make_tensor_value_info("y", tensor.data_type, ["a", "b"])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [tensor])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "m.onnx")
    done = cli("convert", "m.onnx", f"w.{ending}")
    assert done.returncode == 0, done.stderr
    path = tmp_path / f"w.{ending}"
    found = load_pth(path, mmap=True) if ending == "pth" else safetensors.torch.load_file(path)
    assert same_bits(found["w"], raw.reshape(6, 2).view(dtype))


def test_data_that_is_shared(cli: Cli, tmp_path: Path) -> None:
    """Two weights over one run of bytes of an external file, one of them held transposed, share a storage."""
    table = np.random.default_rng(1).random((5, 5), dtype=np.float32)
    (tmp_path / "m.bin").write_bytes(table.tobytes())
    weights = []
    for name in ("emb.weight", "head.kernel"):
        tensor = TensorProto(name=name, dims=[5, 5], data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": "m.bin", "offset": "0", "length": "100"}.items():
            tensor.external_data.add(key=key, value=value)
        weights.append(tensor)
    nodes = [
        helper.make_node("Gather", ["emb.weight", "i"], ["a"], "emb"),
        helper.make_node("MatMul", ["a", "head.kernel"], ["y"], "head"),
    ]
    inputs = [helper.make_tensor_value_info("i", TensorProto.INT64, [3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 5])]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs, weights),
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)],
    )
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    for target in ("w.pth", "w.safetensors"):
        done = cli("convert", "m.onnx", target)
        assert done.returncode == 0, done.stderr
    saved = load_pth(tmp_path / "w.pth")
    apart = safetensors.torch.load_file("w.safetensors")
    assert len(saved) == 2 and saved.keys() == apart.keys()
    assert all(same_bits(saved[name], apart[name]) for name in saved)
    assert len({tensor.untyped_storage().data_ptr() for tensor in saved.values()}) == 1


@pytest.mark.parametrize("ending", ["pth", "safetensors"])
def test_edges(cli: Cli, tmp_path: Path, ending: str) -> None:
    """No weights at all; and weights of a program of PyTorch."""
    relu = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(relu), tmp_path / "relu.onnx")
    linear = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval()
    torch.export.save(torch.export.export(linear, (torch.rand(4, 3),)), tmp_path / "linear.pt2")
    for source, count in (("relu.onnx", 0), ("linear.pt2", 6)):
        path = tmp_path / f"w.{ending}"
        done = cli("convert", source, path)
        assert done.returncode == 0, done.stderr
        found = load_pth(path) if ending == "pth" else safetensors.torch.load_file(path)
        assert len(found) == count


def test_from_python(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "m.onnx")
    tonnx.convert("m.onnx", "w.pth")
    tonnx.convert("m.onnx", "w.safetensors")
    wanted = tonnx.convert("m.onnx").state_dict()
    for found in (load_pth(tmp_path / "w.pth"), safetensors.torch.load_file("w.safetensors")):
        assert found.keys() == wanted.keys() and all(same_bits(found[name], wanted[name]) for name in found)
    with pytest.raises(tonnx.Error, match="tonnx writes"):
        tonnx.convert("m.onnx", "w.bin")

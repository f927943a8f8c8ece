"""Weights that are transposed on the way, by writers and by evaluation, against NumPy: every size of elements, odd sizes, batches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
from conftest import cli_command
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import load_file

import tonnx

RANDOM = np.random.default_rng(3)
FLOATS = {
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(ml_dtypes.bfloat16): TensorProto.BFLOAT16,
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
}


def product(weight: np.ndarray) -> onnx.ModelProto:
    """x @ weight, which nn.Linear holds the other way round."""
    dtype = FLOATS[weight.dtype]
    node = helper.make_node("MatMul", ["x", "onnx::MatMul_7"], ["y"], name="/fc/MatMul")
    x, y = (helper.make_tensor_value_info(n, dtype, ["b", s]) for n, s in zip("xy", weight.shape, strict=True))
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(weight, "onnx::MatMul_7")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (64, 64), (65, 127), (1, 300), (1000, 1), (1537, 1203)], ids=str)
def test_weights_of_linear_layers(tmp_path: Path, dtype: np.dtype, shape: tuple[int, int]) -> None:
    weight = RANDOM.standard_normal(shape).astype(dtype)
    onnx.save(product(weight), tmp_path / "m.onnx")
    for target in ("m.py", "m.pth", "m.pt2"):
        subprocess.run([*cli_command(), "convert", str(tmp_path / "m.onnx"), str(tmp_path / target)], check=True)
    got = {
        "py": load_file(tmp_path / "m.safetensors"),
        "pth": torch.load(tmp_path / "m.pth", weights_only=True),
        "pt2": torch.export.load(tmp_path / "m.pt2").state_dict,
    }
    want = np.ascontiguousarray(weight.T).tobytes()
    for kind, state in got.items():
        assert list(state) == ["fc.weight"], kind
        tensor = state["fc.weight"]
        assert tuple(tensor.shape) == shape[::-1], kind
        assert tensor.contiguous().view(torch.uint8).numpy().tobytes() == want, kind


TYPES = [np.int8, np.int16, ml_dtypes.bfloat16, np.float32, np.int64, np.float64, np.complex128, ml_dtypes.uint4]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize(
    "shape, order",
    [
        ((33, 70), (1, 0)),
        ((300, 260), (1, 0)),
        ((3, 41, 67), (0, 2, 1)),
        ((2, 3, 40, 50), (1, 3, 0, 2)),
        ((40, 3, 50), (2, 1, 0)),
        ((17, 19, 23), (2, 0, 1)),
    ],
    ids=str,
)
def test_transposes_of_constants(dtype: type, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    numbers = RANDOM.integers(0, 16, shape)
    weight = (numbers + 1j * RANDOM.integers(0, 16, shape) if dtype is np.complex128 else numbers).astype(dtype)
    tensor = numpy_helper.from_array(weight, "w")
    nodes = [helper.make_node("Transpose", ["w"], ["t"], perm=order), helper.make_node("Identity", ["t"], ["y"])]
    y = helper.make_tensor_value_info("y", tensor.data_type, [shape[i] for i in order])
    graph = helper.make_graph(nodes, "g", [], [y], [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    simplified, _ = tonnx.simplify(model)
    assert [node.op_type for node in simplified.graph.node] == ["Constant"]
    got = numpy_helper.to_array(simplified.graph.node[0].attribute[0].t)
    assert got.dtype == weight.dtype and got.shape == tuple(shape[i] for i in order)
    assert np.array_equal(got, weight.transpose(order))

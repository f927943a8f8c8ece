"""Large weights that the model casts before it uses them: every number is the one that PyTorch casts it to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import safetensors.torch
import torch
from onnx import TensorProto, helper

import tonnx

TYPES = {
    TensorProto.FLOAT16: torch.float16,
    TensorProto.BFLOAT16: torch.bfloat16,
    TensorProto.FLOAT: torch.float32,
    TensorProto.DOUBLE: torch.float64,
}
ROWS, COLUMNS = 1031, 1024  # more than a megabyte, and no power of two


def numbers(dtype: int) -> torch.Tensor:
    """All patterns of a type of 16 bits; of others those of 16, what lies next to them, and in the middle."""
    codes = torch.arange(ROWS * COLUMNS) % 65536
    if dtype in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        return codes.to(torch.uint16).view(TYPES[dtype]).reshape(ROWS, COLUMNS)
    halves = codes.to(torch.uint16).view(torch.float16).float()
    brains = codes.to(torch.uint16).view(torch.bfloat16).float()
    kind = torch.arange(ROWS * COLUMNS) // 65536
    base = torch.where(kind % 2 == 0, halves, brains)
    unit = torch.where(kind % 2 == 0, 1 << 12, 1 << 15).int()  # half of the last place of the smaller type
    off = torch.where(kind // 2 % 4 == 3, 0, unit + kind // 2 % 4 - 1).int()
    near = (base.view(torch.int32) + off).view(torch.float32)
    return near.to(TYPES[dtype]).reshape(ROWS, COLUMNS)


def bytes_of(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def model_of(weight: torch.Tensor, source: int, target: int, transposed: bool) -> onnx.ModelProto:
    """A product by the weight, and another by the same weight that is cast a second time."""
    raw = TensorProto(name="layer.w", data_type=source, dims=weight.shape, raw_data=bytes_of(weight))
    casts = [helper.make_node("Cast", ["layer.w"], [f"w{i}"], to=target) for i in range(2)]
    options = {"transB": 1} if transposed else {}
    nodes = [helper.make_node("Gemm", ["x", f"w{i}"], [f"y{i}"], **options) for i in range(2)]
    width = weight.shape[1 if transposed else 0]
    inputs = [helper.make_tensor_value_info("x", target, ["n", width])]
    outputs = [helper.make_tensor_value_info(f"y{i}", target, None) for i in range(2)]
    graph = helper.make_graph([*casts, *nodes], "g", inputs, outputs, [raw])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def require_same(got: torch.Tensor, want: torch.Tensor) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    none = torch.isnan(want)
    assert bool((torch.isnan(got) == none).all())
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[want.element_size()]
    same = got.contiguous().view(bits) == want.contiguous().view(bits)
    assert bool((same | none).all())


PAIRS = [(source, target) for source in TYPES for target in TYPES if source != target]


@pytest.mark.parametrize("source, target", PAIRS, ids=[f"{TYPES[a]} to {TYPES[b]}" for a, b in PAIRS])
def test_every_number_is_that_of_pytorch(source: int, target: int, tmp_path: Path) -> None:
    weight = numbers(source)
    want = weight.to(TYPES[target])
    for transposed in (False, True):
        path = tmp_path / f"model_{transposed}.onnx"
        onnx.save(model_of(weight, source, target, transposed), path)
        tonnx.convert(path, path.with_suffix(".py"))
        state = safetensors.torch.load_file(path.with_suffix(".safetensors"))
        assert len(state) >= 1
        for tensor in state.values():
            require_same(tensor, want if tensor.shape == want.shape else want.T)
        for tensor in tonnx.convert(path).state_dict().values():
            require_same(tensor, want if tensor.shape == want.shape else want.T)
        tonnx.simplify(path, tmp_path / "simple.onnx", tensor_size_threshold=1 << 30)
        simple = onnx.load(tmp_path / "simple.onnx")
        if want.element_size() > weight.element_size():
            continue  # a file does not become larger
        assert [node.op_type for node in simple.graph.node] == ["Gemm", "Gemm"]
        assert len(simple.graph.initializer) == 1, "both are the same"
        (initializer,) = simple.graph.initializer
        raw = torch.frombuffer(bytearray(initializer.raw_data), dtype=TYPES[target])
        require_same(raw.reshape(tuple(initializer.dims)), want)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_what_looks_at_them_finds_them(dtype: type, tmp_path: Path) -> None:
    """A cast weight that goes on to be scaled, added to, and moved."""
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(600, 512)).astype(dtype)
    scale = rng.uniform(1, 2, 512).astype(np.float32)
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[n, 600] x, float[n, 512] z) => (float[n, 512] a, float[n, 600] b, float[600, 512] c)
      <float[1] one = {1}> { u = Cast<to = 1>(w) m = MatMul(x, u) a = Mul(m, s) v = Cast<to = 1>(w) t = Transpose<perm = [1, 0]>(v) b = MatMul(z, t)
      k = Cast<to = 1>(w) p = MatMul(x, k) q = Gemm(x, k, s) r = Add(k, one) o = Mul(p, q) e = ReduceSum<keepdims = 0>(o) c = Add(r, e) }"""
    model = onnx.parser.parse_model(text)
    for name, array in (("w", weight), ("s", scale)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, tmp_path / "model.onnx")
    x, z = (torch.from_numpy(rng.normal(size=(2, size)).astype(np.float32)) for size in (600, 512))
    w, s = torch.from_numpy(weight).float(), torch.from_numpy(scale)
    want = ((x @ w) * s, z @ w.T, w + 1 + ((x @ w) * (x @ w + s)).sum())
    tonnx.simplify(tmp_path / "model.onnx", tmp_path / "simple.onnx", tensor_size_threshold=1 << 30)
    if dtype == np.float64:
        assert "Cast" not in {node.op_type for node in onnx.load(tmp_path / "simple.onnx").graph.node}
    for name in ("model.onnx", "simple.onnx"):
        got = tonnx.convert(tmp_path / name)(x, z)
        for one, other in zip(got, want, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)

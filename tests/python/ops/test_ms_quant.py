"""com.microsoft's operators on quantised numbers: the very integers that ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from checks import check, one_node, source
from models import whole_numbers
from onnx import TensorProto, helper

import tonnx

RNG = np.random.default_rng(0)
DOMAIN = "com.microsoft"
TYPES = [np.uint8, np.int8]


def integers(dtype: type, *shape: int) -> np.ndarray:
    return whole_numbers(RNG, dtype, shape)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def numbers(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def check_both(op: str, inputs: dict[str, np.ndarray | None], data: tuple[str, ...], **options: Any) -> None:
    """With scales and zero points as constants, and as inputs."""
    fixed = tuple(name for name in inputs if name not in data)
    for constant in (fixed, ()):
        model = typed(op, inputs, constant, **options)
        compare(model, {name: a for name, a in inputs.items() if a is not None and name not in constant})


def typed(op: str, inputs: dict[str, np.ndarray | None], constant: tuple[str, ...], **options: Any) -> onnx.ModelProto:
    """ONNX Runtime wants the outputs of its own operators declared."""
    dtype = options.pop("result", None)
    softmax = options.pop("of_opset", None)  # the attribute `opset`
    model = one_node(op, inputs, 17, constant, domain=DOMAIN, **options)
    if softmax is not None:
        model.graph.node[0].attribute.append(helper.make_attribute("opset", softmax))
    first = next(array for array in inputs.values() if array is not None)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype) if dtype else first.dtype)
    for output in model.graph.output:
        output.type.tensor_type.elem_type = kind
    return model


def compare(model: onnx.ModelProto, feeds: dict[str, np.ndarray], tolerance: float = 1e-5) -> torch.nn.Module:
    from checks import expected

    values = expected(model, feeds, False)
    module = tonnx.convert(model)
    given = module(*(torch.from_numpy(np.array(array)) for array in feeds.values()))
    given = given if isinstance(given, (tuple, list)) else [given]
    for got, want in zip(given, values, strict=True):
        got = got.detach().numpy()
        assert got.dtype == want.dtype and got.shape == want.shape
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)
    return module


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_binary(op: str, dtype: type) -> None:
    for zeros in [(3, 7, 12), (0, 0, 0)]:
        inputs = {
            "a": integers(dtype, 4, 33),
            "a_scale": scale(0.031),
            "a_zero": np.array(zeros[0], dtype),
            "b": integers(dtype, 33),
            "b_scale": scale(0.017),
            "b_zero": np.array(zeros[1], dtype),
            "c_scale": scale(0.043 if op == "QLinearAdd" else 0.09),
            "c_zero": np.array(zeros[2], dtype),
        }
        fixed = tuple(name for name in inputs if name not in ("a", "b"))
        compare(typed(op, inputs, fixed), {"a": inputs["a"], "b": inputs["b"]})
        compare(typed(op, inputs, fixed, dynamic=("a",)), {"a": inputs["a"], "b": inputs["b"]})
        compare(typed(op, inputs, (*fixed, "b")), {"a": inputs["a"]})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("op", "options"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearLeakyRelu", {})]
)
def test_activations(op: str, options: dict, dtype: type) -> None:
    x = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
    inputs = {"x": x, "xs": scale(0.05), "xz": np.array(9, dtype), "ys": scale(0.0043), "yz": np.array(5, dtype)}
    check_both(op, inputs, ("x",), **options)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "options",
    [
        {"of_opset": 13},
        {"of_opset": 13, "axis": 1},
        {"of_opset": 12},
        {"of_opset": 12, "axis": 1},
        {"of_opset": 12, "axis": 2},
    ],
)
def test_softmax(options: dict, dtype: type) -> None:
    zero = 0 if dtype is np.uint8 else -128
    inputs = {"x": integers(dtype, 3, 4, 5), "xs": scale(0.11), "xz": np.array(3, dtype)}
    inputs |= {"ys": scale(0.00392), "yz": np.array(zero, dtype)}
    check_both("QLinearSoftmax", inputs, ("x",), **options)


POOLS = [
    {"kernel_shape": [2, 2]},
    {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"},
]


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("options", POOLS)
def test_average_pool(options: dict, dtype: type, last: int) -> None:
    x = integers(dtype, 2, 7, 9, 3) if last else integers(dtype, 2, 3, 7, 9)
    inputs = {"x": x, "xs": scale(0.0517), "xz": np.array(9, dtype), "ys": scale(0.031), "yz": np.array(5, dtype)}
    check_both("QLinearAveragePool", inputs, ("x",), channels_last=last, **options)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_global_average_pool(dtype: type, last: int) -> None:
    x = integers(dtype, 2, 7, 9, 5) if last else integers(dtype, 2, 5, 7, 9)
    inputs = {"x": x, "xs": scale(0.05), "xz": np.array(9, dtype), "ys": scale(0.003), "yz": np.array(5, dtype)}
    check_both("QLinearGlobalAveragePool", inputs, ("x",), channels_last=last)


def test_reduce_mean() -> None:
    x = integers(np.uint8, 2, 3, 4)
    inputs = {"x": x, "xs": scale(0.5), "xz": np.array(9, np.uint8), "ys": scale(0.25), "yz": np.array(5, np.uint8)}
    for axes, keep in [([1], 1), ([0, 2], 0)]:
        mean = ((x.astype(np.float32) - 9) * 0.5).mean(tuple(axes), keepdims=bool(keep))
        want = np.clip(np.rint(mean / 0.25) + 5, 0, 255).astype(np.uint8)
        check(
            "QLinearReduceMean",
            inputs,
            17,
            ("xs", "xz", "ys", "yz"),
            values=[want],
            domain=DOMAIN,
            axes=axes,
            keepdims=keep,
        )


@pytest.mark.parametrize("dtype", TYPES)
def test_concat(dtype: type) -> None:
    inputs: dict[str, np.ndarray | None] = {"ys": scale(0.05), "yz": np.array(9, dtype)}
    for i, (s, z) in enumerate([(0.05, 9), (0.02, 3), (0.1, 20)]):
        inputs |= {f"x{i}": integers(dtype, 2, i + 1, 3), f"s{i}": scale(s), f"z{i}": np.array(z, dtype)}
    fixed = tuple(name for name in inputs if not name.startswith("x"))
    model = typed("QLinearConcat", inputs, fixed, axis=1, result=dtype)
    compare(model, {name: inputs[name] for name in ("x0", "x1", "x2")})


def test_where() -> None:
    inputs = {"c": np.array([[True], [False]])}
    for name, s, z in [("x", 0.05, 9), ("y", 0.02, 3)]:
        inputs |= {name: integers(np.uint8, 2, 3), f"{name}s": scale(s), f"{name}z": np.array(z, np.uint8)}
    inputs |= {"zs": scale(0.05), "zz": np.array(9, np.uint8)}
    fixed = tuple(name for name in inputs if name not in ("c", "x", "y"))
    compare(typed("QLinearWhere", inputs, fixed, result=np.uint8), {name: inputs[name] for name in ("c", "x", "y")})


@pytest.mark.parametrize("last", [0, 1])
def test_conv(last: int) -> None:
    x = integers(np.uint8, 1, 6, 7, 4) if last else integers(np.uint8, 1, 4, 6, 7)
    inputs = {"x": x, "xs": scale(0.0123), "xz": np.array(7, np.uint8), "w": integers(np.int8, 3, 4, 3, 3)}
    inputs |= {"ws": scale(0.02), "wz": np.array(0, np.int8), "ys": scale(0.37), "yz": np.array(11, np.uint8)}
    inputs |= {"b": RNG.integers(-999, 999, 3).astype(np.int32)}
    fixed = tuple(name for name in inputs if name != "x")
    compare(typed("QLinearConv", inputs, fixed, channels_last=last, pads=[1, 1, 1, 1]), {"x": x})


def test_nhwc_max_pool() -> None:
    x = integers(np.uint8, 1, 6, 7, 4)
    compare(typed("NhwcMaxPool", {"x": x}, (), kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 0, 1]), {"x": x})


def test_quantize_and_back() -> None:
    x = numbers(3, 4)
    inputs = {"x": x, "s": scale(0.01), "z": np.array(300, np.uint16)}
    compare(typed("QuantizeLinear", inputs, ("s", "z"), result=np.uint16), {"x": x})
    scales = {"x": integers(np.int8, 3, 4), "s": np.array([0.1, 0.2, 0.3], np.float32), "z": integers(np.int8, 3)}
    compare(typed("DequantizeLinear", scales, ("s", "z"), axis=0, result=np.float32), {"x": scales["x"]})


@pytest.mark.parametrize("b_type", TYPES)
@pytest.mark.parametrize("columns", [False, True])
def test_mat_mul_integer_to_float(b_type: type, columns: bool) -> None:
    b_scale = numbers(5) if columns else scale(0.02)
    b_zero = integers(b_type, 5) if columns else np.array(3, b_type)
    inputs = {"a": integers(np.uint8, 2, 3, 20), "b": integers(b_type, 20, 5), "as": scale(0.01), "bs": b_scale}
    inputs |= {"az": np.array(7, np.uint8), "bz": b_zero, "bias": numbers(5)}
    check_both("MatMulIntegerToFloat", inputs, ("a",), result=np.float32)
    short = {name: inputs[name] for name in ("a", "b", "as", "bs")}
    check_both("MatMulIntegerToFloat", short, ("a",), result=np.float32)


@pytest.mark.parametrize("b_type", TYPES)
def test_dynamic_quantize_mat_mul(b_type: type) -> None:
    inputs = {"a": numbers(2, 3, 20), "b": integers(b_type, 20, 5), "bs": scale(0.02), "bz": np.array(3, b_type)}
    inputs |= {"bias": numbers(5)}
    fixed = tuple(name for name in inputs if name != "a")
    compare(typed("DynamicQuantizeMatMul", inputs, fixed), {"a": inputs["a"]})
    compare(typed("DynamicQuantizeMatMul", {k: inputs[k] for k in ("a", "b", "bs")}, ("b", "bs")), {"a": inputs["a"]})


def test_mat_mul_integer_16() -> None:
    inputs = {"a": integers(np.int16, 3, 1), "b": integers(np.int16, 1, 5)}
    compare(typed("MatMulInteger16", inputs, (), result=np.int32), inputs)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_q_gemm(trans_a: int, trans_b: int, quantized: bool) -> None:
    a, b = integers(np.uint8, 3, 20), integers(np.int8, 20, 5)
    inputs = {"a": a.T.copy() if trans_a else a, "as": scale(0.01), "az": np.array(7, np.uint8)}
    inputs |= {"b": b.T.copy() if trans_b else b, "bs": scale(0.02), "bz": np.array(0, np.int8)}
    inputs |= {"c": RNG.integers(-9999, 9999, 5).astype(np.int32)}
    if quantized:
        inputs |= {"ys": scale(0.1), "yz": np.array(120, np.uint8)}
    fixed = tuple(name for name in inputs if name != "a")
    options = {"transA": trans_a, "transB": trans_b, "alpha": 0.5, "result": np.uint8 if quantized else np.float32}
    compare(typed("QGemm", inputs, fixed, **options), {"a": inputs["a"]})


@pytest.mark.parametrize("zeros", [None, "packed", "float"])
@pytest.mark.parametrize(("bits", "k", "block"), [(4, 64, 32), (4, 50, 16), (8, 64, 32), (2, 64, 32)])
def test_mat_mul_n_bits(bits: int, k: int, block: int, zeros: str | None) -> None:
    rows, blocks = 6, -(-k // block)
    inputs: dict[str, np.ndarray | None] = {
        "a": numbers(2, 3, k),
        "b": integers(np.uint8, rows, blocks, block * bits // 8),
        "scales": numbers(rows, blocks),
    }
    if zeros == "packed":
        inputs["zeros"] = integers(np.uint8, rows, -(-blocks * bits // 8))
    if zeros == "float":
        inputs["zeros"] = numbers(rows, blocks) + 2 ** (bits - 1)
    if zeros == "float" and bits != 4:
        pytest.skip("ONNX Runtime has it for 4 bits only")
    fixed = tuple(name for name in inputs if name != "a")
    module = compare(
        typed("MatMulNBits", inputs, fixed, K=k, N=rows, bits=bits, block_size=block), {"a": inputs["a"]}, 1e-4
    )
    assert [b.dtype for b in module.buffers()][0] == torch.uint8


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("bits", "columns"), [(4, 64), (8, 64), (4, 48), (2, 64)])
def test_gather_block_quantized(bits: int, columns: int, zeros: bool) -> None:
    blocks = columns // 16
    inputs = {
        "data": integers(np.uint8, 7, columns * bits // 8),
        "indices": np.array([[0, 6, 3], [1, 1, 2]], np.int64),
        "scales": numbers(7, blocks),
    }
    if zeros:
        inputs["zeros"] = integers(np.uint8, 7, -(-blocks * bits // 8))
    fixed = tuple(name for name in inputs if name != "indices")
    options = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1, "result": np.float32}
    compare(typed("GatherBlockQuantized", inputs, fixed, **options), {"indices": inputs["indices"]})


def test_gather_of_small_integers() -> None:
    data = RNG.integers(-8, 8, (7, 32)).astype(helper.tensor_dtype_to_np_dtype(TensorProto.INT4))
    inputs = {"data": data, "indices": np.array([[0, 6], [1, 1]], np.int64), "scales": numbers(7, 2)}
    model = typed("GatherBlockQuantized", inputs, ("data", "scales"), block_size=16, quantize_axis=1, result=np.float32)
    compare(model, {"indices": inputs["indices"]})


def test_weights_stay_packed_and_read_well(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = {"a": numbers(2, 64), "b": integers(np.uint8, 6, 2, 16), "scales": numbers(6, 2)}
    text = source("MatMulNBits", inputs, 17, ("b", "scales"), domain=DOMAIN, K=64, N=6, block_size=32)
    assert "torch.stack([self.b & 15, self.b >> 4], -1).flatten(-2)" in text.replace("\n", "")


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("w_type", TYPES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_dynamic_quantize_lstm(direction: str, w_type: type, per_channel: bool) -> None:
    steps, batch, features, hidden = 4, 1, 8, 16
    count = 2 if direction == "bidirectional" else 1
    sizes = (count, 4 * hidden) if per_channel else (count,)
    inputs = {
        "x": numbers(steps, batch, features),
        "w": integers(w_type, count, features, 4 * hidden),
        "r": integers(w_type, count, hidden, 4 * hidden),
        "b": numbers(count, 8 * hidden),
        "lens": None,
        "h": numbers(count, batch, hidden),
        "c": numbers(count, batch, hidden),
        "p": None,
        "ws": np.full(sizes, 0.01, np.float32),
        "wz": np.zeros(sizes, w_type) if per_channel else np.full(sizes, 3, w_type),
        "rs": np.full(sizes, 0.008, np.float32),
        "rz": np.zeros(sizes, w_type) if per_channel else np.full(sizes, 2, w_type),
    }
    fixed = ("w", "r", "b", "ws", "wz", "rs", "rz")
    model = typed("DynamicQuantizeLSTM", inputs, fixed, direction=direction, hidden_size=hidden, outputs=3)
    compare(model, {name: inputs[name] for name in ("x", "h", "c")}, 1e-4)

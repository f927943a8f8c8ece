"""Quantised layers through PyTorch and back: they are ONNX's own quantised operators again, with the values they had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from models import floats, make_model, runtime_run, whole_numbers
from onnx import TensorProto, helper, numpy_helper
from round_trip_checks import check, ops

import tonnx

RNG = np.random.default_rng(11)
BYTES = {"int8": (TensorProto.INT8, np.int8), "uint8": (TensorProto.UINT8, np.uint8)}


def array(*shape: int, scale: float = 2.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def constant(name: str, value: object, dtype: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value, dtype), name)


def whole(name: str, kind: str, *shape: int) -> onnx.TensorProto:
    """Weights, of seven bits around their zero point (models.whole_numbers says why)."""
    values = whole_numbers(RNG, np.int8, shape).astype(np.int16) + (0 if kind == "int8" else 128)
    return numpy_helper.from_array(values.astype(BYTES[kind][1]), name)


def byte_values(kind: str, *shape: int) -> np.ndarray:
    low = -128 if kind == "int8" else 0
    return RNG.integers(low, low + 256, shape).astype(BYTES[kind][1])


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_dynamic_quantization_and_a_product(kind: str) -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["p"]),
        helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["scale"]),
        helper.make_node("Mul", ["f", "scale"], ["y"]),
    ]
    zero = constant("wz", 3 if kind == "int8" else 131, BYTES[kind][1])
    weights = [whole("w", kind, 12, 5), zero, constant("ws", 0.01)]
    model = make_model(nodes, [floats("x", "batch", 7, 12)], [floats("y", "batch", 7, 5)], weights)
    zeros = np.zeros((1, 7, 12), np.float32)
    back = check(model, {"x": array(2, 7, 12)}, {"x": np.abs(array(1, 7, 12))}, {"x": zeros}, atol=1e-4)
    found = ops(back.graph)
    assert found["DynamicQuantizeLinear"] == 1 and found["MatMulInteger"] == 1
    assert sum(found.values()) <= len(nodes)
    assert any(
        i.data_type in (TensorProto.INT8, TensorProto.UINT8) and list(i.dims) == [12, 5] for i in back.graph.initializer
    )


def test_dynamic_quantization_and_a_convolution() -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("ConvInteger", ["q", "w", "z", "wz"], ["p"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    weights = [whole("w", "uint8", 4, 3, 3, 3), constant("wz", 120, np.uint8)]
    model = make_model(nodes, [floats("x", 1, 3, 8, 8)], [floats("y", 1, 4, 4, 4)], weights)
    back = check(model, {"x": array(1, 3, 8, 8)}, atol=1e-3)
    found = ops(back.graph)
    assert found["DynamicQuantizeLinear"] == 1 and found["ConvInteger"] == 1
    assert sum(found.values()) <= len(nodes)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_quantised_product(kind: str, per_channel: bool) -> None:
    dtype = BYTES[kind][1]
    scale = np.linspace(0.002, 0.01, 5) if per_channel else 0.004
    zeros = np.zeros(5) if per_channel else 0
    nodes = [helper.make_node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])]
    constants = [
        constant("xs", 0.05),
        constant("xz", 7, dtype),
        whole("w", "int8", 12, 5),
        constant("ws", scale),
        constant("wz", zeros, np.int8),
        constant("ys", 0.03),
        constant("yz", 9, dtype),
    ]
    types = BYTES[kind][0]
    x = helper.make_tensor_value_info("x", types, [3, 12])
    y = helper.make_tensor_value_info("y", types, [3, 5])
    model = make_model(nodes, [x], [y], constants)
    back = check(model, {"x": byte_values(kind, 3, 12)}, atol=0)
    assert ops(back.graph) == {"QLinearMatMul": 1}


@pytest.mark.parametrize("per_channel", [False, True])
def test_quantised_convolution_with_a_bias(per_channel: bool) -> None:
    scale = np.linspace(0.001, 0.004, 4) if per_channel else 0.002
    zeros = np.zeros(4) if per_channel else 0
    inputs = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    nodes = [helper.make_node("QLinearConv", inputs, ["y"], pads=[1, 1, 0, 0], strides=[1, 2])]
    constants = [
        constant("xs", 0.05),
        constant("xz", 100, np.uint8),
        whole("w", "int8", 4, 3, 3, 3),
        constant("ws", scale),
        constant("wz", zeros, np.int8),
        constant("ys", 0.05),
        constant("yz", 131, np.uint8),
        constant("b", RNG.integers(-9000, 9000, 4), np.int32),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 3, 9, 9])
    y = helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 4, 8, 4])
    model = make_model(nodes, [x], [y], constants)
    back = check(model, {"x": byte_values("uint8", 1, 3, 9, 9)}, atol=0)
    assert ops(back.graph) == {"QLinearConv": 1}


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_quantised_and_back_around_other_operators(kind: str, per_channel: bool) -> None:
    scale = np.linspace(0.02, 0.06, 6) if per_channel else 0.04
    zero = np.zeros(6) if per_channel else 5
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
        helper.make_node("Sigmoid", ["d"], ["y"]),
    ]
    constants = [constant("s", scale), constant("z", zero, BYTES[kind][1])]
    model = make_model(nodes, [floats("x", "batch", 6, 4)], [floats("y", "batch", 6, 4)], constants)
    x = array(2, 6, 4)
    x[0, 0, 0], x[0, 0, 1] = np.inf, -np.inf
    back = check(model, {"x": x})
    assert ops(back.graph) == {"QuantizeLinear": 1, "DequantizeLinear": 1, "Sigmoid": 1}


def test_what_a_network_of_pytorch_quantises_itself() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            low, high = x.aminmax()
            low, high = low.clamp(max=0), high.clamp(min=0)
            step = (high - low) / 255
            scale = step.masked_fill(step == 0, 1)
            zero = (-low / scale).round().clamp(0, 255).to(torch.uint8)
            quantised = ((x / scale).round() + zero).clamp(0, 255)
            return (quantised - zero) * scale

    x = torch.randn(3, 4)
    with torch.no_grad():
        wanted = Net()(x).numpy()
    for opset in (11, 18):
        tonnx.export(Net(), (x,), "net.onnx", opset_version=opset)
        net = onnx.load("net.onnx")
        assert ops(net.graph)["DynamicQuantizeLinear"] == 1
        np.testing.assert_allclose(runtime_run(net, {net.graph.input[0].name: x.numpy()})[0], wanted, atol=1e-6)


def test_sums_that_floats_round_stay_floats() -> None:
    """Whole numbers as floats are integers only as far as floats hold their sums."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.full((2000, 2), 127.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(torch.float32) @ self.w

    tonnx.export(Net(), (torch.ones(2, 2000, dtype=torch.uint8),), "net.onnx")
    assert "MatMulInteger" not in ops(onnx.load("net.onnx").graph)


def test_pixels_are_filtered_as_floats() -> None:
    class Sobel(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            kernel = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
            self.kernel = torch.nn.Parameter(kernel.reshape(1, 1, 3, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.conv2d(x.to(torch.float32), self.kernel)

    tonnx.export(Sobel(), (torch.zeros(1, 1, 8, 8, dtype=torch.uint8),), "net.onnx")
    assert ops(onnx.load("net.onnx").graph) == {"Cast": 1, "Conv": 1}


STEP, OTHER_STEP = ["s", "z"], ["t", "u"]
MICROSOFT: dict[str, tuple[list[str], dict[str, object]]] = {
    "QLinearAdd": (["q", *STEP, "q", *STEP, *OTHER_STEP], {}),
    "QLinearMul": (["q", *STEP, "q", *STEP, *OTHER_STEP], {}),
    "QLinearSigmoid": (["q", *STEP, *OTHER_STEP], {}),
    "QLinearLeakyRelu": (["q", *STEP, *OTHER_STEP], {"alpha": 0.1}),
    "QLinearConcat": ([*OTHER_STEP, "q", *STEP, "q", *STEP], {"axis": 1}),
    "QLinearGlobalAveragePool": (["q", *STEP, *OTHER_STEP], {}),
    "QLinearAveragePool": (["q", *STEP, *OTHER_STEP], {"kernel_shape": [2, 2], "strides": [2, 2]}),
}
# these round once the zero point has been added, which QuantizeLinear does not
ROUND_LATER = ("QLinearAdd", "QLinearMul", "QLinearAveragePool")


@pytest.mark.parametrize("op", MICROSOFT)
@pytest.mark.parametrize("zero", [100, 101])
def test_quantised_operators_of_microsoft(op: str, zero: int) -> None:
    inputs, attributes = MICROSOFT[op]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node(op, inputs, ["r"], domain="com.microsoft", **attributes),
        helper.make_node("DequantizeLinear", ["r", "t", "u"], ["y"]),
    ]
    weights = [constant("s", 0.02), constant("z", 120, np.uint8), constant("t", 0.03), constant("u", zero, np.uint8)]
    result = floats("y", None, None, None, None)
    model = make_model(nodes, [floats("x", 1, 4, 6, 6)], [result], weights, domains=[("com.microsoft", 1)])
    back = check(model, *({"x": array(1, 4, 6, 6, scale=scale)} for scale in (0.5, 1.0, 3.0)))
    found = ops(back.graph)
    assert op in ROUND_LATER or (found["QuantizeLinear"] >= 2 and found["DequantizeLinear"] >= 1)


QDQ = {
    "QLinearAdd": "Add",
    "QLinearMul": "Mul",
    "QLinearAveragePool": "AveragePool",
    "QLinearGlobalAveragePool": "GlobalAveragePool",
}


def of_bytes(
    op: str, kind: str, scales: tuple[float, ...], zeros: tuple[int, ...]
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one sum, product or average, and its inputs."""
    element, dtype = BYTES[kind]
    is_pool, is_global = "Pool" in op, "Global" in op
    inputs = ["a", "as", "az"] if is_pool else ["a", "as", "az", "b", "bs", "bz"]
    window = {"channels_last": 0} if is_global else {"kernel_shape": [3, 2], "strides": [1, 2]} if is_pool else {}
    node = helper.make_node(op, [*inputs, "cs", "cz"], ["y"], domain="com.microsoft", **window)
    shape = [2, 3, 8, 6]
    after = [2, 3, 1, 1] if is_global else [2, 3, 6, 3] if is_pool else shape
    given = [name for name in ("a", "b") if name in inputs]
    constants = [
        part
        for name, scale, zero in zip("abc", scales, zeros, strict=True)
        if name in (*given, "c")
        for part in (constant(f"{name}s", scale), constant(f"{name}z", zero, dtype))
    ]
    model = make_model(
        [node],
        [helper.make_tensor_value_info(name, element, shape) for name in given],
        [helper.make_tensor_value_info("y", element, after)],
        constants,
        domains=[("com.microsoft", 1)],
    )
    return model, {name: byte_values(kind, *shape) for name in given}


ROUND = [(0.05, 0.03, 0.08), (0.013, 0.171, 0.2), (1 / 3, 0.7, 1.1)]
STEPS = [(scales, zeros) for scales in ROUND for zeros in ((7, 9, 12), (0, 0, 0), (100, 3, 90))]


@pytest.mark.parametrize("scales, zeros", [*STEPS, ((0.013731, 0.171307, 0.201971), (7, 9, 11))])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("op", QDQ)
def test_quantised_sums_products_and_averages(
    op: str, kind: str, scales: tuple[float, ...], zeros: tuple[int, ...]
) -> None:
    """They come back as the plain operator between DequantizeLinear and QuantizeLinear, which ONNX Runtime fuses."""
    model, feeds = of_bytes(op, kind, scales, zeros)
    back = check(model, feeds, atol=1 if "Pool" in op else 0)
    assert ops(back.graph) == {QDQ[op]: 1, "DequantizeLinear": len(feeds), "QuantizeLinear": 1}


# 61001364: of two integers that are as near Round takes the even one, which is another one before an odd zero point is added
@pytest.mark.parametrize("zeros", [(28, 75, 101), (3, 7, 40), (2, 9, 121)])
@pytest.mark.parametrize("scales", [(0.25, 0.25, 0.5), (0.5, 0.1, 1.0), (0.125, 0.125, 1.0)])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_halves_are_rounded_as_before(
    op: str, scales: tuple[float, ...], zeros: tuple[int, ...], tmp_path: Path
) -> None:
    model, feeds = of_bytes(op, "uint8", scales, zeros)
    tonnx.convert(model, tmp_path / "m.pt2")
    tonnx.convert(tmp_path / "m.pt2", tmp_path / "back.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    back = onnxruntime.InferenceSession((tmp_path / "back.onnx").read_bytes(), options)
    np.testing.assert_array_equal(back.run(None, feeds)[0], runtime_run(model, feeds)[0])

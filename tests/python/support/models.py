"""Small ONNX models that several test files need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ELEMENT_TYPES = [t for t in TensorProto.DataType.values() if t not in (TensorProto.UNDEFINED, TensorProto.STRING)]


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    opset: int = 18,
    domains: Sequence[tuple[str, int]] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="pytorch")


def floats(name: str, *shape: int | str | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def random_tensor(rng: np.random.Generator, name: str, *shape: int, scale: float = 0.3) -> onnx.TensorProto:
    return numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(np.float32), name)


def tensor_of_every_encoding(element_type: int) -> list[onnx.TensorProto]:
    """The same values as raw data and in the type's own field, with an odd count so that packed types have a rest."""
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    values = np.array([0, 1, 1, 0, 1, 1, 1]) if dtype.name in ("int2", "uint2") else np.array([0, 1, 3, 2, 1, 4, 6])
    if dtype.name.startswith("int"):
        values = values - (2 if dtype.name == "int2" else 4)
    elif dtype.kind == "c":
        values = values * (1 + 2j) / 3
    elif dtype.name in ("float16", "float32", "float64", "bfloat16"):
        values = values / -3
    values = values.astype(dtype).reshape(7, 1)
    raw = numpy_helper.from_array(values, "raw")
    if "float" in dtype.name and dtype.itemsize == 1:  # the field holds the bits: two values of four, or one of more
        bits = raw.raw_data if "float4" in dtype.name else values.tobytes()
        typed = onnx.TensorProto(name="typed", data_type=element_type, dims=[7, 1], int32_data=bits)
    else:
        typed = helper.make_tensor("typed", element_type, [7, 1], values.ravel().tolist())
    assert numpy_helper.to_array(typed).tobytes() == numpy_helper.to_array(raw).tobytes() == values.tobytes()
    return [raw, typed]


def module_of(path: str) -> str:
    """The module that an exporter's node path means: /layer1/layer1.0/conv1 is layer1.0.conv1."""
    parts = path.strip("/").split("/")
    return ".".join(p for p, after in zip(parts, [*parts[1:], ""], strict=True) if not after.startswith(f"{p}."))


def residual_net() -> onnx.ModelProto:
    """A convolutional net as an exporter of PyTorch models writes it: names of modules, some weights without."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def conv(path: str, x: str, channels: tuple[int, int], kernel: int, **attributes: object) -> str:
        prefix = module_of(path)
        out, inside = channels
        weights.append(random_tensor(rng, f"{prefix}.weight", out, inside, kernel, kernel))
        weights.append(random_tensor(rng, f"{prefix}.bias", out))
        y = f"{path}/Conv_output_0"
        names = [x, weights[-2].name, weights[-1].name]
        nodes.append(helper.make_node("Conv", names, [y], f"{path}/Conv", kernel_shape=[kernel, kernel], **attributes))
        return y

    def norm(path: str, x: str, channels: int) -> str:
        names = [x]
        for kind in ("weight", "bias", "running_mean", "running_var"):
            values = (
                rng.uniform(0.5, 1.5, channels) if kind == "running_var" else rng.standard_normal(channels) * 0.3 + 0.5
            )
            weights.append(numpy_helper.from_array(values.astype(np.float32), f"{module_of(path)}.{kind}"))
            names.append(weights[-1].name)
        y = f"{path}/BatchNormalization_output_0"
        nodes.append(helper.make_node("BatchNormalization", names, [y], f"{path}/BatchNormalization", epsilon=1e-3))
        return y

    def unary(op: str, path: str, x: str, **attributes: object) -> str:
        y = f"{path}/{op}_output_0"
        nodes.append(helper.make_node(op, [x], [y], f"{path}/{op}", **attributes))
        return y

    x = conv("/conv1", "image", (8, 3), 3, pads=[0, 0, 1, 1], strides=[2, 2])  # asymmetric
    x = unary("Relu", "/relu", norm("/bn1", x, 8))
    for i in range(2):
        block = f"/layer1/layer1.{i}"
        y = conv(f"{block}/conv1", x, (8, 8), 3, pads=[1, 1, 1, 1])
        y = unary("Relu", f"{block}/relu", norm(f"{block}/bn1", y, 8))
        y = conv(f"{block}/conv2", y, (8, 8), 3, pads=[1, 1, 1, 1])
        nodes.append(helper.make_node("Add", [y, x], [f"{block}/Add_output_0"], f"{block}/Add"))
        x = unary("Relu", f"{block}/relu_1", f"{block}/Add_output_0")
    x = unary("GlobalAveragePool", "/avgpool", x)
    x = unary("Flatten", "", x, axis=1)
    weights.append(random_tensor(rng, "onnx::Gemm_57", 5, 8))
    weights.append(random_tensor(rng, "fc.bias", 5))
    nodes.append(helper.make_node("Gemm", [x, "onnx::Gemm_57", "fc.bias"], ["scores"], "/fc/Gemm", transB=1))
    model = make_model(nodes, [floats("image", "batch", 3, 16, 16)], [floats("scores", "batch", 5)], weights)
    onnx.checker.check_model(model, full_check=True)
    return model


def shared_weight_net() -> onnx.ModelProto:
    """One matrix and one bias that two linear layers share."""
    rng = np.random.default_rng(1)
    weights = [random_tensor(rng, "shared.weight", 6, 6), random_tensor(rng, "shared.bias", 6)]
    nodes = [
        helper.make_node("Gemm", ["x", "shared.weight", "shared.bias"], ["a"], "/first/Gemm", transB=1),
        helper.make_node("Tanh", ["a"], ["b"], "/act/Tanh"),
        helper.make_node("Gemm", ["b", "shared.weight", "shared.bias"], ["y"], "/second/Gemm", transB=1),
    ]
    return make_model(nodes, [floats("x", "batch", 6)], [floats("y", "batch", 6)], weights)


def dynamic_flatten_net() -> onnx.ModelProto:
    """x.reshape(x.size(0), -1) as tensors: Shape, Gather, Unsqueeze, Concat, Reshape; then a linear layer."""
    rng = np.random.default_rng(2)
    constants = [
        numpy_helper.from_array(np.array(0, np.int64), "zero"),
        numpy_helper.from_array(np.array([0], np.int64), "axes"),
        numpy_helper.from_array(np.array([-1], np.int64), "rest"),
        random_tensor(rng, "onnx::MatMul_12", 12, 4),
    ]
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], "/Shape"),
        helper.make_node("Gather", ["shape", "zero"], ["batch_size"], "/Gather"),
        helper.make_node("Unsqueeze", ["batch_size", "axes"], ["batch_1"], "/Unsqueeze"),
        helper.make_node("Concat", ["batch_1", "rest"], ["new_shape"], "/Concat", axis=0),
        helper.make_node("Reshape", ["x", "new_shape"], ["flat"], "/Reshape"),
        helper.make_node("MatMul", ["flat", "onnx::MatMul_12"], ["y"], "/classifier/MatMul"),
    ]
    return make_model(nodes, [floats("x", "batch", 3, 4)], [floats("y", "batch", 4)], constants)


def two_in_two_out_net() -> onnx.ModelProto:
    """Names that are no Python names, or are taken, and two inputs and outputs."""
    rng = np.random.default_rng(3)
    nodes = [
        helper.make_node("Mul", ["class", "scale"], ["1"], "self"),
        helper.make_node("Add", ["1", "input.2"], ["torch"], "forward"),
        helper.make_node("Sub", ["1", "input.2"], ["out:1"], "1st/Sub"),
    ]
    inputs = [floats("class", "batch", 3), floats("input.2", "batch", 3)]
    return make_model(
        nodes, inputs, [floats("torch", "batch", 3), floats("out:1", "batch", 3)], [random_tensor(rng, "scale", 3)]
    )


NETS = {f.__name__: f for f in (residual_net, shared_weight_net, dynamic_flatten_net, two_in_two_out_net)}


def feeds_of(model: onnx.ModelProto, batch: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    known = {i.name for i in model.graph.initializer}
    return {
        i.name: rng.standard_normal([d.dim_value or batch for d in i.type.tensor_type.shape.dim]).astype(np.float32)
        for i in model.graph.input
        if i.name not in known
    }


def whole_numbers(rng: np.random.Generator, dtype: type, shape: Sequence[int]) -> np.ndarray:
    """Numbers of all that the type has; of int8 those of seven bits.

    On processors without VNNI, ONNX Runtime adds products of uint8 and int8 in 16 bits, which saturate beyond them.
    """
    low, high = (-64, 63) if dtype is np.int8 else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return rng.integers(low, high + 1, shape).astype(dtype)


def runtime_run(model: onnx.ModelProto | Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime computes: the oracle of the tests."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)

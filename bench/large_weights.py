"""Models of many weights that must change on the way: transposed, turned into another type, or scaled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDTHS = {TensorProto.BFLOAT16: 2, TensorProto.FLOAT16: 2, TensorProto.FLOAT: 4}
SIDE = 4096
KINDS = {
    "transposed": TensorProto.BFLOAT16,  # nn.Linear holds the weight of a MatMul the other way round
    "cast": TensorProto.FLOAT16,  # to float32 before it is used
    "scaled": TensorProto.BFLOAT16,  # a factor for each channel follows, which simplify makes a part of the weight
}


def numbers(count: int, dtype: int, seed: int) -> bytes:
    """Finite numbers of about one in a type of 16 bits, or pairs of them, which are floats of 32."""
    codes = np.random.default_rng(seed).integers(0, 1 << 16, count * WIDTHS[dtype] // 2, dtype=np.uint16)
    return ((codes & 0x80FF) | 0x3C00).tobytes()


def build(kind: str, megabytes: int) -> onnx.ModelProto:
    """A chain of products, each with a weight of its own."""
    dtype = KINDS[kind]
    computed = TensorProto.FLOAT if kind == "cast" else dtype
    nodes, weights, x = [], [], "x"

    def node(op: str, *inputs: str, **attributes: int) -> str:
        name = f"{op.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [name], name=f"/layer.{i}/{name}", **attributes))
        return name

    def weight(name: str, *dims: int) -> str:
        data = numbers(int(np.prod(dims)), dtype, len(weights))
        weights.append(TensorProto(name=name, data_type=dtype, dims=dims, raw_data=data))
        return name

    for i in range(max(1, megabytes * 1_000_000 // (SIDE * SIDE * WIDTHS[dtype]))):
        w = weight(f"layer.{i}.linear.w", SIDE, SIDE)
        x = node("MatMul", x, node("Cast", w, to=computed) if kind == "cast" else w)
        if kind == "scaled":
            x = node("Mul", x, weight(f"layer.{i}.scale", SIDE))
        x = node("Relu", x)
    inputs = [helper.make_tensor_value_info("x", computed, ["batch", SIDE])]
    outputs = [helper.make_tensor_value_info(x, computed, ["batch", SIDE])]
    graph = helper.make_graph(nodes, kind, inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def ensure(folder: Path, kind: str, megabytes: int) -> Path:
    """The path of the model in the folder, made on the first call."""
    path = folder / f"{kind}_{megabytes}.onnx"
    if not path.exists():
        part = path.with_suffix(".part")
        onnx.save(build(kind, megabytes), part)
        part.rename(path)
    return path

"""Replaces products of uint8 and int8, which saturate in ONNX Runtime on some processors, by products of uint8."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any, NamedTuple

from tonnx._runtime import open_session
from tonnx._verify.nodes import all_nodes

# by domain and operator: the indices of the zero point of the input, the weights, and the zero point of the weights
_PRODUCTS = {
    ("", "MatMulInteger"): (2, 1, 3),
    ("", "ConvInteger"): (2, 1, 3),
    ("", "QLinearMatMul"): (2, 3, 5),
    ("", "QLinearConv"): (2, 3, 5),
    ("com.microsoft", "MatMulIntegerToFloat"): (4, 1, 5),
    ("com.microsoft", "DynamicQuantizeMatMul"): (None, 1, 3),
    ("com.microsoft", "QGemm"): (2, 3, 5),
}


class Product(NamedTuple):
    node: Any
    place: int  # the index of the zero point of the weights
    weights: str
    zero: str  # empty if there is none


@functools.cache
def saturates() -> bool:
    """Whether products of uint8 and int8 are summed in 16 bits here, as on processors without VNNI."""
    import numpy as np
    from onnx import TensorProto, helper

    kinds = {"a": (TensorProto.UINT8, [1, 8]), "b": (TensorProto.INT8, [8, 1])}
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()]
    output = helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "probe", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    feeds = {"a": np.full((1, 8), 255, np.uint8), "b": np.full((8, 1), 127, np.int8)}
    (result,) = open_session(model.SerializeToString()).run(None, feeds)
    return bool(result.item() != 8 * 255 * 127)


def without_saturation(model: Any, folder: str) -> bool:
    """Makes int8 weights of such products uint8, if products saturate here; returns whether there were any.

    Weights and zero points are increased by 128: the sums are the same, and the kernels for uint8 do not saturate.
    """
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    found = _products(graph, tensors)
    if not found or not saturates():
        return False
    _make_unsigned(graph, tensors, found, folder)
    return True


def _products(graph: Any, tensors: dict[str, Any]) -> list[Product]:
    from onnx import TensorProto

    dynamic = {node.output[2] for node in all_nodes(graph) if node.op_type == "DynamicQuantizeLinear"}
    found: list[Product] = []
    for node in all_nodes(graph):
        if (places := _PRODUCTS.get((node.domain, node.op_type))) is None:
            continue
        zero, weights, weights_zero = ("" if i is None or i >= len(node.input) else node.input[i] for i in places)
        is_unsigned = zero in dynamic or places[0] is None or _is(tensors.get(zero), TensorProto.UINT8)
        is_known = not weights_zero or _is(tensors.get(weights_zero), TensorProto.INT8)
        if is_unsigned and is_known and _is(tensors.get(weights), TensorProto.INT8):
            found.append(Product(node, places[2], weights, weights_zero))
    return found


def _make_unsigned(graph: Any, tensors: dict[str, Any], products: list[Product], folder: str) -> None:
    from onnx import numpy_helper
    from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

    uses = Counter(name for node in all_nodes(graph) for name in node.input)
    ours = Counter(product.weights for product in products)
    changed = {weights for weights, count in ours.items() if count == uses[weights]}

    def unsigned(tensor: Any, name: str) -> Any:
        if uses_external_data(tensor):
            load_external_data_for_tensor(tensor, folder)
        return numpy_helper.from_array(numpy_helper.to_array(tensor).view("uint8") ^ 0x80, name)

    for name in changed:
        tensors[name].CopyFrom(unsigned(tensors[name], name))
    for node, place, weights, zero in products:
        if weights not in changed:
            continue
        name = f"{zero}/uint8"
        if name not in tensors:
            made = unsigned(tensors[zero], name) if zero else numpy_helper.from_array(_middle(), name)
            graph.initializer.append(made)
            tensors[name] = made
        node.input.extend([""] * (place + 1 - len(node.input)))
        node.input[place] = name


def _is(tensor: Any, kind: int) -> bool:
    return tensor is not None and tensor.data_type == kind


def _middle() -> Any:
    import numpy as np

    return np.array(128, np.uint8)

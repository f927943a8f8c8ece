"""Whether a difference is one that rounding explains: the model is run again, each inexact result changed a little."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from drawing import session
from onnx import helper, numpy_helper

# what every runtime gives to the last bit, because the element is chosen or IEEE says how it is rounded
EXACT = frozenset(
    """Abs Add And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil CenterCropPad Clip Compress
    Concat Constant ConstantOfShape DepthToSpace DequantizeLinear Div Dropout Equal Expand EyeLike Flatten Floor Gather
    GatherElements GatherND GlobalMaxPool Greater GreaterOrEqual Identity IsInf IsNaN LeakyRelu Less LessOrEqual Max MaxPool
    MaxUnpool Min Mul Neg NonZero Not OneHot Or PRelu Pad ReduceMax ReduceMin Relu Reshape ReverseSequence Round ScatterElements
    ScatterND Shape Shrink Sign Size Slice SpaceToDepth Split Squeeze Sub ThresholdedRelu Tile TopK Transpose Trilu Unique
    Unsqueeze Where Xor QuantizeLinear TensorScatter""".split()
)
NUMPY_FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")
EPSILON = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 5e-7, np.dtype(np.float64): 1e-12}


def captured(node: onnx.NodeProto) -> set[str]:
    """The names that a node takes, those in graphs inside it included."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                names |= captured(inner)
            names |= {o.name for o in attribute.g.output}
    return names


def changed(array: np.ndarray, inputs: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """A result as another order of sums could have given it."""
    epsilon = EPSILON.get(array.dtype)
    if epsilon is None:
        return array
    largest = 0.0
    for one in (array, *inputs):
        if one.dtype.kind == "f":
            finite = np.abs(one[np.isfinite(one)].astype(np.float64))
            largest = max(largest, float(finite.max(initial=0)))
    if largest > float(np.finfo(array.dtype).max) ** 0.5:  # squares and sums overflow in one order, and not in another
        return np.full_like(array, np.nan)
    with np.errstate(all="ignore"):
        signs = rng.choice([-1.0, 1.0], array.shape)
        after = array.astype(np.float64) * (1 + epsilon * signs) + epsilon * signs * min(largest, 1e6)
        if rng.random() < 0.5:  # what is nearly nothing may be nothing
            after = np.where(np.abs(array) <= 2 * epsilon * min(largest, 1e6), 0.0, after)
        return after.astype(array.dtype)


def typed(name: str, value: ort.OrtValue) -> onnx.ValueInfoProto:
    """What a value is, for a model of one node that takes it."""
    text = value.data_type()
    kind = text[text.rindex("(") + 1 :].rstrip(")")
    element = {"float": "FLOAT", "double": "DOUBLE"}.get(kind) or kind.upper()
    number = onnx.TensorProto.DataType.Value(element)
    if text.startswith("seq"):
        return helper.make_tensor_sequence_value_info(name, number, None)
    return helper.make_tensor_value_info(name, number, value.shape())  # Resize takes open sizes for none


def noisy(value: ort.OrtValue, inputs: list[np.ndarray], rng: np.random.Generator) -> ort.OrtValue:
    if value.data_type() not in NUMPY_FLOATS:
        return value
    return ort.OrtValue.ortvalue_from_numpy(np.asarray(changed(value.numpy(), inputs, rng)))


def noisy_run(model: onnx.ModelProto, feeds: dict[str, np.ndarray], seed: int) -> list[np.ndarray]:
    """Runs node by node, with noise behind each that is not exact."""
    rng = np.random.default_rng(seed)
    known = {
        name: ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(a).reshape(a.shape)) for name, a in feeds.items()
    }
    stored = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type in ("Optional", "OptionalGetElement") and node.input and node.input[0] in known:
            known[node.output[0]] = known[node.input[0]]  # the runtime gives what an optional holds as it is
            continue
        if node.op_type == "OptionalHasElement" and node.input and node.input[0] in known:
            known[node.output[0]] = ort.OrtValue.ortvalue_from_numpy(np.array(True))
            continue
        names = captured(node)
        inputs = {n: known[n] for n in names if n in known}
        infos = [typed(n, value) for n, value in inputs.items()]
        results = [o for o in node.output if o]
        outputs = [onnx.ValueInfoProto(name=o) for o in results]
        graph = helper.make_graph([node], "one", infos, outputs, [stored[n] for n in names if n in stored])
        one = helper.make_model(graph, opset_imports=model.opset_import, ir_version=10)
        if any(a.HasField("g") for a in node.attribute):  # what is inside rounds at each step
            inputs = {n: noisy(value, [], rng) for n, value in inputs.items()}
        found = session(one.SerializeToString()).run_with_ort_values(None, inputs)
        arrays = [v.numpy() for v in inputs.values() if v.data_type() in NUMPY_FLOATS]
        arrays += [numpy_helper.to_array(stored[n]) for n in names if n in stored]
        for name, value in zip(results, found, strict=True):
            known[name] = value if node.op_type in EXACT else noisy(value, arrays, rng)
    return [known[o.name].numpy() for o in model.graph.output]


def explained_by_rounding(
    model: onnx.ModelProto,
    feeds: tuple[dict[str, np.ndarray], ...],
    want: list[list[np.ndarray]],
    outputs: set[int],
    difference: Callable[[Any, np.ndarray], str | None],
) -> bool:
    """Whether each of these outputs changes visibly under noise of the size of rounding."""
    if all(node.op_type in EXACT for node in model.graph.node):
        return False
    moved: set[int] = set()
    try:
        for seed in range(12):
            for given, wanted in zip(feeds, want, strict=True):
                got = noisy_run(model, given, seed)
                moved |= {i for i in outputs if difference(got[i], wanted[i])}
    except Exception:
        return False
    return outputs <= moved

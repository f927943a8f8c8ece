"""Models of one node: built at an opset, converted, and compared with ONNX Runtime or ONNX's reference evaluator."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import torch
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tonnx

IR_VERSION = 10


def one_node(
    op: str,
    inputs: dict[str, np.ndarray | None],
    opset: int,
    constant: tuple[str, ...] = (),
    dynamic: bool | tuple[str, ...] = False,
    outputs: int = 1,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node; `constant` names inputs that are initializers, `dynamic` those of open sizes, or all.

    `op` may have a domain in front: `com.microsoft::Gelu`.
    """
    domain, _, op = op.rpartition("::")
    domain = attributes.pop("domain", domain)
    names = [name if array is not None else "" for name, array in inputs.items()]
    results = [f"out{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    declared, initializers = [], []
    for name, array in inputs.items():
        if array is None:
            continue
        if name in constant:
            initializers.append(numpy_helper.from_array(array, name))
            continue
        is_open = dynamic is True or (dynamic and name in dynamic)
        shape = [f"{name}{i}" for i in range(array.ndim)] if is_open else array.shape
        declared.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
    empty = [onnx.ValueInfoProto(name=name) for name in results]
    graph = helper.make_graph([node], "one_node", declared, empty, initializers)
    imports = [helper.make_opsetid("", opset)]
    if node.domain:
        imports.append(helper.make_opsetid(node.domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def expected(model: onnx.ModelProto, feeds: dict[str, np.ndarray], reference: bool) -> list[np.ndarray]:
    if reference:
        return ReferenceEvaluator(model).run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


@functools.cache
def room_of(size: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(size, np.uint8), "room")


def folded(model: onnx.ModelProto, room: int = 1 << 20) -> dict[str, np.ndarray]:
    """The constants of the model once it is simplified: the outputs too, where nothing is left to compute."""
    roomy = onnx.ModelProto()  # no model becomes much larger than it was: this one has so many bytes to lose
    roomy.CopyFrom(model)
    roomy.graph.initializer.append(room_of(room))
    simple, _ = tonnx.simplify(roomy)
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in simple.graph.initializer}
    for node in simple.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name != "sparse_value":
            (attribute,) = node.attribute
            value = helper.get_attribute_value(attribute)
            dtype = np.int64 if attribute.name.startswith("value_int") else np.float32
            found[node.output[0]] = (
                numpy_helper.to_array(value) if attribute.name == "value" else np.asarray(value, dtype)
            )
    return found


def is_integer(model: onnx.ModelProto, arrays: dict[str, np.ndarray], values: list[Any]) -> bool:
    return np.asarray(values[0]).dtype.kind in "iu"


def is_large(model: onnx.ModelProto, arrays: dict[str, np.ndarray], values: list[Any]) -> bool:
    return np.asarray(values[0]).size > 3300


def always(*_: object) -> bool:
    return True


def attribute_of(model: onnx.ModelProto, name: str, default: Any = None) -> Any:
    found = [helper.get_attribute_value(each) for each in model.graph.node[0].attribute if each.name == name]
    return found[0] if found else default


# Which nodes of constants are left to the runtime. All others must be folded.
LEFT = {
    "Constant": lambda model, arrays, values: model.graph.node[0].attribute[0].name == "sparse_value",
    "ConvTranspose": is_large,
    "DFT": lambda model, arrays, values: attribute_of(model, "inverse", 0) == 1,
    "DynamicQuantizeLinear": lambda model, arrays, values: not arrays["x"].any(),  # its scale is 0
    "GRU": lambda model, arrays, values: model.opset_import[0].version == 1,
    "Gemm": is_integer,
    "GridSample": lambda model, arrays, values: np.asarray(values[0]).size == 0,
    "MelWeightMatrix": is_large,
    "Pad": lambda model, arrays, values: is_large(model, arrays, values) or (arrays["pads"] < 0).any(),
    "QLinearMatMul": lambda model, arrays, values: arrays["b_scale"].ndim == 1,
    "ReduceL2": is_integer,
    "ReduceLogSum": is_integer,
    "ReduceLogSumExp": is_integer,
    "ReduceMean": is_integer,
    "Resize": lambda model, arrays, values: (
        is_large(model, arrays, values)
        or is_integer(model, arrays, values)
        and attribute_of(model, "mode", b"nearest") != b"nearest"
    ),
    "Shrink": lambda model, arrays, values: values[0].dtype in (np.int64, np.uint64),
    "TfIdfVectorizer": lambda model, arrays, values: attribute_of(model, "weights") is not None,
    "com.microsoft::CDist": always,
    "com.microsoft::CropAndResize": always,
    "com.microsoft::Inverse": always,
    "com.microsoft::QEmbedLayerNormalization": always,
    "com.microsoft::QLinearReduceMean": always,
    "com.microsoft::UnfoldTensor": always,
}


def is_left(model: onnx.ModelProto, feeds: dict[str, np.ndarray], values: list[Any]) -> bool:
    node = model.graph.node[0]
    rule = LEFT.get(f"{node.domain}::{node.op_type}" if node.domain else node.op_type)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return rule is not None and bool(rule(model, constants | feeds, values))


def check_folded(model: onnx.ModelProto, feeds: dict[str, np.ndarray], values: list[Any], tolerance: float) -> None:
    """What is computed of constants while simplifying is what a runtime gives; and it is computed."""
    constant = onnx.ModelProto()
    constant.CopyFrom(model)
    del constant.graph.input[:]
    constant.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in feeds.items())
    needed = sum(np.asarray(value).nbytes for value in values)
    found = folded(constant, 1 << 12 if needed < 512 else 1 << 20)  # small ones are folded into any file
    for output, want in zip(model.graph.output, values, strict=True):
        if output.name not in found:
            assert is_left(model, feeds, values), f"{model.graph.node[0].op_type} is not folded"
            continue
        got, want = found[output.name], np.asarray(want)
        assert got.dtype == want.dtype and got.shape == want.shape
        if want.dtype.kind in "fc":
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)


def check(
    op: str,
    inputs: dict[str, np.ndarray | None],
    opset: int,
    constant: tuple[str, ...] = (),
    reference: bool = False,
    values: list[np.ndarray] | None = None,
    tolerance: float = 1e-5,
    **options: Any,
) -> torch.nn.Module:
    """Converts the node, and compares what it gives with ONNX Runtime, the reference evaluator, or `values`."""
    model = one_node(op, inputs, opset, constant, **options)
    feeds = {name: array for name, array in inputs.items() if array is not None and name not in constant}
    if values is None:
        values = expected(model, feeds, reference)
    if not options.get("dynamic"):
        check_folded(model, feeds, values, tolerance)
    module = tonnx.convert(model)
    given = module(*(torch.from_numpy(np.array(array)) for array in feeds.values()))
    given = given if isinstance(given, (tuple, list)) else [given]
    assert len(given) == len(values)
    for got, want in zip(given, values, strict=True):
        got, want = got.detach().numpy(), np.asarray(want)
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)
    return module


def source(
    op: str, inputs: dict[str, np.ndarray | None], opset: int, constant: tuple[str, ...] = (), **options: Any
) -> str:
    """The body of the forward method that the node turns into."""
    return forward_of(one_node(op, inputs, opset, constant, **options))


def check_opset(
    op: str,
    inputs: dict[str, np.ndarray | None],
    opset: int,
    to: int,
    constant: tuple[str, ...] = (),
    reference: bool = False,
    **options: Any,
) -> onnx.ModelProto:
    """Brings the model of one node to another opset, and compares what both give."""
    model = one_node(op, inputs, opset, constant, **options)
    feeds = {name: array for name, array in inputs.items() if array is not None and name not in constant}
    values = expected(model, feeds, reference)
    for output, value in zip(model.graph.output, values, strict=True):
        dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        output.CopyFrom(helper.make_tensor_value_info(output.name, dtype, value.shape))
    tonnx.convert(model, "changed.onnx", opset=to)
    changed = onnx.load("changed.onnx")
    onnx.checker.check_model(changed)
    assert changed.opset_import[0].version == to
    for got, want in zip(expected(changed, feeds, reference), values, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return changed


def refuses_opset(op: str, inputs: dict[str, np.ndarray | None], opset: int, to: int, **options: Any) -> str:
    """What is said when the model of one node cannot be brought to another opset."""
    try:
        tonnx.convert(one_node(op, inputs, opset, **options), "changed.onnx", opset=to)
    except tonnx.Error as error:
        return str(error)
    raise AssertionError(f"{op} went from opset {opset} to {to}")


def parsed(text: str, opset: int = 18) -> onnx.ModelProto:
    """A model from ONNX's own text form, without its first lines."""
    return onnx.parser.parse_model(f'<ir_version: {IR_VERSION}, opset_import: ["": {opset}]>\n{text}')


def as_torch(value: Any) -> Any:
    """Arrays, lists of them and None as a module takes them."""
    if value is None:
        return None
    return [as_torch(item) for item in value] if isinstance(value, list) else torch.from_numpy(np.array(value))


def assert_same(got: Any, want: Any, tolerance: float = 1e-5) -> None:
    """The same type, shape and values; sequences element by element."""
    if want is None:
        assert got is None
    elif isinstance(want, list):
        assert isinstance(got, (list, tuple)) and len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert_same(one, other, tolerance)
    else:
        want = np.asarray(want)
        assert tuple(got.shape) == want.shape
        assert got.detach().numpy().dtype == want.dtype
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance)


def check_model(
    model: onnx.ModelProto,
    feeds: dict[str, Any],
    reference: bool = False,
    module: Any = None,
    values: list[Any] | None = None,
) -> torch.nn.Module:
    """Converts a model, or takes the `module`, and compares it with ONNX Runtime or the reference evaluator."""
    if values is None:
        values = expected(model, feeds, reference)
    module = tonnx.convert(model) if module is None else module
    given = module(*map(as_torch, feeds.values()))
    assert_same(list(given) if len(values) > 1 else [given], list(values))
    return module


def forward_of(model: onnx.ModelProto) -> str:
    """The body of the forward method that a model turns into."""
    tonnx.convert(model, "model.py")
    text = Path("model.py").read_text()
    return text[text.index("def forward") : text.index("    @classmethod")].strip()


def assert_formatted(models: list[onnx.ModelProto]) -> None:
    """The code of all models is as ruff would format it, and it finds no fault with it."""
    for i, model in enumerate(models):
        tonnx.convert(model, f"model{i}.py")
    for command in (
        ["format", "--check", "--diff", "--line-length", "120"],
        ["check", "--select", "E,F,I,W", "--line-length", "120"],
    ):
        ruff = [sys.executable, "-m", "ruff", *command, "--isolated", "."]
        done = subprocess.run(ruff, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

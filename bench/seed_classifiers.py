"""Full-size versions of the nine light classifiers in the onnx package, with seeded random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
AFTER_LOGITS = {"Softmax", "Reshape", "Flatten", "Dropout", "GlobalAveragePool", "Relu"}


def session_of(model: onnx.ModelProto | Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def example_input(session: onnxruntime.InferenceSession) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(session.get_inputs()[0].shape).astype(np.float32)


def build(name: str) -> onnx.ModelProto:
    """The light model with every ConstantOfShape weight replaced by an initializer."""
    model = onnx.load(Path(onnx.__file__).parent / f"backend/test/data/light/light_{name}.onnx")
    graph = model.graph
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    makers = [n for n in graph.node if n.op_type == "ConstantOfShape" and n.input[0] in shapes]
    near_one = set()  # scales and variances
    for node in graph.node:
        near_one.update(
            {"BatchNormalization": [*node.input[1:2], *node.input[4:5]], "Mul": node.input[1:]}.get(node.op_type, [])
        )
    rng = np.random.default_rng(42)
    weights = []
    for node in makers:
        shape, weight = shapes[node.input[0]], node.output[0]
        if weight in near_one:
            values = rng.uniform(0.75, 1.25, shape)
        elif len(shape) > 1:
            values = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        else:
            values = rng.normal(0, 0.05, shape)
        weights.append(numpy_helper.from_array(values.astype(np.float32), weight))
    made = {n.output[0] for n in makers}
    nodes = [n for n in graph.node if not (n.output and n.output[0] in made)]
    used = {i for n in nodes for i in n.input}
    kept = [t for t in graph.initializer if t.name in used]
    constant = made | {t.name for t in kept}
    inputs = [i for i in graph.input if i.name in used - constant]
    for field, values in (("node", nodes), ("initializer", kept + weights), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)
    model.ir_version = max(model.ir_version, 4)  # from there on an initializer need not be an input
    soften(model)
    return model


def soften(model: onnx.ModelProto) -> None:
    """Scales the last layer to logits of spread one: a saturated softmax would hide every error before it."""
    graph = model.graph
    maker = {o: n for n in graph.node for o in n.output}
    node = maker[graph.output[0].name]
    while node.op_type in AFTER_LOGITS:
        node = maker[node.input[0]]
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.append(onnx.ValueInfoProto(name=node.output[0]))
    session = session_of(probe)
    (logits,) = session.run([node.output[0]], {session.get_inputs()[0].name: example_input(session)})
    for tensor in graph.initializer:
        if tensor.name in node.input[1:]:
            scaled = numpy_helper.to_array(tensor) / np.float32(max(logits.std(), 1e-6))
            tensor.raw_data = scaled.astype(np.float32).tobytes()


def ensure(folder: Path, name: str) -> Path:
    """The path of the model in the folder, made on the first call."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(build(name).SerializeToString())
        part.rename(path)
    return path

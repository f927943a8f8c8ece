"""From .onnx to .onnx at the same opset: nothing is lost, weights stay bit-equal, ONNX Runtime sees the same model."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from models import ELEMENT_TYPES, make_model, tensor_of_every_encoding
from node_tests import node_tests, numpy_value
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tonnx

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
TYPED_FIELDS = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


def plain_tensor(tensor: onnx.TensorProto) -> None:
    """Puts the values of a tensor in one form, so that raw and typed fields of equal content compare equal."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return
    if tensor.data_type == TensorProto.STRING or tensor.data_type == TensorProto.UNDEFINED:
        return
    content = numpy_helper.to_array(tensor).tobytes()
    for field in TYPED_FIELDS:
        tensor.ClearField(field)
    tensor.raw_data = content
    tensor.ClearField("data_location")  # its default may be written or left out


def plain(message: Any) -> Any:
    """Applies plain_tensor to every tensor inside of a message, and returns the message."""
    if isinstance(message, onnx.TensorProto):
        plain_tensor(message)
        return message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in [value] if hasattr(value, "ListFields") else value:
            if hasattr(part, "ListFields"):
                plain(part)
    return message


def assert_same_model(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """Compares part by part, so that a failure names the first node or tensor that differs."""
    before, after = plain(copy_of(before)), plain(copy_of(after))
    for part in ("node", "initializer", "sparse_initializer", "input", "output", "value_info"):
        old, new = getattr(before.graph, part), getattr(after.graph, part)
        assert len(new) == len(old), f"{part}: {len(new)} instead of {len(old)}"
        for o, n in zip(old, new, strict=True):
            assert n == o, f"{part} changed from\n{o}to\n{n}"
    assert sorted(f.name for f in after.functions) == sorted(f.name for f in before.functions)
    assert after == before


def copy_of(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def is_checked(model: onnx.ModelProto | str) -> bool:
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError):
        return False
    return True


def runtime_outputs(path: Path, feeds: list[Any]) -> list[Any] | None:
    """What ONNX Runtime computes, or None where it cannot run the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        return session.run(None, {n: x for n, x in zip(names, feeds, strict=True) if x is not None})
    except Exception:
        return None


def reference_outputs(path: Path, feeds: list[Any]) -> list[Any]:
    """What ONNX's own evaluator computes, slowly, of models that ONNX Runtime has no kernels for."""
    evaluator = ReferenceEvaluator(str(path))
    return evaluator.run(None, dict(zip(evaluator.input_names, feeds, strict=True)))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if not isinstance(a, np.ndarray):
        return a == b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return (a == b).all() if a.dtype.kind in "OSU" else a.tobytes() == b.tobytes()


def form(value: Any) -> Any:
    return (value.dtype, value.shape) if isinstance(value, np.ndarray) else type(value)


def is_random(model: onnx.ModelProto) -> bool:
    """Whether two runs give other numbers: all that draws is at the top of a model or of its functions."""
    nodes = [node for part in (model.graph, *model.functions) for node in part.node]
    return any(node.op_type in ("Bernoulli", "Multinomial", "Dropout") or "Random" in node.op_type for node in nodes)


def assert_same_outputs(before: Path, after: Path, feeds: list[Any]) -> None:
    outputs_of = runtime_outputs if runtime_outputs(before, feeds) is not None else reference_outputs
    want, got = outputs_of(before, feeds), outputs_of(after, feeds)
    assert got is not None, "ONNX Runtime runs the model before, but not after"
    if is_random(onnx.load(before)):
        assert [form(w) for w in want] == [form(g) for g in got]
    else:
        assert same(want, got), "the outputs differ"


def round_trip(model: onnx.ModelProto, folder: Path, feeds: list[Any] | None = None) -> onnx.ModelProto:
    source, target = folder / "before.onnx", folder / "after.onnx"
    source.write_bytes(model.SerializeToString())
    tonnx.convert(str(source), str(target))
    assert sorted(p.name for p in folder.iterdir()) == ["after.onnx", "before.onnx"]
    after = onnx.load(target)
    assert_same_model(model, after)
    if is_checked(model):
        onnx.checker.check_model(after)
    if feeds is not None:
        assert_same_outputs(source, target, feeds)
    return after


def nobody_runs(name: str) -> bool:
    """Pictures need a package that decodes them, and an optional input that is absent has no name."""
    return name.startswith("test_image_decoder_") or name == "test_optional_has_element_empty_optional_input"


@pytest.mark.parametrize("name", sorted(node_tests()))
def test_node_test_model(name: str, tmp_path: Path) -> None:
    case = node_tests()[name]
    inputs, _ = case.data_sets[0]
    round_trip(case.model, tmp_path, None if nobody_runs(name) else [numpy_value(x) for x in inputs])


@pytest.mark.parametrize("path", sorted(LIGHT.glob("light_*.onnx")), ids=lambda p: p.stem)
def test_light_model(path: Path, tmp_path: Path) -> None:
    model = onnx.load(path)
    initializers = {i.name for i in model.graph.initializer}
    shape = next(
        [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input if i.name not in initializers
    )
    feed = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    feeds = {"light_vgg19": None}.get(path.stem, [feed])  # its dense layers take half a gigabyte
    round_trip(model, tmp_path, feeds)


@pytest.mark.parametrize("element_type", ELEMENT_TYPES, ids=lambda t: TensorProto.DataType.Name(t).lower())
def test_initializers_keep_their_bits(element_type: int, tmp_path: Path) -> None:
    tensors = tensor_of_every_encoding(element_type)
    nodes = [helper.make_node("Identity", [t.name], [f"{t.name}_out"]) for t in tensors]
    outputs = [helper.make_tensor_value_info(f"{t.name}_out", element_type, list(t.dims)) for t in tensors]
    round_trip(make_model(nodes, [], outputs, tensors), tmp_path, [])


@functools.cache
def everything() -> onnx.ModelProto:
    """One model with each part of the format that a small graph seldom has."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", None])
    sequence = helper.make_value_info("seq", helper.make_sequence_type_proto(x.type))
    optional = helper.make_value_info("opt", helper.make_optional_type_proto(helper.make_sequence_type_proto(x.type)))
    mapping = helper.make_value_info("table", helper.make_map_type_proto(TensorProto.STRING, x.type))
    weight = numpy_helper.from_array(np.arange(16, dtype=np.float32).reshape(4, 4), "weight")
    weight.doc_string = "a square"
    weight.metadata_props.add(key="origin", value="tests")
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([1.5, -2], np.float32), "sparse_weight"),
        numpy_helper.from_array(np.array([2, 7], np.int64), "sparse_indices"),
        [4, 4],
    )
    captured = helper.make_node("Add", ["x", "weight_row"], ["then_out"])  # both from the graph outside
    branch_out = helper.make_tensor_value_info("then_out", TensorProto.FLOAT, None)
    other_out = helper.make_tensor_value_info("else_out", TensorProto.FLOAT, None)
    then_graph = helper.make_graph([captured], "then_graph", [], [branch_out], doc_string="adds")
    else_graph = helper.make_graph([helper.make_node("Neg", ["x"], ["else_out"])], "else_graph", [], [other_out])
    function = helper.make_function(
        "my.functions",
        "Scale",
        ["a"],
        ["b"],
        [
            helper.make_node("Constant", [], ["factor"], value_float=2.0),
            helper.make_node("Mul", ["a", "factor"], ["b"]),
        ],
        [helper.make_opsetid("", 18)],
        attributes=["unused"],
        doc_string="doubles",
    )
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["p"], "/fc/MatMul", doc_string="first"),
        helper.make_node("MatMul", ["p", "sparse_weight"], ["q"], "/sparse/MatMul"),
        helper.make_node("Scale", ["q"], ["r"], "/scale/Scale", domain="my.functions"),
        helper.make_node("If", ["flag"], ["s"], "/if/If", then_branch=then_graph, else_branch=else_graph),
        helper.make_node("Clip", ["s", "", "high"], ["t"], "/clip/Clip"),
        helper.make_node(
            "Unknown", ["t", ""], ["u", "", "v"], "odd", domain="made.up", a=1, b=[1.5], c="s", d=["x", "y"]
        ),
        helper.make_node("Add", ["r", "u"], ["y"], "/add/Add"),
    ]
    nodes[0].metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'fc']")
    initializers = [
        weight,
        numpy_helper.from_array(np.ones(4, np.float32), "weight_row"),
        numpy_helper.from_array(np.float32(6), "high"),
        numpy_helper.from_array(np.array(True), "flag"),
        numpy_helper.from_array(np.zeros((0, 3), np.float32), "empty"),
        helper.make_tensor("words", TensorProto.STRING, [2], [b"one", b"\xff\x00two"]),
    ]
    also_input = helper.make_tensor_value_info("high", TensorProto.FLOAT, [])
    graph = helper.make_graph(
        nodes, "everything", [x, also_input, sequence, optional, mapping], [y], initializers, "a graph",
        value_info=[helper.make_tensor_value_info("p", TensorProto.FLOAT, ["batch", 4])], sparse_initializer=[sparse],
    )  # fmt: skip
    note = graph.quantization_annotation.add(tensor_name="p")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="high")
    graph.input[0].type.denotation = "IMAGE"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    graph.metadata_props.add(key="graph key", value="graph value")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my.functions", 1), helper.make_opsetid("made.up", 3)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10, producer_name="someone")
    model.producer_version, model.domain, model.model_version, model.doc_string = "1.2", "org.example", 7, "a model"
    helper.set_model_props(model, {"license": "none", "author": "ünï"})
    return model


def test_every_part_of_the_format_is_kept(tmp_path: Path) -> None:
    round_trip(everything(), tmp_path)


def test_unchanged_nodes_are_written_byte_for_byte(tmp_path: Path) -> None:
    after = round_trip(everything(), tmp_path)
    for old, new in zip(everything().graph.node, after.graph.node, strict=True):
        assert new.SerializeToString() == old.SerializeToString(), old.name


def external_model(folder: Path) -> tuple[Path, onnx.ModelProto]:
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float32), f"w{i}") for i in range(3)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 64])
    nodes = [
        helper.make_node("MatMul", [a, w], [b]) for a, w, b in [("x", "w0", "a"), ("a", "w1", "b"), ("b", "w2", "y")]
    ]
    model = make_model(nodes, [x], [y], weights)
    path = folder / "outside.onnx"
    onnx.save(copy_of(model), path, save_as_external_data=True, location="outside.bin", size_threshold=0)
    return path, model


@pytest.mark.parametrize("options", [[], ["--external-data"]], ids=["inside", "outside"])
@pytest.mark.parametrize("stored", ["inside", "outside"])
def test_external_data(stored: str, options: list[str], cli: Any, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "target").mkdir()
    path, model = external_model(tmp_path / "source")
    if stored == "inside":
        onnx.save(model, path)
    target = tmp_path / "target/after.onnx"
    done = cli("convert", path, target, *options)
    assert done.returncode == 0, done.stderr
    if options:
        assert any(
            i.data_location == TensorProto.EXTERNAL
            for i in onnx.load(target, load_external_data=False).graph.initializer
        )
        assert len(list(target.parent.iterdir())) == 2
    after = onnx.load(target)
    for old, new in zip(model.graph.initializer, after.graph.initializer, strict=True):
        assert new.name == old.name
        assert numpy_helper.to_array(new).tobytes() == numpy_helper.to_array(old).tobytes()
    onnx.checker.check_model(str(target))
    feed = np.random.default_rng(1).standard_normal((2, 64)).astype(np.float32)
    assert_same_outputs(path, target, [feed])


@pytest.mark.parametrize("opset", [9, 11, 13, 15, 17, 18, 19, 21, 22, 23])
def test_other_opset(opset: int, cli: Any, tmp_path: Path) -> None:
    """A model made of ops that changed a good deal between opsets 9 and 23 gives the same outputs at each."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 1, 8])
    axes = numpy_helper.from_array(np.array([2], np.int64), "axes")
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["sum"], keepdims=1),
        helper.make_node("Sub", ["x", "sum"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"], axis=-1),
        helper.make_node("Unsqueeze", ["b", "axes"], ["c"]),
        helper.make_node("Squeeze", ["c", "axes"], ["d"]),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("Gemm", ["flat", "flat"], ["f"], transB=1, alpha=0.5),
        helper.make_node("Add", ["y0", "f0"], ["y"]),
    ]
    nodes.insert(6, helper.make_node("Flatten", ["e"], ["flat"]))
    nodes.insert(8, helper.make_node("ReduceMean", ["f"], ["f0"], axes=[0, 1], keepdims=0))
    nodes.insert(9, helper.make_node("ReduceMax", ["e"], ["y0"], axes=[1]))
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(make_model(nodes, [x], [y], [axes], opset=17), source)
    done = cli("convert", source, target, "--opset", opset)
    assert done.returncode == 0, done.stderr
    after = onnx.load(target)
    assert [o.version for o in after.opset_import if o.domain == ""] == [opset]
    onnx.checker.check_model(after)
    feed = np.random.default_rng(2).standard_normal((2, 3, 8)).astype(np.float32)
    want, got = runtime_outputs(source, [feed]), runtime_outputs(target, [feed])
    assert want is not None and got is not None
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6, atol=1e-7)


def test_an_opset_that_cannot_hold_the_model_is_refused(cli: Any, tmp_path: Path) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    source = tmp_path / "a.onnx"
    onnx.save(
        make_model([helper.make_node("Mish", ["x"], ["y"], "the_mish")], [x], [x.__class__(name="y", type=x.type)]),
        source,
    )
    done = cli("convert", source, tmp_path / "b.onnx", "--opset", 7)
    assert done.returncode == 2, done.stderr
    assert "Mish" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.onnx"]

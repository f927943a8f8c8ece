"""Bad input: every file here must give one clear error, exit code 1 or 2, no output, and cost little."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from limited_runs import (
    assert_refused,
    assert_refused_everywhere,
    files_in,
    run_limited,
)
from models import floats, make_model, random_tensor, residual_net
from onnx import TensorProto, helper

BAD_FILES: dict[str, Callable[[Path], Path]] = {}
Maker = Callable[[Path], Path]


def bad_file(maker: Maker) -> Maker:
    BAD_FILES[maker.__name__] = maker
    return maker


# ---- protobuf by hand, for what the onnx package refuses to write


def varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def model_bytes(graph: bytes) -> bytes:
    return field(1, 10) + field(8, field(2, 18)) + field(7, graph)


def save(folder: Path, content: bytes | onnx.ModelProto) -> Path:
    path = folder / "bad.onnx"
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return path


def linear(weight: onnx.TensorProto) -> onnx.ModelProto:
    """x times a weight [4, 4]."""
    return make_model(
        [helper.make_node("MatMul", ["x", weight.name], ["y"])], [floats("x", 2, 4)], [floats("y", 2, 4)], [weight]
    )


def weight_tensor(**fields: object) -> onnx.TensorProto:
    default = {"name": "w", "data_type": TensorProto.FLOAT, "dims": [4, 4], "raw_data": bytes(64)}
    return onnx.TensorProto(**{**default, **fields})


# ---- files that are no models


@bad_file
def missing_file(folder: Path) -> Path:
    return folder / "nowhere.onnx"


@bad_file
def empty_file(folder: Path) -> Path:
    return save(folder, b"")


@bad_file
def a_directory(folder: Path) -> Path:
    (folder / "dir.onnx").mkdir()
    return folder / "dir.onnx"


@bad_file
def text_file(folder: Path) -> Path:
    return save(folder, b"This is not a model, it is a sentence.\n" * 40)


@bad_file
def zip_file(folder: Path) -> Path:
    return save(folder, b"PK\x03\x04" + bytes(200))


@bad_file
def zeros(folder: Path) -> Path:
    return save(folder, bytes(4096))


@bad_file
def all_ones(folder: Path) -> Path:
    return save(folder, b"\xff" * 4096)


@bad_file
def model_without_a_graph(folder: Path) -> Path:
    return save(folder, field(1, 10) + field(8, field(2, 18)))


@bad_file
def model_without_opset(folder: Path) -> Path:
    model = linear(weight_tensor())
    del model.opset_import[:]
    return save(folder, model)


@bad_file
def opset_from_the_future(folder: Path) -> Path:
    model = linear(weight_tensor())
    model.opset_import[0].version = 2**40
    return save(folder, model)


# ---- lengths and numbers that lie


@bad_file
def string_of_two_gigabytes(folder: Path) -> Path:
    return save(folder, field(1, 10) + varint(2 << 3 | 2) + varint(2**31 - 1) + b"short")


@bad_file
def length_of_two_to_the_63(folder: Path) -> Path:
    return save(folder, field(1, 10) + varint(7 << 3 | 2) + varint(2**63) + b"short")


@bad_file
def endless_varint(folder: Path) -> Path:
    return save(folder, b"\x08" + b"\xff" * 30)


@bad_file
def field_number_zero(folder: Path) -> Path:
    return save(folder, b"\x00\x01" + linear(weight_tensor()).SerializeToString())


@bad_file
def unknown_wire_type(folder: Path) -> Path:
    return save(folder, linear(weight_tensor()).SerializeToString() + bytes([100 << 3 & 0x7F | 7]))


@bad_file
def initializer_too_short(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(raw_data=bytes(60))))


@bad_file
def initializer_too_long(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(raw_data=bytes(68))))


@bad_file
def initializer_without_data(folder: Path) -> Path:
    weight = weight_tensor()
    weight.ClearField("raw_data")
    return save(folder, linear(weight))


@bad_file
def typed_data_too_short(folder: Path) -> Path:
    weight = weight_tensor(float_data=[1.0] * 15)
    weight.ClearField("raw_data")
    return save(folder, linear(weight))


@bad_file
def typed_data_in_the_wrong_field(folder: Path) -> Path:
    weight = weight_tensor(int64_data=[1] * 16)
    weight.ClearField("raw_data")
    return save(folder, linear(weight))


@bad_file
def dims_that_overflow(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(dims=[2**62, 2**62, 16])))


@bad_file
def dims_that_overflow_to_the_right_size(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(dims=[2**32, 2**32, 16, 1])))


@bad_file
def bytes_that_overflow(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(dims=[2**62 + 4, 4])))


@bad_file
def negative_dims(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(dims=[-4, -4])))


@bad_file
def million_dims(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(dims=[1] * 1_000_000 + [16])))


@bad_file
def element_type_that_does_not_exist(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(data_type=99)))


@bad_file
def element_type_undefined(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(data_type=0)))


@bad_file
def element_type_negative(folder: Path) -> Path:
    return save(folder, linear(weight_tensor(data_type=-1)))


@bad_file
def input_element_type_that_does_not_exist(folder: Path) -> Path:
    model = linear(weight_tensor())
    model.graph.input[0].type.tensor_type.elem_type = 12345
    return save(folder, model)


@bad_file
def sparse_index_out_of_range(folder: Path) -> Path:
    model = linear(weight_tensor())
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    indices = helper.make_tensor("", TensorProto.INT64, [2], [3, 16])
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4, 4]))
    return save(folder, model)


# ---- graphs that make no sense


@bad_file
def cycle(folder: Path) -> Path:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    return save(folder, make_model(nodes, [floats("x", 2)], [floats("b", 2)]))


@bad_file
def node_that_feeds_itself(folder: Path) -> Path:
    return save(folder, make_model([helper.make_node("Relu", ["y"], ["y"])], [floats("x", 2)], [floats("y", 2)]))


@bad_file
def value_that_nobody_makes(folder: Path) -> Path:
    return save(folder, make_model([helper.make_node("Relu", ["ghost"], ["y"])], [floats("x", 2)], [floats("y", 2)]))


@bad_file
def output_that_nobody_makes(folder: Path) -> Path:
    return save(folder, make_model([helper.make_node("Relu", ["x"], ["y"])], [floats("x", 2)], [floats("ghost", 2)]))


@bad_file
def two_values_of_one_name(folder: Path) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])]
    return save(folder, make_model(nodes, [floats("x", 2)], [floats("y", 2)]))


@bad_file
def two_inputs_of_one_name(folder: Path) -> Path:
    node = helper.make_node("Relu", ["x"], ["y"])
    return save(folder, make_model([node], [floats("x", 2), floats("x", 2)], [floats("y", 2)]))


@bad_file
def two_initializers_of_one_name(folder: Path) -> Path:
    model = linear(weight_tensor())
    model.graph.initializer.append(weight_tensor())
    return save(folder, model)


@bad_file
def node_output_named_as_the_input(folder: Path) -> Path:
    return save(folder, make_model([helper.make_node("Relu", ["x"], ["x"])], [floats("x", 2)], [floats("x", 2)]))


@bad_file
def function_that_calls_itself(folder: Path) -> Path:
    call = helper.make_node("Again", ["a"], ["b"], domain="f")
    function = helper.make_function("f", "Again", ["a"], ["b"], [call], [helper.make_opsetid("f", 1)])
    node = helper.make_node("Again", ["x"], ["y"], domain="f")
    model = make_model([node], [floats("x", 2)], [floats("y", 2)], domains=[("f", 1)])
    model.functions.append(function)
    return save(folder, model)


@bad_file
def too_few_inputs(folder: Path) -> Path:
    return save(
        folder, make_model([helper.make_node("Conv", ["x"], ["y"])], [floats("x", 1, 3, 8, 8)], [floats("y", None)])
    )


@bad_file
def attribute_of_the_wrong_type(folder: Path) -> Path:
    node = helper.make_node("Softmax", ["x"], ["y"], "soft", axis="one")
    return save(folder, make_model([node], [floats("x", 2, 3)], [floats("y", 2, 3)]))


@bad_file
def axis_out_of_range(folder: Path) -> Path:
    node = helper.make_node("Softmax", ["x"], ["y"], "soft", axis=5)
    return save(folder, make_model([node], [floats("x", 2, 3)], [floats("y", 2, 3)]))


# ---- nesting

DEPTH = 10_000


def nested(inner: bytes, wrap: Callable[[bytes], bytes]) -> bytes:
    for _ in range(DEPTH):
        inner = wrap(inner)
    return inner


@bad_file
def subgraphs_10000_deep(folder: Path) -> Path:
    def wrap(graph: bytes) -> bytes:
        attribute = field(1, b"body") + field(6, graph) + field(20, 5)
        return field(1, field(4, b"Loop") + field(5, attribute)) + field(2, b"g")

    return save(folder, model_bytes(nested(field(2, b"g"), wrap)))


@bad_file
def sequence_types_10000_deep(folder: Path) -> Path:
    kind = nested(field(1, field(1, 1)), lambda inner: field(4, field(1, inner)))
    return save(folder, model_bytes(field(2, b"g") + field(11, field(1, b"x") + field(2, kind))))


@bad_file
def optional_types_10000_deep(folder: Path) -> Path:
    kind = nested(field(1, field(1, 1)), lambda inner: field(9, field(1, inner)))
    return save(folder, model_bytes(field(2, b"g") + field(11, field(1, b"x") + field(2, kind))))


@bad_file
def map_types_10000_deep(folder: Path) -> Path:
    kind = nested(field(1, field(1, 1)), lambda inner: field(5, field(1, 7) + field(2, inner)))
    return save(folder, model_bytes(field(2, b"g") + field(11, field(1, b"x") + field(2, kind))))


@bad_file
def groups_10000_deep(folder: Path) -> Path:
    return save(folder, bytes([100 << 3 & 0x7F | 3]) * DEPTH)


# ---- external data


def external(folder: Path, location: str, offset: int | None = None, length: int | None = 64) -> Path:
    weight = weight_tensor(data_location=TensorProto.EXTERNAL)
    weight.ClearField("raw_data")
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            weight.external_data.add(key=key, value=str(value))
    inside = folder / "inside"
    inside.mkdir()
    (inside / "w.bin").write_bytes(bytes(64))
    (folder / "secret.bin").write_bytes(bytes(64))
    return save(inside, linear(weight))


@bad_file
def external_data_missing(folder: Path) -> Path:
    return external(folder, "gone.bin")


@bad_file
def external_data_above_its_folder(folder: Path) -> Path:
    return external(folder, "../secret.bin")


@bad_file
def external_data_above_its_folder_by_a_detour(folder: Path) -> Path:
    path = external(folder, "sub/../../secret.bin")
    (path.parent / "sub").mkdir()
    return path


@bad_file
def external_data_at_an_absolute_path(folder: Path) -> Path:
    return external(folder, str(folder / "secret.bin"))


@bad_file
def external_data_through_a_symlink(folder: Path) -> Path:
    path = external(folder, "link.bin")
    (path.parent / "link.bin").symlink_to(folder / "secret.bin")
    return path


@bad_file
def external_data_through_a_linked_folder(folder: Path) -> Path:
    path = external(folder, "link/secret.bin")
    (path.parent / "link").symlink_to(folder, target_is_directory=True)
    return path


@bad_file
def external_data_is_a_directory(folder: Path) -> Path:
    path = external(folder, "sub")
    (path.parent / "sub").mkdir()
    return path


@bad_file
def external_data_is_a_pipe(folder: Path) -> Path:
    path = external(folder, "pipe")
    os.mkfifo(path.parent / "pipe")
    return path


@bad_file
def external_data_shorter_than_promised(folder: Path) -> Path:
    path = external(folder, "w.bin")
    (path.parent / "w.bin").write_bytes(bytes(63))
    return path


@bad_file
def external_data_that_starts_past_the_end(folder: Path) -> Path:
    return external(folder, "w.bin", offset=4096)


@bad_file
def external_data_whose_offset_overflows(folder: Path) -> Path:
    return external(folder, "w.bin", offset=2**64 - 32)


@bad_file
def external_data_with_a_negative_offset(folder: Path) -> Path:
    return external(folder, "w.bin", offset=-16)


@bad_file
def external_data_of_another_length_than_its_shape(folder: Path) -> Path:
    return external(folder, "w.bin", length=32)


@bad_file
def external_data_without_location(folder: Path) -> Path:
    path = external(folder, "w.bin")
    model = onnx.load(path, load_external_data=False)
    del model.graph.initializer[0].external_data[:]
    path.write_bytes(model.SerializeToString())
    return path


@bad_file
def external_data_with_a_nul_in_its_name(folder: Path) -> Path:
    return external(folder, "w.bin\0/../../secret.bin")


# What is wrong with a graph's meaning, not its form, is only seen on the way to PyTorch.
ONLY_TO_PYTORCH = {
    "attribute_of_the_wrong_type",
    "axis_out_of_range",
    "function_that_calls_itself",
    "opset_from_the_future",
    "too_few_inputs",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file_is_refused(name: str, tmp_path: Path) -> None:
    source = BAD_FILES[name](tmp_path)
    if name in ONLY_TO_PYTORCH:
        before = files_in(tmp_path)
        assert_refused(run_limited("convert", source, tmp_path / "model.py"))
        assert files_in(tmp_path) == before
    else:
        assert_refused_everywhere(source, tmp_path, (1,))


def as_others() -> None:
    """What this process starts next may only read what permissions say, even where it is root."""
    drop_from_bounding_set, may_override, may_read = 24, 1, 2  # prctl(2), capabilities(7)
    for capability in (may_override, may_read) if os.geteuid() == 0 else ():
        if ctypes.CDLL(None, use_errno=True).prctl(drop_from_bounding_set, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def test_unreadable_file(tmp_path: Path) -> None:
    source = save(tmp_path, linear(weight_tensor()))
    source.chmod(0)
    assert subprocess.run(["cat", source], capture_output=True, preexec_fn=as_others).returncode != 0
    before = files_in(tmp_path)
    for target in ("model.py", "model.onnx"):
        done = run_limited("convert", source, tmp_path / target, preexec_fn=as_others)
        assert_refused(done, (1,))
        assert "Permission denied" in done.stderr
        assert files_in(tmp_path) == before


def test_truncated_file(tmp_path: Path) -> None:
    """Cut at any byte, a model is refused: its graph, the last field that counts, is then shorter than it says."""
    model = residual_net()
    whole = model.SerializeToString()
    imports = onnx.ModelProto(opset_import=model.opset_import).SerializeToString()
    graph = field(7, model.graph.SerializeToString())
    ordered = field(1, model.ir_version) + imports + graph
    assert len(ordered) <= len(whole)
    start = len(ordered) - len(graph) + 1
    cuts = sorted({0, 1, 2, *np.linspace(start, len(ordered) - 1, 60, dtype=int).tolist()})
    for number, cut in enumerate(cuts):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = save(folder, ordered[:cut])
        assert_refused(run_limited("convert", source, folder / "model.py"), (1,))
        assert files_in(folder) == {"bad.onnx"}, f"cut at {cut}"


def random_bytes() -> Iterator[bytes]:
    rng = random.Random(0)
    for size in (1, 2, 3, 5, 8, 100, 1000, 100_000):
        for _ in range(3):
            yield rng.randbytes(size)


def test_random_bytes(tmp_path: Path) -> None:
    for content in random_bytes():
        assert_refused(run_limited("convert", save(tmp_path, content), tmp_path / "model.py"), (1,))
        assert files_in(tmp_path) == {"bad.onnx"}


@pytest.mark.parametrize("part", range(4))
def test_damaged_bytes_never_crash(part: int, tmp_path: Path) -> None:
    """With a few bytes changed a file may still be a model: it converts, or it is refused, and nothing else happens."""
    rng = random.Random(part)
    whole = residual_net().SerializeToString()
    structure = [i for i in range(len(whole)) if not 400 < i % 3000 < 1400]
    for number in range(40):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.choice(structure)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        folder = tmp_path / str(number)
        folder.mkdir()
        done = run_limited("convert", save(folder, bytes(damaged)), folder / "model.py")
        if done.returncode != 0:
            assert_refused(done)
            assert files_in(folder) == {"bad.onnx"}


def test_unsupported_operators_are_listed_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Mystery", ["x"], ["a"], "first", domain="odd"),
        helper.make_node("Mystery", ["a"], ["b"], "second", domain="odd"),
        helper.make_node("Riddle", ["b"], ["y"], "third", domain="odd"),
    ]
    source = save(tmp_path, make_model(nodes, [floats("x", 2)], [floats("y", 2)], domains=[("odd", 1)]))
    done = run_limited("convert", source, tmp_path / "model.py")
    assert_refused(done, (2,))
    assert "Mystery" in done.stderr and "Riddle" in done.stderr and "odd" in done.stderr
    assert files_in(tmp_path) == {"bad.onnx"}


def test_output_folder_that_does_not_exist(tmp_path: Path) -> None:
    source = save(tmp_path, linear(random_tensor(np.random.default_rng(0), "w", 4, 4)))
    assert_refused(run_limited("convert", source, tmp_path / "no/such/model.py"), (1,))
    assert files_in(tmp_path) == {"bad.onnx"}


def test_a_failure_keeps_the_file_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("before\n")
    assert_refused(run_limited("convert", save(tmp_path, bytes(100)), tmp_path / "model.py"), (1,))
    assert (tmp_path / "model.py").read_text() == "before\n"

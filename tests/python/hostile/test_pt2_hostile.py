"""Bad .pt2 archives: every one gives one clear error, exit code 1 or 2, no output, and costs little."""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from limited_runs import assert_refused, assert_refused_everywhere, files_in, run_limited

Parts = dict[str, bytes]
Maker = Callable[[Parts], bytes]
BAD_ARCHIVES: dict[str, tuple[str, Maker]] = {}  # a part of the error, and what makes the file


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)
        self.register_buffer("scale", torch.full((4,), 2.0), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale


@pytest.fixture(scope="module")
def parts() -> Parts:
    """What a good archive holds, by the name within its root folder."""
    dynamic = {"x": {0: torch.export.Dim("batch", min=2, max=64)}}
    program = torch.export.export(Net(), (torch.zeros(2, 3),), dynamic_shapes=dynamic)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {info.filename.split("/", 1)[1]: archive.read(info) for info in archive.infolist()}


def packed(parts: Parts, method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr("m/" + name, content)
    return buffer.getvalue()


def bad(error: str) -> Callable[[Maker], Maker]:
    def add(maker: Maker) -> Maker:
        BAD_ARCHIVES[maker.__name__] = (error, maker)
        return maker

    return add


def changed(parts: Parts, name: str, content: bytes | str) -> bytes:
    return packed({**parts, name: content.encode() if isinstance(content, str) else content})


def changed_weight(parts: Parts, **changes: object) -> bytes:
    name = "data/weights/model_weights_config.json"
    config = json.loads(parts[name])
    payload = config["config"]["linear.weight"]
    for key, value in changes.items():
        (payload["tensor_meta"] if key in payload["tensor_meta"] else payload)[key] = value
    return changed(parts, name, json.dumps(config))


def changed_program(parts: Parts, change: Callable[[dict], object]) -> bytes:
    program = json.loads(parts["models/model.json"])
    change(program)
    return changed(parts, "models/model.json", json.dumps(program))


def central_header(whole: bytes, name: str) -> int:
    at = whole.rindex(name.encode()) - 46
    assert whole[at : at + 4] == b"PK\1\2"
    return at


def patched(parts: Parts, offset: int, content: bytes, name: str = "m/data/weights/weight_0") -> bytes:
    whole = bytearray(packed(parts))
    at = central_header(whole, name) + offset
    whole[at : at + len(content)] = content
    return bytes(whole)


@bad("no end record")
def no_end_record(parts: Parts) -> bytes:
    return packed(parts)[:-22]


@bad("absolute name")
def absolute_name(parts: Parts) -> bytes:
    return packed(parts).replace(b"m/byteorder", b"/etc/passwd")


@bad("points outside")
def name_with_dots(parts: Parts) -> bytes:
    return packed(parts).replace(b"m/byteorder", b"../../etc/x")


@bad("two entries")
def duplicate_name(parts: Parts) -> bytes:
    return packed(parts).replace(b"m/data/weights/weight_1", b"m/data/weights/weight_0")


@bad("overlap")
def overlapping_entries(parts: Parts) -> bytes:
    """The first weight says, in both of its headers, that it goes on into the second."""
    whole = bytearray(packed(parts))
    size = struct.pack("<II", 100, 100)
    name = b"m/data/weights/weight_0"
    local = whole.index(name) - 30
    whole[local + 18 : local + 26] = size
    central = central_header(bytes(whole), name.decode())
    whole[central + 20 : central + 28] = size
    return bytes(whole)


@bad("different sizes")
def sizes_that_differ(parts: Parts) -> bytes:
    return patched(parts, 20, struct.pack("<II", 40, 40))


@bad("not where the directory says")
def entry_past_the_file(parts: Parts) -> bytes:
    return patched(parts, 42, struct.pack("<I", 1 << 30))


@bad("encrypted")
def encrypted(parts: Parts) -> bytes:
    return patched(parts, 8, b"\1\0")


@bad("method 12")
def other_method(parts: Parts) -> bytes:
    return packed(parts, zipfile.ZIP_BZIP2)


@bad("entries cannot be")
def absurd_count(parts: Parts) -> bytes:
    whole = bytearray(packed(parts))
    whole[-14:-10] = struct.pack("<HH", 65000, 65000)
    return bytes(whole)


@bad("absurd")
def deflate_bomb(parts: Parts) -> bytes:
    """Its size is within what deflate can do, and beyond what such a file should."""
    noise = random.Random(0).randbytes(400_000)
    whole = bytearray(packed({**parts, "data/weights/weight_0": noise}, zipfile.ZIP_DEFLATED))
    size = struct.pack("<I", 400_000_000)
    name = b"m/data/weights/weight_0"
    local = whole.index(name) - 30
    whole[local + 22 : local + 26] = size
    central = central_header(bytes(whole), name.decode())
    whole[central + 24 : central + 28] = size
    return bytes(whole)


@bad("no .pt2")
def empty_file(parts: Parts) -> bytes:
    return b""


@bad("no archive_format")
def empty_zip(parts: Parts) -> bytes:
    return packed({})


@bad("TorchScript")
def torchscript(parts: Parts) -> bytes:
    return packed({"data.pkl": b"", "constants.pkl": b"", "code/__torch__.py": b"", "version": b"3"})


@bad("is a file of weights")
def state_dict(parts: Parts) -> bytes:
    buffer = io.BytesIO()
    torch.save(Net().state_dict(), buffer)
    return buffer.getvalue()


@bad("torch.save")
def old_state_dict(parts: Parts) -> bytes:
    buffer = io.BytesIO()
    torch.save(Net().state_dict(), buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


@bad("format 'pt3'")
def other_format(parts: Parts) -> bytes:
    return changed(parts, "archive_format", "pt3")


@bad("version '1'")
def other_version(parts: Parts) -> bytes:
    return changed(parts, "archive_version", "1")


@bad("big-endian")
def big_endian(parts: Parts) -> bytes:
    return changed(parts, "byteorder", "big")


@bad("models/model.json is missing")
def no_program(parts: Parts) -> bytes:
    return packed({name: content for name, content in parts.items() if not name.startswith("models/")})


@bad("not valid JSON")
def program_cut_short(parts: Parts) -> bytes:
    return changed(parts, "models/model.json", parts["models/model.json"][:-5])


@bad("not valid JSON")
def program_that_is_not_utf8(parts: Parts) -> bytes:
    return changed(parts, "models/model.json", parts["models/model.json"].replace(b"linear", b"line\xff\xff", 1))


@bad("nests deeper")
def program_without_end(parts: Parts) -> bytes:
    return changed(parts, "models/model.json", b"[" * 5_000_000)


@bad("weight_0' is missing")
def missing_weight(parts: Parts) -> bytes:
    return packed({name: content for name, content in parts.items() if name != "data/weights/weight_0"})


@bad("reaches element 11")
def short_weight(parts: Parts) -> bytes:
    return changed(parts, "data/weights/weight_0", parts["data/weights/weight_0"][:-1])


@bad("'linear.weight'")
def negative_stride(parts: Parts) -> bytes:
    return changed_weight(parts, strides=[{"as_int": -3}, {"as_int": 1}])


@bad("'linear.weight'")
def sizes_that_overflow(parts: Parts) -> bytes:
    return changed_weight(parts, sizes=[{"as_int": 1 << 40}, {"as_int": 1 << 40}])


@bad("too many to be gathered")
def expanded_without_end(parts: Parts) -> bytes:
    sizes = [{"as_int": 1 << 20}, {"as_int": 1 << 20}]
    return changed_weight(parts, sizes=sizes, strides=[{"as_int": 0}, {"as_int": 0}])


@bad("never executed")
def pickled_weight(parts: Parts) -> bytes:
    return changed_weight(parts, use_pickle=True)


class Touch:
    def __reduce__(self) -> tuple[object, ...]:
        return open, ("executed", "w")


@bad("no plain tensor")
def pickle_that_would_run(parts: Parts) -> bytes:
    saved = packed({"data.pkl": pickle.dumps({"linear.weight": Touch()}, protocol=2), "version": b"3"})
    rest = {name: content for name, content in parts.items() if not name.startswith("data/weights/")}
    return packed({**rest, "data/weights/model.pt": saved})


@bad("contains itself")
def pickle_that_holds_itself(parts: Parts) -> bytes:
    loop: dict[str, object] = {}
    loop["linear.weight"] = loop
    saved = packed({"data.pkl": pickle.dumps(loop, protocol=2), "version": b"3"})
    rest = {name: content for name, content in parts.items() if not name.startswith("data/weights/")}
    return packed({**rest, "data/weights/model.pt": saved})


@bad("9")
def other_schema(parts: Parts) -> bytes:
    return changed_program(parts, lambda program: program["schema_version"].update(major=9))


@bad("graph_module")
def program_without_graph(parts: Parts) -> bytes:
    return changed_program(parts, lambda program: program.pop("graph_module"))


@bad("")
def expression_without_end(parts: Parts) -> bytes:
    def nest(program: dict) -> None:
        for meta in program["graph_module"]["graph"]["tensor_values"].values():
            for size in meta["sizes"]:
                if "as_expr" in size:
                    depth = 100_000
                    size["as_expr"]["expr_str"] = "Add(" * depth + "Integer(1)" + ", Integer(1))" * depth

    return changed_program(parts, nest)


def changed_node(parts: Parts, op: str, change: Callable[[dict], object]) -> bytes:
    def find(program: dict) -> None:
        [node] = [
            n for n in program["graph_module"]["graph"]["nodes"] if n["target"].startswith("torch.ops.aten." + op)
        ]
        change(node)

    return changed_program(parts, find)


@bad("argument 'weight' is not of the type Tensor")
def number_for_a_tensor(parts: Parts) -> bytes:
    return changed_node(parts, "linear", lambda node: node["inputs"][1].update(arg={"as_int": 3}))


@bad("argument 'input' is missing")
def argument_that_is_not_there(parts: Parts) -> bytes:
    return changed_node(parts, "linear", lambda node: node["inputs"].pop(0))


@bad("the node gives 2 results, and 1 are due")
def more_results_than_the_operator_has(parts: Parts) -> bytes:
    return changed_node(parts, "linear", lambda node: node["outputs"].append({"as_none": True}))


@bad("argument 'true_graph' is not of the type Graph")
def branch_that_is_no_graph(parts: Parts) -> bytes:
    def branch(node: dict) -> None:
        tensor = node["inputs"][0]["arg"]
        arguments = [tensor, {"as_int": 1}, {"as_int": 1}, {"as_tensors": [tensor["as_tensor"]]}]
        node["inputs"] = [{"name": "", "arg": argument, "kind": 1} for argument in arguments]
        node["target"] = "torch.ops.higher_order.cond"

    return changed_node(parts, "linear", branch)


@bad("has 70 dimensions")
def tensor_of_too_many_dimensions(parts: Parts) -> bytes:
    def widen(program: dict) -> None:
        graph = program["graph_module"]["graph"]
        name = graph["nodes"][0]["outputs"][0]["as_tensor"]["name"]
        graph["tensor_values"][name]["sizes"] = [{"as_int": 1}] * 70

    return changed_program(parts, widen)


@pytest.mark.parametrize("name", BAD_ARCHIVES)
def test_bad_archive_is_refused(name: str, parts: Parts, tmp_path: Path) -> None:
    error, maker = BAD_ARCHIVES[name]
    source = tmp_path / "bad.pt2"
    source.write_bytes(maker(parts))
    assert_refused_everywhere(source, tmp_path)
    assert error in run_limited("convert", source, tmp_path / "model.onnx").stderr
    assert files_in(tmp_path) == {"bad.pt2", "out"}


def test_good_archive_is_taken(parts: Parts, tmp_path: Path) -> None:
    """The others are refused for what was done to them, not for how they are packed."""
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        source = tmp_path / "good.pt2"
        source.write_bytes(packed(parts, method))
        done = run_limited("convert", source, tmp_path / "model.onnx")
        assert done.returncode == 0, done.stderr


def test_truncated_archive(parts: Parts, tmp_path: Path) -> None:
    whole = packed(parts)
    source = tmp_path / "bad.pt2"
    for cut in sorted({0, 1, 4, 30, *range(50, len(whole), len(whole) // 40), len(whole) - 1}):
        source.write_bytes(whole[:cut])
        assert_refused(run_limited("convert", source, tmp_path / "model.onnx"), (1,))
        assert files_in(tmp_path) == {"bad.pt2"}, f"cut at {cut}"


def test_damaged_bytes_never_crash(parts: Parts, tmp_path: Path) -> None:
    rng = random.Random(0)
    for number in range(60):
        damaged = dict(parts)
        name = rng.choice([name for name in damaged if damaged[name]])
        content = bytearray(damaged[name])
        for _ in range(rng.randint(1, 3)):
            content[rng.randrange(len(content))] = rng.choice([0, 0x30, 0x39, 0x2C, 0x7D, 0xFF, rng.randrange(256)])
        damaged[name] = bytes(content)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "bad.pt2").write_bytes(packed(damaged))
        done = run_limited("convert", folder / "bad.pt2", folder / "model.onnx")
        if done.returncode != 0:
            assert_refused(done)
            assert files_in(folder) == {"bad.pt2"}

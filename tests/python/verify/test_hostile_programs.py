"""Models of strangers in verify: nothing in a .pt2 runs, whatever it holds; what is code is said to be."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tonnx
from tonnx import _core
from tonnx._verify.cli import main

Parts = dict[str, bytes]
MARK = "ran.txt"  # what every payload would write
RUN = f"__import__('pathlib').Path('{MARK}').touch()"


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)
        self.register_buffer("scale", torch.full((4,), 2.0), persistent=False)

    def forward(self, x: torch.Tensor, *, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": self.linear(x) * self.scale, "twice": torch.cat([y, y], 1)}


@pytest.fixture(scope="module")
def parts() -> Parts:
    """What a good archive holds, by the name within its root folder."""
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = {"x": {0: batch}, "y": {0: batch}}
    program = torch.export.export(Net(), (torch.zeros(4, 3),), {"y": torch.zeros(4, 2)}, dynamic_shapes=shapes)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {info.filename.split("/", 1)[1]: archive.read(info) for info in archive.infolist()}


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pack(parts: Parts, path: str = "m.pt2") -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr("m/" + name, content)
    return path


def program_of(parts: Parts) -> dict[str, Any]:
    program: dict[str, Any] = json.loads(parts["models/model.json"])
    return program


class Payload:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {MARK}",)


def pickled() -> bytes:
    buffer = io.BytesIO()
    torch.save(Payload(), buffer)
    return buffer.getvalue()


Change = Callable[[dict[str, Any]], None]
PROGRAMS: dict[
    str, tuple[str, Change]
] = {}  # a part of the error ("" where it runs as if nothing was there), and the change


def hostile(error: str = "") -> Callable[[Change], Change]:
    def add(change: Change) -> Change:
        PROGRAMS[change.__name__] = (error, change)
        return change

    return add


def graph_of(program: dict[str, Any]) -> dict[str, Any]:
    graph: dict[str, Any] = program["graph_module"]["graph"]
    return graph


def renamed(value: Any, old: str, new: str) -> Any:
    """The same JSON with another name, wherever it stands."""
    if isinstance(value, dict):
        return {(new if key == old else key): renamed(part, old, new) for key, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, old, new) for part in value]
    return new if value == old else value


def set_expression(program: dict[str, Any], text: str) -> None:
    graph_of(program)["sym_bool_values"]["condition"] = {"as_expr": {"expr_str": text, "hint": None}}


@hostile("in an expression is no")
def an_expression_is_code(program: dict[str, Any]) -> None:
    set_expression(program, RUN)


@hostile("the size '")
def a_size_is_code(program: dict[str, Any]) -> None:
    meta = graph_of(program)["tensor_values"]["x"]
    assert "as_expr" in meta["sizes"][0]
    meta["sizes"][0]["as_expr"]["expr_str"] = RUN


@hostile("no function of sizes")
def an_expression_calls_another_function(program: dict[str, Any]) -> None:
    set_expression(program, "sympify(Symbol('s0'))")


@hostile("no name of a symbol")
def a_symbol_is_code(program: dict[str, Any]) -> None:
    set_expression(program, f'Symbol("{RUN}")')


@hostile("has an assumption")
def an_assumption_is_code(program: dict[str, Any]) -> None:
    set_expression(program, f"Symbol('s0', integer={RUN})")


@hostile("power that is no small number")
def a_power_without_end(program: dict[str, Any]) -> None:
    set_expression(program, "Pow(Integer(9), Pow(Integer(9), Integer(9)))")


@hostile("too much work")
def powers_of_powers(program: dict[str, Any]) -> None:
    set_expression(program, "Pow(" * 40 + "Integer(9)" + ", Integer(8))" * 40)


@hostile("too much work")
def a_product_of_many_sums(program: dict[str, Any]) -> None:
    sums = ", ".join(f"Add(Symbol('a{i}'), Symbol('b{i}'), Symbol('c{i}'))" for i in range(30))
    set_expression(program, f"Mul({sums})")


@hostile("branches")
def a_maximum_of_many(program: dict[str, Any]) -> None:
    set_expression(program, f"Max({', '.join(f'Symbol({name!r})' for name in map('s{}'.format, range(100)))})")


@hostile("more than")
def an_expression_without_end(program: dict[str, Any]) -> None:
    set_expression(program, "Not(" * 1000 + "true" + ")" * 1000)


@hostile("no name of a size")
def a_symbol_to_count_to(program: dict[str, Any]) -> None:
    program["range_constraints"]["u99999999999"] = {"min_val": 0, "max_val": None}


@hostile("is no name for code")
def a_value_is_code(program: dict[str, Any]) -> None:
    changed = renamed(graph_of(program), "linear", f"a = {RUN}; b")
    program["graph_module"]["graph"] = changed


@hostile("is no name for code")
def an_argument_of_forward_is_code(program: dict[str, Any]) -> None:
    signature = program["graph_module"]["module_call_graph"][0]["signature"]
    signature["forward_arg_names"] = [f"x={RUN}", "y"]


@hostile("have no names")
def a_keyword_is_code(program: dict[str, Any]) -> None:
    signature = program["graph_module"]["module_call_graph"][0]["signature"]
    signature["in_spec"] = signature["in_spec"].replace('[\\"y\\"]', f'[\\"y={RUN}\\"]')


@hostile()
def guards_are_code(program: dict[str, Any]) -> None:
    program["guards_code"] = [RUN, f"L['x'].size()[0] == 3 or {RUN}", "L['x'].size()[0] <= 64"]


@hostile()
def trees_name_classes(program: dict[str, Any]) -> None:
    signature = program["graph_module"]["module_call_graph"][0]["signature"]
    assert "builtins.dict" in signature["out_spec"]
    enum = json.dumps([1, {"__enum__": True, "fqn": "this:zen"}])
    signature["out_spec"] = (
        signature["out_spec"]
        .replace("builtins.dict", "os.path.Any")
        .replace('[\\"sum\\", \\"twice\\"]', json.dumps(enum)[1:-1])
    )


@hostile()
def metadata_names_functions(program: dict[str, Any]) -> None:
    for node in graph_of(program)["nodes"]:
        node["metadata"] |= {"source_fn_stack": "x,torch.hub.load", "from_node": "[{}]", "custom": "{}"}


def with_target(target: str) -> Change:
    def change(program: dict[str, Any]) -> None:
        graph_of(program)["nodes"][0]["target"] = target

    return change


TARGETS = [
    "torch.load",
    "torch.hub.load",
    "torch.ops.load_library.__call__.__call__",
    "torch.ops.higher_order.inline_asm_elementwise",
    "torch.utils.cpp_extension.load",
    "_operator.methodcaller",
    "math.__loader__.load_module",
    "#x:y",
    f"torch.ops.aten.add.Tensor({RUN})",
    f"torch.ops.aten.add.Tensor\n{RUN}\n",
]


@pytest.mark.parametrize("target", TARGETS)
def test_targets_that_are_no_operators(parts: Parts, target: str) -> None:
    program = program_of(parts)
    with_target(target)(program)
    pack({**parts, "models/model.json": json.dumps(program).encode()})
    with pytest.raises(tonnx.Error) as raised:
        tonnx.verify("m.pt2", "m.pt2")
    assert raised.value.kind in ("unsupported", "invalid_model")
    assert not Path(MARK).exists() and "\n\n" not in str(raised.value)


def test_an_operator_that_opens_files(parts: Parts) -> None:
    """aten::from_file makes the file that it maps."""
    program = program_of(parts)
    node = graph_of(program)["nodes"][0]
    node["target"] = "torch.ops.aten.from_file.default"
    node["inputs"] = [
        {"name": "filename", "arg": {"as_string": MARK}, "kind": 1},
        {"name": "shared", "arg": {"as_bool": True}, "kind": 1},
        {"name": "size", "arg": {"as_int": 12}, "kind": 1},
    ]
    pack({**parts, "models/model.json": json.dumps(program).encode()})
    with pytest.raises(tonnx.Error, match="from_file") as raised:
        tonnx.verify("m.pt2", "m.pt2")
    assert raised.value.kind == "unsupported" and not Path(MARK).exists()


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_in_a_program_runs(parts: Parts, name: str) -> None:
    error, change = PROGRAMS[name]
    program = program_of(parts)
    change(program)
    assert program != program_of(parts)
    pack(parts, "good.pt2")
    pack({**parts, "models/model.json": json.dumps(program).encode()})
    if error:
        with pytest.raises(tonnx.Error, match=error) as raised:
            tonnx.verify("good.pt2", "m.pt2")
        assert raised.value.kind in ("invalid_model", "unsupported") and "m.pt2" in str(raised.value)
    else:
        assert tonnx.verify("good.pt2", "m.pt2", layers=True)
    assert not Path(MARK).exists()


@pytest.mark.parametrize("name", [f'a"), {RUN}, ("b', "a\nb", "a\\b", "__class__", "a.__dict__", "a\u202eb"])
def test_names_of_weights_stand_in_code(parts: Parts, name: str) -> None:
    program = renamed(program_of(parts), "scale", name)
    config = renamed(json.loads(parts["data/constants/model_constants_config.json"]), "scale", name)
    changed = {"models/model.json": program, "data/constants/model_constants_config.json": config}
    pack({**parts, **{key: json.dumps(value).encode() for key, value in changed.items()}})
    with pytest.raises(tonnx.Error, match="could trip over|is no name of a weight") as raised:
        tonnx.verify("m.pt2", "m.pt2")
    assert raised.value.kind == "invalid_model" and not Path(MARK).exists()


def test_sample_inputs_are_not_unpickled(parts: Parts) -> None:
    pack(parts, "good.pt2")
    pack({**parts, "data/sample_inputs/model.pt": pickled()})
    assert tonnx.verify("good.pt2", "m.pt2") and not Path(MARK).exists()
    with pytest.raises(Exception, match=""):  # the payload is one: PyTorch itself runs it
        torch.export.load("m.pt2")
    assert Path(MARK).exists()


@pytest.mark.parametrize(
    "key, file", [("weights", "weight_0"), ("constants", "tensor_0"), ("constants", "opaque_obj_0")]
)
def test_pickled_tensors_and_objects_are_refused(parts: Parts, key: str, file: str) -> None:
    name = f"data/{key}/model_{key}_config.json"
    config = json.loads(parts[name])
    first = next(iter(config["config"]))
    config["config"][first] |= {"use_pickle": True, "path_name": file}
    pack({**parts, name: json.dumps(config).encode(), f"data/{key}/{file}": pickled()})
    with pytest.raises(tonnx.Error, match="pickled") as raised:
        tonnx.verify("m.pt2", "m.pt2")
    assert raised.value.kind == "unsupported" and not Path(MARK).exists()


def test_keys_that_come_twice(parts: Parts) -> None:
    """Python's JSON takes the last of them, and ours the first: PyTorch sees what was vetted."""
    text = parts["models/model.json"].decode()
    evil = program_of(parts)
    graph_of(evil)["nodes"][0]["target"] = "torch.hub.load"
    doubled = text.rstrip()[:-1] + ', "graph_module": ' + json.dumps(evil["graph_module"]) + "}"
    pack(parts, "good.pt2")
    pack({**parts, "models/model.json": doubled.encode()})
    assert tonnx.verify("good.pt2", "m.pt2")


def test_the_older_layout_of_pickles_is_refused_or_vetted(parts: Parts) -> None:
    with zipfile.ZipFile("m.pt2", "w") as archive:
        archive.writestr("version", "8.20")
        archive.writestr("serialized_exported_program.json", parts["models/model.json"])
        for name in ("state_dict", "constants", "example_inputs"):
            archive.writestr(f"serialized_{name}.pt", pickled())
    with pytest.raises(tonnx.Error):
        tonnx.verify("m.pt2", "m.pt2")
    assert not Path(MARK).exists()


def test_the_copy_is_what_the_file_says(parts: Parts) -> None:
    """The same code, ranges, guards and weights, as PyTorch sees them."""
    pack(parts)
    _core.write_vetted_copy("m.pt2", "copy.pt2")
    wanted, got = torch.export.load("m.pt2"), torch.export.load("copy.pt2")
    assert got.graph_module.code == wanted.graph_module.code
    assert got.range_constraints == wanted.range_constraints
    assert [str(spec) for spec in got.graph_signature.input_specs] == [
        str(spec) for spec in wanted.graph_signature.input_specs
    ]
    assert got.call_spec == wanted.call_spec
    for ours, theirs in ((got.state_dict, wanted.state_dict), (got.constants, wanted.constants)):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    x, y = torch.rand(5, 3), torch.rand(5, 2)
    for name, value in wanted.module()(x, y=y).items():
        assert torch.equal(got.module()(x, y=y)[name], value)


def test_guards_hold_in_the_copy() -> None:
    class Even(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(2, -1)

    dim = 2 * torch.export.Dim("half", min=2, max=8)
    torch.export.save(torch.export.export(Even(), (torch.rand(6),), dynamic_shapes={"x": {0: dim}}), "m.pt2")
    _core.write_vetted_copy("m.pt2", "copy.pt2")
    wanted, got = torch.export.load("m.pt2"), torch.export.load("copy.pt2")
    assert [text.replace(" ", "") for text in got._guards_code] == [
        text.replace(" ", "") for text in wanted._guards_code
    ]
    assert torch.equal(got.module()(torch.arange(8.0)), torch.arange(8.0).reshape(2, 4))


def test_arrays_are_never_unpickled() -> None:
    np.savez("data.npz", x=np.array([Payload()], dtype=object))
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.rand(2),)), "m.pt2")
    with pytest.raises(tonnx.Error, match="data.npz") as raised:
        tonnx.verify("m.pt2", "m.pt2", inputs="data.npz")
    assert raised.value.kind == "bad_file" and not Path(MARK).exists()
    Path("data.npz").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(tonnx.Error, match="data.npz"):
        tonnx.verify("m.pt2", "m.pt2", inputs="data.npz")
    assert not Path(MARK).exists()


def test_what_is_code_is_said_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.rand(2),)), "m.pt2")
    torch.jit.trace(torch.nn.ReLU(), torch.rand(2)).save("m.pt")
    tonnx.convert("m.pt2", "m.py")
    assert main(["m.pt2", "m.py"]) == 0
    assert capsys.readouterr().err == "note: 'm.py' is code, and is run\n"
    assert main(["m.pt2", "m.pt"]) == 0
    assert capsys.readouterr().err == "note: 'm.pt' is code, and is run\n"
    assert main(["m.pt2", "m.pt2"]) == 0
    assert capsys.readouterr().err == ""


def test_running_a_module_leaves_nothing_behind_and_trusts_no_cache() -> None:
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.rand(2),)), "m.pt2")
    tonnx.convert("m.pt2", "m.py")
    source = Path("m.py")
    # a cache of other code that looks as if it was made of this file
    other = f"{RUN}\n"
    stamp = source.stat()
    script = "import py_compile, sys; py_compile.compile('other.py', cfile=sys.argv[1])"
    Path("other.py").write_text(other)
    cache = Path("__pycache__") / f"m.{sys.implementation.cache_tag}.pyc"
    subprocess.run([sys.executable, "-c", script, str(cache)], check=True)
    content = bytearray(cache.read_bytes())
    content[8:12] = int(stamp.st_mtime).to_bytes(4, "little")
    content[12:16] = stamp.st_size.to_bytes(4, "little")
    cache.write_bytes(content)
    before = set(os.listdir("__pycache__"))
    assert tonnx.verify("m.pt2", "m.py") and not Path(MARK).exists()
    assert set(os.listdir("__pycache__")) == before

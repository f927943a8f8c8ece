"""tonnx check and tonnx.check: every operator that cannot be converted, with its version and nodes; nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
import torch
from models import residual_net
from onnx import TensorProto, helper

import tonnx

Cli = Callable[..., Any]
HEAD = '<ir_version: 10, opset_import: ["": {opset}, "my.domain": 3, "local": 1]>\n'


def save(text: str, opset: int = 18) -> onnx.ModelProto:
    model = onnx.parser.parse_model(HEAD.format(opset=opset) + text)
    onnx.save(model, "model.onnx")
    return model


def named(model: onnx.ModelProto, names: dict[str, str]) -> onnx.ModelProto:
    """Gives nodes names, by their first output."""
    for node in model.graph.node:
        node.name = names.get(node.output[0], "")
    onnx.save(model, "model.onnx")
    return model


def test_what_can_be_converted(cli: Cli) -> None:
    onnx.save(residual_net(), "model.onnx")
    count = len(residual_net().graph.node)
    ops = len({node.op_type for node in residual_net().graph.node})
    done = cli("check", "model.onnx")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"model.onnx: all {count} nodes ({ops} operators) can be converted\n"
    assert tonnx.check("model.onnx") == []
    assert [p.name for p in Path().iterdir()] == ["model.onnx"]


MIXED = """g (float[n] x) => (float[n] y, float[n] z) {
    a = my.domain.Fancy(x) b = my.domain.Fancy(a) c = my.domain.Other(b) d = Relu(c) e = my.domain.Fancy(d)
    f = NoSuchOperator(e) y = Neg(f) z = Abs(x) }"""


def test_every_operator_and_every_node(cli: Cli) -> None:
    names = {"a": "/first", "b": "/second", "c": "/other", "e": ""}
    model = named(save(MIXED), names)
    done = cli("check", "model.onnx")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines() == [
        "error: 5 nodes of 3 operators cannot be converted:",
        "  NoSuchOperator-18: 1 node, 'f'",
        "  my.domain::Fancy-3: 3 nodes, '/first', '/second', 'e'",
        "  my.domain::Other-3: 1 node, '/other'",
        "  while checking model.onnx",
    ]
    for source in ("model.onnx", Path("model.onnx"), model, model.SerializeToString()):
        assert [tuple(row)[:4] for row in tonnx.check(source)] == [
            ("", "NoSuchOperator", 18, ["f"]),
            ("my.domain", "Fancy", 3, ["/first", "/second", "e"]),
            ("my.domain", "Other", 3, ["/other"]),
        ]
    assert [p.name for p in Path().iterdir()] == ["model.onnx"]


def test_many_nodes_are_all_named(cli: Cli) -> None:
    save("g (float[n] x0) => (float[n] x300) { " + " ".join(f"x{i + 1} = my.domain.F(x{i})" for i in range(300)) + " }")
    done = cli("check", "model.onnx")
    assert done.returncode == 2
    assert all(f"'x{i}'" in done.stderr for i in range(1, 301))
    assert "300 nodes" in done.stderr
    assert len(tonnx.check("model.onnx")[0].nodes) == 300


def test_inside_graphs_and_functions(cli: Cli) -> None:
    text = """g (bool c, int64 k, float[n] x) => (float[n] y) {
        a = If (c) <then_branch = t () => (float[n] p) { p = my.domain.InThen(x) },
                    else_branch = e () => (float[n] q) {
                        q = Loop (k, , x) <body = b (int64 i, bool go, float[n] v) => (bool on, float[n] w) {
                            on = Identity(go) w = my.domain.InLoop(v) }> }>
        f = local.F(a) y = local.F(f) }
        <opset_import: ["": 18, "my.domain": 3, "local": 1], domain: "local"> F (u) => (r) { s = local.G(u) r = Neg(s) }
        <opset_import: ["": 18, "my.domain": 3, "local": 1], domain: "local"> G (u) => (r) {
            r = my.domain.InFunction(u) }"""
    save(text)
    done = cli("check", "model.onnx")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0] == "error: 4 nodes of 3 operators cannot be converted:"
    assert lines[1].startswith("  my.domain::InFunction-3: 2 nodes, ")
    assert lines[2] == "  my.domain::InLoop-3: 1 node, 'w'"
    assert lines[3] == "  my.domain::InThen-3: 1 node, 'p'"
    rows = tonnx.check("model.onnx")
    assert [(row.op, len(row.nodes)) for row in rows] == [("InFunction", 2), ("InLoop", 1), ("InThen", 1)]


def test_names_cannot_forge_lines(cli: Cli) -> None:
    model = named(save("g (float[n] x) => (float[n] y) { y = my.domain.F(x) }"), {"y": "a\nerror: b\x1b[31m"})
    model.graph.node[0].op_type = "F\n  G"
    onnx.save(model, "model.onnx")
    done = cli("check", "model.onnx")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 3 and "\x1b" not in done.stderr


def test_strings_by_name(cli: Cli) -> None:
    strings = helper.make_tensor_value_info("words", TensorProto.STRING, ["n"])
    number = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    nodes = [
        helper.make_node("Identity", ["words"], ["same"]),
        helper.make_node("Cast", ["x"], ["text"], "to_text", to=TensorProto.STRING),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.STRING, ["n"]) for name in ("same", "text")]
    graph = helper.make_graph(nodes, "g", [strings, number], outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), "model.onnx")
    done = cli("check", "model.onnx")
    assert done.returncode == 2
    assert "  Cast-13: 1 node, 'to_text': PyTorch has no tensors of strings" in done.stderr.splitlines()
    assert "  input: 1 input, 'words': PyTorch has no tensors of strings" in done.stderr.splitlines()
    assert {(row.op, tuple(row.nodes), row.reason) for row in tonnx.check("model.onnx")} == {
        ("Cast", ("to_text",), "PyTorch has no tensors of strings"),
        ("input", ("words",), "PyTorch has no tensors of strings"),
    }


@pytest.mark.parametrize("opset, version", [(9, 8), (13, 13), (18, 13)])
def test_version_is_that_of_the_schema(opset: int, version: int, cli: Cli) -> None:
    save("g (float[n] x) => (string[n] y) { y = Cast <to = 8> (x) }".replace("string[n] y", "float[n] y"), opset)
    model = onnx.load("model.onnx")
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.STRING
    onnx.save(model, "model.onnx")
    assert f"Cast-{9 if opset == 9 else version}: " in cli("check", "model.onnx").stderr


def test_what_the_check_finds_the_conversion_says(cli: Cli) -> None:
    save(MIXED)
    for target in ("model.py", "out.onnx"):
        done = cli("convert", "model.onnx", target)
        if target.endswith(".py"):
            assert done.returncode == 2 and "5 nodes cannot be converted" in done.stderr
        else:
            assert done.returncode == 0
    with pytest.raises(tonnx.Error, match="my.domain::Fancy-3: 3 nodes"):
        tonnx.convert("model.onnx")


def test_registered_operators_are_no_obstacle() -> None:
    save(MIXED.replace("f = NoSuchOperator(e)", "f = Exp(e)"))
    assert {row.op for row in tonnx.check("model.onnx")} == {"Fancy", "Other"}


# --to onnx


def test_to_onnx(cli: Cli) -> None:
    save(MIXED.replace("f = NoSuchOperator(e)", "f = Exp(e)"))
    done = cli("check", "model.onnx", "--to", "onnx")
    assert done.returncode == 0 and "can be converted" in done.stdout
    done = cli("check", "model.onnx", "--to", "onnx", "--opset", 13)
    assert done.returncode == 0, done.stderr
    assert [p.name for p in Path().iterdir()] == ["model.onnx"]


def test_to_an_older_opset(cli: Cli) -> None:
    save("g (int64 n) => (float[k] x, float[k] y, float[k] z) {"
         "x = HannWindow(n) y = HammingWindow(n) z = HammingWindow(n) }", 20)  # fmt: skip
    assert cli("check", "model.onnx", "--to", "onnx", "--opset", 20).returncode == 0
    done = cli("check", "model.onnx", "--to", "onnx", "--opset", 16)
    assert done.returncode == 2
    assert "the model cannot be brought from opset 20 to 16:" in done.stderr
    assert "(HannWindow): opset 16 does not have the operator" in done.stderr
    assert done.stderr.count("(HammingWindow): opset 16 does not have the operator") == 2
    assert [p.name for p in Path().iterdir()] == ["model.onnx"]


# Exit codes


def test_torchscript(cli: Cli) -> None:
    class Two(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) + 1

    torch.jit.script(Two()).save("m.pt")
    done = cli("check", "m.pt", "--input-shape", "x:2,3", "--to", "onnx")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "m.pt: all 2 nodes (2 operators) can be converted\n"
    done = cli("check", "m.pt")
    assert done.returncode == 1 and "--input-shape x:" in done.stderr
    cli("convert", "m.pt", "m.onnx", "--input-shape", "x:2,3")
    assert cli("check", "m.onnx", "--input-type", "x:int64").returncode == 1


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    Path("broken.onnx").write_bytes(b"\x08\x0a\x3a\xff\xff")
    for name in ("broken.onnx", "absent.onnx"):
        done = cli("check", name)
        assert done.returncode == 1 and done.stderr.startswith("error: ") and done.stdout == ""
    with pytest.raises(tonnx.Error):
        tonnx.check("broken.onnx")
    with pytest.raises(TypeError, match=r"source takes a path, bytes or an onnx.ModelProto, not 3 \(int\)"):
        tonnx.check(3)  # type: ignore[arg-type]


def test_an_opset_of_the_future(cli: Cli) -> None:
    save("g (float[n] x) => (float[n] y) { y = Neg(x) }", 99)
    done = cli("check", "model.onnx")
    assert done.returncode == 2 and "the model follows opset 99, and tonnx knows opsets up to 28" in done.stderr
    with pytest.raises(tonnx.Error, match="the model follows opset 99"):
        tonnx.check("model.onnx")
    assert cli("check", "model.onnx", "--to", "onnx").returncode == 0
    for command in (("check", "model.onnx", "--to", "onnx"), ("convert", "model.onnx", "out.onnx")):
        done = cli(*command, "--opset", 13)
        assert done.returncode == 2 and "the model follows opset 99" in done.stderr


@pytest.mark.parametrize(
    "args", [(), ("model.onnx", "--to", "elsewhere"), ("model.onnx", "--opset", "0"), ("model.onnx", "--what")]
)
def test_bad_arguments(args: tuple[str, ...], cli: Cli) -> None:
    save("g (float[n] x) => (float[n] y) { y = Neg(x) }")
    done = cli("check", *args)
    assert done.returncode == 1 and done.stdout == "" and done.stderr, (done.returncode, done.stderr)

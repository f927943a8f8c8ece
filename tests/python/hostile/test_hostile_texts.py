"""Texts out of files, and of the user's own modules: in generated code they are literals, on a terminal they are visible."""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
import torch
from conftest import TIMEOUT, cli_command
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import load_file

import tonnx
from tonnx._literal import is_dotted_name, literal, visible

TEXTS = {
    "quotes": "'\"'\"",
    "triple quotes": "'''\"\"\"''' \"\"\"",
    "backslashes": "\\\\ \\' \\\" \\n \\x41 \\N{BULLET} \\",
    "newlines": "a\nb\r\nc\rd\x0b\x0ce\x1c\x1d\x1e\x85",
    "separators": "a\u2028b\u2029c",
    "controls": "".join(map(chr, range(32))) + "\x7f\x80\x9b31m",
    "escape sequences": "\x1b[31mred\x1b]0;title\x07",
    "marks that turn the writing": "\u202eabc\u2066def\u200f\ufeff",
    "braces": "{x!r} {{}} %s %(a)s ${b} {0.__class__}",
    "code": '"); __import__("os").system("touch ran"); ("',
    "a comment": "# \n__import__('os')",
    "Chinese": "模型转换器" * 40,
    "wide": "\U0001f600\U000e0001",
    "long": 'a"\\' * 350_000,
    "empty": "",
}
SURROGATES = {"a lone surrogate": "\ud800 \udfff", "a pair of them": "\ud83d\ude00"}


@pytest.mark.parametrize("name", TEXTS | SURROGATES)
def test_literals_of_texts(name: str) -> None:
    text = (TEXTS | SURROGATES)[name]
    code = literal(text)
    assert ast.literal_eval(code) == text
    assert "\n" not in code and code.encode("utf-8").isascii() or code[1:-1].isprintable()
    assert code.startswith('"') and len(ast.parse(f"f(a={code}, b=1)").body) == 1


def test_literals_of_other_values() -> None:
    values: list[Any] = [None, True, False, 0, -7, 1 << 70, -(1 << 20_000), 0.1, -0.0, 1e308, 5e-324, "it's"]
    values += [[], (), (1,), [1, [2.5, ("a", None)]], ((True,), [])]
    for value in values:
        assert ast.literal_eval(literal(value)) == value
        assert type(ast.literal_eval(literal(value))) is type(value)
    assert eval(literal([math.inf, -math.inf])) == [math.inf, -math.inf]
    assert math.isnan(eval(literal(math.nan)))
    assert math.copysign(1, eval(literal(-0.0))) == -1
    assert literal(torch.Size([1, 2])) == "(1, 2)"


def test_values_that_have_no_literal() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in (object(), {1: 2}, {3}, b"bytes", 1j, torch.ones(1), [object()], endless):
        with pytest.raises(TypeError):
            literal(value)


def test_subclasses_do_not_choose_their_text() -> None:
    class Text(str):
        def __repr__(self) -> str:
            return "__import__('os')"

        __str__ = __repr__

    class Number(int):
        __repr__ = Text.__repr__  # type: ignore[assignment]

    assert literal(Text("a")) == '"a"' and literal([Number(3)]) == "[3]"


def test_names_of_classes() -> None:
    assert is_dotted_name("a.b") and is_dotted_name("größe")
    for text in ("", "a b", "a.", "a;b", "import", "a.class", "a\nb", "1a", "<locals>", "a-b"):
        assert not is_dotted_name(text)


USER_MODULE = """
import torch
import tonnx

class Named(torch.nn.Module):
    def __init__(self, label, numbers):
        super().__init__()
        self.label, self.numbers = label, numbers

    def forward(self, x):
        return x * 2.0

@tonnx.add_converter(operation_type="Named", version=1, domain="hostile.texts")
def _(node, graph):
    module = Named(node.attributes["label"], [float("inf"), [float("-inf"), 1]])
    return tonnx.OperationConverterResult(module, tonnx.onnx_mapping_from_node(node))
"""


def test_attributes_of_ones_own_modules_are_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "named.py").write_text(USER_MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    import named  # type: ignore[import-not-found]

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    for name, text in TEXTS.items():
        node = helper.make_node("Named", ["x"], ["y"], domain="hostile.texts", label=text)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("hostile.texts", 1)]
        graph = helper.make_graph([node], "g", [x], [y])
        tonnx.convert(helper.make_model(graph, opset_imports=opsets, ir_version=8), "m.py")
        namespace: dict[str, Any] = {"__file__": "m.py", "__name__": "m"}
        exec(compile(Path("m.py").read_bytes(), "m.py", "exec"), namespace)
        (module,) = [m for m in namespace["Model"]().modules() if isinstance(m, named.Named)]
        assert module.label == text, name
        assert module.numbers == [math.inf, [-math.inf, 1]]
    assert not (tmp_path / "ran").exists()


# Names of the model below, each of ten letters, so that its bytes can be put in the place of others.
PLACES = [
    "PRODUCER_N",
    "PRODUCER_V",
    "GRAPHNAMEX",
    "INPUTNAMEX",
    "OUTPUTNAME",
    "NODENAMEXX",
    "WEIGHTNAME",
    "MIDDLENAME",
]
PLACES += ["DOCSTRINGX", "METAKEYXXX", "METAVALUEX", "MODELDOCXX", "SYMBOLNAME"]
BYTES = {
    "not UTF-8": b"\xff\xfe\xc0\xaf\xed\xa0\x80\xf5ab",
    "cut short": b"abcdefgh\xe6\xa8",
    "escape": b"\x1b[31m\x1b[2Jx",
    "quotes": b'"""\n#\'\'\'""',
    "backslash": b"abcdefghi\\",
    "separator": "a\u2028b\u202ec\u2029".encode()[:10].ljust(10, b"x"),
    "newline": b"a\nimport x",
    "zero": b"a\0b\0c\0d\0e\0",
}


def hostile_model(text: bytes) -> bytes:
    """Every text in it is this one, but for the last byte, so that values stay apart."""
    nodes = [
        helper.make_node("MatMul", ["INPUTNAMEX", "WEIGHTNAME"], ["MIDDLENAME"], "NODENAMEXX", doc_string="DOCSTRINGX"),
        helper.make_node("Relu", ["MIDDLENAME"], ["OUTPUTNAME"]),
    ]
    x = helper.make_tensor_value_info("INPUTNAMEX", TensorProto.FLOAT, ["SYMBOLNAME", 3])
    y = helper.make_tensor_value_info("OUTPUTNAME", TensorProto.FLOAT, ["SYMBOLNAME", 4])
    weight = numpy_helper.from_array(torch.ones(3, 4).numpy(), "WEIGHTNAME")
    graph = helper.make_graph(nodes, "GRAPHNAMEX", [x], [y], [weight], doc_string="DOCSTRINGX")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name, model.producer_version, model.doc_string = "PRODUCER_N", "PRODUCER_V", "MODELDOCXX"
    helper.set_model_props(model, {"METAKEYXXX": "METAVALUEX"})
    data = model.SerializeToString()
    for number, place in enumerate(PLACES):
        assert place.encode() in data and len(text) == len(place)
        data = data.replace(
            place.encode(),
            text[:-1] + b"%c" % (65 + number) if number % 2 else text[:-2] + b"%c" % (65 + number) + text[-1:],
        )
    return data


@pytest.fixture(params=BYTES)
def model(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(hostile_model(BYTES[request.param]))
    return tmp_path / "m.onnx"


def run(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*cli_command(), *map(str, arguments)], capture_output=True, timeout=TIMEOUT)


def test_every_format_is_valid(model: Path) -> None:
    for target in ("m.py", "m.pt2", "m.pt", "w.safetensors", "w.pth", "n.onnx"):
        done = run("convert", model, target)
        assert done.returncode == 0, (target, done.stderr)
    source = Path("m.py").read_text(encoding="utf-8")  # it is UTF-8
    tree = ast.parse(source)
    assert [type(part).__name__ for part in tree.body][:1] == ["Expr"] and '"""' not in (ast.get_docstring(tree) or "")
    assert not any(isinstance(part, ast.Import) and part.names[0].name == "x" for part in ast.walk(tree))
    assert all(c == "\n" or c.isprintable() for c in source)
    namespace: dict[str, Any] = {"__file__": "m.py", "__name__": "m"}
    exec(compile(source, "m.py", "exec"), namespace)
    x = torch.rand(2, 3)
    wanted = torch.relu(x @ torch.ones(3, 4))
    torch.testing.assert_close(namespace["Model"].load(Path("m.safetensors"))(x), wanted)
    torch.testing.assert_close(torch.export.load("m.pt2").module()(x), wanted)
    torch.testing.assert_close(torch.jit.load("m.pt")(x), wanted)
    assert load_file("w.safetensors").keys() == torch.load("w.pth", weights_only=True).keys()
    with zipfile.ZipFile("m.pt2") as archive:
        json.loads(archive.read("model/extra/tonnx.json").decode("utf-8"))
    torch.testing.assert_close(tonnx.convert(model.read_bytes())(x), wanted)


def test_nothing_acts_on_the_terminal(model: Path) -> None:
    commands: list[tuple[object, ...]] = [
        ("simplify", model, "s.onnx", "--report", "r.json"),
        ("print", model, "--notes"),
        ("check", model),
        ("infer", model, "i.onnx"),
        ("convert", model, "m.py", "--input-shape", "none:1"),
        ("simplify", model, "s.onnx", "--unused-output", "none"),
    ]
    for arguments in commands:
        done = run(*arguments)
        assert done.returncode in (0, 1), done.stderr
        said = (done.stdout + done.stderr).decode("utf-8")
        assert all(c == "\n" or c.isprintable() for c in said), (arguments, said)
    json.loads(Path("r.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", BYTES)
def test_names_of_operators_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = '<ir_version: 8, opset_import: ["" : 17, "DOMAINNAME" : 1]> g (float[2] x) => (float[2] y) {{ y = DOMAINNAME.OPERATORXX(x) }}'
    data = onnx.parser.parse_model(text.replace("{{", "{").replace("}}", "}")).SerializeToString()
    for place in (b"DOMAINNAME", b"OPERATORXX"):
        data = data.replace(place, BYTES[name])
    Path("m.onnx").write_bytes(data)
    for arguments in (
        ("convert", "m.onnx", "m.py"),
        ("check", "m.onnx"),
        ("simplify", "m.onnx", "s.onnx"),
        ("print", "m.onnx"),
    ):
        done = run(*arguments)
        assert done.returncode in (0, 1, 2), done.stderr
        said = (done.stdout + done.stderr).decode("utf-8")
        assert all(c == "\n" or c.isprintable() for c in said), (arguments, said)
    with pytest.raises(tonnx.Error) as raised:
        tonnx.convert("m.onnx")
    assert all(c == "\n" or c.isprintable() for c in str(raised.value))
    assert tonnx.check("m.onnx")


def test_a_long_name_of_an_operator_makes_no_large_table(tmp_path: Path) -> None:
    name = "A" * 1_000_000
    node = helper.make_node(name, ["x"], ["y"], domain="d")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]
    onnx.save(helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets), tmp_path / "m.onnx")
    done = run("simplify", tmp_path / "m.onnx", tmp_path / "s.onnx")
    assert done.returncode == 0 and len(done.stdout) < 20_000


def test_long_producers_are_cut_between_characters(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    )
    for length in range(20, 60):
        model.producer_name = "模" * length
        onnx.save(model, tmp_path / "m.onnx")
        assert run("convert", tmp_path / "m.onnx", tmp_path / f"{'型' * 60}.py").returncode == 0
        compile((tmp_path / f"{'型' * 60}.py").read_bytes(), "m.py", "exec")


def test_arguments_of_programs_are_literals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.einsum("ij,jk->ik", x, y)

    monkeypatch.chdir(tmp_path)
    torch.export.save(torch.export.export(Sum(), (torch.rand(2, 2), torch.rand(2, 2))), "m.pt2")
    with zipfile.ZipFile("m.pt2") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (place,) = [name for name in parts if name.endswith("models/model.json")]
    seen = 0
    for text in TEXTS.values():
        changed = parts[place].replace(b'"ij,jk->ik"', json.dumps(text).encode())
        assert changed != parts[place]
        with zipfile.ZipFile("h.pt2", "w") as archive:
            for name, content in (parts | {place: changed}).items():
                archive.writestr(name, content)
        done = run("convert", "h.pt2", "h.py")
        assert done.returncode in (0, 1, 2), done.stderr
        if done.returncode == 0:
            seen += 1
            tree = ast.parse(Path("h.py").read_text(encoding="utf-8"))
            texts = [part.value for part in ast.walk(tree) if isinstance(part, ast.Constant)]
            assert text in texts
    assert seen >= 5 and not Path("ran").exists()


def test_errors_of_the_package_are_visible() -> None:
    error = tonnx.Error("input '\x1b[31m\u202e\ud800'", "bad_file")
    assert str(error) == r"input '\x1b[31m\u202e\ud800'"
    assert visible("a\nb") == "a\nb" and visible("模") == "模"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", visible("".join(map(chr, range(256)))))
    assert sys.getdefaultencoding() == "utf-8"

"""tonnx simplify and tonnx.simplify as a whole: options, report, checks, files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import REPOSITORY, TIMEOUT
from onnx import TensorProto, helper, numpy_helper
from simplify_checks import check, count, model

import tonnx

TWO_OUTPUTS = """g (float[N,4] x, float[N,4] unused) => (float[N,4] y, float[N,4] z)
    <float[4] one = {1.0, 1.0, 1.0, 1.0}, float[4] spare = {1.0, 2.0, 3.0, 4.0}>
    { a = Identity(x)  b = Mul(a, one)  y = Relu(b)  c = Neg(x)  z = Exp(c) }"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(model(TWO_OUTPUTS), path)
    return path


def package_cli(*args: object) -> subprocess.CompletedProcess[str]:
    """The command line of the package, which can compare outputs."""
    return subprocess.run(
        [sys.executable, "-m", "tonnx", *map(str, args)], capture_output=True, text=True, timeout=TIMEOUT
    )


def test_simplify_writes_and_reports(source: Path, cli: Any) -> None:
    done = cli("simplify", source, "out.onnx", "--report", "report.json")
    assert done.returncode == 0, done.stderr
    made = onnx.load("out.onnx")
    onnx.checker.check_model(made, full_check=True)
    assert count(made.graph) == {"Relu": 1, "Neg": 1, "Exp": 1}
    assert [value.name for value in made.graph.input] == ["x", "unused"]
    assert not made.graph.initializer
    rows = {line.split("│")[1].strip(): line.split("│")[2:4] for line in done.stdout.splitlines() if "│" in line}
    assert [cell.strip() for cell in rows["Mul"]] == ["1", "0"]
    report = json.loads(Path("report.json").read_text())
    assert report["nodes"] == {"before": 5, "after": 3}
    assert report["bytes"] == {"before": source.stat().st_size, "after": Path("out.onnx").stat().st_size}
    assert {entry["name"] for entry in report["passes"] if entry["changes"]} >= {"eliminate_identity"}


def test_unused_outputs_are_dropped(source: Path, cli: Any) -> None:
    done = cli("simplify", source, "out.onnx", "-q", "--unused-output", "z")
    assert (done.returncode, done.stdout) == (0, "")
    assert count(onnx.load("out.onnx").graph) == {"Relu": 1}
    done = cli("simplify", source, "other.onnx", "--unused-output", "w")
    assert done.returncode == 1
    assert "the model has no output 'w'; it has: y, z" in done.stderr
    assert not Path("other.onnx").exists()


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--skip", "eliminate_identity"], {"Identity": 1, "Mul": 1, "Relu": 1, "Neg": 1, "Exp": 1}),
        (["--only", "eliminate_dead_code"], {"Identity": 1, "Mul": 1, "Relu": 1, "Neg": 1, "Exp": 1}),
        (["--skip-optimization"], {"Identity": 1, "Mul": 1, "Relu": 1, "Neg": 1, "Exp": 1}),
        (["--skip", "share_nodes", "fuse_bn"], {"Relu": 1, "Neg": 1, "Exp": 1}),
    ],
)
def test_passes_can_be_chosen(source: Path, cli: Any, options: list[str], left: dict[str, int]) -> None:
    done = cli("simplify", source, "out.onnx", *options)
    assert done.returncode == 0, done.stderr
    assert count(onnx.load("out.onnx").graph) == left


def test_unknown_pass_is_named(source: Path, cli: Any) -> None:
    done = cli("simplify", source, "out.onnx", "--skip", "frobnicate")
    assert done.returncode == 1
    assert "there is no pass 'frobnicate'; there are: " in done.stderr
    assert not Path("out.onnx").exists()


def test_passes_page_is_up_to_date(cli: Any) -> None:
    done = cli("simplify", "--list-passes", "--markdown")
    assert done.returncode == 0, done.stderr
    assert (REPOSITORY / "docs/passes.md").read_text() == done.stdout, "docs/passes.md is stale: make docs"


def test_inputs_that_are_not_used_go_away_on_request(source: Path, cli: Any) -> None:
    assert cli("simplify", source, "out.onnx", "--enable", "drop_unused_inputs").returncode == 0
    assert [value.name for value in onnx.load("out.onnx").graph.input] == ["x"]


def test_shapes_are_overwritten(cli: Any) -> None:
    onnx.save(
        model("""g (float[N,C,4] x) => (float[M,K] y)
            { s = Shape(x)  i = Constant<value_int = 0>()  n = Gather(s, i)
              a = Constant<value_ints = [0]>()  m = Unsqueeze(n, a)
              r = Constant<value_ints = [-1]>()  t = Concat<axis = 0>(m, r)  y = Reshape(x, t) }"""),
        "in.onnx",
    )
    assert cli("simplify", "in.onnx", "out.onnx", "--overwrite-input-shape", "x:2,3,4").returncode == 0
    made = onnx.load("out.onnx").graph
    assert count(made) == {"Reshape": 1}
    assert [d.dim_value for d in made.output[0].type.tensor_type.shape.dim] == [2, 12]
    assert cli("simplify", "in.onnx", "again.onnx", "--overwrite-input-shape", "2,?,4").returncode == 0
    assert [d.dim_value for d in onnx.load("again.onnx").graph.input[0].type.tensor_type.shape.dim] == [2, 0, 4]
    done = cli("simplify", "in.onnx", "third.onnx", "--overwrite-input-shape", "w:2,3,4")
    assert done.returncode == 1 and "the model has no input 'w'; it has: x" in done.stderr


OPEN = """g (float[N,4] x, float[N] z) => (float[M,K] y)
    { a = Constant<value_ints = [0]>()  s = Shape(x)  n = Gather(s, a)  r = Constant<value_ints = [-1]>()
      t = Concat<axis = 0>(n, r)  b = Reshape(x, t)  i = Constant<value_ints = [1]>()  c = Unsqueeze(z, i)  y = Add(b, c) }"""


def sizes_of_inputs(made: onnx.ModelProto) -> list[list[int | str]]:
    return [[d.dim_value or d.dim_param for d in value.type.tensor_type.shape.dim] for value in made.graph.input]


def seen_shapes(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, tuple[int, ...]]]:
    """The shapes of all inputs that outputs are compared on from now on."""
    from tonnx._verify.onnx_runner import OnnxRunner

    shapes: list[dict[str, tuple[int, ...]]] = []
    run = OnnxRunner.run

    def noted(runner: OnnxRunner, feeds: Any) -> Any:
        shapes.append({value.name: array.shape for value, array in zip(runner.inputs, feeds, strict=True)})
        return run(runner, feeds)

    monkeypatch.setattr(OnnxRunner, "run", noted)
    return shapes


def test_input_shapes_are_for_the_check_where_sizes_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in onnxsim: input_shapes fixes the sizes of the result, unless dynamic_input_shape is given."""
    seen = seen_shapes(monkeypatch)
    given = model(OPEN)
    made, ok = tonnx.simplify(given, check_n=1, dynamic_input_shape=True, input_shapes={"x": [3, -1]})
    assert ok and sizes_of_inputs(made) == [["N", 4], ["N"]]
    assert {"x": (3, 4), "z": (3,)} in seen
    seen.clear()
    made, ok = tonnx.simplify(given, check_n=1, input_shapes={"x": [3, 4], "z": [3]})
    assert ok and sizes_of_inputs(made) == [[3, 4], [3]]
    assert {"x": (3, 4), "z": (3,)} in seen
    seen.clear()
    made, ok = tonnx.simplify(
        given,
        check_n=1,
        dynamic_input_shape=True,
        input_shapes={"x": [5, 4]},
        overwrite_input_shapes={"x": [2, 4]},
        test_input_shapes={"z": [2]},
    )
    assert ok and sizes_of_inputs(made)[0] == [2, 4]
    assert {"x": (2, 4), "z": (2,)} in seen
    for shapes, said in (
        ({"w": [3]}, "no input 'w'; it has: x, z"),
        ({"z": [3, 1]}, r"'z' has 1 sizes, and \[3, 1\]"),
    ):
        with pytest.raises(tonnx.Error, match=said):
            tonnx.simplify(given, check_n=1, test_input_shapes=shapes)


def test_the_command_line_keeps_sizes_open_too(cli: Any) -> None:
    onnx.save(model(OPEN), "in.onnx")
    onnx.save(model("g (float[N] x) => (float[N] y) { y = Relu(x) }"), "one.onnx")
    for source, shape, open_sizes, fixed in (
        ("in.onnx", ["x:3,4", "z:3"], [["N", 4], ["N"]], [[3, 4], [3]]),
        ("one.onnx", ["3"], [["N"]], [[3]]),
    ):
        done = package_cli("simplify", source, "out.onnx", "1", "--dynamic-input-shape", "--input-shape", *shape)
        assert done.returncode == 0, done.stderr
        assert sizes_of_inputs(onnx.load("out.onnx")) == open_sizes
        done = package_cli("simplify", source, "out.onnx", "1", "--input-shape", *shape)
        assert done.returncode == 0, done.stderr
        assert sizes_of_inputs(onnx.load("out.onnx")) == fixed
    done = package_cli("simplify", "in.onnx", "other.onnx", "1", "--test-input-shape", "x:3,4,1")
    assert done.returncode == 1 and "'x' has 2 sizes" in done.stderr and not Path("other.onnx").exists()


def test_sizes_that_stay_open_need_no_arithmetic() -> None:
    made = model("""g (float[N,C,4] x) => (float[A,B] y)
        { s = Shape(x)  i = Constant<value_ints = [0]>()  n = Gather(s, i)
          r = Constant<value_ints = [-1]>()  t = Concat<axis = 0>(n, r)  y = Reshape(x, t) }""")
    check(made, {"Reshape": 1}, sizes={"N": 3, "C": 5})


def test_results_follow_the_opset_asked_for(source: Path, cli: Any) -> None:
    for opset in (9, 13, 21):
        assert cli("simplify", source, f"{opset}.onnx", "--opset", opset).returncode == 0
        made = onnx.load(f"{opset}.onnx")
        onnx.checker.check_model(made, full_check=True)
        assert made.opset_import[0].version == opset


def test_no_constant_grows_past_the_limit(cli: Any) -> None:
    onnx.save(
        model("""g (float[1024] x) => (float[1024,1024] y) <int64[2] s = {1024, 1024}, float[1] c = {2.0}>
            { e = Expand(c, s)  y = Mul(e, x) }"""),
        "in.onnx",
    )
    for limit, left in (("1KB", {"Expand": 1, "Mul": 1}), ("8MB", {"Expand": 1, "Mul": 1})):
        assert cli("simplify", "in.onnx", "out.onnx", "--no-fold-over", limit).returncode == 0
        assert count(onnx.load("out.onnx").graph) == left
        assert Path("out.onnx").stat().st_size <= Path("in.onnx").stat().st_size * 1.01


def test_small_results_are_folded_whatever_the_size_of_the_file() -> None:
    """And a result that is not small stays a node, unless the file is so large that it does not matter."""
    text = """g (float[1,1,{size},{size}] x, float[1,1,2,2] z, float[4] u)
            => (float[1,1,{size},{size}] y, float[1,1,2,2] w, float[4] t)
            <float[1,1,2,2] c = {{1.0, 2.0, 3.0, 4.0}}, float[4] s = {{1.0, 1.0, {scale}.0, {scale}.0}}>
        {{ r = Resize<mode = "nearest">(c, , s)  y = Add(x, r)  w = Mul(z, c)  t = Add(u, s) }}"""
    for size in (4, 14):
        check(model(text.format(size=size, scale=size // 2)), {"Add": 2, "Mul": 1})
    large = model(text.format(size=16, scale=8))  # 1 kB
    check(large, {"Resize": 1, "Add": 2, "Mul": 1})
    weights = numpy_helper.from_array(np.random.default_rng(0).random((4, 50_000), dtype=np.float32), "weights")
    large.graph.initializer.append(weights)
    large.graph.node.append(helper.make_node("MatMul", ["u", "weights"], ["v"]))
    large.graph.output.append(helper.make_tensor_value_info("v", TensorProto.FLOAT, [50_000]))
    check(large, {"Add": 2, "Mul": 1, "MatMul": 1})


def test_external_data(source: Path, cli: Any) -> None:
    weights = np.random.default_rng(0).random((64, 64), dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Identity", ["m"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 64])],
        [numpy_helper.from_array(weights, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, "in.onnx", save_as_external_data=True, location="in.data", size_threshold=0)
    assert cli("simplify", "in.onnx", "out.onnx").returncode == 0
    assert Path("out.onnx.data").exists()
    np.testing.assert_array_equal(numpy_helper.to_array(onnx.load("out.onnx").graph.initializer[0]), weights)
    assert cli("simplify", "in.onnx", "one.onnx", "--no-external-data").returncode == 0
    assert not Path("one.onnx.data").exists()
    assert cli("simplify", source, "two.onnx", "--external-data").returncode == 0


def test_python_gives_a_model_and_a_verdict(source: Path) -> None:
    made, ok = tonnx.simplify(str(source), 2)
    assert ok is True and count(made.graph) == {"Relu": 1, "Neg": 1, "Exp": 1}
    for given in (source, source.read_bytes(), onnx.load(source)):
        again, ok = tonnx.simplify(given, check_n=1, input_data=None)
        assert ok and again == made
    report = tonnx.simplify(source, "out.onnx", skipped_optimizers=["eliminate_nop_dropout", "fuse_bn_into_conv"])
    assert report.ok and report.nodes["before"] == 5 and "Simplified Model" in str(report)


def test_arguments_of_onnxsim_are_understood(source: Path) -> None:
    made, ok = tonnx.simplify(
        onnx.load(source),
        check_n=1,
        perform_optimization=True,
        skip_fuse_bn=True,
        overwrite_input_shapes={"x": [2, 4], "unused": [2, 4]},
        test_input_shapes={"x": [2, 4]},
        skipped_optimizers=["eliminate_duplicate_initializer"],
        skip_constant_folding=False,
        skip_shape_inference=True,
        input_data={"x": np.ones((2, 4), np.float32), "unused": np.ones((2, 4), np.float32)},
        dynamic_input_shape=False,
        custom_lib=None,
        include_subgraph=True,
        unused_output=["z"],
        tensor_size_threshold="1.5GB",
        mutable_initializer=False,
    )
    assert ok and count(made.graph) == {"Relu": 1} and not made.graph.value_info
    left, _ = tonnx.simplify(onnx.load(source), perform_optimization=False)
    assert count(left.graph) == {"Identity": 1, "Mul": 1, "Relu": 1, "Neg": 1, "Exp": 1}


def test_outputs_are_compared(source: Path) -> None:
    done = package_cli("simplify", source, "out.onnx", "2")
    assert done.returncode == 0, done.stderr
    np.savez("data.npz", x=np.ones((3, 4), np.float32), unused=np.ones((3, 4), np.float32))
    done = package_cli("simplify", source, "out.onnx", "1", "--input-data", "data.npz", "--verify-passes")
    assert done.returncode == 0, done.stderr


def test_a_binary_alone_says_what_it_needs(source: Path, cli: Any) -> None:
    done = cli("simplify", source, "out.onnx", "1")
    assert done.returncode in (0, 2)
    if done.returncode == 2:
        assert "needs ONNX Runtime" in done.stderr and not Path("out.onnx").exists()


def test_a_pass_that_changes_outputs_is_taken_back(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge says no to every result in which the Mul is gone."""

    def no_without_mul(_: str, result: str, **__: object) -> str:
        return "" if count(onnx.load(result).graph)["Mul"] else "output 'y' differs"

    monkeypatch.setattr(tonnx._compare, "compare_files", no_without_mul)
    report = tonnx.simplify(source, "out.onnx", check_n=1, verify_passes=True)
    assert report.taken_back == ["eliminate_identity"] and report.ok
    assert count(onnx.load("out.onnx").graph)["Mul"] == 1
    made, ok = tonnx.simplify(source, check_n=1)
    assert not ok and not count(made.graph)["Mul"]


def test_subgraphs_and_functions() -> None:
    made = model("""g (bool c, float[N] x) => (float[N] y)
        { y = If(c) <then_branch = t () => (float[N] a) { b = Identity(x)  a = Relu(b) },
                     else_branch = e () => (float[N] d) { k = Constant<value_float = 0.0>()  d = Add(x, k) }> }""")
    check(made, {"If": 1, "Relu": 1, "Add": 1}, sizes={"N": 3})
    called = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x) => (float[N] y) { y = own.twice(x) }
        <domain: "own", opset_import: ["" : 18]> twice (a) => (c) { b = Identity(a)  c = Add(b, b) }""")
    inlined, _ = tonnx.simplify(called)
    assert count(inlined.graph) == {"Add": 1} and not inlined.functions
    kept, _ = tonnx.simplify(called, skip=["inline_functions"])
    assert count(kept.graph) == {"twice": 1} and [node.op_type for node in kept.functions[0].node] == ["Add"]
    onnx.checker.check_model(kept)


@pytest.mark.parametrize("text", ["", "not a model", "\x08\x09"])
def test_bad_files_leave_nothing_behind(cli: Any, text: str) -> None:
    Path("bad.onnx").write_text(text)
    for command in ("simplify", "infer"):
        done = cli(command, "bad.onnx", "out.onnx")
        assert done.returncode == 1 and done.stderr.startswith("error: "), done.stderr
        assert sorted(path.name for path in Path().iterdir()) == ["bad.onnx"]


def test_time_is_linear_and_chains_collapse() -> None:
    """No clock: a graph of 20,000 nodes that are all in vain must go in a few rounds."""
    nodes, last = [], "x"
    for i in range(20000):
        nodes.append(helper.make_node("Identity" if i % 2 else "Add", [last] if i % 2 else [last, "zero"], [f"v{i}"]))
        last = f"v{i}"
    nodes.append(helper.make_node("Relu", [last], ["y"]))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])],
        [numpy_helper.from_array(np.float32(0), "zero")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "in.onnx")
    report = tonnx.simplify("in.onnx", "out.onnx")
    assert report.nodes["after"] == 1 and report.rounds <= 3

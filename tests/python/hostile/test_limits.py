"""Files that ask for more than they are: each is converted, or refused with the name of a limit, at little cost."""

from __future__ import annotations

import io
import itertools
import struct
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from limited_runs import assert_refused, run_limited
from onnx import TensorProto, helper, numpy_helper

import tonnx

Maker = Callable[[], onnx.ModelProto]
OUT_OF_PROPORTION: dict[str, tuple[Maker, str]] = {}  # what is refused on the way to .py, and a part of the error
IN_PROPORTION: dict[str, Maker] = {}  # what must come through


def refused(error: str) -> Callable[[Maker], Maker]:
    def add(maker: Maker) -> Maker:
        OUT_OF_PROPORTION[maker.__name__] = (maker, error)
        return maker

    return add


def taken(maker: Maker) -> Maker:
    IN_PROPORTION[maker.__name__] = maker
    return maker


def value(name: str, shape: Sequence[int] | None = None, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


X, Y = value("x", [2, 3]), value("y")


def weight(name: str, array: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (X,),
    weights: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (Y,),
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(weights))
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)


def function(name: str, inputs: list[str], outputs: list[str], nodes: list[onnx.NodeProto]) -> onnx.FunctionProto:
    return helper.make_function(
        "f", name, inputs, outputs, nodes, [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    )


# ---- what grows


@refused("the functions grow past")
def empty_functions_that_call_each_other() -> onnx.ModelProto:
    functions = [function("f0", [], [], [])]
    for i in range(1, 41):
        calls = [helper.make_node(f"f{i - 1}", [], [], domain="f") for _ in range(2)]
        functions.append(function(f"f{i}", [], [], calls))
    nodes = [helper.make_node("f40", [], [], domain="f"), helper.make_node("Relu", ["x"], ["y"])]
    return model(nodes, functions=functions)


def chain(op: str, count: int, first: str, last: str, **attributes: object) -> list[onnx.NodeProto]:
    names = [first, *(f"t{i}" for i in range(1, count)), last]
    return [helper.make_node(op, [a], [b], **attributes) for a, b in itertools.pairwise(names)]


@refused("--limit text=")
def a_long_name_before_many_nodes() -> onnx.ModelProto:
    body = function("f0", ["a"], ["b"], chain("Relu", 20_000, "a", "b"))
    return model([helper.make_node("f0", ["x"], ["y"], domain="f", name="N" * 1_000_000)], functions=[body])


@refused("--limit memory=")
def an_attribute_that_each_call_repeats() -> onnx.ModelProto:
    constant = helper.make_node("Constant", [], ["c"], value_floats=[1.0] * 20_000)
    nodes = [
        constant,
        helper.make_node("ReduceSum", ["c"], ["d"], keepdims=0),
        helper.make_node("Add", ["a", "d"], ["b"]),
    ]
    body = function("f0", ["a"], ["b"], nodes)
    return model(chain("f0", 2_000, "x", "y", domain="f"), functions=[body])


@refused("--limit memory=")
def a_region_of_many_bins() -> onnx.ModelProto:
    node = helper.make_node(
        "RoiAlign", ["x", "r", "b"], ["y"], output_height=30_000, output_width=30_000, sampling_ratio=1_000
    )
    return model([node], [value("x", [1, 1, 4, 4]), value("r", [1, 4]), value("b", [1], TensorProto.INT64)])


@refused("--limit memory=")
def a_vector_machine_of_many_classes() -> onnx.ModelProto:
    classes = 400
    node = helper.make_node(
        "SVMClassifier",
        ["x"],
        ["label", "y"],
        domain="ai.onnx.ml",
        classlabels_ints=list(range(classes)),
        vectors_per_class=[3] * classes,
        rho=[0.0] * (classes * (classes - 1) // 2),
        coefficients=[1.0] * ((classes - 1) * 3 * classes),
        support_vectors=[1.0] * (3 * classes),
    )
    return model([node], [value("x", [1, 1])], outputs=[value("label", None, TensorProto.INT64), Y])


@refused("does not fit into 64 bits")
def a_tree_whose_scores_wrap_around() -> onnx.ModelProto:
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=2**62,
        nodes_treeids=[0] * 7,
        nodes_nodeids=list(range(7)),
        nodes_featureids=[0] * 7,
        nodes_values=[0.0] * 7,
        nodes_modes=["BRANCH_LEQ"] * 3 + ["LEAF"] * 4,
        nodes_truenodeids=[1, 3, 5, 0, 0, 0, 0],
        nodes_falsenodeids=[2, 4, 6, 0, 0, 0, 0],
        target_treeids=[0] * 4,
        target_nodeids=[3, 4, 5, 6],
        target_ids=[2**40, 0, 0, 0],
        target_weights=[1.0] * 4,
    )
    return model([node], [value("x", [1, 1])])


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean", "Concat"])
@pytest.mark.parametrize("target", ["model.py", "model.pt2"])
def test_variadic_inputs_are_never_absent(op: str, target: str, tmp_path: Path) -> None:
    attributes = {"axis": 0} if op == "Concat" else {}
    nodes = [
        helper.make_node(op, ["a", "", "b"], ["m"], **attributes),
        helper.make_node("Add", ["m", "x"], ["y"]),
    ]
    weights = [weight("a", np.ones(3, np.float32)), weight("b", np.ones(3, np.float32))]
    onnx.save(model(nodes, weights=weights), tmp_path / "a.onnx")
    done = run_limited("convert", tmp_path / "a.onnx", tmp_path / target)
    assert_refused(done, (1,))
    assert "is absent" in done.stderr


# ---- what must come through: nothing is computed that would take too long, and nothing is quadratic


@taken
def folded_convolutions() -> onnx.ModelProto:
    ones = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    nodes = [
        helper.make_node("ConstantOfShape", ["image"], ["t0"], value=ones),
        helper.make_node("ConstantOfShape", ["kernel"], ["w"], value=ones),
        *(helper.make_node("Conv", [f"t{i}", "w"], [f"t{i + 1}"], pads=[1] * 4) for i in range(1_000)),
        helper.make_node("Add", ["t1000", "x"], ["y"]),
    ]
    weights = [weight("image", np.array([1, 16, 512, 512])), weight("kernel", np.array([16, 16, 3, 3]))]
    return model(nodes, [value("x", [1])], weights)


@taken
def a_constant_that_grows_eightfold() -> onnx.ModelProto:
    nodes = [helper.make_node("Concat", [f"t{i}"] * 8, [f"t{i + 1}"], axis=0) for i in range(12)]
    nodes.append(helper.make_node("Gather", ["t12", "x"], ["y"]))
    return model(nodes, [value("x", [1], TensorProto.INT64)], [weight("t0", np.ones(100, np.float32))])


@taken
def a_walk_around_nothing() -> onnx.ModelProto:
    nodes = [
        helper.make_node("ConstantOfShape", ["sizes"], ["c"]),
        helper.make_node("Concat", ["c", "c"], ["d"], axis=1),
        helper.make_node("Add", ["x", "d"], ["y"]),
    ]
    return model(nodes, [value("x", [1])], [weight("sizes", np.array([2**40, 0]))])


@taken
def heads_of_nothing() -> onnx.ModelProto:
    sizes = weight("q", np.ones((1, 1, 0), np.float32))
    node = helper.make_node("RotaryEmbedding", ["q", "s", "s"], ["r"], num_heads=2**40)
    nodes = [node, helper.make_node("Concat", ["r", "x"], ["y"], axis=2)]
    result = model(nodes, [value("x", [1, 1, 3])], [sizes, weight("s", np.ones((1, 1, 0), np.float32))])
    result.opset_import[0].version = 23
    return result


def scans(depth: int, times: int) -> onnx.GraphProto:
    if depth == 0:
        nodes = [helper.make_node("Add", ["s", "i"], ["t"]), helper.make_node("Identity", ["t"], ["o"])]
    else:
        body = scans(depth - 1, times)
        names = ["s", *(f"s{i}" for i in range(1, times)), "t"]
        nodes = [
            helper.make_node("Scan", [a, "i"], [b, f"q{b}"], body=body, num_scan_inputs=1)
            for a, b in itertools.pairwise(names)
        ]
        nodes.append(helper.make_node("Identity", ["t"], ["o"]))
    return helper.make_graph(nodes, "b", [value("s"), value("i")], [value("t"), value("o")])


@taken
def scans_inside_scans() -> onnx.ModelProto:
    node = helper.make_node("Scan", ["x", "z"], ["y", "w"], body=scans(20, 1), num_scan_inputs=1)
    return model([node], [value("x", [2]), value("z", [2] * 22)])


@taken
def many_values_that_live_long() -> onnx.ModelProto:
    count = 20_000
    nodes = [helper.make_node("Add", ["x" if i == 0 else f"v{i - 1}", "x"], [f"v{i}"]) for i in range(count)]
    last = "v0"
    for i in reversed(range(1, count)):
        nodes.append(helper.make_node("Mul", [last, f"v{i}"], [f"m{i}"]))
        last = f"m{i}"
    return model([*nodes, helper.make_node("Relu", [last], ["y"])])


@taken
def many_weights_of_one_name() -> onnx.ModelProto:
    """Different names that are the same as identifiers of Python."""
    names = [
        "weight" + "".join(marks) for marks in itertools.islice(itertools.product("!@#$%^&*()+=", repeat=4), 20_000)
    ]
    nodes = [helper.make_node("Add", [f"t{i}" if i else "x", name], [f"t{i + 1}"]) for i, name in enumerate(names)]
    nodes.append(helper.make_node("Relu", [f"t{len(names)}"], ["y"]))
    return model(nodes, weights=[weight(name, np.full(3, i + 1, np.float32)) for i, name in enumerate(names)])


@taken
def many_branches_that_make_one_name() -> onnx.ModelProto:
    branch = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "b", [], [value("r")])
    nodes = [helper.make_node("If", ["c"], [f"t{i}"], then_branch=branch, else_branch=branch) for i in range(10_000)]
    nodes.append(helper.make_node("Sum", [f"t{i}" for i in range(10_000)], ["y"]))
    return model(nodes, [X, value("c", [], TensorProto.BOOL)])


@pytest.mark.parametrize("name", OUT_OF_PROPORTION)
def test_what_grows_out_of_proportion_is_refused(name: str, tmp_path: Path) -> None:
    maker, error = OUT_OF_PROPORTION[name]
    onnx.save(maker(), tmp_path / "a.onnx")
    done = run_limited("convert", tmp_path / "a.onnx", tmp_path / "model.py")
    assert_refused(done)
    assert error in done.stderr
    assert not (tmp_path / "model.py").exists()


@pytest.mark.heavy
@pytest.mark.parametrize("name", IN_PROPORTION)
def test_what_is_large_comes_through(name: str, tmp_path: Path) -> None:
    onnx.save(IN_PROPORTION[name](), tmp_path / "a.onnx")
    for target in ("model.py", "model.pt2"):
        done = run_limited("convert", tmp_path / "a.onnx", tmp_path / target)
        assert done.returncode == 0, done.stderr[-2000:]
        assert (tmp_path / target).stat().st_size > 0
    done = run_limited("simplify", tmp_path / "a.onnx", tmp_path / "simple.onnx", "-q")
    assert done.returncode == 0, done.stderr[-2000:]


def test_numbers_behind_a_name_are_all_different(tmp_path: Path) -> None:
    onnx.save(many_weights_of_one_name(), tmp_path / "a.onnx")
    assert run_limited("convert", tmp_path / "a.onnx", tmp_path / "model.py").returncode == 0
    lines = [line for line in (tmp_path / "model.py").read_text().splitlines() if "torch.empty" in line]
    assert len(lines) == len(set(lines)) == 20_000


# ---- programs of PyTorch whose arguments grow once they are written


class Calls(torch.nn.Module):
    def __init__(self, call: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(x)


def edited(folder: Path, call: Callable[[torch.Tensor], torch.Tensor], shape: Sequence[int], **edits: str) -> Path:
    """The program of a call, with numbers in its text replaced by others."""
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(Calls(call), (torch.zeros(shape),)), buffer)
    path = folder / "a.pt2"
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as target:
        for info in source.infolist():
            content = source.read(info)
            if info.filename.endswith("model.json"):
                for old, new in edits.items():
                    assert old[1:].encode() in content
                    content = content.replace(old[1:].encode(), new.encode())
            target.writestr(info.filename, content)
    return path


aten = torch.ops.aten


@pytest.mark.parametrize(
    "call, shape, edits, error",
    [
        (lambda x: aten._adaptive_avg_pool2d(x, [7001, 5]), [1, 1, 10, 10], {"_7001": "2000000000"}, "--limit memory="),
        (lambda x: aten.adaptive_max_pool2d(x, [71, 53])[0], [1, 1, 100, 100], {"_71": "710000"}, "so many and large"),
        (lambda x: aten.im2col(x, [7, 7], [1, 1], [0, 0], [1, 1]), [1, 1, 211, 211], {"_211": "211000000"}, "memory="),
        (lambda x: aten.upsample_nearest2d(x, [3001, 3001]), [1, 1, 7, 7], {"_3001": "3000000000"}, "--limit memory="),
        (lambda x: aten.upsample_nearest1d(x, [3001]), [1, 1, 7], {"_3001": "4000000000000000000"}, "64 bits"),
        (lambda x: x + torch.hann_window(7777), [7777], {"_7777": "16000000"}, "--limit memory="),
    ],
    ids=["adaptive_avg_pool", "adaptive_max_pool", "im2col", "upsample", "upsample_that_wraps", "window"],
)
def test_tables_are_refused_before_they_are_built(
    call: Callable[[torch.Tensor], torch.Tensor], shape: list[int], edits: dict[str, str], error: str, tmp_path: Path
) -> None:
    done = run_limited("convert", edited(tmp_path, call, shape, **edits), tmp_path / "model.onnx")
    assert_refused(done)
    assert error in done.stderr


# ---- the option


SMALL = [*chain("Relu", 5, "x", "y")]


def converted(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    onnx.save(model(SMALL), folder / "a.onnx")
    return run_limited("convert", folder / "a.onnx", folder / "model.py", *options)


def test_a_limit_can_be_set(tmp_path: Path) -> None:
    done = converted(tmp_path, "--limit", "nodes=4", "--limit", "memory=1K")
    assert_refused(done, (2,))
    assert "more than 4 nodes and values" in done.stderr and "--limit nodes=" in done.stderr
    assert converted(tmp_path, "--limit", "nodes=1K").returncode == 0


@pytest.mark.parametrize("command", ["simplify", "infer", "check", "print"])
def test_every_command_has_limits(command: str, tmp_path: Path) -> None:
    onnx.save(model(SMALL), tmp_path / "a.onnx")
    targets = [tmp_path / "b.onnx"] if command in ("simplify", "infer") else []
    done = run_limited(command, tmp_path / "a.onnx", *targets, "--limit", "nodes=4")
    assert_refused(done, (2,))
    assert "--limit nodes=" in done.stderr


@pytest.mark.parametrize(
    "text, error", [("time=3", "there is no limit 'time'"), ("nodes", "not of the form"), ("nodes=x", "not a size")]
)
def test_a_limit_that_is_none(text: str, error: str, tmp_path: Path) -> None:
    done = converted(tmp_path, "--limit", text)
    assert_refused(done, (1,))
    assert error in done.stderr


def test_limits_in_python(tmp_path: Path) -> None:
    source = model(SMALL).SerializeToString()
    with pytest.raises(tonnx.Error, match="more than 4 nodes"):
        tonnx.convert(source, tmp_path / "model.py", limits={"nodes": 4})
    with pytest.raises(tonnx.Error, match="more than 4 nodes"):
        tonnx.check(source, limits={"nodes": 4})
    with pytest.raises(tonnx.Error, match="more than 4 nodes"):
        tonnx.simplify(source, limits={"nodes": "4"})
    with pytest.raises(tonnx.Error, match="more than 4 nodes"):
        tonnx.infer(source, limits={"nodes": 4})
    with pytest.raises(tonnx.Error, match="there is no limit 'time'"):
        tonnx.infer(source, limits={"time": 4})
    tonnx.convert(source, tmp_path / "model.py", limits={"nodes": "1K"})


def test_limits_of_a_batch(tmp_path: Path) -> None:
    onnx.save(model(SMALL), tmp_path / "a.onnx")
    config = tmp_path / "config.yml"
    config.write_text(
        "models:\n- {source: a.onnx, target: a.py, limits: {nodes: 4}}\n- {source: a.onnx, target: b.py}\n"
    )
    results = tonnx.run(config).results
    assert [result.status for result in results] == ["failed", "done"]
    assert "more than 4 nodes" in results[0].error
    assert [result.status for result in tonnx.run(config, limits={"nodes": 3}).results] == ["failed", "failed"]
    config.write_text("models:\n- {source: a.onnx, target: a.py, limits: {time: 4}}\n")
    with pytest.raises(tonnx.Error, match="there is no limit 'time'"):
        tonnx.run(config)


def test_aliases_that_repeat_lists_are_refused(tmp_path: Path) -> None:
    onnx.save(model(SMALL), tmp_path / "a.onnx")
    lists = "a: &a [" + ", ".join(["a.onnx"] * 5_000) + "]"
    models = "\n".join(["- {source: *a, target: '{stem}.py'}"] * 5_000)
    (tmp_path / "config.yml").write_text(f"{lists}\nmodels:\n{models}\n")
    done = run_limited("run", tmp_path / "config.yml", "--dry-run")
    assert_refused(done, (1,))
    assert "aliases repeat too many values" in done.stderr


def test_memo_numbers_of_a_pickle_in_one_bucket(tmp_path: Path) -> None:
    """The numbers are multiples of a number of buckets that a hash table of that size has."""
    numbers = [i * 1_056_323 % 2**32 for i in range(300_000)]
    pickle = b"\x80\x02N" + b"".join(b"r" + struct.pack("<I", number) for number in numbers) + b"."
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("m/serialized_exported_program.json", "{}")
        archive.writestr("serialized_exported_program.json", "{}")
        archive.writestr("serialized_state_dict.pt", pickle)
    (tmp_path / "a.pt2").write_bytes(buffer.getvalue())
    assert_refused(run_limited("convert", tmp_path / "a.pt2", tmp_path / "model.py"))

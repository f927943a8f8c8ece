"""tonnx infer: types and shapes of all values, and what cannot be."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import runtime_run
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from simplify_checks import check, model

import tonnx


def shapes(made: onnx.ModelProto) -> dict[str, list[int | str]]:
    values = [*made.graph.value_info, *made.graph.input, *made.graph.output]
    return {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in values
        if value.type.tensor_type.HasField("shape")
    }


def test_sizes_are_expressions() -> None:
    made = tonnx.infer(
        model("""g (float[batch,3,h,w] x, float[8,3,3,3] k) => (float[a,b,c,d] y)
            { p = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, k)  q = Concat<axis = 2>(p, p)
              f = Flatten<axis = 2>(q)  y = Relu(q) }""")
    )
    found = shapes(made)
    assert found["p"] == ["batch", 8, "floor((h + 1)/2)", "floor((w + 1)/2)"]
    assert found["q"] == ["batch", 8, "2*floor((h + 1)/2)", "floor((w + 1)/2)"]
    assert found["f"] == ["8*batch", "2*floor((h + 1)/2)*floor((w + 1)/2)"]


def test_values_are_followed_through_shape_arithmetic() -> None:
    made = tonnx.infer(
        model("""g (float[n,c,h,w] x) => (float[a,b] y)
            { s = Shape(x)  zero = Constant<value_ints = [0]>()  one = Constant<value_ints = [1]>()
              n = Gather(s, zero)  c = Gather(s, one)  both = Mul(n, c)  rest = Constant<value_ints = [-1]>()
              t = Concat<axis = 0>(both, rest)  y = Reshape(x, t) }""")
    )
    assert shapes(made)["y"] == ["c*n", "h*w"]


def test_symbols_that_must_be_equal_are_one() -> None:
    made = tonnx.infer(
        model("g (float[n,k] x, float[l,m] w) => (float[n,m] y) { t = Transpose(w)  u = Relu(w)  y = MatMul(x, w) }")
    )
    found = shapes(made)
    assert found["x"][1] == found["w"][0] == found["u"][0] == found["t"][1]


def test_subgraphs_are_inferred() -> None:
    made = tonnx.infer(
        model("""g (bool c, float[n] x) => (float[m] y)
            { y = If(c) <then_branch = t () => (float[p] a) { b = Concat<axis = 0>(x, x)  a = Relu(b) },
                         else_branch = e () => (float[q] d) { f = Concat<axis = 0>(x, x)  d = Neg(f) }> }""")
    )
    inner = made.graph.node[0].attribute[0].g
    assert [v.type.tensor_type.shape.dim[0].dim_param for v in inner.value_info] == ["2*n"]
    assert shapes(made)["y"] == ["2*n"]


@pytest.mark.parametrize("opset", [9, 12, 13])
def test_older_forms_are_inferred(opset: int) -> None:
    axes = "u = Unsqueeze<axes = [0]>(x)" if opset < 13 else "a = Constant<value_ints = [0]>()  u = Unsqueeze(x, a)"
    made = tonnx.infer(model(f"g (float[n,2] x) => (float[1,n,2] y) {{ {axes}  y = Relu(u) }}", opset=opset))
    assert shapes(made)["u"] == [1, "n", 2]
    assert [node.op_type for node in made.graph.node if node.op_type != "Constant"] == ["Unsqueeze", "Relu"]


def test_what_cannot_be_is_an_error(cli: Any) -> None:
    made = model("g (float[2,3] x) => (float[2,3] y) { t = Transpose(x)  y = Transpose(t) }")
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, [2, 3]))
    onnx.save(made, "in.onnx")
    done = cli("infer", "in.onnx", "out.onnx")
    assert done.returncode == 1 and not Path("out.onnx").exists()
    assert "value 't' is declared as float32[2, 3], and what is computed is float32[3, 2]" in done.stderr


def _tensors(case: Any, kind: str) -> list[np.ndarray | None]:
    if case.data_sets:
        arrays = case.data_sets[0][0 if kind == "input" else 1]
        arrays = [numpy_helper.to_array(a) if isinstance(a, onnx.TensorProto) else a for a in arrays]
        return [a if isinstance(a, np.ndarray) else np.asarray(a) if np.isscalar(a) else None for a in arrays]
    made = onnx.load(os.path.join(case.model_dir, "model.onnx"))
    result: list[np.ndarray | None] = []
    for path, value in zip(
        sorted(glob.glob(os.path.join(case.model_dir, "test_data_set_0", f"{kind}_*.pb"))),
        getattr(made.graph, kind),
        strict=True,
    ):
        tensor = onnx.TensorProto()
        is_tensor = value.type.HasField("tensor_type")
        if is_tensor:
            tensor.ParseFromString(Path(path).read_bytes())
        result.append(numpy_helper.to_array(tensor) if is_tensor else None)
    return result


@pytest.mark.filterwarnings("ignore")
def test_node_tests_agree_with_their_outputs() -> None:
    """Only the types of inputs are given; what is inferred must fit the expected outputs, and is mostly all of it."""
    wrong, open_types, known = [], [], 0
    for case in load_model_tests(kind="node"):
        made = case.model or onnx.load(os.path.join(case.model_dir, "model.onnx"))
        made = onnx.ModelProto.FromString(made.SerializeToString())
        declared = [value.type for value in onnx.ModelProto.FromString(made.SerializeToString()).graph.output]
        del made.graph.value_info[:]
        for value in made.graph.output:
            value.ClearField("type")
        found = tonnx.infer(made)
        for value, expected, type_ in zip(found.graph.output, _tensors(case, "output"), declared, strict=True):
            if expected is None or not type_.HasField("tensor_type"):
                continue
            tensor = value.type.tensor_type
            if not tensor.elem_type or not tensor.HasField("shape"):
                open_types.append(case.name)
                continue
            sizes = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
            fits = len(sizes) == expected.ndim and all(
                a in (None, b) for a, b in zip(sizes, expected.shape, strict=True)
            )
            if tensor.elem_type != type_.tensor_type.elem_type or not fits:
                wrong.append((case.name, sizes, expected.shape))
            known += None not in sizes
    assert not wrong
    assert len(open_types) <= 5, open_types  # a grid whose rank is an input, and trees with strings
    assert known >= 1950


def test_a_part_that_is_known_leaves_its_place_filled():
    """Case 34000143: Split has no optional outputs, and ONNX Runtime writes to those that are left out."""
    made = model(
        """g (float[2,N,3,M] x) => (int64[1] q, int64[2] a, int64[1] b) <int64[3] s = {1,2,1}> {
              h = Shape(x)  q, a, b = Split<axis = 0>(h, s) }"""
    )
    simplified = check(made, {"Shape": 1, "Split": 1})
    assert all(all(node.output) for node in simplified.graph.node)


def test_what_has_no_known_elements_is_not_declared() -> None:
    """Case 36000364: of what follows from a result whose type nobody infers, not even the elements are known."""
    made = model(
        """g (float[2,3] x) => (int64[0] r, float[a,b] y) <int64 a = {0}, int64 b = {-4}, int64 c = {1}> {
            r = Range(a, b, c)
            t = ai.onnx.ml.TreeEnsembleRegressor<n_targets = 3, nodes_falsenodeids = [0], nodes_featureids = [0],
                nodes_modes = ["LEAF"], nodes_nodeids = [0], nodes_treeids = [0], nodes_truenodeids = [0],
                nodes_values = [0.0], target_ids = [0], target_nodeids = [0], target_treeids = [0],
                target_weights = [1.5]>(x)
            d = Div(t, t)
            y = Relu(d) }""",
        opsets={"ai.onnx.ml": 3},
    )
    simple, _ = tonnx.simplify(made)
    assert all(value.type.tensor_type.elem_type for value in [*simple.graph.value_info, *simple.graph.output])
    x = np.ones((2, 3), np.float32)
    for got, wanted in zip(runtime_run(simple, {"x": x}), runtime_run(made, {"x": x}), strict=True):
        np.testing.assert_array_equal(got, wanted)

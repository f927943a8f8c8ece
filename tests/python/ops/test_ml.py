"""ai.onnx.ml: what ONNX Runtime gives for features, linear models, support vectors and trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
import torch
from checks import expected
from onnx import helper, numpy_helper

import tonnx

RNG = np.random.default_rng(8)
X = RNG.standard_normal((7, 4)).astype(np.float32)
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]


def model_of(
    op: str,
    inputs: dict[str, np.ndarray],
    outputs: int,
    version: int,
    constant: tuple[str, ...] = (),
    **attributes: Any,
) -> onnx.ModelProto:
    node = helper.make_node(op, list(inputs), [f"y{i}" for i in range(outputs)], domain="ai.onnx.ml", **attributes)
    declared = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), ["n", *v.shape[1:]] if v.ndim > 1 else v.shape)
        for k, v in inputs.items() if k not in constant
    ]  # fmt: skip
    weights = [numpy_helper.from_array(inputs[name], name) for name in constant]
    graph = helper.make_graph(
        [node], "ml", declared, [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)], weights
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def check(op: str, x: np.ndarray | dict[str, np.ndarray], outputs: int = 1, version: int = 3, values: list[np.ndarray] | None = None,
          tolerance: float = 1e-5, constant: tuple[str, ...] = (), **attributes: Any) -> torch.nn.Module:  # fmt: skip
    inputs = x if isinstance(x, dict) else {"x": x}
    model = model_of(op, inputs, outputs, version, constant, **attributes)
    feeds = {name: array for name, array in inputs.items() if name not in constant}
    values = expected(model, feeds, False) if values is None else values
    module = tonnx.convert(model)
    given = module(*(torch.from_numpy(array) for array in feeds.values()))
    for got, want in zip(given if isinstance(given, (tuple, list)) else [given], values, strict=True):
        got, want = got.detach().numpy(), np.asarray(want)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return module


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_features(dtype: str) -> None:
    x = (X * 3).astype(dtype)
    check("Scaler", x, offset=[0.5], scale=[2.0])
    check("Scaler", x, offset=[0.5, 1.0, 0.0, -1.0], scale=[2.0, 1.0, 0.5, 3.0])
    for norm in ("MAX", "L1", "L2"):
        check("Normalizer", x, norm=norm, tolerance=1e-4)
    check("Normalizer", np.zeros_like(x), norm="L2")
    if dtype in ("float32", "int64"):  # ONNX Runtime has no others
        check(
            "Imputer", x, imputed_value_floats=[7.0], replaced_value_float=float(x[0, 0])
        ) if dtype == "float32" else None
        check(
            "Imputer", x, imputed_value_int64s=[7, 8, 9, 10], replaced_value_int64=int(x[0, 0])
        ) if dtype == "int64" else None
    if dtype == "float32":
        check("Binarizer", x, threshold=0.3)
        holes = np.where(x > 1, np.nan, x).astype(np.float32)
        check("Imputer", holes, imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float("nan"))
    check("ArrayFeatureExtractor", {"x": x, "y": np.array([3, 0])}, constant=("y",))
    check("FeatureVectorizer", {"x": x, "y": x[:, :2]}, inputdimensions=[4, 2])


def test_one_hot_and_labels() -> None:
    numbers = np.array([[3], [1], [4], [9]])
    check("OneHotEncoder", numbers, cats_int64s=[1, 3, 4, 5])
    check("OneHotEncoder", numbers.astype(np.float32), cats_int64s=[1, 3, 4, 5])
    for version in (2, 4):
        check("LabelEncoder", numbers, version=version, keys_int64s=[1, 3, 4], values_floats=[0.5, 1.5, 2.5])
        check("LabelEncoder", numbers, version=version, keys_int64s=[1, 3, 4], values_int64s=[7, 8, 9], default_int64=5)
        check(
            "LabelEncoder",
            numbers.astype(np.float32),
            version=version,
            keys_floats=[1.0, 3.0, float("nan")],
            values_floats=[7.0, 8.0, 9.0],
            default_float=2.0,
        )


def test_labels_of_repeated_keys() -> None:
    """ONNX Runtime takes the first of equal keys, the standard's own implementation the last."""
    numbers = np.array([3, 1, 4])
    model = model_of("LabelEncoder", {"x": numbers}, 1, 4, keys_int64s=[1, 3, 1], values_int64s=[7, 8, 9])
    (standard,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": numbers})
    assert tonnx.convert(model)(torch.tensor(numbers)).tolist() == standard.tolist()


@pytest.mark.parametrize("post", POSTS)
def test_linear(post: str) -> None:
    coefficients = RNG.random(12) * 0.2
    positive = np.abs(X) * 0.4
    tolerance = 1e-3 if post == "PROBIT" else 1e-5
    options = {"post_transform": post, "intercepts": [0.1, 0.2, 0.05], "coefficients": coefficients.tolist()}
    check("LinearRegressor", positive, targets=3, tolerance=tolerance, **options)
    check("LinearClassifier", positive, 2, classlabels_ints=[4, 2, 9], tolerance=tolerance, **options)
    if post != "PROBIT":
        two = {"post_transform": post, "intercepts": [0.1], "coefficients": [0.3, -0.2, 0.5, 0.1]}
        check("LinearClassifier", X, 2, classlabels_ints=[4, 2], **two)


def test_linear_is_a_layer() -> None:
    x = (X * 3).astype(np.int64)
    values = [(x @ np.array([[1], [2], [3], [4]])).astype(np.float32)]
    module = check("LinearRegressor", x, targets=1, coefficients=[1.0, 2.0, 3.0, 4.0], values=values)
    assert any(isinstance(part, torch.nn.Linear) for part in module.modules())


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel: str) -> None:
    vectors = RNG.standard_normal((6, 4))
    options = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, 2.0], "support_vectors": vectors.ravel().tolist()}
    check(
        "SVMRegressor",
        X,
        coefficients=RNG.standard_normal(6).tolist(),
        rho=[0.2],
        n_supports=6,
        tolerance=1e-4,
        **options,
    )
    check(
        "SVMRegressor", X, coefficients=RNG.standard_normal(6).tolist(), rho=[0.2], n_supports=6, one_class=1, **options
    )
    three = {"coefficients": RNG.standard_normal(12).tolist(), "rho": [0.1, -0.2, 0.3], "vectors_per_class": [1, 2, 3]}
    check("SVMClassifier", X, 2, classlabels_ints=[5, 6, 7], tolerance=1e-4, **three, **options)
    two = {"coefficients": RNG.standard_normal(6).tolist(), "rho": [0.1], "vectors_per_class": [2, 4]}
    check("SVMClassifier", X, 2, classlabels_ints=[5, 6], tolerance=1e-4, **two, **options)
    # the label is what the pairs vote for, even where they make another class more likely (case 32000171)
    for count, machines, sign in ((2, two, -1), (3, three, -1), (2, two, 1)):
        pairs = count * (count - 1) // 2
        proba = {"prob_a": [sign * a for a in (0.7, 0.5, 1.1)[:pairs]], "prob_b": [0.1, -0.2, 0.0][:pairs]}
        model = model_of(
            "SVMClassifier", {"x": X}, 2, 3, classlabels_ints=[5, 6, 7][:count], **machines, **proba, **options
        )
        wanted, scores = expected(model, {"x": X}, False)  # found by iteration, to two digits
        labels, given = tonnx.convert(model)(torch.tensor(X))
        np.testing.assert_allclose(given.detach().numpy(), scores, atol=1e-2)
        assert labels.tolist() == wanted.tolist()


def grow(trees: int, depth: int, modes: list[str], tracks: bool = False) -> dict[str, list[Any]]:
    """Whole trees with random features and thresholds."""
    nodes: dict[str, list[Any]] = {
        k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    }
    missing = []
    for tree in range(trees):
        for i in range(2 ** (depth + 1) - 1):
            leaf = i >= 2**depth - 1
            row = (
                tree,
                i,
                int(RNG.integers(4)),
                float(np.float32(RNG.standard_normal() * 0.7)),
                "LEAF" if leaf else str(RNG.choice(modes)),
            )
            for key, value in zip(nodes, (*row, 0 if leaf else 2 * i + 1, 0 if leaf else 2 * i + 2), strict=True):
                nodes[key].append(value)
            missing.append(int(RNG.integers(2)) if tracks else 0)
    result = {f"nodes_{k}": v for k, v in nodes.items()}
    return result | ({"nodes_missing_value_tracks_true": missing} if tracks else {})


def leaves(nodes: dict[str, list[Any]], prefix: str, targets: list[int], low: float = -1.0) -> dict[str, list[Any]]:
    result: dict[str, list[Any]] = {f"{prefix}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree, node, mode in zip(nodes["nodes_treeids"], nodes["nodes_nodeids"], nodes["nodes_modes"], strict=True):
        for target in targets if mode == "LEAF" else []:
            for key, value in zip(result, (tree, node, target, float(np.float32(RNG.uniform(low, 1)))), strict=True):
                result[key].append(value)
    return result


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("base", [{}, {"base_values": [0.5, -0.25]}])
def test_tree_regressor(base: dict[str, list[float]], aggregate: str) -> None:
    nodes = grow(5, 3, ["BRANCH_LEQ"])
    for version in (1, 3):
        check(
            "TreeEnsembleRegressor",
            X,
            version=version,
            n_targets=2,
            aggregate_function=aggregate,
            **base,
            **nodes,
            **leaves(nodes, "target", [0, 1]),
        )
    one = grow(1, 0, ["BRANCH_LEQ"])
    check("TreeEnsembleRegressor", X, n_targets=1, **one, **leaves(one, "target", [0]))


@pytest.mark.parametrize(
    "modes",
    [
        ["BRANCH_LT"],
        ["BRANCH_GTE"],
        ["BRANCH_GT"],
        ["BRANCH_EQ"],
        ["BRANCH_NEQ"],
        ["BRANCH_LEQ", "BRANCH_GT", "BRANCH_EQ"],
    ],
)
def test_tree_modes(modes: list[str]) -> None:
    nodes = grow(4, 2, modes)
    x = X.copy()
    x[:, 0] = nodes["nodes_values"][0]
    x[2, 1] = np.nan
    check("TreeEnsembleRegressor", x, n_targets=1, **nodes, **leaves(nodes, "target", [0]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tree_types_and_missing_values(dtype: str) -> None:
    nodes = grow(4, 3, ["BRANCH_LEQ"], tracks=True)
    x = (X * 2).astype(dtype)
    x[1:4, 1:3] = np.nan
    check("TreeEnsembleRegressor", x, n_targets=1, **nodes, **leaves(nodes, "target", [0]))


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("base", [{}, {"base_values": [0.5, 0.25, 0.1]}])
def test_tree_classifier(base: dict[str, list[float]], post: str) -> None:
    nodes = grow(3, 2, ["BRANCH_LEQ"])
    weights = leaves(nodes, "class", [0, 1, 2], 0.0)
    weights["class_weights"] = [w / 4 for w in weights["class_weights"]]
    check(
        "TreeEnsembleClassifier",
        X,
        2,
        classlabels_int64s=[4, 2, 9],
        post_transform=post,
        tolerance=1e-2 if post == "PROBIT" else 1e-5,
        **base,
        **nodes,
        **weights,
    )


@pytest.mark.parametrize("post", POSTS[:4])
@pytest.mark.parametrize("low", [-1.0, 0.0])
@pytest.mark.parametrize("only, base", [(0, {}), (1, {}), (0, {"base_values": [0.2]})])
def test_tree_classifier_of_two(only: int, base: dict[str, list[float]], low: float, post: str) -> None:
    nodes = grow(3, 2, ["BRANCH_LEQ"])
    weights = leaves(nodes, "class", [only], low)
    weights["class_weights"] = [w / 3 for w in weights["class_weights"]]
    check("TreeEnsembleClassifier", X, 2, classlabels_int64s=[4, 2], post_transform=post, **base, **nodes, **weights)


def test_tree_classifier_with_both_of_two() -> None:
    """The class with the highest score, as the standard has it; ONNX Runtime gives 1 whatever the labels are."""
    nodes = grow(3, 2, ["BRANCH_LEQ"])
    options = nodes | leaves(nodes, "class", [0, 1], 0.0)
    scores = expected(
        model_of("TreeEnsembleClassifier", {"x": X}, 2, 3, classlabels_int64s=[4, 2], **options), {"x": X}, False
    )[1]
    check(
        "TreeEnsembleClassifier",
        X,
        2,
        classlabels_int64s=[4, 2],
        values=[np.array([4, 2])[scores.argmax(1)], scores],
        **options,
    )


def test_labels_that_are_strings_come_as_numbers() -> None:
    nodes = grow(3, 2, ["BRANCH_LEQ"])
    options = nodes | leaves(nodes, "class", [0, 1, 2])
    names = ["cat", "dog", "eel"]
    model = model_of("TreeEnsembleClassifier", {"x": X}, 2, 3, classlabels_strings=names, **options)
    labels, scores = expected(model, {"x": X}, False)
    check(
        "TreeEnsembleClassifier",
        X,
        2,
        classlabels_strings=names,
        values=[np.array([names.index(label) for label in labels]), scores],
        **options,
    )


def test_labels_looked_up_among_strings() -> None:
    """As converters of scikit-learn write it: the declared output is of strings, what comes is the number of the class."""
    names = numpy_helper.from_array(np.array(["cat", "dog", "eel", "fox"], object), "names")
    nodes = [
        helper.make_node("ArgMax", ["x"], ["number"], axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", ["names", "number"], ["found"], domain="ai.onnx.ml"),
        helper.make_node("Reshape", ["found", "flat"], ["label"]),
    ]
    flat = numpy_helper.from_array(np.array([-1]), "flat")
    outputs = [helper.make_tensor_value_info("label", onnx.TensorProto.STRING, ["n"])]
    graph = helper.make_graph(nodes, "p", [helper.make_tensor_value_info("x", 1, ["n", 4])], outputs, [names, flat])
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    given = tonnx.convert(model)(torch.tensor(X))
    assert given.tolist() == X.argmax(1).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_tree_ensemble(aggregate: int, dtype: str) -> None:
    values = lambda numbers: numpy_helper.from_array(np.array(numbers, dtype))
    options = {
        "aggregate_function": aggregate, "n_targets": 2, "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 2], "nodes_splits": values([0.1, -0.2, 0.3]),
        "nodes_modes": numpy_helper.from_array(np.array([0, 3, 1], np.uint8)),
        "nodes_truenodeids": [1, 0, 2], "nodes_trueleafs": [0, 1, 1], "nodes_falsenodeids": [3, 1, 4], "nodes_falseleafs": [1, 1, 1],
        "leaf_targetids": [0, 1, 0, 1, 0], "leaf_weights": values([1.0, 2.0, 3.0, 4.0, -5.0]),
        "nodes_missing_value_tracks_true": [1, 0, 1],
    }  # fmt: skip
    x = X.astype(dtype)
    x[1] = np.nan
    check("TreeEnsemble", x, version=5, **options)
    scores = expected(model_of("TreeEnsemble", {"x": x}, 1, 5, **options), {"x": x}, False)[0]
    # 2 is LOGISTIC in the standard, and SOFTMAX in ONNX Runtime
    check("TreeEnsemble", x, version=5, post_transform=2, values=[(1 / (1 + np.exp(-scores))).astype(dtype)], **options)


def test_a_pipeline_with_zip_map() -> None:
    nodes = grow(2, 2, ["BRANCH_LEQ"])
    classify = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        classlabels_int64s=[0, 1, 2],
        **nodes,
        **leaves(nodes, "class", [0, 1, 2]),
    )
    zipped = helper.make_node("ZipMap", ["scores"], ["probability"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2])
    declared = helper.make_tensor_value_info("x", 1, ["n", 4])
    outputs = [onnx.ValueInfoProto(name="label"), onnx.ValueInfoProto(name="probability")]
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(
        helper.make_graph([classify, zipped], "p", [declared], outputs), opset_imports=opsets, ir_version=8
    )
    labels, rows = expected(model, {"x": X}, False)
    given = tonnx.convert(model)(torch.tensor(X))
    assert given[0].tolist() == labels.tolist()
    np.testing.assert_allclose(given[1].numpy(), [[row[k] for k in (0, 1, 2)] for row in rows], rtol=1e-5)
    batch = torch.export.Dim("n")
    program = torch.export.export(tonnx.convert(model), (torch.tensor(X),), dynamic_shapes=({0: batch},))
    assert program.module()(torch.tensor(X[:3]))[0].tolist() == labels.tolist()[:3]


@pytest.mark.parametrize("true, message", [([0, 0, 0], "two parents"), ([1, 0, 0], None), ([7, 0, 0], "has no node 7")])
def test_trees_that_are_none(true: list[int], message: str | None) -> None:
    nodes = grow(1, 1, ["BRANCH_LEQ"]) | {"nodes_truenodeids": true}
    model = model_of("TreeEnsembleRegressor", {"x": X}, 1, 3, n_targets=1, **nodes, **leaves(nodes, "target", [0]))
    if message is None:
        tonnx.convert(model)
        return
    with pytest.raises(tonnx.Error, match=message):
        tonnx.convert(model)

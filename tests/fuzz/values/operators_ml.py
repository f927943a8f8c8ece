"""Operators of ai.onnx.ml: what makes numbers of features, and scores of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import Block, Drawing, Unfit, Value
from onnx import TensorProto, helper, numpy_helper
from table import draws, make

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
NUMBERS = (FLOAT, TensorProto.DOUBLE, INT64, TensorProto.INT32)
DOMAIN = "ai.onnx.ml"
POSTS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")  # ONNX Runtime computes PROBIT to three digits


def floats(d: Drawing, count: int) -> list[float]:
    return [float(f) for f in (d.numbers.integers(-8, 9, count) / 4)]


def features(d: Drawing, kinds: tuple[int, ...] = (FLOAT,)) -> tuple[Value, int]:
    """Rows of features, and how many there are in each."""
    x = d.take(kinds, (2,), lambda v: all(np.isfinite(r.astype(np.float64)).all() for r in v.runs))
    a, b = x.shape[1]
    if a != b or a == 0:
        raise Unfit("open features")
    return x, a


@draws("Binarizer", weight=0.3)
def binarizer(d: Drawing, op: str) -> Block:
    x = d.take((FLOAT,), (1, 2, 3))
    return make(d, op, [x], domain=DOMAIN, threshold=d.rng.choice([None, 0.5, -1.0]))


@draws("Scaler", weight=0.3)
def scaler(d: Drawing, op: str) -> Block:
    x, count = features(d, NUMBERS)
    n = d.rng.choice([1, count])
    return make(d, op, [x], domain=DOMAIN, offset=floats(d, n), scale=floats(d, n))


@draws("Normalizer", weight=0.3)
def normalizer(d: Drawing, op: str) -> Block:
    x, _ = features(d, NUMBERS)
    return make(d, op, [x], domain=DOMAIN, norm=d.rng.choice([None, "MAX", "L1", "L2"]))


@draws("Imputer", weight=0.3)
def imputer(d: Drawing, op: str) -> Block:
    x, count = features(d, (FLOAT, INT64))
    n = d.rng.choice([1, count])
    if x.kind == FLOAT:
        replaced = d.rng.choice([None, 0.0, 1.0, float("nan")])
        return make(d, op, [x], domain=DOMAIN, imputed_value_floats=floats(d, n), replaced_value_float=replaced)
    values = [int(i) for i in d.numbers.integers(-3, 4, n)]
    return make(d, op, [x], domain=DOMAIN, imputed_value_int64s=values, replaced_value_int64=d.rng.choice([None, 1]))


@draws("FeatureVectorizer", weight=0.2)
def feature_vectorizer(d: Drawing, op: str) -> Block:
    x, count = features(d)
    if any(not run.size for run in x.runs):
        raise Unfit("ONNX Runtime dies of it")
    y = d.fresh(FLOAT, (x.shape[0], (2, 2)))
    return make(d, op, [x, y], domain=DOMAIN, inputdimensions=[count, 2])


@draws("ArrayFeatureExtractor", weight=0.3)
def array_feature(d: Drawing, op: str) -> Block:
    x = d.take(NUMBERS, (1, 2, 3))
    size = min(x.shape[-1])
    if not size:
        raise Unfit("nothing to choose from")
    at = d.told(d.numbers.integers(0, size, (1, d.rng.randint(1, 4))).astype(np.int64))
    return make(d, op, [x, at], domain=DOMAIN)


@draws("LabelEncoder", weight=0.4)
def label_encoder(d: Drawing, op: str) -> Block:
    kinds = (INT64, FLOAT)
    x = d.take(kinds, (1, 2, 3))
    to = d.rng.choice(kinds)
    last = float("nan") if d.opset >= 20 else 2.0  # before version 4 nothing is said of keys that are no number
    keys = {"keys_int64s": [-1, 0, 2, 3]} if x.kind == INT64 else {"keys_floats": [-1.0, 0.0, 0.5, last]}
    drawn: dict[str, Any] = dict(keys)
    drawn["values_int64s" if to == INT64 else "values_floats"] = [7, 5, 5, -1] if to == INT64 else [0.5, 2.0, -1.0, 9.0]
    if d.chance(0.4):
        drawn["default_int64" if to == INT64 else "default_float"] = 4 if to == INT64 else 4.0
    return make(d, op, [x], domain=DOMAIN, **drawn)


@draws("OneHotEncoder", weight=0.3)
def one_hot_encoder(d: Drawing, op: str) -> Block:
    x = d.take((INT64, FLOAT), (1, 2))
    return make(d, op, [x], domain=DOMAIN, cats_int64s=[0, 1, 2, 5], zeros=d.rng.choice([None, 1]))


@draws("LinearRegressor", weight=0.3)
def linear_regressor(d: Drawing, op: str) -> Block:
    x, count = features(d)
    targets = d.rng.randint(1, 3)
    bias = floats(d, targets) if d.chance(0.6) else None
    post = d.rng.choice([None, *POSTS])
    return make(d, op, [x], domain=DOMAIN, coefficients=floats(d, count * targets), intercepts=bias, targets=targets, post_transform=post)  # fmt: skip


@draws("LinearClassifier", weight=0.4)
def linear_classifier(d: Drawing, op: str) -> Block:
    x, count = features(d)
    classes = d.rng.randint(2, 4)
    rows = 1 if classes == 2 and d.chance(0.4) else classes
    # weights that no two sums of are alike: which of two equal classes is meant is nobody's promise
    weights = [float(f) for f in d.numbers.standard_normal(count * rows)]
    post = d.rng.choice([None, *POSTS])
    return make(
        d, op, [x], 2, domain=DOMAIN, coefficients=weights, intercepts=[float(f) for f in d.numbers.standard_normal(rows)],
        classlabels_ints=[int(i) for i in d.rng.sample(range(-2, 9), classes)], post_transform=post, multi_class=d.rng.choice([None, 0, 1]),
    )  # fmt: skip


@draws("SVMRegressor", weight=0.3)
def svm_regressor(d: Drawing, op: str) -> Block:
    x, count = features(d)
    vectors = d.rng.randint(1, 3)
    kernel = d.rng.choice(["LINEAR", "POLY", "RBF", "SIGMOID"])
    return make(
        d, op, [x], domain=DOMAIN, kernel_type=kernel, kernel_params=[0.5, 0.25, 2.0], n_supports=vectors, one_class=d.rng.choice([None, 1]),
        support_vectors=floats(d, vectors * count), coefficients=floats(d, vectors), rho=[0.3],
    )  # fmt: skip


@draws("SVMClassifier", weight=0.3)
def svm_classifier(d: Drawing, op: str) -> Block:
    x, count = features(d)
    classes = d.rng.randint(2, 3)
    per = [d.rng.randint(1, 2) for _ in range(classes)]
    vectors, pairs = sum(per), classes * (classes - 1) // 2
    kernel = d.rng.choice(["LINEAR", "POLY", "RBF", "SIGMOID"])
    # probabilities are left out: ONNX Runtime finds them by iteration, to two digits
    drawn: dict[str, Any] = {"post_transform": d.rng.choice([None, *POSTS])}
    return make(
        d, op, [x], 2, domain=DOMAIN, kernel_type=kernel, kernel_params=[0.5, 0.25, 2.0], vectors_per_class=per,
        support_vectors=[float(f) for f in d.numbers.standard_normal(vectors * count)],
        coefficients=[float(f) for f in d.numbers.standard_normal(vectors * (classes - 1))],
        rho=[float(f) for f in d.numbers.standard_normal(pairs)], classlabels_ints=list(range(classes)), **drawn,
    )  # fmt: skip


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def trees(d: Drawing, count: int, leaves: list[tuple[int, int]]) -> dict[str, Any]:
    """Trees over `count` features; `leaves` takes the tree and the number of each leaf."""
    table: dict[str, list[Any]] = {
        key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                            "missing_value_tracks_true", "hitrates")
    }  # fmt: skip
    mode = d.rng.choice(MODES[:4])
    for tree in range(d.rng.randint(1, 3)):
        branches = d.rng.choice([0, 1, 1, 3])  # a leaf, a branch of two leaves, or three branches of four
        total = 2 * branches + 1
        for node in range(total):
            is_leaf = node >= branches
            own = mode if d.chance(0.8) else d.rng.choice(MODES)
            row = (
                tree, node, 0 if is_leaf else d.rng.randrange(count), 0.0 if is_leaf else floats(d, 1)[0],
                "LEAF" if is_leaf else own, 0 if is_leaf else 2 * node + 1, 0 if is_leaf else 2 * node + 2, d.rng.randint(0, 1), 1.0,
            )  # fmt: skip
            for values, entry in zip(table.values(), row, strict=True):
                values.append(entry)
            if is_leaf:
                leaves.append((tree, node))
    return {f"nodes_{key}": values for key, values in table.items()}


@draws("TreeEnsembleRegressor", "TreeEnsembleClassifier", weight=0.5)
def tree_ensemble(d: Drawing, op: str) -> Block:
    x, count = features(d, (FLOAT, TensorProto.DOUBLE, INT64))
    leaves: list[tuple[int, int]] = []
    drawn = trees(d, count, leaves)
    wide = d.rng.randint(1, 3)
    is_regressor = op == "TreeEnsembleRegressor"
    stem = "target" if is_regressor else "class"
    # every leaf says something of every target: ONNX does not say what one is that no leaf speaks of
    drawn[f"{stem}_treeids"] = [t for t, _ in leaves for _ in range(wide)]
    drawn[f"{stem}_nodeids"] = [n for _, n in leaves for _ in range(wide)]
    drawn[f"{stem}_ids"] = [i for _ in leaves for i in range(wide)]
    drawn[f"{stem}_weights"] = [float(f) for f in d.numbers.standard_normal(len(leaves) * wide)]
    drawn["post_transform"] = d.rng.choice([None, *POSTS])
    if d.chance(0.4):
        drawn["base_values"] = [float(f) for f in d.numbers.standard_normal(wide)]
    if is_regressor:
        drawn |= {"n_targets": wide, "aggregate_function": d.rng.choice([None, "SUM", "AVERAGE", "MIN", "MAX"])}
        return make(d, op, [x], domain=DOMAIN, **drawn)
    # two classes may be told by the scores of one
    drawn["classlabels_int64s"] = [int(i) for i in d.rng.sample(range(-2, 9), max(wide, 2))]
    return make(d, op, [x], 2, domain=DOMAIN, **drawn)


@draws("TreeEnsemble", weight=0.5)
def tree_ensemble_5(d: Drawing, op: str) -> Block:
    """Trees of version 5, in which leaves have places of their own."""
    if d.opset < 21:
        raise Unfit(op)
    x, count = features(d, (FLOAT, TensorProto.DOUBLE))
    branches, targets = d.rng.choice([1, 3]), 1  # a leaf speaks of one target
    dtype = np.float32 if x.kind == FLOAT else np.float64

    def tensor(values: Any, kind: Any) -> TensorProto:
        return numpy_helper.from_array(np.array(values, kind))

    leaf = [2 * n + side >= branches for n in range(branches) for side in (1, 2)]
    ids = [2 * n + side - (branches if 2 * n + side >= branches else 0) for n in range(branches) for side in (1, 2)]
    node = helper.make_node(
        op, [x.name], [d.name()], domain=DOMAIN, n_targets=targets, tree_roots=[0],
        aggregate_function=d.rng.choice([0, 1, 2, 3]), post_transform=0,
        nodes_featureids=[d.rng.randrange(count) for _ in range(branches)],
        nodes_splits=tensor(floats(d, branches), dtype), nodes_modes=tensor([d.rng.randrange(6) for _ in range(branches)], np.uint8),
        nodes_truenodeids=ids[0::2], nodes_trueleafs=[int(f) for f in leaf[0::2]],
        nodes_falsenodeids=ids[1::2], nodes_falseleafs=[int(f) for f in leaf[1::2]],
        nodes_missing_value_tracks_true=[d.rng.randint(0, 1) for _ in range(branches)],
        leaf_targetids=[0] * (branches + 1),
        leaf_weights=tensor(d.numbers.standard_normal(branches + 1), dtype),
    )  # fmt: skip
    return Block([node], [x], list(node.output))

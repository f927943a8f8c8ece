"""What the tests of tonnx.simplify share: small models in text, special values, and ONNX Runtime as the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator

import tonnx

# what a rewrite may get wrong: nothing, too much, the borders of the type, the smallest numbers, both zeros
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.7, -3.2]


def model(body: str, opset: int = 18, ir_version: int = 10, opsets: Mapping[str, int] | None = None) -> onnx.ModelProto:
    """A model from the text that onnx.parser reads, without its header: `g (float[N,3] x) => (float[N,3] y) {...}`."""
    imports = ", ".join(f'"{domain}" : {version}' for domain, version in {"": opset, **(opsets or {})}.items())
    made = onnx.parser.parse_model(f"<ir_version: {ir_version}, opset_import: [{imports}]>\n{body}")
    onnx.checker.check_model(made)
    return made


def count(graph: onnx.GraphProto) -> Counter[str]:
    """How many nodes there are of each operator, with those of subgraphs, and without Constant."""
    ops: Counter[str] = Counter()
    for node in graph.node:
        ops[node.op_type] += node.op_type != "Constant"
        for attribute in node.attribute:
            ops += count(attribute.g) if attribute.HasField("g") else Counter()
    return +ops


def special_values(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f":
        info = np.finfo(dtype)
        border = [info.max, -info.max, info.tiny, -info.tiny, info.smallest_subnormal]
        return np.array(FLOATS + [float(v) for v in border]).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 5, 7, info.max, info.min, info.max - 1, info.min + 1], dtype=dtype)
    return np.array([False, True, True, False, False], dtype=bool)


def random_feeds(made: onnx.ModelProto, sizes: Mapping[str, int], seed: int, special: bool) -> dict[str, np.ndarray]:
    """Values for all inputs; a size that has a name is what `sizes` says, or else a small number."""
    random = np.random.default_rng(seed)
    feeds = {}
    given = {each.name for each in made.graph.initializer}
    for info in made.graph.input:
        if info.name in given:
            continue
        tensor = info.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = [d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param, 2 + seed) for d in tensor.shape.dim]
        if special:
            feeds[info.name] = random.choice(special_values(dtype), size=shape)
        elif dtype.kind == "f":
            feeds[info.name] = (random.standard_normal(shape) * 3).astype(dtype)
        elif dtype.kind == "b":
            feeds[info.name] = random.integers(0, 2, shape).astype(bool)
        else:
            feeds[info.name] = random.integers(0, 9, shape).astype(dtype)
    return feeds


def run(made: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs, from ONNX Runtime without its optimisations; from the reference where that cannot run the model."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return ReferenceEvaluator(made).run(None, dict(feeds))
    return session.run(None, dict(feeds))


def assert_same(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float = 0) -> None:
    """Type, shape and every element; NaN is NaN, and only the sign of a zero may differ."""
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert (np.asarray(a).dtype, np.shape(a)) == (np.asarray(b).dtype, np.shape(b))
        if tolerance:
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(a, b)


def check(
    made: onnx.ModelProto,
    left: Mapping[str, int] | None = None,
    only: Sequence[str] = (),
    feeds: Mapping[str, np.ndarray] | None = None,
    sizes: Mapping[str, int] | None = None,
    special: bool = True,
    tolerance: float = 0,
    **options: object,
) -> onnx.ModelProto:
    """Simplifies, and compares with the source on random and, if wanted, on special values. `left` is how many nodes of
    each operator there must be in the end, all of them; `only` the passes, all of them where it is empty."""
    simplified, ok = tonnx.simplify(made, only=list(only), **options)
    assert ok
    onnx.checker.check_model(simplified, full_check=True)
    assert [each.name for each in simplified.graph.output] == [each.name for each in made.graph.output]
    if left is not None:
        assert dict(count(simplified.graph)) == dict(left), onnx.printer.to_text(simplified.graph)
    for seed in range(3):
        if feeds is not None and seed:
            break
        values = feeds or random_feeds(made, sizes or {}, seed, special and seed > 0)
        assert_same(run(simplified, values), run(made, values), tolerance)
    return simplified


def check_unchanged(made: onnx.ModelProto, only: Sequence[str], **options: object) -> None:
    """The passes leave a model as it is, node by node."""
    check(made, left=count(made.graph), only=only, **options)  # type: ignore[arg-type]

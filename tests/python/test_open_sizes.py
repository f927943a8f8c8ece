"""Models whose fixed sizes are opened: ONNX Runtime runs the original sample by sample, and the result at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import tonnx

HEAD = '<ir_version: 9, opset_import: ["": 17]>\n'


def session(model: str | Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(model), options)


def drawn(fixed: Any, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in fixed.get_inputs():
        kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
        dtype = kinds[value.type]
        feeds[value.name] = (
            rng.standard_normal(value.shape).astype(dtype)
            if dtype == np.float32
            else rng.integers(0, 2, value.shape).astype(dtype)
        )
    return feeds


def compare_samples(source: Path, target: Path, names: list[str]) -> None:
    """The target at 1, 3 and 4 samples gives what the source gives for each of them."""
    fixed, opened = session(source), session(target)
    onnx.checker.check_model(str(target), full_check=True)
    for count in (1, 3, 4):
        samples = [drawn(fixed, 10 * count + k) for k in range(count)]
        joined = {
            name: np.concatenate([each[name] for each in samples]) if name in names else samples[0][name]
            for name in samples[0]
        }
        for each in samples:
            each.update({name: value for name, value in joined.items() if name not in names})
        wanted = [fixed.run(None, each) for each in samples]
        for i, value in enumerate(opened.run(None, joined)):
            parts = [np.asarray(sample[i]) for sample in wanted]
            axis = next((a for a, size in enumerate(parts[0].shape) if size == 1 and value.shape[a] == count), 0)
            np.testing.assert_allclose(value, np.concatenate(parts, axis), rtol=1e-4, atol=1e-5)


BATCH = {
    "reshape": """g (float[1, 3, 4] x) => (float[1, 12] y) <int64[2] s = {1, 12}> { y = Reshape(x, s) }""",
    "reshape_joined": """g (float[1, 6, 4] x) => (float[1, 6, 4] y) <int64[3] s = {2, 3, 4}, int64[3] t = {1, 6, 4}> {
        a = Reshape(x, s)
        b = Softmax <axis = -1> (a)
        y = Reshape(b, t)
    }""",
    "expand": """g (float[1, 4] x) => (float[1, 3, 4] y) <int64[3] s = {1, 3, 4}, int64[1] one = {1}> {
        a = Unsqueeze(x, one)
        y = Expand(a, s)
    }""",
    "class_token": """g (float[1, 3, 2] x) => (float[1, 4, 2] y) <float[1, 1, 2] token = {0.5, 2}> {
        y = Concat <axis = 1> (token, x)
    }""",
    "class_token_expanded": """g (float[1, 3, 2] x) => (float[1, 4, 2] y)
        <float[1, 1, 2] token = {0.5, 2}, int64[3] s = {1, -1, -1}, int64[1] one = {1}, int64[3] ones = {1, 1, 1}> {
        minus = Neg(ones)
        is_kept = Equal(s, minus)
        sizes = Where(is_kept, ones, s)
        tokens = Expand(token, sizes)
        y = Concat <axis = 1> (tokens, x)
    }""",
    "zeros": """g (float[1, 3] x) => (float[1, 5] y) <int64[2] s = {1, 2}> {
        zeros = ConstantOfShape <value = float[1] {0.25}> (s)
        y = Concat <axis = 1> (x, zeros)
    }""",
    "tile": """g (float[1, 2] x) => (float[1, 6] y) <float[1, 2] c = {1, 2}, int64[2] r = {1, 2}> {
        tiled = Tile(c, r)
        y = Concat <axis = 1> (x, tiled)
    }""",
    "slice_to_the_end": """g (float[1, 5] x) => (float[1, 2] y)
        <int64[2] starts = {0, 1}, int64[2] ends = {1, 3}, int64[2] axes = {0, 1}> { y = Slice(x, starts, ends, axes) }""",
    "lstm": """g (float[4, 1, 2] x) => (float[4, 1, 1, 3] y, float[1, 1, 3] h)
        <float[1, 12, 2] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.8, -0.9, 1, 0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.8,
         -0.9, 1, 0.5, 0.2, 0.1, -0.3},
         float[1, 12, 3] r = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.8, -0.9, 1, 0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.8,
         0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.8, -0.9, 1, 0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.8},
         float[1, 1, 3] h0 = {0.5, 0.1, -0.2}, float[1, 1, 3] c0 = {0.3, -0.1, 0.2}> {
        y, h = LSTM <hidden_size = 3> (x, w, r, , , h0, c0)
    }""",
    "gather_elements_of_a_table": """g (int64[1, 3] x) => (float[1, 3] y) <float[1, 2] table = {0.5, 2}> {
        y = GatherElements <axis = 1> (table, x)
    }""",
    "scatter_into_zeros": """g (int64[1, 1] i, float[1, 1] u) => (float[1, 4] y) <float[1, 4] zeros = {0, 1, 0, 0}> {
        y = ScatterElements <axis = 1> (zeros, i, u)
    }""",
    "scatter_nd_of_constants": """g (float[1, 4] x) => (float[1, 4] y)
        <int64[1, 2] at = {0, 2}, float[1] u = {9}> { y = ScatterND(x, at, u) }""",
    "grid_of_constants": """g (float[1, 1, 3, 3] x) => (float[1, 1, 1, 2] y) <float[1, 1, 2, 2] grid = {0, 0.5, -0.25, 1}> {
        y = GridSample(x, grid)
    }""",
    "image_of_constants": """g (float[1, 1, 2, 2] grid) => (float[1, 1, 1, 2] y) <float[1, 1, 2, 2] x = {0, 0.5, -0.25, 1}> {
        y = GridSample(x, grid)
    }""",
    "einsum": """g (float[1, 2, 3] x) => (float[1, 2, 2] y) <float[1, 3, 2] c = {1, 2, 3, 4, 5, 6}> {
        y = Einsum <equation = "bij,bjk->bik"> (x, c)
    }""",
    "gemm_rows": """g (float[1, 2] x) => (float[1, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[1, 2] c = {0.5, 1}> {
        y = Gemm(x, w, c)
    }""",
    "heads_meet_a_constant": """g (float[1, 2, 2, 3] x) => (float[1, 2, 2, 2] y)
        <int64[3] s = {2, 2, 3}, int64[4] t = {1, 2, 2, 2}, float[2, 3, 2] c = {1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1}> {
        heads = Reshape(x, s)
        a = MatMul(heads, c)
        y = Reshape(a, t)
    }""",
    "mask_of_heads": """g (float[1, 2, 2, 3] x) => (float[1, 2, 2, 3] y)
        <int64[3] s = {2, 2, 3}, int64[4] t = {1, 2, 2, 3}, float[2, 1, 3] slopes = {1, 2, 3, -1, -2, -3}> {
        heads = Reshape(x, s)
        a = Add(heads, slopes)
        b = Softmax <axis = -1> (a)
        y = Reshape(b, t)
    }""",
    "branch_on_a_size": """g (float[1, 4] x) => (float[1, 4] y) <int64 zero = {0}, int64 two = {4}, int64 one = {1}> {
        shape = Shape(x)
        n = Gather(shape, one)
        is_four = Equal(n, two)
        y = If (is_four) <
            then_branch = a () => (float[1, 4] p) <int64[2] s = {1, 4}> { p = Reshape(x, s) },
            else_branch = b () => (float[1, 4] q) { q = Neg(x) }>
    }""",
    "loop": """g (float[1, 3] x) => (float[1, 3] y)
        <int64 n = {3}, float[1, 3] start = {0, 0, 0}, bool t = {1}> {
        y = Loop (n, t, start) <body = b (int64 i, bool go, float[1, 3] s) => (bool again, float[1, 3] sum)
            { again = Identity(go) sum = Add(s, x) }>
    }""",
    "arg_max_of_each": """g (float[1, 3] x) => (float[1, 2] y) <float[3, 2] table = {1, 2, 3, 4, 5, 6}> {
        i = ArgMax <axis = 1, keepdims = 0> (x)
        y = Gather(table, i)
    }""",
    "one_hot": """g (int64[1, 3] x) => (float[1, 3, 4] y) <int64 depth = {4}, float[2] values = {0, 1}> {
        y = OneHot(x, depth, values)
    }""",
    "where": """g (bool[1, 3] x) => (float[1, 3] y) <float[1, 3] a = {1, 2, 3}, float[3] b = {4, 5, 6}> {
        y = Where(x, a, b)
    }""",
    "affine_grid": """g (float[1, 2, 3] theta) => (float[1, 2, 2, 2] y) <int64[4] s = {1, 1, 2, 2}> {
        t = Reshape(theta, tt)
        flat = MatMul(base, t)
        y = Reshape(flat, ys)
    }""".replace(
        "<int64[4] s = {1, 1, 2, 2}>",
        "<int64[3] tt = {1, 3, 2}, float[1, 4, 3] base = {1, 1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 1}, "
        "int64[4] ys = {1, 2, 2, 2}>",
    ),
    "lengths": """g (float[3, 1, 2] x) => (float[3, 1, 2] y) <int64[1] n = {2}> {
        y = ReverseSequence <batch_axis = 1, time_axis = 0> (x, n)
    }""",
}


@pytest.mark.parametrize("name", BATCH)
def test_batch(name: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEAD + BATCH[name])
    onnx.checker.check_model(model, full_check=True)
    source, target = tmp_path / "fixed.onnx", tmp_path / "open.onnx"
    onnx.save(model, source)
    axes = {
        value.name: {[d.dim_value for d in value.type.tensor_type.shape.dim].index(1): "batch"}
        for value in model.graph.input
    }
    tonnx.convert(source, target, dynamic=axes)
    assert "Scan" not in {node.op_type for node in onnx.load(target).graph.node}, "it runs once for each sample"
    names = [name for name, of in axes.items() if 0 in of]
    if names:
        compare_samples(source, target, names)
    else:
        compare_later_axis(source, target, axes)


def compare_later_axis(source: Path, target: Path, axes: dict[str, dict[int, str]]) -> None:
    fixed, opened = session(source), session(target)
    [(name, of)] = axes.items()
    [axis] = of
    for count in (1, 3):
        samples = [drawn(fixed, k) for k in range(count)]
        wanted = [fixed.run(None, each) for each in samples]
        found = opened.run(None, {name: np.concatenate([each[name] for each in samples], axis)})
        for i, value in enumerate(found):
            parts = [sample[i] for sample in wanted]
            along = next((a for a, size in enumerate(parts[0].shape) if size == 1 and value.shape[a] == count), axis)
            np.testing.assert_allclose(value, np.concatenate(parts, along), rtol=1e-5, atol=1e-6)

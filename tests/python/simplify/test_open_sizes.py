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
    "sizes_inside_a_sample": """g (float[1, 2, 3] x) => (float[1, 2, 2, 2] y)
        <int64[3] s = {1, 3, 2}, float[1, 4, 3] c = {1, 1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 1}, int64[4] t = {1, 2, 2, 2}> {
        a = Reshape(x, s)
        b = MatMul(c, a)
        y = Reshape(b, t)
    }""",
    "affine_grid": """g (float[1, 2, 3] theta) => (float[1, 2, 2, 2] y) <int64[4] s = {1, 1, 2, 2}> {
        y = AffineGrid(theta, s)
    }""",
    "resized_to_another": """g (float[1, 2, 4, 4] x) => (float[1, 4, 4, 4] y) <float[0] no, int64[4] s = {1, 2, 4, 4}> {
        pooled = GlobalAveragePool(x)
        whole = Resize <mode = "nearest"> (pooled, , , s)
        y = Concat <axis = 1> (x, whole)
    }""".replace("<float[0] no, ", "<"),
    "states_of_many_rows": """g (float[1, 2, 3, 2] x) => (float[3, 1, 2, 2] y)
        <int64[3] s = {2, 3, 2}, int64[3] p = {3, 2, 2}, int64[4] t = {3, 1, 2, 2}, float[1, 2, 2] w = {1, 0.5, -0.5, 1},
         float[1, 2, 2] r = {0.1, 0.2, 0.3, 0.4}, float[1, 2, 2] h0 = {1, 2, 3, 4}> {
        rows = Reshape(x, s)
        turned = Transpose <perm = [1, 0, 2]> (rows)
        a, h = RNN <hidden_size = 2> (turned, w, r, , , h0)
        y = Reshape(a, t)
    }""",
    "lengths": """g (float[3, 1, 2] x) => (float[3, 1, 2] y) <int64[1] n = {2}> {
        y = ReverseSequence <batch_axis = 1, time_axis = 0> (x, n)
    }""",
}


@pytest.mark.parametrize("name", BATCH)
def test_batch(name: str, tmp_path: Path) -> None:
    head = HEAD.replace("17", "20") if name == "affine_grid" else HEAD
    model = onnx.parser.parse_model(head + BATCH[name])
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


# what a file says with its sizes fixed, and how the same model is written with open sizes
OTHERS = {
    "positions": (
        """g (int64[1, 4] x) => (float[1, 4, 2] y)
        <float[9, 2] words = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18},
         float[6, 2] table = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[1, 4] places = {0, 1, 2, 3}> {
        a = Gather(words, x)
        b = Gather(table, places)
        y = Add(a, b)
    }""",
        """g (int64[1, n] x) => (float[1, n, 2] y)
        <float[9, 2] words = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18},
         float[6, 2] table = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
         int64 zero = {0}, int64 one = {1}, int64[1] front = {0}> {
        a = Gather(words, x)
        shape = Shape(x)
        n = Gather(shape, one)
        count = Range(zero, n, one)
        places = Unsqueeze(count, front)
        b = Gather(table, places)
        y = Add(a, b)
    }""",
        "x:1=n",
        [(1, 2), (1, 6)],
    ),
    "table_cut_to_the_length": (
        """g (float[1, 3, 2] x) => (float[1, 3, 2] y)
        <float[1, 5, 2] table = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, int64[1] a = {0}, int64[1] b = {3}, int64[1] c = {1}> {
        part = Slice(table, a, b, c)
        y = Add(x, part)
    }""",
        """g (float[1, n, 2] x) => (float[1, n, 2] y)
        <float[1, 5, 2] table = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, int64[1] a = {0}, int64[1] c = {1}> {
        shape = Shape(x)
        n = Gather(shape, c)
        part = Slice(table, a, n, c)
        y = Add(x, part)
    }""",
        "x:1=n",
        [(1, 1, 2), (1, 5, 2)],
    ),
    "mask_that_is_computed": (
        """g (float[1, 3, 2] x) => (float[1, 3, 3] y)
        <int64[2] s = {3, 3}, int64[1] zero = {0}, float nine = {-9}, int64[3] e = {1, 3, 3}> {
        ones = ConstantOfShape <value = float[1] {1}> (s)
        mask = Mul(ones, nine)
        t = Transpose <perm = [0, 2, 1]> (x)
        a = MatMul(x, t)
        front = Unsqueeze(mask, zero)
        whole = Expand(front, e)
        y = Add(a, whole)
    }""",
        """g (float[1, n, 2] x) => (float[1, n, n] y) <float nine = {-9}> {
        t = Transpose <perm = [0, 2, 1]> (x)
        a = MatMul(x, t)
        y = Add(a, nine)
    }""",
        "x:1=n",
        [(1, 2, 2), (1, 7, 2)],
    ),
    "causal_mask": (
        """g (float[1, 3, 2] x) => (float[1, 3, 3] y) <float[1, 3, 3] mask = {0, -9, -9, 0, 0, -9, 0, 0, 0}> {
        t = Transpose <perm = [0, 2, 1]> (x)
        a = MatMul(x, t)
        y = Add(a, mask)
    }""",
        """g (float[1, n, 2] x) => (float[1, n, n] y)
        <int64 zero = {0}, int64 one = {1}, int64[1] at = {1}, float nine = {-9}, float none = {0}> {
        t = Transpose <perm = [0, 2, 1]> (x)
        a = MatMul(x, t)
        shape = Shape(x)
        n = Gather(shape, one)
        places = Range(zero, n, one)
        rows = Unsqueeze(places, at)
        later = Less(rows, places)
        mask = Where(later, nine, none)
        y = Add(a, mask)
    }""",
        "x:1=n",
        [(1, 2, 2), (1, 7, 2)],
    ),
    "height_and_width": (
        """g (float[1, 2, 4, 6] x) => (float[1, 24, 2] y) <int64[3] s = {1, 2, 24}> {
        a = Reshape(x, s)
        y = Transpose <perm = [0, 2, 1]> (a)
    }""",
        """g (float[1, 2, h, w] x) => (float[1, m, 2] y) <int64[3] s = {0, 0, -1}> {
        a = Reshape(x, s)
        y = Transpose <perm = [0, 2, 1]> (a)
    }""",
        "x:2=h,3=w",
        [(1, 2, 3, 5), (1, 2, 8, 2)],
    ),
    "windows": (
        """g (float[1, 1, 4, 6] x) => (float[6, 1, 2, 2] y) <int64[6] s = {1, 1, 2, 2, 3, 2}, int64[4] t = {6, 1, 2, 2}> {
        a = Reshape(x, s)
        b = Transpose <perm = [0, 2, 4, 1, 3, 5]> (a)
        y = Reshape(b, t)
    }""",
        """g (float[1, 1, h, w] x) => (float[m, 1, 2, 2] y)
        <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[4] t = {-1, 1, 2, 2}> {
        shape = Shape(x)
        h = Gather(shape, two)
        w = Gather(shape, three)
        hh = Div(h, two)
        ww = Div(w, two)
        s = Concat <axis = 0> (one, one, hh, two, ww, two)
        a = Reshape(x, s)
        b = Transpose <perm = [0, 2, 4, 1, 3, 5]> (a)
        y = Reshape(b, t)
    }""",
        "x:2=h,3=w",
        [(1, 1, 2, 4), (1, 1, 8, 2)],
    ),
    "pyramid": (
        """g (float[1, 1, 4, 4] x) => (float[1, 1, 4, 4] y) <int64[4] s = {1, 1, 4, 4}> {
        a = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)
        b = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (a, , , s)
        y = Add(x, b)
    }""",
        """g (float[1, 1, h, w] x) => (float[1, 1, h, w] y) {
        a = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)
        s = Shape(x)
        b = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (a, , , s)
        y = Add(x, b)
    }""",
        "x:2=h,3=w",
        [(1, 1, 5, 7), (1, 1, 8, 2)],
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_sizes(name: str, cli: Any, tmp_path: Path) -> None:
    fixed, written_open, sizes, shapes = OTHERS[name]
    source, wanted, target = tmp_path / "fixed.onnx", tmp_path / "wanted.onnx", tmp_path / "open.onnx"
    for text, path in ((fixed, source), (written_open, wanted)):
        onnx.save(onnx.parser.parse_model(HEAD + text), path)
    done = cli("convert", source, target, "--dynamic", sizes)
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(str(target), full_check=True)
    dtype = np.int64 if name == "positions" else np.float32
    [x] = session(source).get_inputs()
    for shape in [tuple(x.shape), *shapes]:
        feeds = {"x": (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)}
        np.testing.assert_array_equal(session(target).run(None, feeds)[0], session(wanted).run(None, feeds)[0])


REFUSED = {
    "trained_positions": (
        """g (float[1, 3] x) => (float[1, 3] y) <float[1, 3] table = {3, 1, 2}> { y = Add(x, table) }""",
        "x:1=n",
        "'table' is a constant whose axis 1 has 3 elements",
    ),
    "rows_of_a_layer": (
        """g (float[1, 3] x) => (float[1, 2] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> { y = MatMul(x, w) }""",
        "x:1=n",
        "a size of 3 alone",
    ),
    "taken_away": (
        """g (float[1, 3] x) => (float[3] y) <int64[1] a = {0}> { y = Squeeze(x, a) }""",
        "x:0=batch",
        "axis 0 is taken away",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_opened_names_its_node(name: str, cli: Any, tmp_path: Path) -> None:
    text, sizes, why = REFUSED[name]
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "fixed.onnx")
    done = cli("convert", "fixed.onnx", "open.onnx", "--dynamic", sizes, cwd=tmp_path)
    assert done.returncode == 2 and why in done.stderr and "while opening sizes of node" in done.stderr
    assert not (tmp_path / "open.onnx").exists()


def test_a_model_that_joins_samples_runs_once_for_each(tmp_path: Path) -> None:
    text = """g (float[1, 4] x) => (float[1, 4] y) <int64[1] four = {4}> {
        flat = Reshape(x, four)
        values, places = TopK <largest = 1> (flat, four)
        one = Cast <to = 1> (places)
        sum = CumSum(one, zero)
        y = Reshape(sum, s)
    }""".replace("<int64[1] four = {4}>", "<int64[1] four = {4}, int64 zero = {0}, int64[2] s = {1, 4}>")
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "fixed.onnx")
    with pytest.warns(UserWarning, match="runs once for each"):
        tonnx.convert(tmp_path / "fixed.onnx", tmp_path / "open.onnx", dynamic={"x": {0: "batch"}})
    compare_samples(tmp_path / "fixed.onnx", tmp_path / "open.onnx", ["x"])


def test_input_shapes_that_the_file_fixes_otherwise(cli: Any, tmp_path: Path) -> None:
    """The size is opened first: what follows from it follows."""
    source, target = tmp_path / "fixed.onnx", tmp_path / "four.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + BATCH["heads_meet_a_constant"]), source)
    done = cli("convert", source, target, "--input-shape", "x:4,2,2,3")
    assert done.returncode == 0, done.stderr
    assert session(target).get_inputs()[0].shape == [4, 2, 2, 3]
    samples = [drawn(session(source), k)["x"] for k in range(4)]
    wanted = [session(source).run(None, {"x": x})[0] for x in samples]
    found = session(target).run(None, {"x": np.concatenate(samples)})[0]
    np.testing.assert_allclose(found, np.concatenate(wanted), rtol=1e-5)


def test_auto_opens_the_first_size_of_every_input(cli: Any, tmp_path: Path) -> None:
    text = """g (float[1, 3] a, float[1, 3] b, float[3] c) => (float[1, 3] y) { s = Add(a, b) y = Mul(s, c) }"""
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "fixed.onnx")
    done = cli("convert", "fixed.onnx", "open.onnx", "--dynamic", "auto", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shapes = [value.shape for value in session(tmp_path / "open.onnx").get_inputs()]
    assert shapes == [["batch", 3], ["batch", 3], [3]]
    compare_samples(tmp_path / "fixed.onnx", tmp_path / "open.onnx", ["a", "b"])


def renamed(source: Path, target: Path) -> None:
    """What a text editor does: the input says that its size is open, and the rest stays as it was."""
    model = onnx.load(source)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, target)


def test_verify_runs_an_open_model_at_other_sizes(tmp_path: Path) -> None:
    source = tmp_path / "fixed.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + BATCH["reshape"]), source)
    renamed(source, tmp_path / "renamed.onnx")
    tonnx.convert(source, tmp_path / "open.onnx", dynamic="auto")
    good, bad = (tonnx.verify(source, tmp_path / name) for name in ("open.onnx", "renamed.onnx"))
    assert good and "compared sample by sample at 2 and 3" in str(good)
    assert not bad and str(bad).splitlines()[-1] == "DIFFERENT at other sizes"
    backwards = tonnx.verify(tmp_path / "renamed.onnx", source)
    assert not backwards


@pytest.mark.parametrize("ending", [".pt2", ".pt"])
def test_batch_of_programs(ending: str, tmp_path: Path) -> None:
    import torch

    source, target = tmp_path / "fixed.onnx", tmp_path / ("open" + ending)
    onnx.save(onnx.parser.parse_model(HEAD + BATCH["mask_of_heads"]), source)
    tonnx.convert(source, target, dynamic="auto")
    module = torch.export.load(target).module() if ending == ".pt2" else torch.jit.load(str(target))
    for count in (1, 3):
        samples = [drawn(session(source), k)["x"] for k in range(count)]
        wanted = [session(source).run(None, {"x": x})[0] for x in samples]
        found = module(torch.from_numpy(np.concatenate(samples)))
        np.testing.assert_allclose(found.detach().numpy(), np.concatenate(wanted), rtol=1e-4, atol=1e-6)


def test_run_opens_sizes_and_compares(cli: Any, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(HEAD + BATCH["lstm"]), tmp_path / "fixed.onnx")
    (tmp_path / "batch.yml").write_text(
        "models:\n- {source: fixed.onnx, target: open.onnx, dynamic: {x: {1: batch}}, verify: true}\n"
    )
    done = tonnx.run(tmp_path / "batch.yml")
    assert done, str(done)
    compare_later_axis(tmp_path / "fixed.onnx", tmp_path / "open.onnx", {"x": {1: "batch"}})

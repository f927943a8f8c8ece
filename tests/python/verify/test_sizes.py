"""Open sizes that the rest of a model determines are found before anything is drawn."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import tonnx

# text of the graph, sizes of its weights, and the shapes that its inputs must have
DETERMINED: dict[str, tuple[str, dict[str, tuple[int, ...]], dict[str, list[int]]]] = {
    "product": ("(float[B, C] x) => (float[B, M] y) { y = MatMul(x, w) }", {"w": (1575, 25)}, {"x": [1, 1575]}),
    "transposed weight": (
        "(float[B, C] x) => (float[B, M] y) { y = Gemm <transB = 1> (x, w) }",
        {"w": (25, 333)},
        {"x": [1, 333]},
    ),
    "recurrent": (
        "(float[T, B, C] x, float[1, B, H] h) => (float[T, 1, B, H] y) { y = GRU <hidden_size = 40> (x, w, r, , , h) }",
        {"w": (1, 120, 162), "r": (1, 120, 40)},
        {"x": [1, 8, 162], "h": [1, 8, 40]},
    ),
    "after a convolution": (
        "(float[B, C, h, v] x) => (float[B, M] y)"
        " { c = Conv <kernel_shape = [3, 3], strides = [2, 2]> (x, k) f = Flatten(c) y = MatMul(f, w) }",
        {"k": (8, 5, 3, 3), "w": (8 * 13 * 13, 10)},
        {"x": [1, 5, 27, 27]},
    ),
    "joined": (
        "(float[B, C] x, float[B, D] z) => (float[B, M] y)"
        " { c = Concat <axis = 1> (x, z) q = MatMul(z, v) p = MatMul(c, w) y = Add(p, q) }",
        {"w": (77, 10), "v": (30, 10)},
        {"x": [1, 47], "z": [1, 30]},
    ),
    "added": ("(float[B, C] x) => (float[B, C] y) { y = Add(x, w) }", {"w": (91,)}, {"x": [1, 91]}),
    "normalised": (
        "(float[B, T, C] x) => (float[B, T, C] y) { y = LayerNormalization (x, w, w) }",
        {"w": (53,)},
        {"x": [1, 8, 53]},
    ),
    "reshaped": (
        "(float[B, T, C] x) => (float[M, K] y)"
        " { s = Constant <value_ints = [-1, 12]> () r = Reshape(x, s) y = MatMul(r, w)"
        "   d = Constant <value_ints = [7, 36]> () e = Reshape(x, d) }",
        {"w": (12, 3)},
        {"x": [1, 0, 0]},
    ),
}


@pytest.mark.parametrize("name", DETERMINED)
def test_sizes_that_follow_are_found(name: str) -> None:
    text, weights, shapes = DETERMINED[name]
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    rng = np.random.default_rng(0)
    for weight, shape in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype("f"), weight))
    onnx.save(model, "m.onnx")
    report = tonnx.verify("m.onnx", "m.onnx", outputs_only=True)
    assert report
    found = {
        key: [int(n) for n in kind.partition("[")[2].rstrip("]").split(",")] for key, kind in report.inputs.items()
    }
    if name == "reshaped":  # no size by itself, but their product
        assert np.prod(found["x"]) == 7 * 36
        return
    assert found == shapes

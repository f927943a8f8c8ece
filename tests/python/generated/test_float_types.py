"""A model can be moved to another type: what is made as a float takes the type of what the model computes with."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import tonnx

MODELS = {
    "a mask of integers": """g (float[n, 4] x, int64[n] m) => (float[n, 4] y) <int64[1] at = {1}>
        { f = Cast<to = 1>(m) u = Unsqueeze(f, at) p = Mul(x, u) y = MatMul(p, w) }""",
    "a mask of bools": """g (float[n, 4] x, bool[n, 1] m) => (float[n, 4] y) { f = Cast<to = 1>(m) p = Mul(x, f) y = MatMul(p, w) }""",
    "no float input": """g (int64[n] i, int64[n, 1] m) => (float[n, 4] y) { f = Cast<to = 1>(m) e = Gather(w, i) p = Mul(e, f) y = MatMul(p, w) }""",
    "zeros and ones": """g (float[n, 4] x) => (float[n, 4] y) <int64 zero = {0}, int64[1] four = {4}, int64[1] none = {0}>
        { s = Shape(x) o = ConstantOfShape<value = float[1] {1.5}>(s) p = Add(x, o) y = MatMul(p, w) }""",
    "positions": """g (float[n, 4] x) => (float[n, 4] y) <int64 zero = {0}, int64 one = {1}, int64[1] at = {1}>
        { s = Shape(x) k = Gather(s, zero) r = Range(zero, k, one) f = Cast<to = 1>(r) u = Unsqueeze(f, at) p = Mul(x, u) y = MatMul(p, w) }""",
    "scores that are masked": """g (float[n, 4] x, bool[n, 4] m) => (float[n, 4] y) <float zero = {0}>
        { never = Constant<value = float {-inf}>() c = Where(m, zero, never) p = Add(x, c) q = Softmax(p) y = MatMul(q, w) }""",
    "the least number": """g (float[n, 4] x, bool[n, 4] m) => (float[n, 4] y)
        { least = Constant<value = float {-3.4028234663852886e38}>() a = MatMul(x, w) p = Where(m, least, a) q = Softmax(p) y = MatMul(q, w) }""",
    "a mask of the least number": """g (float[n, 4] x) => (float[n, 4] y) <int64 up = {1}>
        { s = Shape(x) o = ConstantOfShape<value = float[1] {-3.4028234663852886e38}>(s) u = Trilu<upper = 1>(o, up) p = Add(x, u) q = Softmax(p) y = MatMul(q, w) }""",
    "a choice of two numbers": """g (float[n, 4] x, bool[n, 4] m) => (float[n, 4] y) <float zero = {0}>
        { least = Constant<value = float {-3.4028234663852886e38}>() c = Where(m, zero, least) a = MatMul(x, w) p = Add(a, c) r = Add(p, c) q = Softmax(r) y = MatMul(q, w) }""",
    "a choice before any float": """g (int64[n] i, bool[n, 4] m) => (float[n, 4] y) <float one = {1}, float two = {2}>
        { c = Where(m, one, two) e = Gather(w, i) p = Mul(e, c) y = MatMul(p, w) }""",
    "scores that are masked, twice": """g (float[n, 4] x, bool[n, 4] m) => (float[n, 4] y) <float zero = {0}>
        { never = Constant<value = float {-inf}>() c = Where(m, never, zero) p = Add(c, x) d = MatMul(x, w) e = Add(d, c) a = Softmax(p)
          b = Softmax(e) q = Add(a, b) y = MatMul(q, w) }""",
}


def made(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> {text}')
    weight = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    return model


def feeds_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    kinds = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.INT64: np.int64, onnx.TensorProto.BOOL: np.bool_}
    feeds = {}
    for each in model.graph.input:
        sizes = [dim.dim_value or 3 for dim in each.type.tensor_type.shape.dim]
        feeds[each.name] = rng.integers(0, 2, sizes).astype(kinds[each.type.tensor_type.elem_type])
        if each.name == "m" and len(sizes) == 2:
            feeds[each.name][:, 0] = sizes[1] > 1  # no row is masked as a whole
            feeds[each.name][:, -1] = 0
    return feeds


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
def test_moved_to_another_type(text: str) -> None:
    model = made(text)
    feeds = feeds_of(model)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    module = tonnx.convert(model)
    given = [torch.from_numpy(each) for each in feeds.values()]
    np.testing.assert_allclose(module(*given).detach().numpy(), want, rtol=1e-5, atol=1e-6)
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        got = module.to(dtype)(*(x.to(dtype) if x.is_floating_point() else x for x in given))
        assert got.dtype is dtype
        np.testing.assert_allclose(got.detach().to(torch.float32).numpy(), want, rtol=5e-2, atol=5e-2)

"""What somebody trained is in the state dict, and what an exporter only needed is not."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import tonnx


def scaled(name: str, sizes: list[int], op: str = "Mul") -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> g (float[n, 3] x) => (float[n, 3] y) {{ y = {op}(x, k) }}'
    )
    model.graph.node[0].input[1] = name
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.full(sizes, 1.7, np.float32), name))
    return model


@pytest.mark.parametrize("sizes", [[], [1]])
@pytest.mark.parametrize(
    "name", ["blocks.3.gamma", "logit_scale", "learnable_affine_block_0.w_0", "pos_enc.scale", "gamma"]
)
def test_a_trained_scalar_stays(name: str, sizes: list[int]) -> None:
    for op in ("Mul", "Add"):
        model = scaled(name, sizes, op)
        module = tonnx.convert(model)
        (parameter,) = module.parameters()
        assert list(parameter.shape) == sizes
        x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
        want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
        np.testing.assert_allclose(module(torch.from_numpy(x)).detach().numpy(), want, rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "onnx::Mul_12",
        "/attn/Constant_1_output_0",
        "const_fold_opt__4",
        "norm.eps",
        "12",
        "val_3",
        "embed.weight_scale",
        "p2o.full.2.0",
        "two",
    ],
)
def test_a_constant_is_a_number(name: str) -> None:
    assert not tonnx.convert(scaled(name, [])).state_dict()


def test_a_constant_that_is_stretched_is_not_trained() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (int64[2] s) => (float[a, b] y)
        <float const_fold_1 = {2.5}> { y = Expand(const_fold_1, s) }""")
    module = tonnx.convert(model)
    assert not list(module.parameters())
    assert torch.equal(module(torch.tensor([2, 3])), torch.full((2, 3), 2.5))


@pytest.mark.parametrize("start", [0.0, 2.0])
def test_floats_up_to_a_size(start: float) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (float[n, m] x) => (float[k] y)
        <float start = {{{start}}}, float one = {{1}}, int64 at = {{1}}>
        {{ s = Shape(x) i = Gather(s, at) f = Cast<to = 1>(i) y = Range(start, f, one) }}""")
    module = tonnx.convert(model)
    assert not module.state_dict()
    for size in (0, 1, 2, 5):
        x = np.zeros((2, size), np.float32)
        want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
        assert np.array_equal(module(torch.from_numpy(x)).numpy(), want)
    program = torch.export.export(module, (torch.zeros(2, 6),), dynamic_shapes=({1: torch.export.Dim("m", min=4)},))
    assert "item" not in program.graph_module.code


def test_steps_that_only_the_run_tells() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float limit) => (float[k] y)
        <float start = {0.5}, float step = {0.25}> { y = Range(start, limit, step) }""")
    module = tonnx.convert(model)
    assert not module.state_dict()
    for limit in (0.2, 0.5, 1.9):
        want = onnxruntime.InferenceSession(model.SerializeToString()).run(
            None, {"limit": np.array(limit, np.float32)}
        )[0]
        np.testing.assert_allclose(module(torch.tensor(limit)).numpy(), want)

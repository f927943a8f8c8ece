"""Normalisations: constant and run-time weights, training, every opset, sizes known and not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from checks import check, check_opset, one_node, source
from models import runtime_run

import tonnx

RANDOM = np.random.default_rng(9)


def array(*sizes: int) -> np.ndarray:
    return RANDOM.standard_normal(sizes).astype(np.float32)


def positive(*sizes: int) -> np.ndarray:
    return RANDOM.uniform(0.5, 2, sizes).astype(np.float32)


X = {0: array(5, 4), 1: array(2, 4, 7), 2: array(2, 4, 5, 3), 3: array(2, 4, 3, 2, 3), 4: array(2, 4, 2, 2, 2, 2)}
WEIGHTS = {"scale": array(4), "B": array(4), "mean": array(4), "var": positive(4)}


@pytest.mark.parametrize("dynamic", [False, ("X",)])
@pytest.mark.parametrize("constant", [tuple(WEIGHTS), ()])
@pytest.mark.parametrize("rank", X)
def test_batch_norm(rank: int, constant: tuple, dynamic: bool) -> None:
    check("BatchNormalization", {"X": X[rank]} | WEIGHTS, 15, constant, dynamic=dynamic)
    check("BatchNormalization", {"X": X[rank]} | WEIGHTS, 15, constant, dynamic=dynamic, epsilon=0.01, momentum=0.7)


@pytest.mark.parametrize("opset", [7, 9, 14])
def test_older_batch_norm(opset: int) -> None:
    check("BatchNormalization", {"X": X[2]} | WEIGHTS, opset, tuple(WEIGHTS), epsilon=1e-3)


def normalized(x: np.ndarray, weights: list[np.ndarray], epsilon: float = 1e-5) -> np.ndarray:
    scale, bias, mean, var = weights
    return scale * (x - mean) / np.sqrt(var + epsilon) + bias


@pytest.mark.parametrize("attributes", [{"consumed_inputs": [0, 0, 0, 1, 1]}, {"is_test": 1}, {"is_test": 0}])
def test_first_batch_norms(attributes: dict) -> None:
    columns = [weight.reshape(4, 1, 1) for weight in WEIGHTS.values()]
    opset = 1 if "consumed_inputs" in attributes else 6
    values = [normalized(X[2], columns)]
    check("BatchNormalization", {"X": X[2]} | WEIGHTS, opset, tuple(WEIGHTS), values=values, **attributes)


@pytest.mark.parametrize("opset", [6, 7])
def test_batch_norm_for_each_element(opset: int) -> None:
    weights = {name: positive(4, 5, 3) for name in WEIGHTS}
    values = [normalized(X[2], list(weights.values()))]
    for constant in (tuple(weights), ()):
        check("BatchNormalization", {"X": X[2]} | weights, opset, constant, values=values, spatial=0)
    check(
        "BatchNormalization", {"X": X[0]} | WEIGHTS, opset, values=[normalized(X[0], list(WEIGHTS.values()))], spatial=0
    )


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("rank", [0, 2, 3])
@pytest.mark.parametrize("momentum", [{}, {"momentum": 0.6}])
def test_training_mode(rank: int, momentum: dict, dynamic: bool) -> None:
    inputs = {"X": X[rank]} | WEIGHTS
    check("BatchNormalization", inputs, 15, outputs=3, dynamic=dynamic, training_mode=1, reference=True, **momentum)
    check("BatchNormalization", inputs, 14, outputs=1, dynamic=dynamic, training_mode=1, reference=True)


def test_batch_norm_trains() -> None:
    module = tonnx.convert(one_node("BatchNormalization", {"X": X[2]} | WEIGHTS, 15, tuple(WEIGHTS), momentum=0.8))
    norm = next(module.children())
    assert isinstance(norm, torch.nn.BatchNorm2d) and norm.momentum == 0.2
    assert {name for name, _ in norm.named_parameters()} == {"weight", "bias"}
    module.train()
    module(torch.from_numpy(X[2]))
    want = 0.8 * WEIGHTS["mean"] + 0.2 * X[2].mean((0, 2, 3))
    np.testing.assert_allclose(norm.running_mean, want, rtol=1e-5, atol=1e-6)


def test_epsilon_of_32_bits() -> None:
    epsilon = float(np.nextafter(np.float32(1e-5), np.float32(1)))
    module = check("BatchNormalization", {"X": X[2]} | WEIGHTS, 15, tuple(WEIGHTS), epsilon=epsilon)
    assert next(module.children()).eps == 1e-5


def test_half_input_beside_wide_weights() -> None:
    x = X[2].astype(np.float16)
    values = [normalized(X[2], [weight.reshape(4, 1, 1) for weight in WEIGHTS.values()]).astype(np.float16)]
    check("BatchNormalization", {"X": x} | WEIGHTS, 15, tuple(WEIGHTS), values=values, tolerance=1e-2)


@pytest.mark.parametrize("dynamic", [False, ("input",)])
@pytest.mark.parametrize("constant", [("scale", "B"), ()])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_instance_norm(rank: int, constant: tuple, dynamic: bool) -> None:
    inputs = {"input": X[rank], "scale": array(4), "B": array(4)}
    check("InstanceNormalization", inputs, 6, constant, dynamic=dynamic)
    module = check("InstanceNormalization", inputs, 22, constant, dynamic=dynamic, epsilon=0.1)
    if constant:
        assert isinstance(
            next(module.children()), (torch.nn.InstanceNorm1d, torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d)
        )


# 61000585
@pytest.mark.parametrize(
    "shape, groups", [((1, 4, 1, 1), 4), ((1, 1, 1), 1), ((1, 4), 4), ((2, 4, 1), 4), ((1, 4, 1), 2)]
)
def test_group_norm_of_one_element(shape: tuple[int, ...], groups: int) -> None:
    inputs = {"x": array(*shape), "scale": array(shape[1]), "bias": array(shape[1])}
    check("GroupNormalization", inputs, 21, ("scale", "bias"), num_groups=groups)
    check("GroupNormalization", inputs, 21, num_groups=groups)


def test_instance_norm_of_one_element() -> None:
    bias = array(4)
    inputs = {"input": array(2, 4, 1, 1), "scale": array(4), "B": bias}
    check("InstanceNormalization", inputs, 6, values=[np.tile(bias.reshape(1, 4, 1, 1), (2, 1, 1, 1))])


@pytest.mark.parametrize("dynamic", [False, ("X",), True])
@pytest.mark.parametrize("constant", [("Scale", "B"), ()])
@pytest.mark.parametrize("axis", [None, 1, -2, 3])
def test_layer_norm(axis: int | None, constant: tuple, dynamic: bool) -> None:
    shape = X[2].shape[-1 if axis is None else axis :]
    options = {} if axis is None else {"axis": axis}
    inputs = {"X": X[2], "Scale": array(*shape), "B": array(*shape)}
    module = check("LayerNormalization", inputs, 17, constant, dynamic=dynamic, **options)
    if constant and not dynamic:
        assert isinstance(next(module.children()), torch.nn.LayerNorm)
    inputs.pop("B")
    check(
        "LayerNormalization",
        inputs,
        17,
        constant[:1],
        dynamic=dynamic,
        outputs=3,
        epsilon=0.1,
        tolerance=1e-4,
        **options,
    )


def test_layer_norm_with_a_small_scale() -> None:
    inputs = {"X": X[2], "Scale": array(3), "B": array(5, 1)}
    scale, bias = inputs["Scale"], inputs["B"]
    mean, var = X[2].mean((2, 3), keepdims=True), X[2].var((2, 3), keepdims=True)
    check(
        "LayerNormalization",
        inputs,
        17,
        ("Scale",),
        axis=2,
        values=[(X[2] - mean) / np.sqrt(var + 1e-5) * scale + bias],
    )


@pytest.mark.parametrize("dynamic", [False, ("X",)])
@pytest.mark.parametrize("constant", [("scale",), ()])
@pytest.mark.parametrize("axis", [None, 1, -2])
def test_rms_norm(axis: int | None, constant: tuple, dynamic: bool) -> None:
    shape = X[2].shape[-1 if axis is None else axis :]
    options = {} if axis is None else {"axis": axis}
    inputs = {"X": X[2], "scale": array(*shape)}
    check("RMSNormalization", inputs, 23, constant, dynamic=dynamic, reference=True, epsilon=0.1, **options)
    check("RMSNormalization", inputs | {"scale": array(3)}, 23, constant, dynamic=dynamic, reference=True, **options)


@pytest.mark.parametrize("dynamic", [False, ("X",)])
@pytest.mark.parametrize("constant", [("scale", "bias"), ()])
def test_group_norm(constant: tuple, dynamic: bool) -> None:
    inputs = {"X": X[2], "scale": array(4), "bias": array(4)}
    check("GroupNormalization", inputs, 21, constant, dynamic=dynamic, num_groups=2)
    check("GroupNormalization", inputs, 21, constant, dynamic=dynamic, num_groups=4, epsilon=0.1)


@pytest.mark.parametrize("constant", [("scale", "bias"), ()])
def test_group_norm_with_a_scale_for_each_group(constant: tuple) -> None:
    inputs = {"X": X[2], "scale": array(2), "bias": array(2)}
    module = check("GroupNormalization", inputs, 18, constant, num_groups=2)
    assert not constant or isinstance(next(module.children()), torch.nn.GroupNorm)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_lrn(size: int, dynamic: bool) -> None:
    x = array(7, 7, 3, 2)
    reference = size % 2 == 0  # ONNX Runtime takes odd sizes only
    check("LRN", {"X": x}, 1, dynamic=dynamic, reference=reference, size=size)
    check("LRN", {"X": x}, 13, dynamic=dynamic, reference=reference, size=size, alpha=0.5, beta=0.6, bias=2.0)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("attributes", [{}, {"axis": 1}, {"p": 1}, {"p": 1, "axis": -2}])
def test_lp_normalization(attributes: dict, dynamic: bool) -> None:
    x = X[2].copy()
    x[0, 0] = 0
    check("LpNormalization", {"input": x}, 1, dynamic=dynamic, **attributes)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("attributes", [{}, {"axes": [1]}, {"axes": [-1, 0]}])
def test_mean_variance_normalization(attributes: dict, dynamic: bool) -> None:
    for opset in (9, 13):
        check("MeanVarianceNormalization", {"X": X[2]}, opset, dynamic=dynamic, tolerance=1e-4, **attributes)


def test_mean_variance_normalization_at_a_newer_opset(tmp_path) -> None:
    """Case 35000218: onnx expands the function that it is there without the default of its axes, and fails."""
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4, 3, 2, 5]) for name in "xy"]
    node = onnx.helper.make_node("MeanVarianceNormalization", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", info[:1], info[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 9)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    x = array(4, 3, 2, 5)
    for opset in (13, 18, 21):
        tonnx.convert(model, tmp_path / "newer.onnx", opset=opset)
        newer = onnx.load(tmp_path / "newer.onnx")
        onnx.checker.check_model(newer, full_check=True)
        np.testing.assert_allclose(runtime_run(newer, {"x": x})[0], runtime_run(model, {"x": x})[0], rtol=1e-4)


def test_steps_down(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_opset("BatchNormalization", {"X": X[2]} | WEIGHTS, 15, 7, tuple(WEIGHTS), epsilon=0.1)
    scale = np.array([2, 2, 3, 3], np.float32)
    inputs = {"X": X[2], "scale": scale, "bias": scale}
    model = one_node("GroupNormalization", inputs, 21, ("scale", "bias"), num_groups=2)
    tonnx.convert(model, "down.onnx", opset=18)
    x = torch.from_numpy(X[2])
    torch.testing.assert_close(tonnx.convert("down.onnx")(x), tonnx.convert(model)(x))
    model = one_node("GroupNormalization", inputs | {"bias": array(4)}, 21, ("scale", "bias"), num_groups=2)
    tonnx.convert(model, "other.onnx", opset=18)
    torch.testing.assert_close(tonnx.convert("other.onnx")(x), tonnx.convert(model)(x))


def test_code(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "F.local_response_norm(x, 5, alpha=0.001)" in source("LRN", {"x": X[2]}, 13, size=5, alpha=0.001)
    text = source("BatchNormalization", {"x": X[2]} | WEIGHTS, 15)
    assert "F.batch_norm(x, mean, var, scale, B)" in text

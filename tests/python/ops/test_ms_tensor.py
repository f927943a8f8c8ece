"""Operators of com.microsoft that the standard has under another name, linear algebra, and those that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, one_node

import tonnx

RNG = np.random.default_rng(19)
MS = "com.microsoft::"


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


X = normal(2, 3, 4)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Trilu", {"x": X}, {}),
        ("Trilu", {"x": X, "k": np.array(1)}, {"upper": 0}),
        ("GatherND", {"x": X, "i": np.array([[0, 1], [1, 2]])}, {}),
        ("SampleOp", {"x": X}, {}),
        ("Inverse", {"x": normal(2, 3, 3)}, {}),
        ("CDist", {"a": normal(4, 3), "b": normal(5, 3)}, {}),
        ("CDist", {"a": normal(4, 3), "b": normal(5, 3)}, {"metric": "euclidean"}),
        ("UnfoldTensor", {"x": normal(2, 7)}, {"size": 3, "step": 2}),
        ("UnfoldTensor", {"x": normal(7, 2)}, {"size": 2, "dim": 0}),
    ],
)
def test_values(op: str, inputs: dict, attributes: dict, dynamic: bool) -> None:
    check(MS + op, inputs, 17, dynamic=("x", "a", "b") if dynamic else False, tolerance=1e-4, **attributes)


@pytest.mark.parametrize("constant", [(), ("p", "a")])
def test_integer_inputs(constant: tuple) -> None:
    check(MS + "Pad", {"x": X[0], "p": np.array([0, 1, 2, 0]), "v": np.array(3, np.float32)}, 17, constant)
    check(MS + "Pad", {"x": X[0], "p": np.array([0, 1, 2, 0])}, 17, constant, mode="reflect")
    check(MS + "ExpandDims", {"x": X, "a": np.array(-1, np.int32)}, 17, ("a",))
    start, limit = np.array(1, np.float32), np.array(6, np.float32)
    check(MS + "Range", {"a": start, "b": limit}, 17)
    check(MS + "Range", {"a": start, "b": limit, "p": np.array(2, np.float32)}, 17, tuple(set(constant) & {"p"}))


@pytest.mark.parametrize("attributes", [{}, {"mode": "nearest", "padding_mode": "border", "align_corners": 1}])
def test_grid_sample(attributes: dict) -> None:
    check(MS + "GridSample", {"x": normal(1, 2, 4, 4), "g": normal(1, 3, 3, 2) / 2}, 17, **attributes)


def test_unique() -> None:
    check(MS + "Unique", {"x": np.array([3, 1, 3, 2, 1], np.float32)}, 17, outputs=3)


def test_on_other_devices_only() -> None:
    """ONNX Runtime has these not on the CPU: the values are numpy's."""
    a, b = normal(2, 3, 2), normal(2, 3, 2)
    pairs = [x.view(np.complex64)[..., 0] for x in (a, b)]
    for op, product in (("ComplexMul", pairs[0] * pairs[1]), ("ComplexMulConj", pairs[0] * pairs[1].conj())):
        check(MS + op, {"a": a, "b": b}, 17, values=[np.stack([product.real, product.imag], -1)])
    nan = np.where(X > 0, np.nan, X).astype(np.float32)
    check(MS + "IsAllFinite", {"x": X, "y": X}, 17, values=[np.array(True)])
    check(MS + "IsAllFinite", {"x": X, "y": nan}, 17, values=[np.array(False)])
    check(MS + "IsAllFinite", {"x": nan}, 17, values=[np.array(True)], isinf_only=1)
    bytes_ = np.full((2, 3), 200, np.uint8)
    check(MS + "ReduceSumInteger", {"x": bytes_}, 17, values=[np.full((2, 1), 600, np.uint32)], axes=[1], keepdims=1)
    table, ids = normal(5, 3), np.array([[1, 4]])
    check(MS + "TorchEmbedding", {"t": table, "i": ids, "p": np.array(0)}, 17, values=[table[ids]])


def test_fourier() -> None:
    x = normal(2, 8)
    y = np.fft.rfft(x)
    pairs = np.stack([y.real, y.imag], -1).astype(np.float32)
    check(MS + "Rfft", {"x": x}, 17, values=[pairs], signal_ndim=1)
    check(MS + "Irfft", {"x": pairs}, 17, values=[x], signal_ndim=1)


def test_with_a_state() -> None:
    inputs = {"x": normal(2, 3, 6), "w": normal(3, 1, 4), "b": normal(3), "s": normal(2, 3, 3)}
    check(MS + "CausalConvWithState", inputs, 17, ("w", "b"), outputs=2, activation="silu")
    inputs = {"q": normal(2, 5, 8), "k": normal(2, 5, 8) / 4, "v": normal(2, 5, 8)}
    heads = {"q_num_heads": 2, "kv_num_heads": 2}
    check(MS + "LinearAttention", inputs, 17, outputs=2, tolerance=1e-4, update_rule="linear", **heads)


def test_crop() -> None:
    check("Crop", {"x": normal(1, 2, 6, 7)}, 7, border=[1, 2, 0, 1])
    check("Crop", {"x": normal(1, 2, 6, 7)}, 7, border=[1, 2, 0, 0], scale=[3, 2])


def test_reason_is_named() -> None:
    with pytest.raises(tonnx.Error, match="com.microsoft::MurmurHash3"):
        tonnx.convert(one_node(MS + "MurmurHash3", {"x": np.array([1], np.int32)}, 17))


@pytest.mark.parametrize("size", [(3, 5), (1, 1), (4, 1)])
@pytest.mark.parametrize("attributes", [{}, {"mode": "nearest"}, {"extrapolation_value": 2.0}])
def test_crop_and_resize(attributes: dict, size: tuple[int, int]) -> None:
    rois = np.array([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [-0.2, 0.5, 0.5, 1.3]], np.float32)
    inputs = {"x": normal(2, 3, 6, 7), "r": rois, "b": np.array([0, 1, 1], np.int32), "s": np.array(size, np.int32)}
    check(MS + "CropAndResize", inputs, 17, ("s",), tolerance=1e-4, **attributes)
    check(MS + "CropAndResize", inputs, 17, ("s",), tolerance=1e-4, dynamic=True, **attributes)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"activation_type": "gelu", "k": 2},
        {"activation_type": "silu", "k": 2, "normalize_routing_weights": 1},
        {"activation_type": "identity", "k": 3},
        {
            "activation_type": "swiglu",
            "swiglu_fusion": 1,
            "activation_alpha": 1.7,
            "activation_beta": 1.0,
            "swiglu_limit": 1.5,
            "k": 2,
        },
    ],
)
def test_experts(attributes: dict, rank: int) -> None:
    width = 2 if attributes.get("activation_type") == "swiglu" else 1
    x = normal(6, 8) if rank == 2 else normal(2, 3, 8)
    inputs = {
        "x": x,
        "r": normal(6, 4),
        "w1": normal(4, 16 * width, 8) / 3,
        "b1": normal(4, 16 * width),
        "w2": normal(4, 8, 16) / 3,
        "b2": normal(4, 8),
    }
    check(MS + "MoE", inputs, 17, ("w1", "w2"), tolerance=1e-4, **attributes)
    check(MS + "MoE", inputs, 17, ("w1", "w2"), tolerance=1e-4, dynamic=("x", "r"), **attributes)

"""Attention: shapes of its inputs, masks of every kind, the cache, windows, and the output of the scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, check_opset, one_node, refuses_opset, source

import tonnx

RNG = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


Q, K, V = normal(2, 4, 3, 8), normal(2, 4, 5, 8), normal(2, 4, 5, 6)
K2, V2 = K[:, :2], V[:, :2]
PAST_K, PAST_V = normal(2, 4, 2, 8), normal(2, 4, 2, 6)
BIAS, BOOL = normal(2, 1, 3, 5), RNG.random((3, 5)) > 0.4
LENGTHS = np.array([2, 5])


def flat(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], -1)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"scale": 0.3}, {"softcap": 1.5}])
@pytest.mark.parametrize("heads", [4, 2])
def test_three_dimensions(heads: int, attributes: dict, dynamic: bool) -> None:
    attributes = {"q_num_heads": 4, "kv_num_heads": heads, **attributes}
    inputs = {"q": flat(Q), "k": flat(K[:, :heads]), "v": flat(V[:, :heads])}
    if dynamic and "softcap" in attributes:
        attributes["scale"] = 0.25
    check("Attention", inputs, 23, reference=True, dynamic=dynamic, **attributes)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("mask", [None, BIAS, BOOL, BOOL[None], BIAS[0, 0, 0], BIAS[..., :4], BOOL[:, :3]])
@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"left_window_size": 1}, {"right_window_size": 0}])
def test_masks(attributes: dict, mask: np.ndarray | None, dynamic: bool) -> None:
    if attributes == {"is_causal": 1} and mask is not None and mask.ndim == 1:
        pytest.skip("the reference cannot")
    if dynamic and mask is not None and mask.shape[-1] < 5:
        dynamic = "m"
    check("Attention", {"q": Q, "k": K, "v": V, "m": mask}, 25, reference=True, dynamic=dynamic, **attributes)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"softcap": 2.0}, {"softmax_precision": 11}])
def test_scores(attributes: dict, mode: int) -> None:
    inputs = {"q": Q, "k": K2, "v": V2, "m": BIAS, "pk": None, "pv": None}
    if (
        mode == 0 and "softcap" in attributes
    ):  # the reference gives those behind the cap, the standard's text those before
        scores = Q @ np.repeat(K2, 2, 1).transpose(0, 1, 3, 2) / np.sqrt(np.float32(8))
        module = tonnx.convert(one_node("Attention", inputs, 24, outputs=4, qk_matmul_output_mode=0, **attributes))
        given = module(*(torch.from_numpy(x) for x in (Q, K2, V2, BIAS)))
        return np.testing.assert_allclose(given[3].numpy(), scores, rtol=1e-5, atol=1e-5)
    check("Attention", inputs, 24, reference=True, outputs=4, qk_matmul_output_mode=mode, **attributes)


@pytest.mark.parametrize("mask", [None, normal(3, 7), RNG.random((2, 1, 3, 7)) > 0.3])
@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"left_window_size": 2, "right_window_size": 1}])
def test_cache(attributes: dict, mask: np.ndarray | None) -> None:
    inputs = {"q": Q, "k": K, "v": V, "m": mask, "pk": PAST_K, "pv": PAST_V}
    check("Attention", inputs, 25, reference=True, outputs=3, **attributes)
    check("Attention", inputs, 25, reference=True, outputs=3, dynamic=True, **attributes)


@pytest.mark.parametrize(
    "attributes", [{}, {"is_causal": 1}, {"left_window_size": 2}, {"softcap": 2.0, "is_causal": 1}]
)
def test_lengths(attributes: dict) -> None:
    inputs = {"q": Q, "k": K, "v": V, "m": None, "pk": None, "pv": None, "n": LENGTHS}
    check("Attention", inputs, 25, reference=True, **attributes)


def test_a_query_that_sees_nothing_gives_zeros() -> None:
    mask = BOOL.copy()
    mask[1] = False
    bias = np.where(mask, np.float32(0), -np.inf).astype(np.float32)
    for m in (mask, bias):
        check("Attention", {"q": Q, "k": K, "v": V, "m": m}, 23, reference=True)
        check("Attention", {"q": Q, "k": K, "v": V, "m": m}, 23, reference=True, softcap=1.0)


def test_runtime_agrees() -> None:
    check("Attention", {"q": Q, "k": K, "v": V, "m": BIAS}, 23)
    check("Attention", {"q": flat(Q), "k": flat(K2), "v": flat(V2)}, 23, q_num_heads=4, kv_num_heads=2, is_causal=1)


def test_code(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = source("Attention", {"q": Q, "k": K2, "v": V2}, 23, is_causal=1, scale=0.5)
    assert "return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5, enable_gqa=True)" in text


def test_steps_down(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_opset("Attention", {"q": Q, "k": K, "v": V}, 25, 23, reference=True)
    assert "left_window_size" in refuses_opset("Attention", {"q": Q, "k": K, "v": V}, 25, 24, left_window_size=1)
    inputs = {"q": Q, "k": K, "v": V, "m": None, "pk": None, "pv": None, "n": LENGTHS}
    assert "nonpad_kv_seqlen" in refuses_opset("Attention", inputs, 24, 23)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ({"q": Q, "k": K[:, :3], "v": V[:, :3]}, {}, "4 heads of Q do not divide into the 3 of K"),
        ({"q": flat(Q), "k": flat(K), "v": flat(V)}, {}, "need 'q_num_heads'"),
        (
            {"q": flat(Q), "k": flat(K), "v": flat(V)},
            {"q_num_heads": 5, "kv_num_heads": 5},
            "do not divide into 5 heads",
        ),
        ({"q": Q[0, 0], "k": K, "v": V}, {}, "2 dimensions"),
        ({"q": Q, "k": K, "v": V}, {"left_window_size": -2}, "a window has the size -2"),
    ],
)
def test_refused(inputs: dict, attributes: dict, message: str) -> None:
    with pytest.raises(tonnx.Error, match=message):
        tonnx.convert(one_node("Attention", inputs, 25, **attributes))

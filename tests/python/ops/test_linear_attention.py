"""Attention with a state: LinearAttention by every rule, CausalConvWithState; rotary embedding; attention with graphs."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, one_node
from onnx import TensorProto, helper

import tonnx

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


QUERY, KEY, VALUE = normal(2, 5, 4 * 3), normal(2, 5, 2 * 3) / 3, normal(2, 5, 2 * 4)
STATE, BETA = normal(2, 2, 3, 4), RNG.random((2, 5, 2), np.float32)
DECAY, KEY_DECAY = -RNG.random((2, 5, 2), np.float32), -RNG.random((2, 5, 6), np.float32)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("state", [None, STATE, STATE.astype(np.float16)])
@pytest.mark.parametrize("attributes", [{}, {"scale": 0.7, "chunk_size": 2}])
@pytest.mark.parametrize(
    ("rule", "decay", "beta"),
    [
        ("linear", None, None),
        ("gated", DECAY, None),
        ("gated", KEY_DECAY, None),
        ("delta", None, BETA),
        ("delta", None, BETA[..., :1]),
        ("gated_delta", DECAY, BETA),
        ("gated_delta", KEY_DECAY, BETA),
    ],
)
def test_rules(rule: str, decay, beta, attributes: dict, state, dynamic: bool) -> None:
    inputs = {"q": QUERY, "k": KEY, "v": VALUE, "s": state, "d": decay, "b": beta}
    dynamic = ("k", "v", "d", "b", "s") if dynamic else False
    attributes = {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": rule, **attributes}
    tolerance = 1e-5 if state is None or state.dtype == np.float32 else 1e-3
    check("LinearAttention", inputs, 27, reference=True, outputs=2, dynamic=dynamic, tolerance=tolerance, **attributes)


def test_strong_decay_does_not_overflow() -> None:
    inputs = {"q": QUERY, "k": KEY, "v": VALUE, "s": STATE, "d": DECAY * 200, "b": BETA}
    check("LinearAttention", inputs, 27, reference=True, outputs=2, q_num_heads=4, kv_num_heads=2)


@pytest.mark.parametrize(
    ("decay", "beta", "attributes", "message"),
    [
        (None, None, {"update_rule": "sum"}, "the update rule is 'sum'"),
        (DECAY, None, {"update_rule": "linear"}, "the rule 'linear' has not a decay"),
        (DECAY, None, {}, "the rule 'gated_delta' needs a beta"),
        (None, None, {"update_rule": "linear", "q_num_heads": 3}, "3 heads of the query do not divide"),
    ],
)
def test_refused(decay, beta, attributes: dict, message: str) -> None:
    inputs = {"q": QUERY, "k": KEY, "v": VALUE, "s": None, "d": decay, "b": beta}
    with pytest.raises(tonnx.Error, match=message):
        tonnx.convert(
            one_node("LinearAttention", inputs, 27, outputs=2, **{"q_num_heads": 4, "kv_num_heads": 2, **attributes})
        )


@pytest.mark.parametrize("bias", [None, normal(3)])
@pytest.mark.parametrize("state", [None, normal(2, 3, 3)])
@pytest.mark.parametrize("attributes", [{}, {"activation": "silu"}])
@pytest.mark.parametrize("dynamic", [False, ("x",)])
def test_causal_conv(dynamic, attributes: dict, state, bias) -> None:
    inputs = {"x": normal(2, 3, 6), "w": normal(3, 1, 4), "b": bias, "s": state}
    check("CausalConvWithState", inputs, 27, ("w",), reference=True, outputs=2, dynamic=dynamic, **attributes)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("attributes", [{}, {"interleaved": 1}, {"rotary_embedding_dim": 4}])
@pytest.mark.parametrize("positions", [None, RNG.integers(0, 9, (2, 5))])
@pytest.mark.parametrize("rank", [3, 4])
def test_rotary(rank: int, positions, attributes: dict, dynamic: bool) -> None:
    size = attributes.get("rotary_embedding_dim", 8) // 2
    table = normal(9, size) if positions is not None else normal(2, 5, size)
    x, heads = (normal(2, 5, 24), {"num_heads": 3}) if rank == 3 else (normal(2, 3, 5, 8), {})
    inputs = {"x": x, "cos": table, "sin": table[::-1].copy(), "p": positions}
    check("RotaryEmbedding", inputs, 23, reference=True, dynamic=dynamic, **heads, **attributes)


@pytest.mark.parametrize("attributes", [{}, {"alpha": 1.5}])
def test_swiglu(attributes: dict) -> None:
    check("SwiGLU", {"a": normal(2, 3), "b": normal(2, 3)}, 28, reference=True, **attributes)
    check("SwiGLU", {"a": normal(0, 3), "b": normal(0, 3)}, 28, reference=True, dynamic=True, **attributes)


def modifier(op: str, number: float):
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", "h", "q", "k"]) for name in ("a", "c")]
    nodes = [
        helper.make_node("Constant", [], ["n"], value_float=number),
        helper.make_node(op, ["a", "n"], ["c"]),
    ]
    return helper.make_graph(nodes, "modifier", info[:1], info[1:])


@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("attributes", [{}, {"scale": 0.4}, {"softmax_precision": TensorProto.FLOAT}])
@pytest.mark.parametrize(
    "mods", [{}, {"score_mod": ("Mul", 2.0)}, {"score_mod": ("Add", 1.0), "prob_mod": ("Mul", 0.5)}]
)
def test_flex_attention(mods: dict, attributes: dict, heads: int) -> None:
    graphs = {name: modifier(*mod) for name, mod in mods.items()}
    q, k, v = normal(2, 4, 3, 8), normal(2, heads, 5, 8), normal(2, heads, 5, 6)
    scores = q @ np.repeat(k, 4 // heads, 1).transpose(0, 1, 3, 2) * np.float32(attributes.get("scale", 8**-0.5))
    change = {"Mul": np.multiply, "Add": np.add}
    for name in ("score_mod", "prob_mod"):
        if name == "prob_mod":
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores = scores / scores.sum(-1, keepdims=True)
        if name in mods:
            scores = change[mods[name][0]](scores, np.float32(mods[name][1]))
    inputs = {"q": q, "k": k, "v": v}
    values = [scores @ np.repeat(v, 4 // heads, 1)]
    check("ai.onnx.preview::FlexAttention", inputs, 26, values=values, **graphs, **attributes)

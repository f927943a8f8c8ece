"""Attention of com.microsoft: projections, masks, caches, rotary embedding, windows."""

from __future__ import annotations

import numpy as np
import pytest
from checks import check, expected, one_node
from models import whole_numbers

RNG = np.random.default_rng(17)
MS = "com.microsoft::"


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


X, WEIGHTS, BIAS = normal(2, 3, 8), normal(8, 24), normal(24)
MASK = np.array([[1, 1, 0], [0, 1, 1]], np.int32)


@pytest.mark.parametrize("attributes", [{}, {"unidirectional": 1}, {"scale": 0.3}, {"mask_filter_value": -5.0}])
@pytest.mark.parametrize(
    "mask",
    [None, MASK, np.array([2, 3], np.int32), np.array([2, 3, 0, 1], np.int32), np.stack([MASK, MASK, MASK[::-1]], 1)],
)
def test_attention(mask, attributes: dict) -> None:
    inputs = {"x": X, "w": WEIGHTS, "b": BIAS, "m": mask}
    check(MS + "Attention", inputs, 17, ("w", "b"), num_heads=2, **attributes)


@pytest.mark.parametrize("dynamic", [False, ("x", "m", "p")])
@pytest.mark.parametrize("attributes", [{}, {"unidirectional": 1}])
def test_attention_with_past(attributes: dict, dynamic) -> None:
    mask = np.array([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]], np.int32)
    inputs = {"x": X, "w": WEIGHTS, "b": BIAS, "m": mask, "p": normal(2, 2, 2, 2, 4)}
    check(MS + "Attention", inputs, 17, ("w", "b"), outputs=2, num_heads=2, dynamic=dynamic, **attributes)


def test_attention_of_other_sizes() -> None:
    inputs = {"x": X, "w": normal(8, 8 + 8 + 12), "b": normal(28), "m": None, "p": None, "bias": normal(2, 2, 3, 3)}
    check(MS + "Attention", inputs, 17, num_heads=2, qkv_hidden_sizes=[8, 8, 12])


@pytest.mark.parametrize("dynamic", [False, ("q", "k", "v", "m")])
@pytest.mark.parametrize(
    "mask", [None, np.array([[1, 1, 0, 1, 1], [1, 0, 0, 0, 1]], np.int32), np.array([3, 5], np.int32)]
)
@pytest.mark.parametrize("attributes", [{}, {"scale": 0.2}, {"mask_filter_value": -3.0}])
def test_multi_head(attributes: dict, mask, dynamic) -> None:
    inputs = {"q": X, "k": normal(2, 5, 8), "v": normal(2, 5, 12), "b": None, "m": mask}
    dynamic = () if dynamic is False else dynamic
    check(
        MS + "MultiHeadAttention", inputs, 17, num_heads=2, dynamic=tuple(d for d in dynamic if d == "m"), **attributes
    )


def test_multi_head_with_bias_and_causal() -> None:
    inputs = {"q": X, "k": normal(2, 3, 8), "v": normal(2, 3, 8), "b": BIAS, "m": None, "ab": normal(1, 2, 3, 3)}
    check(MS + "MultiHeadAttention", inputs, 17, num_heads=2)
    check(MS + "MultiHeadAttention", inputs, 17, num_heads=2, unidirectional=1, outputs=1)


def test_multi_head_with_cache() -> None:
    past = {"pk": normal(2, 2, 4, 4), "pv": normal(2, 2, 4, 4)}
    inputs = {
        "q": X,
        "k": normal(2, 3, 8),
        "v": normal(2, 3, 8),
        "b": BIAS,
        "m": None,
        "ab": normal(2, 2, 3, 7),
        **past,
    }
    check(MS + "MultiHeadAttention", inputs, 17, num_heads=2, outputs=3)
    inputs = {"q": X, "k": normal(2, 2, 5, 4), "v": normal(2, 2, 5, 4)}
    check(MS + "MultiHeadAttention", inputs, 17, num_heads=2)


HEADS = {"num_heads": 4, "kv_num_heads": 2}


def group_query(length: int, past: int, lengths: list[int], **more) -> dict:
    """`past` is the length of the cache, `lengths` those of the sequences with the new tokens."""
    batch = len(lengths)
    return {
        "q": normal(batch, length, 64),
        "k": normal(batch, length, 32),
        "v": normal(batch, length, 32),
        "pk": normal(batch, 2, past, 16) if past else None,
        "pv": normal(batch, 2, past, 16) if past else None,
        "n": np.array(lengths, np.int32) - 1,
        "t": np.array(max(lengths), np.int32),
        **more,
    }


def compare(inputs: dict, **attributes) -> None:
    check(MS + "GroupQueryAttention", inputs, 17, outputs=3, tolerance=1e-4, **HEADS, **attributes)
    open_sizes = tuple(name for name in inputs if name in ("pk", "pv", "bias"))
    check(MS + "GroupQueryAttention", inputs, 17, outputs=3, tolerance=1e-4, dynamic=open_sizes, **HEADS, **attributes)


CACHE, SIN = normal(16, 4), normal(16, 4)
CACHE_16, SIN_16 = normal(16, 8), normal(16, 8)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scale": 0.4},
        {"softcap": 2.0},
        {"local_window_size": 2},
        {"smooth_softmax": 1},
        {"local_window_size": 2, "smooth_softmax": 1},
    ],
)
def test_group_query(attributes: dict) -> None:
    compare(group_query(5, 0, [5, 5]), **attributes)
    compare(group_query(1, 6, [7, 7]), **attributes)
    compare(group_query(3, 6, [9]), **attributes)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_group_query_with_rotary(interleaved: int) -> None:
    more = {"cos": CACHE_16, "sin": SIN_16}
    attributes = {"do_rotary": 1, "rotary_interleaved": interleaved}
    compare(group_query(5, 0, [5, 5], **more), **attributes)
    compare(group_query(1, 6, [7, 7], **more), **attributes)


def test_group_query_of_sequences_of_different_lengths() -> None:
    inputs = group_query(1, 6, [7, 4], cos=CACHE_16, sin=SIN_16)
    inputs["pk"][1, :, 3:] = 0  # what is behind a sequence is never seen
    inputs["pv"][1, :, 3:] = 0
    feeds = {name: array for name, array in inputs.items() if array is not None}
    values = expected(one_node(MS + "GroupQueryAttention", inputs, 17, outputs=3, do_rotary=1, **HEADS), feeds, False)
    for value in values[1:]:
        value[1, :, 4:] = 0
    check(MS + "GroupQueryAttention", inputs, 17, outputs=3, tolerance=1e-4, values=values, do_rotary=1, **HEADS)


def test_group_query_packed_with_bias() -> None:
    compare(group_query(3, 6, [9], cos=None, sin=None, ids=None, bias=normal(1, 4, 3, 9)))
    compare({**group_query(3, 6, [9]), "q": normal(1, 3, 128), "k": None, "v": None})


def test_group_query_with_sinks() -> None:
    compare(group_query(3, 6, [9], cos=None, sin=None, ids=None, bias=None, sink=normal(4)))


def test_group_query_in_a_longer_buffer() -> None:
    """The cache has room for more than there is: the new token is written into it."""
    inputs = group_query(1, 12, [7, 5], cos=CACHE_16, sin=SIN_16)
    values = reference(inputs)
    check(MS + "GroupQueryAttention", inputs, 17, outputs=3, tolerance=1e-4, values=values, do_rotary=1, **HEADS)


def reference(inputs: dict) -> list[np.ndarray]:
    """One new token for each sequence, in numpy: turned, written into the cache, and compared with what is before it."""
    keys, values, outputs = inputs["pk"].copy(), inputs["pv"].copy(), []
    for b, at in enumerate(inputs["n"]):
        cos, sin = inputs["cos"][at], inputs["sin"][at]

        def turned(x: np.ndarray) -> np.ndarray:
            left, right = x[:, :8], x[:, 8:]
            return np.concatenate([left * cos - right * sin, left * sin + right * cos], -1)

        query = turned(inputs["q"][b, 0].reshape(4, 16))
        keys[b, :, at] = turned(inputs["k"][b, 0].reshape(2, 16))
        values[b, :, at] = inputs["v"][b, 0].reshape(2, 16)
        seen = np.repeat(keys[b, :, : at + 1], 2, 0)
        scores = np.exp(np.einsum("hd,hkd->hk", query, seen) / 4)
        weights = scores / scores.sum(-1, keepdims=True)
        outputs.append(np.einsum("hk,hkd->hd", weights, np.repeat(values[b, :, : at + 1], 2, 0)).reshape(1, 64))
    return [np.stack(outputs), keys, values]


@pytest.mark.parametrize("attributes", [{}, {"interleaved": 1}])
@pytest.mark.parametrize("ids", [np.array([[3, 4, 5], [0, 1, 2]]), np.array([2])])
def test_rotary(ids: np.ndarray, attributes: dict) -> None:
    check(MS + "RotaryEmbedding", {"x": normal(2, 3, 24), "p": ids, "c": CACHE, "s": SIN}, 17, **attributes)
    check(MS + "RotaryEmbedding", {"x": normal(2, 3, 3, 8), "p": ids, "c": CACHE, "s": SIN}, 17, **attributes)


def test_partial_rotary() -> None:
    inputs = {"x": normal(2, 3, 32), "p": np.array([[3, 4, 5], [0, 1, 2]]), "c": CACHE, "s": SIN}
    check(MS + "RotaryEmbedding", inputs, 17, num_heads=2, rotary_embedding_dim=8)


@pytest.mark.parametrize("both_ways", [0, 1])
def test_relative_position(both_ways: int) -> None:
    """T5's own rule, written for one pair at a time."""
    table, far = normal(8, 2), 20
    buckets = 4 if both_ways else 8
    want = np.zeros((1, 2, 6, 30), np.float32)
    for q in range(6):
        for k in range(30):
            distance = k - q
            offset = buckets if both_ways and distance > 0 else 0
            steps = abs(distance) if both_ways else max(-distance, 0)
            exact = buckets // 2
            if steps >= exact:
                wide = int(np.log(np.float32(steps / exact)) / np.log(far / exact) * (buckets - exact))
                steps = min(exact + wide, buckets - 1)
            want[0, :, q, k] = table[offset + steps]
    inputs = {"t": table, "q": np.array(6), "k": np.array(30)}
    check(MS + "RelativePositionBias", inputs, 17, values=[want], is_bidirectional=both_ways, max_distance=far)


def test_gated_relative_position() -> None:
    query, bias, table = normal(2, 3, 8), normal(8), normal(1, 2, 3, 3)
    weight, shift, eco = normal(4, 6), normal(6), normal(1, 2, 1, 1)
    heads = (query + bias).reshape(2, 3, 2, 4).transpose(0, 2, 1, 3)
    gates = 1 / (1 + np.exp(-(heads @ weight + shift).reshape(2, 2, 3, 2, 3).sum(-1)))
    want = (gates[..., :1] * (gates[..., 1:] * eco - 1) + 2) * table
    inputs = {"q": query, "b": bias, "r": table, "w": weight, "c": shift, "e": eco}
    check(MS + "GatedRelativePositionBias", inputs, 17, values=[want], num_heads=2)


@pytest.mark.parametrize("past", [None, normal(2, 2, 2, 2, 4)])
@pytest.mark.parametrize("attributes", [{}, {"unidirectional": 1}])
def test_quantised(attributes: dict, past) -> None:
    total = 3 if past is None else 5
    inputs = {
        "x": RNG.integers(0, 255, (2, 3, 8)).astype(np.uint8),
        "w": whole_numbers(RNG, np.int8, (8, 24)),
        "b": BIAS,
        "xs": np.array(0.02, np.float32),
        "ws": np.array(0.01, np.float32),
        "m": np.ones((2, total), np.int32),
        "xz": np.array(120, np.uint8),
        "wz": np.array(0, np.int8),
        "p": past,
    }
    constant = ("w", "b", "xs", "ws", "xz", "wz")
    outputs = 1 if past is None else 2
    check(MS + "QAttention", inputs, 17, constant, outputs=outputs, tolerance=1e-4, num_heads=2, **attributes)


def test_quantised_embeddings() -> None:
    def table(*shape: int) -> np.ndarray:
        return RNG.integers(0, 255, shape).astype(np.uint8)

    ids = RNG.integers(0, 10, (2, 3)).astype(np.int32)
    inputs = {
        "i": ids,
        "s": ids % 2,
        "w": table(10, 8),
        "p": table(5, 8),
        "k": table(2, 8),
        "g": table(8),
        "b": table(8),
    }
    inputs["m"] = np.array([[1, 1, 1], [1, 1, 0]], np.int32)
    for name in "wpkgb":
        inputs[name + "s"] = np.array(0.02, np.float32)
    for name in "wpkgb":
        inputs[name + "z"] = np.array(120, np.uint8)
    constant = tuple(name for name in inputs if name not in ("i", "s", "m"))
    check(MS + "QEmbedLayerNormalization", inputs, 17, constant, outputs=2, tolerance=1e-4)


def test_sixteen_bits() -> None:
    def half(inputs: dict) -> dict:
        return {
            name: x.astype(np.float16) if x is not None and x.dtype == np.float32 else x for name, x in inputs.items()
        }

    options = {"do_rotary": 1, "outputs": 3, "tolerance": 1e-2, **HEADS}
    check(MS + "GroupQueryAttention", half(group_query(1, 6, [7, 7], cos=CACHE_16, sin=SIN_16)), 17, **options)
    inputs = {"x": normal(2, 3, 24), "p": np.array([2]), "c": CACHE, "s": SIN}
    check(MS + "RotaryEmbedding", half(inputs), 17, tolerance=1e-2)
    inputs = {"x": X, "s": X * 2, "g": normal(8), "b": normal(8)}
    check(MS + "SkipLayerNormalization", half(inputs), 17, tolerance=1e-2)
    check(MS + "SkipSimplifiedLayerNormalization", half({name: inputs[name] for name in "xsg"}), 17, tolerance=1e-2)

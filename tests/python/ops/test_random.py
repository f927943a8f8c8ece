"""Random draws: type, shape, distribution, and what a seed means; and TfIdfVectorizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from checks import check, one_node

import tonnx

X = np.zeros((50, 80), np.float32)


def module(op: str, inputs: dict[str, np.ndarray] | None = None, opset: int = 15, **options: object) -> torch.nn.Module:
    return tonnx.convert(one_node(op, inputs or {}, opset, **options))


@pytest.mark.parametrize("seed", [{}, {"seed": 3.0}])
@pytest.mark.parametrize("dtype", [1, 10, 11])
@pytest.mark.parametrize("like", [False, True])
def test_moments(like: bool, dtype: int, seed: dict[str, float]) -> None:
    suffix, inputs, shape = ("Like", {"x": X}, {}) if like else ("", {}, {"shape": [50, 80]})
    feeds = [torch.tensor(x) for x in inputs.values()]
    normal = module("RandomNormal" + suffix, inputs, dtype=dtype, mean=5.0, scale=2.0, **shape, **seed)(*feeds)
    uniform = module("RandomUniform" + suffix, inputs, dtype=dtype, low=-1.0, high=3.0, **shape, **seed)(*feeds)
    kind = {1: torch.float32, 10: torch.float16, 11: torch.float64}[dtype]
    for y in (normal, uniform):
        assert y.dtype == kind and y.shape == (50, 80)
    assert abs(normal.double().mean() - 5) < 0.2 and abs(normal.double().std() - 2) < 0.2
    assert abs(uniform.double().mean() - 1) < 0.1 and uniform.min() >= -1 and uniform.max() <= 3


def test_defaults() -> None:
    normal, uniform = module("RandomNormal", shape=[4000])(), module("RandomUniform", shape=[4000])()
    assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1
    assert 0 <= uniform.min() < 0.1 and 0.9 < uniform.max() < 1
    assert module("RandomNormalLike", {"x": X.astype(np.float64)})(torch.tensor(X).double()).dtype == torch.float64


@pytest.mark.parametrize("op", ["RandomNormal", "RandomUniform"])
def test_a_seed_starts_a_draw_that_goes_on(op: str) -> None:
    first, second = module(op, shape=[5], seed=7.0), module(op, shape=[5], seed=7.0)
    drawn = first()
    assert torch.equal(drawn, second())
    again = first()
    assert not torch.equal(drawn, again)
    assert torch.equal(again, second())
    assert not torch.equal(module(op, shape=[5], seed=8.0)(), drawn)


def test_without_a_seed_it_is_that_of_pytorch() -> None:
    drawing = module("RandomNormal", shape=[5])
    torch.manual_seed(1)
    first = drawing()
    torch.manual_seed(1)
    assert torch.equal(first, drawing())
    exported = torch.export.export(module("RandomNormalLike", {"x": X}), (torch.tensor(X),))
    assert exported.module()(torch.tensor(X)).shape == X.shape


def test_a_seed_in_the_code() -> None:
    tonnx.convert(one_node("RandomNormal", {}, 15, shape=[5], seed=7.0), "model.py")
    text = Path("model.py").read_text()
    assert 'self.generator = torch.Generator("cpu").manual_seed(7)' in text
    assert "torch.randn([5], generator=self.generator)" in text


@pytest.mark.parametrize("seed", [{}, {"seed": 3.0}])
@pytest.mark.parametrize("dtype", [{}, {"dtype": 7}, {"dtype": 9}])
def test_bernoulli(dtype: dict[str, int], seed: dict[str, float]) -> None:
    p = np.repeat(np.array([[0.0], [0.25], [1.0]], np.float32), 4000, 1)
    y = module("Bernoulli", {"x": p}, **dtype, **seed)(torch.tensor(p))
    assert y.dtype == {7: torch.int64, 9: torch.bool}.get(dtype.get("dtype"), torch.float32)
    means = y.double().mean(1)
    assert means[0] == 0 and abs(means[1] - 0.25) < 0.05 and means[2] == 1


@pytest.mark.parametrize("seed", [{}, {"seed": 3.0}])
@pytest.mark.parametrize("dtype", [{}, {"dtype": 7}])
def test_multinomial(dtype: dict[str, int], seed: dict[str, float]) -> None:
    logits = np.log(np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]], np.float32)) + 3
    y = module("Multinomial", {"x": logits}, sample_size=4000, **dtype, **seed)(torch.tensor(logits))
    assert y.dtype == (torch.int64 if dtype else torch.int32) and y.shape == (2, 4000)
    for row, p in enumerate([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]]):
        counts = torch.bincount(y[row].long(), minlength=3) / 4000
        assert torch.allclose(counts, torch.tensor(p), atol=0.05)
    assert module("Multinomial", {"x": logits})(torch.tensor(logits)).shape == (2, 1)


NUMBERS = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8], [2, 3, 5, 4, 6, 8]], np.int64)
POOL = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]}


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("lengths, skips", [((1, 1), 0), ((1, 2), 0), ((2, 2), 0), ((2, 2), 5), ((1, 2), 3)])
def test_tf_idf(lengths: tuple[int, int], skips: int, mode: str) -> None:
    options = POOL | {
        "mode": mode,
        "max_skip_count": skips,
        "min_gram_length": lengths[0],
        "max_gram_length": lengths[1],
    }
    for weights in ({}, {"weights": [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}):
        for x in (NUMBERS, NUMBERS[1], NUMBERS.astype(np.int32), NUMBERS[:, :1]):
            check("TfIdfVectorizer", {"X": x}, 9, **options, **weights)
    check("TfIdfVectorizer", {"X": NUMBERS}, 9, dynamic=True, **(options | {"ngram_indexes": [3, 0, 1, 2, 8, 5, 6]}))


def test_tf_idf_of_strings() -> None:
    options = POOL | {"mode": "TF", "max_skip_count": 0, "min_gram_length": 1, "max_gram_length": 1}
    del options["pool_int64s"]
    model = one_node("TfIdfVectorizer", {"X": NUMBERS}, 9, pool_strings=["a"] * 10, **options)
    with pytest.raises(tonnx.Error, match="no tensors of strings"):
        tonnx.convert(model)

"""Col2Im and MaxUnpool."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from checks import check, one_node, source

import tonnx

RNG = np.random.default_rng(4)


def columns(image: list[int], block: list[int], options: dict[str, list[int]], dtype: str = "float32") -> np.ndarray:
    rank = len(image)
    pads, strides = options.get("pads", [0] * 2 * rank), options.get("strides", [1] * rank)
    dilations = options.get("dilations", [1] * rank)
    counts = [
        (image[i] + pads[i] + pads[rank + i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)
    ]
    return (RNG.standard_normal((2, 3 * prod(block), prod(counts))) * 10).astype(dtype)


@pytest.mark.parametrize("constant", [("image_shape", "block_shape"), ("block_shape",), ()])
@pytest.mark.parametrize(
    "image, block, options",
    [
        ([5, 6], [2, 3], {}),
        ([5, 6], [1, 3], {"strides": [2, 1], "pads": [1, 0, 1, 0]}),
        ([5, 6], [2, 2], {"dilations": [2, 1], "pads": [0, 1, 1, 2]}),
        ([7], [3], {"strides": [2]}),
        ([3, 4, 5], [2, 2, 3], {"pads": [1, 0, 0, 0, 1, 0], "dilations": [1, 1, 2]}),
    ],
)
def test_col2im(image: list[int], block: list[int], options: dict[str, list[int]], constant: tuple[str, ...]) -> None:
    inputs = {
        "input": columns(image, block, options),
        "image_shape": np.array(image),
        "block_shape": np.array(block),
    }
    check("Col2Im", inputs, 18, constant, reference=len(image) != 2, **options)


def test_col2im_types_and_text() -> None:
    sizes = {"image_shape": np.array([4, 4]), "block_shape": np.array([2, 2])}
    check("Col2Im", {"input": columns([4, 4], [2, 2], {}, "float64")} | sizes, 18, tuple(sizes), reference=True)
    integers = columns([4, 4], [2, 2], {}, "int32")
    image = tonnx.convert(one_node("Col2Im", {"input": integers} | sizes, 18, tuple(sizes)))
    floats = tonnx.convert(one_node("Col2Im", {"input": integers.astype(np.float32)} | sizes, 18, tuple(sizes)))
    import torch

    assert torch.equal(image(torch.tensor(integers)), floats(torch.tensor(integers).float()).int())
    text = source("Col2Im", {"input": integers.astype(np.float32)} | sizes, 18, tuple(sizes))
    assert "F.fold(input, [4, 4], [2, 2]" in text


def test_col2im_refuses_blocks_that_do_not_fit() -> None:
    inputs = {
        "input": np.zeros((1, 7, 4), np.float32),
        "image_shape": np.array([3, 3]),
        "block_shape": np.array([2, 2]),
    }
    with pytest.raises(tonnx.Error, match="7 rows do not divide into blocks of 4"):
        tonnx.convert(one_node("Col2Im", inputs, 18, ("image_shape", "block_shape")))


@pytest.mark.parametrize("opset", [9, 11])
@pytest.mark.parametrize(
    "x, options, wanted",
    [
        ((1, 2, 3, 4), {"kernel_shape": [2, 2], "strides": [2, 2]}, None),
        ((2, 1, 2, 2), {"kernel_shape": [2, 2], "strides": [2, 2]}, [2, 1, 5, 6]),
        ((1, 2, 5), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}, None),
        ((1, 1, 2, 3), {"kernel_shape": [2, 2]}, None),
        ((1, 1, 2, 2, 2), {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}, None),
    ],
)
def test_max_unpool(x: tuple[int, ...], options: dict[str, list[int]], wanted: list[int] | None, opset: int) -> None:
    kernel = options["kernel_shape"]
    rank = len(kernel)
    strides, pads = options.get("strides", [1] * rank), options.get("pads", [0] * 2 * rank)
    sizes = [(x[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i] for i in range(rank)]
    places = RNG.permutation(x[0] * x[1] * prod(sizes))[: prod(x)].reshape(x)
    inputs = {"X": RNG.standard_normal(x).astype(np.float32), "I": places}
    if wanted is None:
        check("MaxUnpool", inputs, opset, dynamic=("X", "I"), reference=True, **options)
    else:
        for constant in (("output_shape",), ()):
            check("MaxUnpool", inputs | {"output_shape": np.array(wanted)}, opset, constant, reference=True, **options)

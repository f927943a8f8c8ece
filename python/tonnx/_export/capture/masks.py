"""Masks of nn.Transformer while a model is traced: used as they are given.

The layers compare a mask with a causal one, which PyTorch has faster kernels for. What they compute is the same; but
the comparison is a decision on data, which cannot be traced where the size of the mask is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.nn.modules import transformer

from tonnx._replaced import replaced


def _as_given(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    return is_causal is True


@contextmanager
def masks_as_given() -> Iterator[None]:
    with replaced(transformer, "_detect_is_causal_mask", _as_given):
        yield

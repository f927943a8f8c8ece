"""Stops nn.Transformer from inspecting its masks while a model is traced.

The layers compare a mask with a causal mask, to choose a faster kernel with the same result. That comparison depends on
data, and cannot be traced where the size of the mask is open.
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

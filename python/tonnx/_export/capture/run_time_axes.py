"""Reductions along axes that are known only at run time, traced as one custom operator.

PyTorch takes axes as numbers, which would have to be known during the trace. ONNX takes them as a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from tonnx._replaced import replaced


class Axes(list[Any]):
    """The elements of a tensor of axes, as `tolist` returns them, with the tensor."""

    tensor: torch.Tensor

    @classmethod
    def of(cls, tensor: torch.Tensor, numbers: list[Any]) -> Axes:
        axes = cls(numbers)
        axes.tensor = tensor
        return axes


_SPELLINGS = (
    ("sum", "ReduceSum"),
    ("mean", "ReduceMean"),
    ("amax", "ReduceMax"),
    ("amin", "ReduceMin"),
    ("logsumexp", "ReduceLogSumExp"),
)
_REDUCTIONS: dict[str, Any] = {
    "ReduceSum": torch.sum,
    "ReduceMean": torch.mean,
    "ReduceMax": torch.amax,
    "ReduceMin": torch.amin,
    "ReduceL2": lambda x, dim, keepdim: torch.linalg.vector_norm(x, dim=dim, keepdim=keepdim),
    "ReduceLogSumExp": torch.logsumexp,
}
_NAMES: dict[Any, str] = {
    **{getattr(torch, name): how for name, how in _SPELLINGS},
    **{getattr(torch.Tensor, name): how for name, how in _SPELLINGS},
    torch.linalg.vector_norm: "ReduceL2",
}


@torch.library.custom_op("tonnx_axes::reduced", mutates_args=())
def _reduced(self: torch.Tensor, axes: torch.Tensor, how: str, keepdim: bool) -> torch.Tensor:
    result: torch.Tensor = _REDUCTIONS[how](self, axes.tolist(), keepdim)
    return result


@_reduced.register_fake
def _(self: torch.Tensor, axes: torch.Tensor, how: str, keepdim: bool) -> torch.Tensor:
    context: Any = torch.library.get_ctx()
    rank = self.dim() if keepdim else self.dim() - axes.shape[0]
    return self.new_empty([context.new_dynamic_size() for _ in range(rank)])


def reduced(func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """The reduction if it is one along such axes, or None."""
    how = _NAMES.get(func)
    names = ("input", "ord", "dim", "keepdim") if how == "ReduceL2" else ("input", "dim", "keepdim")
    given = dict(zip(names, args)) | (kwargs or {})
    axes = given.get("dim")
    if given.get("ord", 2) == 2:
        given.pop("ord", None)
    if how is None or not isinstance(axes, Axes) or not set(given) <= {"input", "dim", "keepdim"}:
        return None
    if not given["input"].is_floating_point():  # sums of integers are wider in PyTorch
        return None
    result: torch.Tensor = torch.ops.tonnx_axes.reduced(given["input"], axes.tensor, how, given.get("keepdim", False))
    return result


@contextmanager
def axes_kept() -> Iterator[None]:
    """Inside, `tolist` of a tensor of integers returns a list that remembers the tensor."""
    original: Any = FakeTensor.tolist

    def tolist(self: Any) -> Any:
        numbers = original(self)
        is_list = self.dim() == 1 and self.dtype == torch.int64 and isinstance(self.shape[0], int)
        return Axes.of(self, numbers) if is_list else numbers

    with replaced(FakeTensor, "tolist", tolist):
        yield

"""Operators whose results may be in any order (`topk(sorted=False)`): makes every runtime sort them.

The sorted order is as correct as any other, and then all runtimes compute the same values after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode

# the index of the argument `sorted`
_PLACES: dict[Any, int] = {
    torch.ops.aten.topk.default: 4,
    torch.ops.aten._unique.default: 1,
    torch.ops.aten._unique2.default: 1,
}


def _is_open(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    place = _PLACES.get(operator)
    return place is not None and False in (kwargs.get("sorted", True), args[place] if place < len(args) else True)


def _sorted(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    place = _PLACES[operator]
    if "sorted" in kwargs:
        return list(args), {**kwargs, "sorted": True}
    return [*args[:place], True, *args[place + 1 :]], dict(kwargs)


class _OrdersChosen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, such operators sort."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _is_open(func, args, kwargs):
            args, kwargs = _sorted(func, args, kwargs)
        return func(*args, **kwargs)


def orders_chosen(are_open: bool) -> AbstractContextManager[Any]:
    """Inside, such operators sort in PyTorch. `are_open` says whether there may be any, as the mode costs time."""
    return _OrdersChosen() if are_open else nullcontext()  # type: ignore[no-untyped-call]


def _open_nodes(module: fx.GraphModule) -> Iterator[fx.Node]:
    for part in module.modules():
        for node in part.graph.nodes if isinstance(part, fx.GraphModule) else ():
            if node.op == "call_function" and _is_open(node.target, node.args, node.kwargs):
                yield node


def has_open_orders(module: fx.GraphModule) -> bool:
    return any(True for _ in _open_nodes(module))


def choose_orders(module: fx.GraphModule) -> None:
    """Makes such operators of a program sort."""
    for node in list(_open_nodes(module)):
        args, kwargs = _sorted(node.target, node.args, node.kwargs)
        node.args, node.kwargs = tuple(args), kwargs

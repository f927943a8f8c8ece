"""Registers dataclasses and caches of transformers with torch, which must know how to flatten them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tonnx._error import Error


def register_structures(value: Any) -> None:
    """Registers the dataclasses in a value, and the caches of transformers."""
    _register_caches()
    for leaf in pytree.tree_leaves(value):
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) and type(leaf) not in pytree.SUPPORTED_NODES:
            torch.export.register_dataclass(
                type(leaf), serialized_type_name=f"{type(leaf).__module__}.{type(leaf).__qualname__}"
            )
            register_structures(leaf)


class NotCarried(Error):
    """The model returns a value that cannot be an output."""


_CARRIED = (torch.Tensor, int, float, str, torch.SymInt, torch.SymFloat, torch.SymBool, type(None))


def require_carried(result: Any) -> None:
    """Throws where the model returns a value that torch.export does not support."""
    for path, leaf in pytree.tree_flatten_with_path(result)[0]:
        if not isinstance(leaf, _CARRIED):
            name = ".".join(["output", *(str(getattr(key, "idx", getattr(key, "key", key))) for key in path)])
            raise NotCarried(
                f"the output '{name}' is of the type {type(leaf).__name__}: return only tensors, numbers, and "
                "structures of them",
                "unsupported",
            )


def _register_caches() -> None:
    caches = sys.modules.get("transformers.cache_utils")
    if caches is None:
        return
    cache_type = getattr(caches, "DynamicCache", None)
    if cache_type is not None and cache_type not in pytree.SUPPORTED_NODES:
        try:
            from transformers.integrations.executorch import register_dynamic_cache_export_support

            register_dynamic_cache_export_support()
        except Exception:  # it imports much that may not be installed
            _register_dynamic_cache(cache_type)
    pair_type = getattr(caches, "EncoderDecoderCache", None)
    if pair_type is not None and pair_type not in pytree.SUPPORTED_NODES:
        _register_encoder_decoder_cache(pair_type)


def _register(
    cache_type: type,
    children_of: Callable[[Any], tuple[list[Any], list[str]]],
    made_of: Callable[[Iterable[Any]], Any],
    key: Callable[[str], Any],
) -> None:
    """Registers how a cache is flattened into named children, and rebuilt."""

    def with_keys(cache: Any) -> tuple[list[Any], Any]:
        children, names = children_of(cache)
        return [(key(name), child) for name, child in zip(names, children)], names

    pytree.register_pytree_node(
        cache_type,
        children_of,
        lambda children, names: made_of(children),
        serialized_type_name=f"{cache_type.__module__}.{cache_type.__name__}",
        flatten_with_keys_fn=with_keys,
    )


def _register_dynamic_cache(cache_type: type) -> None:
    def children_of(cache: Any) -> tuple[list[Any], list[str]]:
        filled = [layer for layer in cache.layers if layer.keys is not None]
        return [[layer.keys for layer in filled], [layer.values for layer in filled]], ["key_cache", "value_cache"]

    def made_of(children: Iterable[Any]) -> Any:
        cache = cache_type()
        for i, (key, state) in enumerate(zip(*children)):
            cache.update(key, state, i)
        return cache

    _register(cache_type, children_of, made_of, pytree.MappingKey)


def _register_encoder_decoder_cache(pair_type: type) -> None:
    fields = ["self_attention_cache", "cross_attention_cache"]
    _register(
        pair_type,
        lambda pair: ([getattr(pair, name) for name in fields], fields),
        lambda caches: pair_type(*caches),
        pytree.GetAttrKey,
    )

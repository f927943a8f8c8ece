"""Structures of a model's arguments and results that torch must be told how to take apart."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tonnx._error import Error


def register_structures(value: Any) -> None:
    """Makes the dataclasses in a value, and the caches of transformers, structures that torch can take apart."""
    _register_caches()
    for leaf in pytree.tree_leaves(value):
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) and type(leaf) not in pytree.SUPPORTED_NODES:
            torch.export.register_dataclass(
                type(leaf), serialized_type_name=f"{type(leaf).__module__}.{type(leaf).__qualname__}"
            )
            register_structures(leaf)


class NotCarried(Error):
    """The model returns what no output of a file can be."""


_CARRIED = (torch.Tensor, int, float, str, torch.SymInt, torch.SymFloat, torch.SymBool, type(None))


def require_carried(result: Any) -> None:
    """Throws where a model returns something that torch.export has no place for."""
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
        except Exception:  # the module above imports much, and any of it may be absent
            _register_dynamic_cache(cache_type)
    pair_type = getattr(caches, "EncoderDecoderCache", None)
    if pair_type is not None and pair_type not in pytree.SUPPORTED_NODES:
        _register_encoder_decoder_cache(pair_type)


def _register_dynamic_cache(cache_type: type) -> None:
    def flatten(cache: Any) -> tuple[list[Any], Any]:
        filled = [layer for layer in cache.layers if layer.keys is not None]
        return [[layer.keys for layer in filled], [layer.values for layer in filled]], ["key_cache", "value_cache"]

    def flatten_with_keys(cache: Any) -> tuple[list[Any], Any]:
        values, context = flatten(cache)
        return [(pytree.MappingKey(k), v) for k, v in zip(context, values)], context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        cache = cache_type()
        keys, states = values
        for i, (key, state) in enumerate(zip(keys, states)):
            cache.update(key, state, i)
        return cache

    pytree.register_pytree_node(
        cache_type,
        flatten,
        unflatten,
        serialized_type_name=f"{cache_type.__module__}.{cache_type.__name__}",
        flatten_with_keys_fn=flatten_with_keys,
    )


def _register_encoder_decoder_cache(pair_type: type) -> None:
    fields = ["self_attention_cache", "cross_attention_cache"]

    def flatten(pair: Any) -> tuple[list[Any], Any]:
        return [getattr(pair, f) for f in fields], fields

    def flatten_with_keys(pair: Any) -> tuple[list[Any], Any]:
        return [(pytree.GetAttrKey(f), getattr(pair, f)) for f in fields], fields

    pytree.register_pytree_node(
        pair_type,
        flatten,
        lambda values, context: pair_type(*values),
        serialized_type_name=f"{pair_type.__module__}.{pair_type.__name__}",
        flatten_with_keys_fn=flatten_with_keys,
    )

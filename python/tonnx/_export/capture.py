"""A model of any kind as a torch.export.ExportedProgram: its mode, its structures, the flags while it is traced."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tonnx._error import Error
from tonnx._export.data_sizes import is_own_file, is_question_on_data, sizes_assumed
from tonnx._export.dynamic import DynamicShapes, relaxed


def as_module(model: Any) -> tuple[nn.Module, Callable[..., Any] | None]:
    """The module to trace; where the model is a method of it, that method too."""
    if isinstance(model, nn.parallel.DataParallel | nn.parallel.DistributedDataParallel):
        return model.module, None
    if isinstance(model, nn.Module):
        return getattr(model, "_orig_mod", model), None
    if inspect.ismethod(model) and isinstance(model.__self__, nn.Module):
        return model.__self__, model
    if callable(model):
        return _module_of_function(model), None
    raise TypeError(f"a model is an nn.Module, an ExportedProgram or a function, not {type(model).__name__}")


def _module_of_function(function: Callable[..., Any]) -> nn.Module:
    """The function as the forward of a module that owns the modules it uses, so that their weights have names."""
    plain = function.func if isinstance(function, functools.partial) else function
    name = getattr(plain, "__name__", "function")
    try:
        inspect.signature(function)
    except ValueError:  # torch's own functions do not tell their parameters
        builtin = function
        function = lambda *input: builtin(*input)
    title = name if name.isidentifier() else "function"
    module: nn.Module = type(title, (nn.Module,), {"forward": staticmethod(function)})()
    try:
        used = inspect.getclosurevars(plain)
    except TypeError:
        return module
    for variable, value in {**used.globals, **used.nonlocals}.items():
        if isinstance(value, nn.Module):
            setattr(module, variable, value)
    return module


@contextmanager
def mode_of(module: nn.Module, training: bool | None) -> Iterator[None]:
    """Puts the module into train or eval mode (None: as it is), and back to what each part of it had."""
    before = [(m, m.training) for m in module.modules()]
    try:
        if training is not None:
            for part, _ in before:
                part.training = training
        yield
    finally:
        for part, was in before:
            part.training = was


@contextmanager
def onnx_export_flag() -> Iterator[None]:
    """torch.onnx.is_in_onnx_export() is true inside."""
    try:
        from torch.onnx._internal.exporter import _flags as flags

        name = "_is_onnx_exporting"
        before = getattr(flags, name)
    except (ImportError, AttributeError):  # before torch 2.7
        from torch.onnx._globals import GLOBALS as flags  # type: ignore

        name = "in_onnx_export"
        before = getattr(flags, name)
    setattr(flags, name, True)
    try:
        yield
    finally:
        setattr(flags, name, before)


@contextmanager
def _forward_replaced(module: nn.Module, forward: Callable[..., Any] | None) -> Iterator[None]:
    if forward is None:
        yield
        return
    had = module.__dict__.get("forward")
    module.__dict__["forward"] = forward
    try:
        yield
    finally:
        if had is None:
            del module.__dict__["forward"]
        else:
            module.__dict__["forward"] = had


def register_structures(value: Any) -> None:
    """Makes the dataclasses in a value, and the caches of transformers, structures that torch can take apart."""
    _register_caches()
    for leaf in pytree.tree_leaves(value):
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) and type(leaf) not in pytree.SUPPORTED_NODES:
            torch.export.register_dataclass(
                type(leaf), serialized_type_name=f"{type(leaf).__module__}.{type(leaf).__qualname__}"
            )
            register_structures(leaf)


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


def _register_torchvision_shapes() -> None:
    """torchvision leaves out the shapes of its operators where their compiled kernels are not there."""
    if "torchvision" not in sys.modules:
        return
    shapes = sys.modules.get("torchvision._meta_registrations")
    for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"):
        shape = getattr(shapes, f"meta_{name}", None)
        if shape is None or not hasattr(torch.ops.torchvision, name):
            continue
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"torchvision::{name}", "Meta"):
            torch.library.register_fake(f"torchvision::{name}", shape)


def capture(
    module: nn.Module,
    method: Callable[..., Any] | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    shapes: DynamicShapes,
) -> torch.export.ExportedProgram:
    """Traces the module; where the first way fails, the other ways that may succeed."""
    _register_torchvision_shapes()
    with _forward_replaced(module, method):
        try:
            return _traced(module, args, kwargs, shapes, strict=False)
        except Error:
            raise
        except Exception as first:
            for attempt in _other_ways(first, module, method, args, kwargs, shapes):
                try:
                    return attempt()
                except Error:
                    raise
                except Exception as e:
                    if is_question_on_data(first):  # what had an answer is no reason any more
                        raise Error(_sentence(e), "unsupported") from e
            raise Error(_sentence(first), "unsupported") from first


def _traced(
    module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: DynamicShapes, strict: bool
) -> torch.export.ExportedProgram:
    with ExitStack() as stack:
        if shapes.small_example:
            config: Any = importlib.import_module("torch.fx.experimental._config")
            if hasattr(config, "backed_size_oblivious"):  # else the example fixes such an axis
                stack.enter_context(config.patch(backed_size_oblivious=True))
        return torch.export.export(module, tuple(args), dict(kwargs), dynamic_shapes=shapes.shapes, strict=strict)


def _other_ways(
    failure: Exception,
    module: nn.Module,
    method: Callable[..., Any] | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    shapes: DynamicShapes,
) -> Iterator[Callable[[], torch.export.ExportedProgram]]:
    if isinstance(module, torch.jit.ScriptModule):
        yield lambda: _traced_script(module, args, kwargs)
        return
    if is_question_on_data(failure):
        yield lambda: _traced_with_assumed_sizes(failure, module, args, kwargs, shapes)
        return
    if "not a known type" in str(failure):
        yield lambda: _traced_with_structures(module, method, args, kwargs, shapes)
    if shapes.shapes is not None:
        looser = relaxed(shapes)
        if looser is not None:
            yield lambda: _traced(module, args, kwargs, looser, strict=False)
    yield lambda: _traced(module, args, kwargs, shapes, strict=True)


def _traced_with_assumed_sizes(
    failure: Exception, module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: DynamicShapes
) -> torch.export.ExportedProgram:
    with sizes_assumed(failure):
        return _traced(module, args, kwargs, shapes, strict=False)


def _traced_script(
    module: torch.jit.ScriptModule, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> torch.export.ExportedProgram:
    from torch._export.converter import TS2EPConverter

    return TS2EPConverter(module, tuple(args), dict(kwargs)).convert()


def _traced_with_structures(
    module: nn.Module,
    method: Callable[..., Any] | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    shapes: DynamicShapes,
) -> torch.export.ExportedProgram:
    """Registers what the model returns at the moment it returns it, the only place where its type is known."""
    original = method or module.forward

    @functools.wraps(original)
    def forward(*inner_args: Any, **inner_kwargs: Any) -> Any:
        result = original(*inner_args, **inner_kwargs)
        register_structures(result)
        return result

    with _forward_replaced(module, forward):
        return _traced(module, args, kwargs, shapes, strict=False)


_NOISE = re.compile(
    r"^(For more|For extended|For C\+\+|If you suspect|Caused by|consider using|The error above|Suggested fixes|"
    r"The following call|From user code|Set TORCH|You can suppress|To fix the error)"
)


def _sentence(failure: Exception) -> str:
    """What torch.export says, without its advice on tools of its own, and the line of the model that it stopped at."""
    lines = []
    for line in str(failure).splitlines():
        if _NOISE.match(line.strip()):
            break
        if line.strip():
            lines.append(line.strip())
    text = " ".join(lines[:6]) or type(failure).__name__
    place = _place_in_model(failure)
    if is_question_on_data(failure):
        return (
            f"the Python code of the model decides on the values of tensors{place}; write the decision with torch.cond "
            f"or torch.where, a loop with torch.while_loop, and tell sizes apart with torch._check: {text}"
        )
    return f"torch.export cannot trace the model{place}: {text}"


def _place_in_model(failure: Exception) -> str:
    """The innermost line that is neither of torch nor of tonnx."""
    place = ""
    for frame in traceback.extract_tb(failure.__traceback__):
        if not is_own_file(frame.filename):
            place = f" ({frame.filename}:{frame.lineno}, in {frame.name}: {frame.line})"
    return place

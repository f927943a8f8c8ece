"""dynamic_axes and dynamic_shapes as an argument of torch.export, and the names of the symbols in ONNX."""

from __future__ import annotations

import dataclasses
import inspect
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import Dim
from torch.export.dynamic_shapes import _tree_map_with_path
from torch.utils import _pytree as pytree

from tonnx._error import Error, nearest
from tonnx._export.interface.names import InterfaceNames, paths_of_inputs, positional_names_of


@dataclass(frozen=True)
class Axis:
    """A dimension that the user asked to be dynamic; its size is `scale * dim + offset`."""

    label: str | None
    required: bool
    dim: str | None = None  # axes with the same dim have the same size; None: independent
    scale: int = 1
    offset: int = 0
    minimum: int = 0  # of the dim
    maximum: float = math.inf


@dataclass
class DynamicShapes:
    """The argument of torch.export, and the dynamic axes of each input by its name."""

    shapes: Any = None
    axes: dict[str, dict[int, Axis]] = field(default_factory=dict)
    output_labels: dict[str, dict[int, str]] = field(default_factory=dict)
    asked_by: str = "dynamic_shapes"
    dims: dict[str, dict[int, Any]] = field(default_factory=dict)  # as in `shapes`, by the names of the inputs
    fixed_by: dict[tuple[str, int], str] = field(default_factory=dict)  # lines of the model that fix a size

    def close(self, name: str, axis: int) -> None:
        """Fixes an axis at the size of the example."""
        del self.axes[name][axis]
        self.dims[name][axis] = None


def leaves_of(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The values of a call with their names, in the order of the exported program."""
    values, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    if isinstance(model, torch.export.ExportedProgram):
        names = positional_names_of(model)
    else:
        names = _positional_names(model, len(args))
    return [(".".join(path), value) for path, value in zip(paths_of_inputs(spec, names), values)]


def _positional_names(model: Any, count: int) -> list[str]:
    names: list[str] = []
    for name, parameter in inspect.signature(callable_of(model)).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(count - len(names))]
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
    return names[:count]


def callable_of(model: Any) -> Any:
    return model.forward if isinstance(model, torch.nn.Module) else model


def combined(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by the names of the parameters, as torch.export has them."""
    return dict(inspect.signature(callable_of(model)).bind(*args, **kwargs).arguments)


def _checked_axis(axis: int, tensor: torch.Tensor, name: str, what: str = "input") -> int:
    if not isinstance(axis, int) or not -tensor.dim() <= axis < tensor.dim():
        raise Error(f"axis {axis} of {what} '{name}' is out of range for rank {tensor.dim()}", "unsupported")
    return axis % tensor.dim()


def from_dynamic_axes(
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_axes: Mapping[str, Any],
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> DynamicShapes:
    """`dynamic_axes`: for each input or output, by name, a list of axes or a dict from axes to names."""
    leaves = [(n, v) for n, v in leaves_of(model, args, kwargs) if isinstance(v, torch.Tensor)]
    result = _asked_axes(leaves, dynamic_axes, input_names)
    if output_names is not None:
        own = [name for name, _ in leaves]
        chosen = list(input_names or ())
        require_outputs(result, [*chosen, *own[len(chosen) :]], output_names)
    per_tensor = {id(tensor): result.dims[name] for name, tensor in leaves if name in result.dims}
    if per_tensor:
        result.shapes = _tree_map_with_path(lambda path, leaf: per_tensor.get(id(leaf)), combined(model, args, kwargs))
    return result


def _asked_axes(
    leaves: Sequence[tuple[str, torch.Tensor]], dynamic_axes: Mapping[str, Any], input_names: Sequence[str] | None
) -> DynamicShapes:
    by_name = {name: (name, value) for name, value in leaves}
    by_name |= {chosen: leaf for chosen, leaf in zip(input_names or (), leaves)}
    result = DynamicShapes(asked_by="dynamic_axes")
    for key, axes in dynamic_axes.items():
        if axes is None:
            continue
        labels = _axis_labels(key, axes)
        if key not in by_name:
            result.output_labels[key] = labels
            continue
        name, tensor = by_name[key]
        labels = {_checked_axis(a, tensor, key): label for a, label in labels.items()}
        result.axes.setdefault(name, {}).update({a: Axis(label, True, label) for a, label in labels.items()})
        result.dims.setdefault(name, {}).update({a: Dim.AUTO for a in labels})
    return result


def from_program(
    exported: torch.export.ExportedProgram,
    dynamic_axes: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    input_names: Sequence[str] | None,
) -> DynamicShapes:
    """For a program that is exported already: names its open sizes, and opens no others."""
    if dynamic_shapes:
        raise Error(
            "dynamic_shapes is for a model that is traced now; the open sizes of an ExportedProgram are those that it "
            "was exported with, and dynamic_axes names them",
            "unsupported",
        )
    values = {n.name: n.meta.get("val") for n in exported.graph.nodes if n.op == "placeholder"}
    own_inputs = InterfaceNames(exported, None, None).own_inputs
    leaves = [(own, values[node]) for own, node in own_inputs if isinstance(values.get(node), torch.Tensor)]
    return _asked_axes(leaves, dynamic_axes or {}, input_names)


def require_outputs(asked: DynamicShapes, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Throws where dynamic_axes names neither an input nor an output."""
    for key in asked.output_labels:
        if key not in outputs:
            known = nearest(key, [*inputs, *outputs])
            raise Error(f"dynamic_axes names '{key}', but the inputs and outputs are {known}", "unsupported")


def _axis_labels(key: str, axes: Any) -> dict[int, str]:
    if isinstance(axes, Mapping):
        return {a: str(label) for a, label in axes.items()}
    if isinstance(axes, list | tuple):
        return {a: f"{key}_dynamic_axes_{i + 1}" for i, a in enumerate(axes)}
    raise TypeError(f"dynamic_axes['{key}'] is a list of axes or a dict of their names, not {type(axes).__name__}")


def as_tree(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> Any:
    """A torch.export.ShapesCollection or AdditionalInputs as a structure of dims; other values unchanged."""
    if not hasattr(dynamic_shapes, "dynamic_shapes"):
        return dynamic_shapes
    return dynamic_shapes.dynamic_shapes(model, tuple(args), dict(kwargs))


def from_dynamic_shapes(
    model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any
) -> DynamicShapes:
    """`dynamic_shapes`, where a string may replace a Dim of torch.export."""
    from torch._dynamo.exc import UserError

    if not isinstance(dynamic_shapes, Mapping | list | tuple):
        return DynamicShapes(dynamic_shapes)
    arguments: Any = combined(model, args, kwargs)
    if isinstance(dynamic_shapes, Mapping):
        dynamic_shapes = _completed(arguments, dynamic_shapes)
    else:
        arguments = type(dynamic_shapes)(arguments.values())
    names = {id(v): n for n, v in leaves_of(model, args, kwargs) if isinstance(v, torch.Tensor)}
    result = DynamicShapes()

    def converted(path: Any, leaf: Any, shape: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or shape is None:
            return shape
        name = names[id(leaf)]
        items = shape.items() if isinstance(shape, Mapping) else enumerate(shape)
        asked = {_checked_axis(a, leaf, name): d for a, d in items}
        result.axes[name] = {a: _axis_of(d) for a, d in asked.items() if _is_dynamic(d)}
        result.dims[name] = {a: Dim.AUTO if isinstance(d, str) else d for a, d in asked.items()}
        return result.dims[name]

    try:
        result.shapes = _tree_map_with_path(converted, arguments, dynamic_shapes, tree_name="inputs")
    except UserError as failure:
        sentence = str(failure).splitlines()[0].removeprefix("Detected mismatch between ")
        raise Error(f"dynamic_shapes is not of the form of the example: {sentence}", "unsupported") from failure
    return result


def _completed(arguments: dict[str, Any], shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the parameters that dynamic_shapes does not name, as static ones."""
    for name in shapes:
        if name not in arguments:
            known = nearest(str(name), arguments)
            raise Error(f"dynamic_shapes names '{name}', but the arguments of the model are {known}", "unsupported")

    static = {name: _tree_map_with_path(lambda path, leaf: None, value) for name, value in arguments.items()}
    return {**static, **shapes}


def _is_dynamic(dim: Any) -> bool:
    is_static = getattr(dim, "type", None) is Dim.STATIC.type
    return dim is not None and not isinstance(dim, int) and not is_static


def _axis_of(dim: Any) -> Axis:
    if isinstance(dim, str):
        return Axis(dim, True, dim)
    if isinstance(dim, Dim):
        root: Any = getattr(dim, "root", dim)
        name, bounds = root.__name__, _bounds(root)
        if root is dim:
            return Axis(name, True, name, 1, 0, *bounds)
        offset = dim.fn(0)  # type: ignore[attr-defined]
        return Axis(None, True, name, dim.fn(1) - offset, offset, *bounds)  # type: ignore[attr-defined]
    return Axis(None, getattr(dim, "type", None) is not Dim.AUTO.type, None, 1, 0, *_bounds(dim))


def _bounds(dim: Any) -> tuple[int, float]:
    """The smallest and the largest size that the user allows."""
    low, high = getattr(dim, "min", None), getattr(dim, "max", None)
    return low if isinstance(low, int) else 0, high if isinstance(high, int) else math.inf


def relaxed(shapes: DynamicShapes) -> DynamicShapes | None:
    """The same request with sizes that torch.export may relate to each other; None where it already is.

    A Dim promises that every size in its range works independently. A model that needs two equal sizes, or an even
    size, breaks that promise although it is dynamic.
    """
    found = False

    def relax(dim: Any) -> Any:
        nonlocal found
        if isinstance(dim, Dim) or (_is_dynamic(dim) and _axis_of(dim).required):
            found = True
            return Dim.AUTO
        return dim

    def relax_leaf(shape: Any) -> Any:
        return {a: relax(d) for a, d in shape.items()} if _is_axes(shape) else shape

    result = pytree.tree_map(relax_leaf, shapes.shapes, is_leaf=_is_axes)
    return dataclasses.replace(shapes, shapes=result) if found else None


def _is_axes(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(k, int) for k in value)


def _require_dynamic(own: str, name: str, axis: int, size: Any, asked: DynamicShapes) -> None:
    if not isinstance(size, torch.SymInt) or size.node.expr.is_number:
        place = asked.fixed_by.get((own, axis))
        raise Error(
            f"the model fixes the size of axis {axis} of input '{name}'{f' in {place}' if place else ''}, but "
            f"{asked.asked_by} asks for it to be dynamic: take this axis out of {asked.asked_by}, or change the part "
            "of the model that needs this size",
            "unsupported",
        )


def symbol_names(exported: torch.export.ExportedProgram, names: InterfaceNames, asked: DynamicShapes) -> dict[str, str]:
    """The user's names for symbols; throws where an axis is static although it was asked to be dynamic."""
    require_outputs(asked, names.inputs, names.outputs)
    values = {n.name: n.meta.get("val") for n in exported.graph.nodes if n.op == "placeholder"}
    result: dict[str, str] = {}
    for (own, placeholder), given in zip(names.own_inputs, names.inputs):
        axes = asked.axes.get(own) or asked.axes.get(given) or {}
        value = values.get(placeholder)
        for axis, what in axes.items():
            if not isinstance(value, torch.Tensor) or axis >= value.dim():
                continue
            size = value.shape[axis]
            if what.required:
                _require_dynamic(own, given, axis, size, asked)
            _name_symbol(size, what.label, result)
    _name_output_symbols(exported, names, asked, result)
    return result


def _name_output_symbols(
    exported: torch.export.ExportedProgram, names: InterfaceNames, asked: DynamicShapes, result: dict[str, str]
) -> None:
    output = next(n for n in exported.graph.nodes if n.op == "output")
    count = len(names.outputs)
    values = [a.meta.get("val") for a in output.args[0] if isinstance(a, torch.fx.Node)][-count:] if count else []
    for name, value in zip(names.outputs, values):
        for axis, label in asked.output_labels.get(name, {}).items():
            if not isinstance(value, torch.Tensor):
                continue
            size = value.shape[_checked_axis(axis, value, name, "output")]
            if not isinstance(size, torch.SymInt) or size.node.expr.is_number:
                text = f"dynamic_axes asks for axis {axis} of output '{name}' to be dynamic, and it is always {size}"
                warnings.warn(f"{text}: the sizes of outputs follow from those of inputs", stacklevel=2)
            _name_symbol(size, label, result)


def _name_symbol(size: Any, label: str | None, result: dict[str, str]) -> None:
    if label is None or not isinstance(size, torch.SymInt):
        return
    expression = size.node.expr
    if expression.is_Symbol:
        result.setdefault(str(expression), label)

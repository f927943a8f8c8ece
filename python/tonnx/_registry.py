"""Converters that users register for an operator, as in onnx2torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from tonnx import _core
from tonnx._arguments import checks_arguments
from tonnx._error import Error
from tonnx._literal import is_dotted_name, literal
from tonnx._main_code import code_of_main

if TYPE_CHECKING:
    import numpy
    import torch

    from tonnx._core import Conversion, StoredTensor, TensorDescription


class OnnxTensor:
    """A constant of the model."""

    def __init__(self, name: str, description: TensorDescription) -> None:
        self.name = name
        self._description = description

    def to_torch(self) -> torch.Tensor:
        """A copy, which a module may own."""
        from tonnx._build import tensor_of

        return tensor_of(self._description).clone()

    def to_numpy(self) -> numpy.ndarray[Any, Any]:
        return self.to_torch().numpy()


@dataclass(frozen=True)
class OnnxNode:
    """The node that a converter is asked to convert."""

    name: str
    operation_type: str
    domain: str
    input_values: tuple[str, ...]
    output_values: tuple[str, ...]
    attributes: Mapping[str, Any]

    @property
    def unique_name(self) -> str:
        return self.name


@dataclass(frozen=True)
class OnnxGraph:
    """The graph around the node."""

    name: str
    input_values: tuple[str, ...]
    output_values: tuple[str, ...]
    nodes: Mapping[str, OnnxNode]
    initializers: Mapping[str, OnnxTensor]


class OnnxMapping(NamedTuple):
    """The names of the values that the module takes and returns; an empty name is None."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class OperationConverterResult(NamedTuple):
    """What a converter returns: the module, and the values that it is connected to."""

    torch_module: torch.nn.Module
    onnx_mapping: OnnxMapping


Converter = Callable[[OnnxNode, OnnxGraph], OperationConverterResult]

_converters: dict[tuple[str, str, int], Converter] = {}


@checks_arguments
def add_converter(
    operation_type: str, version: int, domain: str = "", *, override: bool = False
) -> Callable[[Converter], Converter]:
    """Registers the decorated function for an operator; it replaces tonnx's own conversion of that operator.

    `version` is the opset version in which the operator was defined, or the version of its domain that the model
    imports if it is not a standard operator. A second function for the same operator is an error, unless `override`
    is set or the function is the same one, defined again by a notebook cell or a reloaded module.
    """
    key = ("" if domain == "ai.onnx" else domain, operation_type, version)
    versions = _core.standard_versions(operation_type) if not key[0] else []
    if versions and version not in versions:
        there = ", ".join(map(str, versions))
        raise ValueError(f"{operation_type} was not defined in opset {version}; it was in: {there}")

    def register(converter: Converter) -> Converter:
        before = _converters.get(key)
        if before is not None and not override and not _is_again(before, converter):
            raise ValueError(
                f"a converter for {operation_type} version {version} of '{domain}' is already registered; "
                "override=True puts another in its place"
            )
        _converters[key] = converter
        return converter

    return register


def _is_again(before: Converter, converter: Converter) -> bool:
    """Whether a function is the earlier one, defined again; lambdas have no names to compare."""
    names = [(getattr(f, "__module__", None), getattr(f, "__qualname__", "<lambda>")) for f in (before, converter)]
    return names[0] == names[1] and not names[0][1].endswith("<lambda>")


def onnx_mapping_from_node(node: OnnxNode) -> OnnxMapping:
    """All inputs and outputs of the node in order."""
    return OnnxMapping(inputs=node.input_values, outputs=node.output_values)


def registered() -> list[tuple[str, str, int]]:
    return list(_converters)


@dataclass
class ExternalModules:
    """The modules that registered converters returned for the nodes of one model, in the order of the nodes."""

    modules: list[torch.nn.Module] = field(default_factory=list)
    mappings: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    def constructors(self) -> tuple[list[str], list[str]]:
        """For each module, the import of its class and the call that creates it again."""
        imports, calls = [], []
        for module in self.modules:
            kind = type(module)
            if "<locals>" in kind.__qualname__:
                raise Error(
                    f"{kind.__qualname__} cannot be imported by generated code: "
                    "define it at the top of a module of its own",
                    "unsupported",
                )
            for name in (kind.__module__, kind.__qualname__):
                if not is_dotted_name(name):
                    raise Error(f"generated code cannot import '{name}', which is not a name", "unsupported")
            text, enums = _arguments_of(module)
            imports.append(_imports_of([kind, *enums]))
            calls.append(f"{kind.__qualname__}({text})")
        return imports, calls

    def states(self) -> list[list[StoredTensor]]:
        """The weights of each module."""
        return [stored_state(module) for module in self.modules]


def stored_state(module: torch.nn.Module) -> list[StoredTensor]:
    """The weights of a module for writing to a file, in place where possible."""
    import torch

    parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    entries: list[StoredTensor] = []
    for name, tensor in module.state_dict().items():
        if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided or tensor.is_meta:
            raise Error(f"'{name}' is not a plain tensor, and cannot be written to a file of weights", "unsupported")
        stored = tensor.detach().cpu()
        transposed = stored.dim() == 2 and not stored.is_contiguous() and stored.t().is_contiguous()
        stored = stored.t() if transposed else stored.contiguous()
        memory = (stored.data_ptr(), stored.numel() * stored.element_size(), stored)
        dtype = str(stored.dtype).removeprefix("torch.")
        entries.append((name, dtype, list(stored.shape), memory, transposed, name in parameters))
    return entries


def _imports_of(kinds: Sequence[type]) -> str:
    places = dict.fromkeys((kind.__module__, kind.__qualname__.split(".")[0]) for kind in kinds)
    lines = [f"from {module} import {outer}" for module, outer in places if module != "__main__"]
    own = [outer for module, outer in places if module == "__main__"]  # cannot be imported from there
    return "\n".join([*lines, code_of_main(own)] if own else lines)


def _arguments_of(module: torch.nn.Module) -> tuple[str, list[type]]:
    """The constructor arguments of a module, from attributes of the same names (or with a leading `_`), and the enums
    among them."""
    texts: list[str] = []
    enums: list[type] = []
    for name, parameter in inspect.signature(type(module)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = getattr(module, name, getattr(module, f"_{name}", parameter.default))
        if value is parameter.default and value is not parameter.empty:
            continue
        try:
            if not is_dotted_name(name):
                raise TypeError
            if isinstance(value, Enum) and is_dotted_name(f"{type(value).__module__}.{type(value).__qualname__}"):
                enums.append(type(value))
                texts.append(f"{name}={type(value).__qualname__}({literal(value.value)})")
            else:
                texts.append(f"{name}={literal(value)}")
        except TypeError:
            raise Error(
                f"{type(module).__qualname__} cannot be created by generated code: its argument '{name}' is not "
                "kept as a plain value in an attribute of that name",
                "unsupported",
            ) from None
    return ", ".join(texts), enums


def _node_of(description: dict[str, Any]) -> OnnxNode:
    def attribute(value: Any) -> Any:
        is_tensor = isinstance(value, tuple) and len(value) == 4
        return OnnxTensor("", value).to_torch() if is_tensor else value

    return OnnxNode(
        name=description["name"],
        operation_type=description["operation_type"],
        domain=description["domain"],
        input_values=description["inputs"],
        output_values=description["outputs"],
        attributes={name: attribute(value) for name, value in description["attributes"].items()},
    )


def run_converters(conversion: Conversion) -> ExternalModules:
    """Calls the registered converter of each node that has one."""
    result = ExternalModules()
    descriptions = conversion.external_nodes()
    if not descriptions:
        return result
    whole = conversion.graph()
    nodes = [_node_of(d) for d in whole["nodes"]]
    graph = OnnxGraph(
        name=whole["name"],
        input_values=whole["inputs"],
        output_values=whole["outputs"],
        nodes={node.name or f"{node.operation_type}_{i}": node for i, node in enumerate(nodes)},
        initializers={name: OnnxTensor(name, d) for name, d in whole["initializers"].items()},
    )
    for description in descriptions:
        node = _node_of(description)
        key = (node.domain, node.operation_type, description["version"])
        module, mapping = _converters[key](node, graph)
        result.modules.append(module)
        result.mappings.append((tuple(mapping.inputs), tuple(mapping.outputs)))
    return result

"""tonnx.simplify and tonnx.infer."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar, overload

from tonnx import _compare, _core
from tonnx._arguments import checks_arguments
from tonnx._convert import Source
from tonnx._error import Error, nearest, translated
from tonnx._limits import Limits, budget, bytes_of

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from typing_extensions import Unpack

Shapes = Annotated[
    Mapping[str | None, Sequence[int]] | Sequence[int], 'a dict such as {"x": [1, 3, 224, 224]}, a list of sizes'
]

R = TypeVar("R")


@dataclass
class SimplifyReport:
    """What was simplified."""

    nodes: dict[str, int]  # "before" and "after"
    bytes: dict[str, int]
    ops: dict[str, dict[str, int]]
    passes: list[dict[str, Any]]
    rounds: int
    ok: bool = True  # the result of the comparisons
    taken_back: list[str] = field(default_factory=list)
    not_judged: str = ""  # why the models could not be compared
    table: str = ""

    def __str__(self) -> str:
        return self.table

    def __bool__(self) -> bool:
        return self.ok


def _serialized(source: Source) -> tuple[str | bytes, str]:
    """A path or bytes, and the folder of the external data of bytes."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source), ""
    if isinstance(source, bytes):
        return source, ""
    return source.SerializeToString(), ""


def _named(shapes: Shapes | None, source: str | bytes) -> dict[str, list[int]]:
    """The shapes by input; a shape without a name is that of the only input."""
    if not shapes:
        return {}
    if isinstance(shapes, Mapping):
        named = {name: list(shape) for name, shape in shapes.items() if name}
        if len(named) == len(shapes):
            return named
        shapes = next(iter(shapes.values()))
    inputs = _inputs_of(source)
    if len(inputs) != 1:
        raise Error(f"the shape does not say which input it is of; there are: {', '.join(inputs)}", "invalid_model")
    return {inputs[0]: list(shapes)}


def _is_names(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, str) for item in value)


def _takes_old_order(simplify: Callable[..., R]) -> Callable[..., R]:
    """Accepts positional arguments in the order of any version of onnxsim."""

    @functools.wraps(simplify)
    def called(*args: Any, **kwargs: Any) -> R:
        places = list(args)
        if len(places) > 1 and isinstance(places[1], int):
            kwargs["check_n"], places[1] = places[1], None
        # before 0.4, the sixth argument was a list of passes, and the seventh a flag
        if len(places) > 5 and _is_names(places[5]) or len(places) > 6 and isinstance(places[6], bool):
            names, *others = places[5:10]
            kwargs["skipped_optimizers"] = names
            order = ("skip_shape_inference", "input_data", "dynamic_input_shape", "custom_lib")
            kwargs.update(zip(order, others))
            places = places[:5]
        return simplify(*places, **kwargs)

    return called


def _inputs_of(source: str | bytes) -> list[str]:
    """The names of the inputs that are not initializers."""
    import onnx

    model = onnx.load(source, load_external_data=False) if isinstance(source, str) else onnx.load_from_string(source)
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in weights]


def _require_inputs(source: str | bytes, names: Iterable[str]) -> None:
    inputs = _inputs_of(source)
    for name in names:
        if name not in inputs:
            text = f"input_data: the model has no input '{name}'; it has: {nearest(name, inputs)}"
            raise Error(text, "invalid_model")


class SimplifyOptions(TypedDict, total=False):
    """The options of `simplify`, for type checkers."""

    perform_optimization: bool
    skip_fuse_bn: bool
    overwrite_input_shapes: Shapes | None
    test_input_shapes: Shapes | None
    skipped_optimizers: Sequence[str] | None
    skip_constant_folding: bool
    skip_shape_inference: bool
    input_data: Mapping[str, np.ndarray] | None
    dynamic_input_shape: bool
    custom_lib: str | None
    include_subgraph: bool
    unused_output: Sequence[str] | None
    tensor_size_threshold: str | int
    mutable_initializer: bool
    check_n: int
    only: Sequence[str]
    skip: Sequence[str]
    enable: Sequence[str]
    extra_optimizers: Sequence[str] | None
    input_shapes: Shapes | None
    opset: int | None
    target_opset_version: int | str | None
    external_data: bool | None
    verify_passes: bool
    check_rtol: float
    check_atol: float
    input_fill: str
    inline_functions: bool
    limits: Limits | None


@overload
def simplify(
    model: Source, target: int | None = None, **options: Unpack[SimplifyOptions]
) -> tuple[onnx.ModelProto, bool]: ...


@overload
def simplify(model: Source, target: str | os.PathLike[str], **options: Unpack[SimplifyOptions]) -> SimplifyReport: ...


@_takes_old_order
@checks_arguments
def simplify(
    model: Source,
    target: str | os.PathLike[str] | None = None,
    perform_optimization: bool = True,
    skip_fuse_bn: bool = False,
    overwrite_input_shapes: Shapes | None = None,
    test_input_shapes: Shapes | None = None,
    skipped_optimizers: Sequence[str] | None = None,
    skip_constant_folding: bool = False,
    skip_shape_inference: bool = False,
    input_data: Mapping[str, np.ndarray] | None = None,
    dynamic_input_shape: bool = False,
    custom_lib: str | None = None,
    include_subgraph: bool = True,
    unused_output: Sequence[str] | None = None,
    tensor_size_threshold: str | int = "1MB",
    mutable_initializer: bool = False,
    *,
    check_n: int = 0,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    enable: Sequence[str] = (),
    extra_optimizers: Sequence[str] | None = None,
    input_shapes: Shapes | None = None,
    opset: int | None = None,
    target_opset_version: int | str | None = None,
    external_data: bool | None = None,
    verify_passes: bool = False,
    check_rtol: float = 1e-4,
    check_atol: float = 1e-5,
    input_fill: str = "random",
    inline_functions: bool = True,
    limits: Limits | None = None,
) -> tuple[onnx.ModelProto, bool] | SimplifyReport:
    """Simplifies an ONNX model.

    `model` is the path of an `.onnx` file, the bytes of a model, or an onnx.ModelProto. If `target` is a path,
    the result is written there and a SimplifyReport is returned; without a target, the pair (onnx.ModelProto, ok). The
    arguments up to `mutable_initializer` are those of onnxsim.simplify in its order; a number as the second argument is
    its `check_n`.

    `check_n` compares the outputs on so many random inputs, or on `input_data`, in ONNX Runtime; `ok` is the result.
    `verify_passes` does so after every pass, and undoes a pass that changes the outputs. `only`, `skip` and `enable`
    name passes (listed by `tonnx simplify --list-passes`). Folding makes no constant that exceeds its inputs by more
    than `tensor_size_threshold`. `overwrite_input_shapes` fixes shapes of inputs; -1 leaves a size unchanged.
    `test_input_shapes` are shapes for `check_n` only. `input_shapes` means the former, or with `dynamic_input_shape`
    the latter.

    `custom_lib` is a shared library of operators that ONNX Runtime needs for `check_n`. `include_subgraph` has no
    effect: subgraphs are always simplified too. `limits` replaces the limits that follow from the size of the model:
    `{"memory": "1G"}`.
    """
    if target_opset_version is not None and opset is None:
        opset = _core.newest_opset if target_opset_version == "latest" else int(target_opset_version)
    with translated(), budget(limits):
        source, folder = _serialized(model)
        if input_data:
            _require_inputs(source, input_data)
        skips = [*skip, *(skipped_optimizers or ())]
        skips += ["fuse_bn"] if skip_fuse_bn else []
        skips += ["fold_constants"] if skip_constant_folding else []
        skips += [] if inline_functions else ["inline_functions"]
        if not perform_optimization:
            only = ["fold_constants", "inline_if", "eliminate_dead_code"]
        compare = None
        if check_n > 0 or verify_passes:
            test_shapes = _named(test_input_shapes or (input_shapes if dynamic_input_shape else None), source)

            def compare(a: str, b: str) -> str:
                return _compare.compare_files(
                    a,
                    b,
                    times=check_n,
                    shapes=test_shapes,
                    data=input_data,
                    relative=check_rtol,
                    absolute=check_atol,
                    fill=input_fill,
                    outputs_only=verify_passes,
                    custom_lib=custom_lib,
                )

        data, report, table = _core.simplify(
            source,
            folder,
            None if target is None else os.fspath(target),
            _named(overwrite_input_shapes or (None if dynamic_input_shape else input_shapes), source),
            skips,
            list(only),
            [*enable, *(extra_optimizers or ())],
            list(unused_output or ()),
            bytes_of(tensor_size_threshold),
            opset,
            not skip_shape_inference,
            external_data,
            verify_passes,
            compare,
        )
    found = json.loads(report)
    result = SimplifyReport(
        found["nodes"],
        found["bytes"],
        found["ops"],
        found["passes"],
        found["rounds"],
        found["is_right"],
        found["taken_back"],
        found["not_judged"],
        table,
    )
    if data is None:  # it was written to the target
        return result
    import onnx

    return onnx.load_from_string(data), result.ok


@checks_arguments
def infer(
    model: Source,
    target: str | os.PathLike[str] | None = None,
    *,
    input_shapes: Shapes | None = None,
    limits: Limits | None = None,
) -> onnx.ModelProto | None:
    """Infers the types and shapes of all values of an ONNX model.

    Sizes are expressions over those of the inputs, such as `2*height`. The model is written to the path `target` with
    the types as its value_info; without a target it is returned as an onnx.ModelProto. A declared type that contradicts
    the inferred one is an error. `limits` is that of `simplify`.
    """
    with translated(), budget(limits):
        source, folder = _serialized(model)
        data = _core.infer(source, folder, None if target is None else os.fspath(target), _named(input_shapes, source))
    if data is None:
        return None
    import onnx

    return onnx.load_from_string(data)

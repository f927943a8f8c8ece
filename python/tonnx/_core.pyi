"""Types of the compiled core."""

from collections.abc import Callable, Sequence
from typing import Any, overload

__version__: str
newest_opset: int
default_opset: int

class CoreError(RuntimeError): ...

class Buffer:
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Copies:
    def wait(self) -> None: ...

class Budget:
    def __init__(self, limits: dict[str, int], /) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *args: object) -> None: ...

def parse_bytes(text: str, /) -> int: ...
def standard_versions(op: str, /) -> list[int]: ...
def advice_on(path: str, target: str, /) -> str: ...
def did_you_mean_text(name: str, known: list[str], /) -> str: ...
def nearest_list(name: str, known: list[str], /) -> str: ...

TensorDescription = tuple[Buffer | None, int, str, tuple[int, ...]]
StateEntry = tuple[list[str], TensorDescription, bool, bool]  # more than one name where modules share it
# name, dtype, sizes, (address, bytes, what keeps them alive), transposed, trainable
StoredTensor = tuple[str, str, list[int], tuple[int, int, object], bool, bool]

class Conversion:
    @staticmethod
    def read_file(path: str, /) -> Conversion: ...
    @staticmethod
    def read_bytes(data: bytes, folder: str, is_own: bool, /) -> Conversion: ...
    def replace_weights(self, weights: str, part: str | None) -> None: ...
    def set_input_shapes(self, shapes: dict[str, list[int]], /) -> None: ...
    def unsupported(
        self, external: Sequence[tuple[str, str, int]], /
    ) -> list[tuple[str, str, int, list[str], str]]: ...
    def copy_weights(self) -> None: ...
    def prepare(self, external: Sequence[tuple[str, str, int]], /) -> None: ...
    def lower(self, mappings: Sequence[tuple[Sequence[str], Sequence[str]]], /) -> None: ...
    def has_external(self, external: Sequence[tuple[str, str, int]], /) -> bool: ...
    def external_nodes(self) -> list[dict[str, Any]]: ...
    def graph(self) -> dict[str, Any]: ...
    def source_and_state(
        self, title: str, external: Sequence[Sequence[StoredTensor]], mapped: bool, flat: bool, /
    ) -> tuple[str, list[StateEntry], list[Copies]]: ...
    def write_python(
        self,
        path: str,
        imports: Sequence[str],
        constructors: Sequence[str],
        states: Sequence[Sequence[StoredTensor]],
        flat: bool,
        /,
    ) -> None: ...
    def write(
        self,
        path: str,
        opset: int | None = None,
        external_data: bool | None = None,
        dynamic: list[tuple[str, int, str, int, int | None]] = ...,
        compare: Callable[[str, str], str] | None = ...,
        warn: Callable[[str], object] | None = ...,
    ) -> None: ...
    def text(self) -> str: ...

# the kind of an argument of a scripted module, and what it holds: ("int", 3), ("input", 0), ("list", [...])
ScriptArgument = tuple[str, Any]

class Program:
    @staticmethod
    def read_script(
        path: str,
        inputs: Sequence[tuple[str, str, Sequence[int | str]]],
        arguments: Sequence[tuple[str, ScriptArgument]],
        /,
    ) -> Program: ...
    def output_names(self) -> list[str]: ...
    def set_output_names(self, names: list[str], /) -> None: ...
    @staticmethod
    def read(program: bytes, storages: dict[str, tuple[int, int, object]], rolls_loops: bool, /) -> Program: ...
    @staticmethod
    def read_file(
        path: str,
        weights: str = "",
        part: str | None = None,
        input_shapes: dict[str, list[int]] = ...,
        input_types: dict[str, str] = ...,
    ) -> Program: ...
    def source_and_state(
        self, title: str, allow_ops: list[str], mapped: bool, flat: bool, /
    ) -> tuple[str, list[StateEntry], list[Copies]]: ...
    def unsupported(self, opset: int, /) -> list[tuple[str, int, list[str], str]]: ...
    def write_onnx(
        self,
        path: str,
        opset: int | None = None,
        external_data: bool | None = None,
        export_params: bool = True,
        keep_initializers_as_inputs: bool = False,
        custom_opsets: dict[str, int] = {},
        training: bool = False,
        fold: bool = True,
    ) -> None: ...
    def onnx_bytes(
        self,
        opset: int | None = None,
        external_data: bool | None = None,
        export_params: bool = True,
        keep_initializers_as_inputs: bool = False,
        custom_opsets: dict[str, int] = {},
        training: bool = False,
        fold: bool = True,
    ) -> bytes: ...
    def onnx_text(
        self,
        opset: int | None = None,
        external_data: bool | None = None,
        export_params: bool = True,
        keep_initializers_as_inputs: bool = False,
        custom_opsets: dict[str, int] = {},
        training: bool = False,
        fold: bool = True,
    ) -> str: ...
    def text(self) -> str: ...

def check_route(source: str, target: str, given: list[str]) -> None: ...
def convert_file(
    source: str,
    target: str,
    opset: int | None,
    external_data: bool | None,
    allow_ops: list[str],
    source_lines: bool | None,
    flat: bool,
    weights: str,
    part: str | None,
    input_shapes: dict[str, list[int]] = ...,
    input_types: dict[str, str] = ...,
) -> None: ...
def write_module(
    path: str, source: str, imports: Sequence[str], constructors: Sequence[str], state: Sequence[StoredTensor]
) -> None: ...
def write_vetted_copy(source: str, target: str, allow_ops: list[str] = ...) -> None: ...
def guard_signals() -> None: ...
def write_text(path: str, text: str) -> None: ...
def run_cli(
    arguments: Sequence[str],
    compare: Callable[[str, str, int, list[str], str, float, float, list[str]], str] | None = None,
) -> int: ...

class BatchPlan:
    @overload
    def __init__(self, path: str, verifies: bool, resumes: bool, here: str, /) -> None: ...
    @overload
    def __init__(self, path: str, pairs: Sequence[tuple[str, str]], /) -> None: ...
    def waiting(self) -> list[int]: ...
    def run(self, index: int, limits: dict[str, int], compare: Callable[..., str], /) -> str: ...
    def note(
        self,
        index: int,
        is_done: bool,
        seconds: float,
        bytes: int,
        verified: bool,
        not_judged: str,
        nodes: tuple[int, int] | None,
        kind: str,
        error: str,
    ) -> None: ...
    def report(self, seconds: float, /) -> tuple[str, str]: ...

def run_batch(
    path: str,
    threads: int,
    resumes: bool,
    is_dry: bool,
    verifies: bool,
    limits: dict[str, int],
    compare: Callable[[str, str, int, list[str], str, float, float, list[str]], str],
) -> tuple[str, str]: ...
def simplify(
    source: str | bytes,
    folder: str,
    target: str | None,
    input_shapes: dict[str, list[int]],
    skip: list[str],
    only: list[str],
    enable: list[str],
    unused_outputs: list[str],
    fold_limit: int,
    opset: int | None,
    infers_shapes: bool,
    external_data: bool | None,
    verifies_passes: bool,
    compare: Callable[[str, str], str] | None,
) -> tuple[bytes | None, str, str]: ...
def simplify_passes() -> list[tuple[str, str, bool]]: ...
def infer(source: str | bytes, folder: str, target: str | None, input_shapes: dict[str, list[int]]) -> bytes | None: ...

class CannotRun(CoreError): ...
class ShapeUnknown(CoreError): ...

def judge(
    a: object,
    b: object,
    inputs: dict[str, tuple[str, list[int], Any]],
    shapes: dict[str, list[int]],
    seed: int,
    fill: str,
    rtol: float | None,
    atol: float | None,
    layers: bool,
    outputs_only: bool,
    may_drop_outputs: bool,
    draws: int,
    memory: int,
    tell: Callable[[str, int, int], None],
) -> dict[str, Any]: ...
def output_text(output: dict[str, Any], /) -> str: ...
def layer_title(layer: dict[str, Any], /) -> str: ...
def size_text(check: dict[str, Any], /) -> str: ...
def coverage_text(weights: int, outputs: int, inside: int, hidden: list[tuple[str, str]], /) -> str: ...

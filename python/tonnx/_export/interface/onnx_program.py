"""The result of an export: an ONNX model in memory that can be saved, run, or compared with PyTorch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from tonnx import _core
from tonnx._arguments import checks_arguments
from tonnx._error import Error, nearest, translated
from tonnx._export.interface.names import Interface
from tonnx._export.interface.proof import prove, run

if TYPE_CHECKING:
    import onnx


# The values of a call with their names, in the order of the exported program
Leaves = Callable[[Sequence[Any], Mapping[str, Any]], list[tuple[str, Any]]]


class WritableFile(Protocol):
    """A file that is open for writing bytes."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True)
class WriteOptions:
    """How a program is written as ONNX."""

    opset: int | None = None
    external_data: bool | None = None
    export_params: bool = True
    keep_initializers_as_inputs: bool = False
    custom_opsets: Mapping[str, int] = field(default_factory=dict)
    training: bool = False
    fold: bool = True  # False: every weight is written unchanged
    source_lines: bool = True  # used when the program is made, not when it is written
    fallthrough: str = ""  # "own" or "aten": what operators without a conversion become; used then too

    def arguments(self) -> dict[str, Any]:
        return {
            "opset": self.opset,
            "external_data": self.external_data,
            "export_params": self.export_params,
            "keep_initializers_as_inputs": self.keep_initializers_as_inputs,
            "custom_opsets": dict(self.custom_opsets),
            "training": self.training,
            "fold": self.fold,
        }


class OnnxProgram:
    """An exported model. It shares the weights of the PyTorch model: nothing is copied before it is saved."""

    def __init__(
        self,
        program: _core.Program,
        options: WriteOptions,
        exported_program: torch.export.ExportedProgram | None,
        names: Interface,
        leaves: Leaves,
    ) -> None:
        self._program = program
        self._options = options
        self._names = names
        self._leaves = leaves
        self.exported_program = exported_program  # None for a script
        self.input_names = list(names.inputs)
        self.output_names = list(names.outputs)

    @checks_arguments
    def save(self, destination: str | os.PathLike[str] | WritableFile, *, external_data: bool | None = None) -> None:
        """Writes the model to a path, or to a file that is open for writing bytes."""
        if not isinstance(destination, str | os.PathLike):
            destination.write(bytes(self))
            return
        arguments = self._options.arguments()
        if external_data is not None:
            arguments["external_data"] = external_data
        with translated():
            self._program.write_onnx(os.fspath(destination), **arguments)

    def __bytes__(self) -> bytes:
        with translated():
            return self._program.onnx_bytes(**self._options.arguments())

    def SerializeToString(self) -> bytes:
        """The same bytes; the name is that of onnx.ModelProto."""
        return bytes(self)

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as an object of the onnx package."""
        import onnx

        return onnx.load_from_string(bytes(self))

    def text(self) -> str:
        """The graph as readable text."""
        with translated():
            return self._program.onnx_text(**self._options.arguments())

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"OnnxProgram(inputs={self.input_names}, outputs={self.output_names})"

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Runs the model in ONNX Runtime, called like the PyTorch model; returns all outputs in order.

        Each output is a tensor, or a list of tensors for a sequence.
        """
        return run(bytes(self), self.tensors(args, kwargs))

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The tensors of a call of the PyTorch model by the names of inputs."""
        own = self._names.own
        given = {name: value for name, value in self._leaves(args, kwargs) if isinstance(value, torch.Tensor)}
        for name in given:
            if name not in own:
                raise Error(f"the model has no input '{name}'; it has: {nearest(name, own)}", "unsupported")
        missing = [name for name in own if name not in given]
        if missing:
            raise Error(f"there is no tensor for {', '.join(missing)}", "unsupported")
        return {chosen: given[name] for name, chosen in zip(own, self.input_names)}


def save_verified(
    program: OnnxProgram,
    destination: str | os.PathLike[str] | WritableFile | None,
    reference: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Writes a model after it has been compared with PyTorch; if they differ, nothing is written."""
    if not isinstance(destination, str | os.PathLike):
        prove(bytes(program), program, reference, (args, kwargs))
        if destination is not None:
            program.save(destination)
        return
    path = Path(destination)
    if not path.parent.is_dir():
        raise Error(f"cannot write '{path}': there is no folder '{path.parent}'", "bad_file")
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        made = Path(folder, path.name)  # external data is named after the file
        program.save(made)
        prove(str(made), program, reference, (args, kwargs))
        for file in sorted(Path(folder).iterdir(), key=lambda file: file == made):  # the model last
            file.replace(path.parent / file.name)

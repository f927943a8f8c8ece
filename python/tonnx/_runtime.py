"""Runs ONNX Runtime in a separate process, so that a crash there becomes an error here."""

from __future__ import annotations

import atexit
import importlib.util
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from tonnx import _runtime_process
from tonnx._error import Error

# ONNX Runtime's names of the types that numpy has too
ONNX_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{f"tensor({kind}{bits})": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}


_libraries: ContextVar[tuple[str, ...]] = ContextVar("libraries", default=())


@contextmanager
def library_of_operators(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Inside, sessions load the operators of a shared library (None: of none)."""
    token = _libraries.set((*_libraries.get(), os.fspath(path)) if path else _libraries.get())
    try:
        yield
    finally:
        _libraries.reset(token)


class RuntimeFailure(Exception):
    """An error of ONNX Runtime about a model or its inputs."""


class RuntimeCrash(RuntimeFailure):
    """ONNX Runtime ended its process instead of reporting an error."""


class _Process:
    """A process that runs ONNX Runtime."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.closed: list[int] = []  # sessions that are not used any more
        self.lock = threading.Lock()
        command = [sys.executable, _runtime_process.__file__]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        _runtime_process.send(self.child.stdin, sys.path)  # type: ignore[arg-type]

    @property
    def is_alive(self) -> bool:
        return self.owner == os.getpid() and self.child.poll() is None

    def ask(self, what: str, *arguments: Any) -> Any:
        questions, answers = self.child.stdin, self.child.stdout
        assert questions is not None and answers is not None
        with self.lock:
            try:
                if self.closed:
                    numbers, self.closed = self.closed, []
                    _runtime_process.send(questions, ("close", (numbers,)))
                    _runtime_process.receive(answers)
                _runtime_process.send(questions, (what, arguments))
                is_right, answer = _runtime_process.receive(answers)
            except (EOFError, BrokenPipeError):
                raise RuntimeCrash(self._how_it_ended()) from None
            except BaseException:  # an answer that may still come would be read as the next one
                self.end()
                raise
        if is_right:
            return answer
        kind, text = answer
        if kind == _runtime_process.BadLibrary.__name__:
            raise Error(text, "bad_file")
        raise RuntimeFailure(text)

    def _how_it_ended(self) -> str:
        code = self.child.wait()
        return f"it died of {signal.Signals(-code).name}" if code < 0 else f"its process ended with exit code {code}"

    def end(self) -> None:
        if self.owner == os.getpid():
            self.child.kill()
            self.child.communicate()


_process: _Process | None = None
_starting = threading.Lock()


def _running() -> _Process:
    global _process
    with _starting:
        if _process is None or not _process.is_alive:
            _process = _Process()
        return _process


@atexit.register
def _end() -> None:
    if _process is not None:
        _process.end()


@dataclass
class Port:
    """An input or an output of a model."""

    name: str
    type: str
    shape: _runtime_process.Shape


class Session:
    """A model in ONNX Runtime, with the methods of its InferenceSession.

    It opens the model again if the process has ended.
    """

    def __init__(self, *model: Any) -> None:
        self._model = model
        self._open()

    def _open(self) -> None:
        self._process = _running()
        self._number, inputs, outputs = self._process.ask("open", *self._model)
        self._inputs = [Port(*one) for one in inputs]
        self._outputs = [Port(*one) for one in outputs]

    def get_inputs(self) -> list[Port]:
        return self._inputs

    def get_outputs(self) -> list[Port]:
        return self._outputs

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        if not self._process.is_alive:
            self._open()
        results: list[Any] = self._process.ask("run", self._number, None if names is None else list(names), dict(feeds))
        return results

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._process.closed.append(self._number)


def open_session(model: str | bytes, folder: str = "", *, optimizes: bool = False) -> Session:
    """A session for a file, or for the bytes of a model with external data in `folder`.

    A model that is compared runs unoptimised; one that is only run may be optimised first.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        text = "running or comparing ONNX models needs ONNX Runtime: pip install onnxruntime"
        raise Error(text, "unsupported")
    return Session(model, folder, optimizes, _libraries.get(), os.getcwd())

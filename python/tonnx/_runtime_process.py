"""The process that runs ONNX Runtime: opens and runs sessions for the process that started it.

A crash of the runtime, such as an integer division by zero in a model, ends only this process. The file is run as a
script and imports nothing of the package. A message is a pickle, followed by the elements of its arrays.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from typing import IO, Any

Shape = list[int | str | None]


def send(stream: IO[bytes], message: Any) -> None:
    """Sends a message; raises before anything is sent if it cannot be pickled."""
    arrays: list[pickle.PickleBuffer] = []
    parts: list[Any] = [pickle.dumps(message, protocol=5, buffer_callback=arrays.append)]
    parts += [array.raw() for array in arrays]
    sizes = [memoryview(part).nbytes for part in parts]
    stream.write(struct.pack(f"<{len(sizes) + 1}Q", len(sizes), *sizes))
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Receives a message; raises EOFError if the other process has ended."""
    (count,) = struct.unpack("<Q", _exactly(stream, 8))
    sizes = struct.unpack(f"<{count}Q", _exactly(stream, 8 * count))
    message, *arrays = (_exactly(stream, size) for size in sizes)
    return pickle.loads(message, buffers=arrays)


def _exactly(stream: IO[bytes], size: int) -> bytearray:
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        count = stream.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        done += count
    return data


class BadLibrary(Exception):
    """A file that ONNX Runtime cannot load operators from."""


class Server:
    """The open sessions by number."""

    def __init__(self) -> None:
        self.sessions: dict[int, Any] = {}
        self.opened = 0

    def open(
        self, model: str | bytes, folder: str, optimizes: bool, libraries: tuple[str, ...], working_directory: str
    ) -> tuple[int, list[tuple[str, str, Shape]], list[tuple[str, str, Shape]]]:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.log_severity_level = 4
        os.chdir(working_directory)  # that of the other process, for relative paths
        for library in libraries:
            try:
                options.register_custom_ops_library(library)
            except Exception as e:
                reason = str(e).splitlines()[0]
                raise BadLibrary(f"ONNX Runtime cannot load the operators of '{library}': {reason}") from None
        if not optimizes:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if folder:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.opened += 1
        self.sessions[self.opened] = session
        inputs, outputs = (
            [(value.name, value.type, list(value.shape)) for value in values]
            for values in (session.get_inputs(), session.get_outputs())
        )
        return self.opened, inputs, outputs

    def run(self, number: int, names: list[str] | None, feeds: dict[str, Any]) -> list[Any]:
        results: list[Any] = self.sessions[number].run(names, feeds)
        return results

    def close(self, numbers: list[int]) -> None:
        for number in numbers:
            del self.sessions[number]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process ends this one by closing the pipe
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # a library of operators may print
        os.dup2(nothing, stream)
    sys.path[:] = receive(questions)
    server = Server()
    while True:
        try:
            name, arguments = receive(questions)
        except EOFError:
            return
        try:
            answer = (True, getattr(server, name)(*arguments))
        except Exception as e:  # the exceptions of the runtime have no class in common
            answer = (False, (type(e).__name__, str(e)))
        try:
            send(answers, answer)
        except (TypeError, ValueError, pickle.PicklingError) as e:
            send(answers, (False, (type(e).__name__, str(e))))


if __name__ == "__main__":
    main()

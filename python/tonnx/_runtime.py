"""The one way to open a model in ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tonnx._error import Error

# what ONNX Runtime calls the types that numpy has too
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
    """Inside, sessions know the operators of a shared library; None is none."""
    token = _libraries.set((*_libraries.get(), os.fspath(path)) if path else _libraries.get())
    try:
        yield
    finally:
        _libraries.reset(token)


def open_session(model: str | bytes, folder: str = "", *, optimizes: bool = False) -> Any:
    """A session over a file, or over the bytes of a model whose external data lies in `folder`.

    A model that is judged runs as it is written; one that is only run may be made faster first.
    """
    try:
        import onnxruntime as ort
    except ImportError:
        text = "running or comparing ONNX models needs ONNX Runtime: pip install onnxruntime"
        raise Error(text, "unsupported") from None
    options = ort.SessionOptions()
    options.log_severity_level = 4
    for library in _libraries.get():
        try:
            options.register_custom_ops_library(library)
        except Exception as e:
            reason = str(e).splitlines()[0]
            raise Error(f"ONNX Runtime cannot load the operators of '{library}': {reason}", "bad_file") from None
    if not optimizes:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if folder:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

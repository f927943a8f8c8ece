"""The comparison of simplify and run: that of verify, with its result in one line."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tonnx._error import Error
from tonnx._runtime import library_of_operators

if TYPE_CHECKING:
    import numpy as np

_ONE_AT_A_TIME = threading.Lock()  # torch.export.load is not thread-safe


def compare_files(
    source: str,
    result: str,
    *,
    times: int = 1,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    data: Mapping[str, np.ndarray] | None = None,
    relative: float = 1e-4,
    absolute: float = 1e-5,
    fill: str = "random",
    allow_ops: Sequence[str] = (),
    outputs_only: bool = False,
    custom_lib: str | os.PathLike[str] | None = None,
) -> str:
    """Compares two files on at least `times` random inputs; returns "" if they compute the same, or what differs.

    A size in `shapes` that is None or -1 stays open. If the first file cannot be run on what is known of its inputs,
    the result is "not judged: ...".
    """
    from tonnx._verify import CannotRun, CompareOptions, compare

    # the default tolerances mean those that verify chooses
    rtol, atol = (relative, absolute) if (relative, absolute) != (1e-4, 1e-5) else (None, None)
    options = CompareOptions(
        {name: [None if size == -1 else size for size in shape] for name, shape in (shapes or {}).items()},
        rtol=rtol,
        atol=atol,
        outputs_only=outputs_only,
        draws=max(times, 1),
        fill=fill,
        may_drop_outputs=source.endswith(".onnx") and result.endswith(".onnx"),
    )
    try:
        with _ONE_AT_A_TIME, library_of_operators(custom_lib):
            report = compare(source, result, data, options, allow_ops)
    except CannotRun as e:
        return f"not judged: {e}"
    return "" if report else report.difference()


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError) as e:
        raise Error(f"cannot read '{os.fspath(path)}': {e}", "bad_file") from None


def parse_shapes(texts: Sequence[str]) -> dict[str, list[int | None]]:
    """Parses texts of the form `name:1,3,224,224`, where `?` is an open size."""
    shapes: dict[str, list[int | None]] = {}
    for text in texts:
        name, colon, sizes = text.rpartition(":")
        try:
            if not colon:
                raise ValueError
            shape = [None if size == "?" else int(size) for size in sizes.split(",") if size]
        except ValueError:
            raise Error(f"'{text}' is not of the form name:1,3,224,224", "invalid_model") from None
        if name in shapes:
            raise Error(f"input '{name}' is given two shapes", "invalid_model")
        shapes[name] = shape
    return shapes


def compare_opened(source: str, result: str) -> str:
    """Compares a model whose sizes were opened with the original, if ONNX Runtime is installed."""
    if importlib.util.find_spec("onnxruntime") is None or importlib.util.find_spec("onnx") is None:
        return "not judged: that needs ONNX Runtime: pip install onnx onnxruntime"
    return compare_files(source, result, outputs_only=True)


def compare_for_cli(
    source: str,
    result: str,
    times: int,
    shapes: Sequence[str],
    data: str,
    relative: float,
    absolute: float,
    allow_ops: Sequence[str] = (),
    custom_lib: str = "",
    outputs_only: bool = False,
) -> str:
    """The comparison as the command line calls it."""
    if outputs_only:
        return compare_opened(source, result)
    return compare_files(
        source,
        result,
        times=times,
        shapes=parse_shapes(shapes),
        data=read_arrays(data) if data else None,
        relative=relative,
        absolute=absolute,
        allow_ops=allow_ops,
        custom_lib=custom_lib,
    )

"""Comparison of two models on the same inputs: those of ONNX in ONNX Runtime, those of PyTorch in PyTorch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tonnx._difference import difference
from tonnx._error import Error, nearest
from tonnx._runtime import ONNX_TYPES, open_session

if TYPE_CHECKING:
    import numpy as np

_ONE_AT_A_TIME = threading.Lock()  # torch.export.load keeps what it is reading in a global of its module


def _shape(declared: Sequence[int | str | None], sizes: dict[str, int]) -> list[int]:
    """Sizes that are open are 1; one that has a name is the same everywhere."""
    return [size if isinstance(size, int) else sizes.setdefault(str(size), 1) for size in declared]


def random_inputs(
    session: Any, shapes: Mapping[str, Sequence[int]], seed: int, fill: str = "random"
) -> dict[str, np.ndarray]:
    """Inputs of the types that the model asks for: floats in [0, 1), small integers, both truth values."""
    import numpy as np

    rng = np.random.default_rng(seed)
    sizes: dict[str, int] = {}
    feeds = {}
    for value in session.get_inputs():
        if value.type not in ONNX_TYPES:
            raise Error(f"input '{value.name}' is a {value.type}: give its data with --input-data", "unsupported")
        dtype = np.dtype(ONNX_TYPES[value.type])
        shape = list(shapes[value.name]) if value.name in shapes else _shape(value.shape, sizes)
        feeds[value.name] = made_up_array(rng, dtype, shape, fill)
    return feeds


def _require_inputs(names: Iterable[str], session: Any) -> None:
    known = [value.name for value in session.get_inputs()]
    for name in names:
        if name not in known:
            raise Error(f"the model has no input '{name}'; it has: {nearest(name, known)}", "invalid_model")


FILLS = ("random", "ones", "zeros", "arange")


def made_up_array(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: Sequence[int], fill: str = "random", limit: int = 10
) -> np.ndarray:
    """Floats in [0, 1), integers below `limit`, both truth values; or what `fill` says."""
    import numpy as np

    data: Any
    if fill not in FILLS:
        raise Error(f"there is no input_fill '{fill}'; there are: {nearest(fill, FILLS)}", "invalid_model")
    if fill == "ones":
        data = np.ones(shape)
    elif fill == "zeros":
        data = np.zeros(shape)
    elif fill == "arange":
        data = np.arange(int(np.prod(shape))).reshape(shape)
    elif dtype.kind == "f":
        data = rng.random(shape)
    else:
        data = rng.integers(0, 2 if dtype.kind == "b" else limit, shape)
    return np.asarray(data).astype(dtype)


def compare_files(
    source: str,
    result: str,
    *,
    times: int = 1,
    shapes: Mapping[str, Sequence[int]] | None = None,
    data: Mapping[str, np.ndarray] | None = None,
    relative: float = 1e-4,
    absolute: float = 1e-5,
    fill: str = "random",
    allow_ops: Sequence[str] = (),
) -> str:
    """Runs both files on the same inputs, `times` times, and says what differs; "" where nothing does."""
    if not (source.endswith(".onnx") and result.endswith(".onnx")):
        from tonnx._verify import verify

        # verify knows better than the usual tolerances, which hold for one runtime; those that were asked for hold
        rtol, atol = (relative, absolute) if (relative, absolute) != (1e-4, 1e-5) else (None, None)
        for seed in range(1 if data else max(times, 1)):
            with _ONE_AT_A_TIME:
                report = verify(
                    source, result, data, shapes=shapes, seed=seed, rtol=rtol, atol=atol, allow_ops=allow_ops
                )
            if not report:
                wrong = next((str(output) for output in report.outputs if not output.ok), "")
                return wrong or ", ".join(report.missing)
        return ""
    first, second = open_session(source), open_session(result)
    names = [output.name for output in second.get_outputs()]
    inputs = {value.name for value in second.get_inputs()}
    _require_inputs([*(shapes or {}), *(data or {})], first)
    for seed in range(max(times, 1)):
        feeds = dict(data) if data else random_inputs(second, shapes or {}, seed, fill)
        wanted_inputs = {value.name for value in first.get_inputs()}
        wanted = first.run(names, {name: array for name, array in feeds.items() if name in wanted_inputs})
        got = second.run(names, {name: array for name, array in feeds.items() if name in inputs})
        for name, a, b in zip(names, got, wanted, strict=True):
            if why := difference(a, b, relative, absolute):
                return f"output '{name}': {why}"
        if data:
            break
    return ""


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, by their names."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError) as e:
        raise Error(f"cannot read '{os.fspath(path)}': {e}", "bad_file") from None


def parse_shapes(texts: Sequence[str]) -> dict[str, list[int]]:
    """`name:1,3,224,224` for each."""
    shapes: dict[str, list[int]] = {}
    for text in texts:
        name, colon, sizes = text.rpartition(":")
        try:
            if not colon:
                raise ValueError
            shape = [int(size) for size in sizes.split(",") if size]
        except ValueError:
            raise Error(f"'{text}' is not of the form name:1,3,224,224", "invalid_model") from None
        if name in shapes:
            raise Error(f"input '{name}' is given two shapes", "invalid_model")
        shapes[name] = shape
    return shapes


def compare_for_cli(
    source: str,
    result: str,
    times: int,
    shapes: Sequence[str],
    data: str,
    relative: float,
    absolute: float,
    allow_ops: Sequence[str] = (),
) -> str:
    """What the command line calls."""
    return compare_files(
        source,
        result,
        times=times,
        shapes=parse_shapes(shapes),
        data=read_arrays(data) if data else None,
        relative=relative,
        absolute=absolute,
        allow_ops=allow_ops,
    )

"""Every ONNX file that tonnx writes passes the full check of the onnx package, if its source did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest
from node_tests import node_tests, sample

import tonnx

# node tests that the check of the onnx package itself refuses
NOT_CHECKED = {"test_mvn"}


def is_checked(path: Path) -> bool:
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def input_shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    weights = {tensor.name for tensor in model.graph.initializer}
    tensors = [v for v in model.graph.input if v.name not in weights and v.type.HasField("tensor_type")]
    shapes = {v.name: [d.dim_value or 2 for d in v.type.tensor_type.shape.dim] for v in tensors}
    return {name: shape for name, shape in shapes.items() if shape}


def routes(source: Path, target: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    def through(middle: Path) -> Callable[[], object]:
        return lambda: (tonnx.convert(source, middle), tonnx.convert(middle, target))

    shapes = input_shapes(onnx.load(source, load_external_data=False))
    yield "as it is", lambda: tonnx.convert(source, target)
    yield "opset 13", lambda: tonnx.convert(source, target, opset=13)
    yield "opset 17", lambda: tonnx.convert(source, target, opset=17)
    yield "opset 21", lambda: tonnx.convert(source, target, opset=21)
    if shapes:
        yield "shapes of inputs", lambda: tonnx.convert(source, target, input_shapes=shapes)
        yield "open sizes", lambda: tonnx.convert(source, target, dynamic="auto", verify=False)
    yield "through .pt2", through(target.with_suffix(".pt2"))
    yield "simplified", lambda: tonnx.simplify(str(source), target)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sample(2))
def test_node_test(name: str, tmp_path: Path) -> None:
    source = tmp_path / "source.onnx"
    onnx.save(node_tests()[name].model, source)
    if not is_checked(source):
        assert name in NOT_CHECKED
        return
    assert name not in NOT_CHECKED, "the source passes the check now: take it off the list"
    written = 0
    for title, write in routes(source, tmp_path / "target.onnx"):
        (tmp_path / "target.onnx").unlink(missing_ok=True)
        try:
            write()
        except tonnx.Error:  # what cannot be written is refused, as other tests say
            continue
        written += 1
        assert is_checked(tmp_path / "target.onnx"), title
    assert written > 0

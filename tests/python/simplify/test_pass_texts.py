"""The graphs of tests/passes/text that are of ONNX compute the same before and after, by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import onnx
import onnx.reference
import onnxruntime as ort
import pytest
from conftest import REPOSITORY

FOLDER = REPOSITORY / "tests/passes/text"
SIZE = 3  # of every open dimension


def cases() -> Iterator[tuple[str, str, str, str]]:
    """The pass, the name, and the graphs before and after, where the pass changes something and they are of ONNX."""
    for file in sorted(FOLDER.glob("*.txt")):
        for text in f"\n{file.read_text()}".split("\n== ")[1:]:
            name, _, graphs = text.partition("\n")
            before, _, after = graphs.partition("\n----\n")
            if after.strip() != "unchanged" and "aten::" not in before:
                yield file.stem, name, before, after


CASES = list(cases())


def feeds_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else SIZE for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        numbers = random.normal(size=shape) * 3 if np.issubdtype(dtype, np.floating) else random.integers(0, 2, shape)
        feeds[value.name] = np.asarray(numbers).astype(dtype)
    return feeds


def results(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = {each.name for each in session.get_inputs()}
    given = {name: value for name, value in feeds.items() if name in wanted}
    return dict(zip(names, session.run(names, given), strict=True))


@pytest.mark.parametrize(("name", "case", "before", "after"), CASES, ids=[f"{c[0]}: {c[1]}" for c in CASES])
def test_both_sides_compute_the_same(
    name: str, case: str, before: str, after: str, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    models = []
    for side, text in (("before", before), ("after", after)):
        (tmp_path / f"{side}.txt").write_text(text)
        # a pass that finds nothing in the graph: the command only makes a file of it
        done = cli(
            "opt",
            "--passes",
            "drop_default_inputs" if name == "merge_pads" else "merge_pads",
            tmp_path / f"{side}.txt",
            tmp_path / f"{side}.onnx",
        )
        assert done.returncode == 0, done.stderr
        models.append(onnx.load(tmp_path / f"{side}.onnx"))
        onnx.checker.check_model(models[-1])
    feeds = feeds_of(models[0])
    try:
        expected = results(models[0], feeds)
        given = results(models[1], feeds)
    except Exception as e:  # ONNX Runtime has no kernels for some of the newest operators
        if "NOT_IMPLEMENTED" not in str(e) and "is not a registered function/op" not in str(e):
            raise
        expected, given = (reference(each, feeds) for each in models)
    assert list(expected) == list(given)
    for output, value in expected.items():
        assert value.dtype == given[output].dtype
        np.testing.assert_allclose(given[output], value, rtol=1e-5, atol=1e-6, err_msg=output)


def reference(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    evaluator = onnx.reference.ReferenceEvaluator(model)
    wanted = {name: value for name, value in feeds.items() if name in evaluator.input_names}
    return dict(zip(evaluator.output_names, evaluator.run(None, wanted), strict=True))

"""tonnx.export called as versions of torch.onnx.export were: in their order, under their names, with what they did."""

from __future__ import annotations

import re
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from torch import nn

import tonnx

Kinds = torch._C._onnx.OperatorExportTypes


def small() -> tuple[nn.Module, torch.Tensor]:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval(), torch.rand(1, 3, 6, 6)


def same_outputs(path: Path, model: nn.Module, x: torch.Tensor) -> bool:
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    return np.allclose(got, model(x).detach().numpy(), atol=1e-5)


def test_arguments_behind_the_file_go_by_their_places(tmp_path: Path) -> None:
    model, x = small()
    path = tmp_path / "m.onnx"
    tonnx.export(model, x, path, True, False, None, ["image"], ["scores"], False, False, None, 13)
    written = onnx.load(path)
    assert [i.name for i in written.graph.input] == ["image"] and [o.name for o in written.graph.output] == ["scores"]
    assert written.opset_import[0].version == 13 and same_outputs(path, model, x)


def test_places_of_the_versions_after(tmp_path: Path) -> None:
    model, x = small()
    program = tonnx.export(model, x, None, False, False, None, ["image"], None, Kinds.ONNX, 14, False)
    written = program.model_proto
    assert written.opset_import[0].version == 14
    assert "BatchNormalization" in [n.op_type for n in written.graph.node]  # nothing was folded
    assert not written.graph.initializer and len(written.graph.input) == 7  # and the weights are inputs, as asked


def test_an_argument_is_given_once() -> None:
    model, x = small()
    with pytest.raises(TypeError, match=r"got 'verbose' by its place and by its name"):
        tonnx.export(model, x, None, True, False, verbose=True)
    with pytest.raises(TypeError, match="at most 21 arguments by their places"):
        tonnx.export(model, x, None, *[None] * 19)


def test_strip_doc_string_leaves_the_lines_out() -> None:
    def keys(**options: Any) -> set[str]:
        model, x = small()
        return {p.key for n in tonnx.export(model, x, **options).model_proto.graph.node for p in n.metadata_props}

    assert "torch.source" not in keys(strip_doc_string=True) | keys(source_lines=False)


def test_use_external_data_format_writes_the_weights_beside(tmp_path: Path) -> None:
    model, x = small()
    path = tmp_path / "m.onnx"
    tonnx.export(model, x, path, use_external_data_format=True)
    assert len(list(tmp_path.iterdir())) == 2 and same_outputs(path, model, x)


@pytest.mark.parametrize(
    "options",
    [
        {"example_outputs": torch.rand(1)},
        {"enable_onnx_checker": True},
        {"enable_onnx_checker": False},
        {"aten": False, "export_raw_ir": False, "google_printer": False},
        {"operator_export_type": Kinds.ONNX},
        {"operator_export_type": None},
    ],
)
def test_arguments_that_ask_for_nothing_are_taken(options: dict[str, Any]) -> None:
    model, x = small()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tonnx.export(model, x, **options)


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"aten": True}, "ONNX_ATEN_FALLBACK"),
        ({"export_raw_ir": True}, "torch.export.export"),
        ({"google_printer": True}, "onnx.printer.to_text"),
        ({"_retain_param_name": False}, "input_names"),
        ({"operator_export_type": Kinds.ONNX_ATEN}, "ONNX_ATEN_FALLBACK"),
    ],
)
def test_what_has_no_effect_says_what_replaces_it(options: dict[str, Any], instead: str) -> None:
    model, x = small()
    with pytest.warns(UserWarning, match=re.escape(instead)) as noted:
        tonnx.export(model, x, **options)
    assert len(noted) == 1 and noted[0].filename == __file__
    (text,) = (str(note.message) for note in noted)
    assert "has no effect in tonnx.export: " in text and "\n" not in text


def test_unknown_arguments_are_errors_with_the_nearest_name() -> None:
    model, x = small()
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'opset_versin'; did you mean 'opset_version'\?"):
        tonnx.export(model, x, opset_versin=13)


class Alex(nn.Module):
    """The outline of AlexNet: 16 weights in the order in which its tutorial numbers them."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [(3, 4), (4, 5), (5, 6), (6, 5), (5, 4)]
        layers = [layer for a, b in sizes for layer in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU())]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.features(x), 1))


def test_names_behind_the_inputs_name_the_weights(tmp_path: Path) -> None:
    model, x = Alex().eval(), torch.rand(2, 3, 4, 4)
    names = ["actual_input_1", *(f"learned_{i}" for i in range(16))]
    path = tmp_path / "alex.onnx"
    tonnx.export(model, x, path, input_names=names, output_names=["output1"])
    written = onnx.load(path)
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in written.graph.initializer}
    for i, (_, value) in enumerate(model.state_dict().items()):
        got = weights[f"learned_{i}"]
        assert np.array_equal(got, value) or np.array_equal(got.T, value)
    assert [i.name for i in written.graph.input] == ["actual_input_1"] and same_outputs(path, model, x)


def test_fewer_names_name_the_first_weights() -> None:
    model, x = small()
    program = tonnx.export(model, x, input_names=["x", "kernel"], do_constant_folding=False)
    names = {t.name for t in program.model_proto.graph.initializer}
    assert {"kernel", "0.bias", "1.running_var"} <= names


def test_names_of_weights_are_not_twice_and_not_too_many() -> None:
    model, x = small()
    with pytest.raises(tonnx.Error, match="input_names has 'a' twice"):
        tonnx.export(model, x, input_names=["x", "a", "a"])
    with pytest.raises(tonnx.Error, match="has 8 names, but the model has 1 inputs that are tensors and 6 weights: in"):
        tonnx.export(model, x, input_names=[str(i) for i in range(8)])


def test_numbers_are_constants_and_verbose_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def scaled(x: torch.Tensor, times: int, shift: float) -> torch.Tensor:
        return x * times + shift

    program = tonnx.export(scaled, (torch.ones(2), 3, 0.5), verbose=True)
    text = capsys.readouterr().out
    assert text.count("constants of the model, because they are not tensors: times = 3, shift = 0.5\n") == 1
    assert program.input_names == ["x"]
    assert torch.equal(program(torch.ones(2), 3, 0.5)[0], torch.full((2,), 3.5))
    tonnx.export(scaled, (torch.ones(2), 3, 0.5))
    assert capsys.readouterr().out == ""


def test_code_may_ask_whether_it_is_exported() -> None:
    asked = []

    class Asks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            asked.append((tonnx.is_in_onnx_export(), tonnx.get_onnx_version()))
            return x + 1

    tonnx.export(Asks(), torch.rand(2), opset_version=15)
    assert (True, 15) in asked and not tonnx.is_in_onnx_export()


def test_the_mode_for_an_export_is_put_back() -> None:
    model = nn.Sequential(nn.Dropout(), nn.Linear(2, 2))
    model[1].eval()
    with tonnx.select_model_mode_for_export(model, torch.onnx.TrainingMode.EVAL):
        assert not model.training and not model[0].training
    assert model.training and model[0].training and not model[1].training
    with tonnx.select_model_mode_for_export(model, torch.onnx.TrainingMode.TRAINING):
        assert model[1].training


def test_the_pretty_string_takes_a_file_in_its_place() -> None:
    model, x = small()
    text = tonnx.export_to_pretty_string(model, x, "ignored.onnx", True, True, google_printer=False)
    assert "Conv" in text and not Path("ignored.onnx").exists()
    assert tonnx.export_to_pretty_string(model, x, True) == tonnx.export_to_pretty_string(model, x)


def test_a_script_needs_no_example_of_its_outputs(tmp_path: Path) -> None:
    class Adds(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):  # noqa: ANN001, ANN202
            y = x + 2
            return y + 3

    x = torch.tensor([1.0])
    path = tmp_path / "implicit_cast.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = tonnx.export(Adds(), x, path, example_outputs=torch.tensor([6.0]))
    assert torch.equal(program(x)[0], torch.tensor([6.0]))


def test_a_failed_export_is_one_sentence_and_the_users_frame(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(tonnx.Error) as failure:
        tonnx.export(nn.Linear(3, 4), torch.randn(2, 7))
    assert str(failure.value) == (
        "the model cannot be run on the example: mat1 and mat2 shapes cannot be multiplied (2x7 and 3x4); "
        "try model(*args) first"
    )
    shown = "".join(traceback.format_exception(failure.value)).splitlines()
    assert len(shown) < 10 and "most recent call last" in shown[0] and __file__ in shown[1]
    assert capfd.readouterr() == ("", "")  # nothing of what PyTorch tried


def test_a_decision_on_values_prints_no_graphs(capfd: pytest.CaptureFixture[str]) -> None:
    class Decides(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(tonnx.Error, match="decides on the values of tensors .*torch.cond") as failure:
        tonnx.export(Decides(), torch.randn(3))
    assert len(str(failure.value).splitlines()) == 1 and capfd.readouterr() == ("", "")


def test_debugging_shows_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONNX_DEBUG", "1")
    with pytest.raises(tonnx.Error) as failure:
        tonnx.export(nn.Linear(3, 4), torch.randn(2, 7))
    assert failure.value.__cause__ is not None and len(failure.traceback) > 3


def test_the_line_of_the_model_is_in_the_sentence() -> None:
    class Wrong(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ torch.ones(5, 5)

    with pytest.raises(tonnx.Error) as failure:
        tonnx.export(Wrong(), torch.rand(2, 3), dynamic_axes={"x": {0: "batch"}})
    assert re.search(r"test_export_old_arguments.py:\d+, in forward: return x @ torch.ones", str(failure.value))

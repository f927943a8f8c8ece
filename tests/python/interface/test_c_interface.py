"""The interface in C, called through ctypes: what it writes is judged by ONNX Runtime and PyTorch."""

from __future__ import annotations

import ctypes
import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from conftest import REPOSITORY
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import load as load_safetensors

ONNX, TORCH_EXPORT, TORCH_SCRIPT, PYTHON, SAFETENSORS, PTH = range(6)
OK, BAD_FILE, INVALID_MODEL, UNSUPPORTED, INTERNAL, CANCELLED, BAD_ARGUMENT, OUT_OF_MEMORY = range(8)
PROGRESS = ctypes.CFUNCTYPE(c_int, c_void_p, c_double)
HANDLE = POINTER(c_void_p)

FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "tonnx_error_message": (c_char_p, [c_void_p]),
    "tonnx_error_free": (None, [c_void_p]),
    "tonnx_buffer_data": (c_void_p, [c_void_p]),
    "tonnx_buffer_size": (c_size_t, [c_void_p]),
    "tonnx_buffer_free": (None, [c_void_p]),
    "tonnx_options_new": (c_void_p, []),
    "tonnx_options_free": (None, [c_void_p]),
    "tonnx_options_set_input_shape": (c_int, [c_void_p, c_char_p, POINTER(c_int64), c_size_t]),
    "tonnx_options_set_weights": (c_int, [c_void_p, c_char_p, c_char_p]),
    "tonnx_options_set_folder": (c_int, [c_void_p, c_char_p]),
    "tonnx_options_set_opset": (c_int, [c_void_p, c_int64]),
    "tonnx_options_set_external_data": (c_int, [c_void_p, c_int]),
    "tonnx_options_set_progress": (c_int, [c_void_p, PROGRESS, c_void_p]),
    "tonnx_model_read": (c_int, [c_char_p, c_void_p, HANDLE, HANDLE]),
    "tonnx_model_read_bytes": (c_int, [c_char_p, c_size_t, c_int, c_void_p, c_void_p, c_void_p, HANDLE, HANDLE]),
    "tonnx_model_free": (None, [c_void_p]),
    "tonnx_model_simplify": (c_int, [c_void_p, c_void_p, HANDLE, HANDLE]),
    "tonnx_model_infer_shapes": (c_int, [c_void_p, HANDLE]),
    "tonnx_model_write": (c_int, [c_void_p, c_char_p, c_void_p, HANDLE]),
    "tonnx_model_to_bytes": (c_int, [c_void_p, c_int, c_void_p, HANDLE, HANDLE]),
}


class CallFailed(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Library:
    def __init__(self) -> None:
        build = Path(os.environ.get("TONNX_CLI", REPOSITORY / "build/release/tonnx")).parent
        self.functions = ctypes.CDLL(str(build / "libtonnx.so"))
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self.functions, name)
            function.restype, function.argtypes = result, arguments

    def call(self, name: str, *arguments: Any) -> None:
        error = c_void_p()
        status = getattr(self.functions, name)(*arguments, byref(error))
        if status != OK:
            text = self.functions.tonnx_error_message(error).decode()
            self.functions.tonnx_error_free(error)
            raise CallFailed(status, text)
        assert not error

    def taken(self, buffer: c_void_p) -> bytes:
        data = self.functions.tonnx_buffer_data(buffer)
        result = ctypes.string_at(data, self.functions.tonnx_buffer_size(buffer))
        self.functions.tonnx_buffer_free(buffer)
        return result

    def read_bytes(self, data: bytes, format: int, options: Any = None) -> c_void_p:
        model = c_void_p()
        self.call("tonnx_model_read_bytes", data, len(data), format, options, None, None, byref(model))
        return model

    def to_bytes(self, model: c_void_p, format: int, options: Any = None) -> bytes:
        buffer = c_void_p()
        self.call("tonnx_model_to_bytes", model, format, options, byref(buffer))
        return self.taken(buffer)


@pytest.fixture(scope="module")
def lib() -> Library:
    return Library()


def network(size: int = 8) -> onnx.ModelProto:
    """relu(x @ w + (b * 1)) through an Identity: what is constant, or does nothing, can be left out."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((size, 4)).astype(np.float32), "w"),
        numpy_helper.from_array(rng.standard_normal(4).astype(np.float32), "b"),
        numpy_helper.from_array(np.ones(1, np.float32), "one"),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Mul", ["b", "one"], ["scaled"]),
        helper.make_node("Add", ["xw", "scaled"], ["sum"]),
        helper.make_node("Identity", ["sum"], ["same"]),
        helper.make_node("Relu", ["same"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", size])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    graph = helper.make_graph(nodes, "net", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


X = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)


def outputs(model: bytes) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


@pytest.fixture
def model(lib: Library) -> Any:
    handle = lib.read_bytes(network().SerializeToString(), ONNX)
    yield handle
    lib.functions.tonnx_model_free(handle)


EXPECTED = outputs(network().SerializeToString())


def test_torchscript_of_memory_runs(lib: Library, model: c_void_p) -> None:
    module = torch.jit.load(io.BytesIO(lib.to_bytes(model, TORCH_SCRIPT)))
    np.testing.assert_allclose(module(torch.from_numpy(X)).detach().numpy(), EXPECTED, rtol=1e-5, atol=1e-6)


def test_exported_program_of_memory_runs(lib: Library, model: c_void_p) -> None:
    program = torch.export.load(io.BytesIO(lib.to_bytes(model, TORCH_EXPORT)))
    np.testing.assert_allclose(program.module()(torch.from_numpy(X)).detach().numpy(), EXPECTED, rtol=1e-5, atol=1e-6)


def test_source_and_weights_belong_together(lib: Library, model: c_void_p) -> None:
    names: dict[str, Any] = {"__name__": "generated", "__file__": "model.py"}
    exec(lib.to_bytes(model, PYTHON), names)
    module = names["Model"]()
    module.load_state_dict(load_safetensors(lib.to_bytes(model, SAFETENSORS)))
    np.testing.assert_allclose(module(torch.from_numpy(X)).detach().numpy(), EXPECTED, rtol=1e-5, atol=1e-6)
    weights = torch.load(io.BytesIO(lib.to_bytes(model, PTH)), weights_only=True)
    assert weights.keys() == module.state_dict().keys()


def test_simplified_model_computes_the_same(lib: Library, model: c_void_p) -> None:
    report = c_void_p()
    lib.call("tonnx_model_simplify", model, None, byref(report))
    said = json.loads(lib.taken(report))
    before = {name: count["before"] for name, count in said["ops"].items() if count["before"]}
    assert before == {"MatMul": 1, "Mul": 1, "Add": 1, "Identity": 1, "Relu": 1}
    data = lib.to_bytes(model, ONNX)
    kept = [node.op_type for node in onnx.load_from_string(data).graph.node]
    assert "Identity" not in kept and "Mul" not in kept
    np.testing.assert_allclose(outputs(data), EXPECTED, rtol=1e-5, atol=1e-6)


def test_inferred_types_are_those_of_onnx(lib: Library, model: c_void_p) -> None:
    lib.call("tonnx_model_infer_shapes", model)
    ours = {value.name: value.type for value in onnx.load_from_string(lib.to_bytes(model, ONNX)).graph.value_info}
    oracle = {value.name: value.type for value in onnx.shape_inference.infer_shapes(network()).graph.value_info}
    assert oracle and ours == oracle


def test_options_of_writing(lib: Library, model: c_void_p, tmp_path: Path) -> None:
    options = lib.functions.tonnx_options_new()
    assert lib.functions.tonnx_options_set_opset(options, 21) == OK
    assert lib.functions.tonnx_options_set_external_data(options, 1) == OK
    path = tmp_path / "external.onnx"
    lib.call("tonnx_model_write", model, os.fsencode(path), options)
    lib.functions.tonnx_options_free(options)
    written = onnx.load(path)
    assert written.opset_import[0].version == 21
    np.testing.assert_allclose(outputs(written.SerializeToString()), EXPECTED, rtol=1e-5, atol=1e-6)


def test_external_data_of_a_model_in_memory(lib: Library, tmp_path: Path) -> None:
    proto = network()
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    data = (tmp_path / "m.onnx").read_bytes()
    with pytest.raises(CallFailed) as refused:
        lib.read_bytes(data, ONNX)
    assert refused.value.status == BAD_FILE
    options = lib.functions.tonnx_options_new()
    assert lib.functions.tonnx_options_set_folder(options, os.fsencode(tmp_path)) == OK
    model = lib.read_bytes(data, ONNX, options)
    lib.functions.tonnx_options_free(options)
    np.testing.assert_array_equal(outputs(lib.to_bytes(model, ONNX)), EXPECTED)
    lib.functions.tonnx_model_free(model)


def test_programs_of_pytorch_become_onnx(lib: Library, tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Tanh()).eval()
    x = torch.from_numpy(X)
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net.pt2")
    torch.jit.trace(net, x).save(tmp_path / "net.pt")
    options = lib.functions.tonnx_options_new()
    sizes = (c_int64 * 2)(3, 8)
    assert lib.functions.tonnx_options_set_input_shape(options, b"0", sizes, 2) == OK
    for name, format, given in (("net.pt2", TORCH_EXPORT, None), ("net.pt", TORCH_SCRIPT, options)):
        model = lib.read_bytes((tmp_path / name).read_bytes(), format, given)
        session = onnxruntime.InferenceSession(lib.to_bytes(model, ONNX), providers=["CPUExecutionProvider"])
        (result,) = session.run(None, {session.get_inputs()[0].name: X})
        np.testing.assert_allclose(result, net(x).detach().numpy(), rtol=1e-5, atol=1e-6)
        lib.functions.tonnx_model_free(model)
    lib.functions.tonnx_options_free(options)


def test_other_weights_take_the_place_of_the_models_own(lib: Library, tmp_path: Path) -> None:
    proto = network()
    state = {t.name: torch.from_numpy(numpy_helper.to_array(t) * 2) for t in proto.graph.initializer}
    torch.save(state, tmp_path / "other.pth")
    options = lib.functions.tonnx_options_new()
    assert lib.functions.tonnx_options_set_weights(options, os.fsencode(tmp_path / "other.pth"), None) == OK
    model = lib.read_bytes(proto.SerializeToString(), ONNX, options)
    for tensor in proto.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * 2, tensor.name))
    np.testing.assert_array_equal(outputs(lib.to_bytes(model, ONNX)), outputs(proto.SerializeToString()))
    lib.functions.tonnx_model_free(model)
    lib.functions.tonnx_options_free(options)


def test_a_caller_stops_a_conversion(lib: Library, model: c_void_p, tmp_path: Path) -> None:
    seen: list[float] = []

    def stop(context: Any, done: float) -> int:
        seen.append(done)
        return 1

    options, keep = lib.functions.tonnx_options_new(), PROGRESS(stop)
    assert lib.functions.tonnx_options_set_progress(options, keep, None) == OK
    with pytest.raises(CallFailed) as stopped:
        lib.call("tonnx_model_write", model, os.fsencode(tmp_path / "never.pt2"), options)
    assert stopped.value.status == CANCELLED and len(seen) == 1 and 0 <= seen[0] <= 1
    assert list(tmp_path.iterdir()) == []
    lib.functions.tonnx_options_free(options)


def test_many_threads_write_equal_bytes(lib: Library) -> None:
    data = network().SerializeToString()

    def convert(format: int) -> bytes:
        model = lib.read_bytes(data, ONNX)
        lib.call("tonnx_model_simplify", model, None, None)
        result = lib.to_bytes(model, format)
        lib.functions.tonnx_model_free(model)
        return result

    formats = [ONNX, TORCH_EXPORT, TORCH_SCRIPT, PYTHON, SAFETENSORS, PTH]
    alone = {format: convert(format) for format in formats}
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(convert, formats * 20))
    assert together == [alone[format] for format in formats * 20]

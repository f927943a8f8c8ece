"""Operators between DequantizeLinear and QuantizeLinear: the very integers that ONNX Runtime gives once it has fused them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
import torch
from checks import expected
from models import whole_numbers
from onnx import TensorProto, helper, numpy_helper

import tonnx

RNG = np.random.default_rng(0)


class Qdq:
    """A graph of quantised tensors: each is dequantised where it is used."""

    def __init__(self, dtype: type) -> None:
        self.dtype = np.dtype(dtype)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.feeds: dict[str, np.ndarray] = {}

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def dequantized(self, name: str, scale: Any, zero: Any, dtype: Any, axis: int | None = None) -> str:
        inputs = [name, self.constant(scale), self.constant(zero, dtype)]
        self.nodes.append(
            helper.make_node("DequantizeLinear", inputs, [name + "_dq"], **({} if axis is None else {"axis": axis}))
        )
        return name + "_dq"

    def input(self, name: str, shape: tuple[int, ...], scale: float = 0.02, zero: int = 7) -> str:
        info = np.iinfo(self.dtype)
        self.feeds[name] = RNG.integers(info.min, info.max + 1, shape).astype(self.dtype)
        return self.dequantized(name, scale, zero, self.dtype)

    def weight(self, array: np.ndarray, scale: Any, axis: int | None = None) -> str:
        name = self.constant(array, array.dtype)
        return self.dequantized(name, scale, np.zeros(np.shape(scale)), array.dtype, axis)

    def check(self, op: str, inputs: list[str], scale: float, zero: int, relu: bool = False, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, ["y"], **attributes))
        if relu:
            self.nodes.append(helper.make_node("Relu", ["y"], ["z"]))
        output = [self.constant(scale), self.constant(zero, self.dtype)]
        self.nodes.append(helper.make_node("QuantizeLinear", ["z" if relu else "y", *output], ["out"]))
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        declared = [helper.make_tensor_value_info(name, kind, a.shape) for name, a in self.feeds.items()]
        out = helper.make_tensor_value_info("out", kind, None)
        graph = helper.make_graph(self.nodes, "qdq", declared, [out], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (want,) = expected(model, self.feeds, False)
        tonnx.convert(model, "model.py")
        got = tonnx.convert(model)(*(torch.from_numpy(a) for a in self.feeds.values())).numpy()
        np.testing.assert_array_equal(got, want)
        return Path("model.py").read_text()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


TYPES = [np.uint8, np.int8]


def signed(*shape: int) -> np.ndarray:
    return whole_numbers(RNG, np.int8, shape)


def weights_beside(dtype: type, *shape: int) -> np.ndarray:
    """int8, of all numbers where the other factor is int8 too."""
    return signed(*shape) if dtype is np.uint8 else RNG.integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_conv(dtype: type, relu: bool, bias: bool, per_channel: bool) -> None:
    q = Qdq(dtype)
    scale = np.array([0.01, 0.02, 0.03], np.float32) if per_channel else np.float32(0.01)
    inputs = [
        q.input("x", (2, 4, 9, 9)),
        q.weight(weights_beside(dtype, 3, 4, 3, 3), scale, 0 if per_channel else None),
    ]
    if bias:
        numbers = RNG.integers(-9999, 9999, 3).astype(np.int32)
        inputs.append(q.weight(numbers, np.float32(0.02) * scale, 0 if per_channel else None))
    text = q.check("Conv", inputs, 0.4, int(np.iinfo(dtype).min) if relu else 5, relu, pads=[1, 1, 1, 1])
    assert "relu" not in text and text.count("torch.round") == 1


@pytest.mark.parametrize("dtype", TYPES)
def test_mat_mul(dtype: type) -> None:
    q = Qdq(dtype)
    q.check("MatMul", [q.input("x", (3, 20)), q.weight(signed(20, 7), 0.01)], 0.4, 5)
    q = Qdq(dtype)
    q.check("MatMul", [q.input("a", (2, 3, 20)), q.input("b", (2, 20, 4), 0.03, 11)], 0.4, 5)


@pytest.mark.parametrize("dtype", TYPES)
def test_gemm(dtype: type) -> None:
    q = Qdq(dtype)
    bias = q.weight(RNG.integers(-9999, 9999, 7).astype(np.int32), np.float32(0.02) * np.float32(0.01))
    q.check("Gemm", [q.input("x", (3, 20)), q.weight(signed(7, 20), 0.01), bias], 0.4, 5, transB=1)


@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize("dtype", TYPES)
def test_binary(op: str, dtype: type) -> None:
    q = Qdq(dtype)
    q.check(op, [q.input("a", (4, 33)), q.input("b", (4, 33), 0.031, 3)], 0.043, 5)


@pytest.mark.parametrize("dtype", TYPES)
def test_softmax(dtype: type) -> None:
    q = Qdq(dtype)
    q.check("Softmax", [q.input("x", (4, 12), 0.1)], 0.00392, int(np.iinfo(dtype).min), axis=-1)


@pytest.mark.parametrize("dtype", TYPES)
def test_pools(dtype: type) -> None:
    q = Qdq(dtype)
    q.check("GlobalAveragePool", [q.input("x", (2, 3, 7, 9))], 0.011, 5)
    q = Qdq(dtype)
    q.check("AveragePool", [q.input("x", (2, 3, 7, 9))], 0.017, 5, kernel_shape=[2, 3], strides=[2, 2])
    q = Qdq(dtype)
    q.check("MaxPool", [q.input("x", (2, 3, 7, 9))], 0.02, 7, kernel_shape=[2, 3])


def test_what_does_not_fit_stays() -> None:
    q = Qdq(np.uint8)
    weight = q.weight(signed(3, 4, 3, 3), 0.01)
    numbers = RNG.integers(-9999, 9999, 3).astype(np.int32)
    wrong_scale = q.weight(numbers, np.float32(0.5))
    q.nodes.append(helper.make_node("Conv", [q.input("x", (2, 4, 9, 9)), weight, wrong_scale], ["y"]))
    q.nodes.append(helper.make_node("QuantizeLinear", ["y", q.constant(0.4), q.constant(5, np.uint8)], ["out"]))
    declared = [helper.make_tensor_value_info("x", TensorProto.UINT8, (2, 4, 9, 9))]
    out = helper.make_tensor_value_info("out", TensorProto.UINT8, None)
    model = helper.make_model(
        helper.make_graph(q.nodes, "qdq", declared, [out], q.constants),
        opset_imports=[helper.make_opsetid("", 19)],
        ir_version=9,
    )
    got = tonnx.convert(model)(torch.from_numpy(q.feeds["x"])).numpy()
    want = onnx.reference.ReferenceEvaluator(model).run(None, q.feeds)[0]
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1


def test_rows_of_a_table_are_dequantised_alone() -> None:
    q = Qdq(np.uint8)
    table = q.weight(RNG.integers(0, 255, (9, 4)).astype(np.uint8), 0.01)
    q.nodes.append(helper.make_node("Gather", [table, "ids"], ["out"]))
    declared = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    graph = helper.make_graph(q.nodes, "table", declared, [out], q.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ids = np.array([3, -1, 0, 8])
    tonnx.convert(model, "model.py")
    assert "].to(torch.float32) * 0.01" in Path("model.py").read_text()
    got = tonnx.convert(model)(torch.from_numpy(ids)).numpy()
    np.testing.assert_array_equal(got, expected(model, {"ids": ids}, False)[0])


def test_numbers_do_not_leave_the_floats_between_two_layers() -> None:
    q = Qdq(np.uint8)
    first = [q.input("x", (2, 4, 9, 9)), q.weight(signed(3, 4, 3, 3), 0.01)]
    q.nodes.append(helper.make_node("Conv", first, ["a"]))
    q.nodes.append(helper.make_node("QuantizeLinear", ["a", q.constant(0.3), q.constant(9, np.uint8)], ["b"]))
    text = q.check("Conv", [q.dequantized("b", 0.3, 9, np.uint8), q.weight(signed(5, 3, 1, 1), 0.02)], 0.4, 5)
    assert text.count(".to(torch.uint8)") == 1

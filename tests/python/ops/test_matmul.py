"""MatMul, Gemm and Einsum: ranks, types, transposes, all shapes of C, and the linear layers that they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, check_opset, one_node, source

import tonnx

RANDOM = np.random.default_rng(4)


def array(*sizes: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.integers(0, 9, sizes).astype(dtype)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((2, 3), (3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((3,), (2, 3, 4)),
        ((0, 3), (3, 4)),
    ],
)
def test_mat_mul(a: tuple, b: tuple, dynamic: bool) -> None:
    check("MatMul", {"A": array(*a), "B": array(*b)}, 13, dynamic=dynamic)
    check("MatMul", {"A": array(*a), "B": array(*b)}, 1, ("B",), dynamic=dynamic)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64, np.float64])
@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_types(op: str, dtype: type) -> None:
    inputs = {"A": array(2, 3, dtype=dtype), "B": array(3, 4, dtype=dtype)}
    check(op, inputs, 13, values=[inputs["A"] @ inputs["B"]])


C = [(4,), (1,), (), (2, 1), (1, 4), (2, 4), (1, 1)]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("constant", [("B", "C"), ("B",), ()])
@pytest.mark.parametrize("c", C)
def test_gemm_broadcast(c: tuple, constant: tuple, dynamic: bool) -> None:
    inputs = {"A": array(2, 3), "B": array(4, 3), "C": array(*c)}
    check("Gemm", inputs, 13, constant, dynamic=dynamic, transB=1)
    check("Gemm", inputs | {"B": array(3, 4)}, 7, constant, dynamic=dynamic, alpha=0.5, beta=2.0)


@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.5}, {"beta": 0.0}, {"beta": 3.0}])
@pytest.mark.parametrize("turn_a", [0, 1])
@pytest.mark.parametrize("turn_b", [0, 1])
def test_gemm(turn_a: int, turn_b: int, attributes: dict) -> None:
    a, b = array(2, 3), array(3, 4)
    inputs = {"A": a.T.copy() if turn_a else a, "B": b.T.copy() if turn_b else b, "C": array(4)}
    for constant in (("B", "C"), ()):
        check("Gemm", inputs, 13, constant, transA=turn_a, transB=turn_b, **attributes)
    inputs.pop("C")
    check("Gemm", inputs, 11, transA=turn_a, transB=turn_b, **attributes)


@pytest.mark.parametrize("opset", [1, 6])
def test_legacy_broadcast(opset: int) -> None:
    inputs = {"A": array(2, 3), "B": array(3, 4), "C": array(4)}
    check("Gemm", inputs, opset, ("B", "C"), values=[inputs["A"] @ inputs["B"] + inputs["C"]], broadcast=1)
    inputs["C"] = array(2, 4)
    check("Gemm", inputs, opset, values=[inputs["A"] @ inputs["B"] + inputs["C"]])


@pytest.mark.parametrize("turn_b", [0, 1])
@pytest.mark.parametrize("c", [(4,), (1, 4)])
def test_linear(c: tuple, turn_b: int) -> None:
    b = array(3, 4)
    inputs = {"A": array(2, 3), "fc.weight": b.T.copy() if turn_b else b, "C": array(*c)}
    module = check("Gemm", inputs, 13, ("fc.weight", "C"), transB=turn_b)
    layer = module.fc
    assert isinstance(layer, torch.nn.Linear) and layer.weight.shape == (4, 3) and layer.bias.shape == (4,)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ji", [(2, 3)]),
        ("ij", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ij->", [(2, 3)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("...ij, ...jk -> ...ik", [(5, 2, 3), (5, 3, 4)]),
        ("...ij,jk->...ik", [(6, 5, 2, 3), (3, 4)]),
        ("bi,bj,bk->ijk", [(2, 3), (2, 4), (2, 5)]),
    ],
)
def test_einsum(equation: str, shapes: list, dynamic: bool) -> None:
    inputs = {f"x{i}": array(*shape) for i, shape in enumerate(shapes)}
    check("Einsum", inputs, 12, dynamic=dynamic, equation=equation)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8, np.uint8, np.uint16, np.uint32])
def test_einsum_types(dtype: type) -> None:
    inputs = {"x": array(2, 3, dtype=dtype), "y": array(3, 4, dtype=dtype)}
    check("Einsum", inputs, 12, equation="ij,jk->k", values=[np.einsum("ij,jk->k", *inputs.values()).astype(dtype)])


@pytest.mark.parametrize("equation", ["i->ij", "i.->i", "ij,j->i", "ijk->i", "i1->i", "->", "ij->z"])
def test_bad_equations(equation: str) -> None:
    with pytest.raises(tonnx.Error) as error:
        tonnx.convert(one_node("Einsum", {"x": array(2, 3)}, 12, equation=equation))
    assert error.value.kind == "invalid_model"


def test_steps_down(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_opset("Gemm", {"A": array(2, 3), "B": array(3, 4)}, 13, 9)
    check_opset("MatMul", {"A": array(2, 3), "B": array(3, 4)}, 13, 8)
    inputs = {"A": array(2, 3), "B": array(3, 4), "C": array(4)}
    tonnx.convert(one_node("Gemm", inputs, 13), "down.onnx", opset=6)
    module = tonnx.convert("down.onnx")
    np.testing.assert_allclose(module(*map(torch.from_numpy, inputs.values())), inputs["A"] @ inputs["B"] + inputs["C"])


def test_sizes_that_do_not_fit() -> None:
    for op in ("MatMul", "Gemm"):
        with pytest.raises(tonnx.Error, match="the inner sizes 3 and 5 of a matrix product differ"):
            tonnx.convert(one_node(op, {"A": array(2, 3), "B": array(5, 4)}, 13))


def test_code(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "return x @ y" in source("MatMul", {"x": array(2, 3), "y": array(3, 4)}, 13)
    text = source("Gemm", {"x": array(2, 3), "y": array(3, 4), "z": array(4)}, 13)
    assert "return x @ y + z" in text

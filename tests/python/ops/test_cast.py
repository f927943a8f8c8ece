"""Cast, CastLike and BitCast, against ONNX Runtime and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
from checks import check, one_node, source
from onnx import TensorProto, helper

import tonnx

NUMBERS = [
    "BOOL",
    "UINT8",
    "INT8",
    "UINT16",
    "INT16",
    "INT32",
    "INT64",
    "UINT32",
    "UINT64",
    "FLOAT16",
    "FLOAT",
    "DOUBLE",
]
X = np.array([0.0, 0.3, 1.5, 2.5, 100.0], np.float32)


def numpy_type(name: str) -> np.dtype:
    return np.dtype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name)))


@pytest.mark.parametrize("source_type", NUMBERS)
@pytest.mark.parametrize("to", NUMBERS)
def test_plain(source_type: str, to: str) -> None:
    x = X.astype(numpy_type(source_type))
    check("Cast", {"x": x}, 13, to=getattr(TensorProto, to), reference=True)


@pytest.mark.parametrize(
    ("from_type", "to"), [(np.int16, np.int8), (np.int32, np.uint8), (np.int64, np.uint32), (np.int8, np.uint64)]
)
def test_integers_lose_their_higher_bits(from_type: type, to: type) -> None:
    x = np.array([-1, 200, -100, np.iinfo(from_type).max], np.int64).astype(from_type)
    check("Cast", {"x": x}, 13, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)), reference=True)


@pytest.mark.parametrize("to", NUMBERS)
def test_opset_1_has_names(to: str) -> None:
    check("Cast", {"x": X}, 1, to=to, values=[X.astype(numpy_type(to))])


def bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.view(torch.uint8).numpy()


WIDE = np.array(
    [0.0, -0.0, 0.26, 1.05, -3.5, 240, 448, 464, 470, 57344, 70000, -1e6, np.inf, -np.inf, np.nan], np.float32
)


@pytest.mark.parametrize("saturate", [None, 0, 1])
@pytest.mark.parametrize("from_type", [np.float32, np.float16])
@pytest.mark.parametrize("to", ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"])
def test_float8(to: str, from_type: type, saturate: int | None) -> None:
    with np.errstate(over="ignore"):
        x = WIDE.astype(from_type)
    model = one_node(
        "Cast", {"x": x}, 19, to=getattr(TensorProto, to), **({} if saturate is None else {"saturate": saturate})
    )
    largest = float(ml_dtypes.finfo(numpy_type(to)).max)
    want = (x if saturate == 0 else np.clip(x, -largest, largest)).astype(numpy_type(to)).astype(np.float32)
    got = tonnx.convert(model)(torch.from_numpy(x))
    np.testing.assert_array_equal(got.to(torch.float32).numpy(), want)
    back = one_node("Cast", {"x": want.astype(numpy_type(to))}, 19, to=TensorProto.FLOAT)
    np.testing.assert_array_equal(tonnx.convert(back)(got).numpy(), want)


@pytest.mark.parametrize("to", ["FLOAT4E2M1", "FLOAT6E2M3", "FLOAT6E3M2"])
def test_narrow_floats_are_rounded(to: str) -> None:
    x = np.concatenate([np.linspace(-9, 9, 721, dtype=np.float32), np.array([0.0, 1e-9, 1e9, 30, -np.inf], np.float32)])
    got = tonnx.convert(one_node("Cast", {"x": x}, 28, to=getattr(TensorProto, to)))(torch.from_numpy(x))
    kind = {"FLOAT4E2M1": "float4_e2m1fn", "FLOAT6E2M3": "float6_e2m3fn", "FLOAT6E3M2": "float6_e3m2fn"}[to]
    np.testing.assert_array_equal(got.numpy(), x.astype(getattr(ml_dtypes, kind)).astype(np.float32))


@pytest.mark.parametrize("to", ["INT4", "UINT4", "INT2", "UINT2"])
@pytest.mark.parametrize("from_type", [np.float32, np.int8, np.uint8, np.int64])
def test_narrow_integers_lose_their_higher_bits(to: str, from_type: type) -> None:
    x = np.arange(0 if from_type is np.uint8 else -40, 40).astype(from_type)
    got = tonnx.convert(one_node("Cast", {"x": x}, 25, to=getattr(TensorProto, to)))(torch.from_numpy(x))
    want = x.astype(np.int64).astype(numpy_type(to))
    np.testing.assert_array_equal(got.numpy(), want.astype(np.int8 if to.startswith("I") else np.uint8))


@pytest.mark.parametrize(
    ("attributes", "want"),
    [
        ({}, [0, 126, 127, 128, 129, 254, 254, 255]),
        ({"round_mode": "down"}, [0, 126, 127, 127, 128, 254, 254, 255]),
        ({"round_mode": "nearest"}, [0, 126, 127, 128, 128, 254, 254, 255]),
        ({"round_mode": "up", "saturate": 0}, [0, 126, 127, 128, 129, 255, 255, 255]),
    ],
)
def test_powers_of_two(attributes: dict[str, object], want: list[int]) -> None:
    x = np.array([0.0, 0.5, 1.0, 1.5, 2.4, 3e38, np.inf, np.nan], np.float32)
    got = tonnx.convert(one_node("Cast", {"x": x}, 24, to=TensorProto.FLOAT8E8M0, **attributes))(torch.from_numpy(x))
    assert bits(got).tolist() == want


@pytest.mark.parametrize("to", [np.int64, np.float16, np.float32, bool])
def test_cast_like(to: type) -> None:
    check("CastLike", {"x": X, "like": np.zeros(1, to)}, 15, reference=True)
    check("CastLike", {"x": X, "like": np.zeros((2, 2), to)}, 19, dynamic=True, reference=True)


@pytest.mark.parametrize(
    ("from_type", "to"),
    [
        (np.float32, np.int32),
        (np.int64, np.float64),
        (np.uint16, np.float16),
        (np.uint8, np.int8),
        (np.int32, np.uint32),
    ],
)
def test_bit_cast(from_type: type, to: type) -> None:
    x = np.array([0, 1, 2, 100], from_type)
    check("BitCast", {"x": x}, 26, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)), values=[x.view(to)])
    check("BitCast", {"x": x[2]}, 26, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)), values=[x.view(to)[2]])


def test_bit_cast_of_another_size() -> None:
    with pytest.raises(tonnx.Error, match="float32"):
        tonnx.convert(one_node("BitCast", {"x": X}, 26, to=TensorProto.INT64))


@pytest.mark.parametrize("to", [0, -1, 99, TensorProto.STRING])
def test_no_such_type(to: int) -> None:
    with pytest.raises(tonnx.Error) as caught:
        tonnx.convert(one_node("Cast", {"x": X}, 13, to=to))
    assert caught.value.kind in ("invalid_model", "unsupported")


def test_no_node_where_nothing_happens() -> None:
    assert source("Cast", {"x": X}, 13, to=TensorProto.FLOAT).endswith("return x")


@pytest.mark.parametrize(("opset", "to"), [(21, 5), (21, 9), (1, 21)])
def test_other_opset(opset: int, to: int) -> None:
    model = one_node("Cast", {"x": X}, opset, to="INT32" if opset == 1 else TensorProto.INT32)
    tonnx.convert(model, "other.onnx", opset=to)
    other = tonnx.convert(onnx.load("other.onnx"))
    assert other(torch.from_numpy(X)).tolist() == [0, 0, 1, 2, 100]

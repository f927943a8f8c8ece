"""Products of uint8 and int8: ONNX Runtime saturates them on some processors, and verify is the same on all."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.external_data_helper
import pytest
from models import make_model, runtime_run
from onnx import TensorProto, helper, numpy_helper

import tonnx
from tonnx._verify import saturation

RNG = np.random.default_rng(3)
A = RNG.integers(200, 256, (4, 32)).astype(np.uint8)
B = RNG.integers(100, 128, (32, 5)).astype(np.int8)  # sums of two products are beyond 16 bits
ZERO = np.array([3, -2, 0, 127, -128], np.int8)
EXACT = (A.astype(np.int64) - 9) @ (B.astype(np.int64) - ZERO)


def model_of(zero: np.ndarray | None, external: bool = False) -> onnx.ModelProto:
    constants = {"b": B, "az": np.array(9, np.uint8)} | ({} if zero is None else {"bz": zero})
    node = helper.make_node("MatMulInteger", ["a", *constants], ["y"])
    node.input[:] = ["a", "b", "az", *(["bz"] if zero is not None else [])]
    model = make_model(
        [node],
        [helper.make_tensor_value_info("a", TensorProto.UINT8, ["n", 32])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, ["n", 5])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    if external:
        onnx.external_data_helper.convert_model_to_external_data(model, location="m.data", size_threshold=64)
    return model


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("zero", [None, np.array(5, np.int8), ZERO])
def test_weights_are_unsigned_where_it_is_needed(
    zero: np.ndarray | None, external: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saturation, "saturates", lambda: True)
    onnx.save(model_of(zero, external), "m.onnx")
    model = onnx.load("m.onnx", load_external_data=False)
    assert saturation.without_saturation(model, ".")
    exact = (A.astype(np.int64) - 9) @ (B.astype(np.int64) - (0 if zero is None else zero))
    np.testing.assert_array_equal(runtime_run(model, {"a": A})[0], exact)


def test_weights_with_other_uses_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saturation, "saturates", lambda: True)
    model = model_of(ZERO)
    model.graph.node.append(helper.make_node("Identity", ["b"], ["c"]))
    before = model.SerializeToString(deterministic=True)
    saturation.without_saturation(model, ".")
    assert model.SerializeToString(deterministic=True) == before


def test_verify_is_the_same_on_every_processor() -> None:
    onnx.save(model_of(ZERO), "m.onnx")
    tonnx.convert("m.onnx", "m.py")
    assert tonnx.verify("m.onnx", "m.py", {"a": A})

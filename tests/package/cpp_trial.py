"""What the programs of examples/cpp have written, run by ONNX Runtime and PyTorch: cpp_trial.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper


def run_onnx(model: onnx.ModelProto, image: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, {"image": image}))


def main(folder: Path) -> None:
    image = np.random.default_rng(0).random((2, 3, 32, 32), dtype=np.float32)
    whole = onnx.load(folder / "classifier.onnx")
    onnx.checker.check_model(whole, full_check=True)
    whole.graph.output.append(helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, None))
    logits, features = run_onnx(whole, image)

    cut = onnx.load(folder / "features.onnx")
    onnx.checker.check_model(cut, full_check=True)
    assert [node.op_type for node in cut.graph.node] == ["Conv", "Relu"]
    np.testing.assert_array_equal(run_onnx(cut, image)[0], features)

    classifier = torch.export.load(folder / "classifier.pt2").module()
    np.testing.assert_allclose(classifier(torch.from_numpy(image)).detach().numpy(), logits, rtol=1e-5, atol=1e-5)

    swish = torch.export.load(folder / "swish.pt2").module()
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(swish(x), x * torch.sigmoid(2 * x))
    print("the programs of examples/cpp give what ONNX Runtime and PyTorch give")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

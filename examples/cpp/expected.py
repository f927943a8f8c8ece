"""expected.py - what ONNX Runtime gives for a random image: expected.py model.onnx input.bin output.bin."""

import sys

import numpy as np
import onnxruntime

model, input_path, output_path = sys.argv[1:]
image = np.random.default_rng(0).random((2, 3, 32, 32), dtype=np.float32)
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
(logits,) = session.run(None, {"image": image})
image.tofile(input_path)
logits.tofile(output_path)

"""Operators that the user writes in ONNX: torch.onnx's symbolics, and nodes for operators without a conversion."""

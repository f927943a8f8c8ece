"""Where ONNX Runtime does not do what ONNX says, or where ONNX says nothing: such nodes are not drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

Known = dict[str, tuple[np.ndarray, np.ndarray]]  # what a node takes at both sizes, where the node's block is given it


def input_of(node: onnx.NodeProto, at: int, known: Known) -> np.ndarray | None:
    pair = known.get(node.input[at]) if at < len(node.input) else None
    return pair[0] if pair else None


def slice_reason(node: onnx.NodeProto, known: Known) -> str:
    ends, steps = input_of(node, 2, known), input_of(node, 4, known)
    if ends is not None and steps is not None and ((steps < 0) & (ends > 2**31 - 2)).any():
        return "from the front to the largest number in negative steps is nothing, and ONNX Runtime goes to the front"
    return ""


CHECKS: dict[str, Callable[[onnx.NodeProto, Known], str]] = {"Slice": slice_reason}


def reason(node: onnx.NodeProto, known: Known) -> str:
    """Why the results of a node prove nothing; empty where they do."""
    check = CHECKS.get(node.op_type)
    return check(node, known) if check else ""

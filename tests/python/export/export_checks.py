"""Exports a small function or module, and compares ONNX Runtime with PyTorch."""

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from stand_in import rename

import tonnx


class _Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def save_program(path, function, *args, dynamic=None):
    """A .pt2 file. `dynamic` is what torch.export takes as dynamic_shapes: one entry for each argument."""
    module = function if isinstance(function, torch.nn.Module) else _Call(function)
    module = module.eval()
    shapes = None
    if dynamic is not None:
        shapes = tuple(dynamic) if isinstance(function, torch.nn.Module) else (tuple(dynamic),)
    program = torch.export.export(module, args, dynamic_shapes=shapes)
    rename(program)
    torch.export.save(program, path)


def exported(function, *args, dynamic=None, opset=None):
    """The ONNX model, by way of a .pt2 file."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "model.pt2", Path(folder) / "model.onnx"
        save_program(source, function, *args, dynamic=dynamic)
        tonnx.convert(source, target, opset=opset)
        model = onnx.load(target)
    onnx.checker.check_model(model, full_check=True)
    return model


def run(model, *args):
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {}
    for value, arg in zip(session.get_inputs(), args, strict=True):
        feeds[value.name] = arg.detach().numpy()
    return session.run(None, feeds)


def check(function, *args, dynamic=None, opset=None, nodes=None, rtol=1e-4, atol=1e-5, also=()):
    """`also`: other arguments, of other sizes, that the model is tried with. `nodes`: how many it has at most."""
    model = exported(function, *args, dynamic=dynamic, opset=opset)
    if nodes is not None:
        assert len(model.graph.node) <= nodes, [node.op_type for node in model.graph.node]
    for case in (args, *also):
        with torch.no_grad():
            wanted = torch.utils._pytree.tree_leaves(function(*case))
        found = run(model, *case)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            b = b.detach().numpy()
            assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    return model


def together(functions, *args):
    """The results of many functions as one; a named tuple, which torch.export does not save, becomes a plain one."""
    results = [function(*args) for function in functions]
    return [tuple(result) if isinstance(result, tuple) else result for result in results]

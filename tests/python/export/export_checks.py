"""Exports a small function or module, and compares ONNX Runtime with PyTorch."""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from conftest import cli_command


class _Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def exported(function, *args, dynamic=None, opset=None):
    """The ONNX model. `dynamic` is what torch.export takes as dynamic_shapes: one entry for each argument."""
    module = function if isinstance(function, torch.nn.Module) else _Call(function)
    module = module.eval()
    shapes = None
    if dynamic is not None:
        shapes = tuple(dynamic) if isinstance(function, torch.nn.Module) else (tuple(dynamic),)
    program = torch.export.export(module, args, dynamic_shapes=shapes)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "model.pt2", Path(folder) / "model.onnx"
        torch.export.save(program, source)
        command = [*cli_command(), "convert", str(source), str(target)]
        done = subprocess.run(command + (["--opset", str(opset)] if opset else []), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
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

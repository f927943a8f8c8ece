"""Shapes are integers: chains that compute with shapes read as arithmetic on sizes, and are exported with open sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import tonnx

CHAINS = {
    "batch, and the rest": (
        "Z = Constant<value_ints=[0]>() M = Constant<value_ints=[-1]>() s = Shape(x) b = Gather(s, Z) t = Concat<axis=0>(b, M) y = Reshape(x, t)",
        "return x.flatten(1)",
    ),
    "heads": (
        """i0 = Constant<value_int=0>() i1 = Constant<value_int=1>() d = Constant<value_ints=[2]>() m = Constant<value_ints=[-1]>()
        a = Constant<value_ints=[0]>() s = Shape(x) b0 = Gather(s, i0) s0 = Gather(s, i1) b = Unsqueeze(b0, a) q = Unsqueeze(s0, a)
        t = Concat<axis=0>(b, q, d, m) r = Reshape(x, t) y = Transpose<perm=[0, 2, 1, 3]>(r)""",
        "return x.unflatten(-1, (2, 3)).transpose(1, 2)",
    ),
    "products": (
        """i0 = Constant<value_ints=[0]>() i1 = Constant<value_ints=[1]>() m = Constant<value_ints=[-1]>()
        s = Shape(x) a = Gather(s, i0) b = Gather(s, i1) p = Mul(a, b) t = Concat<axis=0>(p, m) y = Reshape(x, t)""",
        "return x.flatten(end_dim=1)",
    ),
    "slices of a shape": (
        """z = Constant<value_ints=[0]>() e = Constant<value_ints=[2]>() m = Constant<value_ints=[2, -1]>()
        s = Shape(x) h = Slice(s, z, e) t = Concat<axis=0>(h, m) y = Reshape(x, t)""",
        "return x.unflatten(-1, (2, 3))",
    ),
    "a tensor of sizes": (
        """i = Constant<value_ints=[0]>() k = Constant<value_ints=[4]>() s = Shape(x) b = Gather(s, i)
        y = Concat<axis=0>(b, k, b)""",
        "torch.tensor([",
    ),
    "positions": (
        """z = Constant<value_int=0>() o = Constant<value_int=1>() s = Shape<start=1, end=2>(x) n = Squeeze(s) y = Range(z, n, o)""",
        "return torch.arange(x.size(1), device=x.device)",
    ),
    "zeros of a size": (
        """k = Constant<value_ints=[3]>() s = Shape<end=1>(x) t = Concat<axis=0>(s, k) w = ConstantOfShape(t) y = Cast<to=7>(w)""",
        "torch.zeros([x.size(0), 3]",
    ),
    "expanded over a batch": (
        """p = Constant<value_floats=[1.0, 2.0]>() k = Constant<value_ints=[2]>() s = Shape<end=1>(x) t = Concat<axis=0>(s, k)
        y = Expand(p, t)""",
        ".expand(x.size(0), -1)",
    ),
    "the larger": (
        """k = Constant<value_ints=[4]>() s = Shape<start=1, end=2>(x) m = Max(s, k) o = Constant<value_ints=[1]>() r = Sub(m, s)
        z = Constant<value_ints=[0, 0, 0, 0]>() z1 = Constant<value_ints=[0]>() p = Concat<axis=0>(z, r, z1) y = Pad(x, p)""",
        "torch.sym_max",
    ),
    "parts of a shape": (
        """s = Shape(x) b, n, c = Split<num_outputs=3>(s) nc = Mul(n, c) t = Concat<axis=0>(b, nc) y = Reshape(x, t)""",
        "return x.flatten(1)",
    ),
}


def model_of(chain: str) -> onnx.ModelProto:
    graph = f'<ir_version: 9, opset_import: ["" : 18]> g (float[batch, n, 6] x) => (y) {{ {chain} }}'
    return onnx.parser.parse_model(graph)


def expected(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("name", CHAINS)
def test_chain(name: str, tmp_path: Path) -> None:
    chain, text = CHAINS[name]
    model = model_of(chain)
    tonnx.convert(model, tmp_path / "model.py")
    source = (tmp_path / "model.py").read_text()
    assert text in source
    module = tonnx.convert(model)
    batch, n = torch.export.Dim("batch", max=64), torch.export.Dim("n", max=64)
    shapes = ({0: batch, 1: n},)
    first = torch.arange(5 * 7 * 6, dtype=torch.float32).reshape(5, 7, 6)
    exported = torch.export.export(module, (first,), dynamic_shapes=shapes).module()
    for sizes in ((5, 7, 6), (3, 8, 6)):
        x = np.random.default_rng(0).standard_normal(sizes).astype(np.float32)
        want = expected(model, x)
        for run in (module, exported):
            got = run(torch.from_numpy(x)).numpy()
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


def test_halves(tmp_path: Path) -> None:
    """Not exported: torch.export does not accept half of an open size as the end of a slice."""
    chain = """i = Constant<value_int=1>() two = Constant<value_int=2>() z = Constant<value_ints=[0]>() a = Constant<value_ints=[1]>()
        s = Shape(x) n = Gather(s, i) h = Div(n, two) e = Unsqueeze(h, z) y = Slice(x, z, e, a)"""
    model = model_of(chain)
    tonnx.convert(model, tmp_path / "model.py")
    assert "return x[:, : x.size(1) // 2]" in (tmp_path / "model.py").read_text()
    for sizes in ((5, 7, 6), (3, 8, 6)):
        x = np.random.default_rng(0).standard_normal(sizes).astype(np.float32)
        np.testing.assert_array_equal(tonnx.convert(model)(torch.from_numpy(x)).numpy(), expected(model, x))


def test_compiles_as_one_graph() -> None:
    for chain, _ in CHAINS.values():
        module = tonnx.convert(model_of(chain))
        compiled = torch.compile(module, fullgraph=True, dynamic=True, backend="eager")
        for sizes in ((5, 7, 6), (3, 8, 6)):
            x = torch.randn(sizes)
            assert torch.equal(compiled(x), module(x))


def test_sizes_that_grow_from_layer_to_layer() -> None:
    layer = "s{i} = Slice(x{i}, one, end, two) p{i} = Pad(s{i}, pads) x{j} = Add(x{i}, p{i})"
    layers = " ".join(layer.format(i=i, j=i + 1) for i in range(40))
    text = f"""<ir_version: 10, opset_import: ["" : 17]> g (float[n, t] x0) => (float[n, t] x40) {{
        one = Constant<value_ints=[1]>() two = Constant<value_ints=[1]>() end = Constant<value_ints=[1000]>()
        pads = Constant<value_ints=[0, 0, 0, 1]>() {layers} }}"""
    model = onnx.parser.parse_model(text)
    x = np.random.default_rng(0).random((2, 5)).astype(np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x0": x})[0]
    np.testing.assert_allclose(tonnx.convert(model)(torch.from_numpy(x)).numpy(), want, rtol=1e-4)

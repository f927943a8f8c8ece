"""The networks that verify is tried on: a residual network of 50 convolutions, in many disguises."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import tonnx

CHANNELS = 8


class Network:
    """Builds conv, batch norm, relu one after the other; blocks of three with a shortcut around them."""

    def __init__(self, changed: int | None, factor: float) -> None:
        self.rng = np.random.default_rng(3)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.changed, self.factor, self.convs = changed, factor, 0

    def weight(self, name: str, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def add(self, op: str, inputs: list[str], **attributes: object) -> str:
        number = len(self.nodes)
        self.nodes.append(helper.make_node(op, inputs, [f"v{number}"], name=f"n{number}", **attributes))
        return f"v{number}"

    def conv(self, x: str, ins: int, size: int) -> str:
        name = f"net/layer{self.convs}"
        array = self.rng.standard_normal((CHANNELS, ins, size, size)) * (2 / (ins * size * size)) ** 0.5
        if self.convs == self.changed:
            array = array * self.factor
        self.convs += 1
        x = self.add("Conv", [x, self.weight(f"{name}_w", array)], pads=[size // 2] * 4)
        values = self.rng.random((4, CHANNELS)) * 0.2 + np.array([[0.9], [0.0], [0.0], [0.9]])
        parts = [self.weight(f"{name}_bn_{part}", v) for part, v in zip(("s", "b", "rm", "riv"), values, strict=True)]
        return self.add("BatchNormalization", [x, *parts])


def residual_network(path: str, changed: int | None = None, factor: float = 1.01, batch: int | str = 1) -> str:
    """50 convolutions; `changed` is the number of the one whose weights are multiplied by `factor`."""
    net = Network(changed, factor)
    x = net.add("Relu", [net.conv("image", 3, 3)])
    for block in range(16):
        y = net.add("Relu", [net.conv(x, CHANNELS, 1)])
        y = net.add("Relu", [net.conv(y, CHANNELS, 3)])
        y = net.conv(y, CHANNELS, 1)
        shortcut = net.conv(x, CHANNELS, 1) if block == 8 else x
        x = net.add(
            "Relu", [net.add("Mul", [net.add("Add", [y, shortcut]), net.weight(f"half{block}", np.array(0.7))])]
        )
    x = net.add("Flatten", [net.add("GlobalAveragePool", [x])])
    net.add("Gemm", [x, net.weight("net/pred_w", net.rng.standard_normal((10, CHANNELS)))], transB=1)
    net.nodes[-1].output[0] = "scores"
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, 12, 12])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, 10])
    graph = helper.make_graph(net.nodes, "net", [image], [scores], net.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def renamed(source: str, target: str, seed: int, *, numbered: bool) -> str:
    """The same nodes in another order that is possible, under names that say nothing, or that say something wrong."""
    model = onnx.load(source)
    rng = random.Random(seed)
    nodes, done, ordered = list(model.graph.node), {"image", *(t.name for t in model.graph.initializer)}, []
    while nodes:
        ready = [node for node in nodes if all(name in done for name in node.input)]
        node = rng.choice(ready)
        nodes.remove(node)
        ordered.append(node)
        done.update(node.output)
    inner = [name for node in ordered for name in node.output if name != "scores"]
    weights = [tensor.name for tensor in model.graph.initializer]
    others = rng.sample(inner, len(inner)) if numbered else [f"x{i}" for i in range(len(inner))]
    names = dict(zip(inner, others, strict=True)) | {name: f"onnx::w_{i}" for i, name in enumerate(weights)}
    for i, node in enumerate(ordered):
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        node.name = f"k{i}"
    for tensor in model.graph.initializer:
        tensor.name = names[tensor.name]
    del model.graph.node[:]
    model.graph.node.extend(ordered)
    onnx.save(model, target)
    return target


def variant(kind: str, source: str) -> str:
    """The model in another format, or in another form."""
    stem = Path(source).with_suffix("")
    if kind in ("py", "pt2"):
        tonnx.convert(source, f"{stem}.{kind}")
        return f"{stem}.{kind}"
    if kind == "pt":
        torch.jit.trace(tonnx.convert(source), torch.zeros(1, 3, 12, 12)).save(f"{stem}.pt")
        return f"{stem}.pt"
    if kind == "simplified":
        tonnx.simplify(source, f"{stem}.simple.onnx")
        return f"{stem}.simple.onnx"
    if kind in ("shuffled", "misnamed"):
        return renamed(source, f"{stem}.{kind}.onnx", 5, numbered=kind == "misnamed")
    if kind == "simplified and shuffled":
        return renamed(variant("simplified", source), f"{stem}.both.onnx", 7, numbered=False)
    return source

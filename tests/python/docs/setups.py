"""What lies in the folder in which the blocks of a page are run, and what the names in them stand for."""

from __future__ import annotations

import ctypes
import linecache
import os
import sys
from pathlib import Path
from typing import Any

import torch
from blocks import REPOSITORY
from torch import nn

import tonnx

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int = 4, classes: int = 5):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=4)
        self.bn1 = nn.BatchNorm2d(width)
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        return self.fc(torch.relu(self.bn1(self.conv1(x))).mean((2, 3)))
"""


def net(**arguments: Any) -> nn.Module:
    name = "docs_net.py"
    linecache.cache[name] = (len(NET), None, NET.splitlines(True), name)  # torch.jit asks for it
    names: dict[str, Any] = {"__name__": "docs_net"}
    exec(compile(NET, name, "exec"), names)
    return names["Net"](**arguments).eval()


def files(folder: Path) -> dict[str, Any]:
    """The models that pages speak of, all the same small network; and the names that blocks of Python use."""
    torch.manual_seed(0)
    model, x = net(), torch.rand(1, 3, 64, 64)
    kept = {"dynamic_axes": {"x": {0: "batch", 2: "height", 3: "width"}}, "do_constant_folding": False}
    tonnx.export(model, x, folder / "m.onnx", **kept)
    for name in ("resnet50", "a", "model", "resnet", "net", "old", "resnet18", "open", "detector"):
        (folder / f"{name}.onnx").write_bytes((folder / "m.onnx").read_bytes())
    torch.export.save(torch.export.export(model, (x,)), folder / "model.pt2")
    (folder / "resnet.pt2").write_bytes((folder / "model.pt2").read_bytes())
    torch.jit.trace(model, x).save(folder / "model.pt")
    state = model.state_dict()
    for name in ("weights", "tuned", "net", "resnet", "cnn"):
        torch.save(state, folder / f"{name}.pth")
    tonnx.convert(str(folder / "weights.pth"), str(folder / "tuned.safetensors"))
    torch.save({"model": state, "ema": state, "epoch": 12}, folder / "checkpoint.pth")
    (folder / "my_net.py").write_text(NET)
    (folder / "pairs.tsv").write_text("m.onnx\tlisted/m.py\nm.onnx\tlisted/m.pt2\n")
    (folder / "listed").mkdir()
    (folder / "models.yml").write_text("models: [{source: m.onnx, target: 'out/{stem}.py'}]\n")
    (folder / "config.yml").write_text("models: [{source: m.onnx, target: 'out/{stem}.pt2'}]\n")
    return {"tonnx": tonnx, "torch": torch, "nn": nn, "F": nn.functional, "model": model, "x": x, "args": (x,)}


def fixed_net(folder: Path, names: dict[str, Any]) -> None:
    torch.manual_seed(0)
    tonnx.export(net(), torch.rand(1, 3, 64, 64), folder / "fixed.onnx", input_names=["x"])


def no_converters(folder: Path, names: dict[str, Any]) -> None:
    class MyLayer(nn.Module):
        def __init__(self, alpha: float) -> None:
            super().__init__()
            self.alpha = alpha

    names["MyLayer"] = MyLayer


def loop(folder: Path, names: dict[str, Any]) -> None:
    names.update(n=3, c=torch.tensor(True), x=torch.ones(2))


def pickled(folder: Path, names: dict[str, Any]) -> None:
    (folder / "my_package.py").write_text("from torch import nn\n\n\nclass Net(nn.Sequential):\n    pass\n")
    import my_package  # type: ignore[import-not-found]

    torch.save(my_package.Net(nn.Conv2d(3, 4, 3)), folder / "net.pth")
    del sys.modules["my_package"]


def large(folder: Path, names: dict[str, Any]) -> None:
    weights = {"conv1.weight": torch.rand(64, 3, 7, 7), "bn1.weight": torch.rand(64), "bn1.bias": torch.rand(64)}
    torch.save(weights, folder / "resnet.pth")


def checkpoint(folder: Path, names: dict[str, Any]) -> None:
    weight = nn.Parameter(torch.rand(64, 3, 7, 7))
    optimizer = torch.optim.Adam([weight], lr=0.001)
    weight.sum().backward()
    optimizer.step()
    state = {"model": {"conv1.weight": weight.detach()}, "optimizer": optimizer.state_dict(), "epoch": 12}
    torch.save(state, folder / "checkpoint.pth")


def torchvision(folder: Path, names: dict[str, Any]) -> None:
    """A package of that name, whose ResNet is small but for its last layer."""
    (folder / "torchvision").mkdir(exist_ok=True)
    (folder / "torchvision/__init__.py").touch()
    code = NET.replace("def __init__(self, width: int = 4, classes: int = 5)", "def __init__(self, num_classes=1000)")
    code = code.replace("nn.Linear(width, classes)", "nn.Linear(width, num_classes)").replace("width", "512")
    (folder / "torchvision/models.py").write_text(
        f"{code}\n\ndef resnet18(num_classes=1000):\n    return Net(num_classes)\n"
    )
    import torchvision.models  # type: ignore[import-not-found]

    torch.save(torchvision.models.resnet18().state_dict(), folder / "r18.pth")
    torch.save(torchvision.models.resnet18(10).state_dict(), folder / "r10.pth")
    tonnx.export(
        torchvision.models.resnet18(), torch.rand(1, 3, 64, 64), folder / "resnet18.onnx", do_constant_folding=False
    )
    names["torchvision"] = torchvision


def with_width(folder: Path, names: dict[str, Any]) -> None:
    """The same, and a network that must be told how wide it is."""
    torchvision(folder, names)
    (folder / "my_net.py").write_text(NET.replace("width: int = 4", "width"))


def script(folder: Path, names: dict[str, Any]) -> None:
    class Embeds(nn.Module):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return ids * 2

    torch.jit.script(Embeds()).save(folder / "words.pt")


def module(folder: Path, names: dict[str, Any]) -> None:
    import copy

    import safetensors.torch

    model = tonnx.convert(str(folder / "model.onnx"))
    torch.save(model.state_dict(), folder / "model.pth")
    tonnx.save(model, folder / "model.safetensors")
    names.update(model=model, copy=copy, safetensors=safetensors, work=lambda *_: None)
    spawn = torch.multiprocessing.spawn
    names["_undo"] = lambda: setattr(torch.multiprocessing, "spawn", spawn)
    torch.multiprocessing.spawn = lambda function, args: function(0, *args)  # type: ignore[assignment]


def cluster(folder: Path, names: dict[str, Any]) -> None:
    """A scheduler at the address of the page, without a network."""
    import distributed

    names["__builtins__"] = __builtins__
    found = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    names["_cluster"] = found
    real = distributed.Client
    names["_undo"] = lambda: (setattr(distributed, "Client", real), found.close())
    distributed.Client = lambda address: real(found)  # type: ignore[misc,assignment]


def batch(folder: Path, names: dict[str, Any]) -> None:
    (folder / "models").mkdir(exist_ok=True)
    tonnx.export(
        net(), torch.rand(1, 3, 64, 64), folder / "models/a.onnx", input_names=["data"], dynamic_axes={"data": [2, 3]}
    )
    tonnx.export(net(), torch.rand(1, 3, 64, 64), folder / "detector.onnx", input_names=["images"])


def own_operator(folder: Path, names: dict[str, Any]) -> None:
    import onnx
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Scale", ["x"], ["y"], domain="my.domain", alpha=3.0)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "own.onnx")


_libraries: list[Any] = []  # operators live as long as theirs


def library(folder: Path, names: dict[str, Any]) -> None:
    if not _libraries:
        made = torch.library.Library("mylib", "FRAGMENT")  # type: ignore[no-untyped-call]
        made.define("scale(Tensor x, float alpha) -> Tensor")
        made.impl("scale", lambda x, alpha: x * alpha, "CompositeExplicitAutograd")
        torch.library.register_fake("mylib::scale", lambda x, alpha: torch.empty_like(x), lib=made)
        _libraries.append(made)


def shared_library(folder: Path, names: dict[str, Any]) -> None:
    """libtonnx.so is found by its name alone, as if it were installed: it is loaded already."""
    build = Path(os.environ.get("TONNX_CLI", REPOSITORY / "build/release/tonnx")).parent
    ctypes.CDLL(str(build / "libtonnx.so"))


SETUPS = {
    f.__name__: f
    for f in (
        fixed_net,
        no_converters,
        loop,
        pickled,
        large,
        checkpoint,
        torchvision,
        with_width,
        own_operator,
        library,
        script,
        module,
        cluster,
        batch,
        shared_library,
    )
}

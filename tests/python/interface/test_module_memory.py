"""The weights of a module in memory are its own, unless it is asked for views of the mapped file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from models import feeds_of, floats, make_model, random_tensor, residual_net, runtime_run
from onnx import TensorProto, helper

import tonnx


def values(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def external(source: onnx.ModelProto, path: str) -> None:
    onnx.save(source, path, save_as_external_data=True, location=f"{path}.data", size_threshold=0)


def mapped_files() -> str:
    return Path("/proc/self/maps").read_text()


# The first is what happens when a model is exported over its source.
CUT_SHORT = """
import sys, torch, tonnx
model = tonnx.convert("model." + sys.argv[1])
x = torch.load("x.pt")
want = model(x)
for path in sys.argv[2:]:
    open(path, "wb").close()
assert torch.equal(model(x), want)
"""


@pytest.mark.parametrize(
    ("ending", "files"),
    [("onnx", ["model.onnx"]), ("onnx", ["model.onnx", "model.onnx.data"]), ("pt2", ["model.pt2"])],
    ids=["inside", "external", "program"],
)
def test_a_file_that_is_cut_short(ending: str, files: list[str]) -> None:
    source = residual_net()
    x = torch.from_numpy(feeds_of(source)["image"])
    torch.save(x, "x.pt")
    if ending == "pt2":
        torch.export.save(torch.export.export(tonnx.convert(source), (x,)), "model.pt2")
    elif len(files) > 1:
        external(source, "model.onnx")
    else:
        onnx.save(source, "model.onnx")
    done = subprocess.run([sys.executable, "-c", CUT_SHORT, ending, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"


@pytest.mark.parametrize("is_external", [False, True], ids=["inside", "external"])
def test_a_file_that_is_written_to(is_external: bool) -> None:
    source = residual_net()
    external(source, "model.onnx") if is_external else onnx.save(source, "model.onnx")
    feeds = feeds_of(source)
    want = torch.from_numpy(runtime_run(Path("model.onnx"), feeds)[0])
    model, views = tonnx.convert("model.onnx"), tonnx.convert("model.onnx", mmap=True)
    x = torch.from_numpy(feeds["image"])
    torch.testing.assert_close(model(x), want)
    torch.testing.assert_close(views(x), want)
    before = values(views)
    file = Path("model.onnx.data" if is_external else "model.onnx")
    with file.open("r+b") as f:
        f.write(b"\1" * file.stat().st_size)
    torch.testing.assert_close(model(x), want)
    assert any(not torch.equal(tensor, before[name]) for name, tensor in views.state_dict().items())


def test_only_a_mapped_model_keeps_the_file_open() -> None:
    onnx.save(residual_net(), "of_this_test.onnx")
    model = tonnx.convert("of_this_test.onnx")
    assert "of_this_test.onnx" not in mapped_files()
    views = tonnx.convert("of_this_test.onnx", mmap=True)
    assert "of_this_test.onnx" in mapped_files()
    torch.testing.assert_close(values(model), values(views))


@pytest.mark.parametrize("mmap", [False, True])
def test_training_changes_no_source(mmap: bool) -> None:
    onnx.save(residual_net(), "model.onnx")
    content = Path("model.onnx").read_bytes()
    kept = bytes(bytearray(content))
    model = tonnx.convert("model.onnx", mmap=True) if mmap else tonnx.convert(content)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.zero_()
    assert content == kept
    assert Path("model.onnx").read_bytes() == kept


def test_weights_at_one_place_of_a_file_are_not_one() -> None:
    Path("w.bin").write_bytes(np.arange(8, dtype=np.float32).tobytes())
    weights = []
    for name, offset in (("a", 0), ("b", 0), ("c", 4)):
        tensor = TensorProto(name=name, dims=[4], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
        for key, value in {"location": "w.bin", "offset": str(offset), "length": "16"}.items():
            tensor.external_data.add(key=key, value=value)
        weights.append(tensor)
    nodes = [
        helper.make_node("Mul", ["x", "a"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Add", ["q", "c"], ["y"]),
    ]
    model = make_model(nodes, [floats("x", 4)], [floats("y", 4)], weights)
    Path("model.onnx").write_bytes(model.SerializeToString())
    module: Any = tonnx.convert("model.onnx")
    with torch.no_grad():
        module.a.fill_(0)
    assert module(torch.ones(4)).tolist() == [1, 3, 5, 7]


def test_many_weights_at_one_place_do_not_fill_the_memory() -> None:
    count, size = 100, 4 << 20
    Path("w.bin").write_bytes(bytes(size))
    weights, nodes, last = [], [], "x"
    for i in range(count):
        tensor = TensorProto(name=f"w{i}", dims=[size // 4], data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="w.bin")
        weights.append(tensor)
        nodes.append(helper.make_node("Add", [last, f"w{i}"], [f"y{i}"]))
        last = f"y{i}"
    source = make_model(nodes, [floats("x", size // 4)], [floats(last, size // 4)], weights)
    Path("model.onnx").write_bytes(source.SerializeToString())
    with pytest.raises(tonnx.Error, match="memory"):
        tonnx.convert("model.onnx")
    tonnx.convert("model.onnx", mmap=True)
    tonnx.convert("model.onnx", limits={"memory": "1G"})


def test_what_cannot_be_mapped_is_an_error() -> None:
    onnx.save(residual_net(), "model.onnx")
    with pytest.raises(tonnx.Error, match="mmap is for a model in a file"):
        tonnx.convert(Path("model.onnx").read_bytes(), mmap=True)
    with pytest.raises(tonnx.Error, match="mmap is for a module in memory"):
        tonnx.convert("model.onnx", "model.py", mmap=True)  # type: ignore[call-overload]
    assert not Path("model.py").exists()


def test_weights_are_released_one_by_one() -> None:
    """A model that is made smaller does not keep the memory of what it was."""
    rng = np.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(rng.random(4 << 20, dtype=np.float32), f"w{i}") for i in range(4)]
    nodes = [helper.make_node("Add", [f"y{i - 1}" if i else "x", f"w{i}"], [f"y{i}"]) for i in range(4)]
    onnx.save(make_model(nodes, [floats("x", 4 << 20)], [floats("y3", 4 << 20)], weights), "model.onnx")

    def resident() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) // 1024

    module = tonnx.convert("model.onnx")
    names = list(module.state_dict())
    before = resident()
    for name in names[:3]:
        setattr(module, name, torch.nn.Parameter(torch.zeros(1)))
    assert resident() < before - 3 * 16 + 8


def test_layers_of_equal_arguments_share_nothing() -> None:
    """They are made as copies of one another, without their weights."""
    rng = np.random.default_rng(0)
    weights = [random_tensor(rng, name, 4, 4, 3, 3) for name in ("first", "second")]
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["y"], pads=[1] * 4),
        helper.make_node("Conv", ["y", "second"], ["z"], pads=[1] * 4),
    ]
    model = tonnx.convert(make_model(nodes, [floats("x", 1, 4, 6, 6)], [floats("z", 1, 4, 6, 6)], weights))
    first, second = (layer for layer in model.modules() if isinstance(layer, torch.nn.Conv2d))
    for name, value in vars(first).items():
        assert name in vars(second)
        assert not isinstance(value, dict | list | set | torch.Tensor) or value is not vars(second)[name]
    assert [type(v) for v in vars(first).values()] == [type(v) for v in vars(torch.nn.Conv2d(4, 4, 3)).values()]
    calls: list[Any] = []
    first.register_forward_hook(lambda *_: calls.append(1))
    model(torch.zeros(1, 4, 6, 6))
    assert len(calls) == 1
    assert not torch.equal(first.weight, second.weight)


def test_layers_of_another_model_share_nothing() -> None:
    """Nor does a model that was made before change one that is made of the same layers, whatever became of it."""
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)]
    source = make_model(
        nodes, [floats("x", 1, 4, 6, 6)], [floats("y", 1, 4, 6, 6)], [random_tensor(rng, "w", 4, 4, 3, 3)]
    )
    want = tonnx.convert(source)
    used = tonnx.convert(source).double().train()
    (layer,) = (part for part in used.modules() if isinstance(part, torch.nn.Conv2d))
    layer.register_forward_hook(lambda *_: None)
    layer.padding = (0, 0)
    layer.register_buffer("more", torch.zeros(1))
    torch.set_default_dtype(torch.float64)
    try:
        other = tonnx.convert(source)
    finally:
        torch.set_default_dtype(torch.float32)
    x = torch.ones(1, 4, 6, 6)
    for model in (other, tonnx.convert(source)):
        assert str(model) == str(want)
        assert not any(part.training for part in model.modules())
        assert list(model.state_dict()) == list(want.state_dict())
        assert torch.equal(model(x), want(x))

"""Files of weights alone as sources: listed, converted into one another, and put in the place of a model's own."""

from __future__ import annotations

import argparse
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import safetensors.torch
import torch
from torch import nn

import tonnx

Cli = Callable[..., Any]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.fc = nn.Linear(4, 2)
        self.register_buffer("shift", torch.rand(2))
        self.register_buffer("scratch", torch.rand(2), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.fc(self.conv(x).relu().mean((2, 3))) + self.shift
        return result


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and torch.equal(a[k], b[k]) for k in a)


def converted(cli: Cli, source: str, *options: str) -> dict[str, torch.Tensor]:
    done = cli("convert", source, "out.safetensors", *options)
    assert done.returncode == 0, done.stderr
    return safetensors.torch.load_file("out.safetensors")


def state_of_every_type() -> dict[str, torch.Tensor]:
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    kinds = [
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int8,
        torch.uint8,
        torch.int16,
        torch.int32,
        torch.int64,
    ]
    state = {f"kind.{str(kind)[6:]}": base.to(kind) for kind in kinds}
    state["bool"] = base > 7
    state["uint16"] = torch.tensor([1, 60000], dtype=torch.uint16)
    state["float8"] = base.to(torch.float8_e4m3fn)
    state["complex"] = torch.tensor([1 + 2j, -3j])
    state["scalar"] = torch.tensor(3.5)
    state["empty"] = torch.zeros(0, 3)
    state["turned"] = base.t()
    state["part"] = base[1:3, ::2]
    state["spread"] = torch.tensor([2.0]).expand(5)
    state["ümlaut/ keys"] = base
    return state


def test_a_state_dict_becomes_safetensors_and_back(cli: Cli) -> None:
    state = state_of_every_type()
    torch.save(OrderedDict(state), "w.pth")
    assert same(converted(cli, "w.pth"), {name: tensor.contiguous() for name, tensor in state.items()})
    assert cli("convert", "out.safetensors", "back.pth").returncode == 0
    assert same(torch.load("back.pth", weights_only=True, mmap=True), state)
    tonnx.convert("out.safetensors", "again.pth")
    assert same(torch.load("again.pth", weights_only=True), state)


def test_parameters_and_tied_weights(cli: Cli, tmp_path: Path) -> None:
    net = Net()
    tied = {"a": net.fc.weight, "b": net.fc.weight.data, "c": net.shift}
    torch.save(tied, "w.pth")
    assert same(converted(cli, "w.pth"), {name: tensor.detach() for name, tensor in tied.items()})
    assert cli("convert", "w.pth", "copy.pth").returncode == 0
    with zipfile.ZipFile(tmp_path / "copy.pth") as archive:
        storages = [name for name in archive.namelist() if "/data/" in name]
    assert len(storages) == 2, "a and b are one storage"


def test_print_lists_names_types_and_shapes(cli: Cli) -> None:
    torch.save(Net().state_dict(), "w.pth")
    wanted = [
        "conv.weight: float32[4, 3, 3, 3]",
        "conv.bias: float32[4]",
        "fc.weight: float32[2, 4]",
        "fc.bias: float32[2]",
        "shift: float32[2]",
    ]
    listed = {line.split(":")[0]: line for line in cli("print", "w.pth").stdout.splitlines()}
    assert sorted(listed.values()) == sorted(wanted)
    converted(cli, "w.pth")
    assert sorted(cli("print", "out.safetensors").stdout.splitlines()) == sorted(wanted)


def checkpoint(net: nn.Module) -> dict[str, Any]:
    optimiser = torch.optim.Adam(net.parameters())
    net(torch.rand(1, 3, 8, 8)).sum().backward()
    optimiser.step()
    return {"epoch": 12, "model": net.state_dict(), "optimizer": optimiser.state_dict(), "best": 0.5, "name": "run"}


def test_the_checkpoint_of_a_trainer(cli: Cli) -> None:
    net = Net()
    torch.save(checkpoint(net), "c.pth")
    assert same(converted(cli, "c.pth"), net.state_dict())
    text = cli("print", "c.pth").stdout
    assert "optimizer.state.0.exp_avg: float32[4, 3, 3, 3]" in text
    assert "# epoch = 12" in text and "# name = 'run'" in text
    everything = converted(cli, "c.pth", "--part", ".")
    assert "model.fc.bias" in everything and "optimizer.state.3.step" in everything


def test_several_dicts_of_weights_need_a_part(cli: Cli) -> None:
    net, other = Net(), Net()
    torch.save({"model": net.state_dict(), "ema": other.state_dict()}, "c.pth")
    done = cli("convert", "c.pth", "out.safetensors")
    assert done.returncode == 1 and "several dicts of weights: model, ema; --part says which" in done.stderr
    assert same(converted(cli, "c.pth", "--part", "ema"), other.state_dict())
    tonnx.convert("c.pth", "m.safetensors", part="model")
    assert same(safetensors.torch.load_file("m.safetensors"), net.state_dict())
    done = cli("convert", "c.pth", "x.safetensors", "--part", "emo")
    assert done.returncode == 1 and "no part 'emo' with weights; it has: ema, model" in done.stderr


def test_what_would_have_to_be_executed_is_refused_by_its_name(cli: Cli) -> None:
    net = Net()
    torch.save({"model": net.state_dict(), "args": argparse.Namespace(lr=0.1)}, "c.pth")
    done = cli("convert", "c.pth", "out.safetensors")
    assert done.returncode == 2
    assert "asks for argparse.Namespace (in 'args')" in done.stderr and "--part model" in done.stderr
    assert not Path("out.safetensors").exists()
    assert same(converted(cli, "c.pth", "--part", "model"), net.state_dict())


def test_a_pickled_module_is_refused_and_listed(cli: Cli) -> None:
    net = Net()
    torch.save(net, "m.pth")
    done = cli("convert", "m.pth", "out.safetensors")
    assert done.returncode == 2 and "asks for test_weights_in.Net" in done.stderr
    names = [line.split(":")[0] for line in cli("print", "m.pth").stdout.splitlines() if not line.startswith("#")]
    assert sorted(names) == sorted(net.state_dict())
    assert same(converted(cli, "m.pth", "--part", "."), net.state_dict())


class Evil:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return Path.touch, ("executed",)


def test_nothing_is_executed(cli: Cli) -> None:
    torch.save({"w": torch.rand(2), "x": Evil()}, "e.pth")
    assert cli("convert", "e.pth", "out.safetensors").returncode == 2
    assert "w: float32[2]" in cli("print", "e.pth").stdout
    assert not Path("executed").exists()


def test_older_forms_are_refused_by_name(cli: Cli) -> None:
    torch.save(Net().state_dict(), "old.pth", _use_new_zipfile_serialization=False)
    done = cli("convert", "old.pth", "out.safetensors")
    assert done.returncode == 2 and "the legacy form of torch.save, of before PyTorch 1.6" in done.stderr
    Path("tar.pth").write_bytes(b"\0" * 257 + b"ustar" + b"\0" * 300)
    done = cli("print", "tar.pth")
    assert done.returncode == 2 and "a tar file" in done.stderr
    torch.jit.save(torch.jit.trace(nn.ReLU(), torch.rand(2)), "script.pth")
    done = cli("print", "script.pth")
    assert done.returncode == 2 and "a TorchScript file" in done.stderr
    Path("text.pth").write_text("hello")
    done = cli("print", "text.pth")
    assert done.returncode == 1 and "is no file of torch.save" in done.stderr


def run(path: str, x: torch.Tensor) -> torch.Tensor:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])


@pytest.mark.parametrize("ending", ["pth", "safetensors"])
@pytest.mark.parametrize("source", ["net.onnx", "net.pt2"])
def test_other_weights_in_the_same_graph(cli: Cli, ending: str, source: str) -> None:
    net, tuned, x = Net().eval(), Net().eval(), torch.rand(1, 3, 8, 8)
    tuned.scratch = net.scratch
    if source == "net.onnx":
        tonnx.export(net, (x,), source)
    else:
        torch.export.save(torch.export.export(net, (x,)), source)
    if ending == "pth":
        torch.save({"module." + name: tensor for name, tensor in tuned.state_dict().items()}, "w.pth")
    else:
        safetensors.torch.save_file(tuned.state_dict(), "w.safetensors")
    done = cli("convert", source, "new.onnx", "--weights", f"w.{ending}")
    assert done.returncode == 0, done.stderr
    torch.testing.assert_close(run("new.onnx", x), tuned(x))
    module = tonnx.convert(source, weights=f"w.{ending}")
    torch.testing.assert_close(module(x), tuned(x))
    if source == "net.onnx":
        before, after = onnx.load(source), onnx.load("new.onnx")
        assert [node.op_type for node in before.graph.node] == [node.op_type for node in after.graph.node]


def test_weights_that_do_not_fit_are_told_all_at_once(cli: Cli) -> None:
    net, x = Net().eval(), torch.rand(1, 3, 8, 8)
    tonnx.export(net, (x,), "net.onnx")
    state = net.state_dict()
    del state["fc.bias"]
    state["head.weight"] = torch.rand(3)
    state["conv.bias"] = torch.rand(5)
    state["fc.weight"] = state["fc.weight"].half()
    torch.save(state, "w.pth")
    done = cli("convert", "net.onnx", "new.onnx", "--weights", "w.pth")
    assert done.returncode == 1 and not Path("new.onnx").exists()
    for said in (
        "the file lacks fc.bias",
        "the model has no head.weight",
        "conv.bias is float32[5] in the file and float32[4] in the model",
        "fc.weight is float16[2, 4] in the file and float32[2, 4] in the model",
    ):
        assert said in done.stderr
    with pytest.raises(tonnx.Error, match=r"the file lacks fc\.bias"):
        tonnx.convert("net.onnx", weights="w.pth")


def rewritten(source: str, target: str, edit: Callable[[str, bytes], bytes | None]) -> None:
    """A copy of a file of torch.save with other entries; None leaves one out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = edit(name, old.read(name))
            if data is not None:
                new.writestr(name, data)


BOMB = (
    b"\x80\x02"
    + b"}q\x00"
    + b"".join(
        b"}(X\x01\x00\x00\x00ah" + bytes([i]) + b"X\x01\x00\x00\x00bh" + bytes([i]) + b"uq" + bytes([i + 1])
        for i in range(60)
    )
)
PICKLES = {
    "deep": b"\x80\x02" + b"]" * 5000 + b"a" * 4999 + b".",
    "cycle": b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.",
    "doubling": BOMB + b"(" + b"1" + b"h\x3c" + b".",
    "truncated": b"\x80\x02}(X\x01\x00",
    "not a pickle": b"hello",
    "memo": b"\x80\x02h\x05.",
}


@pytest.mark.parametrize("kind", PICKLES)
def test_hostile_pickles(cli: Cli, kind: str) -> None:
    torch.save({"w": torch.rand(2)}, "w.pth")
    rewritten("w.pth", "bad.pth", lambda name, data: PICKLES[kind] if name.endswith("data.pkl") else data)
    for arguments in (("print", "bad.pth"), ("convert", "bad.pth", "out.safetensors")):
        done = cli(*arguments)
        assert done.returncode in (1, 2) and done.stderr.startswith("error: "), done.stderr
    assert not Path("out.safetensors").exists()


def test_storages_that_lie(cli: Cli) -> None:
    torch.save({"w": torch.rand(2, 3)}, "w.pth")
    edits: dict[str, Callable[[str, bytes], bytes | None]] = {
        "has 4 of 24 bytes": lambda name, data: data[:4] if name.endswith("data/0") else data,
        "is missing": lambda name, data: None if name.endswith("data/0") else data,
        "it reaches element": lambda name, data: data.replace(b"K\x02K\x03\x86", b"K\x09K\x09\x86"),
        "no opcode": lambda name, data: data.replace(b"FloatStorage\n", b"FloatStorage\n\xff"),
        "negative stride": lambda name, data: data.replace(b"K\x03K\x01\x86", b"J\xff\xff\xff\xffK\x01\x86"),
    }
    for said, edit in edits.items():
        rewritten("w.pth", "bad.pth", edit)
        done = cli("convert", "bad.pth", "out.safetensors")
        assert done.returncode == 1 and said in done.stderr, (said, done.stderr)


def header(text: str, data: bytes = b"\0" * 8) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode() + data


ENTRY = '{"dtype":"F32","shape":[%s],"data_offsets":[%s]}'
SAFETENSORS = {
    "ends too early": b"\1\0\0",
    "its header has 1152921504606846976 bytes": struct.pack("<Q", 1 << 60) + b"{}",
    "is no table": header("[]"),
    "'a' in the file overlaps": header('{{"b":{},"a":{}}}'.format(ENTRY % ("1", "0,4"), ENTRY % ("2", "0,8"))),
    "'a' in the file does not follow": header('{"a":%s}' % (ENTRY % ("1", "4,8"))),
    "lies outside": header('{"a":%s}' % (ENTRY % ("3", "0,12"))),
    "its sizes take 12 bytes, and its data has 8": header('{"a":%s}' % (ENTRY % ("3", "0,8"))),
    "4 bytes that belong to no tensor": header('{"a":%s}' % (ENTRY % ("1", "0,4"))),
    "two tensors 'a'": header('{{"a":{},"a":{}}}'.format(ENTRY % ("1", "0,4"), ENTRY % ("1", "4,8"))),
    "no number from 0 on": header('{"a":%s}' % (ENTRY % ("-1", "0,8"))),
    "tensors of type F99 are not supported": header('{"a":%s}' % (ENTRY % ("2", "0,8"))).replace(b"F32", b"F99"),
    "overflow": header('{"a":%s}' % (ENTRY % ("4611686018427387904,4611686018427387904", "0,8"))),
}


@pytest.mark.parametrize("said", SAFETENSORS)
def test_hostile_safetensors(cli: Cli, said: str) -> None:
    Path("bad.safetensors").write_bytes(SAFETENSORS[said])
    done = cli("convert", "bad.safetensors", "out.pth")
    assert done.returncode in (1, 2) and done.stderr.startswith("error: "), done.stderr
    assert said in done.stderr or said == "overflow", done.stderr
    assert not Path("out.pth").exists()


def test_a_global_of_another_name_is_only_a_name(cli: Cli) -> None:
    data = pickle.dumps({"w": print}, protocol=4)
    torch.save({"w": torch.rand(2)}, "w.pth")
    rewritten("w.pth", "bad.pth", lambda name, old: data if name.endswith("data.pkl") else old)
    done = cli("convert", "bad.pth", "out.safetensors")
    assert done.returncode == 2 and "asks for builtins.print (in 'w')" in done.stderr

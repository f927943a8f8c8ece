"""The program that the front end hands to the core, compared with what torch.export.save writes."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tonnx import Error
from tonnx._export.program.program import program_json

Example = tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]


def saved_by_torch(exported: torch.export.ExportedProgram) -> tuple[Any, Any, Any]:
    buffer = io.BytesIO()
    torch.export.save(exported, buffer)
    with zipfile.ZipFile(buffer) as archive:
        root = archive.namelist()[0].split("/")[0]
        names = ("models/model", "data/weights/model_weights_config", "data/constants/model_constants_config")
        program, weights, constants = (json.loads(archive.read(f"{root}/{n}.json")) for n in names)
    return program, weights["config"], constants["config"]


def without_other_metadata(value: Any) -> Any:
    """The same but for the metadata of nodes that the core does not read, and the folders of this machine."""
    if isinstance(value, dict):
        if "target" in value and "metadata" in value:
            kept = {k: v for k, v in value["metadata"].items() if k in ("stack_trace", "nn_module_stack")}
            if "stack_trace" in kept:
                kept["stack_trace"] = re.sub(r'(?<=File ")[^"]*/', "", kept["stack_trace"])
            value = {**value, "metadata": kept}
        return {k: without_other_metadata(v) for k, v in value.items()}
    return [without_other_metadata(v) for v in value] if isinstance(value, list) else value


def assert_as_torch_writes_it(exported: torch.export.ExportedProgram) -> dict[str, Any]:
    program, weights, constants = saved_by_torch(exported)
    text, storages = program_json(exported)
    ours = json.loads(text)
    for key in ("graph", "signature"):
        assert without_other_metadata(ours["graph_module"][key]) == without_other_metadata(program["graph_module"][key])
    for key in ("opset_version", "range_constraints", "schema_version", "verifiers", "torch_version"):
        assert ours[key] == program[key]
    for mine, theirs in ((ours["weights"], weights), (ours["constants"], constants)):
        for name, payload in mine.items():
            assert payload["tensor_meta"] == theirs[name]["tensor_meta"]
            assert payload["is_param"] == theirs[name]["is_param"]
            assert payload["path_name"] in storages
    return ours


class Everything(nn.Module):
    """Buffers of both kinds, mutation, lists, several results, branches, sizes, constants of all types."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scale", torch.ones(4), persistent=False)

    def forward(self, x, pair, k=3, flag=True, name="a", nothing=None):
        first, second = torch.split(self.linear(x), 2, 1)
        values, _ = first.topk(1)
        self.count.add_(1)
        branch = torch.cond(x.sum() > 0, lambda x: x + self.scale, lambda x: x * 2, (x,))
        y = torch.full((2, x.size(0)), float("-inf"), dtype=torch.float16)
        z = x[:, None, [0, 2]]
        w = torch.where(x > 0, x, torch.tensor(float("nan"))).to(memory_format=torch.contiguous_format)
        return {
            "values": values * pair["q"].sum() * k,
            "sizes": [x.view(x.size(0) * 2, -1), x.size(0)],
            "nothing": nothing,
            "branch": branch + torch.tensor([1.0, 2, 3, 4]),
            "others": (x, y, z, w, second.amax((0, 1), keepdim=True), torch.cat([x, x])),
        }


class Loop(nn.Module):
    def forward(self, x):
        i = torch.zeros((), dtype=torch.int64)
        return torch.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5 - 1), (i, x))[1]


class DataDependent(nn.Module):
    def forward(self, x):
        found = torch.nonzero(x)
        return found * 2, torch.masked_select(x, x > 0), x.item() if x.numel() == 1 else x.amax()


class Views(nn.Module):
    """Weights that are views of one storage, with offsets and strides of their own."""

    def __init__(self) -> None:
        super().__init__()
        base = torch.randn(6, 4)
        self.a = nn.Parameter(base[1:3])
        self.b = nn.Parameter(base[3:].t())
        self.c = nn.Parameter(torch.zeros(0))

    def forward(self, x):
        return x @ self.a.t(), x @ self.b, self.c


class Complex(nn.Module):
    def forward(self, x):
        return torch.view_as_real(torch.fft.rfft(x) * (1 + 2j)), x.to(torch.complex64).abs()


BATCH = torch.export.Dim("batch")
EXAMPLES: dict[str, Callable[[], Example]] = {
    "everything": lambda: (
        Everything(),
        (torch.randn(3, 4), {"q": torch.randn(2)}),
        {"k": 4, "flag": False, "name": "b", "nothing": None},
        {"x": {0: BATCH}, "pair": {"q": None}, "k": None, "flag": None, "name": None, "nothing": None},
    ),
    "loop": lambda: (Loop(), (torch.rand(3, 4),), {}, None),
    "data dependent": lambda: (DataDependent(), (torch.rand(3, 4),), {}, None),
    "views": lambda: (Views(), (torch.rand(3, 4),), {}, None),
    "complex": lambda: (Complex(), (torch.rand(3, 8),), {}, None),
    "lstm": lambda: (nn.LSTM(4, 5, 2, bidirectional=True), (torch.rand(3, 2, 4),), {}, None),
    "attention": lambda: (
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        (torch.rand(2, 3, 8),),
        {},
        ({0: BATCH}, None, None)[:1],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("dialect", ["training", "core"])
def test_program_is_what_torch_saves(name: str, dialect: str) -> None:
    module, args, kwargs, shapes = EXAMPLES[name]()
    exported = torch.export.export(module.eval(), args, kwargs, dynamic_shapes=shapes)
    assert_as_torch_writes_it(exported if dialect == "training" else exported.run_decompositions())


def test_a_second_getitem_is_the_first_value() -> None:
    class Twice(nn.Module):
        def forward(self, x):
            return torch.split(x, 2)

    exported = torch.export.export(Twice(), (torch.rand(4),))
    graph = exported.graph
    output = next(n for n in graph.nodes if n.op == "output")
    first = output.args[0][0]
    with graph.inserting_before(output):
        again = graph.call_function(first.target, first.args)
    again.meta = dict(first.meta)
    graph.call_function(torch.ops.aten.relu.default, (again,)).meta = dict(first.meta)
    ours = json.loads(program_json(exported)[0])
    relu = next(n for n in ours["graph_module"]["graph"]["nodes"] if n["target"] == "torch.ops.aten.relu.default")
    assert relu["inputs"][0]["arg"] == {"as_tensor": {"name": first.name}}


def test_weights_are_not_copied_and_tied_ones_are_one() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    text, storages = program_json(torch.export.export(net, (torch.rand(2, 3),)))
    weights = json.loads(text)["weights"]
    assert weights["0.weight"]["path_name"] == weights["1.weight"]["path_name"]
    address, size, _ = storages[weights["0.weight"]["path_name"]]
    assert address == net[0].weight.data_ptr()
    assert size == 36
    assert len(storages) == 3


def test_weights_without_values_are_refused_by_name() -> None:
    with torch.device("meta"):
        net = nn.Linear(3, 3)
    exported = torch.export.export(net, (torch.rand(2, 3, device="meta"),))
    with pytest.raises(Error, match="the weight 'weight' has no values"):
        program_json(exported)

"""A stand-in for the core that keeps the program it is given, so that what the front end says can be looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tonnx import _core


class RecordedProgram:
    """What `_core.Program` is to the front end, without any conversion."""

    last: RecordedProgram
    missing: Callable[[RecordedProgram], list[tuple[str, int, list[str], str]]]

    def __init__(self, program: dict[str, Any], storages: dict[str, tuple[int, int, object]]) -> None:
        self.program = program
        self.storages = storages

    @staticmethod
    def read(program: bytes, storages: dict[str, tuple[int, int, object]], rolls_loops: bool) -> RecordedProgram:
        RecordedProgram.last = RecordedProgram(json.loads(program), storages)
        return RecordedProgram.last

    def unsupported(self, opset: int) -> list[tuple[str, int, list[str], str]]:
        return RecordedProgram.missing(self)

    def write_onnx(self, path: str, **options: Any) -> None: ...

    def onnx_bytes(self, **options: Any) -> bytes:
        return b"model"

    def onnx_text(self, **options: Any) -> str:
        return "graph"

    @property
    def graph(self) -> dict[str, Any]:
        return self.program["graph_module"]["graph"]

    @property
    def symbols(self) -> dict[str, str]:
        return self.program["tonnx"]["symbols"]

    def calls(self, target: str = "tonnx.onnx_op") -> list[dict[str, Any]]:
        """The arguments of each call of an operator, by name; attributes are read."""
        result = []
        for node in self.graph["nodes"]:
            if node["target"] == target:
                arguments = {i["name"]: next(iter(i["arg"].values())) for i in node["inputs"]}
                if "attributes" in arguments:
                    arguments["attributes"] = json.loads(arguments["attributes"])
                result.append(arguments)
        return result


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[RecordedProgram]]:
    monkeypatch.setattr(_core, "Program", RecordedProgram)
    RecordedProgram.missing = lambda self: []
    yield RecordedProgram


def outcome(call: Callable[[], Any]) -> str:
    """The text of the error that the call must end with."""
    import tonnx

    with pytest.raises(tonnx.Error) as caught:
        call()
    return str(caught.value)

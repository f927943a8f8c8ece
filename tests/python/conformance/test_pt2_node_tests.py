"""ONNX's node tests through a .pt2 file: written, loaded by PyTorch, run; and the types that it says are those of the run.

A few tests of each operator; all of them with TONNX_ALL_NODE_TESTS=1.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import KNOWN_FAILURES
from known_failures import first_line, judge, read
from node_tests import from_torch, node_tests, numpy_value, outputs_difference, sample, to_torch
from pt2_files import load, wrong_types

import tonnx

KNOWN_PT2 = Path(__file__).with_name("known_failures_pt2.txt")
KNOWN = read(KNOWN_FAILURES) | read(KNOWN_PT2)


def why_it_fails(case: Any) -> str | None:
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            tonnx.convert(case.model, "model.pt2")
            program = load("model.pt2")
            module = program.module()
            for inputs, outputs in case.data_sets:
                args = tuple(to_torch(numpy_value(x)) for x in inputs)
                got = module(*args)
                got = tuple(map(from_torch, got)) if isinstance(got, tuple) else from_torch(got)
                why = outputs_difference(got, [numpy_value(x) for x in outputs], case.rtol, case.atol)
                if why:
                    return why
                if wrong := wrong_types(program, args):
                    return "; ".join(wrong)
    except Exception as error:
        return first_line(error)
    return None


@pytest.mark.parametrize("name", sample())
def test_node(name: str) -> None:
    why = why_it_fails(node_tests()[name])
    judge(why, KNOWN.get(name))


def test_list_names_only_tests_that_exist() -> None:
    listed = read(KNOWN_PT2)
    assert sorted(listed.keys() - node_tests().keys()) == []
    assert sorted(listed.keys() & read(KNOWN_FAILURES).keys()) == []

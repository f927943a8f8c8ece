"""Conformance: every ONNX backend node test through tonnx.convert, against the checked-in list of known failures."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from conftest import KNOWN_FAILURES, NODE_TEST
from known_failures import first_line, judge, read
from node_tests import from_torch, node_tests, numpy_value, outputs_difference, to_torch

import tonnx

KNOWN = read(KNOWN_FAILURES)


def why_it_fails(case: Any) -> str | None:
    """None where every data set gives the expected outputs, else one line that says why not."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            module = tonnx.convert(case.model)
            for inputs, outputs in case.data_sets:
                got = module(*(to_torch(numpy_value(x)) for x in inputs))
                got = tuple(map(from_torch, got)) if isinstance(got, tuple) else from_torch(got)
                why = outputs_difference(got, [numpy_value(x) for x in outputs], case.rtol, case.atol)
                if why:
                    return why
    except Exception as error:
        return first_line(error)
    return None


@pytest.mark.parametrize("name", sorted(node_tests()))
def test_node(name: str, record_property: Any, request: pytest.FixtureRequest) -> None:
    why = why_it_fails(node_tests()[name])
    record_property(NODE_TEST, (name, why))
    if request.config.getoption("--update-known-failures"):
        return
    judge(why, KNOWN.get(name))


def test_list_names_only_tests_that_exist() -> None:
    assert sorted(KNOWN.keys() - node_tests().keys()) == []

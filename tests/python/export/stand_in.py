"""Operators that torch.export takes apart or cannot trace: a stand-in of the same schema is exported, and renamed after."""

import re

import torch

LIBRARY = torch.library.Library("tonnx_tests", "DEF")
STAND_INS = {}  # the overload that is traced: the one that the program is to have


def stand_in(overload, fake=None):
    """What to call instead of `overload`. `fake` gives results of the right shapes; without it `overload` itself does."""
    name = re.sub(r"\W+", "_", str(overload))
    if not hasattr(torch.ops.tonnx_tests, name):
        schema = str(overload._schema)
        LIBRARY.define(name + schema[schema.index("(") :])
        LIBRARY.impl(name, overload, "CPU")
        torch.library.register_fake(f"tonnx_tests::{name}", fake or overload, lib=LIBRARY)
    traced = getattr(torch.ops.tonnx_tests, name).default
    STAND_INS[traced] = overload
    return traced


def rename(program):
    """Each stand-in of an exported program becomes the operator that it stands for."""
    for node in program.graph.nodes:
        node.target = STAND_INS.get(node.target, node.target) if node.op == "call_function" else node.target

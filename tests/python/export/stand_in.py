"""Operators that torch.export takes apart or cannot trace: a stand-in of the same schema is exported, and renamed after."""

import re

import torch
from torch.utils._pytree import tree_map_only

LIBRARY = torch.library.Library("tonnx_stand_ins", "DEF")
STAND_INS = {}  # the overload that is traced: the one that the program is to have


def overload_of(name):
    """The operator of a row's name: `aten::add.Scalar`."""
    library, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, library), operator), overload or "default")


def stand_in(overload, fake=None):
    """What to call instead of `overload`. `fake` gives results of the right shapes; without it `overload` itself does."""
    name = re.sub(r"\W+", "_", str(overload))
    if not hasattr(torch.ops.tonnx_stand_ins, name):

        def copied(*args, **kwargs):  # views too: a stand-in promises none
            return tree_map_only(torch.Tensor, torch.clone, overload(*args, **kwargs))

        schema = str(overload._schema)
        LIBRARY.define(name + re.sub(r"Tensor\([^)]*\)", "Tensor", schema[schema.index("(") :]))
        LIBRARY.impl(name, copied, "CPU")
        torch.library.register_fake(f"tonnx_stand_ins::{name}", fake or copied, lib=LIBRARY)
    traced = getattr(torch.ops.tonnx_stand_ins, name).default
    STAND_INS[traced] = overload
    return traced


def calling(name, *args, fake=None, **kwargs):
    """A function of the tensors among the arguments that calls the operator once, and these tensors."""
    operator = stand_in(overload_of(name), fake)
    leaves, form = torch.utils._pytree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def call(*tensors):
        given = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        args, kwargs = torch.utils._pytree.tree_unflatten(given, form)
        return operator(*args, **kwargs)

    return call, [leaves[place] for place in places]


def rename(program):
    """Each stand-in of an exported program becomes the operator that it stands for."""
    for node in program.graph.nodes:
        node.target = STAND_INS.get(node.target, node.target) if node.op == "call_function" else node.target

"""Nodes of an ONNX file, with those of the graphs inside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def subgraphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(graph: Any) -> Iterator[Any]:
    """Those of the graphs inside nodes too."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from all_nodes(inner)

"""The nodes of an ONNX model, including those in subgraphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def subgraphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(graph: Any) -> Iterator[Any]:
    """All nodes of a graph, including those in subgraphs."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from all_nodes(inner)

"""Runs the graph of an exported program at given sizes: whether its shapes hold, and what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.fx import Interpreter, Node
from torch.utils import _pytree as pytree

from tonnx._export.sizes.questions import Symbols, value_at
from tonnx._replaced import replaced


class ShapesDiffer(Exception):
    """A node of the graph has another shape than the program says, or cannot run on fake tensors."""

    def __init__(self, node: Node, runs: bool) -> None:
        super().__init__(node.name)
        self.node = node
        self.runs = runs


def number_of(size: Any, symbols: Symbols) -> int | None:
    """A size of a program as a number, if it is known."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    try:
        number: int | None = value_at(size.node.expr, symbols)
    except ZeroDivisionError:
        return None
    return number


def _is_assertion(node: Node) -> bool:
    """Whether a node only checks an assumption of the trace."""
    name = getattr(node.target, "__name__", "")
    return node.op == "call_function" and name.startswith(("_assert", "sym_constrain_range", "_check"))


class _Replay(Interpreter):
    """Runs the nodes, except assertions."""

    def run_node(self, n: Node) -> Any:
        return None if _is_assertion(n) else super().run_node(n)


class _ShapeReplay(_Replay):
    """Runs the nodes on fake tensors, and compares their shapes with those of the program."""

    def __init__(self, module: torch.fx.GraphModule, symbols: Symbols) -> None:
        super().__init__(module)
        self._symbols = symbols

    def run_node(self, n: Node) -> Any:
        try:
            result = super().run_node(n)
        except Exception as failure:
            raise ShapesDiffer(n, runs=False) from failure
        if n.op == "call_function" and not _is_assertion(n) and not self._agrees(n.meta.get("val"), result):
            raise ShapesDiffer(n, runs=True)
        return result

    def _agrees(self, expected: Any, result: Any) -> bool:
        pairs = zip(pytree.tree_leaves(expected), pytree.tree_leaves(result))
        return all(self._has_shape(a, b) for a, b in pairs if isinstance(a, torch.Tensor))

    def _has_shape(self, expected: torch.Tensor, result: Any) -> bool:
        if not isinstance(result, torch.Tensor) or expected.dim() != result.dim():
            return False
        sizes = ((number_of(size, self._symbols), got) for size, got in zip(expected.shape, result.shape))
        return all(size is None or isinstance(got, torch.SymInt) or size == got for size, got in sizes)


def _placeholders(program: torch.export.ExportedProgram) -> list[Node]:
    return [n for n in program.graph.nodes if n.op == "placeholder"]


def fake_mode_of(program: torch.export.ExportedProgram) -> Any:
    """The FakeTensorMode that the program was traced in."""
    values: list[Any] = [n.meta.get("val") for n in _placeholders(program)]
    return next(v.fake_mode for v in values if isinstance(v, FakeTensor))


def require_shapes(program: torch.export.ExportedProgram, symbols: Symbols) -> None:
    """Throws where a node has another shape at these sizes than the program says, or cannot run."""
    inputs = {s.arg.name for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT}
    nodes = _placeholders(program)
    mode = fake_mode_of(program)
    with replaced(mode, "allow_non_fake_inputs", True), mode, torch.no_grad():
        values = [_without_values(n.meta.get("val"), symbols) if n.name in inputs else n.meta["val"] for n in nodes]
        _ShapeReplay(program.graph_module, symbols).run(*values)


def _without_values(value: Any, symbols: Symbols) -> Any:
    if isinstance(value, torch.SymInt):
        return number_of(value, symbols)
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty([number_of(s, symbols) or 0 for s in value.shape], dtype=value.dtype, device=value.device)


def outputs(program: torch.export.ExportedProgram, arguments: Sequence[Any]) -> list[Any]:
    """The outputs of the graph on these inputs, in flat order. Neither the inputs nor the model are changed."""
    given = iter(arguments)
    state = {**program.constants, **program.state_dict}
    values = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            argument = next(given)
            value: Any = spec.arg.value if isinstance(spec.arg, ConstantArgument) else argument
        else:
            value = state[spec.target]
        is_copied = isinstance(value, torch.Tensor) and spec.kind is not InputKind.PARAMETER
        values.append(value.clone() if is_copied else value)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return pytree.tree_leaves(_Replay(program.graph_module).run(*values))

"""Operators that tonnx lacks: PyTorch takes them apart, only these; what is left is named in an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def _operator_of(target: str) -> Any:
    """The operator that a target of the program names, or None."""
    parts = target.removeprefix("torch.ops.").split(".")
    if not target.startswith("torch.ops.") or len(parts) != 3:
        return None
    found: Any = torch.ops
    for part in parts:
        found = getattr(found, part, None)
    return found if isinstance(found, torch._ops.OpOverload) else None


def _decomposition_of(operator: Any, table: dict[Any, Callable[..., Any]]) -> Callable[..., Any] | None:
    if operator in table:
        return table[operator]
    if operator._can_decompose():

        def decompose(*args: Any, **kwargs: Any) -> Any:
            return operator.decompose(*args, **kwargs)

        return decompose
    return None


def _functional_form(operator: Any) -> Any:
    """The operator of which this one is the in-place form: run_decompositions makes the one of the other."""
    name = operator._schema.name.split("::")[1]
    packet = getattr(getattr(torch.ops, operator.namespace), name.removesuffix("_"), None)
    return getattr(packet, operator._overloadname, None) if name.endswith("_") else None


def decomposed(exported: torch.export.ExportedProgram, targets: Sequence[str]) -> torch.export.ExportedProgram | None:
    """The program with these operators written in terms of others; None where PyTorch knows no way for any of them."""
    from torch._decomp import decomposition_table, global_decomposition_table

    known = {**global_decomposition_table["post_autograd"], **decomposition_table}
    chosen = {}
    changes = False
    for operator in filter(None, map(_operator_of, targets)):
        functional = _functional_form(operator)
        changes = changes or functional is not None
        for form in filter(None, (operator, functional)):
            decomposition = _decomposition_of(form, known)
            if decomposition is not None:
                chosen[form] = decomposition
    return exported.run_decompositions(chosen) if chosen or changes else None


def unsupported_text(rows: Sequence[tuple[str, int, Sequence[str], str]]) -> str:
    """The error that lists each operator, how often it occurs, where, and why it cannot be written."""
    lines = []
    for target, count, paths, reason in rows:
        places = sorted({p or "the model itself" for p in paths})
        shown = ", ".join(places[:5]) + (f" and {len(places) - 5} more" if len(places) > 5 else "")
        times = "once" if count == 1 else f"{count} times"
        lines.append(f"  {target.removeprefix('torch.ops.')}: {times}, in {shown}{f': {reason}' if reason else ''}")
    count = len(rows)
    title = "an operator has" if count == 1 else f"{count} operators have"
    advice = "register what they are in ONNX with tonnx.register_custom_op_symbolic"
    return "\n".join([f"{title} no conversion to ONNX:", *lines, f"  {advice}"])

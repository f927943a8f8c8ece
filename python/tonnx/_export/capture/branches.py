"""Leaves out branches of torch.cond that cannot run at the traced sizes, with a warning.

torch.export traces both branches, but a model may have a branch for sizes that the example does not have, and that
branch fails at the example's sizes. It can never be taken at these sizes, so only the other branch is traced.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from tonnx._replaced import replaced

Branch = Callable[..., Any]


def _failure_of(branch: Branch, operands: Any) -> Exception | None:
    # the tracer counts calls of modules as they begin and end: a call that fails would never end
    unseen = replaced(nn.Module, "__call__", nn.Module._wrapped_call_impl)
    try:
        with unseen, disable_proxy_modes_tracing(), torch.no_grad():
            branch(*operands)
    except Exception as e:
        return e
    return None


@contextmanager
def failing_branches_left_out() -> Iterator[None]:
    """Traces only the branch of a torch.cond that works where the other one fails, and warns afterwards."""
    original = torch.cond
    left_out: dict[str, str] = {}

    def cond(pred: Any, true_fn: Branch, false_fn: Branch, operands: Any = ()) -> Any:
        failures = [_failure_of(branch, operands) for branch in (true_fn, false_fn)]
        if sum(failure is not None for failure in failures) != 1:
            return original(pred, true_fn, false_fn, operands)
        is_true_left = failures[1] is not None
        text = str(failures[1] if is_true_left else failures[0]).strip().splitlines()
        left_out[f"where the condition is {not is_true_left}"] = text[0] if text else "no reason is given"
        return (true_fn if is_true_left else false_fn)(*operands)

    with replaced(torch, "cond", cond):
        yield
    if left_out:
        reasons = "; ".join(f"{where}: {why}" for where, why in left_out.items())
        warnings.warn(
            f"a branch of torch.cond cannot run on inputs of these sizes, and is left out, {reasons}", stacklevel=2
        )

"""Branches of torch.cond that cannot run on inputs of the traced sizes: they are left out, with a note.

torch.export traces both branches, and a model may have one for other sizes than those of the example, where it is an
error. At these sizes it is one in the exported model too, whichever branch is taken: so the other one is all there is.
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
    # the tracer follows which module is called: a call that fails would leave it inside
    unseen = replaced(nn.Module, "__call__", nn.Module._wrapped_call_impl)
    try:
        with unseen, disable_proxy_modes_tracing(), torch.no_grad():
            branch(*operands)
    except Exception as e:
        return e
    return None


@contextmanager
def failing_branches_left_out() -> Iterator[None]:
    """Inside, torch.cond of a branch that fails is the other branch; a warning says so where there were any."""
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

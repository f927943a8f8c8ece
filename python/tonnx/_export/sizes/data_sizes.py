"""Python code that branches on data-dependent sizes: takes the branch for a typical size, with a warning.

A detector may take another branch when it found nothing, or very much. torch.export cannot know the size, but the usual
branch works for any number. So a comparison is answered as for a size that is unequal to every number and within every
bound. Branches on the values of tensors remain errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import sympy  # type: ignore[import-untyped]
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.symbol import SymT, symbol_is_type

from tonnx._export.sizes.open_numbers import LENGTHS, sizes_left_open
from tonnx._export.sizes.questions import asking_place, is_own_file, package_of
from tonnx._replaced import replaced


def is_question_on_data(failure: BaseException) -> bool:
    return type(failure).__name__ == "GuardOnDataDependentSymNode"


def _asks_only_about_sizes(env: ShapeEnv, expression: Any) -> bool:
    if not isinstance(expression, sympy.logic.boolalg.Boolean) or not expression.free_symbols:
        return False
    return all(not symbol_is_type(s, SymT.UNBACKED_INT) or s in env.size_like for s in expression.free_symbols)


@contextmanager
def sizes_assumed(failure: BaseException) -> Iterator[None]:
    """Inside, comparisons of data-dependent sizes are answered; a warning lists the answers that were assumed."""
    original = ShapeEnv.evaluate_sym_node
    assumed: dict[str, str] = {}

    def evaluate(env: ShapeEnv, node: Any, size_oblivious: bool = False, fallback_value: bool | None = None) -> Any:
        if fallback_value is not None or not _asks_only_about_sizes(env, node.expr):
            return original(env, node, size_oblivious, fallback_value)
        try:
            return original(env, node, size_oblivious, None)
        except RuntimeError as e:
            if not is_question_on_data(e):
                raise
            answer = isinstance(node.expr, sympy.Ne)
            assumed.setdefault(asking_place() or str(node.expr), str(answer))
            return sympy.true if answer else sympy.false

    packages = _packages_of(failure.__traceback__)
    with replaced(ShapeEnv, "evaluate_sym_node", evaluate), sizes_left_open(packages, LENGTHS):
        yield
    if assumed:
        places = "; ".join(f"{place} is {answer}" for place, answer in assumed.items())
        warnings.warn(f"the model decides on sizes that depend on data, and it is assumed that {places}", stacklevel=2)


def _packages_of(trace: TracebackType | None) -> set[str]:
    """The packages that the code of the model belongs to."""
    packages = set()
    while trace is not None:
        if not is_own_file(trace.tb_frame.f_code.co_filename):
            packages.add(package_of(trace.tb_frame))
        trace = trace.tb_next
    return packages

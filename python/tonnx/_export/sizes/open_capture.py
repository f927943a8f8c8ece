"""Traces a model with open sizes, and checks that the program is right at all of them.

torch.export fixes a size that is 0 or 1 in the example. So the model is traced at other sizes, made
up ones at which it runs.
"""

from __future__ import annotations

import importlib
import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from tonnx._error import Error
from tonnx._export.capture.tensor_access import slices_of_short_axes
from tonnx._export.sizes.dynamic import DynamicShapes
from tonnx._export.sizes.open_numbers import NUMBERS, sizes_left_open
from tonnx._export.sizes.open_sizes import Call, OpenAxis, OpenSizes
from tonnx._export.sizes.questions import Questions, questions_noted
from tonnx._export.sizes.size_checks import Program, SizeChecks, TracedSizes, Wrong, compute_the_same
from tonnx._replaced import replaced

_MOST_GUESSES = 24  # of sizes that a model may need, where it does not run at the first ones


class Trace(Protocol):
    """Traces a model on an example; `strict` allows the slow way too."""

    def __call__(self, example: Call, shapes: DynamicShapes, strict: bool) -> Program: ...


def capture_open(
    trace: Trace, model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: DynamicShapes
) -> Program:
    """Traces a model with open sizes; an axis that cannot be open is fixed, if the user allows it (Dim.AUTO)."""
    while True:
        try:
            with _torch_quiet():
                program = _OpenCapture(trace, OpenSizes(model, args, kwargs, shapes), shapes).program()
            program._example_inputs = (tuple(args), dict(kwargs))
            return program
        except CannotBeOpen as failure:
            optional = [axis for axis in failure.axes if not axis.what.required]
            if not optional:
                raise Error(str(failure), "unsupported") from failure.__cause__
            for axis in optional:
                shapes.close(axis.name, axis.axis)


class CannotBeOpen(Exception):
    """Axes that cannot be open, and why."""

    def __init__(self, axes: Iterable[OpenAxis], text: str) -> None:
        super().__init__(text)
        self.axes = list(axes)


Traced = tuple[Program, TracedSizes, Questions]


def _fixed_axes(open_sizes: OpenSizes, traced: TracedSizes) -> list[tuple[OpenAxis, Any]]:
    """The axes whose sizes the model fixes, with their symbols."""
    return [(axis, traced.own_symbol(i)) for i, axis in enumerate(open_sizes.axes) if traced.is_fixed(i)]


class _OpenCapture:
    """An attempt to keep all axes open that the user named."""

    def __init__(self, trace: Trace, open_sizes: OpenSizes, shapes: DynamicShapes) -> None:
        self._trace = trace
        self._open = open_sizes
        self._shapes = shapes

    def program(self) -> Program:
        """A program that is right at all sizes. Exact slices cost nodes, so they are the second attempt."""
        try:
            program, fixed_by = self._right_program()
            failure = None
        except CannotBeOpen as first:
            failure, fixed_by = first, {}
        if failure is not None or fixed_by:
            try:
                with slices_of_short_axes():
                    other, others_fixed = self._right_program()
                if failure is not None or len(others_fixed) < len(fixed_by):
                    program, fixed_by, failure = other, others_fixed, None
            except (CannotBeOpen, Error):
                pass  # report the first failure: it is about the model as the user wrote it
        if failure is not None:
            raise failure
        self._shapes.fixed_by.update(fixed_by)
        return program

    def _right_program(self) -> tuple[Program, dict[tuple[str, int], str]]:
        """The program, and the lines of the model that fix axes."""
        program, traced, questions = self._least_joined(self._least_fixed())
        fixed = _fixed_axes(self._open, traced)
        fixed_by = {(axis.name, axis.axis): questions.fixed.get(symbol, "") for axis, symbol in fixed}
        if fixed and all(axis.what.required for axis, _ in fixed):
            return program, fixed_by  # symbol_names raises the error
        if fixed:
            raise CannotBeOpen([axis for axis, _ in fixed], "the model fixes these sizes")
        wrong = SizeChecks(program, traced, questions, self._exact).wrong()
        if wrong is not None:
            raise CannotBeOpen(wrong.axes, _text_of(wrong))
        return program, fixed_by

    def _exact(self, example: Call) -> Program:
        """The program of an example with all sizes fixed."""
        return self._trace(example, DynamicShapes(), False)

    def _least_fixed(self) -> Traced:
        """A trace in which len() and int() keep sizes symbolic, if that fixes fewer sizes."""
        found = self._traced()
        fixed, numbers = len(_fixed_axes(self._open, found[1])), found[2].numbers
        if (fixed or numbers) and found[2].packages:
            try:
                with sizes_left_open(found[2].packages, NUMBERS):
                    other = self._traced_at(found[1].home)
            except Error:
                return found
            example = self._open.example(found[1].home, rows_differ=True)
            is_better = (len(_fixed_axes(self._open, other[1])), other[2].numbers) < (fixed, numbers)
            if is_better and compute_the_same(other[0], self._exact(example), example):
                return other
        return found

    def _least_joined(self, found: Traced) -> Traced:
        """A trace at unequal sizes, if PyTorch merges equal ones and the model runs at unequal ones."""
        joined = found[1].apart()
        for sizes in joined:
            try:
                other = self._traced_at(sizes)
                example = self._open.example(found[1].home, rows_differ=True)
                if len(other[1].apart()) < len(joined) and compute_the_same(other[0], self._exact(example), example):
                    return other
            except Error:
                continue
        return found

    def _traced(self) -> Traced:
        sizes = self._open.spread()
        if sizes == self._open.own:
            return self._traced_at(sizes, strict=True)
        try:
            return self._traced_at(sizes)
        except Error as failure:
            related = self._related()
            guesses = itertools.chain(self._open.together(), self._open.sums())
            for other in [*([] if related is None else [related]), *itertools.islice(guesses, _MOST_GUESSES)]:
                try:
                    return self._traced_at(other)
                except Error:
                    continue
            if related is None and not self._own_runs():  # the sizes are not the reason
                return self._traced_at(sizes, strict=True)
            raise self._refusal(sizes, failure) from failure

    def _traced_at(self, sizes: Sequence[int], strict: bool = False) -> Traced:
        with questions_noted() as questions:
            program = self._trace(self._open.example(sizes), self._shapes, strict)
        return program, TracedSizes(program, self._open, sizes), questions

    def _related(self) -> list[int] | None:
        """Sizes with the relations that a trace of the example finds: equal sizes, or a size that is a sum."""
        try:
            with _small_sizes_kept_open():
                program = self._trace(self._open.example(self._open.own), self._shapes, False)
        except Error:
            return None
        return TracedSizes(program, self._open, self._open.own).moved()

    def _own_runs(self) -> bool:
        """Whether the example can be traced with all sizes fixed."""
        try:
            self._trace(self._open.example(self._open.own), DynamicShapes(), False)
        except Error:
            return False
        return True

    def _refusal(self, sizes: Sequence[int], failure: Error) -> CannotBeOpen:
        changed = [(axis, size) for axis, size in zip(self._open.axes, sizes) if axis.size != size]
        texts = " and ".join(f"{axis.text} is {size}, not {axis.size}" for axis, size in changed)
        by = self._shapes.asked_by
        return CannotBeOpen(
            [axis for axis, _ in changed],
            f"{by} asks for open sizes, and where {texts}, the model fails: {failure}; take what cannot change out of "
            f"{by}, or give an example in which open sizes are 2 or more",
        )


@contextmanager
def _small_sizes_kept_open() -> Iterator[None]:
    """Inside, torch.export keeps sizes of 0 and 1 open, though the program is not always right."""
    config: Any = importlib.import_module("torch.fx.experimental._config")
    if not hasattr(config, "backed_size_oblivious"):
        yield
        return
    with config.patch(backed_size_oblivious=True):
        yield


@contextmanager
def _torch_quiet() -> Iterator[None]:
    """Inside, torch does not log failures: some attempts are expected to fail."""
    names = ("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes", "torch.export._trace")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(replaced(logging.getLogger(name), "disabled", True))
        yield


def _text_of(wrong: Wrong) -> str:
    first = wrong.axes[0]
    others = "".join(f" and {axis.text}" for axis in wrong.axes[1:])
    promise = ""
    if wrong.is_bound:
        bound = f"min={wrong.size + 1}" if wrong.size < wrong.home else f"max={wrong.size - 1}"
        name = first.what.dim if first.what.dim and first.what.dim.isidentifier() else "size"
        promise = f", or leave such sizes out with dynamic_shapes and torch.export.Dim('{name}', {bound})"
    return (
        f"where {first.text}{others} is {wrong.size}, the model does something else than at other sizes, in "
        f"{wrong.place}: change this line{promise}"
    )

"""Compares two models on one draw after the other, until what was compared depends on all of their weights."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tonnx._error import Error
from tonnx._verify import draws
from tonnx._verify.coverage import Coverage
from tonnx._verify.inputs import perturbed
from tonnx._verify.layers import compare_layers, foremost, sorted_out
from tonnx._verify.measure import Tolerance, measure
from tonnx._verify.plan import Feeds, Plan
from tonnx._verify.report import LayerComparison, OutputComparison, VerifyReport
from tonnx._verify.runners import Depth, Runner, Tolerances, Value, identifier

if TYPE_CHECKING:
    import numpy as np

DRAWS = 6
_SECONDS = 20.0  # for draws after the first, and as long again for values inside
_IDLE = 2
_SUSPECTS = 4  # layers that differ for which it is found out whether the outputs hide it

Named = Sequence[tuple[str, Value]]


def pair_outputs(a: Named, b: Named) -> tuple[list[tuple[int, int]], list[str]]:
    """Outputs of the same name, or in the same place where the names say nothing; and what only one model has."""
    in_b = {identifier(name): j for j, (name, _) in enumerate(b) if name}
    pairs = [(i, in_b[identifier(name)]) for i, (name, _) in enumerate(a) if name and identifier(name) in in_b]
    left_a = [i for i in range(len(a)) if i not in {i for i, _ in pairs}]
    left_b = [j for j in range(len(b)) if j not in {j for _, j in pairs}]
    if len(left_a) == len(left_b):
        pairs += zip(left_a, left_b)
        return sorted(pairs), []
    missing = [f"{a[i][0] or i}  only in the first model" for i in left_a]
    return sorted(pairs), missing + [f"{b[j][0] or j}  only in the second model" for j in left_b]


class Judge:
    """Fills a report."""

    def __init__(self, a: Runner, b: Runner, plan: Plan, tolerance: Tolerance, report: VerifyReport) -> None:
        self.a, self.b, self.plan, self.tolerance, self.report = a, b, plan, tolerance, report
        self._pairs: list[tuple[int, int]] = []
        self._draws: list[int] = []  # those that both models could run
        self._depth = Depth()

    def compare(self, *, layers: bool, outputs_only: bool) -> None:
        """Outputs, on draws until they depend on all weights; and values inside for the weights that still hide."""
        self._compare_draws(1 if outputs_only or not self.plan.is_random else DRAWS)
        report = self.report
        is_hidden = report.coverage is None or not report.coverage.is_complete
        looks_inside = report.is_same_outside and is_hidden and not outputs_only and not self.tolerance.is_given
        if layers or looks_inside:
            self._compare_inside(is_asked=layers)

    def _compare_draws(self, count: int) -> None:
        end = time.monotonic() + _SECONDS
        idle = 0  # draws that showed nothing new
        for number in range(count):
            if number and (time.monotonic() > end or idle == _IDLE):
                break
            try:
                feeds, found = self._compare_draw(number)
            except Error:
                if number == 0:
                    raise
                continue  # what was drawn is nothing for these models
            self._draws.append(number)
            self.report.draws.append(draws.title(number) if self.plan.is_random else "given")
            self.report.outputs = _worst(self.report.outputs, found)
            if not self.report.is_same_outside:
                break
            seen = self.report.coverage.outputs if self.report.coverage else 0
            self._note_influence(feeds, found)
            if self.report.coverage is None or self.report.coverage.is_complete:
                break
            idle = 0 if self.report.coverage.outputs > seen else idle + 1

    def _compare_draw(self, number: int) -> tuple[Feeds, list[OutputComparison]]:
        feeds = self.plan.draw(number)
        try:
            return feeds, self._compare_outputs(feeds)
        except Error:
            if number == 0 or not self.plan.has_choices:
                raise
        self.plan.find_sizes(number)
        feeds = self.plan.draw(number)
        return feeds, self._compare_outputs(feeds)

    def _compare_outputs(self, feeds: Feeds) -> list[OutputComparison]:
        in_a, in_b = self.a.run(feeds[0]), self.b.run(feeds[1])
        self._pairs, self.report.missing = pair_outputs(in_a, in_b)
        if not self._pairs and self.report.missing:
            missing = "; ".join(self.report.missing)
            raise Error(f"'{self.a.path}' and '{self.b.path}' have no output in common: {missing}", "invalid_model")
        self._depth = Depth.deepest((self.a.depth(), self.b.depth()))
        found = []
        near: Named = []
        for i, j in self._pairs:
            name = in_a[i][0] or in_b[j][0] or f"output {i}"
            numbers = measure(in_a[i][1], in_b[j][1], self.tolerance, self._depth)
            if not numbers["ok"] and not self.tolerance.is_given:
                near = near or self.a.run(perturbed(feeds[0]))
                numbers = measure(in_a[i][1], in_b[j][1], self.tolerance, self._depth, near=near[i][1])
            found.append(OutputComparison(name=name, counterpart=in_b[j][0] or name, **numbers))  # type: ignore[arg-type]
        return found

    def _note_influence(self, feeds: Feeds, found: Sequence[OutputComparison]) -> None:
        by_pair = list(zip(self._pairs, found))
        moved = self.b.influence(feeds[1], {j: (o.rtol, o.atol) for (_, j), o in by_pair}, {})
        if moved is None:
            moved = self.a.influence(feeds[0], {i: (o.rtol, o.atol) for (i, _), o in by_pair}, {})
        if moved is not None:
            self.report.coverage = self.report.coverage or Coverage()
            self.report.coverage.note(moved)

    def _compare_inside(self, *, is_asked: bool) -> None:
        """At the draw where the outputs differ, or at all until every weight has been seen."""
        end = time.monotonic() + _SECONDS
        report = self.report
        waiting = self._draws[-1:] if not report.is_same_outside else self._draws
        for number in waiting:
            feeds = self.plan.draw(number)
            inputs = {-1 - j: -1 - i for j, i in enumerate(self.plan.pairs) if i is not None}
            found = compare_layers(self.a, self.b, feeds, inputs, self.tolerance)
            kept, first = sorted_out(self.a.steps, found)
            hidden = self._hidden_difference(feeds, found) if report.is_same_outside else None
            report.inside = max(report.inside, len(kept))
            if is_asked and not report.layers or hidden is not None:
                report.layers, report.steps = kept, (len(self.a.steps), len(self.b.steps))
                report.first_difference = first
            if hidden is not None:
                report.first_difference, report.is_hidden_difference = hidden, True
                if hidden not in report.layers:
                    report.layers = sorted([*report.layers, hidden], key=lambda layer: layer.index)
            if hidden is not None or not report.is_same_outside or not self._note_inside(feeds, found):
                break
            if time.monotonic() > end:
                break

    def _note_inside(self, feeds: Feeds, found: Sequence[LayerComparison]) -> bool:
        """Which weights the values inside depend on; says whether others are left that another draw may reach."""
        coverage = self.report.coverage
        if coverage is None or coverage.is_complete:
            return False
        moved = self.b.influence(feeds[1], {}, _tolerances(found, "counterpart_index"))
        if moved is None or moved.keys().isdisjoint(coverage.hidden):
            moved = self.a.influence(feeds[0], {}, _tolerances(found, "index"))
        if moved is None:
            return False
        coverage.note(moved, inside=True)
        return not coverage.is_complete

    def _hidden_difference(self, feeds: Feeds, found: Sequence[LayerComparison]) -> LayerComparison | None:
        """A layer that differs where the outputs do not care.

        Two models may compute the same in two ways: then the outputs of the first do change when it gets the value of
        the second. Where they do not, nothing that was compared behind it says that the difference is none.
        """
        for layer in foremost(self.a.steps, found)[:_SUSPECTS]:
            value = self.b.fetch(feeds[1], [layer.counterpart_index]).get(layer.counterpart_index)
            own = self.a.fetch(feeds[0], [layer.index]).get(layer.index)
            if value is None or own is None or value.array.size != own.array.size:
                continue
            array = value.array.reshape(own.array.shape).astype(own.array.dtype)
            try:
                changed = self.a.run_with(feeds[0], layer.index, array)
            except Error:
                continue
            usual = self.a.run(feeds[0])
            if all(measure(x, y, self.tolerance, self._depth)["ok"] for (_, x), (_, y) in zip(usual, changed)):
                return layer
        return None


def _tolerances(found: Sequence[LayerComparison], index: str) -> dict[int, Tolerances]:
    return {getattr(layer, index): (layer.rtol, layer.atol) for layer in found if layer.ok}


def _worst(before: Sequence[OutputComparison], now: Sequence[OutputComparison]) -> list[OutputComparison]:
    """Of every output the draw in which it comes closest to what is not allowed."""
    if not before or len(before) != len(now):
        return list(now)
    return [max(pair, key=_badness) for pair in zip(before, now)]


def _badness(output: OutputComparison) -> tuple[bool, float]:
    return not output.ok, output.max_abs / max(output.atol, 1e-30) if output.max_abs else 0.0


def described(arrays: Sequence[np.ndarray], plan: Plan) -> dict[str, str]:
    return {value.name: f"{array.dtype}{list(array.shape)}" for value, array in zip(plan.a.inputs, arrays)}

"""Compares two models on one draw after the other, until what was compared depends on all of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tonnx._error import Error
from tonnx._progress import tell
from tonnx._verify.coverage import Coverage
from tonnx._verify.draws import title
from tonnx._verify.inputs import perturbed
from tonnx._verify.layers import Inside, TooLong, foremost, sorted_out
from tonnx._verify.measure import Tolerance, measure
from tonnx._verify.plan import Feeds, Plan
from tonnx._verify.report import LayerComparison, OutputComparison, VerifyReport
from tonnx._verify.runners import Depth, Runner, Tolerances, Value, identifier
from tonnx._verify.samples import Samples
from tonnx._verify.work import Work

if TYPE_CHECKING:
    import numpy as np

DRAWS = 6
_DRAWS_WORK = 15.0  # in seconds of a usual processor, as all work is counted
_LOOK_WORK = 40.0  # to look into one draw
_INSIDE_WORK = 10.0  # past which no other draw is looked into
_RECHECK_WORK = 20.0  # to judge the layers of one draw by themselves
_IDLE = 2  # draws in a row that show no other weight: more of them are in vain
_LEAST = 4  # draws, whatever they show
_MAGNIFIED = 1000.0  # times what is allowed: a model that magnifies rounding by more says nothing at these inputs
_ALIKE = 0.5  # the cosine of values that a change of a layer leaves recognisable
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

    def __init__(
        self,
        a: Runner,
        b: Runner,
        plan: Plan,
        tolerance: Tolerance,
        report: VerifyReport,
        *,
        may_drop_outputs: bool = False,
    ) -> None:
        self.a, self.b, self.plan, self.tolerance, self.report = a, b, plan, tolerance, report
        self._may_drop_outputs = may_drop_outputs
        self._pairs: list[tuple[int, int]] = []
        self._draws: list[int] = []  # those that both models could run
        self._reach: dict[int, int] = {}  # how many weights each of them showed
        self._depth = Depth()

    def compare(self, *, layers: bool, outputs_only: bool, draws: int = 1) -> None:
        """Outputs, on draws until they depend on all weights; and values inside for the weights that still hide."""
        least = draws if self.plan.is_random else 1
        self._compare_draws(least, least if outputs_only or not self.plan.is_random else max(least, DRAWS))
        report = self.report
        if report.is_same_outside and self._draws:
            samples = Samples(self.a, self.b, self.plan, self.tolerance, self._pairs)
            report.sizes = list(samples.checks(self._depth))
        is_hidden = report.coverage is None or not report.coverage.is_complete
        looks_inside = (
            report.is_same_outside
            and report.is_same_at_other_sizes
            and is_hidden
            and not outputs_only
            and not self.tolerance.is_given
        )
        if layers or looks_inside:
            self._compare_inside(is_asked=layers)

    def _compare_draws(self, least: int, most: int) -> None:
        work = Work(_DRAWS_WORK)
        idle = 0  # draws that showed nothing new
        for number in range(most):
            is_idle = idle >= _IDLE and number >= _LEAST
            if number >= least and (work.is_spent or is_idle or self._is_complete()):
                break
            tell("draws of inputs", number, most)
            try:
                feeds, found = self._compare_draw(number)
            except Error:
                if number == 0:
                    raise
                continue  # what was drawn is nothing for these models
            self._draws.append(number)
            self.report.draws.append(title(number) if self.plan.is_random else "given")
            self.report.outputs = _worst(self.report.outputs, found)
            if not self.report.is_same_outside and not self._is_rounding(feeds):
                break
            seen = self.report.coverage.outputs if self.report.coverage else 0
            self._reach[number] = self._note_influence(feeds, found, work)
            idle = 0 if self.report.coverage and self.report.coverage.outputs > seen else idle + 1

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
        if self._may_drop_outputs and len(self._pairs) == len(in_b):
            self.report.missing = []
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

    def _is_complete(self) -> bool:
        return self.report.coverage is None or self.report.coverage.is_complete

    def _is_rounding(self, feeds: Feeds) -> bool:
        """Whether outputs differ by rounding alone, which the models magnify from layer to layer.

        Then every layer does the same in both where it gets the same, and so do those that compute the outputs.
        """
        wrong = [output for output in self.report.outputs if not output.ok]
        if self.tolerance.is_given or self.report.missing or any(output.why for output in wrong):
            return False
        if any(not output.max_abs <= _MAGNIFIED * max(output.atol, output.rtol) for output in wrong):
            return False
        try:
            inside = self._look_inside(feeds, one_by_one=True, work=Work(_LOOK_WORK))
        except Error:
            return False
        judged = {layer.name for layer in inside.sure() if layer.ok}
        if not all(layer.ok for layer in inside.sure()) or not {output.name for output in wrong} <= judged:
            return False
        for output in wrong:
            output.ok, output.is_rounding = True, True
        return True

    def _note_influence(self, feeds: Feeds, found: Sequence[OutputComparison], work: Work) -> int:
        by_pair = list(zip(self._pairs, found))
        influence = self.b.influence(feeds[1], {j: (o.rtol, o.atol) for (_, j), o in by_pair}, {})
        if influence is None:
            influence = self.a.influence(feeds[0], {i: (o.rtol, o.atol) for (i, _), o in by_pair}, {})
        if influence is None:
            return 0
        work.take(influence.work)
        self.report.coverage = self.report.coverage or Coverage()
        self.report.coverage.note(influence.moved)
        return sum(size is not None and size >= 1 for size in influence.moved.values())

    def _compare_inside(self, *, is_asked: bool) -> None:
        """At the draw where the outputs differ, or at all until every weight has been seen."""
        all_draws = Work(_INSIDE_WORK)
        report = self.report
        telling = sorted(self._draws, key=lambda number: -self._reach.get(number, 0))
        for number in self._draws[-1:] if not report.is_same_outside else telling:
            feeds = self.plan.draw(number)
            try:
                work = Work() if is_asked else Work(_LOOK_WORK)
                inside = self._look_inside(feeds, one_by_one=report.is_same_outside, work=work)
            except TooLong:
                break
            hidden = self._hidden_difference(feeds, inside) if report.is_same_outside else None
            kept, first = sorted_out(self.a.steps, inside.layers)
            report.inside = max(report.inside, len(kept))
            if is_asked and not report.layers or hidden is not None:
                report.layers, report.steps = kept, (len(self.a.steps), len(self.b.steps))
                report.first_difference = first
            if hidden is not None:
                report.first_difference, report.is_hidden_difference = hidden, True
                if hidden not in report.layers:
                    report.layers = sorted([*report.layers, hidden], key=lambda layer: layer.index)
            if (
                hidden is not None
                or not report.is_same_outside
                or not self._note_inside(feeds, inside.layers, all_draws)
            ):
                break
            all_draws.take(work.taken)
            if all_draws.is_spent:
                break

    def _look_inside(self, feeds: Feeds, *, one_by_one: bool, work: Work) -> Inside:
        """Compares values inside. One by one, a layer differs where it does so by itself: that is asked of those that
        differ, and of all in a quantised model, where a step that falls the other way goes on from layer to layer."""
        numbers = {-1 - j: -1 - i for j, i in enumerate(self.plan.pairs) if i is not None}
        inside = Inside(self.a, self.b, feeds, numbers, self.tolerance, work)
        if self.tolerance.is_given or not one_by_one:
            return inside
        is_quantised = "int8" in self.tolerance.precisions
        suspects = [layer for layer in inside.sure() if is_quantised or not layer.ok]
        strict = Tolerance(None, None, ("float32", "float32")) if is_quantised else self.tolerance
        try:
            inside.recheck(suspects, strict, Work(_RECHECK_WORK))
        except Error:  # the first model cannot take other values: what was found before holds
            pass
        return inside

    def _note_inside(self, feeds: Feeds, found: Sequence[LayerComparison], work: Work) -> bool:
        """Which weights the values inside depend on; says whether others are left that another draw may reach."""
        coverage = self.report.coverage
        if coverage is None or coverage.is_complete:
            return False
        influence = self.b.influence(feeds[1], {}, _tolerances(found, "counterpart_index"))
        if influence is None or influence.moved.keys().isdisjoint(coverage.hidden):
            influence = self.a.influence(feeds[0], {}, _tolerances(found, "index"))
        if influence is None:
            return False
        work.take(influence.work)
        coverage.note(influence.moved, inside=True)
        return not coverage.is_complete

    def _hidden_difference(self, feeds: Feeds, inside: Inside) -> LayerComparison | None:
        """A layer that differs where the outputs do not care.

        Two models may compute the same in two ways: then the outputs of the first do change when it gets the value of
        the second. Where they do not, nothing that was compared behind it says that the difference is none.
        """
        for layer in foremost(self.a.steps, inside.sure())[:_SUSPECTS]:
            array = inside.counterpart(layer)
            is_doubtful = layer.how != "name" and layer.cosine < _ALIKE  # the two may be no counterparts at all
            if array is None or is_doubtful:
                continue
            try:
                changed = self.a.run_with(feeds[0], {layer.index: array})
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

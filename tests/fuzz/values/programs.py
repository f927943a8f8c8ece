"""Random PyTorch programs, through every route out of PyTorch, against eager PyTorch at two sizes."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

from outcome import BAD, Announce, Outcome
from program_draw import drawn
from program_routes import ROUTES, Program, reference, try_route

PER_CASE = 2  # routes that a case takes where none are asked for


def run_case(seed: int, routes: tuple[str, ...], folder: Path, announce: Announce, shrink: bool) -> list[Outcome]:
    warnings.simplefilter("ignore")
    announce("draw")
    program = drawn(seed)
    if not program.lines:
        return [Outcome("draw", "skipped", "nothing drawn")]
    want = reference(program)
    if isinstance(want, str):
        return [Outcome("draw", "skipped", want)]
    outcomes = []
    for route in routes or tuple(random.Random(seed).sample(ROUTES, PER_CASE)):
        announce(route)
        outcome = try_route(program, want, route)
        if outcome.kind in BAD:
            small = program
            if shrink:
                announce(f"{route} (making the program smaller)")
                small, outcome = shrunk(program, outcome)
            outcome.reproduction = save(small, folder, f"{seed}-{route}")
        outcomes.append(outcome)
    return outcomes


def shrunk(program: Program, outcome: Outcome) -> tuple[Program, Outcome]:
    """The program with as few results and lines as still fail in the same way."""
    best, last = program, outcome
    budget = 60

    def attempt(smaller: Program) -> bool:
        nonlocal best, last, budget
        if budget <= 0:
            return False
        budget -= 1
        want = reference(smaller)
        if isinstance(want, str):
            return False
        found = try_route(smaller, want, outcome.route)
        if found.kind != outcome.kind:
            return False
        best, last = smaller, found
        return True

    for result in program.results:
        if len(best.results) > 1 and attempt(best.with_results([result])):
            break
    at = len(best.lines) - 1
    while at >= 0 and budget > 0:
        attempt(best.without_line(at))
        at -= 1
    return best, last


def save(program: Program, folder: Path, name: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(program.source())
    return f"{path}, inputs {program.described()}\n{program.source()}"


__all__ = ["ROUTES", "run_case"]

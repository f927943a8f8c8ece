"""Runs random ONNX graphs or PyTorch programs through tonnx, and compares what comes out with an oracle.

    python tests/fuzz/values/run.py graphs --cases 200 --seed 1 --jobs 2
    python tests/fuzz/values/run.py graphs --case 1000017 --routes pt2    # one case again

A generator is a module beside this file with `ROUTES` and `run_case(seed, routes, folder, announce, shrink)`, which gives the
outcomes of one case. Every case runs in a worker process: one that dies is reported with the step that killed it, and the
next worker goes on.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from outcome import BAD, Outcome  # noqa: E402

SPACING = 1_000_000  # how many cases there are between the first cases of two seeds
LIMIT = 120.0  # seconds after which a case is said to hang


def work(generator: str, routes: tuple[str, ...], folder: str, shrink: bool, pipe: Any) -> None:
    """Runs the cases whose numbers arrive, and sends what became of them."""
    import torch

    torch.set_num_threads(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # what runtimes say of models that they refuse
    module = importlib.import_module(generator)
    while (case := pipe.recv()) is not None:

        def announce(step: str) -> None:
            pipe.send(("step", step))

        try:
            outcomes = module.run_case(case, routes, Path(folder), announce, shrink)
        except Exception:
            outcomes = [Outcome("the generator itself", "internal", traceback.format_exc())]
        pipe.send(("done", outcomes))


def known_failures(generator: str) -> set[tuple[int, str]]:
    """Cases and routes that do not pass yet."""
    lines = (Path(__file__).parent / "known_failures.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {(int(case), route) for name, case, route, *_ in rows if name == generator}


class Worker:
    """A process that runs one case after another, and what it does at the moment."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=work, args=(*arguments, other), daemon=True)
        self.process.start()
        other.close()
        self.case, self.step, self.since = -1, "", 0.0

    def give(self, case: int) -> None:
        self.case, self.step, self.since = case, "", time.monotonic()
        self.pipe.send(case)

    def end(self, how: str) -> Outcome:
        """What is said of a case whose process died or was ended."""
        self.process.join(10)
        code = self.process.exitcode
        if code is not None and code < 0:
            how = f"{how}: {signal.Signals(-code).name}"
        # a runtime that dies of a model before tonnx has seen it is no case
        kind = "skipped" if self.step.startswith("draw") else "crash"
        return Outcome(self.step, kind, how)


class Run:
    """All cases of one run: which are to do, and what became of the others."""

    def __init__(self, cases: list[int], arguments: tuple[Any, ...], jobs: int, log: Path) -> None:
        self.todo, self.arguments, self.log = collections.deque(cases), arguments, log
        self.workers = [Worker(arguments) for _ in range(min(jobs, len(cases)))]
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.refusals: collections.Counter[str] = collections.Counter()
        self.done = 0
        self.bad: list[str] = []
        self.known = known_failures(arguments[0])

    def record(self, case: int, outcomes: list[Outcome]) -> None:
        self.done += 1
        for outcome in outcomes:
            self.counts[outcome.route, outcome.kind] += 1
            if outcome.kind == "refused":
                self.refusals[outcome.text.splitlines()[0][:160]] += 1
            if (case, outcome.route) in self.known:
                self.record_known(case, outcome)
            elif outcome.kind in BAD:
                self.say(case, outcome.route, f"{outcome.kind}\n{outcome.text}", outcome.reproduction)
            if outcome.kind not in ("same", "skipped"):
                with self.log.open("a") as file:
                    file.write(json.dumps({"case": case, **asdict(outcome)}) + "\n")

    def record_known(self, case: int, outcome: Outcome) -> None:
        if outcome.kind in BAD:
            return
        self.say(case, outcome.route, "passes now; take it off known_failures.txt")

    def say(self, case: int, route: str, what: str, reproduction: str = "") -> None:
        """Tells of one that is not as it should be now, and again in short at the end."""
        self.bad.append(f"case {case}, {route}: {what[:400]}")
        print(f"\ncase {case}, {route}: {what}\n{reproduction}", flush=True)

    def feed(self, worker: Worker) -> bool:
        if not self.todo:
            return False
        worker.give(self.todo.popleft())
        return True

    def replace(self, worker: Worker, how: str) -> Worker | None:
        self.record(worker.case, [worker.end(how)])
        if not self.todo:
            return None
        fresh = Worker(self.arguments)
        self.feed(fresh)
        return fresh

    def listen(self, worker: Worker) -> Worker | None:
        """Takes one message of a worker; gives the worker that goes on in its place, if any."""
        try:
            kind, what = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            return self.replace(worker, "the process died")
        if kind == "step":
            worker.step = what
            return worker
        self.record(worker.case, what)
        if self.feed(worker):
            return worker
        worker.pipe.send(None)
        return None

    def all(self) -> None:
        busy = [worker for worker in self.workers if self.feed(worker)]
        while busy:
            ready = multiprocessing.connection.wait([worker.pipe for worker in busy], timeout=5)
            after: list[Worker | None] = []
            for worker in busy:
                if worker.pipe in ready:
                    after.append(self.listen(worker))
                elif time.monotonic() - worker.since > LIMIT:
                    worker.process.kill()
                    after.append(self.replace(worker, f"not done after {LIMIT:.0f} seconds"))
                else:
                    after.append(worker)
            busy = [worker for worker in after if worker]

    def summary(self) -> str:
        routes = sorted({route for route, _ in self.counts})
        lines = [f"{self.done} cases"]
        for route in routes:
            kinds = {kind: n for (at, kind), n in self.counts.items() if at == route}
            lines.append(f"  {route:12} " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
        lines += [f"  refused {n} times: {text}" for text, n in self.refusals.most_common(20)]
        lines += self.bad
        lines.append(f"{len(self.bad)} wrong, invalid or internal; details: {self.log}")
        return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generator", choices=["graphs", "programs"])
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", type=int, nargs="*", help="only these cases, by the numbers that reports give")
    parser.add_argument("--routes", default="", help="only these, with commas between them")
    parser.add_argument("--operators", default="", help="draw these most of the time, with commas between them")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz-values"))
    parser.add_argument("--no-shrink", action="store_true", help="leave models that fail as large as they are")
    arguments = parser.parse_args()
    os.environ["TONNX_FUZZ_OPERATORS"] = arguments.operators
    os.environ["PYTHONHASHSEED"] = "0"  # the workers' sets have the same order each time
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    first = arguments.seed * SPACING
    cases = arguments.case or list(range(first, first + arguments.cases))
    routes = tuple(filter(None, arguments.routes.split(",")))
    log = folder / f"{arguments.generator}-{cases[0]}.jsonl"
    log.unlink(missing_ok=True)
    run = Run(cases, (arguments.generator, routes, str(folder), not arguments.no_shrink), arguments.jobs, log)
    run.all()
    print(run.summary())
    return 1 if run.bad else 0


if __name__ == "__main__":
    sys.exit(main())

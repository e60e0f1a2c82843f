"""Runs the planner and keeps what is needed to compare: its answer, its program, its seconds."""

import statistics
import time
from dataclasses import dataclass, field
from unittest import mock

from partita.model.fleet import Fleet
from partita.planner import search
from partita.planner.plan import Plan
from partita.planner.planning import plan
from partita.planner.program import Choice, Program

__all__ = ["Run", "measure", "objectives"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One fleet, planned several times; CPU seconds, medians.

    Attributes:
        plan: The plan.
        program: The program that the search was given.
        plan_seconds: All of ``plan(fleet)``.
        core_seconds: From its start to the end of the search: options, program, search. What is
            left out is what no peer does: assignments, steps, refusals with advice.
        search_seconds: The search alone.
    """

    plan: Plan
    program: Program
    plan_seconds: float
    core_seconds: float
    search_seconds: float


@dataclass
class _Stopwatch:
    """Stands in for ``search.solve`` and times its first call, the fleet's own."""

    solve: object
    program: Program | None = None
    ended: float = 0.0
    spent: float = 0.0
    began: float = field(default_factory=time.process_time)

    def __call__(self, program: Program) -> Choice:
        if self.program is not None:  # a change that a refusal names is being tried
            return self.solve(program)
        entered = time.process_time()
        choice = self.solve(program)
        self.program, self.ended = program, time.process_time()
        self.spent = self.ended - entered
        return choice


def measure(fleet: Fleet, repeats: int) -> Run:
    """Plan a fleet ``repeats`` times."""
    found = [_once(fleet) for _ in range(repeats)]
    return Run(
        plan=found[-1].plan,
        program=found[-1].program,
        plan_seconds=statistics.median(run.plan_seconds for run in found),
        core_seconds=statistics.median(run.core_seconds for run in found),
        search_seconds=statistics.median(run.search_seconds for run in found),
    )


def objectives(result: Plan) -> tuple[int, ...]:
    """Return pods left out, destroyed, created, mode changes, future lost, GPUs touched."""
    cost = result.cost
    return (
        len(result.unfit),
        cost.destroyed,
        cost.created,
        cost.mode_changes,
        cost.future_lost,
        cost.gpus_touched,
    )


def _once(fleet: Fleet) -> Run:
    watch = _Stopwatch(search.solve)
    with mock.patch.object(search, "solve", watch):
        watch.began = time.process_time()
        result = plan(fleet)
        ended = time.process_time()
    if watch.program is None:
        raise RuntimeError("the planner did not search")
    return Run(
        plan=result,
        program=watch.program,
        plan_seconds=ended - watch.began,
        core_seconds=watch.ended - watch.began,
        search_seconds=watch.spent,
    )

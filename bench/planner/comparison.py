"""One fleet, planned by partita and solved by HiGHS twice; and partita alone on larger fleets.

Seconds are those of the CPU, as the machine may have other work; each side computes on one thread.
"""

import sys
import time
from dataclasses import dataclass

from bench.planner import aggregated, fleets, natural, staged, subject

__all__ = ["STAGES", "Comparison", "Peer", "Scale", "compare", "scale"]

STAGES = ("left out", "destroyed", "created", "mode changes", "future lost", "touched")

_REPEATS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What HiGHS did with one formulation.

    Attributes:
        columns: Columns of the program.
        rows: Its rows.
        objectives: Value per finished stage, in the order of ``STAGES``.
        seconds: Writing the program down, loading it, all stages.
        stage_seconds: Seconds per stage begun.
    """

    columns: int
    rows: int
    objectives: tuple[int, ...]
    seconds: float
    stage_seconds: tuple[float, ...]

    @property
    def finished(self) -> bool:
        """Whether every stage was proven within the limit."""
        return len(self.objectives) == len(STAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One fleet.

    Attributes:
        gpus: Number of GPUs.
        seed: Seed of the fleet.
        pods: Pending pods.
        groups: Groups of equal GPUs.
        options: Options over all groups.
        objectives: What partita reached.
        proven: Whether partita says that nothing better exists.
        plan_seconds: Median of all of ``plan``.
        core_seconds: Median of options, program and search.
        search_seconds: Median of the search.
        natural: HiGHS on a binary per GPU, profile and placement.
        aggregated: HiGHS on the planner's own program.
    """

    gpus: int
    seed: int
    pods: int
    groups: int
    options: int
    objectives: tuple[int, ...]
    proven: bool
    plan_seconds: float
    core_seconds: float
    search_seconds: float
    natural: Peer
    aggregated: Peer

    @property
    def contradicted(self) -> bool:
        """Whether HiGHS shows a plan to be impossible, or better than one that is called proven."""
        for peer in (self.natural, self.aggregated):
            ours = self.objectives[: len(peer.objectives)]
            if ours < peer.objectives or (self.proven and ours != peer.objectives):
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """partita alone on a fleet: number of GPUs, seconds of ``plan``, and whether proven."""

    gpus: int
    seed: int
    plan_seconds: float
    proven: bool


def compare(gpus: int, seed: int, limit_seconds: float) -> Comparison:
    """Plan a fleet and solve it with HiGHS, each stage at most ``limit_seconds``."""
    fleet = fleets.make(gpus, seed)
    _say(f"{gpus} GPUs, seed {seed}: partita, {_REPEATS} times")
    run = subject.measure(fleet, _REPEATS)
    _say(f"{gpus} GPUs, seed {seed}: HiGHS, aggregated")
    began = time.process_time()
    strong = _solve(aggregated.write(run.program), limit_seconds, began, ages=True)
    _say(f"{gpus} GPUs, seed {seed}: HiGHS, natural")
    began = time.process_time()
    plain = _solve(natural.write(fleet), limit_seconds, began, ages=False)
    return Comparison(
        gpus=gpus,
        seed=seed,
        pods=sum(len(units) for units in run.program.penalties),
        groups=len(run.program.groups),
        options=sum(len(group.columns) for group in run.program.groups),
        objectives=subject.objectives(run.plan),
        proven=run.plan.proven,
        plan_seconds=run.plan_seconds,
        core_seconds=run.core_seconds,
        search_seconds=run.search_seconds,
        natural=plain,
        aggregated=strong,
    )


def scale(gpus: int, seed: int) -> Scale:
    """Plan one fleet once."""
    fleet = fleets.make(gpus, seed)
    _say(f"{gpus} GPUs, seed {seed}: partita alone")
    run = subject.measure(fleet, 1)
    return Scale(gpus=gpus, seed=seed, plan_seconds=run.plan_seconds, proven=run.plan.proven)


def _solve(
    program: staged.StagedProgram, limit_seconds: float, began: float, *, ages: bool
) -> Peer:
    """Solve; ``ages`` tells that the second stage is the age of pods, which is nil here."""
    answer = staged.solve(program, limit_seconds)
    values = answer.values
    _say(f"  {len(values)} stages, {answer.seconds:.1f} s")
    return Peer(
        columns=len(program.upper),
        rows=len(program.rows),
        objectives=(*values[:1], *values[2:]) if ages else values,
        seconds=time.process_time() - began,
        stage_seconds=answer.stage_seconds,
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

"""The strongest integer program we know: a whole number per group of equal GPUs and option.

It is the planner's own program, handed to HiGHS as it is. HiGHS gets for nothing what the planner
spends part of its time on: the options of every GPU, the equal ones grouped, the dominated dropped.
"""

from collections import Counter

from bench.planner.staged import StagedProgram

from partita.planner.program import Program

__all__ = ["write"]


def write(program: Program) -> StagedProgram:
    """Return a program of the planner in the form HiGHS is fed from."""
    written = StagedProgram(program.stages)
    supplied: list[tuple[list[int], list[float]]] = [([], []) for _ in program.penalties]

    def add(upper: int, supply: tuple[tuple[int, int], ...], costs: tuple[int, ...]) -> int:
        column = written.column(upper)
        for kind, amount in supply:
            supplied[kind][0].append(column)
            supplied[kind][1].append(amount)
        for stage, cost in enumerate(costs):
            if cost:
                written.costs[stage][column] = cost
        return column

    for group in program.groups:
        columns = [add(group.count, option.supply, option.costs) for option in group.columns]
        written.exactly(group.count, columns)
    for kind, units in enumerate(program.penalties):
        for costs, count in Counter(units).items():
            add(count, ((kind, 1),), costs)
        written.at_least(len(units), *supplied[kind])
    return written

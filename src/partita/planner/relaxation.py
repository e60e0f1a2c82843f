"""The linear relaxation of a ``Program``, stage by stage: a lower bound and where to look.

Costs of different stages are never mixed into one big number: after a stage is optimal, its value
is rounded up to a whole number, below which no real plan can be. Columns whose reduced cost exceeds
the rounding can be in no plan that reaches it and go; where the rounding is more than noise, a row
is added that holds the stage there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from partita.planner.program import Program
from partita.planner.simplex import NOISE, Simplex, State

__all__ = ["Ladder", "Relaxation", "relax"]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """What the relaxation says.

    Attributes:
        least: Per stage: what no choice can undercut, given the stages before it are at theirs.
        fractions: Per group: (column, members) of the last optimal solution, members above 0.
        allowed: Per group: numbers of the columns that can be part of an optimal solution.
    """

    least: tuple[int, ...]
    fractions: tuple[tuple[tuple[int, float], ...], ...]
    allowed: tuple[tuple[int, ...], ...]


def relax(program: Program, limits: Sequence[int] = ()) -> Relaxation:
    """Solve the linear relaxation of a program lexicographically.

    Args:
        program: The program.
        limits: What the first stages may cost, where that is known already.
    """
    return Ladder(program).climb(limits, program.stages)


class Ladder:
    """The relaxation of one program under changing limits; what stays the same is not redone."""

    def __init__(self, program: Program) -> None:
        self._simplex = Simplex(program)
        self._groups = len(program.groups)
        self._states: list[State] = []  # per stage: optimal, before its value is fixed
        self._whole: list[int] = []  # per stage: its value, rounded up
        self._value: list[float] = []  # per stage: its value
        self._least: list[int] = []  # per stage: what it was fixed at

    def climb(self, limits: Sequence[int], stages: int) -> Relaxation:
        """Return the relaxation of the first stages.

        Args:
            limits: What the first of them may cost, where that is known already.
            stages: How many stages.
        """
        kept = self._unchanged(limits, stages)
        for stage in range(kept, stages):
            self._optimise(stage)
            limit = limits[stage] if stage < len(limits) else self._whole[stage]
            self._fix(stage, max(self._whole[stage], limit))
        return Relaxation(
            least=tuple(self._least[:stages]),
            fractions=tuple(tuple(self._simplex.members(g)) for g in range(self._groups)),
            allowed=tuple(tuple(sorted(self._simplex.live[g])) for g in range(self._groups)),
        )

    def _unchanged(self, limits: Sequence[int], stages: int) -> int:
        """Go back to the last stage that these limits do not change; return the next one."""
        kept = 0
        while kept < min(len(self._least), stages):
            limit = limits[kept] if kept < len(limits) else self._whole[kept]
            if max(self._whole[kept], limit) != self._least[kept]:
                break
            kept += 1
        if kept < len(self._least):
            self._simplex.load(self._states[kept])  # the stage before is fixed in it already
            del self._least[kept:]
        return kept

    def _optimise(self, stage: int) -> None:
        """Optimise a stage, unless that was done before from the same state."""
        del self._states[stage + 1 :], self._whole[stage + 1 :], self._value[stage + 1 :]
        if len(self._states) > stage:
            return
        self._simplex.enter_stage(stage)
        value = self._simplex.optimise()
        self._states.append(self._simplex.save())
        self._whole.append(math.ceil(value - NOISE))
        self._value.append(value)

    def _fix(self, stage: int, value: int) -> None:
        """Keep a stage at its value from now on."""
        self._least.append(value)
        gap = max(0.0, value - self._value[stage])
        self._simplex.drop_columns(gap + NOISE)
        if gap > NOISE:
            self._simplex.hold(stage, value)

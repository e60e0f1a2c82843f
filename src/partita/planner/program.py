"""The planning problem as plain numbers: choose one column for every member of every group.

A *group* is a number of interchangeable GPUs with the same options; a *column* is one option: what
it supplies of each kind of demand, and its cost in each stage. Stages are compared
lexicographically. Demand that is not supplied costs what its penalty list says. Nothing here knows
what a GPU is; ``solver`` translates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Choice", "Column", "Costs", "Group", "Program", "add", "total_cost"]

Costs = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One option of a group.

    Attributes:
        supply: (kind, amount) pairs, amounts above 0.
        costs: Cost per stage.
    """

    supply: tuple[tuple[int, int], ...]
    costs: Costs


@dataclass(frozen=True, slots=True)
class Group:
    """Interchangeable members.

    Attributes:
        count: Number of members, 1 or more.
        columns: Their options. The first must be "leave it as it is".
    """

    count: int
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """The whole problem.

    Attributes:
        stages: Number of stages.
        penalties: Per kind: the cost of leaving one, two … units unsupplied, as the cost of each
            further unit, cheapest (least important) first. Its length is the demand.
        groups: The groups.
    """

    stages: int
    penalties: tuple[tuple[Costs, ...], ...]
    groups: tuple[Group, ...]
    zero: Costs = field(init=False)

    def __post_init__(self) -> None:
        """Derive the zero cost."""
        object.__setattr__(self, "zero", (0,) * self.stages)

    def penalty(self, missing: Sequence[int]) -> Costs:
        """Return the cost of leaving this many units of each kind unsupplied."""
        cost = self.zero
        for kind, amount in enumerate(missing):
            for unit in self.penalties[kind][:amount]:
                cost = add(cost, unit)
        return cost


@dataclass(frozen=True, slots=True)
class Choice:
    """A solution.

    Attributes:
        counts: Per group: how many members take each column.
        costs: Total cost per stage, penalties included.
        proven: Whether nothing cheaper exists.
    """

    counts: tuple[tuple[int, ...], ...]
    costs: Costs
    proven: bool


def add(left: Costs, right: Costs) -> Costs:
    """Add two costs stage by stage."""
    return tuple([a + b for a, b in zip(left, right, strict=True)])


def total_cost(program: Program, counts: Sequence[Sequence[int]]) -> Costs:
    """Return the total cost of a choice, penalties included."""
    missing = [len(units) for units in program.penalties]
    sums = [0] * program.stages
    for group, taken in zip(program.groups, counts, strict=True):
        for column, count in zip(group.columns, taken, strict=True):
            if count:
                for kind, amount in column.supply:
                    missing[kind] -= amount * count
                for stage, cost in enumerate(column.costs):
                    sums[stage] += cost * count
    return add(tuple(sums), program.penalty([max(0, amount) for amount in missing]))

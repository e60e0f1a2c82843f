"""Finds the best choice for a ``Program`` and says whether it is proven.

Two ways, one answer. Small programs: dynamic programming over all members, which is exhaustive.
Large ones: the linear relaxation fixes all but a few members; those few are searched, branch by
branch, and the result is proven when it costs exactly what the relaxation says nothing can
undercut.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from partita.planner import relaxation
from partita.planner.program import Choice, Column, Costs, Group, Program, add, total_cost

__all__ = ["solve"]

_STATES = 4_000  # states of an exhaustive search before another way is tried
_WORK = 300_000  # states x columns, likewise
_TAIL_WORK = 30_000  # the same for the last few members of a large program
_BRANCHES = 60  # branches of a large program before the best found is taken
_HALVINGS = 4  # values of a stage that are tried between its bound and the best found
_ROUNDING = 1e-3
_RADIX = 1 << 40  # a cost of one stage, summed over a whole program, stays below this

Need = tuple[int, ...]
Pick = tuple[int, int]  # (group, column)
Counts = tuple[tuple[int, ...], ...]
Columns = Sequence[tuple[int, ...]]  # per group: columns that are open


@dataclass(frozen=True, slots=True)
class _Trail:
    """How a state was reached: a linked list of picks."""

    pick: Pick
    before: "_Trail | None"


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of the program that is still open, with what is decided already.

    Attributes:
        program: What is open.
        origin: Per open group: its number in the whole program and the columns it may take.
        taken: What is decided, in numbers of the whole program: (group, column), members.
        paid: Cost of what is decided, penalties not included.
    """

    program: Program
    origin: tuple[tuple[int, tuple[int, ...]], ...]
    taken: tuple[tuple[Pick, int], ...]
    paid: Costs

    def settle(self, picks: Sequence[tuple[Pick, int]], open_columns: Columns) -> "_Node":
        """Decide members, and leave only the given columns to the others."""
        need = [len(units) for units in self.program.penalties]
        left = [group.count for group in self.program.groups]
        taken, paid = list(self.taken), self.paid
        for (group, number), picked in picks:
            members = min(picked, left[group])  # fractions near whole ones may round up together
            column = self.program.groups[group].columns[number]
            left[group] -= members
            for kind, amount in column.supply:
                need[kind] -= amount * members
            paid = add(paid, tuple([cost * members for cost in column.costs]))
            taken.append(((self.origin[group][0], self.origin[group][1][number]), members))
        return self._rest(need, left, open_columns, tuple(taken), paid)

    def _rest(
        self,
        need: Sequence[int],
        left: Sequence[int],
        open_columns: Columns,
        taken: tuple[tuple[Pick, int], ...],
        paid: Costs,
    ) -> "_Node":
        groups, origin = [], []
        for number, group in enumerate(self.program.groups):
            if left[number]:
                chosen = open_columns[number]
                columns = tuple(group.columns[c] for c in chosen)
                groups.append(Group(left[number], columns))
                whole, names = self.origin[number]
                origin.append((whole, tuple(names[c] for c in chosen)))
        penalties = tuple(
            units[: max(0, n)] for units, n in zip(self.program.penalties, need, strict=True)
        )
        program = Program(self.program.stages, penalties, tuple(groups))
        return _Node(program=program, origin=tuple(origin), taken=taken, paid=paid)

    def finish(self, counts: Counts) -> tuple[tuple[Pick, int], ...]:
        """Return everything decided once the open part is decided too."""
        picks = list(self.taken)
        for (group, names), row in zip(self.origin, counts, strict=True):
            picks += [((group, names[c]), n) for c, n in enumerate(row) if n]
        return tuple(picks)


def solve(program: Program) -> Choice:
    """Return the best choice; ``proven`` tells whether it is certain to be the best."""
    rows: list[tuple[int, ...]] = [()] * len(program.groups)
    proven = True
    for part, groups in _independent_parts(program):
        found = _exhaust(part, _WORK)
        choice = branch(part) if found is None else None
        proven = proven and (choice is None or choice.proven)
        for number, row in zip(groups, choice.counts if choice else found or (), strict=True):
            rows[number] = row
    counts = tuple(rows)
    return Choice(counts=counts, costs=total_cost(program, counts), proven=proven)


def branch(program: Program) -> Choice:
    """Return the best choice found by branching on the relaxation, never by exhaustion alone.

    Stage by stage: when no choice meets the bound in every stage, the first stage that misses is
    tried alone; what is found there becomes the limit under which the later stages are bounded
    again.
    """
    best: tuple[Costs, Counts] | None = None
    limits: Costs = ()
    proven = True
    ladder = relaxation.Ladder(program)
    while True:
        bound = ladder.climb(limits, program.stages)
        best = _better(best, _dive(program, bound, limits))
        missed = next((s for s in range(program.stages) if best[0][s] != bound.least[s]), None)
        if missed is None:
            return Choice(counts=best[1], costs=best[0], proven=proven)
        if missed < len(limits):  # the bound contradicts what was found: it proves nothing
            proven, missed = False, len(limits)
        best = _narrowed(program, ladder, bound.least[: missed + 1], limits, best)
        proven = proven and best[0][: missed + 1] == bound.least[: missed + 1]
        limits = best[0][: missed + 1]
        if len(limits) == program.stages:
            return Choice(counts=best[1], costs=best[0], proven=proven)


def _narrowed(
    program: Program,
    ladder: relaxation.Ladder,
    least: Costs,
    limits: Costs,
    best: tuple[Costs, Counts],
) -> tuple[Costs, Counts]:
    """Look for a better choice in the last stage of ``least``, between its bound and the best.

    The bound itself may be out of reach; halving what is left between a value that was not found
    and one that was gets near what can be reached.
    """
    stages = len(least)
    short = _truncated(program, stages)
    target = least[-1]
    for _ in range(_HALVINGS):
        under = (*limits, *least[len(limits) : -1], target)
        bound = ladder.climb(under, stages)
        counts = _dive(short, bound, under)[1]
        best = _better(best, (total_cost(program, counts), counts))
        if best[0][: stages - 1] != least[:-1]:
            return best  # an earlier stage is not reached, halving the last one is in vain
        failed = target if best[0][stages - 1] > target else None
        if failed is None or best[0][stages - 1] - failed <= 1:
            return best
        target = (failed + best[0][stages - 1]) // 2
    return best


def _better(one: tuple[Costs, Counts] | None, other: tuple[Costs, Counts]) -> tuple[Costs, Counts]:
    return other if one is None else min(one, other)


def _truncated(program: Program, stages: int) -> Program:
    """The same program with its first stages only."""
    return Program(
        stages,
        tuple(tuple(unit[:stages] for unit in units) for units in program.penalties),
        tuple(
            Group(g.count, tuple(Column(c.supply, c.costs[:stages]) for c in g.columns))
            for g in program.groups
        ),
    )


def _dive(program: Program, bound: relaxation.Relaxation, limits: Costs) -> tuple[Costs, Counts]:
    everything = tuple((n, tuple(range(len(g.columns)))) for n, g in enumerate(program.groups))
    root = _Node(program=program, origin=everything, taken=(), paid=program.zero)
    search = _Branching(program, bound.least, limits)
    for spare in (0, 1, 2):
        if search.descend(root.settle(_floors(bound, spare), bound.allowed)):
            break
    assert search.best is not None
    return search.best


def _independent_parts(program: Program) -> Iterator[tuple[Program, tuple[int, ...]]]:
    """Split a program into parts that share no kind of demand."""
    owner = list(range(len(program.penalties)))

    def find(kind: int) -> int:
        while owner[kind] != kind:
            kind = owner[kind]
        return kind

    kinds_of = []
    for group in program.groups:
        kinds = sorted({kind for column in group.columns for kind, _ in column.supply})
        kinds_of.append(kinds)
        for kind in kinds[1:]:
            owner[find(kind)] = find(kinds[0])
    parts: dict[int, list[int]] = {find(kind): [] for kind in range(len(owner))}
    for number, kinds in enumerate(kinds_of):
        parts.setdefault(find(kinds[0]) if kinds else -1, []).append(number)
    for root, groups in parts.items():
        kinds = [kind for kind in range(len(owner)) if find(kind) == root]
        yield _part(program, kinds, groups), tuple(groups)


def _part(program: Program, kinds: Sequence[int], groups: Sequence[int]) -> Program:
    number = {kind: position for position, kind in enumerate(kinds)}
    return Program(
        program.stages,
        tuple(program.penalties[kind] for kind in kinds),
        tuple(
            Group(
                program.groups[g].count,
                tuple(
                    Column(tuple((number[k], n) for k, n in c.supply), c.costs)
                    for c in program.groups[g].columns
                ),
            )
            for g in groups
        ),
    )


class _Branching:
    """Depth-first search for a choice that meets the bound, keeping the best one on the way."""

    def __init__(self, program: Program, least: Costs, limits: Costs) -> None:
        self.program = program
        self.least = least
        self.limits = limits
        self.best: tuple[Costs, Counts] | None = None
        self.branches = 0

    def descend(self, node: _Node) -> bool:
        """Search below a node; True when a choice that meets the bound is found."""
        self.branches += 1
        tail = _exhaust(node.program, _TAIL_WORK)
        if tail is not None:
            return self._offer(node.finish(tail))
        limits = [limit - paid for limit, paid in zip(self.limits, node.paid, strict=False)]
        bound = relaxation.relax(node.program, limits)
        pick = _largest_fraction(bound)
        settled = node.settle(_floors(bound, 0), bound.allowed)
        if pick is None and not settled.program.groups:
            return self._offer(settled.taken)
        if self.best is not None and (
            self.branches > _BRANCHES or add(node.paid, bound.least) > self.least
        ):
            return False
        if pick is None:  # whole but for noise: what noise left over is searched
            return self.descend(settled)
        return self.descend(_up(node, bound, pick)) or self.descend(_down(node, bound, pick))

    def _offer(self, picks: Sequence[tuple[Pick, int]]) -> bool:
        rows = [[0] * len(group.columns) for group in self.program.groups]
        for (group, column), members in picks:
            rows[group][column] += members
        counts = tuple(tuple(row) for row in rows)
        costs = total_cost(self.program, counts)
        if self.best is None or costs < self.best[0]:
            self.best = (costs, counts)
        return costs <= self.least


def _floors(bound: relaxation.Relaxation, spare: int) -> list[tuple[Pick, int]]:
    """Whole members of each used column; ``spare`` fewer where the column is not whole."""
    picks = []
    for group, used in enumerate(bound.fractions):
        for column, amount in used:
            whole = math.floor(amount + _ROUNDING)
            if amount - whole > _ROUNDING:
                whole -= spare
            if whole > 0:
                picks.append(((group, column), whole))
    return picks


def _largest_fraction(bound: relaxation.Relaxation) -> Pick | None:
    parts = [
        (amount - math.floor(amount + _ROUNDING), -group, -column)
        for group, used in enumerate(bound.fractions)
        for column, amount in used
    ]
    best = max(parts, default=(0.0, 0, 0))
    return (-best[1], -best[2]) if best[0] > _ROUNDING else None


def _up(node: _Node, bound: relaxation.Relaxation, pick: Pick) -> _Node:
    """The branch in which one more member takes the column than the relaxation's whole part."""
    return node.settle([*_floors(bound, 0), (pick, 1)], bound.allowed)


def _down(node: _Node, bound: relaxation.Relaxation, pick: Pick) -> _Node:
    """The branch in which no further member takes the column."""
    columns = list(bound.allowed)
    columns[pick[0]] = tuple(c for c in columns[pick[0]] if c != pick[1]) or columns[pick[0]]
    return node.settle(_floors(bound, 0), tuple(columns))


def _exhaust(program: Program, work: int) -> Counts | None:
    """Search everything by dynamic programming; None when it grows beyond ``work``."""
    if sum(group.count * len(group.columns) for group in program.groups) > work:
        return None
    need = tuple(len(units) for units in program.penalties)
    states: dict[Need, tuple[int, _Trail | None]] = {need: (0, None)}
    for number, group in enumerate(program.groups):
        columns = [(column.supply, _packed(column.costs)) for column in group.columns]
        for _ in range(group.count):
            work -= len(states) * len(columns)
            if work < 0 or len(states) > _STATES:
                return None
            states = _extend(states, number, columns)
    best = min((cost + _packed(program.penalty(rest)), rest) for rest, (cost, _) in states.items())
    rows = [[0] * len(group.columns) for group in program.groups]
    trail = states[best[1]][1]
    while trail is not None:
        rows[trail.pick[0]][trail.pick[1]] += 1
        trail = trail.before
    return tuple(tuple(row) for row in rows)


def _packed(costs: Costs) -> int:
    """Return costs as one number that compares and adds like the tuple."""
    packed = 0
    for cost in costs:
        packed = packed * _RADIX + cost
    return packed


def _extend(
    states: dict[Need, tuple[int, _Trail | None]],
    group: int,
    columns: Sequence[tuple[tuple[tuple[int, int], ...], int]],
) -> dict[Need, tuple[int, _Trail | None]]:
    found: dict[Need, tuple[int, _Trail | None]] = {}
    for need, (paid, trail) in states.items():
        for number, (supply, cost) in enumerate(columns):
            rest = list(need)
            for kind, amount in supply:
                left = rest[kind] - amount
                rest[kind] = max(0, left)
            after = tuple(rest)
            total = paid + cost
            known = found.get(after)
            if known is None or total < known[0]:
                found[after] = (total, _Trail((group, number), trail))
    return found

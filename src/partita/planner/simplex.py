"""A primal simplex method with generalised upper bounds, for one ``Program`` at a time.

The rule "every member takes one column" is kept by one *key* column per group, so the working basis
has one row per kind of demand however many groups there are. Method: Dantzig and Van Slyke,
"Generalized Upper Bounding Techniques", 1967.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from partita.planner.program import Program

__all__ = ["NOISE", "Simplex", "State"]

_EPSILON = 1e-7
_PIVOT = 1e-9
_NUDGE = 1e-8  # counts are nudged by about this much, so that the method cannot cycle
NOISE = 2e-3  # what nudges and arithmetic can add up to in the value of a stage
_CANDIDATES = 24  # columns tried between two full pricings

Matrix = list[list[float]]


@dataclass(frozen=True, slots=True)
class State:
    """Everything of a tableau that pivots, restrictions and rows change."""

    rows: int
    interned: int
    supply: tuple[list[int], ...]
    demand: tuple[float, ...]
    live: tuple[list[int], ...]
    surplus_live: frozenset[int]
    key: tuple[int, ...]
    basis: tuple[tuple[int, int], ...]
    inverse: tuple[tuple[float, ...], ...]
    cost: list[list[int]]


class Simplex:
    """The tableau. Column ids: (group, number) for options, (-1, row) for surplus."""

    def __init__(self, program: Program) -> None:
        self.rows = len(program.penalties)
        self.penalties = program.penalties
        self._intern: dict[tuple[tuple[int, int], ...], int] = {}
        self._supplies: list[tuple[tuple[int, int], ...]] = []
        self._load(program)
        size = self.rows
        self.key = list(self._start)
        self.basis: list[tuple[int, int]] = [(-1, kind) for kind in range(size)]
        self.inverse: Matrix = [[-1.0 if r == c else 0.0 for c in range(size)] for r in range(size)]
        self.surplus_live = set(range(size))
        self.cost: list[list[int]] = []
        self.target = self._target()

    def _load(self, program: Program) -> None:
        """Take the groups over, with one more group for each run of equal penalties."""
        self.supply: list[list[int]] = []
        self.costs: list[list[tuple[int, ...]]] = []
        self.size: list[float] = []
        self._start: list[int] = []
        self.demand = [float(len(units)) for units in program.penalties]
        for group in program.groups:
            columns = [(column.supply, column.costs) for column in group.columns]
            self._append(columns, group.count, start=0)
        for kind, units in enumerate(program.penalties):
            for unit in sorted(set(units)):
                columns = [((), program.zero), (((kind, 1),), unit)]
                self._append(columns, units.count(unit), start=1)
        self.live = [list(range(len(columns))) for columns in self.supply]

    def _append(
        self,
        columns: Sequence[tuple[tuple[tuple[int, int], ...], tuple[int, ...]]],
        count: int,
        *,
        start: int,
    ) -> None:
        number = len(self.supply)
        self.supply.append([self._interned(supply) for supply, _ in columns])
        self.costs.append([costs for _, costs in columns])
        self.size.append(count + _NUDGE * (1 + (number * 7919 % 997) / 997))
        self._start.append(start)

    def _interned(self, supply: tuple[tuple[int, int], ...]) -> int:
        found = self._intern.get(supply)
        if found is None:
            found = self._intern[supply] = len(self._supplies)
            self._supplies.append(supply)
        return found

    def save(self) -> State:
        """Return the present state."""
        return State(
            rows=self.rows,
            interned=len(self._supplies),
            supply=tuple(self.supply),
            demand=tuple(self.demand),
            live=tuple(self.live),
            surplus_live=frozenset(self.surplus_live),
            key=tuple(self.key),
            basis=tuple(self.basis),
            inverse=tuple(tuple(row) for row in self.inverse),
            cost=self.cost,
        )

    def load(self, state: State) -> None:
        """Return to a saved state."""
        self.rows = state.rows
        while len(self._supplies) > state.interned:
            del self._intern[self._supplies.pop()]
        self.supply = list(state.supply)
        self.demand = list(state.demand)
        self.live = list(state.live)
        self.surplus_live = set(state.surplus_live)
        self.key = list(state.key)
        self.basis = list(state.basis)
        self.inverse = [list(row) for row in state.inverse]
        self.cost = state.cost
        self.target = self._target()

    # -- stages ------------------------------------------------------------------------------

    def enter_stage(self, stage: int) -> None:
        """Take the costs of one stage."""
        self.cost = [[costs[stage] for costs in group] for group in self.costs]

    def drop_columns(self, gap: float) -> None:
        """Drop the columns that no whole solution within ``gap`` of the optimum uses."""
        prices = self.prices()
        worth = self._worth(prices)
        for group, live in enumerate(self.live):
            supply, cost = self.supply[group], self.cost[group]
            floor = cost[self.key[group]] - worth[supply[self.key[group]]] + gap
            self.live[group] = [n for n in live if cost[n] - worth[supply[n]] <= floor]
        kinds = len(self.penalties)  # in a row that holds a stage, surplus may be less than 1
        self.surplus_live = {k for k in self.surplus_live if k >= kinds or prices[k] <= gap}

    def hold(self, stage: int, limit: int) -> None:
        """Add a row: the cost of a stage, summed over all members, is at most ``limit``."""
        row = self.rows
        for group, columns in enumerate(self.supply):
            self.supply[group] = [
                self._interned((*self._supplies[column], (row, -costs[stage])))
                if costs[stage]
                else column
                for column, costs in zip(columns, self.costs[group], strict=True)
            ]
        entries = [
            (self.cost[group][self.key[group]] - self.cost[group][number]) if group >= 0 else 0
            for group, number in self.basis
        ]
        new = [
            sum([entry * inverse[k] for entry, inverse in zip(entries, self.inverse, strict=True)])
            for k in range(row)
        ]
        for inverse in self.inverse:
            inverse.append(0.0)
        self.inverse.append([*new, -1.0])
        self.basis.append((-1, row))
        self.surplus_live.add(row)
        self.demand.append(-float(limit) - NOISE)
        self.rows += 1
        self.target = self._target()

    def optimise(self) -> float:
        """Pivot until no column improves the stage; return its value."""
        while candidates := self._price():
            progress = False
            for column in candidates:
                prices = self.prices()
                if self._reduced_cost(column, prices) < -_EPSILON:
                    self._enter(column)
                    progress = True
            if not progress:
                break
        return self._value()

    def members(self, group: int) -> list[tuple[int, float]]:
        """Return the columns of a group that are used, with their members."""
        found = []
        rest = self.size[group]
        for column, value in zip(self.basis, self._basic_values(), strict=True):
            if column[0] == group:
                rest -= value
                found.append((column[1], value))
        return [(self.key[group], rest), *found]

    # -- prices ------------------------------------------------------------------------------

    def prices(self) -> list[float]:
        """Return the price of one unit of each kind under the present basis."""
        prices = [0.0] * self.rows
        for row, (group, number) in enumerate(self.basis):
            if group < 0:
                continue
            gain = self.cost[group][number] - self.cost[group][self.key[group]]
            if gain:
                inverse = self.inverse[row]
                for kind in range(self.rows):
                    prices[kind] += gain * inverse[kind]
        return prices

    def _worth(self, prices: Sequence[float]) -> list[float]:
        return [
            sum([prices[kind] * amount for kind, amount in supply]) for supply in self._supplies
        ]

    def _price(self) -> list[tuple[int, int]]:
        """Return the most promising columns, best first."""
        prices = self.prices()
        worth = self._worth(prices)
        found = [
            (prices[kind], (-1, kind)) for kind in self.surplus_live if prices[kind] < -_EPSILON
        ]
        for group, live in enumerate(self.live):
            supply, cost = self.supply[group], self.cost[group]
            best, number = min([(cost[n] - worth[supply[n]], n) for n in live])
            key = self.key[group]
            gain = best - (cost[key] - worth[supply[key]])
            if gain < -_EPSILON:
                found.append((gain, (group, number)))
        found.sort()
        return [column for _, column in found[:_CANDIDATES]]

    def _reduced_cost(self, column: tuple[int, int], prices: Sequence[float]) -> float:
        group, number = column
        if group < 0:
            return prices[number]
        key = self.key[group]
        return (
            self.cost[group][number]
            - self.cost[group][key]
            - sum([prices[k] * amount for k, amount in self._supplies[self.supply[group][number]]])
            + sum([prices[k] * amount for k, amount in self._supplies[self.supply[group][key]]])
        )

    def _value(self) -> float:
        value = 0.0
        basic = dict(zip(self.basis, self._basic_values(), strict=True))
        used: dict[int, float] = {}
        for (group, number), amount in basic.items():
            if group >= 0:
                value += self.cost[group][number] * amount
                used[group] = used.get(group, 0.0) + amount
        for group, key in enumerate(self.key):
            cost = self.cost[group][key]
            if cost:
                value += cost * (self.size[group] - used.get(group, 0.0))
        return value

    # -- pivots ------------------------------------------------------------------------------

    def _target(self) -> list[float]:
        target = list(self.demand)
        for group, key in enumerate(self.key):
            for kind, amount in self._supplies[self.supply[group][key]]:
                target[kind] -= amount * self.size[group]
        return target

    def _basic_values(self) -> list[float]:
        target = self.target
        return [sum([a * b for a, b in zip(row, target, strict=True)]) for row in self.inverse]

    def _vector(self, column: tuple[int, int]) -> list[float]:
        """Return a column relative to the key column of its group."""
        vector = [0.0] * self.rows
        group, number = column
        if group < 0:
            vector[number] = -1.0
            return vector
        for kind, amount in self._supplies[self.supply[group][number]]:
            vector[kind] += amount
        for kind, amount in self._supplies[self.supply[group][self.key[group]]]:
            vector[kind] -= amount
        return vector

    def _step(self, column: tuple[int, int]) -> list[float]:
        vector = [(k, v) for k, v in enumerate(self._vector(column)) if v]
        return [sum([row[k] * v for k, v in vector]) for row in self.inverse]

    def _enter(self, column: tuple[int, int]) -> None:
        """Bring a column in; whatever first reaches zero goes out."""
        step = self._step(column)
        values = self._basic_values()
        rate: dict[int, float] = {}
        used: dict[int, float] = {}
        for row, (group, _) in enumerate(self.basis):
            if group >= 0:
                rate[group] = rate.get(group, 0.0) + step[row]
                used[group] = used.get(group, 0.0) + values[row]
        if column[0] >= 0:
            rate[column[0]] = rate.get(column[0], 0.0) - 1.0
        leaving: tuple[float, float, str, int] | None = None
        for row, alpha in enumerate(step):
            if alpha > _PIVOT:
                ratio = (max(values[row], 0.0) / alpha, -alpha, "row", row)
                leaving = min(leaving, ratio) if leaving else ratio
        for group, speed in rate.items():
            if speed < -_PIVOT:
                room = max(self.size[group] - used.get(group, 0.0), 0.0)
                ratio = (room / -speed, speed, "key", group)
                leaving = min(leaving, ratio) if leaving else ratio
        if leaving is None:  # cannot happen: every group is bounded and surplus costs nothing
            raise AssertionError("unbounded relaxation")
        if leaving[2] == "row":
            self._replace(leaving[3], column, step)
        else:
            self._replace_key(leaving[3], column)

    def _replace(self, row: int, column: tuple[int, int], step: list[float]) -> None:
        """Put a column into a row of the basis."""
        inverse = self.inverse
        pivot = 1.0 / step[row]
        pivot_row = [value * pivot for value in inverse[row]]
        for other, alpha in enumerate(step):
            if other != row and (alpha > _PIVOT or alpha < -_PIVOT):
                inverse[other] = [
                    a - alpha * b for a, b in zip(inverse[other], pivot_row, strict=True)
                ]
        inverse[row] = pivot_row
        self.basis[row] = column

    def _replace_key(self, group: int, column: tuple[int, int]) -> None:
        """Let another column be the key of a group whose key has reached zero."""
        rows = [row for row, (owner, _) in enumerate(self.basis) if owner == group]
        if not rows:  # then the entering column is of this group and becomes its key
            self._set_key(group, column[1])
            return
        row = max(rows, key=lambda r: self._basic_values()[r])
        promoted = self.basis[row][1]
        summed = [sum(self.inverse[r][k] for r in rows) for k in range(self.rows)]
        self.basis[row] = (group, self.key[group])
        self.inverse[row] = [-value for value in summed]
        self._set_key(group, promoted)
        step = self._step(column)
        if abs(step[row]) > _PIVOT:
            self._replace(row, column, step)

    def _set_key(self, group: int, number: int) -> None:
        size = self.size[group]
        for kind, amount in self._supplies[self.supply[group][self.key[group]]]:
            self.target[kind] += amount * size
        for kind, amount in self._supplies[self.supply[group][number]]:
            self.target[kind] -= amount * size
        self.key[group] = number

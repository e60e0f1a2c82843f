"""Integer programs with several objectives in order of importance, solved by HiGHS in stages."""

import time
from dataclasses import dataclass, field

import highspy
import numpy as np

__all__ = ["Answer", "StagedProgram", "solve"]

_ROW_SLACK = 1e-6  # objectives are whole numbers; this only forgives rounding


@dataclass
class StagedProgram:
    """Columns, rows and objectives while they are written down.

    Attributes:
        stages: Number of objectives, each minimised.
        upper: Per column: its upper bound; the lower one is 0.
        whole: Per column: whether it must be a whole number.
        rows: (lower, upper, columns, coefficients).
        costs: Per stage: column → cost.
        constant: Per stage: what is added to the objective.
    """

    stages: int
    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[float, float, list[int], list[float]]] = field(default_factory=list)
    costs: list[dict[int, float]] = field(default_factory=list)
    constant: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start with objectives that are 0."""
        self.costs = [{} for _ in range(self.stages)]
        self.constant = [0] * self.stages

    def column(self, upper: float = 1.0, *, whole: bool = True) -> int:
        """Add a column and return its number."""
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.upper) - 1

    def at_most(self, bound: float, columns: list[int], factors: list[float] | None = None) -> None:
        """Add the row: sum of factor times column is at most ``bound``."""
        self.rows.append((-highspy.kHighsInf, bound, columns, factors or [1.0] * len(columns)))

    def at_least(self, bound: float, columns: list[int], factors: list[float]) -> None:
        """Add the row: sum of factor times column is at least ``bound``."""
        self.rows.append((bound, highspy.kHighsInf, columns, factors))

    def exactly(self, value: float, columns: list[int]) -> None:
        """Add the row: the columns sum to ``value``."""
        self.rows.append((value, value, columns, [1.0] * len(columns)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What HiGHS says.

    Attributes:
        values: Value per stage; shorter than the stages when one was not finished in time.
        seconds: CPU seconds from handing the program over to the end of the last stage.
        stage_seconds: CPU seconds of each stage that was begun.
    """

    values: tuple[int, ...]
    seconds: float
    stage_seconds: tuple[float, ...]


def solve(program: StagedProgram, limit_seconds: float) -> Answer:
    """Minimise the objectives in order; what one reaches is a row for those after it.

    HiGHS keeps its defaults but for the gap, which is 0, and threads, which are one as in the
    planner; it starts each stage from the solution of the one before. A stage that is not proven
    optimal within the limit, by the clock, ends the attempt.
    """
    began = time.process_time()
    solver = _loaded(program)
    values: list[int] = []
    spent: list[float] = []
    for stage in range(program.stages):
        entered = time.process_time()
        value = _stage(solver, program, stage, limit_seconds)
        spent.append(time.process_time() - entered)
        if value is None:
            break
        values.append(value)
    return Answer(
        values=tuple(values), seconds=time.process_time() - began, stage_seconds=tuple(spent)
    )


def _stage(
    solver: highspy.Highs, program: StagedProgram, stage: int, limit_seconds: float
) -> int | None:
    costs = np.zeros(len(program.upper))
    for column, cost in program.costs[stage].items():
        costs[column] = cost
    used = np.nonzero(costs)[0].astype(np.int32)
    if not len(used):
        return program.constant[stage]
    before = solver.getSolution() if stage else None
    solver.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)
    if before is not None and before.value_valid:
        solver.setSolution(before)
    solver.setOptionValue("time_limit", solver.getRunTime() + limit_seconds)  # it counts all runs
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = solver.getSolution()
    value = round(solver.getInfo().objective_function_value)
    solver.addRow(-highspy.kHighsInf, value + _ROW_SLACK, len(used), used, costs[used])
    solver.setSolution(solution)
    return value + program.constant[stage]


def _loaded(program: StagedProgram) -> highspy.Highs:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)  # noqa: FBT003  # highspy's own signature
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 0.0)
    count = len(program.upper)
    solver.addVars(count, np.zeros(count), np.array(program.upper))
    whole = np.nonzero(program.whole)[0].astype(np.int32)
    kinds = np.full(len(whole), int(highspy.HighsVarType.kInteger), dtype=np.uint8)
    solver.changeColsIntegrality(len(whole), whole, kinds)
    starts, columns, factors = [], [], []
    for _, _, row_columns, row_factors in program.rows:
        starts.append(len(columns))
        columns += row_columns
        factors += row_factors
    solver.addRows(
        len(program.rows),
        np.array([row[0] for row in program.rows]),
        np.array([row[1] for row in program.rows]),
        len(columns),
        np.array(starts, dtype=np.int32),
        np.array(columns, dtype=np.int32),
        np.array(factors),
    )
    return solver

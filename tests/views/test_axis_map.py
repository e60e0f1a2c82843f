"""The memory axis of a GPU as a text map."""

import pytest
from tests.views import example_plans

from partita.views import axis_map, gpu_cells
from partita.views.axis_map import ASCII, BOXES, Cell, Mark
from partita.views.style import PLAIN, Style, Tone


def _map(cells: list[Cell], units: int, width: int = 80) -> list[str]:
    return axis_map.lines([("stands", cells)], units, width=width, style=PLAIN, frame=ASCII)


def test_boxes_are_as_long_as_instances() -> None:
    """Every slice has the same width, and an instance is a box over all of its slices."""
    cells = [
        Cell(start=0, size=1, mark=Mark.HELD, name="1g.10gb"),
        Cell(start=1, size=3, mark=Mark.EMPTY),
        Cell(start=4, size=4, mark=Mark.CREATED, name="3g.40gb"),
    ]
    assert _map(cells, 8) == [
        "           0       1       2       3       4       5       6       7",
        "          +-------+-----------------------+-------------------------------+",
        "  stands  |1g.10gb|                       |            3g.40gb            |",
        "          |# held |        . empty        |             + new             |",
        "          +-------+-----------------------+-------------------------------+",
    ]


def test_rows_share_their_line() -> None:
    """Between two rows there is one line, with joints where either has an edge."""
    before = [Cell(start=0, size=4, mark=Mark.DESTROYED, name="4g.24gb")]
    after = [
        Cell(start=0, size=2, mark=Mark.CREATED, name="2g.12gb"),
        Cell(start=2, size=2, mark=Mark.EMPTY),
    ]
    rows = [("stands", before), ("planned", after)]
    lines = axis_map.lines(rows, 4, width=40, style=PLAIN, frame=BOXES)
    assert [line.strip() for line in lines if "─" in line] == [
        "┌───────────────────────────┐",
        "├─────────────┬─────────────┤",
        "└─────────────┴─────────────┘",
    ]


@pytest.mark.parametrize("units", [2, 4, 8, 12])
@pytest.mark.parametrize("width", [36, 60, 80, 100, 160, 300])
def test_width_is_kept(units: int, width: int) -> None:
    """The map is as wide as allowed, at most a readable width, on every axis."""
    cells = [Cell(start=n, size=1, mark=Mark.HELD, name="1g.24gb+me.all") for n in range(units)]
    lines = _map(cells, units, width)
    assert max(map(len, lines)) <= min(width, 125)
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.mark.parametrize(
    ("inside", "expected"),
    [(20, "1g.24gb+me.all"), (10, "1g+me.all"), (4, "1g"), (1, "1")],
)
def test_long_names_are_shortened(inside: int, expected: str) -> None:
    """Where a profile name does not fit, its memory goes first, then its attributes."""
    cell = Cell(start=0, size=1, mark=Mark.HELD, name="1g.24gb+me.all")
    name = _map([cell], 1, 10 + 2 + inside)[2].split("|")[1].strip()
    assert name == expected


def test_meaning_does_not_depend_on_colour() -> None:
    """Without its escape codes a coloured map is the plain one."""
    cells = [Cell(start=n, size=1, mark=mark) for n, mark in enumerate(Mark)]
    rows = [("stands", cells)]
    plain = axis_map.lines(rows, len(cells), width=100, style=PLAIN)
    coloured = axis_map.lines(rows, len(cells), width=100, style=Style(colour=True))
    assert coloured != plain
    text = "\n".join(coloured)
    for tone in Tone:
        text = text.replace(f"\x1b[{tone.value}m", "")
    assert text.replace("\x1b[0m", "").splitlines() == plain


def test_every_mark_has_its_own_sign_and_word() -> None:
    """No two marks look alike."""
    assert len({axis_map.marked(mark) for mark in Mark}) == len(Mark)
    assert len({mark.value for mark in Mark}) == len(Mark)


def test_cells_cover_the_axis() -> None:
    """Before and after, the cells of every GPU of every example cover its axis without overlap."""
    for make in example_plans.ALL:
        for gpu in make().gpus:
            length = gpu_cells.units(gpu)
            if length is None:
                continue
            for cells in (gpu_cells.standing(gpu, length), gpu_cells.planned(gpu, length)):
                if cells is not None:
                    covered = [n for c in cells for n in range(c.start, c.start + c.size)]
                    assert covered == list(range(length))


def test_unusable_slices_are_marked() -> None:
    """The slice behind 4g, 2g and 1g of an A100 is lost: nothing fits there any more."""
    cells = gpu_cells.planned(example_plans.resets().gpus[0], 8)
    assert cells is not None
    assert [(c.start, c.size) for c in cells if c.mark is Mark.UNUSABLE] == [(7, 1)]


def test_unknown_placements_are_not_drawn_at_a_place() -> None:
    """An instance of unknown placement makes all of its candidates unsure."""
    plan = example_plans.unknown_placements().gpus[0]
    cells = gpu_cells.standing(plan, 8)
    assert cells is not None
    assert [(c.start, c.size, c.mark, c.name) for c in cells] == [
        (0, 4, Mark.UNSURE, ""),
        (4, 4, Mark.EMPTY, ""),
    ]
    assert gpu_cells.adrift(plan) == plan.gpu.instances


def test_what_is_destroyed_is_marked() -> None:
    """Of three instances the free one that has to go is marked, the held ones are untouched."""
    cells = gpu_cells.standing(example_plans.fragmented().gpus[0], 8)
    assert cells is not None
    marks = {cell.start: cell.mark for cell in cells if cell.name}
    assert marks == {0: Mark.HELD, 1: Mark.HELD, 5: Mark.DESTROYED}

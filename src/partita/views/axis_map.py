"""The memory-slice axis of one GPU as a text map: one row per state, instances as boxes.

Pure text layout: it draws cells that ``gpu_cells`` derives. A sign and a word in every box say what
it is; colour only repeats them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from partita.views.style import Style, Tone

__all__ = ["ASCII", "BOXES", "Cell", "Frame", "Mark", "lines", "marked"]

_INDENT = 2
_WIDEST = 112  # columns of the axis; wider boxes do not read better
_WIDEST_UNIT = 20  # columns of one memory slice, likewise


class Mark(Enum):
    """What a part of the axis is; the value is its sign."""

    HELD = "#"
    STAYS = "="
    CREATED = "+"
    DESTROYED = "-"
    EMPTY = "."
    UNUSABLE = "x"
    UNSURE = "?"


_WORDS: Mapping[Mark, str] = {
    Mark.HELD: "held",
    Mark.STAYS: "free",
    Mark.CREATED: "new",
    Mark.DESTROYED: "goes",
    Mark.EMPTY: "empty",
    Mark.UNUSABLE: "lost",
    Mark.UNSURE: "unsure",
}
_TONES: Mapping[Mark, Tone] = {
    Mark.CREATED: Tone.GOOD,
    Mark.DESTROYED: Tone.BAD,
    Mark.EMPTY: Tone.FAINT,
    Mark.UNUSABLE: Tone.WARNING,
    Mark.UNSURE: Tone.WARNING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A run of memory slices that is one thing.

    Attributes:
        start: First slice.
        size: Number of slices.
        mark: What it is.
        name: Profile name, empty where no instance is.
        who: Who has it or is to get it, empty when nobody or several.
    """

    start: int
    size: int
    mark: Mark
    name: str = ""
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The characters of the lines around boxes.

    Attributes:
        across: Horizontal line.
        down: Vertical line.
        joints: Where lines meet, by the arms (left, right, up, down) that are there.
    """

    across: str
    down: str
    joints: Mapping[tuple[bool, bool, bool, bool], str]


_ARMS: Mapping[str, tuple[bool, bool, bool, bool]] = {
    "┌": (False, True, False, True),
    "┐": (True, False, False, True),
    "└": (False, True, True, False),
    "┘": (True, False, True, False),
    "├": (False, True, True, True),
    "┤": (True, False, True, True),
    "┬": (True, True, False, True),
    "┴": (True, True, True, False),
    "┼": (True, True, True, True),
}
BOXES = Frame(across="─", down="│", joints={arms: char for char, arms in _ARMS.items()})
ASCII = Frame(across="-", down="|", joints=dict.fromkeys(_ARMS.values(), "+"))


def marked(mark: Mark, text: str = "") -> str:
    """Return a sign with its word, or with another text: ``# held``."""
    return f"{mark.value} {text or _WORDS[mark]}"


def lines(
    rows: Sequence[tuple[str, Sequence[Cell]]],
    units: int,
    *,
    width: int,
    style: Style,
    frame: Frame = BOXES,
) -> list[str]:
    """Return the map: a ruler, then one row of boxes per state.

    Args:
        rows: Label and cells of each row; cells cover the whole axis, in order.
        units: Length of the axis.
        width: Columns the map may take.
        style: How it is emphasised.
        frame: Characters of the lines.
    """
    margin = _INDENT + max(len(label) for label, _ in rows) + 2
    unit = _unit_width(units, width - margin)
    ruler = "".join(f" {number:<{unit}}" for number in range(units))
    found = [style.paint((" " * margin + ruler).rstrip(), Tone.FAINT)]
    above: Sequence[Cell] = ()
    for label, cells in rows:
        found.append(" " * margin + _rule(above, cells, units, unit, frame))
        found += _boxes(label, cells, unit, margin, style, frame)
        above = cells
    return [*found, " " * margin + _rule(above, (), units, unit, frame)]


def _unit_width(units: int, room: int) -> int:
    """Columns inside of a box that is one memory slice long."""
    widest = min(room - 1, _WIDEST) // units - 1
    return max(1, min(widest, _WIDEST_UNIT))


def _boxes(
    label: str, cells: Sequence[Cell], unit: int, margin: int, style: Style, frame: Frame
) -> list[str]:
    names, states = [frame.down], [frame.down]
    for cell in cells:
        inside = (unit + 1) * cell.size - 1
        names += [_painted(_name(cell.name, inside), inside, cell.mark, style), frame.down]
        states += [_painted(_state(cell, inside), inside, cell.mark, style), frame.down]
    first = f"{' ' * _INDENT}{label:<{margin - _INDENT}}"
    return [first + "".join(names), " " * margin + "".join(states)]


def _painted(text: str, inside: int, mark: Mark, style: Style) -> str:
    left = (inside - len(text)) // 2
    return " " * left + style.paint(text, _TONES.get(mark)) + " " * (inside - len(text) - left)


def _name(profile: str, inside: int) -> str:
    """Return the longest form of a profile name that fits: ``1g.10gb+me``, ``1g+me``, ``1g``."""
    size, _, rest = profile.partition(".")
    attributes = rest[rest.find("gb") + 2 :]
    forms = (profile, size + attributes, size)
    return next((form for form in forms if len(form) <= inside), size[:inside])


def _state(cell: Cell, inside: int) -> str:
    forms = (marked(cell.mark, cell.who), marked(cell.mark))
    return next((form for form in forms if len(form) <= inside), cell.mark.value)


def _rule(above: Sequence[Cell], below: Sequence[Cell], units: int, unit: int, frame: Frame) -> str:
    up, down = _edges(above, units), _edges(below, units)
    found = []
    for edge in range(units + 1):
        arms = (edge > 0, edge < units, edge in up, edge in down)
        found.append(frame.joints.get(arms, frame.across))
        found.append(frame.across * unit if edge < units else "")
    return "".join(found)


def _edges(cells: Sequence[Cell], units: int) -> set[int]:
    return {cell.start for cell in cells} | {units} if cells else set()

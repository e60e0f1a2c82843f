"""Tables, labelled facts and wrapped text for a given width, as lines without trailing blanks.

Pure text layout: it knows nothing of GPUs. One character is one column (no wide scripts).
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from partita.views.style import Style, Tone

__all__ = ["Align", "Cell", "Column", "Table", "facts", "paragraph", "table_of"]

_GAP = 2
_READABLE = 100  # columns; longer lines of prose are hard to follow
_ELLIPSIS = "…"


class Align(Enum):
    """On which side of its column a text stands. Numbers stand right."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its header.
        align: Where header and cells stand.
        flexible: Whether cells may be shortened with ``…`` when the table is too wide.
    """

    title: str
    align: Align = Align.LEFT
    flexible: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell with emphasis; a plain ``str`` is a cell without."""

    text: str
    tone: Tone | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headers.

    Attributes:
        columns: The columns.
        rows: One cell per column and row.
        indent: Blanks before every line.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Cell]]
    indent: int = 0

    @property
    def natural_width(self) -> int:
        """The width at which nothing is shortened, in characters."""
        return self._total(self._natural_widths())

    def lines(self, *, width: int, style: Style) -> list[str]:
        """Return header and rows, at most ``width`` characters wide if flexible columns allow it.

        The widest flexible column gives way first, down to the length of its header.
        """
        widths = self._fit(width)
        header = [Cell(text=column.title, tone=Tone.TITLE) for column in self.columns]
        return [self._line(row, widths, style) for row in (header, *self.rows)]

    def _natural_widths(self) -> list[int]:
        widths = [len(column.title) for column in self.columns]
        for row in self.rows:
            cells = zip(widths, row, strict=True)
            widths = [max(width, len(_cell(cell).text)) for width, cell in cells]
        return widths

    def _total(self, widths: Sequence[int]) -> int:
        return self.indent + sum(widths) + _GAP * (len(widths) - 1)

    def _fit(self, width: int) -> list[int]:
        widths = self._natural_widths()
        while self._total(widths) > width:
            yielding = [
                number
                for number, column in enumerate(self.columns)
                if column.flexible and widths[number] > len(column.title)
            ]
            if not yielding:
                break
            widths[max(yielding, key=lambda number: widths[number])] -= 1
        return widths

    def _line(self, row: Sequence[str | Cell], widths: Sequence[int], style: Style) -> str:
        parts = []
        for column, item, width in zip(self.columns, row, widths, strict=True):
            cell = _cell(item)
            text = _shortened(cell.text, width)
            blanks = " " * (width - len(text))
            painted = style.paint(text, cell.tone)
            parts.append(blanks + painted if column.align is Align.RIGHT else painted + blanks)
        return (" " * self.indent + (" " * _GAP).join(parts)).rstrip()


def table_of(columns: Sequence[tuple[Column, Sequence[str | Cell]]], *, indent: int = 0) -> Table:
    """Return the table of columns that each bring their cells along."""
    rows = list(zip(*(cells for _, cells in columns), strict=True))
    return Table(columns=[column for column, _ in columns], rows=rows, indent=indent)


def facts(
    pairs: Sequence[tuple[str, str]], *, width: int, style: Style, indent: int = 2
) -> list[str]:
    """Return ``label  value`` lines: labels in one column, long values wrapped beside them."""
    label_width = max((len(label) for label, _ in pairs), default=0)
    hanging = indent + label_width + _GAP
    lines = []
    for label, value in pairs:
        wrapped = paragraph(value, width=width, indent=hanging)
        blanks = " " * (label_width - len(label) + _GAP)
        first = " " * indent + style.paint(label, Tone.FAINT) + blanks + wrapped[0].lstrip()
        lines += [first.rstrip(), *wrapped[1:]]
    return lines


def paragraph(text: str, *, width: int, indent: int = 0, mark: str = "") -> list[str]:
    """Return the text wrapped between ``indent`` and ``width``; words are never broken.

    Args:
        text: The text; its own line breaks are not kept.
        width: Last column, in characters; more than 100 is not used.
        indent: Blanks before every line.
        mark: A bullet before the first line, to the left of the text.
    """
    blanks = " " * (indent + len(mark))
    return textwrap.wrap(
        text,
        width=max(min(width, _READABLE), len(blanks) + 1),
        initial_indent=" " * indent + mark,
        subsequent_indent=blanks,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def _cell(item: str | Cell) -> Cell:
    return item if isinstance(item, Cell) else Cell(text=item)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + _ELLIPSIS

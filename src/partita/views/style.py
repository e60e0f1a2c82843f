"""Emphasis as a value: views say what a piece of text means, a ``Style`` says how it looks.

Views get a ``Style`` and never ask about terminals. Colour repeats what the words already say: with
``PLAIN`` no information is lost.
"""

from dataclasses import dataclass
from enum import Enum

__all__ = ["PLAIN", "Style", "Tone"]


class Tone(Enum):
    """What a piece of text is to the reader; the value is its ANSI code (SGR parameter)."""

    TITLE = "1"
    FAINT = "2"
    BAD = "31"
    GOOD = "32"
    WARNING = "33"


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How text is emphasised.

    Attributes:
        colour: Whether ANSI codes are written at all.
    """

    colour: bool

    def paint(self, text: str, tone: Tone | None) -> str:
        """Return the text in a tone; unchanged without colour, without a tone or when empty."""
        if not self.colour or tone is None or not text:
            return text
        return f"\x1b[{tone.value}m{text}\x1b[0m"


PLAIN = Style(colour=False)

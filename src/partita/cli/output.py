"""What leaves the program on stdout: text, or one JSON or YAML document.

Here, and nowhere else, it is asked what stdout is: a terminal (colour, its width) or not.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from enum import Enum

import click
import yaml

from partita.views.style import Style

__all__ = ["Format", "show_document", "show_text", "style", "wants_colour", "width"]

_WIDTH_ELSEWHERE = 80  # columns where stdout is a file or a pipe
_LINES_ELSEWHERE = 24  # asked for by the same call, not used


class Format(Enum):
    """The forms in which a command can answer."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def style() -> Style:
    """Return how text for this stdout is emphasised."""
    return Style(colour=wants_colour(os.environ, terminal=sys.stdout.isatty()))


def wants_colour(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Tell whether to write colour: a terminal that can, and nobody who objects.

    An empty ``NO_COLOR`` counts as unset (https://no-color.org).
    """
    return terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def width() -> int:
    """Return the columns text may take: ``COLUMNS``, else the terminal's, else 80."""
    return shutil.get_terminal_size((_WIDTH_ELSEWHERE, _LINES_ELSEWHERE)).columns


def show_text(text: str) -> None:
    """Print text to stdout."""
    click.echo(text)


def show_document(document: object, form: Format) -> None:
    """Print plain data to stdout as JSON, or as YAML; keys keep their order."""
    if form is Format.YAML:
        dumped = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
        click.echo(dumped, nl=False)
    else:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))

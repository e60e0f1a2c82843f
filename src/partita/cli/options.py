"""Options that several commands share, so that they look and mean the same everywhere."""

import click

from partita.cli.output import Format

__all__ = ["output"]

output = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TEXT,
    help="Form of the answer; text unless said otherwise.",
)

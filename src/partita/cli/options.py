"""Options that several commands share, so that they look and mean the same everywhere."""

from pathlib import Path

import click

from partita.cli.output import Format

__all__ = ["STATE_FILE", "output"]

STATE_FILE = Path("/run/partita/agent.json")
"""Where the agent of a node says how it goes."""

output = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TEXT,
    help="Form of the answer; text unless said otherwise.",
)

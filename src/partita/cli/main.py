"""The ``partita`` program: its name, its version, its commands, and how it fails.

A command is a click command in a module of its own; it is added in one line at the end.
"""

import errno
import os
import sys
from typing import Any

import click

import partita
from partita.cli import agent, check, convert, gpus, plan, status
from partita.errors import PartitaError

__all__ = ["main"]

_PLUGIN = "kubectl-partita"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_FAILURE = 2  # exit code of everything that could not be done; 1 is left to "done, and found wrong"


class _Program(click.Group):
    """A command group that prints partita's own errors instead of letting them through."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the program; output that finds no room is an error of ours too.

        Here, because click writes as well (``--help``). Input errors were translated before.
        """
        try:
            return super().main(*args, **extra)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            click.echo(f"error: cannot write the output: {os.strerror(error.errno)}", err=True)
            _drop_output()
            sys.exit(_FAILURE)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Start with the name that the user typed: kubectl runs ``kubectl-partita`` as a plugin."""
        typed = "kubectl partita" if info_name == _PLUGIN else info_name
        return super().make_context(typed, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of partita becomes two lines on stderr and exit code 2."""
        try:
            return super().invoke(ctx)
        except PartitaError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(_FAILURE)


def _drop_output() -> None:
    """Send what is still buffered nowhere: the interpreter would fail on it again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@click.group("partita", cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(partita.__version__, prog_name="partita")
def main() -> None:
    """Split the GPUs of a Kubernetes cluster and see who uses them."""


main.add_command(agent.command)
main.add_command(status.command)
main.add_command(gpus.command)
main.add_command(plan.command)
main.add_command(check.command)
main.add_command(convert.import_command)
main.add_command(convert.export_command)

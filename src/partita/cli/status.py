"""``partita status``: what the agent of this node says."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from partita.adapters import agent_state
from partita.adapters.processes import ProcProcessTable
from partita.cli import options, output
from partita.model.agent_status import AgentStatus
from partita.ports.process_table import Process
from partita.views import agent_status

__all__ = ["command"]

_STALE_SECONDS = 60
_TOLERANCE_SECONDS = 2  # the clock may have been set a little between the two times


@click.command("status")
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    default=options.STATE_FILE,
    show_default=True,
    help="File that the agent writes.",
)
@click.option("--slices", is_flag=True, help="List every slice with its holder.")
@options.output
@click.pass_context
def command(context: click.Context, state: Path, *, slices: bool, form: output.Format) -> None:
    """Show what the agent of this node says: what is wrong, resources, GPUs.

    Exit code 0 when the agent serves this node, 1 when it does not or has stopped writing.
    """
    status = agent_state.read(state)
    now = datetime.now(UTC)
    silent = _silence(status, now)
    if form is output.Format.TEXT:
        text = agent_status.text(
            status,
            width=output.width(),
            style=output.style(),
            now=now,
            slices=slices,
            silent=silent,
        )
        output.show_text(text)
    else:
        if silent is not None:
            click.echo(f"warning: {silent}", err=True)
        output.show_document(agent_status.document(status), form)
    context.exit(0 if status.is_ready and silent is None else 1)


def _silence(status: AgentStatus, now: datetime) -> str | None:
    """Return why the agent says nothing newer, None when it may well do so."""
    try:
        written = datetime.fromisoformat(status.at)
        seconds = (now - written).total_seconds()
    except (ValueError, TypeError):
        return f"the agent did not say when it wrote this: {status.at}"
    if _has_ended(status, written):
        return f"the agent has ended, it was process: {status.process_id}"
    if seconds > _STALE_SECONDS:
        return f"the agent no longer writes, last at: {status.at}"
    return None


def _has_ended(status: AgentStatus, written: datetime) -> bool:
    """Tell whether the process that wrote has ended, if it ran on this machine.

    Its PID may have gone to another process since, which then started after it wrote.
    """
    if os.uname().nodename != status.node or status.process_id <= 0:
        return False
    try:
        os.kill(status.process_id, 0)  # only asks; answers also where /proc hides others' processes
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # it is there, and another user's
    found = ProcProcessTable().find([status.process_id]).get(status.process_id)
    return found is not None and _started(found) - written.timestamp() > _TOLERANCE_SECONDS


def _started(process: Process) -> float:
    """Return when a process started, in seconds since the epoch."""
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return boot + process.started / os.sysconf("SC_CLK_TCK")

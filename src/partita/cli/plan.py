"""``partita plan``: what to do so that pending pods fit, as text, data, or for another tool."""

import sys
from collections.abc import Sequence
from enum import Enum

import click

from partita.cli import check, options, output, sources
from partita.cli.output import Format
from partita.config import policy_document
from partita.config.partition_policy import PartitionPolicy
from partita.errors import InputError, UsageError
from partita.inventory import assembly
from partita.model.finding import Severity
from partita.model.fleet import Fleet
from partita.planner import planning
from partita.planner.plan import Plan
from partita.views import (
    axis_map,
    device_plugin,
    findings,
    mig_parted,
    nvidia_smi,
    plan_document,
    plan_text,
)
from partita.views.axis_map import Frame

__all__ = ["Tool", "command"]

_DOES_NOT_FIT = 1
_LARGE_FLEET = 500  # GPUs from which on planning takes long enough to say so


class Tool(Enum):
    """Tools for which a plan can be written."""

    MIG_PARTED = "mig-parted"
    DEVICE_PLUGIN = "device-plugin"
    NVIDIA_SMI = "nvidia-smi"


@click.command("plan")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "--from",
    "sources_",
    metavar="PATH",
    multiple=True,
    help="File or directory that says what stands; more may follow as plain arguments.",
)
@click.option(
    "--policy",
    "policy_paths",
    metavar="FILE",
    multiple=True,
    help="PartitionPolicy that says what may be done; without one, everything may be re-cut.",
)
@options.output
@click.option(
    "--to",
    "target",
    type=click.Choice([tool.value for tool in Tool], case_sensitive=False),
    help="Write the plan for this tool instead of for people.",
)
@click.option(
    "--all", "every", is_flag=True, help="Show every GPU and pod by itself, however many there are."
)
@click.pass_context
def command(  # noqa: PLR0913 - one parameter per option
    context: click.Context,
    paths: tuple[str, ...],
    sources_: tuple[str, ...],
    policy_paths: tuple[str, ...],
    form: Format,
    target: str | None,
    *,
    every: bool,
) -> None:
    """Plan how to cut GPUs for the pods that wait, without touching anything that is held.

    PATH is the output of `kubectl get nodes -o json`, `kubectl get pods -A -o json`, `nvidia-smi -q
    -x`, `nvidia-smi mig -lgi` or `nvidia-smi -L`, a kubelet checkpoint, a fleet file, a directory
    of those, or `-` for stdin. Files of one node are named after it, such as gpu-a1.xml.

    Nothing is changed. Exits with 0 when every pending pod fits, with 1 when one does not, and with
    2 when the input cannot be used.
    """
    tool = Tool(target) if target is not None else None
    if tool is not None and form is not Format.TEXT:
        raise UsageError(
            message=f"--to {tool.value} has a form of its own and takes no -o: {form.value}",
            hint="leave out one of the two; -o alone writes the plan itself",
        )
    if not sources_ + paths:
        raise UsageError(
            message="nothing to plan for: no PATH is given",
            hint="for example `partita plan --from nodes.json pods.json gpu-a1.xml`",
        )
    policies = _policies(policy_paths)
    fleet = assembly.assemble(sources.read(sources_ + paths))
    found = _planned(fleet, policies)
    _show(found, form, tool, every=every)
    if found.unfit:
        context.exit(_DOES_NOT_FIT)


def _policies(paths: Sequence[str]) -> tuple[PartitionPolicy, ...]:
    """Read policies; what is wrong in them is an error, what is odd goes to stderr.

    Raises:
        InputError: When a file cannot be read, has an error or has no policy in it.
    """
    policies: list[PartitionPolicy] = []
    for path in paths:
        read = policy_document.decode(check.read_text(path), path)
        for finding in read.findings:
            if finding.severity is Severity.ERROR:
                raise InputError(
                    message=finding.message,
                    hint=finding.hint or "`partita check` says more",
                    path=path,
                    line=finding.line,
                    column=finding.column,
                )
        if read.findings:
            click.echo(findings.text(read.findings), err=True)
        if not read.values:
            hint = "give a document of the kind PartitionPolicy"
            raise InputError(message="no policy in the file", hint=hint, path=path)
        policies += read.values
    return tuple(policies)


def _planned(fleet: Fleet, policies: Sequence[PartitionPolicy]) -> Plan:
    if len(fleet.gpus) > _LARGE_FLEET and sys.stderr.isatty():
        click.echo(f"planning {len(fleet.gpus):,} GPUs …", err=True)
    return planning.plan(fleet, policies)


def _show(plan: Plan, form: Format, tool: Tool | None, *, every: bool) -> None:
    if tool is not None:
        _tell_unfit(plan)
        output.show_text(_for_tool(plan, tool))
    elif form is not Format.TEXT:
        output.show_document(plan_document.document(plan), form)
    else:
        text = plan_text.text(
            plan, width=output.width(), style=output.style(), frame=_frame(), every=every
        )
        output.show_text(_writable(text))


def _for_tool(plan: Plan, tool: Tool) -> str:
    match tool:
        case Tool.MIG_PARTED:
            return mig_parted.text(plan)
        case Tool.DEVICE_PLUGIN:
            return device_plugin.text(plan)
        case Tool.NVIDIA_SMI:
            return nvidia_smi.script(plan)


def _tell_unfit(plan: Plan) -> None:
    if plan.unfit:
        number = len(plan.unfit)
        pods = "1 pending pod does" if number == 1 else f"{number} pending pods do"
        click.echo(f"{pods} not fit; without --to the plan says why", err=True)


def _frame() -> Frame:
    """Return lines that the encoding of stdout has."""
    boxes = "".join(axis_map.BOXES.joints.values()) + axis_map.BOXES.across + axis_map.BOXES.down
    return axis_map.BOXES if _writable(boxes) == boxes else axis_map.ASCII


def _writable(text: str) -> str:
    """Return a text with ``?`` for what the encoding of stdout lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, errors="replace").decode(encoding)

"""``partita check``: lint NVIDIA's configs, policies and nodes, with the place of every finding."""

import io
from collections.abc import Sequence

import click

from partita.cli import options, output, sources
from partita.cli.output import Format
from partita.config import lint, node_checks
from partita.config.config_map import Configs
from partita.config.lint import Kind
from partita.errors import InputError
from partita.model.finding import Finding, Severity
from partita.model.node import Node
from partita.model.report import Observation
from partita.views import findings as view

__all__ = ["command", "read_text"]

_FOUND = 1


@click.command("check")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--node",
    "node_paths",
    metavar="FILE",
    multiple=True,
    help="Node, or nvidia-smi output, to try the configs on; may be given several times.",
)
@click.option("-q", "--quiet", is_flag=True, help="Leave out notes.")
@options.output
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[str, ...],
    node_paths: tuple[str, ...],
    form: Format,
    *,
    quiet: bool,
) -> None:
    """Say what is wrong in configs, policies and nodes.

    FILE is a device-plugin config, a mig-parted config, a ConfigMap with either, Helm values of the
    GPU operator or the device-plugin chart, a PartitionPolicy, or a node.

    Exits with 0 when there is neither an error nor a warning, with 1 when there is, and with 2 when
    a file cannot be read.
    """
    found, configs, unusable = _check_files(paths)
    for path in node_paths:
        found += _check_observations(sources.read([path]), configs, path)
    shown = [f for f in found if not (quiet and f.severity is Severity.INFO)]
    if shown or len(unusable) < len(paths):
        _show(shown, form)
    for error in unusable[:-1]:
        click.echo(f"error: {error}", err=True)
    if unusable:
        raise unusable[-1]
    if any(finding.severity is not Severity.INFO for finding in found):
        context.exit(_FOUND)


def read_text(path: str) -> str:
    """Return the text of a file, ``-`` is stdin.

    Raises:
        InputError: When it cannot be read, is not UTF-8, or is YAML of more than 20 MiB.
    """
    text = sources.read_text(path, hint=f"give {lint.UNDERSTOOD}")
    if not (sources.is_large_json(text) or sources.is_tool_output(text)):
        sources.refuse_large(text, path)
    return text


def _check_files(paths: Sequence[str]) -> tuple[list[Finding], Configs, list[InputError]]:
    """Check each file; one that cannot be used does not keep the others from being checked."""
    found: list[Finding] = []
    configs = Configs()
    unusable: list[InputError] = []
    for path in paths:
        try:
            findings, more = _check_file(path)
        except InputError as error:
            unusable.append(error)
        else:
            found += findings
            configs += more
    return found, configs, unusable


def _check_file(path: str) -> tuple[list[Finding], Configs]:
    text = read_text(path)
    if _is_cluster_file(text, path):
        return _check_cluster_file(text, path), Configs()
    reading = lint.read(text, path)
    found = list(reading.findings)
    if Kind.NODE in reading.kinds:
        found += _check_observations(_observations(text, path), reading.configs, path)
    return found, reading.configs


def _is_cluster_file(text: str, path: str) -> bool:
    """Tell whether a file is for the readers of cluster objects and tool output alone."""
    if sources.is_large_json(text):
        return True  # no config is so large, and `lint` would take minutes
    try:
        kinds = lint.kinds(text, path)
    except InputError:
        if _looks_like_config(text) and not sources.is_tool_output(text):
            raise
        return True
    return kinds <= {Kind.NODE}


def _check_cluster_file(text: str, path: str) -> list[Finding]:
    """Check the nodes of a file.

    Raises:
        InputError: When it holds none; the error of the reader that comes nearest.
    """
    try:
        observations = _observations(text, path)
    except InputError:
        if not (sources.is_large_json(text) or sources.is_tool_output(text)):
            lint.read(text, path)  # says what a config would have to look like, when it is YAML
        raise
    if not any(observation.nodes or observation.reports for observation in observations):
        raise InputError(message="no node in this file", hint=f"give {lint.UNDERSTOOD}", path=path)
    return _check_observations(observations, Configs(), path)


def _looks_like_config(text: str) -> bool:
    marks = (
        "sharing:",
        "mig-configs:",
        "kind: ConfigMap",
        "kind: PartitionPolicy",
        "devicePlugin:",
    )
    return any(mark in text for mark in marks)


def _observations(text: str, path: str) -> Sequence[Observation]:
    """Read a file again as cluster objects; stdin cannot be read twice."""
    return sources.read([path], stdin=io.BytesIO(text.encode()))


def _check_observations(
    observations: Sequence[Observation], configs: Configs, path: str
) -> list[Finding]:
    found: list[Finding] = []
    for observation in observations:
        for node in _nodes(observation):
            found += node_checks.check(node, observation.reports, configs, path)
    return found


def _nodes(observation: Observation) -> Sequence[Node]:
    """Return the nodes, and one without labels for each report of a node that has no object."""
    known = {node.name for node in observation.nodes}
    names = dict.fromkeys(report.node for report in observation.reports)
    return [*observation.nodes, *(Node(name=name) for name in names if name not in known)]


def _show(findings: Sequence[Finding], form: Format) -> None:
    if form is not Format.TEXT:
        output.show_document(view.document(findings), form)
        return
    if findings:
        output.show_text(view.text(findings, output.style()))
    output.show_text(view.summary(findings))

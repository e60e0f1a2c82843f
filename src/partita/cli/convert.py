"""``partita import`` and ``partita export``: NVIDIA's configs as policies, and back.

The result goes to stdout, what was lost on the way to stderr.
"""

from collections.abc import Sequence
from pathlib import PurePath

import click

from partita.cli import check, output
from partita.cli.output import Format
from partita.config import (
    device_plugin,
    lint,
    mig_parted,
    operator_values,
    policy_document,
    policy_export,
    policy_import,
    yaml_text,
)
from partita.config.config_map import Configs
from partita.config.inspection import Inspection
from partita.config.partition_policy import PartitionPolicy
from partita.config.policy_export import Target
from partita.errors import InputError
from partita.model.finding import Finding, Severity
from partita.views import findings as view

__all__ = ["export_command", "import_command"]

_FOUND = 1
_FORM = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice([Format.YAML, Format.JSON], case_sensitive=False),
    default=Format.YAML,
    show_default=True,
    help="Form of the documents.",
)


@click.command("import")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@_FORM
@click.pass_context
def import_command(context: click.Context, paths: tuple[str, ...], form: Format) -> None:
    """Turn NVIDIA's configs into PartitionPolicy documents.

    Exits with 1 when something is wrong in a FILE or has no counterpart in a policy.
    """
    found: list[Finding] = []
    policies: list[PartitionPolicy] = []
    for path in paths:
        reading = lint.read(check.read_text(path), path)
        found += [f for f in reading.findings if f.severity is not Severity.INFO]
        inspection = Inspection(path=path)
        policies += policy_import.policies_of(reading.configs, inspection, PurePath(path).stem)
        found += inspection.findings
    if not policies and not found:
        raise InputError(
            message="no config of NVIDIA's in it", hint="give a config or ConfigMap", path=paths[0]
        )
    _show([policy_document.encode(policy) for policy in policies], form)
    _tell(context, found)


@click.command("export")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--to",
    "target",
    type=click.Choice([target.value for target in Target]),
    required=True,
    help="NVIDIA's document to write.",
)
@_FORM
@click.pass_context
def export_command(
    context: click.Context, paths: tuple[str, ...], target: str, form: Format
) -> None:
    """Turn PartitionPolicy documents into NVIDIA's configs.

    Exits with 1 when something is wrong in a FILE or NVIDIA's tools have no word for it.
    """
    found: list[Finding] = []
    policies: list[PartitionPolicy] = []
    for path in paths:
        reading = lint.read(check.read_text(path), path)
        found += [f for f in reading.findings if f.severity is not Severity.INFO]
        policies += reading.policies
    inspection = Inspection(path=paths[0])
    configs = policy_export.configs_of(policies, Target(target), inspection)
    found += inspection.findings
    if not policies and not found:
        raise InputError(
            message="no PartitionPolicy in it", hint="`partita import` makes some", path=paths[0]
        )
    _show(_documents(configs, Target(target)), form)
    _tell(context, found)


def _documents(configs: Configs, target: Target) -> Sequence[dict[str, object]]:
    match target:
        case Target.MIG_PARTED:
            return [dict(mig_parted.encode(configs.mig))] if configs.mig else []
        case Target.OPERATOR_VALUES:
            values = operator_values.encode(configs.plugin, configs.mig)
            return [dict(values)] if values else []
        case Target.DEVICE_PLUGIN:
            return _plugin_documents(configs)


def _plugin_documents(configs: Configs) -> Sequence[dict[str, object]]:
    """Return one ConfigMap with a key per config: a file of its own has no name."""
    if not configs.plugin:
        return []
    data = {
        config.name or "default": yaml_text.dump(device_plugin.encode(config))
        for config in configs.plugin
    }
    metadata = {"name": "partita-device-plugin-config"}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}]


def _show(documents: Sequence[object], form: Format) -> None:
    if form is Format.JSON:
        one = documents[0] if len(documents) == 1 else list(documents)
        output.show_document(one, form)
        return
    text = yaml_text.dump_all([d for d in documents if isinstance(d, dict)])
    output.show_text(text.rstrip("\n")) if text else None


def _tell(context: click.Context, found: Sequence[Finding]) -> None:
    if found:
        click.echo(view.text(found), err=True)
    if any(finding.severity is not Severity.INFO for finding in found):
        context.exit(_FOUND)

"""What the agent of a node is told to do, by one file.

The file holds policies of ours, or one configuration of NVIDIA's: that of its device plugin, which
says how what stands is served and cuts nothing, or that of mig-parted, which becomes policies.
Either may be inside a ConfigMap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from partita.config import lint, policy_import
from partita.config.config_map import Configs
from partita.config.device_plugin import DevicePluginConfig
from partita.config.inspection import Inspection
from partita.config.lint import Kind
from partita.config.mig_parted import NamedMigConfig
from partita.config.partition_policy import PartitionPolicy, Strategy, Via
from partita.config.policy_import import MIG_LABEL, PLUGIN_LABEL
from partita.config.sharing_section import SharingKind
from partita.errors import InputError
from partita.model.finding import Finding, Severity

__all__ = ["AgentDocument", "read"]

Config = TypeVar("Config", DevicePluginConfig, NamedMigConfig)

_DEFAULT = "default"  # the name that NVIDIA's config-manager falls back to
_UNDERSTOOD = "give a PartitionPolicy, or NVIDIA's device-plugin config.yaml or mig-parted config"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDocument:
    """What is wanted of this node. Either policies or a plugin configuration, or neither.

    Attributes:
        path: The file, as the user named it; empty without one.
        policies: Policies; those whose node selector does not fit the node are left out.
        plugin: Configuration of NVIDIA's device plugin: what stands is served so, nothing is cut.
        findings: What the reader noted that is no error.
    """

    path: str = ""
    policies: tuple[PartitionPolicy, ...] = ()
    plugin: DevicePluginConfig | None = None
    findings: tuple[Finding, ...] = field(default=(), compare=False)


def read(
    text: str,
    path: str,
    *,
    name: str | None = None,
    labels: Mapping[str, str] | None = None,
    allow_reset: bool = False,
) -> AgentDocument:
    """Read what is wanted.

    Args:
        text: The file's text.
        path: Its name, for messages.
        name: Which of several named configurations; None for the one that the node's label of
            NVIDIA's names, else the one called ``default``, else the only one.
        labels: Labels of this node, None when unknown: node selectors then select every node.
        allow_reset: Whether a GPU may be reset for a mig-parted config, which has no word for it.

    Raises:
        InputError: When the file cannot be followed as it stands. The first error is named with
            its line.
    """
    reading = lint.read(text, path)
    _refuse_errors(reading.findings, path)
    plugin_name = name or (labels or {}).get(PLUGIN_LABEL)
    plugin = next(iter(_plugin(reading.configs, path, plugin_name)), None)
    inspection = Inspection(path=path)
    mig_name = name or (labels or {}).get(MIG_LABEL)
    mig = Configs(mig=_named(reading.configs.mig, path, mig_name))
    imported = policy_import.policies_of(mig, inspection, "") if mig.mig else ()
    policies = (
        *(_selected(reading.policies, labels)),
        *(_imported(one, allow_reset=allow_reset) for one in imported),
    )
    if plugin is not None and (policies or reading.policies):
        raise InputError(
            message="a device-plugin config and policies in one file contradict each other",
            hint="keep one of them; `partita import` makes policies of NVIDIA's configs",
            path=path,
        )
    if plugin is None and not policies and not _has_policies(reading.kinds):
        raise _nothing(inspection.findings, path)
    _refuse_unserved(policies, plugin, path)
    return AgentDocument(
        path=path,
        policies=policies,
        plugin=plugin,
        findings=(*reading.findings, *inspection.findings),
    )


def _nothing(lost: Sequence[Finding], path: str) -> InputError:
    """Return that there is nothing to follow; what was left out of the import may be why."""
    first = next((one for one in lost if one.severity is Severity.WARNING), None)
    return InputError(
        message=first.message if first else "nothing in this file tells how to cut or share",
        hint=(first.hint if first else None) or _UNDERSTOOD,
        path=path,
        line=first.line if first else None,
        column=first.column if first else None,
    )


def _has_policies(kinds: frozenset[Kind]) -> bool:
    return Kind.POLICY in kinds


def _refuse_errors(findings: Sequence[Finding], path: str) -> None:
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        first, more = errors[0], len(errors) - 1
        raise InputError(
            message=first.message + (f" (and {more} more)" if more else ""),
            hint=first.hint or f"partita check {path}",
            path=path,
            line=first.line,
            column=first.column,
        )


def _plugin(configs: Configs, path: str, name: str | None) -> tuple[DevicePluginConfig, ...]:
    wanted = name or configs.default
    if wanted is None and len(configs.plugin) > 1:
        wanted = next((one.name for one in configs.plugin if one.name == _DEFAULT), None)
    return _named(configs.plugin, path, wanted)


def _named(configs: Sequence[Config], path: str, name: str | None) -> tuple[Config, ...]:
    """Return the one configuration that is meant, or none where there is none."""
    found = tuple(config for config in configs if name in (None, config.name))
    if len(found) > 1 or (configs and not found):
        raise _ambiguous(path, [config.name or "" for config in configs], name)
    return found


def _ambiguous(path: str, names: Sequence[str], name: str | None) -> InputError:
    said = f"no configuration has the name: {name}" if name else "there are several configurations"
    return InputError(
        message=said, hint=f"choose with --config-name one of: {', '.join(names)}", path=path
    )


def _selected(
    policies: Sequence[PartitionPolicy], labels: Mapping[str, str] | None
) -> tuple[PartitionPolicy, ...]:
    """Return the policies for this node, freed of the node selector that was looked at here."""
    return tuple(
        _on_any_node(policy)
        for policy in policies
        if labels is None
        or all(labels.get(key) == value for key, value in policy.node_selector.items())
    )


def _imported(policy: PartitionPolicy, *, allow_reset: bool) -> PartitionPolicy:
    mig = replace(policy.mig, allow_reset=allow_reset)
    return replace(_on_any_node(policy), mig=mig)


def _on_any_node(policy: PartitionPolicy) -> PartitionPolicy:
    return replace(policy, node_selector={})


def _refuse_unserved(
    policies: Sequence[PartitionPolicy], plugin: DevicePluginConfig | None, path: str
) -> None:
    """Refuse what this agent does not do, before anything else is done by halves."""
    mps = next((p.name for p in policies if p.strategy is Strategy.MPS), None)
    if plugin is not None and plugin.sharing and plugin.sharing.kind is SharingKind.MPS:
        mps = "sharing.mps"
    if mps is not None:
        raise InputError(
            message=f"this agent does not serve MPS yet, asked for by: {mps}",
            hint="use time-slicing or MIG, or leave this node to NVIDIA's device plugin",
            path=path,
        )
    if plugin is not None:
        _refuse_undelivered(plugin, path)
    for policy in policies:
        if policy.config_map_ref is not None:
            raise InputError(
                message=f"this agent reads no ConfigMap of the cluster, as asked by: {policy.name}",
                hint="write its parameters here, or give the ConfigMap itself as the file",
                path=path,
            )
        if policy.via is Via.NVIDIA_OPERATOR:
            raise InputError(
                message=f"another program is to carry out policy: {policy.name}",
                hint="remove `via: nvidia-operator`, or run no agent on this node",
                path=path,
            )


def _refuse_undelivered(plugin: DevicePluginConfig, path: str) -> None:
    """Refuse what containers would go without, although the configuration promises it to them."""
    imex = [name for name in plugin.other_flags if name.startswith("imex.")]
    if imex:
        raise InputError(
            message=f"this agent gives no IMEX channels to containers, asked for by: {imex[0]}",
            hint="remove the imex section, or leave this node to NVIDIA's device plugin",
            path=path,
        )
    serving = plugin.serving
    extras = {
        "flags.gdrcopyEnabled": serving.gdrcopy_enabled,
        "flags.gdsEnabled": serving.gds_enabled,
        "flags.mofedEnabled": serving.mofed_enabled,
    }
    extra = next((name for name, is_on in extras.items() if is_on), None)
    if extra is not None and serving.uses_only_cdi:
        raise InputError(
            message=f"this agent's CDI file does not describe what is asked for by: {extra}",
            hint="add envvar to deviceListStrategy, or set the flag to false",
            path=path,
        )

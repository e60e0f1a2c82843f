"""Policies as NVIDIA's configurations: ``partita export``.

The opposite of ``config.policy_import``. What NVIDIA's tools have no word for is noted under the
rule ``lost-meaning``; where nothing is noted, importing the result gives the same policies.
"""

from collections.abc import Sequence
from enum import Enum

from partita.catalog import library
from partita.config import policy_import
from partita.config.config_map import Configs
from partita.config.device_plugin import DevicePluginConfig, MigStrategy
from partita.config.inspection import Inspection
from partita.config.mig_parted import MigEntry, NamedMigConfig
from partita.config.partition_policy import (
    BudgetEnforcement,
    Follow,
    GpuSelector,
    PartitionPolicy,
    SharingParameters,
    Strategy,
    Via,
)
from partita.config.policy_import import LOST, MIG_LABEL, PLUGIN_LABEL
from partita.config.sharing_section import SharedEntry, SharingKind, SharingSection
from partita.config.yaml_nodes import Position
from partita.model import resource

__all__ = ["Target", "configs_of"]

_NOWHERE = Position(line=1, column=1)


class Target(Enum):
    """NVIDIA's document to write."""

    MIG_PARTED = "mig-parted"
    DEVICE_PLUGIN = "device-plugin"
    OPERATOR_VALUES = "operator-values"


def configs_of(
    policies: Sequence[PartitionPolicy], target: Target, inspection: Inspection
) -> Configs:
    """Return the NVIDIA configurations that mean what the policies mean, as far as they can."""
    mig: dict[str, list[tuple[str, MigEntry]]] = {}
    plugin: dict[str, DevicePluginConfig] = {}
    for policy in policies:
        inner = inspection.inside(policy.name)
        home = _home(policy, target)
        if home is None or target not in (home, Target.OPERATOR_VALUES):
            _not_here(policy, home, target, inner)
        elif home is Target.MIG_PARTED:
            _add_mig(policy, mig, inner)
        else:
            _add_plugin(policy, plugin, inner)
    for config, entries in mig.items():
        _lost_names(config, [policy for policy, _ in entries], inspection)
    named = tuple(
        NamedMigConfig(name=name, entries=tuple(entry for _, entry in entries), at=_NOWHERE)
        for name, entries in mig.items()
    )
    return Configs(mig=named, plugin=tuple(plugin.values()))


def _home(policy: PartitionPolicy, target: Target) -> Target | None:
    """Return which of NVIDIA's documents has words for a policy, None for neither."""
    match policy.strategy:
        case _ if policy.config_map_ref is not None:
            return None
        case Strategy.MIG:
            home = Target.MIG_PARTED
        case Strategy.TIME_SLICING | Strategy.MPS:
            home = Target.DEVICE_PLUGIN
        case Strategy.WHOLE:
            shared = PLUGIN_LABEL in policy.node_selector or target is Target.DEVICE_PLUGIN
            is_mig = MIG_LABEL in policy.node_selector
            home = Target.DEVICE_PLUGIN if shared and not is_mig else Target.MIG_PARTED
        case Strategy.AUTO:
            return None
    return home


def _not_here(
    policy: PartitionPolicy, home: Target | None, target: Target, inspection: Inspection
) -> None:
    if home is not None:
        inspection.warning(
            LOST,
            f"left out, {target.value} has no word for strategy: {policy.strategy.value}",
            None,
            f"use --to {home.value}, or --to operator-values for both",
        )
    elif policy.config_map_ref is not None:
        inspection.warning(
            LOST,
            f"left out, the parameters are in a ConfigMap: {policy.config_map_ref.name}",
            None,
            "that ConfigMap is in NVIDIA's format already",
        )
    else:
        inspection.warning(
            LOST,
            "left out, NVIDIA's tools have no word for strategy: Auto",
            None,
            "write a policy with a fixed strategy",
        )


def _add_mig(
    policy: PartitionPolicy,
    configs: dict[str, list[tuple[str, MigEntry]]],
    inspection: Inspection,
) -> None:
    if policy.strategy is Strategy.MIG and policy.mig.layout is None:
        inspection.warning(
            LOST,
            "left out, mig-parted needs a layout and cannot follow demand",
            None,
            "write mig.layout and follow: Fixed",
        )
        return
    selector = policy.gpu_selector
    if selector.uuids and not selector.indices:
        inspection.warning(
            LOST,
            "left out, mig-parted cannot select a GPU by UUID",
            None,
            "use gpuSelector.indices, they may change when a GPU is added",
        )
        return
    filters = _device_filters(selector.models, inspection)
    if filters is None:
        return
    name = _config_name(policy, MIG_LABEL, inspection)
    _lost_of_policy(policy, Follow.FIXED, inspection)
    enabled = policy.strategy is Strategy.MIG
    entry = MigEntry(
        devices=selector.indices or None,
        device_filters=filters,
        mig_enabled=enabled,
        mig_devices=dict(policy.mig.layout or {}) if enabled else {},
        at=_NOWHERE,
        devices_at=_NOWHERE,
        mig_devices_at=_NOWHERE,
        filter_at=_NOWHERE,
    )
    configs.setdefault(name, []).append((policy.name, entry))


def _device_filters(models: Sequence[str], inspection: Inspection) -> tuple[str, ...] | None:
    filters: list[str] = []
    for name in models:
        model = library.find(name)
        if model is None or not model.pci_devices:
            inspection.warning(
                LOST,
                f"left out, the catalogue knows no PCI id of this GPU model: {name}",
                None,
                "`partita gpus` lists the models",
            )
            return None
        if model.id != name:
            inspection.info(LOST, f"the model is written by its PCI id: {name}", None)
        filters += model.pci_devices
    return tuple(filters)


def _add_plugin(
    policy: PartitionPolicy, configs: dict[str, DevicePluginConfig], inspection: Inspection
) -> None:
    name = _config_name(policy, PLUGIN_LABEL, inspection)
    if name in configs:
        inspection.warning(
            LOST,
            f"left out, a node has one device-plugin config and another policy made it: {name}",
            None,
            f"give the policies different values of the label {PLUGIN_LABEL}",
        )
        return
    if policy.gpu_selector != GpuSelector():
        inspection.warning(
            LOST,
            "the device plugin shares every GPU of a node, gpuSelector is lost",
            None,
            "keep such GPUs on nodes of their own",
        )
    _lost_names(name, [policy.name], inspection)
    _lost_of_policy(policy, Follow.DEMAND, inspection)
    parameters = policy.mps if policy.strategy is Strategy.MPS else policy.time_slicing
    kind = SharingKind.MPS if policy.strategy is Strategy.MPS else SharingKind.TIME_SLICING
    section = (
        _section(parameters, kind) if parameters and policy.strategy is not Strategy.WHOLE else None
    )
    has_mig = section is not None and any(e.name != resource.WHOLE_GPU for e in section.entries)
    configs[name] = DevicePluginConfig(
        name=name,
        mig_strategy=MigStrategy.MIXED if has_mig else None,
        time_slicing=section if kind is SharingKind.TIME_SLICING else None,
        mps=section if kind is SharingKind.MPS else None,
    )


def _section(parameters: SharingParameters, kind: SharingKind) -> SharingSection:
    return SharingSection(
        kind=kind,
        entries=tuple(
            SharedEntry(name=one.name, replicas=one.replicas, at=_NOWHERE, replicas_at=_NOWHERE)
            for one in parameters.resources
        ),
        rename_by_default=parameters.rename_by_default,
        fail_requests_greater_than_one=parameters.fail_requests_greater_than_one,
        at=_NOWHERE,
    )


def _config_name(policy: PartitionPolicy, label: str, inspection: Inspection) -> str:
    name = policy.node_selector.get(label)
    if name is None:
        inspection.info(
            LOST,
            f"NVIDIA selects nodes by one label only, label them: {label}={policy.name}",
            None,
            "`kubectl label node <node> " + f"{label}={policy.name}`",
        )
    others = sorted(key for key in policy.node_selector if key != label)
    if others:
        inspection.warning(
            LOST,
            f"NVIDIA selects nodes by one label only, lost from nodeSelector: {', '.join(others)}",
            None,
            f"set {label} on exactly those nodes",
        )
    return name or policy.name


def _lost_names(config: str, names: Sequence[str], inspection: Inspection) -> None:
    """Note policies whose name reading the config back would not give again."""
    expected = policy_import.policy_names(config, len(names))
    for name, other in zip(names, expected, strict=True):
        if name != other:
            inspection.info(LOST, f"the config has no place for the policy's name: {name}", None)


def _lost_of_policy(policy: PartitionPolicy, follow: Follow, inspection: Inspection) -> None:
    if policy.follow is not follow:
        inspection.info(
            LOST, f"NVIDIA's tools keep what is written, lost: follow {policy.follow.value}", None
        )
    unused: list[tuple[bool, str]] = [
        (policy.budget is not BudgetEnforcement.WARN, f"budgetEnforcement {policy.budget.value}"),
        (policy.via is not Via.PARTITA, f"via {policy.via.value}"),
        (bool(policy.gpu_selector.uuids), "gpuSelector.uuids"),
        (bool(policy.mig.profiles), "mig.profiles"),
        (policy.mig.allow_reset, "mig.allowReset"),
        (policy.strategy is not Strategy.MIG and policy.mig.layout is not None, "mig.layout"),
        (policy.strategy is not Strategy.TIME_SLICING and bool(policy.time_slicing), "timeSlicing"),
        (policy.strategy is not Strategy.MPS and bool(policy.mps), "mps"),
    ]
    for lost, what in unused:
        if lost:
            inspection.info(LOST, f"NVIDIA's tools have no word for: {what}", None)

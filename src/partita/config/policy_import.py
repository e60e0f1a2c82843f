"""NVIDIA's configurations as policies: ``partita import``.

A mig-parted config becomes one policy per entry, a device-plugin config one policy; the label that
selects the config on a node becomes the node selector. What a policy has no word for is noted under
the rule ``lost-meaning``: nothing is dropped in silence.
"""

import re
from collections.abc import Iterator

from partita.config import mig_rules
from partita.config.config_map import Configs
from partita.config.device_plugin import DevicePluginConfig, MigStrategy
from partita.config.inspection import Inspection
from partita.config.mig_parted import MigEntry, NamedMigConfig
from partita.config.partition_policy import (
    Follow,
    GpuSelector,
    MigParameters,
    PartitionPolicy,
    SharedResource,
    SharingParameters,
    Strategy,
)
from partita.config.sharing_section import SharingKind, SharingSection
from partita.model import resource

__all__ = ["LOST", "MIG_LABEL", "PLUGIN_LABEL", "policies_of", "policy_names"]

LOST = "lost-meaning"
MIG_LABEL = "nvidia.com/mig.config"
PLUGIN_LABEL = "nvidia.com/device-plugin.config"


def policies_of(
    configs: Configs, inspection: Inspection, unnamed: str
) -> tuple[PartitionPolicy, ...]:
    """Return the policies that mean what NVIDIA's configurations mean.

    Args:
        configs: What was read.
        inspection: Where lost meaning is noted.
        unnamed: Name for a device-plugin config that has none.
    """
    found = [policy for config in configs.mig for policy in _policies_of_mig(config, inspection)]
    for config in configs.plugin:
        policy = _policy_of_plugin(config, unnamed, inspection)
        found += [policy] if policy is not None else []
    if configs.default:
        inspection.info(
            LOST,
            f"a policy cannot say which config nodes without the label get: {configs.default}",
            None,
            "add a policy without that label in its nodeSelector",
            "default",
        )
    return tuple(found)


def _policies_of_mig(config: NamedMigConfig, inspection: Inspection) -> Iterator[PartitionPolicy]:
    names = policy_names(config.name, len(config.entries))
    for name, entry in zip(names, config.entries, strict=True):
        inner = inspection.inside(config.name)
        if entry.devices == ():
            inner.info(LOST, "an entry without devices becomes no policy", entry.at)
            continue
        models = _models(entry, inner)
        if models is None:
            continue
        yield PartitionPolicy(
            name=name,
            strategy=Strategy.MIG if entry.mig_enabled else Strategy.WHOLE,
            node_selector={MIG_LABEL: config.name},
            gpu_selector=GpuSelector(models=models, indices=entry.devices or ()),
            follow=Follow.FIXED,
            mig=(
                MigParameters(layout=dict(entry.mig_devices))
                if entry.mig_enabled
                else MigParameters()
            ),
        )


def _models(entry: MigEntry, inspection: Inspection) -> tuple[str, ...] | None:
    """Return catalogue ids of the device filter; None when it names nothing that is known."""
    if not entry.device_filters:
        return ()
    models = mig_rules.filtered_models(entry)
    ids = {text.partition(":")[0].upper() for text in entry.device_filters}
    known = {pci.upper() for model in models for pci in model.pci_devices}
    if not models:
        note = inspection.warning if entry.mig_enabled else inspection.info
        note(
            LOST,
            f"no policy made, the catalogue has no GPU with this PCI id: {entry.device_filters[0]}",
            entry.filter_at,
            "write the policy by hand, with gpuSelector.uuids or gpuSelector.indices",
        )
        return None
    if ids - known:
        inspection.warning(
            LOST,
            f"left out, the catalogue has no GPU with this PCI id: {min(ids - known)}",
            entry.filter_at,
            "add gpuSelector.uuids or gpuSelector.indices by hand",
        )
    if known - ids or any(":" in text for text in entry.device_filters):
        inspection.info(
            LOST,
            "the policy selects the whole GPU model, the device filter was narrower: "
            + ", ".join(entry.device_filters),
            entry.filter_at,
            "add gpuSelector.uuids or gpuSelector.indices by hand if that matters",
        )
    return tuple(model.id for model in models)


def _policy_of_plugin(
    config: DevicePluginConfig, unnamed: str, inspection: Inspection
) -> PartitionPolicy | None:
    inner = inspection.inside(config.name or "")
    section = config.sharing
    _lost_of_plugin(config, inner)
    if section is None and config.mig_strategy in (MigStrategy.SINGLE, MigStrategy.MIXED):
        inner.info(
            "nothing-to-import",
            "no policy made: the config shares nothing and leaves the cut to mig-parted",
            config.at,
            "import the mig-parted file",
        )
        return None
    strategy = Strategy.WHOLE
    if section is not None:
        mps = section.kind is SharingKind.MPS
        strategy = Strategy.MPS if mps else Strategy.TIME_SLICING
    parameters = _parameters(section) if section else None
    return PartitionPolicy(
        name=_object_name(config.name or unnamed),
        strategy=strategy,
        node_selector={PLUGIN_LABEL: config.name} if config.name else {},
        time_slicing=parameters if strategy is Strategy.TIME_SLICING else None,
        mps=parameters if strategy is Strategy.MPS else None,
    )


def _lost_of_plugin(config: DevicePluginConfig, inspection: Inspection) -> None:
    if config.mps is not None and config.time_slicing is not None:
        inspection.warning(
            LOST,
            "timeSlicing is left out, MPS wins in NVIDIA's plugin too",
            config.at,
            "remove one",
        )
    mig_entries = bool(config.sharing) and any(
        entry.name != resource.WHOLE_GPU
        for entry in (config.sharing.entries if config.sharing else ())
    )
    strategy = config.mig_strategy
    expected = strategy in (None, MigStrategy.NONE) or (
        strategy is MigStrategy.MIXED and mig_entries
    )
    if not expected and strategy is not None:
        inspection.warning(
            LOST,
            f"a policy has no migStrategy: {strategy.value}",
            config.at,
            "partita names MIG devices as the mixed strategy does, nvidia.com/mig-<profile>",
        )
    for flag in config.other_flags:
        inspection.info(LOST, f"a policy has no such flag: {flag}", config.at)


def _parameters(section: SharingSection) -> SharingParameters:
    return SharingParameters(
        resources=tuple(
            SharedResource(name=entry.name, replicas=entry.replicas) for entry in section.entries
        ),
        rename_by_default=section.rename_by_default,
        fail_requests_greater_than_one=section.fail_requests_greater_than_one,
    )


def policy_names(config: str, count: int) -> tuple[str, ...]:
    """Return the names of the policies that a config with so many entries becomes."""
    name = _object_name(config)
    return (name,) if count == 1 else tuple(f"{name}-{number + 1}" for number in range(count))


def _object_name(text: str) -> str:
    """Return a text as the name of a Kubernetes object: lower case, digits, ``-`` and ``.``."""
    name = re.sub(r"[^a-z0-9.-]+", "-", text.lower())
    name = re.sub(r"[-.]*\.[-.]*", ".", name).strip("-.")
    return name[:240] or "policy"
